// The dimension numbers of gather and scatter. The two are mirror images: slices of the operand are
// read by a gather, and written by a scatter, whose attributes call them windows.
#pragma once

#include "ops/attributes.h"
#include "ops/op.h"

namespace kiln {

// The attributes under one name for both ops.
struct SliceAttributes {
  Attr slice_dims, dropped_dims, start_map, operand_batch, indices_batch;
};
SliceAttributes SliceAttributesOf(Opcode opcode);

// An array of slices is a gather's result, or a scatter's updates. Its element at `index` is the
// operand's element at, for each dimension d of the operand (absent terms count as 0),
//   start[component[d]] + index[slice[d]] + index[outside[batch[d]]]
// where start is the index vector at index[outside[...]].
struct SliceMap {
  int64_t index_vector_dim = 0;
  // By dimension of the operand; -1 for none.
  Ints slice;      // the dimension of the slices' array that runs within a slice
  Ints component;  // the component of the index vector that says where slices begin
  Ints batch;      // the dimension of the indices that it goes along with
  // By dimension of the indices: the dimension of the slices' array; -1 of the index vector's.
  Ints outside;
};
// For attributes checked by inference.
SliceMap SliceMapOf(Opcode opcode, const Attributes& attributes, int64_t operand_rank,
                    int64_t indices_rank);

}  // namespace kiln
