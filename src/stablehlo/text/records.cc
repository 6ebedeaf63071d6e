// Attributes that start with '#': aliases, and the dialects' attributes.
#include <algorithm>

#include "stablehlo/mlir/records.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {
namespace {

// The kind of a field; "" if the record does not have it.
std::string_view KindOf(std::string_view record, std::string_view field) {
  for (std::string_view word : Split(mlir::RecordFields(record), ' ')) {
    if (word.size() > field.size() && word.starts_with(field) && word[field.size()] == ':') {
      return word.substr(field.size() + 1);
    }
  }
  return {};
}

// The dialect mhlo has the attributes of stablehlo.
std::string WithoutMhlo(std::string_view name) {
  constexpr std::string_view kOld = "mhlo";
  const bool old = name == kOld || name.starts_with("mhlo.");
  return old ? Cat("stablehlo", name.substr(kOld.size())) : std::string(name);
}

}  // namespace

Result<const mlir::Attribute*> Reader::ReadHashAttribute() {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view written, scanner_.Name('#', "an attribute"));
  const bool dialect = written.find('.') == std::string_view::npos;
  if (scanner_.Raw() != '<') {
    if (!dialect) return MakeOpaque(at);
    KILN_ASSIGN_OR_RETURN(const Definition* definition, Define('#', written, at));
    return definition->attribute;
  }
  const size_t body = scanner_.end();
  std::string name = WithoutMhlo(written);
  if (name == "stablehlo.type_extensions") name = "stablehlo.bounds";
  const bool known = name.starts_with("stablehlo") || name.starts_with("chlo");
  if (known) {
    scanner_.Take("<");
    const std::string_view first = scanner_.TakeWord();
    if (dialect && first == "bounds" && scanner_.Looking("<")) {
      KILN_ASSIGN_OR_RETURN(const Attribute* bounds, ReadBounds());
      KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
      return bounds;
    }
    // #stablehlo<precision DEFAULT>, #stablehlo.precision<DEFAULT>
    const std::string_view value = dialect ? scanner_.PeekWord() : first;
    if (!first.empty() && !value.empty() && (dialect || scanner_.Looking(">"))) {
      if (!dialect) scanner_.Rewind(body + 1);
      KILN_ASSIGN_OR_RETURN(const Attribute* made,
                            ReadEnum(dialect ? Cat(name, ".", first) : name));
      KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
      return made;
    }
    scanner_.Rewind(body);
  }
  if (name == "stablehlo.bounds" && written.ends_with("bounds")) return ReadBounds();
  if (name == "stablehlo.conv") {
    scanner_.Take("<");
    const bool raw = scanner_.PeekWord() == "raw";
    if (!raw) {
      KILN_ASSIGN_OR_RETURN(const Attribute* conv, ReadConvDimensions());
      KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
      return conv;
    }
    scanner_.Rewind(body);
  }
  if (!mlir::RecordFields(name).empty()) return ReadRecord(name);
  KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
  return MakeOpaque(at);
}

Result<const mlir::Attribute*> Reader::ReadEnum(std::string_view name) {
  const size_t at = scanner_.position();
  const std::string_view value = scanner_.TakeWord();
  if (value.empty()) return scanner_.Fail("the value of an enumeration");
  Attribute attribute{.kind = AttributeKind::kEnum, .text = std::string(value)};
  attribute.name = module_->Name(name);
  return Make(std::move(attribute), at);
}

// <key = value, ...>, in any order.
Result<const mlir::Attribute*> Reader::ReadRecord(std::string_view name) {
  const size_t begin = scanner_.position();
  Attribute record{.kind = AttributeKind::kRecord, .name = module_->Name(name)};
  KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
  scanner_.TakeKeyword("raw");
  while (!scanner_.Take(">")) {
    const size_t at = scanner_.position();
    const std::string_view key = scanner_.TakeWord();
    const std::string_view kind = KindOf(name, key);
    if (key.empty() || kind.empty()) {
      return scanner_.FailAt(at, Cat("a field of #", name, ", or '>'"));
    }
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    KILN_ASSIGN_OR_RETURN(const Attribute* value, ReadRecordField(kind));
    if (!Insert(record.fields, module_->Name(key), value)) {
      return scanner_.FailAt(at, "each field once");
    }
    if (!scanner_.Take(",") && !scanner_.Looking(">")) return scanner_.Fail("',' or '>'");
  }
  return FinishRecord(std::move(record), begin);
}

Result<const mlir::Attribute*> Reader::ReadRecordField(std::string_view kind) {
  const size_t at = scanner_.position();
  if (kind == "ints") {
    KILN_ASSIGN_OR_RETURN(List<int64_t> values, ReadInts());
    return MakeInts(values);
  }
  if (kind == "int") {
    KILN_ASSIGN_OR_RETURN(int64_t value, scanner_.Integer());
    return MakeInt(value, 64);
  }
  if (kind == "type") {
    Attribute attribute{.kind = AttributeKind::kType};
    KILN_ASSIGN_OR_RETURN(attribute.type, ReadType());
    return Make(std::move(attribute), at);
  }
  if (kind == "mode" && !scanner_.Looking("#")) {
    const bool brackets = scanner_.Take("<");
    KILN_ASSIGN_OR_RETURN(const Attribute* mode, ReadEnum("stablehlo.result_accuracy_mode"));
    if (brackets) KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
    return mode;
  }
  KILN_ASSIGN_OR_RETURN(const Attribute* value, ReadAttribute());
  const bool fits = kind == "f64"    ? value->is(AttributeKind::kFloat)
                    : kind == "bool" ? value->is(AttributeKind::kBool)
                                     : value->is(AttributeKind::kEnum);
  if (!fits) {
    return scanner_.FailAt(at, kind == "f64"    ? "a float"
                               : kind == "bool" ? "true or false"
                                                : "the value of an enumeration");
  }
  return value;
}

Result<const mlir::Attribute*> Reader::FinishRecord(Attribute record, size_t position) {
  for (std::string_view word : Split(mlir::RecordFields(record.name), ' ')) {
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, colon), kind = word.substr(colon + 1);
    if (Find(record.fields, name)) continue;
    const Attribute* value = nullptr;
    if (kind == "ints") {
      KILN_ASSIGN_OR_RETURN(value, MakeInts({}));
    } else if (kind == "int") {
      KILN_ASSIGN_OR_RETURN(value, MakeInt(0, 64));
    } else if (kind == "bool") {
      KILN_ASSIGN_OR_RETURN(value, Make({.kind = AttributeKind::kBool}, position));
    } else if (kind == "f64") {
      Attribute zero{.kind = AttributeKind::kFloat};
      KILN_ASSIGN_OR_RETURN(zero.type, GetFloat(mlir::FloatKind::kF64));
      KILN_ASSIGN_OR_RETURN(value, Make(std::move(zero), position));
    } else {
      return InvalidArgument(scanner_.Where(position), ": found #", record.name, " without ", name,
                             "; expected all its fields");
    }
    Insert(record.fields, module_->Name(name), value);
  }
  return Make(std::move(record), position);
}

// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]: the position of each dimension.
Result<const mlir::Attribute*> Reader::ReadConvDimensions() {
  const size_t begin = scanner_.position();
  Attribute record{.kind = AttributeKind::kRecord, .name = module_->Name("stablehlo.conv")};
  struct Side {
    std::string_view name, separator, letters, first, second;
  };
  constexpr Side kSides[] = {{"input", "", "bf", "batch", "feature"},
                             {"kernel", "x", "oi", "output_feature", "input_feature"},
                             {"output", "->", "bf", "batch", "feature"}};
  for (const Side& side : kSides) {
    const size_t at = scanner_.position();
    if (!side.separator.empty()) KILN_RETURN_IF_ERROR(scanner_.Expect(side.separator));
    KILN_RETURN_IF_ERROR(scanner_.Expect("["));
    int64_t letters[] = {-1, -1};
    List<std::pair<int64_t, int64_t>> spatial;  // which one, and where
    int64_t position = 0;
    do {
      const std::string_view word = scanner_.TakeWord();
      const size_t letter = word.size() == 1 ? side.letters.find(word[0]) : std::string_view::npos;
      if (letter != std::string_view::npos) {
        if (letters[letter] >= 0) return scanner_.FailAt(at, "each dimension once");
        letters[letter] = position;
      } else if (word.empty()) {
        KILN_ASSIGN_OR_RETURN(int64_t which, scanner_.Integer());
        spatial.emplace_back(which, position);
      } else {
        return scanner_.FailAt(scanner_.end() - word.size(),
                               Cat("'", side.letters[0], "', '", side.letters[1], "' or a number"));
      }
      ++position;
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
    std::ranges::sort(spatial);
    List<int64_t> places;
    for (size_t i = 0; i < spatial.size(); ++i) {
      if (spatial[i].first != static_cast<int64_t>(i)) {
        return scanner_.FailAt(at, "spatial dimensions from 0 on, each once");
      }
      places.push_back(spatial[i].second);
    }
    if (letters[0] < 0 || letters[1] < 0) {
      return scanner_.FailAt(at, Cat("'", side.letters[0], "' and '", side.letters[1], "'"));
    }
    KILN_ASSIGN_OR_RETURN(const Attribute* value, MakeInts(places));
    Insert(record.fields, module_->Name(Cat(side.name, "_spatial_dimensions")), value);
    for (size_t i = 0; i < 2; ++i) {
      KILN_ASSIGN_OR_RETURN(value, MakeInt(letters[i], 64));
      const std::string_view what = i == 0 ? side.first : side.second;
      Insert(record.fields, module_->Name(Cat(side.name, "_", what, "_dimension")), value);
    }
  }
  return Make(std::move(record), begin);
}

Result<const mlir::Attribute*> Reader::ReadBounds() {
  const size_t at = scanner_.position();
  KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
  List<int64_t> bounds;
  if (!scanner_.Take(">")) {
    do {
      int64_t bound = mlir::kDynamic;
      if (!scanner_.Take("?")) {
        KILN_ASSIGN_OR_RETURN(bound, scanner_.Integer());
      }
      bounds.push_back(bound);
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  }
  Attribute record{.kind = AttributeKind::kRecord, .name = module_->Name("stablehlo.bounds")};
  KILN_ASSIGN_OR_RETURN(const Attribute* list, MakeInts(bounds));
  Insert(record.fields, module_->Name("bounds"), list);
  return Make(std::move(record), at);
}

}  // namespace kiln::stablehlo
