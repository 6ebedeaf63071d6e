#include "ops/gather_scatter.h"

#include <algorithm>

namespace kiln {

WindowAttributes WindowAttributesOf(Opcode opcode) {
  if (opcode == Opcode::kGather) {
    return {Attr::kOffsetDims, Attr::kCollapsedSliceDims, Attr::kStartIndexMap,
            Attr::kOperandBatchingDims, Attr::kStartIndicesBatchingDims};
  }
  return {Attr::kUpdateWindowDims, Attr::kInsertedWindowDims, Attr::kScatterDimsToOperandDims,
          Attr::kInputBatchingDims, Attr::kScatterIndicesBatchingDims};
}

WindowMap WindowMapOf(Opcode opcode, const Attributes& attributes, int64_t operand_rank,
                      int64_t indices_rank) {
  WindowAttributes names = WindowAttributesOf(opcode);
  WindowMap map;
  map.index_vector_dim = attributes.Int(Attr::kIndexVectorDim);
  map.window.assign(static_cast<size_t>(operand_rank), -1);
  map.component = map.batch = map.window;
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
  // The windows have the kept dimensions of the operand in order.
  const Ints& window_dims = attributes.IntsOf(names.window_dims);
  size_t next = 0;
  for (int64_t d = 0; d < operand_rank; ++d) {
    if (contains(attributes.IntsOf(names.dropped_dims), d) || contains(operand_batch, d)) continue;
    map.window[static_cast<size_t>(d)] = window_dims[next++];
  }
  // The other dimensions of the windows' array are the indices' dimensions, without the vector's.
  int64_t place = 0;
  for (int64_t d = 0; d < indices_rank; ++d) {
    if (d == map.index_vector_dim) continue;
    while (contains(window_dims, place)) ++place;
    map.outside[static_cast<size_t>(d)] = place++;
  }
  return map;
}

}  // namespace kiln
