// The dimension numbers of gather and scatter. The two are mirror images: the slices of a gather's
// result correspond to the windows of a scatter's updates.
#pragma once

#include "ops/attributes.h"
#include "ops/op.h"

namespace kiln {

// The attributes under one name for both ops.
struct WindowAttributes {
  Attr window_dims, dropped_dims, start_map, operand_batch, indices_batch;
};
WindowAttributes WindowAttributesOf(Opcode opcode);

// An array of windows is a gather's result, or a scatter's updates. Its element at `index` is the
// operand's element at, for each dimension d of the operand (absent terms count as 0),
//   start[component[d]] + index[window[d]] + index[outside[batch[d]]]
// where start is the index vector at index[outside[...]].
struct WindowMap {
  int64_t index_vector_dim = 0;
  // By dimension of the operand; -1 for none.
  Ints window;     // the dimension of the windows' array that runs within a window
  Ints component;  // the component of the index vector that says where windows begin
  Ints batch;      // the dimension of the indices that it goes along with
  // By dimension of the indices: the dimension of the windows' array; -1 of the index vector's.
  Ints outside;
};
// For attributes checked by inference.
WindowMap WindowMapOf(Opcode opcode, const Attributes& attributes, int64_t operand_rank,
                      int64_t indices_rank);

}  // namespace kiln
