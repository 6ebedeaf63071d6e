#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;

int64_t WidthOf(const Instruction* x) { return IsPred(x) ? 1 : BitWidth(x->shape().type()); }

// reduce-precision(x) => x   where the precision is at least that of x's type   (kept on products,
// so that they are rounded before a sum)
// reduce-precision(reduce-precision(x)) => reduce-precision(x)   where the outer one has at least
// the bits of the inner one
Instruction* ReducePrecision(Instruction* i) {
  Instruction* x = i->operand(0);
  struct Bits {
    int64_t exponent, mantissa;
  };
  auto bits = [](const Instruction* r) {
    return Bits{r->attributes().Int(Attr::kExponentBits), r->attributes().Int(Attr::kMantissaBits)};
  };
  auto holds = [](Bits a, Bits b) { return a.exponent >= b.exponent && a.mantissa >= b.mantissa; };
  const Bits wanted = bits(i);
  const FloatFormat type = *FormatOf(x->shape().type());
  if (holds(wanted, {type.exponent, type.mantissa}) && x->opcode() != Opcode::kMultiply) return x;
  // The inner one is the result.
  if (x->opcode() == Opcode::kReducePrecision && holds(wanted, bits(x))) return x;
  return nullptr;
}

}  // namespace

Instruction* BitRules(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kReducePrecision:
      return ReducePrecision(i);
    case Opcode::kGetDimensionSize:
      // get-dimension-size(x) => n
      return SplatNumber(i, i->shape(),
                         static_cast<double>(i->operand(0)->shape().dim(i->dimensions()[0])));
    case Opcode::kBitcastConvert: {
      Instruction* x = i->operand(0);
      // bitcast-convert(x) => x   where the type is x's already
      if (x->shape() == i->shape()) return x;
      if (x->opcode() != Opcode::kBitcastConvert) return nullptr;
      // bitcast-convert(bitcast-convert(x)) => bitcast-convert(x)   where two of the three types
      // have one width   (the dimensions are then the same)
      int64_t a = WidthOf(x->operand(0)), b = WidthOf(x), c = WidthOf(i);
      if (a != b && b != c && a != c) return nullptr;
      return Make(i, Opcode::kBitcastConvert, {x->operand(0)});
    }
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
