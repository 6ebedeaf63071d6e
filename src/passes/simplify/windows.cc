#include <algorithm>
#include <cstdlib>
#include <optional>

#include "ops/windows.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Slices = std::vector<SliceDimension>;

// A constant index, what is above an int64 being as good as its largest value.
std::optional<int64_t> IndexOf(const Instruction* x, int64_t element = 0) {
  if (!x->IsConstant()) return std::nullopt;
  int64_t value = x->literal().AsInt(element);
  return value < 0 && !IsSigned(x) ? INT64_MAX : value;
}

// Where a window of `sizes` begins in an array of `dims`, where that is known. `first` is the first
// operand that is a start. Where the window takes a dimension whole its start does not matter.
std::optional<Ints> StartsOf(const Instruction* i, int64_t first, std::span<const int64_t> dims,
                             std::span<const int64_t> sizes) {
  Ints starts;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t room = dims[d] - sizes[d];
    std::optional<int64_t> start = 0;
    if (room > 0) start = IndexOf(i->operand(first + static_cast<int64_t>(d)));
    if (!start) return std::nullopt;
    starts.push_back(std::clamp<int64_t>(*start, 0, room));
  }
  return starts;
}

// Whether both take their windows, of equal sizes, at the same place.
bool SameStarts(const Instruction* a, int64_t first_of_a, const Instruction* b,
                int64_t first_of_b) {
  for (int64_t d = 0; d < a->operand(0)->shape().rank(); ++d) {
    if (!IsSame(a->operand(first_of_a + d), b->operand(first_of_b + d))) return false;
  }
  return true;
}

Instruction* OfDynamicSlice(Instruction* i) {
  Instruction* x = i->operand(0);
  // dynamic-slice(x) => x   where it takes everything
  if (x->shape() == i->shape()) return x;
  std::vector<int64_t> dims = x->shape().dims(), sizes = i->shape().dims();
  // dynamic-slice(x) => slice(x)   where the starts are constants
  if (std::optional<Ints> starts = StartsOf(i, 1, dims, sizes)) {
    Slices slices;
    for (size_t d = 0; d < dims.size(); ++d) {
      slices.push_back({(*starts)[d], (*starts)[d] + sizes[d], 1});
    }
    return Make(i, Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
  }
  // dynamic-slice(broadcast(x)) => broadcast(x)   where it takes all of x
  if (x->opcode() == Opcode::kBroadcast) {
    bool whole = std::ranges::all_of(x->dimensions(), [&](int64_t d) {
      return dims[static_cast<size_t>(d)] == sizes[static_cast<size_t>(d)];
    });
    if (whole) {
      return Make(i, Opcode::kBroadcast, {x->operand(0)}, {{Attr::kDimensions, x->dimensions()}});
    }
  }
  return nullptr;
}

Instruction* OfDynamicUpdateSlice(Instruction* i) {
  Instruction *x = i->operand(0), *update = i->operand(1);
  // dynamic-update-slice(x, u) => u   where u is of x's size
  if (update->shape() == i->shape()) return update;
  // dynamic-update-slice(x, u) => x   where u has no elements
  if (update->shape().num_elements() == 0) return x;
  // dynamic-update-slice(x, dynamic-slice(x, s), s) => x
  if (update->opcode() == Opcode::kDynamicSlice && update->operand(0) == x &&
      SameStarts(i, 2, update, 1)) {
    return x;
  }
  // dynamic-update-slice(dynamic-update-slice(x, u, s), v, s) => dynamic-update-slice(x, v, s)
  // where u and v are of one size
  if (x->opcode() == Opcode::kDynamicUpdateSlice &&
      x->operand(1)->shape().SameDimensions(update->shape()) && SameStarts(i, 2, x, 2)) {
    std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
    operands[0] = x->operand(0);
    return Make(i, Opcode::kDynamicUpdateSlice, std::move(operands));
  }
  // dynamic-update-slice(broadcast(v), u) => pad(u, v)   where v is a scalar and the starts are
  // constants
  std::vector<int64_t> dims = i->shape().dims(), sizes = update->shape().dims();
  std::optional<Ints> starts = StartsOf(i, 2, dims, sizes);
  if (!starts) return nullptr;
  Instruction* scalar = ScalarOf(i, x);
  if (!scalar) return nullptr;
  std::vector<PaddingDimension> padding;
  for (size_t d = 0; d < dims.size(); ++d) {
    padding.push_back({(*starts)[d], dims[d] - sizes[d] - (*starts)[d], 0});
  }
  return Make(i, Opcode::kPad, {update, scalar}, {{Attr::kPadding, std::move(padding)}});
}

// Indices that count from `start` by `stride`, one for each position of the only dimension that is
// not the index vector's.
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

// gather(x) => transpose(slice(x))   where the index vectors, of one component, count
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
  WindowMap map = WindowMapOf(Opcode::kGather, a, x->shape().rank(), indices->shape().rank());
  if (map.window[along] >= 0 || sizes[along] != 1 ||
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
    int64_t place = map.window[d];
    if (d == along) place = *std::ranges::find_if(map.outside, [](int64_t o) { return o >= 0; });
    permutation[static_cast<size_t>(place)] = static_cast<int64_t>(d);
  }
  Instruction* slice = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kSlice, {x},
                                  {{Attr::kSlice, std::move(slices)}});
  return Make(i, Opcode::kTranspose, {slice}, {{Attr::kDimensions, std::move(permutation)}});
}

}  // namespace

Instruction* WindowRules(Instruction* i) {
  if (i->shape().num_elements() == 0) return nullptr;
  switch (i->opcode()) {
    case Opcode::kDynamicSlice:
      return OfDynamicSlice(i);
    case Opcode::kDynamicUpdateSlice:
      return OfDynamicUpdateSlice(i);
    case Opcode::kGather: {
      // gather(broadcast(v)) => broadcast(v)   where v is a scalar
      Instruction* x = i->operand(0);
      if (x->shape().num_elements() > 0) {
        if (Instruction* scalar = ScalarOf(i, x)) return Spread(i, i->shape(), scalar);
      }
      return OfCountedGather(i);
    }
    case Opcode::kScatter:
      // scatter(x, s, u) => x   where u has no elements
      if (i->operand_count() > 3) return nullptr;
      return i->operand(2)->shape().num_elements() == 0 ? i->operand(0) : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
