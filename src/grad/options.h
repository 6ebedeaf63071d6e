// What users choose about derivatives.
#pragma once

namespace kiln::grad {

struct Options {
  // Reverse mode of loops: the body is computed again from its state, the only thing that is stored
  // for each iteration. Otherwise the values that the derivative reads are stored.
  bool recompute_loops = false;
};

}  // namespace kiln::grad
