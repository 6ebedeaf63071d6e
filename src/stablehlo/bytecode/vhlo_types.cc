// The types of vhlo, by their codes.
#include <tuple>

#include "stablehlo/bytecode/tables.h"

namespace kiln::stablehlo {
namespace {

using mlir::FloatKind;
using mlir::Signedness;
using mlir::TypeKind;

struct FloatRow {
  uint64_t code;
  FloatKind kind;
};
constexpr FloatRow kFloats[] = {
    {2, FloatKind::kBF16},        {3, FloatKind::kF16},         {4, FloatKind::kF32},
    {5, FloatKind::kF64},         {6, FloatKind::kF8E4M3FN},    {7, FloatKind::kF8E5M2},
    {27, FloatKind::kF8E4M3FNUZ}, {28, FloatKind::kF8E5M2FNUZ}, {29, FloatKind::kF8E4M3B11FNUZ},
    {34, FloatKind::kTF32},       {35, FloatKind::kF8E4M3},     {36, FloatKind::kF8E3M4},
    {37, FloatKind::kF4E2M1FN},   {38, FloatKind::kF6E2M3FN},   {39, FloatKind::kF6E3M2FN},
    {40, FloatKind::kF8E8M0FNU},
};

struct IntegerRow {
  uint64_t code;
  int64_t width;
  Signedness signedness;
};
constexpr IntegerRow kIntegers[] = {
    {0, 1, Signedness::kSignless},   {31, 2, Signedness::kSignless},
    {10, 4, Signedness::kSignless},  {11, 8, Signedness::kSignless},
    {12, 16, Signedness::kSignless}, {13, 32, Signedness::kSignless},
    {14, 64, Signedness::kSignless}, {32, 2, Signedness::kUnsigned},
    {15, 4, Signedness::kUnsigned},  {16, 8, Signedness::kUnsigned},
    {17, 16, Signedness::kUnsigned}, {18, 32, Signedness::kUnsigned},
    {19, 64, Signedness::kUnsigned},
};

enum Code : uint64_t {
  kComplex = 1,
  kFunction = 8,
  kIndex = 9,
  kTensor = 20,
  kTensorWithEncoding = 21,
  kToken = 22,
  kTuple = 23,
  kQuantized = 24,
  kUnrankedTensor = 25,
  kWitness = 26,
  kQuantizedPerAxis = 30,
  kNone = 33,
  kBuffer = 41,
  kFuture = 42,
};

}  // namespace

Result<const mlir::Type*> Tables::ReadVhloType(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t code, input.VarInt("the code of a type"));
  for (const FloatRow& row : kFloats) {
    if (row.code == code) return GetFloat(row.kind);
  }
  for (const IntegerRow& row : kIntegers) {
    if (row.code != code) continue;
    return GetType({.kind = TypeKind::kInteger, .signedness = row.signedness, .width = row.width},
                   at);
  }
  Type type;
  switch (code) {
    case kComplex: {
      type.kind = TypeKind::kComplex;
      KILN_ASSIGN_OR_RETURN(type.element, ReadType(input));
      break;
    }
    case kFunction: {
      type.kind = TypeKind::kFunction;
      KILN_ASSIGN_OR_RETURN(type.inputs, ReadTypes(input));
      KILN_ASSIGN_OR_RETURN(type.results, ReadTypes(input));
      break;
    }
    case kIndex:
      type.kind = TypeKind::kIndex;
      break;
    case kTensor:
    case kTensorWithEncoding:
      return ReadTensor(input, code == kTensorWithEncoding);
    case kToken:
      type.kind = TypeKind::kToken;
      break;
    case kTuple:
    case kFuture: {
      type.kind = code == kTuple ? TypeKind::kTuple : TypeKind::kFuture;
      KILN_ASSIGN_OR_RETURN(type.inputs, ReadTypes(input));
      break;
    }
    case kQuantized:
    case kQuantizedPerAxis:
      return ReadQuantized(input, code == kQuantizedPerAxis);
    case kUnrankedTensor: {
      type.kind = TypeKind::kUnrankedTensor;
      KILN_ASSIGN_OR_RETURN(type.element, ReadType(input));
      break;
    }
    case kWitness:
      type.kind = TypeKind::kOpaque;
      type.text = "!shape.witness";
      break;
    case kNone:
      break;
    case kBuffer:
      return ReadBuffer(input);
    default:
      return FailAtByte(at, Cat("the code ", code), "one of vhlo's types");
  }
  return GetType(std::move(type), at);
}

// Sizes and elements; before them the encoding, if there is one.
Result<const mlir::Type*> Tables::ReadTensor(Input& input, bool has_encoding) {
  const size_t at = input.offset();
  Type tensor{.kind = TypeKind::kTensor};
  if (has_encoding) {
    KILN_ASSIGN_OR_RETURN(const Attribute* encoding, ReadAttribute(input));
    if (encoding->is(AttributeKind::kRecord) && encoding->name == "stablehlo.bounds") {
      tensor.bounds = mlir::IntsOf(*encoding->fields[0].value).value();
    } else if (encoding->is(AttributeKind::kOpaque)) {
      KILN_RETURN_IF_ERROR(Spend(encoding->text.size(), at));
      tensor.text = encoding->text;
    } else {
      return FailAtByte(at, "another attribute", "the bounds of a tensor");
    }
  }
  KILN_ASSIGN_OR_RETURN(tensor.dimensions, ReadInts(input));
  KILN_ASSIGN_OR_RETURN(tensor.element, ReadType(input));
  if (has_encoding && tensor.text.empty() && tensor.bounds.size() != tensor.dimensions.size()) {
    return FailAtByte(at, Cat(tensor.bounds.size(), " bounds"), Cat(tensor.rank(), " bounds"));
  }
  return GetType(std::move(tensor), at);
}

Result<const mlir::Type*> Tables::ReadQuantized(Input& input, bool per_axis) {
  const size_t at = input.offset();
  mlir::Quantization q;
  KILN_ASSIGN_OR_RETURN(uint64_t flags, input.VarInt("the flags of a quantised type"));
  if (flags > 1) return FailAtByte(at, Cat("the flags ", flags), "0, or 1 for a signed type");
  KILN_ASSIGN_OR_RETURN(const Type* storage, ReadType(input));
  if (!storage->is(TypeKind::kInteger)) {
    return FailAtByte(at, storage->ToString(), "the integer type of a quantised one");
  }
  Type integer = *storage;
  integer.signedness = flags == 1 ? Signedness::kSigned : Signedness::kUnsigned;
  KILN_ASSIGN_OR_RETURN(q.storage, GetType(std::move(integer), at));
  KILN_ASSIGN_OR_RETURN(q.expressed, ReadType(input));
  if (!per_axis) {
    q.scales.resize(1);
    q.zero_points.resize(1);
    KILN_ASSIGN_OR_RETURN(q.scales[0], ReadDouble(input));
    KILN_ASSIGN_OR_RETURN(q.zero_points[0], input.SignedVarInt("a zero point"));
  } else {
    KILN_ASSIGN_OR_RETURN(uint64_t axis, input.VarInt("an axis"));
    q.axes.push_back(static_cast<int64_t>(axis));
  }
  KILN_ASSIGN_OR_RETURN(q.storage_min, input.SignedVarInt("the least number"));
  KILN_ASSIGN_OR_RETURN(q.storage_max, input.SignedVarInt("the largest number"));
  if (per_axis) {
    KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of scales"));
    q.scales.resize(count);
    for (double& scale : q.scales) {
      KILN_ASSIGN_OR_RETURN(scale, ReadDouble(input));
    }
    KILN_ASSIGN_OR_RETURN(q.zero_points, ReadInts(input));
  }
  Type type{.kind = TypeKind::kQuantized};
  type.quantization = std::move(q);
  return GetType(std::move(type), at);
}

// A memref, kept as text in the tree.
Result<const mlir::Type*> Tables::ReadBuffer(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ReadInts(input));
  KILN_ASSIGN_OR_RETURN(const Type* element, ReadType(input));
  std::string text = "memref<";
  for (int64_t size : sizes) {
    if (size < 0 && size != mlir::kDynamic) return FailAtByte(at, Cat("the size ", size), "a size");
    text += size == mlir::kDynamic ? "?x" : Cat(size, "x");
  }
  if (element->parts > 2) return FailAtByte(at, element->ToString(), "the type of an element");
  text += element->ToString() + ">";
  KILN_RETURN_IF_ERROR(Spend(text.size(), at));
  return GetType({.kind = TypeKind::kOpaque, .text = std::move(text)}, at);
}

}  // namespace kiln::stablehlo
