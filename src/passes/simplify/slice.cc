#include <algorithm>

#include "passes/simplify/groups.h"
#include "passes/simplify/simplify.h"
#include "passes/simplify/starts.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Slices = std::vector<SliceDimension>;

// The last index of a slice that is not empty.
int64_t LastOf(const SliceDimension& s) {
  return s.start + (s.limit - s.start - 1) / s.stride * s.stride;
}

bool TakesAll(const SliceDimension& s, int64_t size) {
  return s.start == 0 && s.stride == 1 && s.limit == size;
}

// A new slice of x, or x if the slice is all of it.
Instruction* MakeSlice(Instruction* at, const Shape& shape, Instruction* x, Slices slices) {
  bool all = true;
  for (size_t d = 0; d < slices.size(); ++d) {
    all &= TakesAll(slices[d], x->shape().dim(static_cast<int64_t>(d)));
  }
  if (all) return x;
  return MakeShaped(at, shape, Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

// slice(slice(x)) => slice(x)
Instruction* OfSlice(Instruction* i, Slices slices) {
  const Instruction* x = i->operand(0);
  const Slices& inner = x->attributes().Slices(Attr::kSlice);
  for (size_t d = 0; d < slices.size(); ++d) {
    int64_t size = i->shape().dim(static_cast<int64_t>(d));
    // The stride of one element is irrelevant, and could overflow.
    int64_t stride = size == 1 ? 1 : slices[d].stride * inner[d].stride;
    int64_t first = inner[d].start + slices[d].start * inner[d].stride;
    slices[d] = {first, first + (size - 1) * stride + 1, stride};
  }
  return Make(i, Opcode::kSlice, {x->operand(0)}, {{Attr::kSlice, std::move(slices)}});
}

// slice(broadcast(x)) => broadcast(slice(x))   where x stays whole, or the broadcast has no other
// users
Instruction* OfBroadcast(Instruction* i, const Slices& slices) {
  const Instruction* x = i->operand(0);
  Instruction* small = x->operand(0);
  Slices inner;
  std::vector<int64_t> dims;
  for (int64_t d : x->dimensions()) {
    inner.push_back(slices[static_cast<size_t>(d)]);
    dims.push_back(i->shape().dim(d));
  }
  Shape shape = ShapeOf(i->shape().type(), dims);
  if (!small->shape().SameDimensions(shape)) {
    if (!IsUsedOnce(x)) return nullptr;
    small = MakeSlice(i, shape, small, std::move(inner));
  }
  return Make(i, Opcode::kBroadcast, {small}, {{Attr::kDimensions, x->dimensions()}});
}

// slice(transpose(x)) => transpose(slice(x))   where the transpose has no other users
Instruction* OfTranspose(Instruction* i, const Slices& slices) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x)) return nullptr;
  Slices inner(slices.size());
  std::vector<int64_t> dims(slices.size());
  for (size_t d = 0; d < slices.size(); ++d) {
    size_t from = static_cast<size_t>(x->dimensions()[d]);
    inner[from] = slices[d];
    dims[from] = i->shape().dim(static_cast<int64_t>(d));
  }
  Instruction* small =
      MakeSlice(i, ShapeOf(i->shape().type(), dims), x->operand(0), std::move(inner));
  return Make(i, Opcode::kTranspose, {small}, {{Attr::kDimensions, x->dimensions()}});
}

// slice(reduce(x)) => reduce(slice(x))   where the reduction has no other users, and a quarter or
// more of it is cut off
Instruction* OfReduce(Instruction* i, const Slices& slices) {
  Instruction* x = i->operand(0);
  if (!IsUsedOnce(x) || x->operand_count() != 2) return nullptr;
  if (4 * i->shape().num_elements() > 3 * x->shape().num_elements()) return nullptr;
  Instruction* whole = x->operand(0);
  Slices inner;
  std::vector<int64_t> dims;
  int64_t next = 0;
  for (int64_t d = 0; d < whole->shape().rank(); ++d) {
    bool reduced = std::ranges::find(x->dimensions(), d) != x->dimensions().end();
    inner.push_back(reduced ? SliceDimension{0, whole->shape().dim(d), 1}
                            : slices[static_cast<size_t>(next)]);
    dims.push_back(reduced ? whole->shape().dim(d) : i->shape().dim(next++));
  }
  Instruction* small = MakeSlice(i, ShapeOf(whole->shape().type(), dims), whole, std::move(inner));
  return MakeShaped(i, i->shape(), Opcode::kReduce, {small, x->operand(1)}, x->attributes(),
                    {x->called(0)});
}

// slice(reshape(x)) => reshape(slice(x))   where the reshape has no other users, and of merged or
// split dimensions only the outermost is cut
Instruction* OfReshape(Instruction* i, const Slices& slices) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x) || WillBeConstant(x)) return nullptr;
  Instruction* whole = x->operand(0);
  std::vector<int64_t> from = whole->shape().dims(), to = x->shape().dims(), dims = from;
  Slices inner;
  for (int64_t size : from) inner.push_back({0, size, 1});
  for (const DimensionGroup& group : GroupsOf(from, to)) {
    // The outermost dimensions larger than 1, and the number of elements at one of their indices.
    int64_t first = -1, outer = -1, in_to = 1, in_from = 1;
    bool others_whole = true;
    for (int64_t d = group.to_begin; d < group.to_end; ++d) {
      size_t t = static_cast<size_t>(d);
      if (to[t] == 1) continue;
      if (first >= 0) in_to *= to[t];
      if (first >= 0) others_whole &= TakesAll(slices[t], to[t]);
      if (first < 0) first = d;
    }
    if (first < 0) continue;
    for (int64_t d = group.from_begin; d < group.from_end; ++d) {
      size_t f = static_cast<size_t>(d);
      if (from[f] == 1) continue;
      if (outer >= 0) in_from *= from[f];
      if (outer < 0) outer = d;
    }
    const SliceDimension& s = slices[static_cast<size_t>(first)];
    if (!others_whole) return nullptr;
    if (TakesAll(s, to[static_cast<size_t>(first)])) continue;
    SliceDimension& cut = inner[static_cast<size_t>(outer)];
    if (in_to == 1 && in_from == 1) {
      cut = s;
    } else {
      bool aligned = s.start * in_to % in_from == 0 && s.limit * in_to % in_from == 0;
      if (s.stride != 1 || !aligned) return nullptr;
      cut = {s.start * in_to / in_from, s.limit * in_to / in_from, 1};
    }
    dims[static_cast<size_t>(outer)] = (cut.limit - cut.start + cut.stride - 1) / cut.stride;
  }
  Instruction* small = MakeSlice(i, ShapeOf(i->shape().type(), dims), whole, std::move(inner));
  return Make(i, Opcode::kReshape, {small});
}

// slice(reverse(x)) => reverse(slice(x))   where the reverse has no other users
Instruction* OfReverse(Instruction* i, Slices slices) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x)) return nullptr;
  for (int64_t d : x->dimensions()) {
    SliceDimension& s = slices[static_cast<size_t>(d)];
    int64_t last = LastOf(s), size = x->shape().dim(d);
    s = {size - 1 - last, size - s.start, s.stride};
  }
  Instruction* small =
      MakeSlice(i, WithType(i->shape(), i->shape().type()), x->operand(0), std::move(slices));
  return Make(i, Opcode::kReverse, {small}, {{Attr::kDimensions, x->dimensions()}});
}

// slice(iota()) => iota()   where the iota dimension is cut from 0, with stride 1
Instruction* OfIota(Instruction* i, const Slices& slices) {
  int64_t d = i->operand(0)->attributes().Int(Attr::kIotaDimension);
  const SliceDimension& s = slices[static_cast<size_t>(d)];
  if (s.start != 0 || s.stride != 1) return nullptr;
  return Make(i, Opcode::kIota, {}, {{Attr::kIotaDimension, d}});
}

// slice(concatenate(..., x, ...)) => slice(x)   where it takes elements of x only
// slice(concatenate(w, x, y, z)) => slice(concatenate(x, y))   where it takes nothing of w and z,
// and the concatenation has no other users
Instruction* OfConcatenate(Instruction* i, Slices slices) {
  const Instruction* x = i->operand(0);
  size_t d = static_cast<size_t>(x->dimensions()[0]);
  int64_t first = slices[d].start, last = LastOf(slices[d]);
  std::vector<Instruction*> needed;
  int64_t begin = 0, begin_of_needed = 0, size_of_needed = 0;
  for (Instruction* part : x->operands()) {
    int64_t size = part->shape().dim(static_cast<int64_t>(d)), end = begin + size;
    if (size > 0 && begin <= last && end > first) {
      if (needed.empty()) begin_of_needed = begin;
      needed.push_back(part);
      size_of_needed += size;
    }
    begin = end;
  }
  slices[d] = {first - begin_of_needed, last - begin_of_needed + 1, slices[d].stride};
  if (needed.size() == 1) return MakeSlice(i, i->shape(), needed[0], std::move(slices));
  if (static_cast<int64_t>(needed.size()) == x->operand_count() || !IsUsedOnce(x)) return nullptr;
  std::vector<int64_t> dims = x->shape().dims();
  dims[d] = size_of_needed;
  Instruction* small = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kConcatenate,
                                  std::move(needed), {{Attr::kDimensions, x->dimensions()}});
  return MakeSlice(i, i->shape(), small, std::move(slices));
}

// slice(pad(x, v)) => slice(x)   where it takes elements of x only   (also across interior padding)
// slice(pad(x, v)) => broadcast(v)   where it takes none of x
Instruction* OfPad(Instruction* i, Slices slices) {
  const Instruction* x = i->operand(0);
  const auto& padding = x->attributes().Padding(Attr::kPadding);
  bool inside = true;
  for (size_t d = 0; d < slices.size(); ++d) {
    const PaddingDimension& p = padding[d];
    int64_t size = x->operand(0)->shape().dim(static_cast<int64_t>(d));
    int64_t first = slices[d].start - p.low, last = LastOf(slices[d]) - p.low;
    int64_t extent = size <= 1 ? size : (size - 1) * (p.interior + 1) + 1;
    if (last < 0 || first >= extent) return Spread(i, i->shape(), x->operand(1));
    int64_t step = p.interior + 1, stride = last > first ? slices[d].stride : step;
    inside &= first >= 0 && last < extent && first % step == 0 && stride % step == 0;
    slices[d] = {first / step, last / step + 1, stride / step};
  }
  return inside ? MakeSlice(i, i->shape(), x->operand(0), std::move(slices)) : nullptr;
}

// slice(dot(x, y)) => dot(slice(x), slice(y))   where the dot has no other users, and a quarter or
// more of it is cut off   (order)
Instruction* OfDot(Instruction* i, const Slices& slices) {
  const Instruction* dot = i->operand(0);
  if (!IsUsedOnce(dot) || 4 * i->shape().num_elements() > 3 * dot->shape().num_elements()) {
    return nullptr;
  }
  const Attributes& a = dot->attributes();
  size_t next = a.IntsOf(Attr::kLhsBatchDims).size();
  std::vector<Instruction*> operands;
  for (int64_t side : {0, 1}) {
    Instruction* x = dot->operand(side);
    const Ints& batch = a.IntsOf(side == 0 ? Attr::kLhsBatchDims : Attr::kRhsBatchDims);
    const Ints& contracting =
        a.IntsOf(side == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims);
    Slices inner;
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      auto in_batch = std::ranges::find(batch, d);
      inner.push_back({0, x->shape().dim(d), 1});
      dims.push_back(x->shape().dim(d));
      if (std::ranges::find(contracting, d) != contracting.end()) continue;
      size_t place =
          in_batch != batch.end() ? static_cast<size_t>(in_batch - batch.begin()) : next++;
      inner.back() = slices[place];
      dims.back() = i->shape().dim(static_cast<int64_t>(place));
    }
    operands.push_back(MakeSlice(i, ShapeOf(x->shape().type(), dims), x, std::move(inner)));
  }
  return Make(i, Opcode::kDot, std::move(operands), a);
}

// slice(dynamic-slice(x, s)) => dynamic-slice(x, s + start)   where the strides are 1, and the
// dynamic-slice has no other users
Instruction* OfDynamicSlice(Instruction* i, const Slices& slices) {
  const Instruction* x = i->operand(0);
  if (!IsUsedOnce(x)) return nullptr;
  StartSum sum(i);
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const SliceDimension& s = slices[static_cast<size_t>(d)];
    if (s.stride != 1) return nullptr;
    sum.Add(x->operand(d + 1), x->operand(0)->shape().dim(d) - x->shape().dim(d));
    sum.AddNumber(s.start);
    if (!sum.Next(x->operand(0)->shape().dim(d))) return nullptr;
  }
  if (!sum.IsWorth(true, 2 * x->shape().num_elements() - i->shape().num_elements())) return nullptr;
  std::vector<Instruction*> operands = sum.Make();
  operands.insert(operands.begin(), x->operand(0));
  return Make(i, Opcode::kDynamicSlice, std::move(operands),
              {{Attr::kDynamicSliceSizes, Ints(i->shape().dims())}});
}

}  // namespace

// Empty slices are gone: they are empty arrays.
Instruction* SliceRules(Instruction* i) {
  if (i->opcode() != Opcode::kSlice || i->shape().num_elements() == 0) return nullptr;
  Instruction* x = i->operand(0);
  // slice(x) => x   where it is all of x
  if (x->shape() == i->shape()) return x;
  const Slices& slices = i->attributes().Slices(Attr::kSlice);
  switch (x->opcode()) {
    case Opcode::kSlice:
      return OfSlice(i, slices);
    case Opcode::kBroadcast:
      return OfBroadcast(i, slices);
    case Opcode::kTranspose:
      return OfTranspose(i, slices);
    case Opcode::kReduce:
      return OfReduce(i, slices);
    case Opcode::kReshape:
      return OfReshape(i, slices);
    case Opcode::kReverse:
      return OfReverse(i, slices);
    case Opcode::kIota:
      return OfIota(i, slices);
    case Opcode::kConcatenate:
      return OfConcatenate(i, slices);
    case Opcode::kPad:
      return OfPad(i, slices);
    case Opcode::kDot:
      return OfDot(i, slices);
    case Opcode::kDynamicSlice:
      return OfDynamicSlice(i, slices);
    default:
      return nullptr;
  }
}

}  // namespace kiln::passes::simplify
