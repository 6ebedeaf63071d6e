// The locations of operations.
#include "stablehlo/bytecode/tables.h"

namespace kiln::stablehlo {
namespace {

enum Code : uint64_t {
  kCallSite = 10,
  kFile = 11,
  kFused = 12,
  kFusedWithMetadata = 13,
  kName = 14,
  kUnknown = 15,
  kFileRangeLocation = 22,
};

// Deeper or longer locations are ignored.
constexpr int64_t kMaxDepth = 60;
constexpr int64_t kMaxSteps = 400;
constexpr size_t kMaxFused = 8;

int32_t Clamp(uint64_t value) {
  return static_cast<int32_t>(value > INT32_MAX ? INT32_MAX : value);
}

}  // namespace

Status Tables::ReadLocationEntry(Input& input, uint64_t code, uint64_t index) {
  Location location;
  switch (code) {
    case kCallSite:
      // The callee, and its caller.
      location.kind = LocationKind::kCall;
      KILN_RETURN_IF_ERROR(ReadChildren(input, 2, location));
      break;
    case kFile:
    case kFileRangeLocation: {
      location.kind = LocationKind::kFile;
      KILN_ASSIGN_OR_RETURN(location.text, ReadStringAttribute(input));
      uint64_t numbers = 2;
      if (code == kFileRangeLocation) {
        KILN_ASSIGN_OR_RETURN(numbers, input.Count("a number of lines and columns"));
      }
      for (uint64_t i = 0; i < numbers; ++i) {
        KILN_ASSIGN_OR_RETURN(uint64_t number, input.VarInt("a line or column"));
        if (i < 2) (i == 0 ? location.line : location.column) = Clamp(number);
      }
      break;
    }
    case kFused:
    case kFusedWithMetadata: {
      location.kind = LocationKind::kFused;
      KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of locations"));
      KILN_RETURN_IF_ERROR(ReadChildren(input, count, location));
      if (code == kFusedWithMetadata) KILN_RETURN_IF_ERROR(ReadAttribute(input).status());
      break;
    }
    case kName: {
      location.kind = LocationKind::kName;
      KILN_ASSIGN_OR_RETURN(location.text, ReadStringAttribute(input));
      KILN_RETURN_IF_ERROR(ReadChildren(input, 1, location));
      break;
    }
    default:
      break;
  }
  attributes_[index].location = static_cast<int32_t>(locations_.size());
  locations_.push_back(std::move(location));
  return OkStatus();
}

// They may be read later.
Status Tables::ReadChildren(Input& input, uint64_t count, Location& location) {
  for (uint64_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(uint64_t child, input.Index(attributes_.size(), "a location"));
    location.children.push_back(static_cast<uint32_t>(child));
  }
  return OkStatus();
}

Status Tables::CheckLocations() {
  for (size_t i = 0; i < attributes_.size(); ++i) {
    if (attributes_[i].location < 0) continue;
    for (uint32_t child : locations_[static_cast<size_t>(attributes_[i].location)].children) {
      if (attributes_[child].location >= 0) continue;
      return FailAtByte(container_.attributes[i].input.offset(), Cat("attribute ", child),
                        "a location in a location");
    }
  }
  return OkStatus();
}

Result<const mlir::Source*> Tables::ReadLocation(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.Index(attributes_.size(), "a location"));
  const int32_t place = attributes_[index].location;
  if (place < 0) return FailAtByte(at, Cat("attribute ", index), "a location");
  Location& location = locations_[static_cast<size_t>(place)];
  if (!location.told) {
    location.told = true;
    Told told;
    Tell(location, 0, told);
    const size_t cost = told.name.size() + told.file.size();
    // Programs have many locations and few names. Beyond this limit locations are dropped.
    if (cost > 0 && cost <= source_budget_) {
      source_budget_ -= cost;
      location.source = module_.GetSource({.name = std::string(told.name),
                                           .file = std::string(told.file),
                                           .line = told.line,
                                           .column = told.column});
    }
  }
  return location.source;
}

// Fills in missing parts.
void Tables::Tell(const Location& location, int64_t depth, Told& told) const {
  if (depth > kMaxDepth || ++told.steps > kMaxSteps) return;
  auto tell_child = [&](size_t i) {
    const auto place = static_cast<size_t>(attributes_[location.children[i]].location);
    Tell(locations_[place], depth + 1, told);
  };
  switch (location.kind) {
    case LocationKind::kUnknown:
      return;
    case LocationKind::kFile:
      if (!told.file.empty()) return;
      told.file = location.text;
      told.line = location.line;
      told.column = location.column;
      return;
    case LocationKind::kName:
      if (told.name.empty()) told.name = location.text;
      tell_child(0);
      return;
    case LocationKind::kCall:
      tell_child(0);
      return;
    case LocationKind::kFused:
      for (size_t i = 0; i < location.children.size() && i < kMaxFused; ++i) {
        tell_child(i);
        if (!told.file.empty()) return;
      }
      return;
  }
}

}  // namespace kiln::stablehlo
