#include "ops/accuracy.h"

namespace kiln {

double Accuracy::Of(ElementType type) const {
  if (type == ElementType::kF16) return f16;
  if (type == ElementType::kBF16) return bf16;
  return type == ElementType::kF32 ? f32 : f64;
}

const Accuracy* AccuracyOf(Opcode opcode) {
  const Accuracy& accuracy = InfoOf(opcode).accuracy;
  return accuracy.f64 > 0 ? &accuracy : nullptr;
}

const ComplexAccuracy* ComplexAccuracyOf(Opcode opcode) {
  struct Row {
    Opcode opcode;
    ComplexAccuracy accuracy;
  };
  static constexpr Row kRows[] = {
#define KILN_COMPLEX_ACCURACY(Name, c64, c128, counts) \
  {Opcode::k##Name, {c64, c128, ComplexAccuracy::counts}},
#include "ops/complex_accuracy.def"
#undef KILN_COMPLEX_ACCURACY
  };
  for (const Row& row : kRows) {
    if (row.opcode == opcode) return &row.accuracy;
  }
  return nullptr;
}

}  // namespace kiln
