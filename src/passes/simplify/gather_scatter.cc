#include <algorithm>
#include <cstdlib>
#include <optional>

#include "ir/reducer.h"
#include "ops/gather_scatter.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/starts.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Slices = std::vector<SliceDimension>;

// Indices from `start` by `stride`, one for each position of the only dimension beside the index
// vector's.
struct Progression {
  int64_t start, stride;
};
std::optional<Progression> ProgressionOf(const Instruction* indices, int64_t vector_dim) {
  int64_t count = indices->shape().num_elements();
  while (indices->opcode() == Opcode::kReshape) indices = indices->operand(0);
  if (indices->opcode() == Opcode::kIota) {
    int64_t d = indices->attributes().Int(Attr::kIotaDimension);
    // A count past its type's range wraps.
    bool wraps = BitWidth(indices->shape().type()) < 64 &&
                 count > (int64_t{1} << (BitWidth(indices->shape().type()) - 1));
    if (indices->shape().dim(d) != count || wraps) return std::nullopt;
    return Progression{0, 1};
  }
  if (!indices->IsConstant() || count == 0) return std::nullopt;
  constexpr int64_t kMost = int64_t{1} << 31;
  Progression p{*IndexOf(indices, 0), 1};
  if (count > 1) p.stride = *IndexOf(indices, 1) / 2 - p.start / 2;
  if (p.start < 0 || p.start > kMost || std::abs(p.stride) > kMost) return std::nullopt;
  if (count > 1) p.stride = *IndexOf(indices, 1) - p.start;
  for (int64_t k = 0; k < count; ++k) {
    if (indices->literal().AsInt(k) != p.start + k * p.stride) return std::nullopt;
  }
  return p;
}

// gather(x) => transpose(slice(x))   where the index vectors have one component, in equal steps
Instruction* OfCountedGather(Instruction* i) {
  Instruction *x = i->operand(0), *indices = i->operand(1);
  const Attributes& a = i->attributes();
  const Ints& start_map = a.IntsOf(Attr::kStartIndexMap);
  int64_t vector_dim = a.Int(Attr::kIndexVectorDim);
  int64_t outside = indices->shape().rank() - (vector_dim < indices->shape().rank() ? 1 : 0);
  if (start_map.size() != 1 || outside != 1 || !a.IntsOf(Attr::kOperandBatchingDims).empty()) {
    return nullptr;
  }
  size_t along = static_cast<size_t>(start_map[0]);
  const Ints& sizes = a.IntsOf(Attr::kSliceSizes);
  SliceMap map = SliceMapOf(Opcode::kGather, a, x->shape().rank(), indices->shape().rank());
  if (map.slice[along] >= 0 || sizes[along] != 1 ||
      a.IntsOf(Attr::kCollapsedSliceDims).size() != 1) {
    return nullptr;
  }
  std::optional<Progression> p = ProgressionOf(indices, vector_dim);
  int64_t count = indices->shape().num_elements();
  int64_t size = x->shape().dim(static_cast<int64_t>(along));
  if (!p || count == 0 || p->start < 0 || p->stride < 1 || p->start >= size ||
      (count - 1) > (size - 1 - p->start) / p->stride) {
    return nullptr;
  }
  Slices slices;
  Ints permutation(sizes.size());
  std::vector<int64_t> dims(sizes.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    slices.push_back({0, sizes[d], 1});
    if (d == along) slices[d] = {p->start, p->start + (count - 1) * p->stride + 1, p->stride};
    dims[d] = d == along ? count : sizes[d];
    int64_t place = map.slice[d];
    if (d == along) place = *std::ranges::find_if(map.outside, [](int64_t o) { return o >= 0; });
    permutation[static_cast<size_t>(place)] = static_cast<int64_t>(d);
  }
  Instruction* slice = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kSlice, {x},
                                  {{Attr::kSlice, std::move(slices)}});
  return Make(i, Opcode::kTranspose, {slice}, {{Attr::kDimensions, std::move(permutation)}});
}

// gather(x, {s}) => reshape(dynamic-slice(x, s))   where there is one index vector
Instruction* OfOneIndex(Instruction* i) {
  Instruction *x = i->operand(0), *indices = i->operand(1);
  const Attributes& a = i->attributes();
  int64_t vector_dim = a.Int(Attr::kIndexVectorDim), rank = indices->shape().rank();
  int64_t components = vector_dim < rank ? indices->shape().dim(vector_dim) : 1;
  const Ints& sizes = a.IntsOf(Attr::kSliceSizes);
  // Each component is a slice of the vector.
  if (indices->shape().num_elements() != components || components == 0 ||
      (components > 1 && 2 * i->shape().num_elements() <= components)) {
    return nullptr;
  }
  Shape scalar = Shape::Scalar(indices->shape().type());
  std::vector<Instruction*> operands = {x};
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Ints& map = a.IntsOf(Attr::kStartIndexMap);
    auto in_map = std::ranges::find(map, static_cast<int64_t>(d));
    if (in_map == map.end()) {
      operands.push_back(SplatNumber(i, scalar, 0));
      continue;
    }
    Instruction* start = indices;
    if (components > 1) {
      int64_t k = in_map - map.begin();
      Slices slices(static_cast<size_t>(rank), {0, 1, 1});
      slices[static_cast<size_t>(vector_dim)] = {k, k + 1, 1};
      std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
      start = MakeShaped(i, ShapeOf(scalar.type(), dims), Opcode::kSlice, {start},
                         {{Attr::kSlice, std::move(slices)}});
    }
    if (rank > 0) start = MakeShaped(i, scalar, Opcode::kReshape, {start});
    operands.push_back(start);
  }
  Shape shape = ShapeOf(i->shape().type(), sizes);
  bool same = shape.SameDimensions(i->shape());
  Instruction* slice = MakeShaped(i, same ? i->shape() : shape, Opcode::kDynamicSlice,
                                  std::move(operands), {{Attr::kDynamicSliceSizes, sizes}});
  return same ? slice : Make(i, Opcode::kReshape, {slice});
}

// scatter(x, s, u) => x   where u has no elements
Instruction* OfScatter(Instruction* i) {
  if (i->operand_count() > 3) return nullptr;
  if (i->operand(2)->shape().num_elements() == 0) return i->operand(0);
  return nullptr;
}

// scatter(x, {c}, u) => dynamic-update-slice(x, op(x', u), c)   where there is one constant index
// vector, and x' is x cut to the slice   (x itself where the slice leaves it)
Instruction* OfOneUpdate(Instruction* i) {
  if (i->operand_count() != 3) return nullptr;
  Instruction *x = i->operand(0), *indices = i->operand(1), *updates = i->operand(2);
  const Attributes& a = i->attributes();
  const bool replaces = i->called(0)->root() == i->called(0)->parameter(1);
  const std::optional<Opcode> reducer = ir::ReducerOf(*i->called(0));
  const bool are_known = indices->shape().num_elements() == 0 || IndexOf(indices);
  if ((!replaces && !reducer) || !are_known || x->shape().rank() == 0) return nullptr;
  if (!a.IntsOf(SliceAttributesOf(Opcode::kScatter).operand_batch).empty()) return nullptr;
  SliceMap map = SliceMapOf(Opcode::kScatter, a, x->shape().rank(), indices->shape().rank());
  int64_t vectors = 1;
  for (int64_t d = 0; d < indices->shape().rank(); ++d) {
    if (d != map.index_vector_dim) vectors *= indices->shape().dim(d);
  }
  if (vectors != 1) return nullptr;
  Slices slices;
  std::vector<int64_t> dims;
  std::vector<Instruction*> operands = {x, nullptr};
  int64_t last = -1;
  for (size_t d = 0; d < map.slice.size(); ++d) {
    int64_t size = map.slice[d] >= 0 ? updates->shape().dim(map.slice[d]) : 1;
    if (map.slice[d] >= 0) {
      if (map.slice[d] < last) return nullptr;
      last = map.slice[d];
    }
    int64_t start = map.component[d] >= 0 ? *IndexOf(indices, map.component[d]) : 0;
    if (start < 0 || start > x->shape().dim(static_cast<int64_t>(d)) - size) return x;
    slices.push_back({start, start + size, 1});
    dims.push_back(size);
  }
  for (const SliceDimension& slice : slices) {
    operands.push_back(
        SplatNumber(i, Shape::Scalar(ElementType::kS64), static_cast<double>(slice.start)));
  }
  Shape shape = ShapeOf(i->shape().type(), dims);
  Instruction* value = updates;
  if (!shape.SameDimensions(updates->shape())) {
    value = MakeShaped(i, shape, Opcode::kReshape, {updates});
  }
  if (!replaces) {
    Instruction* old =
        MakeShaped(i, shape, Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
    value = MakeShaped(i, shape, *reducer, {old, value});
  }
  operands[1] = value;
  return Make(i, Opcode::kDynamicUpdateSlice, std::move(operands));
}

// x + scatter(0, s, u) => scatter(x, s, u)   where the scatter has no other users   (sums; order; a
// -0 without updates stays -0)
Instruction* SumOfScatter(Instruction* i) {
  if (IsPred(i)) return nullptr;
  for (int64_t k : {0, 1}) {
    const Instruction* scatter = i->operand(k);
    if (scatter->opcode() != Opcode::kScatter || scatter->operand_count() != 3 ||
        !IsUsedOnce(scatter)) {
      continue;
    }
    const Instruction* zeros = scatter->operand(0);
    if (!zeros->IsConstantOf(0.0) && !zeros->IsConstantOf(-0.0)) continue;
    if (ir::ReducerOf(*scatter->called(0)) != Opcode::kAdd) continue;
    return MakeShaped(i, i->shape(), Opcode::kScatter,
                      {i->operand(1 - k), scatter->operand(1), scatter->operand(2)},
                      scatter->attributes(), {scatter->called(0)});
  }
  return nullptr;
}

}  // namespace

Instruction* GatherScatterRules(Instruction* i) {
  if (i->shape().num_elements() == 0) return nullptr;
  switch (i->opcode()) {
    case Opcode::kGather: {
      // gather(broadcast(v)) => broadcast(v)   where v is a scalar
      // gather(x) => spread(x)   where x has one element
      Instruction* x = i->operand(0);
      if (x->shape().num_elements() == 1 && x->shape().rank() > 0) {
        Shape scalar = Shape::Scalar(x->shape().type());
        return Spread(i, i->shape(), MakeShaped(i, scalar, Opcode::kReshape, {x}));
      }
      if (x->shape().num_elements() > 0) {
        if (Instruction* scalar = ScalarOf(i, x)) return Spread(i, i->shape(), scalar);
      }
      if (Instruction* simpler = OfCountedGather(i)) return simpler;
      return OfOneIndex(i);
    }
    case Opcode::kScatter:
      if (Instruction* simpler = OfScatter(i)) return simpler;
      return OfOneUpdate(i);
    case Opcode::kAdd:
      return SumOfScatter(i);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
