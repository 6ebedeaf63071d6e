#include "ops/inference.h"

#include <array>

#include "ops/inference_rules.h"

namespace kiln {
namespace {

// The attributes of an op in ops.def, parsed once.
struct Signature {
  struct Attribute {
    Attr key;
    bool optional;
  };
  std::vector<Attribute> attributes;
  Arity arity;
  int64_t called = 0;  // computations that the op names one by one
  int64_t least_called = 0;
  bool any_number_called = false;  // from that on
};

Signature MakeSignature(Opcode opcode) {
  Signature signature;
  signature.arity = ArityOf(opcode);
  for (std::string_view name : Split(InfoOf(opcode).attributes, ' ')) {
    bool optional = name.ends_with("?");
    if (optional) name.remove_suffix(1);
    if (name == "branch_computations" || name == "called_computations") {
      signature.any_number_called = true;
      signature.least_called = name == "branch_computations" ? 1 : 0;
    } else if (IsComputationAttribute(name)) {
      ++signature.called;
    } else if (const AttrInfo* info = AttrByName(name)) {
      signature.attributes.push_back({info->key, optional});
    }
  }
  return signature;
}

const Signature& SignatureOf(Opcode opcode) {
  static const auto* table = [] {
    auto* signatures = new std::array<Signature, kOpcodeCount>;
    for (int i = 0; i < kOpcodeCount; ++i) {
      (*signatures)[i] = MakeSignature(static_cast<Opcode>(i));
    }
    return signatures;
  }();
  return (*table)[static_cast<int>(opcode)];
}

std::string_view KindText(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return "an integer";
    case AttrKind::kInts:
      return "a list of integers";
    case AttrKind::kBool:
      return "true or false";
    case AttrKind::kDirection:
      return "a direction";
    case AttrKind::kSlices:
      return "a list of slices";
    case AttrKind::kPadding:
      return "a padding";
    case AttrKind::kWindow:
      return "a window";
    case AttrKind::kText:
    case AttrKind::kQuoted:
      return "a text";
    case AttrKind::kFloat:
      return "a number";
    case AttrKind::kGroups:
      return "a list of lists of integers";
    case AttrKind::kConvolution:
      return "labels of dimensions";
    case AttrKind::kAliases:
      return "a list of aliases";
    case AttrKind::kSymbolic:
      return "sizes of symbols";
  }
  return "";
}

Status CheckSignature(const InferenceInput& input) {
  const Signature& signature = SignatureOf(input.opcode);
  int64_t count = static_cast<int64_t>(input.operands.size());
  if (count < signature.arity.min || (signature.arity.max >= 0 && count > signature.arity.max)) {
    return InvalidArgument(OpcodeName(input.opcode), ": has ", count,
                           count == 1 ? " operand; expected " : " operands; expected ",
                           signature.arity.max < 0 ? "at least " : "", signature.arity.min);
  }
  for (const auto& [key, value] : input.attributes.entries()) {
    const AttrInfo& info = InfoOf(key);
    bool known = key == Attr::kSymbolic;
    for (const auto& attribute : signature.attributes) known |= attribute.key == key;
    if (!known) {
      return rules::Error(input, "; the op has no attribute '", info.name, "'");
    }
    if (value.index() != static_cast<size_t>(info.kind)) {
      return rules::Error(input, "; attribute '", info.name, "' must be ", KindText(info.kind));
    }
  }
  for (const auto& attribute : signature.attributes) {
    if (!attribute.optional && !input.attributes.Has(attribute.key)) {
      return rules::Error(input, "; attribute '", InfoOf(attribute.key).name, "' is missing");
    }
  }
  int64_t called = static_cast<int64_t>(input.called.size());
  if (signature.any_number_called ? called < signature.least_called : called != signature.called) {
    return rules::Error(input, "; the op calls ", called, " computations; expected ",
                        signature.any_number_called ? Cat("at least ", signature.least_called)
                                                    : Cat(signature.called));
  }
  return OkStatus();
}

Result<Shape> Dispatch(const InferenceInput& input) {
  switch (input.opcode) {
#define KILN_OP(Name, text, operands, attributes, inference, ...) \
  case Opcode::k##Name:                                           \
    return rules::Infer##inference(input);
#include "ops/ops.def"
  }
  return InvalidArgument("unknown opcode ", static_cast<int>(input.opcode));
}

// Tuples can have thousands of leaves; a message needs the first few.
constexpr size_t kMostShapes = 8;

std::string Abbreviated(const Shape& shape) {
  constexpr size_t kLongest = 160;
  std::string text = shape.ToString();
  if (text.size() > kLongest) text = Cat(text.substr(0, kLongest), "...");
  return text;
}

}  // namespace

Result<Shape> InferShape(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(CheckSignature(input));
  KILN_ASSIGN_OR_RETURN(Shape shape, Dispatch(input));
  Status valid = ValidateShape(shape);
  if (!valid.ok()) return rules::Error(input, "; the result's ", valid.message());
  return shape;
}

namespace rules {

std::string Describe(const InferenceInput& input) {
  std::string text(OpcodeName(input.opcode));
  size_t count = input.operands.size();
  if (count == 0) return text;
  text += count == 1 ? ": operand has shape " : ": operands have shapes ";
  for (size_t i = 0; i < count && i < kMostShapes; ++i) {
    if (i > 0) text += i + 1 == count ? " and " : ", ";
    text += Abbreviated(*input.operands[i]);
  }
  if (count > kMostShapes) text += Cat(" and ", count - kMostShapes, " more");
  return text;
}

std::string ShapeList(std::span<const Shape> shapes) {
  std::string text = "(";
  for (size_t i = 0; i < shapes.size() && i < kMostShapes; ++i) {
    text += Cat(i > 0 ? ", " : "", Abbreviated(shapes[i]));
  }
  if (shapes.size() > kMostShapes) text += Cat(" and ", shapes.size() - kMostShapes, " more");
  return text + ")";
}

Status RequireArrays(const InferenceInput& input) {
  for (const Shape* shape : input.operands) {
    if (!shape->is_array()) {
      return Error(input,
                   input.operands.size() == 1 ? "; it must be an array" : "; they must be arrays");
    }
  }
  return OkStatus();
}

Status RequireTypes(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireArrays(input));
  uint32_t mask = InfoOf(input.opcode).types;
  for (const Shape* shape : input.operands) {
    if (!(TypeMaskOf(shape->type()) & mask)) {
      return Error(input, "; the element type must be ", MaskText(mask));
    }
  }
  return OkStatus();
}

Status RequireDeclaredArray(const InferenceInput& input) {
  if (!input.declared) return Error(input, "; the result's shape is missing");
  if (!input.declared->is_array()) {
    return Error(input, "; the result's shape is ", Abbreviated(*input.declared),
                 "; it must be an array");
  }
  return ValidateShape(*input.declared).WithContext(OpcodeName(input.opcode));
}

Status RequireAxes(const InferenceInput& input, std::string_view what, const Ints& axes,
                   int64_t rank) {
  // Ranks are at most kMaxRank, so a mask of the seen ones fits.
  static_assert(kMaxRank <= 64);
  uint64_t seen = 0;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= rank) {
      return Error(input, "; ", what, " has ", axis, "; expected a dimension from 0 to below ",
                   rank);
    }
    if (seen & (uint64_t{1} << axis)) return Error(input, "; ", what, " has ", axis, " twice");
    seen |= uint64_t{1} << axis;
  }
  return OkStatus();
}

Dimension NumberAt(const InferenceInput& input, Attr key, int64_t position, int64_t plain) {
  const Dimension* size = input.attributes.SymbolicAt(key, position);
  return size ? *size : Dimension(plain);
}

Result<Dimension> Symbolic(const InferenceInput& input, int64_t dimension, Result<Dimension> size) {
  if (size.ok()) return size;
  return Unimplemented(Describe(input), "; dimension ", dimension,
                       " of the result: ", size.status().message());
}

Shape WithoutLayout(Shape shape) {
  if (shape.is_array()) shape.set_minor_to_major({});
  for (Shape& element : shape.mutable_elements()) element = WithoutLayout(std::move(element));
  return shape;
}

std::string MaskText(uint32_t mask) {
  struct Bit {
    uint32_t bit;
    std::string_view text;
  };
  constexpr Bit kBits[] = {{kPredType, "pred"},
                           {kIntType, "an integer"},
                           {kFloatType, "a float"},
                           {kComplexType, "a complex"}};
  std::string text;
  for (const Bit& b : kBits) {
    if (!(mask & b.bit)) continue;
    mask &= ~b.bit;
    if (!text.empty()) text += mask == 0 ? " or " : ", ";
    text += b.text;
  }
  return text == "pred" ? text : text + " type";
}

}  // namespace rules
}  // namespace kiln
