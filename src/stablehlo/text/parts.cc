#include "stablehlo/text/forms.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {

Status Reader::ReadPart(Operation* operation, std::string_view part, Scope& scope) {
  struct Row {
    std::string_view name;
    Status (Reader::*read)(Operation*, Scope&);
  };
  static constexpr Row kParts[] = {
      {"barrier", &Reader::ReadBarrier},  {"constant", &Reader::ReadConstant},
      {"conv", &Reader::ReadConvolution}, {"dot_dimensions", &Reader::ReadDotDimensions},
      {"format", &Reader::ReadFormat},    {"function", &Reader::ReadFunction},
      {"module", &Reader::ReadModule},    {"precision", &Reader::ReadPrecision},
      {"reduce", &Reader::ReadReduce},    {"regions", &Reader::ReadRegions},
      {"scan", &Reader::ReadScan},        {"slices", &Reader::ReadSlices},
      {"value", &Reader::ReadValue},      {"while", &Reader::ReadWhile},
      {"window", &Reader::ReadWindow},
  };
  for (const Row& row : kParts) {
    if (row.name == part) return (this->*row.read)(operation, scope);
  }
  return Internal("the form of ", operation->name, " has no part ", part);
}

// The value, with its type; or "() {value = ...} : () -> type", if its type differs.
Status Reader::ReadConstant(Operation* operation, Scope& scope) {
  if (scanner_.Take("(")) return ReadForm(operation, ") {} : function", scope);
  if (scanner_.Looking("{")) KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Attribute* value, ReadAttribute());
  const Type* type = value->type;
  if (value->is(AttributeKind::kBool)) {
    KILN_ASSIGN_OR_RETURN(type, GetInteger(1));
  } else if (!value->is(AttributeKind::kElements) && !value->is(AttributeKind::kInteger) &&
             !value->is(AttributeKind::kFloat)) {
    return scanner_.FailAt(at, "the value of a constant");
  }
  KILN_RETURN_IF_ERROR(Set(operation, "value", value, at));
  return AddResults(operation, {type});
}

// Either "()" at the end, or operands and their types, which are also the results' types.
Status Reader::ReadBarrier(Operation* operation, Scope& scope) {
  return ReadForm(operation, scanner_.Take("(") ? ")" : "%* {} : pairwise", scope);
}

// A value to compare with, of the type of the one operand.
Status Reader::ReadValue(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Attribute* value, ReadAttribute());
  if (!value->is(AttributeKind::kElements)) return scanner_.FailAt(at, "dense elements");
  KILN_RETURN_IF_ERROR(Set(operation, "value", value, at));
  return CheckOperands(*operation, {value->type}, at);
}

// (%x init: %c), ... [applies name] across dimensions = [0] {...} : types [reducer(...) {...}]
Status Reader::ReadReduce(Operation* operation, Scope& scope) {
  List<Value*> initial;
  do {
    KILN_RETURN_IF_ERROR(scanner_.Expect("("));
    KILN_ASSIGN_OR_RETURN(Value * value, ReadOperand(scope));
    operation->operands.push_back(value);
    KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword("init"));
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    KILN_ASSIGN_OR_RETURN(value, ReadOperand(scope));
    initial.push_back(value);
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  } while (scanner_.Take(","));
  auto& operands = operation->operands;
  operands.insert(operands.end(), initial.begin(), initial.end());
  std::string_view applied;
  const size_t at = scanner_.position();
  if (scanner_.TakeKeyword("applies")) {
    applied = scanner_.TakeWord();
    if (applied.find('.') == std::string_view::npos) return scanner_.Fail("an operation");
    if (operands.size() != 2) return scanner_.FailAt(at, "a reducer, as there are several inputs");
  }
  KILN_RETURN_IF_ERROR(
      ReadForm(operation, "across dimensions = dimensions:ints {} : function", scope));
  if (!applied.empty()) return MakeReduceRegion(operation, applied);
  KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword("reducer"));
  return ReadReduceRegion(operation, scope);
}

// The arguments are in pairs; in the block all elements come before all accumulators.
Status Reader::ReadReduceRegion(Operation* operation, Scope& scope) {
  List<Argument> elements, accumulators;
  while (scanner_.Take("(")) {
    for (List<Argument>* list : {&elements, &accumulators}) {
      if (list == &accumulators) KILN_RETURN_IF_ERROR(scanner_.Expect(","));
      Argument argument;
      argument.position = scanner_.position();
      KILN_ASSIGN_OR_RETURN(argument.name, scanner_.Name('%', "an argument"));
      KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
      KILN_ASSIGN_OR_RETURN(argument.type, ReadType());
      KILN_ASSIGN_OR_RETURN(argument.source, ReadOptionalLocation());
      list->push_back(argument);
    }
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  }
  elements.insert(elements.end(), accumulators.begin(), accumulators.end());
  return ReadRegion(operation, &scope, elements);
}

// The region of "applies": the operation on scalars, and a return.
Status Reader::MakeReduceRegion(Operation* operation, std::string_view name) {
  const size_t at = scanner_.position();
  const Type* input = operation->operands[0]->type;
  if (!input->element) return scanner_.FailAt(at, "a tensor to reduce");
  Type scalar{.kind = mlir::TypeKind::kTensor, .element = input->element};
  KILN_ASSIGN_OR_RETURN(const Type* type, GetType(std::move(scalar), at));
  mlir::Region* region = module_->AddRegion(operation);
  if (!region) return scanner_.FailAt(at, "regions that are not nested so deep");
  mlir::Block* block = module_->AddBlock(region);
  Operation* applied = module_->AddOperation(block, CanonicalName(name), operation->location);
  for (int i = 0; i < 2; ++i) applied->operands.push_back(module_->AddArgument(block, type));
  Operation* end = module_->AddOperation(block, "stablehlo.return", operation->location);
  end->operands.push_back(module_->AddResult(applied, type));
  return OkStatus();
}

// (%a = %x, ...) : types [attributes {...}] cond {...} do {...}
Status Reader::ReadWhile(Operation* operation, Scope& scope) {
  List<Argument> arguments;
  KILN_RETURN_IF_ERROR(scanner_.Expect("("));
  if (!scanner_.Take(")")) {
    do {
      Argument argument;
      argument.position = scanner_.position();
      KILN_ASSIGN_OR_RETURN(argument.name, scanner_.Name('%', "an argument"));
      KILN_RETURN_IF_ERROR(scanner_.Expect("="));
      KILN_ASSIGN_OR_RETURN(Value * value, ReadOperand(scope));
      operation->operands.push_back(value);
      argument.type = value->type;
      arguments.push_back(argument);
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  }
  KILN_RETURN_IF_ERROR(ReadTypesOf(operation, "pairwise"));
  if (scanner_.TakeKeyword("attributes")) {
    KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  }
  KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword("cond"));
  KILN_RETURN_IF_ERROR(ReadRegion(operation, &scope, arguments));
  KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword("do"));
  return ReadRegion(operation, &scope, arguments);
}

// (%x, ...) inits (%i, ...) dimension = 0 [attributes {...}] {...}, then the types.
Status Reader::ReadScan(Operation* operation, Scope& scope) {
  KILN_RETURN_IF_ERROR(ReadForm(operation, "( %* ) inits (", scope));
  const auto inputs = static_cast<int64_t>(operation->operands.size());
  KILN_RETURN_IF_ERROR(ReadForm(operation, "%* ) dimension = dimension:i64", scope));
  const int64_t initial = static_cast<int64_t>(operation->operands.size()) - inputs;
  if (scanner_.TakeKeyword("attributes")) {
    KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  }
  const size_t at = scanner_.position();
  Attribute sizes{.kind = AttributeKind::kDenseArray};
  KILN_ASSIGN_OR_RETURN(sizes.type, GetInteger(32));
  for (int64_t size : {inputs, initial}) {
    for (int shift = 0; shift < 32; shift += 8) sizes.bytes += static_cast<char>(size >> shift);
  }
  KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(sizes), at));
  KILN_RETURN_IF_ERROR(Set(operation, "operandSegmentSizes", made, at));
  return ReadRegion(operation, &scope, {});
}

// ({...}, {...}), if that is next.
Status Reader::ReadRegions(Operation* operation, Scope& scope) {
  if (!scanner_.Take("(")) return OkStatus();
  do {
    KILN_RETURN_IF_ERROR(ReadRegion(operation, &scope, {}));
  } while (scanner_.Take(","));
  return scanner_.Expect(")");
}

// [0:10, 2:3:1]
Status Reader::ReadSlices(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  List<int64_t> starts, limits, strides;
  KILN_RETURN_IF_ERROR(scanner_.Expect("["));
  if (!scanner_.Take("]")) {
    do {
      KILN_ASSIGN_OR_RETURN(int64_t start, scanner_.Integer());
      KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
      KILN_ASSIGN_OR_RETURN(int64_t limit, scanner_.Integer());
      int64_t stride = 1;
      if (scanner_.Take(":")) {
        KILN_ASSIGN_OR_RETURN(stride, scanner_.Integer());
      }
      starts.push_back(start);
      limits.push_back(limit);
      strides.push_back(stride);
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
  }
  KILN_RETURN_IF_ERROR(SetInts(operation, "start_indices", starts, at));
  KILN_RETURN_IF_ERROR(SetInts(operation, "limit_indices", limits, at));
  return SetInts(operation, "strides", strides, at);
}

// e5m10
Status Reader::ReadFormat(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  const std::string_view word = scanner_.TakeWord();
  const size_t m = word.find('m');
  std::optional<int64_t> exponent, mantissa;
  if (word.starts_with("e") && m != std::string_view::npos) {
    exponent = ParseInt(word.substr(1, m - 1));
    mantissa = ParseInt(word.substr(m + 1));
  }
  constexpr int64_t kMost = 1000;
  if (!exponent || !mantissa || *exponent < 0 || *mantissa < 0 || *exponent > kMost ||
      *mantissa > kMost) {
    return scanner_.FailAt(at, "bits of exponent and mantissa as in e5m10");
  }
  KILN_ASSIGN_OR_RETURN(const Attribute* value, MakeInt(*exponent, 32));
  KILN_RETURN_IF_ERROR(Set(operation, "exponent_bits", value, at));
  KILN_ASSIGN_OR_RETURN(value, MakeInt(*mantissa, 32));
  return Set(operation, "mantissa_bits", value, at);
}

// [batching_dims = [0] x [0],] contracting_dims = [2] x [1]
Status Reader::ReadDotDimensions(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  Attribute record{.kind = AttributeKind::kRecord, .name = module_->Name("stablehlo.dot")};
  auto read = [&](std::string_view keyword, std::string_view what) -> Status {
    KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword(keyword));
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    for (std::string_view side : {"lhs", "rhs"}) {
      if (side == "rhs") KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword("x"));
      KILN_ASSIGN_OR_RETURN(List<int64_t> dimensions, ReadInts());
      KILN_ASSIGN_OR_RETURN(const Attribute* value, MakeInts(dimensions));
      Insert(record.fields, module_->Name(Cat(side, "_", what, "_dimensions")), value);
    }
    return OkStatus();
  };
  if (scanner_.PeekWord() == "batching_dims") {
    KILN_RETURN_IF_ERROR(read("batching_dims", "batching"));
    KILN_RETURN_IF_ERROR(scanner_.Expect(","));
  }
  KILN_RETURN_IF_ERROR(read("contracting_dims", "contracting"));
  KILN_ASSIGN_OR_RETURN(const Attribute* made, FinishRecord(std::move(record), at));
  return Set(operation, "dot_dimension_numbers", made, at);
}

// [, precision = [DEFAULT, DEFAULT]] [, algorithm = <...>]
Status Reader::ReadPrecision(Operation* operation, Scope& scope) {
  while (scanner_.Take(",")) {
    const size_t at = scanner_.position();
    if (scanner_.TakeKeyword("algorithm")) {
      KILN_RETURN_IF_ERROR(scanner_.Expect("="));
      KILN_ASSIGN_OR_RETURN(
          const Attribute* algorithm,
          scanner_.Looking("#") ? ReadAttribute() : ReadRecord("stablehlo.dot_algorithm"));
      KILN_RETURN_IF_ERROR(Set(operation, "algorithm", algorithm, at));
      continue;
    }
    if (!scanner_.TakeKeyword("precision")) return scanner_.Fail("precision or algorithm");
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    KILN_RETURN_IF_ERROR(scanner_.Expect("["));
    Attribute list{.kind = AttributeKind::kArray};
    if (!scanner_.Take("]")) {
      do {
        KILN_ASSIGN_OR_RETURN(const Attribute* item, ReadEnum("stablehlo.precision"));
        list.items.push_back(item);
      } while (scanner_.Take(","));
      KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
    }
    KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(list), at));
    KILN_RETURN_IF_ERROR(Set(operation, "precision_config", made, at));
  }
  return OkStatus();
}

Status Reader::ReadConvolution(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Attribute* value, ReadConvDimensions());
  return Set(operation, "dimension_numbers", value, at);
}

// stride = [4, 4], pad = [[0, 0], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [0,
// 1]
Status Reader::ReadWindow(Operation* operation, Scope& scope) {
  if (scanner_.Looking("}")) return OkStatus();
  do {
    const size_t at = scanner_.position();
    const std::string_view key = scanner_.TakeWord();
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
    if (key == "stride" || key == "lhs_dilate" || key == "rhs_dilate") {
      KILN_ASSIGN_OR_RETURN(List<int64_t> values, ReadInts());
      KILN_RETURN_IF_ERROR(SetInts(operation,
                                   key == "stride"       ? "window_strides"
                                   : key == "lhs_dilate" ? "lhs_dilation"
                                                         : "rhs_dilation",
                                   values, at));
    } else if (key == "reverse") {
      Attribute array{.kind = AttributeKind::kDenseArray};
      KILN_ASSIGN_OR_RETURN(array.type, GetInteger(1));
      KILN_RETURN_IF_ERROR(scanner_.Expect("["));
      while (!scanner_.Take("]")) {
        KILN_RETURN_IF_ERROR(ReadElement(*array.type, array.bytes));
        if (!scanner_.Take(",") && !scanner_.Looking("]")) return scanner_.Fail("',' or ']'");
      }
      KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(array), at));
      KILN_RETURN_IF_ERROR(Set(operation, "window_reversal", made, at));
    } else if (key == "pad") {
      KILN_RETURN_IF_ERROR(ReadWindowPadding(operation, at));
    } else {
      return scanner_.FailAt(at, "stride, pad, lhs_dilate, rhs_dilate or reverse");
    }
  } while (scanner_.Take(","));
  return OkStatus();
}

Status Reader::ReadWindowPadding(Operation* operation, size_t position) {
  Attribute elements{.kind = AttributeKind::kElements};
  KILN_ASSIGN_OR_RETURN(const Type* i64, GetInteger(64));
  int64_t pairs = 0;
  KILN_RETURN_IF_ERROR(scanner_.Expect("["));
  if (!scanner_.Take("]")) {
    do {
      KILN_RETURN_IF_ERROR(scanner_.Expect("["));
      KILN_RETURN_IF_ERROR(ReadElement(*i64, elements.bytes));
      KILN_RETURN_IF_ERROR(scanner_.Expect(","));
      KILN_RETURN_IF_ERROR(ReadElement(*i64, elements.bytes));
      KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
      ++pairs;
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect("]"));
  }
  Type tensor{.kind = mlir::TypeKind::kTensor, .element = i64, .dimensions = {pairs, 2}};
  KILN_ASSIGN_OR_RETURN(elements.type, GetType(std::move(tensor), position));
  KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(elements), position));
  return Set(operation, "padding", made, position);
}

}  // namespace kiln::stablehlo
