#include "stablehlo/mlir/attribute.h"

#include <algorithm>
#include <cstring>

namespace kiln::mlir {
namespace {

// An integer of `size` bytes in little endian, extended to 64 bits.
int64_t Load(const char* from, int64_t size, bool is_signed) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<size_t>(size));
  const int shift = static_cast<int>(64 - 8 * size);
  if (is_signed) return static_cast<int64_t>(bits << shift) >> shift;
  return static_cast<int64_t>(bits);
}

std::optional<std::vector<int64_t>> IntsOfBytes(const Attribute& attribute) {
  const bool dense = attribute.is(AttributeKind::kElements);
  const Type& element = dense ? *attribute.type->element : *attribute.type;
  if (!element.is(TypeKind::kInteger) && !element.is(TypeKind::kIndex)) return std::nullopt;
  const int64_t size = ElementBytes(element);
  const bool is_signed = element.signedness != Signedness::kUnsigned && !element.is_bool();
  std::vector<int64_t> values;
  const std::string_view bytes = attribute.elements();
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(size)) {
    values.push_back(Load(bytes.data() + at, size, is_signed));
  }
  if (dense && attribute.splat) {
    // A few bytes may encode too many elements for a list.
    constexpr int64_t kMost = 1 << 20;
    if (attribute.type->num_elements() > kMost) return std::nullopt;
    values.resize(static_cast<size_t>(attribute.type->num_elements()), values[0]);
  }
  return values;
}

auto LowerBound(auto& list, std::string_view name) {
  return std::lower_bound(list.begin(), list.end(), name,
                          [](const NamedAttribute& a, std::string_view b) { return a.name < b; });
}

}  // namespace

const Attribute* Find(const AttributeList& list, std::string_view name) {
  auto found = LowerBound(list, name);
  return found != list.end() && found->name == name ? found->value : nullptr;
}

bool Insert(AttributeList& list, std::string_view name, const Attribute* value) {
  auto place = LowerBound(list, name);
  if (place != list.end() && place->name == name) return false;
  list.insert(place, {name, value});
  return true;
}

std::optional<std::vector<int64_t>> IntsOf(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kDenseArray:
    case AttributeKind::kElements:
      return IntsOfBytes(attribute);
    case AttributeKind::kArray: {
      std::vector<int64_t> values;
      for (const Attribute* item : attribute.items) {
        if (!item->is(AttributeKind::kInteger) && !item->is(AttributeKind::kBool)) {
          return std::nullopt;
        }
        values.push_back(*IntOf(*item));
      }
      return values;
    }
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> IntOf(const Attribute& attribute) {
  if (attribute.is(AttributeKind::kInteger)) return attribute.integer;
  if (attribute.is(AttributeKind::kBool)) return attribute.boolean ? 1 : 0;
  if (attribute.is(AttributeKind::kElements) && attribute.type->num_elements() == 1) {
    std::optional<std::vector<int64_t>> values = IntsOf(attribute);
    if (values) return values->front();
  }
  return std::nullopt;
}

}  // namespace kiln::mlir
