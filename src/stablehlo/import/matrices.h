// Arrays of matrices, [batch, rows, columns], for what is written of them with HLO's ops.
#pragma once

#include <functional>

#include "stablehlo/import/builder.h"

namespace kiln::stablehlo {

// How many columns factorisations do one by one, by a loop that walks over all of them each time.
// More of them are cut in two halves, for which products do the work; not too often, so that
// programs stay short. Of matrices with so many columns to do:
int64_t ColumnsOfALoop(int64_t columns);
// How many of them are in the first half, where there are more than these.
int64_t FirstHalf(int64_t columns, int64_t of_a_loop);

inline Shape ArrayShape(ElementType type, const Ints& sizes) { return Shape(type, sizes); }

// x in a larger shape, of which its dimensions are these.
ir::Instruction* Along(Builder& b, const Shape& shape, ir::Instruction* x, Ints dimensions);
// The numbers of the places along a dimension, s32.
ir::Instruction* Places(Builder& b, const Ints& sizes, int64_t dimension);
// Rows and columns from the first ones to below the last ones.
ir::Instruction* Block(Builder& b, ir::Instruction* x, int64_t first_row, int64_t last_row,
                       int64_t first_column, int64_t last_column);
// Column i, [batch, rows], where i is a scalar.
ir::Instruction* ColumnAt(Builder& b, ir::Instruction* x, ir::Instruction* i);
// Row i of matrices, or element i of vectors.
ir::Instruction* RowAt(Builder& b, ir::Instruction* x, ir::Instruction* i);
// |x|, or |re| + |im|, which is as good to find large ones by. A NaN's is infinite.
ir::Instruction* Magnitude(Builder& b, ir::Instruction* x);
// x * y, of each pair of matrices.
ir::Instruction* Product(Builder& b, ir::Instruction* x, ir::Instruction* y);

// The state after turns 0 to below `count`. `turn` makes the state's next value from its parts and
// the number of the turn, an s32.
Values Loop(Builder& b, Values state, int64_t count,
            const std::function<Values(Builder&, ir::Instruction*, const Values&)>& turn);

}  // namespace kiln::stablehlo
