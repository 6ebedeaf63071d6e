#include "support/literal.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/strings.h"

namespace kiln::testing {

std::vector<Literal> RandomArguments(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments;
  for (const ir::Instruction* p : module.entry()->parameters()) {
    arguments.push_back(SampleLiteral(p->shape(), seed + arguments.size()));
  }
  return arguments;
}

std::string Difference(const Literal& expected, const Literal& actual, double relative,
                       double absolute) {
  if (!expected.shape().SameTypeAndDimensions(actual.shape())) {
    return Cat("shape ", actual.shape(), ", expected ", expected.shape());
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    std::string inner =
        Difference(expected.elements()[i], actual.elements()[i], relative, absolute);
    if (!inner.empty()) return Cat("element ", i, ": ", inner);
  }
  if (!expected.shape().is_array()) return "";
  if (IsComplex(expected.shape().type())) {
    // Part by part, as arrays of reals.
    std::vector<Dimension> dimensions = expected.shape().dimensions();
    dimensions.push_back(2);
    const Shape parts(PartOf(expected.shape().type()), std::move(dimensions));
    Literal e(parts), a(parts);
    std::copy_n(expected.data(), e.byte_size(), e.data());
    std::copy_n(actual.data(), a.byte_size(), a.data());
    return Difference(e, a, relative, absolute);
  }
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    bool same;
    if (IsFloat(expected.shape().type())) {
      double e = expected.AsDouble(i), a = actual.AsDouble(i);
      double bound = std::max(absolute, relative * std::max(std::abs(e), std::abs(a)));
      same = e == a || (std::isnan(e) && std::isnan(a)) || std::abs(e - a) <= bound;
    } else {
      same = expected.AsInt(i) == actual.AsInt(i);
    }
    if (!same) {
      return Cat("element ", i, " of ", expected.shape(), ": ", actual.AsDouble(i), ", expected ",
                 expected.AsDouble(i));
    }
  }
  return "";
}

namespace {

// Adds what a value is made of, called computations as a whole.
void AddSources(const ir::Instruction* i, std::unordered_set<const ir::Instruction*>& sources) {
  if (!sources.insert(i).second) return;
  for (const ir::Instruction* operand : i->operands()) AddSources(operand, sources);
  for (const ir::Computation* c : i->called()) {
    for (ir::Instruction* inner : c->instructions()) AddSources(inner, sources);
  }
}

bool IsNarrowFloat(ElementType type) { return IsFloat(type) && WideOf(type) != type; }

// Whether the op moves elements, compares them or takes them as bits: its results are the same bits
// wherever it is run, if its operands are.
bool OnlyMoves(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBitcast:
    case Opcode::kBitcastConvert:
    case Opcode::kBroadcast:
    case Opcode::kCall:
    case Opcode::kClamp:
    case Opcode::kCompare:
    case Opcode::kComplex:
    case Opcode::kConcatenate:
    case Opcode::kConditional:
    case Opcode::kConstant:
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kFusion:
    case Opcode::kGather:
    case Opcode::kGetDimensionSize:
    case Opcode::kGetTupleElement:
    case Opcode::kImag:
    case Opcode::kIota:
    case Opcode::kIsFinite:
    case Opcode::kMap:
    case Opcode::kMaximum:
    case Opcode::kMinimum:
    case Opcode::kOptBarrier:
    case Opcode::kPad:
    case Opcode::kParameter:
    case Opcode::kReal:
    case Opcode::kReshape:
    case Opcode::kReverse:
    case Opcode::kScatter:
    case Opcode::kSelect:
    case Opcode::kSlice:
    case Opcode::kSort:
    case Opcode::kTopK:
    case Opcode::kTranspose:
    case Opcode::kTuple:
    case Opcode::kWhile:
      return true;
    default:
      return false;
  }
}

bool HasRounding(const Shape& shape) {
  if (shape.is_tuple()) return std::ranges::any_of(shape.elements(), HasRounding);
  return shape.is_array() && (IsFloat(shape.type()) || IsComplex(shape.type()));
}

// Whether evaluators may round the op's result differently. What is computed op by op as f32, and
// rounded to fewer bits, is the same where the f32 is the nearest number.
bool MayDiffer(const ir::Instruction* i) {
  if (!HasRounding(i->shape()) || OnlyMoves(i->opcode())) return false;
  if (i->opcode() == Opcode::kSelectAndScatter) {
    return i->called(1)->root()->opcode() == Opcode::kAdd;  // a sum, rounded once
  }
  if (i->opcode() == Opcode::kReduce || i->opcode() == Opcode::kReduceWindow) {
    return std::ranges::any_of(i->called(), [](const ir::Computation* c) {
      return std::ranges::any_of(c->instructions(), [](const ir::Instruction* x) {
        return HasRounding(x->shape()) && !OnlyMoves(x->opcode());
      });
    });
  }
  if (!i->shape().is_array() || !IsNarrowFloat(i->shape().type())) return true;
  const bool nearest = i->opcode() == Opcode::kSqrt;
  return !IsElementwise(i->opcode()) || (!nearest && IsTranscendental(i->opcode()));
}

// The place of a narrow float among all of its type, in which infinities are numbers.
int64_t PlaceOf(const FloatFormat& format, uint64_t bits) {
  const auto magnitude = static_cast<int64_t>(bits & format.magnitude_mask());
  return bits & format.sign_bit() ? -magnitude : magnitude;
}

// Whether two numbers that are not the same are next to each other, or a step more than the bound
// apart. What is too large is a step above the largest number, also where it is a NaN.
bool IsStepOff(const FloatFormat& format, uint64_t x, uint64_t y, double bound) {
  if (IsNanBits(format, x)) std::swap(x, y);
  if (IsNanBits(format, x)) return false;
  if (IsNanBits(format, y)) {
    return format.specials != Specials::kIeee && (x & format.magnitude_mask()) == format.largest();
  }
  if (std::abs(PlaceOf(format, x) - PlaceOf(format, y)) <= 1) return true;
  const double u = DecodeFloat<double>(format, x), v = DecodeFloat<double>(format, y);
  if (!std::isfinite(u) || !std::isfinite(v)) return false;
  const uint64_t larger = std::abs(u) > std::abs(v) ? x : y;
  const double size = std::max(std::abs(u), std::abs(v));
  const double step = size - std::abs(DecodeFloat<double>(format, larger - 1));
  return std::abs(u - v) <= step + bound * std::max(size, 1.0);
}

// "" where two arrays of a narrow float type have the same numbers, or such as may be computed.
std::string NarrowDifference(const Literal& expected, const Literal& actual, bool exact,
                             double bound) {
  const Shape& shape = expected.shape();
  if (!shape.SameTypeAndDimensions(actual.shape())) {
    return Cat("shape ", actual.shape(), ", expected ", shape);
  }
  const FloatFormat format = *FormatOf(shape.type());
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    const auto e = static_cast<uint64_t>(expected.data()[k]);
    const auto a = static_cast<uint64_t>(actual.data()[k]);
    const bool same = e == a || (IsNanBits(format, e) && IsNanBits(format, a));
    if (same || (!exact && IsStepOff(format, e, a, bound))) continue;
    return Cat("element ", k, " of ", shape, ": ", actual.AsDouble(k), " (bits ",
               static_cast<int64_t>(a), "), expected ", expected.AsDouble(k), " (bits ",
               static_cast<int64_t>(e), exact ? ")" : "), or a step from it");
  }
  return "";
}

struct Bound {
  double size;
  bool exact;
};

Bound BoundOf(const ir::Instruction* i, double bound) {
  std::unordered_set<const ir::Instruction*> sources;
  AddSources(i, sources);
  const bool exact = std::ranges::none_of(sources, MayDiffer);
  for (const ir::Instruction* source : sources) {
    if (!source->shape().is_array()) continue;
    if (source->shape().type() == ElementType::kBF16) bound = std::max(bound, 0x1p-4);
    if (source->shape().type() == ElementType::kF16) bound = std::max(bound, 0x1p-7);
  }
  return {bound, exact};
}

std::string DifferenceWithin(const Literal& expected, const Literal& actual, const Bound& bound) {
  if (expected.shape().is_array() && IsNarrowFloat(expected.shape().type())) {
    return NarrowDifference(expected, actual, bound.exact, bound.size);
  }
  return Difference(expected, actual, bound.size, bound.size);
}

}  // namespace

std::string DifferenceOf(const ir::Module& module, const Literal& expected, const Literal& actual,
                         double bound) {
  const ir::Instruction* root = module.entry()->root();
  bool each = root->opcode() == Opcode::kTuple && expected.shape().is_tuple() &&
              expected.elements().size() == actual.elements().size();
  if (!each) {
    return DifferenceWithin(expected, actual, BoundOf(root, bound));
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    const Bound of_result = BoundOf(root->operand(static_cast<int64_t>(i)), bound);
    std::string inner = DifferenceWithin(expected.elements()[i], actual.elements()[i], of_result);
    if (!inner.empty()) return Cat("result ", i, ": ", inner);
  }
  return "";
}

}  // namespace kiln::testing
