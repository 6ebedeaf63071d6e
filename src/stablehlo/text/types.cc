#include "stablehlo/mlir/print.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {
namespace {

using mlir::Signedness;
using mlir::TypeKind;

// "i32", "ui8", "si4".
std::optional<mlir::Type> IntegerByName(std::string_view name) {
  mlir::Type type{.kind = TypeKind::kInteger};
  if (name.starts_with("si")) type.signedness = Signedness::kSigned;
  if (name.starts_with("ui")) type.signedness = Signedness::kUnsigned;
  const bool plain = type.signedness == Signedness::kSignless;
  if (plain && !name.starts_with("i")) return std::nullopt;
  const std::string_view digits = name.substr(plain ? 1 : 2);
  if (digits.empty() || digits.size() > 8 || !IsDigit(digits[0])) return std::nullopt;
  std::optional<int64_t> width = ParseInt(digits);
  if (!width) return std::nullopt;
  type.width = *width;
  return type;
}

// Types of MLIR that are kept as text.
bool IsForeign(std::string_view word) { return word == "memref" || word == "vector"; }

}  // namespace

Result<const mlir::Type*> Reader::GetType(Type type, size_t position) {
  Result<const Type*> known = module_->Get(std::move(type));
  if (!known.ok()) return known.status().WithContext(scanner_.Where(position));
  return known;
}

Result<const mlir::Type*> Reader::GetInteger(int64_t width) {
  return module_->Get(Type{.kind = TypeKind::kInteger, .width = width});
}

Result<const mlir::Type*> Reader::GetFloat(mlir::FloatKind kind) {
  return module_->Get(Type{.kind = TypeKind::kFloat, .float_kind = kind});
}

bool Reader::LookingAtType() {
  if (scanner_.Looking("!") || scanner_.Looking("(")) return true;
  const std::string_view word = scanner_.PeekWord();
  if (word.empty()) return false;
  for (std::string_view name : {"tensor", "tuple", "complex", "index", "none"}) {
    if (word == name) return true;
  }
  return IsForeign(word) || mlir::FloatByName(word) ||
         ((word[0] == 'i' || word.starts_with("ui") || word.starts_with("si")) &&
          IntegerByName(word));
}

Result<const mlir::Type*> Reader::ReadType() {
  Nesting nesting(*this);
  KILN_RETURN_IF_ERROR(nesting.Check());
  const size_t at = scanner_.position();
  if (scanner_.Looking("!")) return ReadNamedType();
  if (scanner_.Take("(")) {
    Type function{.kind = TypeKind::kFunction};
    KILN_ASSIGN_OR_RETURN(function.inputs, ReadTypeList(")"));
    KILN_RETURN_IF_ERROR(scanner_.Expect("->"));
    KILN_ASSIGN_OR_RETURN(function.results, ReadResultTypes());
    return GetType(std::move(function), at);
  }
  const std::string_view word = scanner_.TakeWord();
  if (word == "tensor") {
    KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
    return ReadTensor();
  }
  if (word == "tuple") {
    KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
    Type tuple{.kind = TypeKind::kTuple};
    KILN_ASSIGN_OR_RETURN(tuple.inputs, ReadTypeList(">"));
    return GetType(std::move(tuple), at);
  }
  if (word == "complex") {
    KILN_RETURN_IF_ERROR(scanner_.Expect("<"));
    Type complex{.kind = TypeKind::kComplex};
    KILN_ASSIGN_OR_RETURN(complex.element, ReadType());
    KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
    return GetType(std::move(complex), at);
  }
  if (word == "index") return GetType({.kind = TypeKind::kIndex}, at);
  if (word == "none") return GetType({.kind = TypeKind::kNone}, at);
  if (std::optional<mlir::FloatKind> kind = mlir::FloatByName(word)) return GetFloat(*kind);
  if (IsForeign(word) && scanner_.Looking("<")) {
    KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
    return GetType(
        {.kind = TypeKind::kOpaque, .text = std::string(scanner_.Text(at, scanner_.end()))}, at);
  }
  if (!word.empty()) {
    if (std::optional<Type> integer = IntegerByName(word)) return GetType(*integer, at);
  }
  return scanner_.FailAt(at, "a type");
}

Result<std::vector<const mlir::Type*>> Reader::ReadTypeList(std::string_view close) {
  List<const Type*> types;
  if (scanner_.Take(close)) return types;
  do {
    KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
    types.push_back(type);
  } while (scanner_.Take(","));
  KILN_RETURN_IF_ERROR(scanner_.Expect(close));
  return types;
}

Result<std::vector<const mlir::Type*>> Reader::ReadResultTypes() {
  if (scanner_.Take("(")) return ReadTypeList(")");
  KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
  return List<const Type*>{type};
}

Result<const mlir::Type*> Reader::ReadNamedType() {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name('!', "a type"));
  const bool body = scanner_.Raw() == '<';
  if (name == "stablehlo.token" || name == "mhlo.token") {
    return GetType({.kind = TypeKind::kToken}, at);
  }
  if (body && name == "stablehlo.future") {
    scanner_.Take("<");
    Type future{.kind = TypeKind::kFuture};
    KILN_ASSIGN_OR_RETURN(future.inputs, ReadTypeList(">"));
    return GetType(std::move(future), at);
  }
  if (body && name == "quant.uniform") {
    scanner_.Take("<");
    return ReadQuantized();
  }
  // Names with a point belong to dialects, others are aliases.
  if (!body && name.find('.') == std::string_view::npos) {
    KILN_ASSIGN_OR_RETURN(const Definition* definition, Define('!', name, at));
    return definition->type;
  }
  if (body) KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
  return GetType(
      {.kind = TypeKind::kOpaque, .text = std::string(scanner_.Text(at, scanner_.end()))}, at);
}

// 2x?x!t, then an encoding, then '>'
Result<const mlir::Type*> Reader::ReadTensor() {
  const size_t at = scanner_.position();
  Type tensor{.kind = TypeKind::kTensor};
  if (scanner_.Take("*")) {
    tensor.kind = TypeKind::kUnrankedTensor;
    KILN_RETURN_IF_ERROR(scanner_.Expect("x"));
  }
  while (tensor.is_tensor() && (scanner_.Looking("?") || IsDigit(scanner_.Peek()))) {
    int64_t size = mlir::kDynamic;
    if (!scanner_.Take("?")) {
      KILN_ASSIGN_OR_RETURN(size, scanner_.Integer());
    }
    tensor.dimensions.push_back(size);
    KILN_RETURN_IF_ERROR(scanner_.Expect("x"));
  }
  KILN_ASSIGN_OR_RETURN(tensor.element, ReadType());
  if (scanner_.Take(",")) KILN_RETURN_IF_ERROR(ReadTensorEncoding(tensor));
  KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  return GetType(std::move(tensor), at);
}

Status Reader::ReadTensorEncoding(Type& type) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Attribute* encoding, ReadAttribute());
  if (encoding->is(AttributeKind::kRecord) && encoding->name == "stablehlo.bounds") {
    type.bounds = *IntsOf(*encoding->fields[0].value);
    if (!type.bounds.empty() || type.dimensions.empty()) return OkStatus();
    return scanner_.FailAt(at, Cat(type.rank(), " bounds"));
  }
  type.text = mlir::ToText(*encoding);
  return OkStatus();
}

// i8<-127:127>:f32:1, {0.1:-30, 0.5}>
Result<const mlir::Type*> Reader::ReadQuantized() {
  const size_t at = scanner_.position();
  mlir::Quantization q;
  std::string_view name = scanner_.TakeWord();
  std::optional<Type> storage;
  if (name.starts_with("u") && !name.starts_with("ui")) {
    storage = IntegerByName(Cat("ui", name.substr(1)));
  } else if (name.starts_with("i") || name.starts_with("ui")) {
    storage = IntegerByName(name);
  }
  if (!storage) return scanner_.FailAt(at, "the integer type of a quantised one");
  if (storage->signedness == Signedness::kSignless) storage->signedness = Signedness::kSigned;
  KILN_ASSIGN_OR_RETURN(q.storage, GetType(*storage, at));
  std::tie(q.storage_min, q.storage_max) = mlir::StorageRange(*q.storage);
  if (scanner_.Take("<")) {
    KILN_ASSIGN_OR_RETURN(q.storage_min, scanner_.Integer());
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    KILN_ASSIGN_OR_RETURN(q.storage_max, scanner_.Integer());
    KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
  KILN_ASSIGN_OR_RETURN(q.expressed, ReadType());
  if (scanner_.Take(":")) {
    if (scanner_.Take("{")) {
      do {
        KILN_ASSIGN_OR_RETURN(int64_t axis, scanner_.Integer());
        KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
        KILN_ASSIGN_OR_RETURN(int64_t size, scanner_.Integer());
        q.axes.push_back(axis);
        q.block_sizes.push_back(size);
      } while (scanner_.Take(","));
      KILN_RETURN_IF_ERROR(scanner_.Expect("}"));
    } else {
      KILN_ASSIGN_OR_RETURN(int64_t axis, scanner_.Integer());
      q.axes.push_back(axis);
    }
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect(","));
  if (!q.axes.empty() && !scanner_.Looking("{")) return scanner_.Fail("'{'");
  KILN_RETURN_IF_ERROR(ReadScales(q, 0));
  KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  if (q.block_sizes.empty() && q.blocks.size() > (q.axes.empty() ? 0 : 1)) {
    return scanner_.FailAt(at, "scales in as many braces as there are axes");
  }
  if (q.block_sizes.empty()) q.blocks.clear();
  Type type{.kind = TypeKind::kQuantized};
  type.quantization = std::move(q);
  return GetType(std::move(type), at);
}

// A scale and its zero point, or a list in braces; all lists at a depth have the same length.
Status Reader::ReadScales(mlir::Quantization& q, size_t depth) {
  Nesting nesting(*this);
  KILN_RETURN_IF_ERROR(nesting.Check());
  const size_t at = scanner_.position();
  if (!scanner_.Take("{")) {
    if (depth != q.blocks.size()) return scanner_.Fail("'{'");
    KILN_ASSIGN_OR_RETURN(Number number, scanner_.TakeNumber());
    std::optional<double> scale = ParseDouble(number.text);
    if (!scale || number.hex) return scanner_.FailAt(at, "a scale");
    int64_t zero = 0;
    if (scanner_.Take(":")) {
      KILN_ASSIGN_OR_RETURN(zero, scanner_.Integer());
    }
    q.scales.push_back(*scale);
    q.zero_points.push_back(zero);
    return OkStatus();
  }
  // The first way down tells how deep the lists are, and the first list of each depth its length.
  const bool first = depth == q.blocks.size() && q.scales.empty();
  if (first) q.blocks.push_back(0);
  if (depth >= q.blocks.size()) return scanner_.FailAt(at, "a scale");
  int64_t count = 0;
  do {
    KILN_RETURN_IF_ERROR(ReadScales(q, depth + 1));
    ++count;
  } while (scanner_.Take(","));
  KILN_RETURN_IF_ERROR(scanner_.Expect("}"));
  if (first) q.blocks[depth] = count;
  if (q.blocks[depth] != count) return scanner_.FailAt(at, Cat(q.blocks[depth], " scales"));
  return OkStatus();
}

}  // namespace kiln::stablehlo
