// Slices with computed starts. A start is clamped, so that the slice lies within the array. Sums
// of starts clamp each term first.

#include <algorithm>
#include <optional>

#include "passes/simplify/simplify.h"
#include "passes/simplify/starts.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Slices = std::vector<SliceDimension>;

// The starts of a slice of `sizes` in an array of `dims`, if they are known. Operand `first` is
// the first start. A slice of a whole dimension starts at 0 whatever the operand.
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

// Whether both take their slices, of equal sizes, at the same place.
bool SameStarts(const Instruction* a, int64_t first_of_a, const Instruction* b,
                int64_t first_of_b) {
  for (int64_t d = 0; d < a->operand(0)->shape().rank(); ++d) {
    if (!IsSame(a->operand(first_of_a + d), b->operand(first_of_b + d))) return false;
  }
  return true;
}

Instruction* MakeDynamicSlice(Instruction* at, const Shape& shape, Instruction* x,
                              std::vector<Instruction*> starts) {
  starts.insert(starts.begin(), x);
  return MakeShaped(at, shape, Opcode::kDynamicSlice, std::move(starts),
                    {{Attr::kDynamicSliceSizes, Ints(shape.dims())}});
}

// dynamic-slice(x, s) => dynamic-slice(x, 0)   along dimensions of the slice's size   (form; also
// of updates)
std::vector<Instruction*> WithoutIdleStarts(Instruction* i, int64_t first,
                                            std::span<const int64_t> dims,
                                            std::span<const int64_t> sizes) {
  std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
  bool changed = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    Instruction*& start = operands[static_cast<size_t>(first) + d];
    if (dims[d] != sizes[d] || WillBeConstant(start)) continue;
    start = SplatNumber(i, Shape::Scalar(start->shape().type()), 0);
    changed = true;
  }
  return changed ? operands : std::vector<Instruction*>{};
}

// dynamic-slice(dynamic-slice(x, s), t) => dynamic-slice(x, s + t)   where the inner one has no
// other users, or nothing needs to be added
Instruction* OfDynamicSliceOf(Instruction* i) {
  const Instruction* inner = i->operand(0);
  StartSum sum(i);
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    sum.Add(inner->operand(d + 1), inner->operand(0)->shape().dim(d) - inner->shape().dim(d));
    sum.Add(i->operand(d + 1), inner->shape().dim(d) - i->shape().dim(d));
    if (!sum.Next(inner->operand(0)->shape().dim(d))) return nullptr;
  }
  if (!sum.IsWorth(IsUsedOnce(inner), 2 * inner->shape().num_elements())) return nullptr;
  return MakeDynamicSlice(i, i->shape(), inner->operand(0), sum.Make());
}

// dynamic-slice(slice(x), s) => dynamic-slice(x, s + start)   where the strides are 1, and the
// slice has no other users or nothing needs to be added
Instruction* OfSlice(Instruction* i) {
  const Instruction* inner = i->operand(0);
  const Slices& slices = inner->attributes().Slices(Attr::kSlice);
  StartSum sum(i);
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const SliceDimension& s = slices[static_cast<size_t>(d)];
    if (s.stride != 1) return nullptr;
    sum.Add(i->operand(d + 1), inner->shape().dim(d) - i->shape().dim(d));
    sum.AddNumber(s.start);
    if (!sum.Next(inner->operand(0)->shape().dim(d))) return nullptr;
  }
  if (!sum.IsWorth(IsUsedOnce(inner), inner->shape().num_elements())) return nullptr;
  return MakeDynamicSlice(i, i->shape(), inner->operand(0), sum.Make());
}

// dynamic-slice(transpose(x)) => transpose(dynamic-slice(x))   where the transpose has no
// other users
Instruction* OfTranspose(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x)) return nullptr;
  size_t rank = static_cast<size_t>(i->shape().rank());
  std::vector<int64_t> dims(rank);
  std::vector<Instruction*> starts(rank);
  for (size_t d = 0; d < rank; ++d) {
    size_t from = static_cast<size_t>(x->dimensions()[d]);
    dims[from] = i->shape().dim(static_cast<int64_t>(d));
    starts[from] = i->operand(static_cast<int64_t>(d) + 1);
  }
  Instruction* small =
      MakeDynamicSlice(i, ShapeOf(i->shape().type(), dims), x->operand(0), std::move(starts));
  return Make(i, Opcode::kTranspose, {small}, {{Attr::kDimensions, x->dimensions()}});
}

// dynamic-slice(reshape(x)) => reshape(dynamic-slice(x))   where the reshape only adds or removes
// dimensions of size 1, and has no other users
Instruction* OfReshape(Instruction* i) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x)) return nullptr;
  const Shape &from = x->operand(0)->shape(), &to = x->shape();
  std::vector<int64_t> dims;
  std::vector<Instruction*> starts;
  int64_t t = 0;
  auto skip_ones = [&] {
    while (t < to.rank() && to.dim(t) == 1) ++t;
  };
  for (int64_t size : from.dims()) {
    if (size == 1) {
      dims.push_back(1);
      starts.push_back(nullptr);
      continue;
    }
    skip_ones();
    if (t == to.rank() || to.dim(t) != size) return nullptr;
    dims.push_back(i->shape().dim(t));
    starts.push_back(i->operand(++t));
  }
  skip_ones();
  if (t < to.rank() || starts.empty() || to.rank() == 0) return nullptr;
  for (Instruction*& start : starts) {
    if (!start) start = SplatNumber(i, Shape::Scalar(i->operand(1)->shape().type()), 0);
  }
  Instruction* small =
      MakeDynamicSlice(i, ShapeOf(i->shape().type(), dims), x->operand(0), std::move(starts));
  return Make(i, Opcode::kReshape, {small});
}

// dynamic-slice(broadcast(x)) => broadcast(x)   where the slice has all of x
// dynamic-slice(broadcast(x)) => broadcast(dynamic-slice(x))   where the broadcast has no
// other users
Instruction* OfBroadcast(Instruction* i) {
  const Instruction* x = i->operand(0);
  Instruction* small = x->operand(0);
  std::vector<int64_t> dims;
  std::vector<Instruction*> starts;
  for (int64_t d : x->dimensions()) {
    dims.push_back(i->shape().dim(d));
    starts.push_back(i->operand(d + 1));
  }
  Shape shape = ShapeOf(i->shape().type(), dims);
  if (!small->shape().SameDimensions(shape)) {
    if (!IsUsedOnce(x)) return nullptr;
    small = MakeDynamicSlice(i, shape, small, std::move(starts));
  }
  return Make(i, Opcode::kBroadcast, {small}, {{Attr::kDimensions, x->dimensions()}});
}

// dynamic-slice(iota()) => iota()   where the slice has the whole iota dimension
// dynamic-slice(iota(), s) => spread(clamp(0, s, size - 1))   where the slice has size 1 along the
// iota dimension   (integers)
Instruction* OfIota(Instruction* i) {
  const Instruction* x = i->operand(0);
  int64_t d = x->attributes().Int(Attr::kIotaDimension), size = x->shape().dim(d);
  if (i->shape().dim(d) == size) {
    return Make(i, Opcode::kIota, {}, {{Attr::kIotaDimension, d}});
  }
  if (i->shape().dim(d) != 1 || !IsInt(i) || i->shape().num_elements() < 4) return nullptr;
  Instruction* start = ClampedStart(i, i->operand(d + 1), size - 1);
  if (!start) return nullptr;
  if (start->shape().type() != i->shape().type()) {
    start = MakeShaped(i, Shape::Scalar(i->shape().type()), Opcode::kConvert, {start});
  }
  return Spread(i, i->shape(), start);
}

Instruction* OfDynamicSlice(Instruction* i) {
  Instruction* x = i->operand(0);
  // dynamic-slice(x) => x   where the slice is all of x
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
  // A constant is cut as it is.
  switch (WillBeConstant(x) ? Opcode::kConstant : x->opcode()) {
    case Opcode::kBroadcast:
      if (Instruction* simpler = OfBroadcast(i)) return simpler;
      break;
    case Opcode::kDynamicSlice:
      if (Instruction* simpler = OfDynamicSliceOf(i)) return simpler;
      break;
    case Opcode::kSlice:
      if (Instruction* simpler = OfSlice(i)) return simpler;
      break;
    case Opcode::kTranspose:
      if (Instruction* simpler = OfTranspose(i)) return simpler;
      break;
    case Opcode::kReshape:
      if (Instruction* simpler = OfReshape(i)) return simpler;
      break;
    case Opcode::kIota:
      if (Instruction* simpler = OfIota(i)) return simpler;
      break;
    default:
      break;
  }
  std::vector<Instruction*> operands = WithoutIdleStarts(i, 1, dims, sizes);
  if (operands.empty()) return nullptr;
  return Make(i, Opcode::kDynamicSlice, std::move(operands), i->attributes());
}

Instruction* OfDynamicUpdateSlice(Instruction* i) {
  Instruction *x = i->operand(0), *update = i->operand(1);
  // dynamic-update-slice(x, u) => u   where u has the size of x
  if (update->shape() == i->shape()) return update;
  // dynamic-update-slice(x, u) => x   where u has no elements
  if (update->shape().num_elements() == 0) return x;
  // dynamic-update-slice(x, dynamic-slice(x, s), s) => x
  if (update->opcode() == Opcode::kDynamicSlice && update->operand(0) == x &&
      SameStarts(i, 2, update, 1)) {
    return x;
  }
  // dynamic-update-slice(dynamic-update-slice(x, u, s), v, s) => dynamic-update-slice(x, v, s)
  // where u and v have one size
  if (x->opcode() == Opcode::kDynamicUpdateSlice &&
      x->operand(1)->shape().SameDimensions(update->shape()) && SameStarts(i, 2, x, 2)) {
    std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
    operands[0] = x->operand(0);
    return Make(i, Opcode::kDynamicUpdateSlice, std::move(operands));
  }
  // dynamic-update-slice(broadcast(v), u) => pad(u, v)   where v is a scalar, and the starts are
  // constants
  std::vector<int64_t> dims = i->shape().dims(), sizes = update->shape().dims();
  if (std::optional<Ints> starts = StartsOf(i, 2, dims, sizes)) {
    Instruction* scalar = ScalarOf(i, x);
    if (!scalar) return nullptr;
    std::vector<PaddingDimension> padding;
    for (size_t d = 0; d < dims.size(); ++d) {
      padding.push_back({(*starts)[d], dims[d] - sizes[d] - (*starts)[d], 0});
    }
    return Make(i, Opcode::kPad, {update, scalar}, {{Attr::kPadding, std::move(padding)}});
  }
  std::vector<Instruction*> operands = WithoutIdleStarts(i, 2, dims, sizes);
  if (operands.empty()) return nullptr;
  return Make(i, Opcode::kDynamicUpdateSlice, std::move(operands));
}

// The slice of x at the place of an update.
Instruction* SliceOf(Instruction* at, Instruction* x, const Instruction* update_slice) {
  Shape shape = WithType(update_slice->operand(1)->shape(), x->shape().type());
  return MakeDynamicSlice(at, shape, x,
                          {update_slice->operands().begin() + 2, update_slice->operands().end()});
}

Instruction* WithUpdate(Instruction* i, const Instruction* update_slice, Instruction* x,
                        Instruction* update) {
  std::vector<Instruction*> operands(update_slice->operands().begin(),
                                     update_slice->operands().end());
  operands[0] = x;
  operands[1] = update;
  return Make(i, Opcode::kDynamicUpdateSlice, std::move(operands));
}

// An update without other users, small beside the array.
bool IsOwnUpdate(const Instruction* x) {
  return x->opcode() == Opcode::kDynamicUpdateSlice && IsUsedOnce(x) &&
         4 * x->operand(1)->shape().num_elements() <= x->shape().num_elements();
}

// select(p, dynamic-update-slice(x, u, s), x) => dynamic-update-slice(x, select(p, u, x'), s)
// where the update is small and has no other users; x' and an array p are cut to its slice
// select(p, x, dynamic-update-slice(x, u, s)) => dynamic-update-slice(x, select(p, x', u), s)
// likewise
Instruction* SelectOfUpdate(Instruction* i) {
  for (int64_t k : {1, 2}) {
    Instruction *update = i->operand(k), *x = i->operand(3 - k);
    if (!IsOwnUpdate(update) || update->operand(0) != x) continue;
    Instruction* p = i->operand(0);
    if (!p->shape().is_scalar()) p = SliceOf(i, p, update);
    std::vector<Instruction*> operands = {p, update->operand(1), SliceOf(i, x, update)};
    if (k == 2) std::swap(operands[1], operands[2]);
    Shape shape = WithType(update->operand(1)->shape(), i->shape().type());
    return WithUpdate(i, update, x, MakeShaped(i, shape, Opcode::kSelect, std::move(operands)));
  }
  return nullptr;
}

// x + dynamic-update-slice(0, u, s) => dynamic-update-slice(x, x' + u, s)   where the update is
// small and has no other users, and x' is x cut to its slice   (integers; floats where the zero is
// -0)
Instruction* SumOfUpdate(Instruction* i) {
  if (IsPred(i)) return nullptr;
  for (int64_t k : {0, 1}) {
    Instruction *update = i->operand(k), *x = i->operand(1 - k);
    if (!IsOwnUpdate(update) || !update->operand(0)->IsConstantOf(IsInt(i) ? 0.0 : -0.0)) continue;
    Shape shape = WithType(update->operand(1)->shape(), i->shape().type());
    Instruction* sum =
        MakeShaped(i, shape, Opcode::kAdd, {SliceOf(i, x, update), update->operand(1)});
    return WithUpdate(i, update, x, sum);
  }
  return nullptr;
}

}  // namespace

Instruction* DynamicSliceRules(Instruction* i) {
  if (i->shape().num_elements() == 0) return nullptr;
  switch (i->opcode()) {
    case Opcode::kDynamicSlice:
      return OfDynamicSlice(i);
    case Opcode::kDynamicUpdateSlice:
      return OfDynamicUpdateSlice(i);
    case Opcode::kSelect:
      return SelectOfUpdate(i);
    case Opcode::kAdd:
      return SumOfUpdate(i);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
