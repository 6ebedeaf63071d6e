// The builder that operations are imported with: its operands are a program's.
#pragma once

#include <string_view>
#include <vector>

#include "ir/builder.h"

namespace kiln::stablehlo {

using Values = std::vector<ir::Instruction*>;

class Builder : public ir::Builder {
 public:
  // Makes instructions at the end of the computation, named after an operation of the program. The
  // operation outlives the builder.
  explicit Builder(ir::Computation* computation, std::string_view op_name = {})
      : ir::Builder(computation, nullptr, op_name) {}

  using ir::Builder::Reshape;
  ir::Instruction* Reshape(ir::Instruction* x, const Ints& sizes) {
    return Reshape(x, std::vector<Dimension>(sizes.begin(), sizes.end()));
  }
  // A vector along one dimension of a shape.
  ir::Instruction* SpreadAlong(const Shape& shape, int64_t dimension, ir::Instruction* vector) {
    return Broadcast(vector, shape.dimensions(), {dimension});
  }
  // StableHLO's broadcast_in_dim, where dimensions of size 1 are repeated, too.
  ir::Instruction* BroadcastInDim(ir::Instruction* x, const std::vector<Dimension>& to,
                                  const Ints& dimensions);
};

}  // namespace kiln::stablehlo
