// The slices of an array that a gather reads and a scatter writes.
#pragma once

#include <optional>

#include "grad/builder.h"
#include "ops/gather_scatter.h"

namespace kiln::grad {

// Of a gather, or of the first operand of a scatter.
class Slices {
 public:
  explicit Slices(const ir::Instruction* op);

  ir::Instruction* indices() const { return indices_; }
  // The dimensions of the array of all slices that are the indices', in order.
  Ints Outside() const;
  // The indices by which a scatter writes what the gather reads: those of slices at the edge, which
  // a gather clamps and a scatter drops.
  ir::Instruction* ClampedIndices(Builder& b) const;
  // Whether each slice is inside the array, as a pred in the dimensions of all slices; null if all
  // are known to be.
  ir::Instruction* Inside(Builder& b, ir::Instruction* slices) const;

  // x + scatter of `slices` at the indices.
  ir::Instruction* AddTo(Builder& b, ir::Instruction* x, ir::Instruction* indices,
                         ir::Instruction* slices) const;
  // The scatter that puts `slices` into x. Of those that collide the last one stays.
  ir::Instruction* PutInto(Builder& b, ir::Instruction* x, ir::Instruction* slices) const;
  // The slices of x.
  ir::Instruction* Gather(Builder& b, ir::Instruction* x) const;

 private:
  bool HasVectors() const { return map_.index_vector_dim < indices_->shape().rank(); }
  std::optional<int64_t> LastStart(size_t d) const;
  ir::Instruction* ComputedLastStart(Builder& b, size_t d) const;
  ir::Instruction* LastStarts(Builder& b) const;
  Attributes Of(Opcode opcode) const;
  ir::Instruction* Scatter(Builder& b, ir::Instruction* x, ir::Instruction* indices,
                           ir::Instruction* slices, ir::Computation* combiner) const;

  const ir::Instruction* op_;
  ir::Instruction *array_, *indices_;
  SliceMap map_;
  std::vector<Dimension> sizes_;  // of a slice, by the array's dimension
};

}  // namespace kiln::grad
