// Attributes and types of the dialect builtin, by code: for modules, for the dictionaries of
// operations in early formats, and for other dialects.
#include <optional>

#include "stablehlo/bytecode/tables.h"

namespace kiln::stablehlo {
namespace {

using mlir::FloatKind;
using mlir::Signedness;
using mlir::TypeKind;

enum AttributeCode : uint64_t {
  kArray,
  kDictionary,
  kString,
  kStringWithType,
  kFlatSymbol,
  kSymbol,
  kTypeAttribute,
  kUnit,
  kInteger,
  kFloat,
  kFirstLocation,
  kLastLocation = 15,
  kDenseResource,
  kDenseArray,
  kDenseElements,
  kDenseStrings,
  kSparseElements,
  kDistinct,
  kFileRange,
};

enum TypeCode : uint64_t {
  kIntegerType,
  kIndexType,
  kFunctionType,
  kBF16Type,
  kF16Type,
  kF32Type,
  kF64Type,
  kF80Type,
  kF128Type,
  kComplexType,
  kMemRefType,
  kMemRefWithSpaceType,
  kNoneType,
  kTensorType,
  kTensorWithEncodingType,
  kTupleType,
  kUnrankedMemRefType,
  kUnrankedMemRefWithSpaceType,
  kUnrankedTensorType,
  kVectorType,
  kScalableVectorType,
  kFirstLaterFloat,
};

// Float types added later, from kFirstLaterFloat on.
constexpr FloatKind kLaterFloats[] = {
    FloatKind::kTF32,          FloatKind::kF8E5M2,     FloatKind::kF8E4M3,
    FloatKind::kF8E4M3FN,      FloatKind::kF8E5M2FNUZ, FloatKind::kF8E4M3FNUZ,
    FloatKind::kF8E4M3B11FNUZ, FloatKind::kF8E3M4,     FloatKind::kF4E2M1FN,
    FloatKind::kF6E2M3FN,      FloatKind::kF6E3M2FN,   FloatKind::kF8E8M0FNU};

}  // namespace

Result<const mlir::Attribute*> Tables::ReadBuiltinAttribute(Input& input, uint64_t index) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t code, input.VarInt("the code of an attribute"));
  if ((code >= kFirstLocation && code <= kLastLocation) || code == kFileRange) {
    KILN_RETURN_IF_ERROR(ReadLocationEntry(input, code, index));
    return static_cast<const Attribute*>(nullptr);
  }
  switch (code) {
    case kArray:
      return ReadArray(input);
    case kDictionary:
      return ReadDictionary(input);
    case kString:
    case kStringWithType: {
      KILN_ASSIGN_OR_RETURN(std::string_view text, ReadString(input));
      // The type is ignored.
      if (code == kStringWithType) KILN_RETURN_IF_ERROR(ReadType(input).status());
      return MakeText(AttributeKind::kString, text, at);
    }
    case kFlatSymbol:
    case kSymbol:
      return ReadSymbol(input, code == kSymbol);
    case kTypeAttribute:
      return ReadTypeAttribute(input);
    case kUnit:
      return Make({.kind = AttributeKind::kUnit}, at);
    case kInteger:
    case kFloat: {
      KILN_ASSIGN_OR_RETURN(const Attribute* number, ReadNumber(input));
      if (number->is(AttributeKind::kFloat) == (code == kFloat)) return number;
      return FailAtByte(at, "a number of another type",
                        code == kFloat ? "a float's type" : "an integer's type");
    }
    case kDenseResource:
      return ReadResource(input);
    case kDenseArray:
      return ReadDenseArray(input);
    case kDenseElements:
      return ReadElements(input);
    case kDenseStrings:
    case kSparseElements:
    case kDistinct:
      return Unimplemented("byte ", at, ": ",
                           code == kDenseStrings     ? "elements that are strings"
                           : code == kSparseElements ? "sparse elements"
                                                     : "distinct attributes",
                           " are not implemented");
    default:
      return FailAtByte(at, Cat("the code ", code), "one of the builtin attributes");
  }
}

// A name, then symbols inside it.
Result<const mlir::Attribute*> Tables::ReadSymbol(Input& input, bool nested) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(std::string_view root, ReadStringAttribute(input));
  std::string text(root);
  if (nested) {
    KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of symbols"));
    for (uint64_t i = 0; i < count; ++i) {
      const size_t part_at = input.offset();
      KILN_ASSIGN_OR_RETURN(const Attribute* part, ReadAttribute(input));
      if (!part->is(AttributeKind::kSymbol)) {
        return FailAtByte(part_at, "another attribute", "a symbol");
      }
      KILN_RETURN_IF_ERROR(Spend(part->text.size(), part_at));
      text += "::" + part->text;
    }
  }
  return MakeText(AttributeKind::kSymbol, text, at);
}

// The type of an element, how many, and their bytes; booleans have one each.
Result<const mlir::Attribute*> Tables::ReadDenseArray(Input& input) {
  const size_t at = input.offset();
  Attribute array{.kind = AttributeKind::kDenseArray};
  KILN_ASSIGN_OR_RETURN(array.type, ReadType(input));
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.VarInt("a number of elements"));
  KILN_ASSIGN_OR_RETURN(uint64_t size, input.VarInt("the size of elements"));
  KILN_ASSIGN_OR_RETURN(std::string_view bytes, input.Bytes(size, "elements"));
  const auto element = static_cast<size_t>(mlir::ElementBytes(*array.type));
  const bool scalar = array.type->is(TypeKind::kInteger) || array.type->is(TypeKind::kFloat);
  if (!scalar || bytes.size() % element != 0 || bytes.size() / element != count) {
    return FailAtByte(at, Cat(bytes.size(), " bytes"), Cat(count, " elements of ", *array.type));
  }
  array.bytes = std::string(bytes);
  if (array.type->is_bool()) {
    for (char& c : array.bytes) c = c != 0 ? '\1' : '\0';
  }
  return Make(std::move(array), at);
}

// A type, and a resource: an alignment, a size, and the aligned bytes. Booleans have a byte each
// there.
Result<const mlir::Attribute*> Tables::ReadResource(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Type* type, ReadType(input));
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.Index(container_.resources.size(), "a resource"));
  const Container::Resource& resource = container_.resources[index];
  Input blob = resource.input;
  if (!resource.is_blob || blob.AtEnd()) {
    return FailAtByte(at, Cat("the resource '", resource.key, "', which has no bytes"), "a blob");
  }
  KILN_ASSIGN_OR_RETURN(uint64_t alignment, blob.VarInt("an alignment"));
  KILN_ASSIGN_OR_RETURN(uint64_t size, blob.VarInt("the size of a blob"));
  KILN_RETURN_IF_ERROR(blob.Align(alignment));
  const size_t begin = blob.offset();
  KILN_ASSIGN_OR_RETURN(std::string_view bytes, blob.Bytes(size, "a blob"));
  KILN_RETURN_IF_ERROR(blob.ExpectEnd("a resource"));
  KILN_RETURN_IF_ERROR(Spend(bytes.size(), at));
  return MakeElements(type, bytes, begin);
}

Result<const mlir::Type*> Tables::ReadBuiltinType(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t code, input.VarInt("the code of a type"));
  Type type;
  switch (code) {
    case kIntegerType: {
      KILN_ASSIGN_OR_RETURN(uint64_t bits, input.VarInt("the width of an integer"));
      constexpr uint64_t kMost = 1 << 24;
      if ((bits & 3) == 3 || bits >> 2 > kMost) {
        return FailAtByte(at, Cat("the width ", bits >> 2), "the width of an integer type");
      }
      type.kind = TypeKind::kInteger;
      type.width = static_cast<int64_t>(bits >> 2);
      type.signedness = static_cast<Signedness>(bits & 3);
      break;
    }
    case kIndexType:
      type.kind = TypeKind::kIndex;
      break;
    case kFunctionType: {
      type.kind = TypeKind::kFunction;
      KILN_ASSIGN_OR_RETURN(type.inputs, ReadTypes(input));
      KILN_ASSIGN_OR_RETURN(type.results, ReadTypes(input));
      break;
    }
    case kBF16Type:
      return GetFloat(FloatKind::kBF16);
    case kF16Type:
      return GetFloat(FloatKind::kF16);
    case kF32Type:
      return GetFloat(FloatKind::kF32);
    case kF64Type:
      return GetFloat(FloatKind::kF64);
    case kComplexType: {
      type.kind = TypeKind::kComplex;
      KILN_ASSIGN_OR_RETURN(type.element, ReadType(input));
      break;
    }
    case kNoneType:
      break;
    case kTensorType:
    case kTensorWithEncodingType:
      return ReadTensor(input, code == kTensorWithEncodingType);
    case kTupleType: {
      type.kind = TypeKind::kTuple;
      KILN_ASSIGN_OR_RETURN(type.inputs, ReadTypes(input));
      break;
    }
    case kUnrankedTensorType: {
      type.kind = TypeKind::kUnrankedTensor;
      KILN_ASSIGN_OR_RETURN(type.element, ReadType(input));
      break;
    }
    case kF80Type:
    case kF128Type:
    case kMemRefType:
    case kMemRefWithSpaceType:
    case kUnrankedMemRefType:
    case kUnrankedMemRefWithSpaceType:
    case kVectorType:
    case kScalableVectorType:
      return Unimplemented("byte ", at, ": the builtin type of code ", code,
                           " is not implemented: f80, f128, memrefs and vectors");
    default:
      if (code - kFirstLaterFloat < std::size(kLaterFloats)) {
        return GetFloat(kLaterFloats[code - kFirstLaterFloat]);
      }
      return FailAtByte(at, Cat("the code ", code), "one of the builtin types");
  }
  return GetType(std::move(type), at);
}

// Early writers had no codes for small floats, and dialects may have none.
Result<const mlir::Type*> Tables::ReadTextType(std::string_view text, size_t offset) {
  if (std::optional<FloatKind> kind = mlir::FloatByName(text)) return GetFloat(*kind);
  if (text == "!stablehlo.token") return GetType({.kind = TypeKind::kToken}, offset);
  if (!text.starts_with("!")) {
    return Unimplemented("byte ", offset, ": a type that is written as '", text.substr(0, 80),
                         "' is not implemented in bytecode");
  }
  KILN_RETURN_IF_ERROR(Spend(text.size(), offset));
  return GetType({.kind = TypeKind::kOpaque, .text = std::string(text)}, offset);
}

}  // namespace kiln::stablehlo
