#include <algorithm>
#include <cstring>

#include "stablehlo/mlir/floats.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {

Result<const mlir::Attribute*> Reader::Make(Attribute attribute, size_t position) {
  Result<const Attribute*> made = module_->Make(std::move(attribute));
  if (!made.ok()) return made.status().WithContext(scanner_.Where(position));
  return made;
}

Result<const mlir::Attribute*> Reader::MakeNumber(const Number& number, const Type* type) {
  const std::optional<uint64_t> bits = BitsOf(number, *type);
  if (!bits) return scanner_.FailAt(number.position, Cat("a number that ", *type, " holds"));
  Attribute attribute{.kind = AttributeKind::kInteger};
  attribute.type = type;
  if (type->is(mlir::TypeKind::kFloat)) {
    attribute.kind = AttributeKind::kFloat;
    attribute.number = mlir::DecodeFloat(type->float_kind, *bits);
  } else {
    attribute.integer = static_cast<int64_t>(*bits);
  }
  return Make(std::move(attribute), number.position);
}

Result<const mlir::Attribute*> Reader::MakeInt(int64_t value, int64_t width) {
  Attribute attribute{.kind = AttributeKind::kInteger};
  attribute.integer = value;
  KILN_ASSIGN_OR_RETURN(attribute.type, GetInteger(width));
  return module_->Make(std::move(attribute));
}

Result<const mlir::Attribute*> Reader::MakeInts(const List<int64_t>& values) {
  Attribute attribute{.kind = AttributeKind::kDenseArray};
  KILN_ASSIGN_OR_RETURN(attribute.type, GetInteger(64));
  for (int64_t value : values) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    attribute.bytes.append(bytes, sizeof(value));
  }
  return module_->Make(std::move(attribute));
}

Result<const mlir::Attribute*> Reader::MakeText(AttributeKind kind, std::string text) {
  Attribute attribute{.kind = kind};
  attribute.text = std::move(text);
  return module_->Make(std::move(attribute));
}

Result<const mlir::Attribute*> Reader::MakeOpaque(size_t begin) {
  return MakeText(AttributeKind::kOpaque, std::string(scanner_.Text(begin, scanner_.end())));
}

Status Reader::Set(Operation* operation, std::string_view name, const Attribute* value,
                   size_t position) {
  if (Insert(operation->attributes, module_->Name(name), value)) return OkStatus();
  return InvalidArgument(scanner_.Where(position), ": found the attribute '", name,
                         "' once more; expected each once");
}

Status Reader::SetInts(Operation* operation, std::string_view name, const List<int64_t>& values,
                       size_t position) {
  KILN_ASSIGN_OR_RETURN(const Attribute* made, MakeInts(values));
  return Set(operation, name, made, position);
}

Result<std::vector<int64_t>> Reader::ReadInts() {
  List<int64_t> values;
  KILN_RETURN_IF_ERROR(scanner_.Expect("["));
  if (scanner_.Take("]")) return values;
  do {
    int64_t value = mlir::kDynamic;
    if (!scanner_.Take("?")) {
      KILN_ASSIGN_OR_RETURN(value, scanner_.Integer());
    }
    values.push_back(value);
  } while (scanner_.Take(","));
  KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
  return values;
}

Status Reader::ReadDictionary(AttributeList& list) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  if (scanner_.Take("}")) return OkStatus();
  struct Entry {
    mlir::NamedAttribute attribute;
    size_t position;
  };
  List<Entry> entries;
  // Present attributes of the list count, too.
  for (const mlir::NamedAttribute& attribute : list) entries.push_back({attribute, 0});
  do {
    const size_t at = scanner_.position();
    std::string name;
    if (scanner_.Looking("\"")) {
      KILN_ASSIGN_OR_RETURN(name, scanner_.String());
    } else {
      name = std::string(scanner_.TakeWord());
    }
    if (name.empty()) return scanner_.FailAt(at, "the name of an attribute");
    const Attribute* value = nullptr;
    if (scanner_.Take("=")) {
      KILN_ASSIGN_OR_RETURN(value, ReadAttribute());
    } else {
      KILN_ASSIGN_OR_RETURN(value, Make({.kind = AttributeKind::kUnit}, at));
    }
    entries.push_back({{module_->Name(name), value}, at});
  } while (scanner_.Take(","));
  std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return entry.attribute.name; });
  list.clear();
  for (const Entry& entry : entries) {
    if (!list.empty() && list.back().name == entry.attribute.name) {
      return scanner_.FailAt(entry.position, "each attribute once");
    }
    list.push_back(entry.attribute);
  }
  return scanner_.Expect("}");
}

Result<const mlir::Attribute*> Reader::ReadAttribute() {
  Nesting nesting(*this);
  KILN_RETURN_IF_ERROR(nesting.Check());
  const size_t at = scanner_.position();
  if (scanner_.LookingAtNumber()) return ReadNumberAttribute();
  switch (scanner_.Peek()) {
    case '"': {
      KILN_ASSIGN_OR_RETURN(std::string text, scanner_.String());
      // A string may have a type, which says nothing.
      if (scanner_.Take(":")) KILN_RETURN_IF_ERROR(ReadType().status());
      return MakeText(AttributeKind::kString, std::move(text));
    }
    case '@':
      return ReadSymbolAttribute();
    case '#':
      return ReadHashAttribute();
    case '{': {
      Attribute dictionary{.kind = AttributeKind::kDictionary};
      KILN_RETURN_IF_ERROR(ReadDictionary(dictionary.fields));
      return Make(std::move(dictionary), at);
    }
    case '[': {
      scanner_.Take("[");
      Attribute array{.kind = AttributeKind::kArray};
      if (!scanner_.Take("]")) {
        do {
          KILN_ASSIGN_OR_RETURN(const Attribute* item, ReadAttribute());
          array.items.push_back(item);
        } while (scanner_.Take(","));
        KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
      }
      return Make(std::move(array), at);
    }
    default:
      break;
  }
  if (LookingAtType()) {
    Attribute attribute{.kind = AttributeKind::kType};
    KILN_ASSIGN_OR_RETURN(attribute.type, ReadType());
    return Make(std::move(attribute), at);
  }
  return ReadWordAttribute(scanner_.TakeWord());
}

// 1, 1 : i32, 1.5, 0x7FC0 : bf16
Result<const mlir::Attribute*> Reader::ReadNumberAttribute() {
  KILN_ASSIGN_OR_RETURN(Number number, scanner_.TakeNumber());
  const Type* type = nullptr;
  if (scanner_.Take(":")) {
    const size_t at = scanner_.position();
    KILN_ASSIGN_OR_RETURN(type, ReadType());
    const bool scalar = type->is(mlir::TypeKind::kInteger) || type->is(mlir::TypeKind::kIndex) ||
                        type->is(mlir::TypeKind::kFloat);
    if (!scalar) return scanner_.FailAt(at, "the type of a number");
  } else if (number.is_float) {
    KILN_ASSIGN_OR_RETURN(type, GetFloat(mlir::FloatKind::kF64));
  } else {
    KILN_ASSIGN_OR_RETURN(type, GetInteger(64));
  }
  return MakeNumber(number, type);
}

Result<const mlir::Attribute*> Reader::ReadWordAttribute(std::string_view word) {
  const size_t at = scanner_.end() - word.size();
  if (word == "true" || word == "false") {
    Attribute attribute{.kind = AttributeKind::kBool};
    attribute.boolean = word == "true";
    return Make(std::move(attribute), at);
  }
  if (word == "unit") return Make({.kind = AttributeKind::kUnit}, at);
  if (word == "dense") return ReadElements();
  if (word == "dense_resource") return ReadResource();
  if (word == "array") return ReadDenseArray();
  if (word == "loc") {
    KILN_ASSIGN_OR_RETURN(mlir::Source source, ReadLocation());
    return MakeText(AttributeKind::kOpaque, source.ToString());
  }
  if (word == "affine_map" || word == "affine_set" || word == "strided") {
    if (!scanner_.Looking("<")) return scanner_.Fail("'<'");
    KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
    return MakeOpaque(at);
  }
  if (word == "sparse") {
    return Unimplemented(scanner_.Where(at), ": sparse elements are not implemented");
  }
  return scanner_.FailAt(at, "an attribute");
}

// <i64: 1, 2>
Result<const mlir::Attribute*> Reader::ReadDenseArray() {
  const size_t at = scanner_.position();
  KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
  Attribute array{.kind = AttributeKind::kDenseArray};
  KILN_ASSIGN_OR_RETURN(array.type, ReadType());
  if (!array.type->is(mlir::TypeKind::kInteger) && !array.type->is(mlir::TypeKind::kFloat)) {
    return scanner_.FailAt(at, "a type of integers or floats after '<'");
  }
  if (scanner_.Take(":")) {
    do {
      KILN_RETURN_IF_ERROR(ReadElement(*array.type, array.bytes));
    } while (scanner_.Take(","));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  return Make(std::move(array), at);
}

Result<const mlir::Attribute*> Reader::ReadSymbolAttribute() {
  KILN_ASSIGN_OR_RETURN(std::string text, scanner_.Symbol());
  while (scanner_.Take("::")) {
    KILN_ASSIGN_OR_RETURN(std::string part, scanner_.Symbol());
    text += "::" + part;
  }
  return MakeText(AttributeKind::kSymbol, std::move(text));
}

}  // namespace kiln::stablehlo
