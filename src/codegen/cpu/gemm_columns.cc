// Register tiles of narrow gemms: vectors run along the rows of A, which are contiguous, and C's
// few columns are accumulators side by side. The tile is transposed at its end.
#include "codegen/cpu/gemm_internal.h"
#include "codegen/cpu/transpose.h"

namespace kiln::codegen::gemm {

using llvm::Value;

void ColumnsStep(Emitter& e, const TileOperands& o, Value* a, Value* b, int step,
                 std::vector<Value*>& accumulators) {
  const int lanes = e.s.lanes;
  const auto columns = static_cast<size_t>(e.p.n);
  std::vector<Value*> rows;
  for (int i = 0; i < e.s.mr; i += lanes) {
    Value* from = e.Offset(a, e.Add(e.Scale(o.a_m, i), e.Scale(o.a_k, step)));
    rows.push_back(e.LoadElements(Emitter::Side::kA, lanes, {from, from, 0}, nullptr));
  }
  for (size_t j = 0; j < columns; ++j) {
    Value* at =
        e.Offset(b, e.Add(e.Scale(o.b_k, step), e.Int(static_cast<int64_t>(j) * e.b_bytes)));
    Value* splat =
        e.b.CreateVectorSplat(static_cast<unsigned>(lanes), e.LoadB(1, {at, at, 0}, nullptr));
    for (size_t v = 0; v < rows.size(); ++v) {
      Value*& accumulator = accumulators[v * columns + j];
      accumulator = e.MulAdd(rows[v], splat, accumulator);
    }
  }
  e.Fence();
}

std::vector<Value*> RowsOfColumns(Emitter& e, const std::vector<Value*>& accumulators) {
  const auto lanes = static_cast<size_t>(e.s.lanes), columns = static_cast<size_t>(e.p.n);
  const auto vectors = static_cast<size_t>(e.s.nv), rows = static_cast<size_t>(e.s.mr);
  std::vector<Value*> tile(rows * vectors);
  for (size_t row = 0; row < rows; row += lanes) {
    for (size_t v = 0; v < vectors; ++v) {
      std::vector<Value*> square;
      for (size_t j = v * lanes; j < (v + 1) * lanes; ++j) {
        square.push_back(j < columns ? accumulators[row / lanes * columns + j]
                                     : llvm::PoisonValue::get(e.vector));
      }
      SwapBlocks(e.b, square, 1);
      for (size_t i = 0; i < lanes; ++i) tile[(row + i) * vectors + v] = square[i];
    }
  }
  return tile;
}

}  // namespace kiln::codegen::gemm
