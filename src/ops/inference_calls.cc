// Ops that are functions outside generated code: decompositions, transforms, custom calls.
#include <algorithm>
#include <unordered_set>

#include "ops/inference_rules.h"
#include "tensor/call_signature.h"

namespace kiln::rules {
namespace {

bool MayDiffer(const Dimension& dimension, int64_t size) {
  return !dimension.is_symbolic() && !(dimension == Dimension(size));
}

// The last two dimensions are a square matrix's.
Status RequireSquare(const InferenceInput& input, std::string_view what, const Shape& shape) {
  if (shape.rank() < 2) {
    return Error(input, "; ", what, " must have two dimensions at least");
  }
  if (!(shape.dimension(shape.rank() - 2) == shape.dimension(shape.rank() - 1))) {
    return Error(input, "; the last two dimensions of ", what, " must be equal");
  }
  return OkStatus();
}

Status RequireWord(const InferenceInput& input, Attr key,
                   std::initializer_list<std::string_view> words) {
  const std::string& word = input.attributes.Text(key);
  if (std::find(words.begin(), words.end(), word) != words.end()) return OkStatus();
  return Error(input, "; ", InfoOf(key).name, " is '", word, "'; expected ", Join(words, ", "));
}

// The part of a shape at a path into tuples, or null.
const Shape* PartOf(const Shape& shape, const Ints& index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    if (!at->is_tuple() || i < 0 || i >= std::ssize(at->elements())) return nullptr;
    at = &at->elements()[static_cast<size_t>(i)];
  }
  return at;
}

}  // namespace

Result<Shape> InferFft(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireWord(input, Attr::kFftType, {"FFT", "IFFT", "RFFT", "IRFFT"}));
  const std::string& type = input.attributes.Text(Attr::kFftType);
  const Ints& length = input.attributes.IntsOf(Attr::kFftLength);
  const Shape& operand = OperandShape(input, 0);
  const int64_t count = std::ssize(length);
  if (count < 1 || count > 3) {
    return Error(input, "; fft_length has ", count, " numbers; expected 1 to 3");
  }
  if (count > operand.rank()) {
    return Error(input, "; fft_length has ", count, " numbers, more than there are dimensions");
  }
  for (int64_t n : length) {
    if (n < 0) return Error(input, "; fft_length has ", n, "; expected 0 or more");
  }
  const bool from_real = type == "RFFT", to_real = type == "IRFFT";
  ElementType from = operand.type(), to = from;
  if (from_real) {
    if (from != ElementType::kF32 && from != ElementType::kF64) {
      return Error(input, "; RFFT takes f32 or f64");
    }
    to = from == ElementType::kF32 ? ElementType::kC64 : ElementType::kC128;
  } else {
    if (!IsComplex(from)) return Error(input, "; ", type, " takes a complex type");
    if (to_real) to = from == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
  }
  const int64_t first = operand.rank() - count;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = length[static_cast<size_t>(i)];
    const bool halved = to_real && i + 1 == count && n > 0;
    const int64_t expected = halved ? n / 2 + 1 : n;
    // No numbers of one coefficient are n / 2 + 1 coefficients, too.
    if (to_real && i + 1 == count && n == 0 && operand.dimension(first + i) == 1) continue;
    if (MayDiffer(operand.dimension(first + i), expected)) {
      return Error(input, "; dimension ", first + i, " must be of size ", expected, ", as ", type,
                   " is of fft_length ", AttrValueText(length));
    }
  }
  Shape result = WithoutLayout(operand);
  result.set_type(to);
  const int64_t n = length.back();
  if (from_real && n > 0) result.set_dimension(operand.rank() - 1, n / 2 + 1);
  if (to_real) result.set_dimension(operand.rank() - 1, n);
  return result;
}

Result<Shape> InferCholesky(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireSquare(input, "it", OperandShape(input, 0)));
  return WithoutLayout(OperandShape(input, 0));
}

Result<Shape> InferTriangularSolve(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape &a = OperandShape(input, 0), &b = OperandShape(input, 1);
  if (a.type() != b.type()) return Error(input, "; their element types must be equal");
  KILN_RETURN_IF_ERROR(RequireSquare(input, "a", a));
  KILN_RETURN_IF_ERROR(
      RequireWord(input, Attr::kTransposeA, {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}));
  if (a.rank() != b.rank()) {
    return Error(input, "; they must have the same number of dimensions");
  }
  for (int64_t d = 0; d + 2 < a.rank(); ++d) {
    if (!(a.dimension(d) == b.dimension(d))) {
      return Error(input, "; their dimensions before the last two must be equal");
    }
  }
  const bool left = input.attributes.Bool(Attr::kLeftSide);
  const int64_t shared = left ? b.rank() - 2 : b.rank() - 1;
  if (!(a.dimension(a.rank() - 1) == b.dimension(shared))) {
    return Error(input, "; dimension ", shared, " of b must be of the size of a, which stands on ",
                 left ? "its left" : "its right");
  }
  return WithoutLayout(b);
}

Result<Shape> InferCustomCall(const InferenceInput& input) {
  const std::string& target = input.attributes.Text(Attr::kCustomCallTarget);
  if (target.empty()) return Error(input, "; custom_call_target is empty");
  if (target.starts_with("kiln.")) {
    return Error(input, "; the library has no custom_call_target '", target, "'");
  }
  if (!input.declared) return Error(input, "; the result's shape is missing");
  Status valid = ValidateShape(*input.declared);
  if (!valid.ok()) return Error(input, "; the result's ", valid.message());
  std::unordered_set<const Shape*> seen;
  for (const OperandAlias& alias : input.attributes.Aliases(Attr::kOutputToOperandAliasing)) {
    const Shape* to = PartOf(*input.declared, alias.output_index);
    const Shape* from = nullptr;
    if (alias.operand >= 0 && alias.operand < std::ssize(input.operands)) {
      from = PartOf(OperandShape(input, alias.operand), alias.operand_index);
    }
    if (!to || !from) {
      return Error(input, "; output_to_operand_aliasing names ",
                   to ? Cat("operand ", alias.operand, " at ", AttrValueText(alias.operand_index))
                      : Cat("the result at ", AttrValueText(alias.output_index)),
                   ", which is not there");
    }
    if (!to->is_array() || !to->SameTypeAndDimensions(*from)) {
      return Error(input, "; output_to_operand_aliasing is of ", *from, " and ", *to,
                   "; they must be equal arrays");
    }
    if (ApiVersionByName(input.attributes.Text(Attr::kApiVersion)) == kTypedApiVersion &&
        to->minor_to_major() != from->minor_to_major()) {
      return Error(input, "; output_to_operand_aliasing is of ", from->ToString(true), " and ",
                   to->ToString(true), "; their layouts must be equal");
    }
    for (const Shape* part : {to, from}) {
      if (!seen.insert(part).second) {
        return Error(input, "; output_to_operand_aliasing names one array twice");
      }
    }
  }
  return *input.declared;
}

}  // namespace kiln::rules
