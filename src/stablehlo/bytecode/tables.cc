#include "stablehlo/bytecode/tables.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stablehlo/mlir/floats.h"

namespace kiln::stablehlo {
namespace {

// Attributes and types inside each other.
constexpr int64_t kMaxNesting = 120;

// The budget of copies beyond the size of the input.
constexpr size_t kCopies = 16;
constexpr size_t kFreeCopies = size_t{1} << 20;

}  // namespace

Tables::Tables(const Container& container, mlir::Module& module, size_t size)
    : container_(container),
      module_(module),
      budget_(kCopies * size + kFreeCopies),
      source_budget_(kCopies * size + kFreeCopies),
      attributes_(container.attributes.size()),
      types_(container.types.size()) {}

Status Tables::ReadAll() {
  for (uint64_t i = 0; i < types_.size(); ++i) {
    KILN_RETURN_IF_ERROR(TypeAt(i, container_.types[i].input.offset()).status());
  }
  for (uint64_t i = 0; i < attributes_.size(); ++i) {
    if (attributes_[i].state == State::kRead) continue;
    KILN_RETURN_IF_ERROR(ReadAttributeEntry(i).status());
  }
  return CheckLocations();
}

Status Tables::Spend(size_t bytes, size_t offset) {
  if (bytes > budget_) {
    return ResourceExhausted("byte ", offset, ": strings and blobs are used again so often that ",
                             "they take more memory than is given for bytecode of this size");
  }
  budget_ -= bytes;
  return OkStatus();
}

Result<const mlir::Type*> Tables::ReadType(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.VarInt("the index of a type"));
  return TypeAt(index, at);
}

Result<const mlir::Attribute*> Tables::ReadAttribute(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.VarInt("the index of an attribute"));
  return AttributeAt(index, at);
}

Result<const mlir::Attribute*> Tables::ReadOptionalAttribute(Input& input) {
  const size_t at = input.offset();
  bool present = false;
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.Flagged(&present, "the index of an attribute"));
  if (!present) return static_cast<const Attribute*>(nullptr);
  return AttributeAt(index, at);
}

Result<const mlir::Type*> Tables::TypeAt(uint64_t index, size_t offset) {
  if (index >= types_.size()) {
    return FailAtByte(offset, Cat("type ", index), Cat("one of the ", types_.size(), " types"));
  }
  if (types_[index].state == State::kRead) return types_[index].type;
  return ReadTypeEntry(index);
}

Result<const mlir::Attribute*> Tables::AttributeAt(uint64_t index, size_t offset) {
  if (index >= attributes_.size()) {
    return FailAtByte(offset, Cat("attribute ", index),
                      Cat("one of the ", attributes_.size(), " attributes"));
  }
  Slot& slot = attributes_[index];
  if (slot.state != State::kRead) KILN_RETURN_IF_ERROR(ReadAttributeEntry(index).status());
  if (slot.location >= 0) return FailAtByte(offset, "a location", "an attribute that is none");
  return slot.attribute;
}

Status Tables::Enter(State& state, size_t offset) {
  if (state == State::kReading) {
    return FailAtByte(offset, "an attribute or type that contains itself", "one that does not");
  }
  if (depth_ >= kMaxNesting) {
    return ResourceExhausted("byte ", offset, ": attributes and types are inside each other ",
                             "more than ", kMaxNesting, " deep");
  }
  state = State::kReading;
  return OkStatus();
}

Result<const mlir::Attribute*> Tables::ReadAttributeEntry(uint64_t index) {
  const Container::Entry& entry = container_.attributes[index];
  Slot& slot = attributes_[index];
  Input input = entry.input;
  const size_t at = input.offset();
  KILN_RETURN_IF_ERROR(Enter(slot.state, at));
  ++depth_;
  Result<const Attribute*> read = static_cast<const Attribute*>(nullptr);
  if (entry.is_text) {
    Result<std::string_view> text = input.Text("an attribute in MLIR's text");
    if (!text.ok()) return text.status();
    read = MakeText(AttributeKind::kOpaque, *text, at);
  } else if (entry.dialect == "vhlo") {
    read = ReadVhloAttribute(input);
  } else if (entry.dialect == "builtin") {
    read = ReadBuiltinAttribute(input, index);
  } else if (entry.dialect == "sdy") {
    // Partitioning among devices does not affect values.
    KILN_RETURN_IF_ERROR(input.Bytes(input.remaining(), "an attribute").status());
    read = MakeText(AttributeKind::kOpaque, "#sdy", at);
  } else {
    return Unimplemented("byte ", at, ": an attribute of the dialect '", entry.dialect,
                         "' in bytecode is not implemented; portable bytecode has those of vhlo");
  }
  if (!read.ok()) return read;
  KILN_RETURN_IF_ERROR(input.ExpectEnd("an attribute"));
  --depth_;
  slot.attribute = *read;
  slot.state = State::kRead;
  return read;
}

Result<const mlir::Type*> Tables::ReadTypeEntry(uint64_t index) {
  const Container::Entry& entry = container_.types[index];
  TypeSlot& slot = types_[index];
  Input input = entry.input;
  const size_t at = input.offset();
  KILN_RETURN_IF_ERROR(Enter(slot.state, at));
  ++depth_;
  Result<const Type*> read = static_cast<const Type*>(nullptr);
  if (entry.is_text) {
    Result<std::string_view> text = input.Text("a type in MLIR's text");
    if (!text.ok()) return text.status();
    read = ReadTextType(*text, at);
  } else if (entry.dialect == "vhlo") {
    read = ReadVhloType(input);
  } else if (entry.dialect == "builtin") {
    read = ReadBuiltinType(input);
  } else {
    return Unimplemented("byte ", at, ": a type of the dialect '", entry.dialect,
                         "' in bytecode is not implemented; portable bytecode has those of vhlo");
  }
  if (!read.ok()) return read;
  KILN_RETURN_IF_ERROR(input.ExpectEnd("a type"));
  --depth_;
  slot.type = *read;
  slot.state = State::kRead;
  return read;
}

Result<std::vector<int64_t>> Tables::ReadInts(Input& input) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of integers"));
  std::vector<int64_t> values(count);
  for (int64_t& value : values) {
    KILN_ASSIGN_OR_RETURN(value, input.SignedVarInt("an integer"));
  }
  return values;
}

Result<std::vector<const mlir::Type*>> Tables::ReadTypes(Input& input) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of types"));
  std::vector<const Type*> types(count);
  for (const Type*& type : types) {
    KILN_ASSIGN_OR_RETURN(type, ReadType(input));
  }
  return types;
}

Result<std::string_view> Tables::ReadString(Input& input) {
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.Index(container_.strings.size(), "a string"));
  return container_.strings[index];
}

Result<std::string_view> Tables::ReadStringAttribute(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Attribute* attribute, ReadAttribute(input));
  if (!attribute->is(AttributeKind::kString)) {
    return FailAtByte(at, "another attribute", "a string");
  }
  return std::string_view(attribute->text);
}

// One byte, or a number with a sign of up to 64 bits.
Result<uint64_t> Tables::ReadInteger(Input& input, int64_t width) {
  constexpr std::string_view kWhat = "a number";
  if (width <= 8) {
    KILN_ASSIGN_OR_RETURN(uint8_t byte, input.Byte(kWhat));
    return uint64_t{byte};
  }
  KILN_ASSIGN_OR_RETURN(int64_t value, input.SignedVarInt(kWhat));
  return static_cast<uint64_t>(value);
}

Result<double> Tables::ReadDouble(Input& input) {
  KILN_ASSIGN_OR_RETURN(uint64_t bits, ReadInteger(input, 64));
  return std::bit_cast<double>(bits);
}

Result<const mlir::Attribute*> Tables::ReadNumber(Input& input) {
  const size_t at = input.offset();
  Attribute number{.kind = AttributeKind::kInteger};
  KILN_ASSIGN_OR_RETURN(number.type, ReadType(input));
  const Type& type = *number.type;
  if (type.is(mlir::TypeKind::kFloat)) {
    number.kind = AttributeKind::kFloat;
    const mlir::FloatFormat& format = mlir::FormatOf(type.float_kind);
    // tf32 is the upper bits of an f32 in the tree, and alone here.
    const bool is_tf32 = type.is_float(mlir::FloatKind::kTF32);
    const int width = 1 + format.exponent + format.mantissa;
    KILN_ASSIGN_OR_RETURN(uint64_t bits, ReadInteger(input, is_tf32 ? width : format.bits));
    if (format.bits < 64) bits &= (uint64_t{1} << (is_tf32 ? width : format.bits)) - 1;
    number.number = mlir::DecodeFloat(type.float_kind, is_tf32 ? bits << (32 - width) : bits);
    return Make(std::move(number), at);
  }
  const bool is_index = type.is(mlir::TypeKind::kIndex);
  if (!is_index && !type.is(mlir::TypeKind::kInteger)) {
    return FailAtByte(at, type.ToString(), "the type of a number");
  }
  const int64_t width = is_index ? 64 : type.width;
  KILN_ASSIGN_OR_RETURN(uint64_t bits, ReadInteger(input, width));
  const int shift = static_cast<int>(64 - width);
  number.integer = type.signedness == mlir::Signedness::kUnsigned
                       ? static_cast<int64_t>(bits << shift >> shift)
                       : static_cast<int64_t>(bits << shift) >> shift;
  return Make(std::move(number), at);
}

Result<const mlir::Attribute*> Tables::ReadArray(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of attributes"));
  Attribute array{.kind = AttributeKind::kArray};
  array.items.resize(count);
  for (const Attribute*& item : array.items) {
    KILN_ASSIGN_OR_RETURN(item, ReadAttribute(input));
  }
  return Make(std::move(array), at);
}

Result<const mlir::Attribute*> Tables::ReadTypeAttribute(Input& input) {
  const size_t at = input.offset();
  Attribute attribute{.kind = AttributeKind::kType};
  KILN_ASSIGN_OR_RETURN(attribute.type, ReadType(input));
  return Make(std::move(attribute), at);
}

Result<std::string_view> Tables::ReadName(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Attribute* attribute, ReadAttribute(input));
  if (!attribute->is(AttributeKind::kString)) return FailAtByte(at, "another attribute", "a name");
  auto [found, added] = names_.try_emplace(attribute);
  if (added) found->second = module_.Name(attribute->text);
  return found->second;
}

Result<const mlir::Attribute*> Tables::ReadDictionary(Input& input) {
  const size_t at = input.offset();
  Attribute dictionary{.kind = AttributeKind::kDictionary};
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of entries"));
  auto& fields = dictionary.fields;
  fields.resize(count);
  for (mlir::NamedAttribute& field : fields) {
    KILN_ASSIGN_OR_RETURN(field.name, ReadName(input));
    KILN_ASSIGN_OR_RETURN(field.value, ReadAttribute(input));
  }
  // Equal names have one address, which avoids comparisons of long names.
  auto same = [](const mlir::NamedAttribute& a, const mlir::NamedAttribute& b) {
    return a.name.data() == b.name.data();
  };
  std::sort(fields.begin(), fields.end(),
            [&](const mlir::NamedAttribute& a, const mlir::NamedAttribute& b) {
              return !same(a, b) && a.name < b.name;
            });
  auto twice = std::adjacent_find(fields.begin(), fields.end(), same);
  if (twice != fields.end()) {
    return FailAtByte(at, Cat("'", twice->name.substr(0, 80), "' twice"),
                      "each name of a dictionary once");
  }
  return Make(std::move(dictionary), at);
}

Result<const mlir::Attribute*> Tables::Make(Attribute attribute, size_t offset) {
  Result<const Attribute*> made = module_.Make(std::move(attribute));
  if (!made.ok()) return made.status().WithContext(Cat("byte ", offset));
  return made;
}

Result<const mlir::Attribute*> Tables::MakeText(AttributeKind kind, std::string_view text,
                                                size_t offset) {
  KILN_RETURN_IF_ERROR(Spend(text.size(), offset));
  Attribute attribute{.kind = kind};
  attribute.text = std::string(text);
  return Make(std::move(attribute), offset);
}

Result<const mlir::Attribute*> Tables::MakeInt(int64_t value, int64_t width, size_t offset) {
  Attribute attribute{.kind = AttributeKind::kInteger};
  attribute.integer = value;
  KILN_ASSIGN_OR_RETURN(attribute.type, GetInteger(width));
  return Make(std::move(attribute), offset);
}

Result<const mlir::Attribute*> Tables::MakeInts(const std::vector<int64_t>& values, size_t offset) {
  Attribute attribute{.kind = AttributeKind::kDenseArray};
  KILN_ASSIGN_OR_RETURN(attribute.type, GetInteger(64));
  attribute.bytes.resize(values.size() * sizeof(int64_t));
  if (!values.empty()) std::memcpy(attribute.bytes.data(), values.data(), attribute.bytes.size());
  return Make(std::move(attribute), offset);
}

Result<const mlir::Attribute*> Tables::MakeEnum(std::string_view name, std::string_view value,
                                                size_t offset) {
  Attribute attribute{.kind = AttributeKind::kEnum, .text = std::string(value)};
  attribute.name = module_.Name(name);
  return Make(std::move(attribute), offset);
}

Result<const mlir::Type*> Tables::GetType(Type type, size_t offset) {
  Result<const Type*> known = module_.Get(std::move(type));
  if (!known.ok()) return known.status().WithContext(Cat("byte ", offset));
  return known;
}

Result<const mlir::Type*> Tables::GetInteger(int64_t width) {
  return module_.Get(Type{.kind = mlir::TypeKind::kInteger, .width = width});
}

Result<const mlir::Type*> Tables::GetFloat(mlir::FloatKind kind) {
  return module_.Get(Type{.kind = mlir::TypeKind::kFloat, .float_kind = kind});
}

}  // namespace kiln::stablehlo
