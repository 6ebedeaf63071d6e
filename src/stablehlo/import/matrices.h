// Helpers for arrays of matrices, [batch, rows, columns], in HLO's ops.
#pragma once

#include <functional>

#include "stablehlo/import/builder.h"

namespace kiln::stablehlo {

// The number of columns factorised one by one, by a loop over all of them in each step. More
// columns are split into two halves, updated by matrix products; not too often, so that programs
// stay short. For matrices with this number of columns:
int64_t ColumnsOfALoop(int64_t columns);
// The size of the first half, for more columns.
int64_t FirstHalf(int64_t columns, int64_t of_a_loop);

inline Shape ArrayShape(ElementType type, const Ints& sizes) { return Shape(type, sizes); }

// x broadcast to a larger shape, with its dimensions mapped to these.
ir::Instruction* Along(Builder& b, const Shape& shape, ir::Instruction* x, Ints dimensions);
// The indices along a dimension, s32.
ir::Instruction* Places(Builder& b, const Ints& sizes, int64_t dimension);
// Rows and columns from the first ones to below the last ones.
ir::Instruction* Block(Builder& b, ir::Instruction* x, int64_t first_row, int64_t last_row,
                       int64_t first_column, int64_t last_column);
// Column i, [batch, rows], where i is a scalar.
ir::Instruction* ColumnAt(Builder& b, ir::Instruction* x, ir::Instruction* i);
// Row i of matrices, or element i of vectors.
ir::Instruction* RowAt(Builder& b, ir::Instruction* x, ir::Instruction* i);
// |x|, or |re| + |im|, sufficient to compare magnitudes. Infinite for a NaN.
ir::Instruction* Magnitude(Builder& b, ir::Instruction* x);
// x * y, of each pair of matrices.
ir::Instruction* Product(Builder& b, ir::Instruction* x, ir::Instruction* y);

// The state after steps 0 to below `count`. `turn` computes the next state from its parts and the
// step number, an s32.
Values Loop(Builder& b, Values state, int64_t count,
            const std::function<Values(Builder&, ir::Instruction*, const Values&)>& turn);

}  // namespace kiln::stablehlo
