// Conversion of vhlo's attributes to StableHLO's.
#include <algorithm>
#include <cstring>
#include <optional>

#include "stablehlo/bytecode/operations.h"
#include "tensor/call_signature.h"
#include "tensor/shape.h"

namespace kiln::stablehlo {
namespace {

using mlir::Attribute;
using mlir::AttributeKind;
using mlir::AttributeList;

// Records composed of several attributes.
struct RecordRow {
  std::string_view kind;
  std::string_view attribute;
  std::string_view record;
};
constexpr RecordRow kRecords[] = {
    {"conv", "dimension_numbers", "stablehlo.conv"},
    {"gather", "dimension_numbers", "stablehlo.gather"},
    {"scatter", "scatter_dimension_numbers", "stablehlo.scatter"},
    {"dot", "dot_dimension_numbers", "stablehlo.dot"},
    {"algorithm", "algorithm", "stablehlo.dot_algorithm"},
    {"channel", "channel_handle", "stablehlo.channel_handle"},
};
constexpr size_t kNumRecords = std::size(kRecords);

// The record of a kind, or kNumRecords.
size_t RecordOf(std::string_view kind) {
  size_t i = 0;
  while (i < kNumRecords && kRecords[i].kind != kind) ++i;
  return i;
}

std::string_view FieldName(std::string_view name) {
  if (name == "channel_id") return "handle";
  if (name == "channel_type") return "type";
  return name;
}

bool IsEmpty(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kString:
      return attribute.text.empty();
    case AttributeKind::kDictionary:
      return attribute.fields.empty();
    case AttributeKind::kElements:
      return attribute.elements().empty();
    case AttributeKind::kArray:
      // Dictionaries of arguments are dropped if all are empty.
      return std::ranges::all_of(attribute.items, [](const Attribute* item) {
        return item->is(AttributeKind::kDictionary) && item->fields.empty();
      });
    default:
      return false;
  }
}

// Whether all elements are this integer or boolean.
bool AllAre(const Attribute& elements, int64_t value) {
  const mlir::Type& element = *elements.type->element;
  if (elements.elements().empty()) return true;
  if (!elements.splat) return false;
  if (element.is_bool()) return elements.bytes[0] == value;
  int64_t number = 0;
  if (!element.is_integer(64)) return false;
  std::memcpy(&number, elements.bytes.data(), sizeof(number));
  return number == value;
}

bool IsNumber(const Attribute& attribute, int64_t value) {
  if (attribute.is(AttributeKind::kElements)) return AllAre(attribute, value);
  return attribute.is(AttributeKind::kInteger) && attribute.integer == value;
}

bool IsNamed(const Attribute& attribute, std::string_view name) {
  switch (attribute.kind) {
    case AttributeKind::kString:
    case AttributeKind::kEnum:
      return attribute.text == name;
    case AttributeKind::kArray:
      return std::ranges::all_of(attribute.items, [&](const Attribute* item) {
        return item->is(AttributeKind::kEnum) && item->text == name;
      });
    case AttributeKind::kRecord: {
      // The result accuracy: this mode, without further fields.
      bool is = true;
      for (const mlir::NamedAttribute& field : attribute.fields) {
        const Attribute& value = *field.value;
        is &= value.is(AttributeKind::kEnum) ? value.text == name
                                             : value.number == 0 && value.integer == 0;
      }
      return is;
    }
    default:
      return false;
  }
}

bool IsDefault(const Attribute& attribute, std::string_view defaults) {
  if (defaults.empty()) return false;
  for (std::string_view word : Split(defaults, '|')) {
    if (word == "empty") {
      if (IsEmpty(attribute)) return true;
    } else if (word == "none") {
      if (attribute.is(AttributeKind::kType) && attribute.type->is(mlir::TypeKind::kNone)) {
        return true;
      }
    } else if (word == "false") {
      if (attribute.is(AttributeKind::kBool) && !attribute.boolean) return true;
      if (attribute.is(AttributeKind::kElements) && AllAre(attribute, 0)) return true;
    } else if (std::optional<int64_t> number = ParseInt(word)) {
      if (IsNumber(attribute, *number)) return true;
    } else if (IsNamed(attribute, word)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<AttributeList> Upgrade::Convert(const VhloOperation& operation,
                                       const std::vector<const Attribute*>& values, size_t offset) {
  AttributeList list;
  Attribute records[kNumRecords];
  bool told[kNumRecords] = {};
  size_t next = 0;
  for (const VhloAttribute& attribute : operation.attributes) {
    const size_t record = RecordOf(attribute.kind);
    const Attribute* value = nullptr;
    if (attribute.added) {
      if (attribute.kind == "channel") {
        KILN_ASSIGN_OR_RETURN(value, tables_.MakeInt(0, 64, offset));
      } else {
        KILN_ASSIGN_OR_RETURN(value, tables_.MakeInts({}, offset));
      }
    } else {
      const Attribute& given = *values[next++];
      if (attribute.dropped || IsDefault(given, attribute.defaults)) continue;
      KILN_ASSIGN_OR_RETURN(value, ConvertKind(attribute, given, offset));
      if (!value) continue;
      if (record < kNumRecords) told[record] = true;
    }
    AttributeList& fields = record < kNumRecords ? records[record].fields : list;
    const std::string_view name = record < kNumRecords ? FieldName(attribute.name) : attribute.name;
    mlir::Insert(fields, tables_.module().Name(name), value);
  }
  // A custom call has layouts of both sides or of neither.
  constexpr std::string_view kLayouts[] = {"operand_layouts", "result_layouts"};
  for (int side = 0; side < 2; ++side) {
    if (!mlir::Find(list, kLayouts[side]) || mlir::Find(list, kLayouts[1 - side])) continue;
    KILN_ASSIGN_OR_RETURN(const Attribute* none,
                          tables_.Make({.kind = AttributeKind::kArray}, offset));
    mlir::Insert(list, tables_.module().Name(kLayouts[1 - side]), none);
  }
  for (size_t i = 0; i < kNumRecords; ++i) {
    if (!told[i]) continue;
    records[i].kind = AttributeKind::kRecord;
    records[i].name = tables_.module().Name(kRecords[i].record);
    KILN_ASSIGN_OR_RETURN(const Attribute* made, tables_.Make(std::move(records[i]), offset));
    mlir::Insert(list, tables_.module().Name(kRecords[i].attribute), made);
  }
  return list;
}

// Null if empty.
Result<const Attribute*> Upgrade::ConvertKind(const VhloAttribute& attribute,
                                              const Attribute& value, size_t offset) {
  const std::string_view kind = attribute.kind;
  auto fail = [&](std::string_view expected) {
    return FailAtByte(offset, "an attribute of another kind",
                      Cat(expected, " as '", attribute.name, "'"));
  };
  if (kind.empty()) return &value;
  if (RecordOf(kind) < kNumRecords) {
    const bool fits = value.is(AttributeKind::kElements) || value.is(AttributeKind::kInteger) ||
                      value.is(AttributeKind::kType) || value.is(AttributeKind::kBool);
    if (!fits) return fail("integers, a boolean or a type");
    return ConvertField(value, offset);
  }
  if (kind == "ints" || kind == "bools") {
    if (!value.is(AttributeKind::kElements)) return fail("elements");
    return ConvertList(value, offset);
  }
  if (kind == "symbol") {
    if (!value.is(AttributeKind::kString)) return fail("a string");
    return ConvertSymbol(value, offset);
  }
  if (kind == "symbols") {
    if (!value.is(AttributeKind::kArray)) return fail("an array of strings");
    Attribute array{.kind = AttributeKind::kArray};
    for (const Attribute* item : value.items) {
      if (!item->is(AttributeKind::kString)) return fail("an array of strings");
      KILN_ASSIGN_OR_RETURN(const Attribute* symbol, ConvertSymbol(*item, offset));
      array.items.push_back(symbol);
    }
    return tables_.Make(std::move(array), offset);
  }
  if (kind == "unit") {
    if (!value.is(AttributeKind::kBool)) return fail("a boolean");
    if (!value.boolean) return static_cast<const Attribute*>(nullptr);
    return tables_.Make({.kind = AttributeKind::kUnit}, offset);
  }
  // A number.
  const std::optional<int64_t> version = ApiVersionByName(value.text);
  if (!value.is(AttributeKind::kEnum) || !version) return fail("the version of an interface");
  return tables_.MakeInt(*version, 32, offset);
}

Result<const Attribute*> Upgrade::ConvertField(const Attribute& value, size_t offset) {
  if (value.is(AttributeKind::kElements)) return ConvertList(value, offset);
  if (value.is(AttributeKind::kInteger) && !value.type->is_integer(64)) {
    return tables_.MakeInt(value.integer, 64, offset);
  }
  return &value;
}

// Elements as a list. A few bytes may encode any number of equal elements; valid lists have one per
// dimension.
Result<const Attribute*> Upgrade::ConvertList(const Attribute& value, size_t offset) {
  if (auto known = lists_.find(&value); known != lists_.end()) return known->second;
  const mlir::Type& element = *value.type->element;
  const int64_t count = value.type->num_elements();
  if (!element.is_bool() && !element.is_integer(64)) {
    return FailAtByte(offset, value.type->ToString(), "elements of i64 or i1");
  }
  if (value.splat && count > kMaxRank) {
    return FailAtByte(offset, Cat(count, " elements"), Cat("at most ", kMaxRank, " elements"));
  }
  Attribute list{.kind = AttributeKind::kDenseArray};
  list.type = &element;
  list.bytes = value.elements();
  if (value.splat) {
    list.bytes.clear();
    for (int64_t i = 0; i < count; ++i) list.bytes += value.bytes;
  } else {
    KILN_RETURN_IF_ERROR(tables_.Spend(value.elements().size(), offset));
  }
  KILN_ASSIGN_OR_RETURN(const Attribute* made, tables_.Make(std::move(list), offset));
  lists_.emplace(&value, made);
  return made;
}

Result<const Attribute*> Upgrade::ConvertSymbol(const Attribute& value, size_t offset) {
  if (auto known = lists_.find(&value); known != lists_.end()) return known->second;
  KILN_ASSIGN_OR_RETURN(const Attribute* made,
                        tables_.MakeText(AttributeKind::kSymbol, value.text, offset));
  lists_.emplace(&value, made);
  return made;
}

}  // namespace kiln::stablehlo
