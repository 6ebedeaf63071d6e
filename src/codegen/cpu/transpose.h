// Squares of elements, transposed in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// Swaps the blocks off the diagonal of a square of `rows`, vectors of as many lanes, half as large
// each time, down to blocks of `least` elements; with 1 the square is transposed.
inline void SwapBlocks(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& rows, int64_t least) {
  const auto width = static_cast<int64_t>(rows.size());
  for (int64_t d = width / 2; d >= least; d /= 2) {
    std::vector<int> low, high;
    for (int64_t l = 0; l < width; ++l) {
      low.push_back(static_cast<int>((l & d) ? width + l - d : l));
      high.push_back(static_cast<int>((l & d) ? width + l : l + d));
    }
    for (int64_t i = 0; i < width; ++i) {
      if (i & d) continue;
      llvm::Value *&x = rows[static_cast<size_t>(i)], *&y = rows[static_cast<size_t>(i + d)];
      llvm::Value* upper = b.CreateShuffleVector(x, y, low);
      y = b.CreateShuffleVector(x, y, high);
      x = upper;
    }
  }
}

}  // namespace kiln::codegen
