#include "interp/work.h"

#include <algorithm>

#include "base/integers.h"
#include "ir/analysis/cost.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

int64_t ElementsOf(const Shape& shape) {
  if (shape.is_array()) return shape.num_elements();
  int64_t elements = 0;
  for (const Shape& element : shape.elements()) {
    elements = SaturatingAdd(elements, ElementsOf(element));
  }
  return elements;
}

int64_t OperandElementsOf(const Instruction& i) {
  int64_t elements = 0;
  for (const Instruction* operand : i.operands()) {
    elements = SaturatingAdd(elements, ElementsOf(operand->shape()));
  }
  return elements;
}

// The largest number of elements inside a window.
int64_t SeenBy(const Instruction& i) {
  int64_t seen = 1, d = 0;
  for (const WindowDimension& w : i.attributes().Window(Attr::kWindow)) {
    seen = SaturatingMultiply(
        seen, std::min(w.size, std::max<int64_t>(i.operand(0)->shape().dim(d++), 1)));
  }
  return seen;
}

// The terms of the sums of a dot or a convolution.
int64_t TermsOf(const Instruction& i) {
  int64_t terms = ElementsOf(i.shape());
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  if (i.opcode() == Opcode::kDot) {
    for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
      terms = SaturatingMultiply(terms, std::max<int64_t>(lhs.dim(d), 1));
    }
    return terms;
  }
  const ConvolutionDimensions& d = i.attributes().Convolution(Attr::kDimLabels);
  for (int64_t at : d.kernel_spatial) terms = SaturatingMultiply(terms, rhs.dim(at));
  return SaturatingMultiply(terms, rhs.dim(d.kernel_input_feature));
}

// Of an elementwise op, for each element.
int64_t WorkOfFunction(Opcode opcode) {
  if (OpCostOf(opcode) == OpCost::kSpecialFunction) return 64;
  return OpCostOf(opcode) == OpCost::kFunction ? 8 : 1;
}

int64_t UnboundedWorkOf(const Instruction& i) {
  // Their values exist already.
  if (HasTrait(i.opcode(), kStructural)) return i.operand_count();
  switch (i.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution:
      return SaturatingAdd(OperandElementsOf(i), SaturatingMultiply(4, TermsOf(i)));
    case Opcode::kReduce:
    case Opcode::kNonzero:
    case Opcode::kBooleanMask:
    case Opcode::kPrint:
      return SaturatingAdd(OperandElementsOf(i), ElementsOf(i.shape()));
    case Opcode::kReduceWindow: {
      const int64_t places = ElementsOf(i.shape());
      return SaturatingAdd(OperandElementsOf(i),
                           SaturatingMultiply(4, SaturatingMultiply(places, SeenBy(i))));
    }
    case Opcode::kSelectAndScatter: {
      const int64_t places = ElementsOf(i.operand(1)->shape());
      return SaturatingAdd(OperandElementsOf(i),
                           SaturatingMultiply(4, SaturatingMultiply(places, SeenBy(i))));
    }
    case Opcode::kScatter:
    case Opcode::kBatchNormGrad:
    case Opcode::kBatchNormInference:
    case Opcode::kBatchNormTraining:
      return SaturatingMultiply(4, OperandElementsOf(i));
    case Opcode::kSort:
    case Opcode::kTopK:
    case Opcode::kUnique:
      return SaturatingMultiply(64, OperandElementsOf(i));
    case Opcode::kRng:
    case Opcode::kRngBitGenerator:
      return SaturatingMultiply(16, ElementsOf(i.shape()));
    case Opcode::kCholesky:
    case Opcode::kFft:
    case Opcode::kTriangularSolve:
      // In the evaluator's own, wider numbers.
      return SaturatingAdd(ElementsOf(i.shape()),
                           SaturatingMultiply(64, ir::OperationsOf(i).flops));
    default:
      return SaturatingAdd(i.operand_count(),
                           SaturatingMultiply(WorkOfFunction(i.opcode()), ElementsOf(i.shape())));
  }
}

}  // namespace

int64_t WorkOf(const Instruction& i) { return std::min(UnboundedWorkOf(i), int64_t{1} << 60); }

}  // namespace kiln::interp
