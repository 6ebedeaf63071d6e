#include "ops/gather_scatter.h"

#include <algorithm>

namespace kiln {

SliceAttributes SliceAttributesOf(Opcode opcode) {
  if (opcode == Opcode::kGather) {
    return {Attr::kOffsetDims, Attr::kCollapsedSliceDims, Attr::kStartIndexMap,
            Attr::kOperandBatchingDims, Attr::kStartIndicesBatchingDims};
  }
  return {Attr::kUpdateWindowDims, Attr::kInsertedWindowDims, Attr::kScatterDimsToOperandDims,
          Attr::kInputBatchingDims, Attr::kScatterIndicesBatchingDims};
}

SliceMap SliceMapOf(Opcode opcode, const Attributes& attributes, int64_t operand_rank,
                    int64_t indices_rank) {
  SliceAttributes names = SliceAttributesOf(opcode);
  SliceMap map;
  map.index_vector_dim = attributes.Int(Attr::kIndexVectorDim);
  map.slice.assign(static_cast<size_t>(operand_rank), -1);
  map.component = map.batch = map.slice;
  map.outside.assign(static_cast<size_t>(indices_rank), -1);
  auto contains = [](const Ints& list, int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  const Ints& start_map = attributes.IntsOf(names.start_map);
  for (size_t c = 0; c < start_map.size(); ++c) {
    map.component[static_cast<size_t>(start_map[c])] = static_cast<int64_t>(c);
  }
  const Ints& operand_batch = attributes.IntsOf(names.operand_batch);
  const Ints& indices_batch = attributes.IntsOf(names.indices_batch);
  for (size_t b = 0; b < operand_batch.size(); ++b) {
    map.batch[static_cast<size_t>(operand_batch[b])] = indices_batch[b];
  }
  // The slices have the kept dimensions of the operand in order.
  const Ints& slice_dims = attributes.IntsOf(names.slice_dims);
  size_t next = 0;
  for (int64_t d = 0; d < operand_rank; ++d) {
    if (contains(attributes.IntsOf(names.dropped_dims), d) || contains(operand_batch, d)) continue;
    map.slice[static_cast<size_t>(d)] = slice_dims[next++];
  }
  // The other dimensions of the slices' array are the indices' dimensions, without the vector's.
  int64_t place = 0;
  for (int64_t d = 0; d < indices_rank; ++d) {
    if (d == map.index_vector_dim) continue;
    while (contains(slice_dims, place)) ++place;
    map.outside[static_cast<size_t>(d)] = place++;
  }
  return map;
}

}  // namespace kiln
