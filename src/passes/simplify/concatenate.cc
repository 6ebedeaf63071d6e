#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "passes/simplify/simplify.h"
#include "passes/simplify/stack.h"
#include "passes/simplify/starts.h"
#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {
namespace {

using ir::Instruction;
using Slices = std::vector<SliceDimension>;

// Whether a and b are slices of one array, adjacent along d and equal along other dimensions.
bool AreAdjacent(const Instruction* a, const Instruction* b, size_t d) {
  if (a->opcode() != Opcode::kSlice || b->opcode() != Opcode::kSlice ||
      a->operand(0) != b->operand(0)) {
    return false;
  }
  const Slices& x = a->attributes().Slices(Attr::kSlice);
  const Slices& y = b->attributes().Slices(Attr::kSlice);
  for (size_t k = 0; k < x.size(); ++k) {
    if (k != d && x[k] != y[k]) return false;
  }
  return x[d].stride == 1 && y[d].stride == 1 && x[d].limit == y[d].start;
}

// Whether a and b together are one slice, or one broadcast.
bool Continues(const Instruction* a, const Instruction* b, size_t d) {
  return AreAdjacent(a, b, d) ||
         (IsSpread(a) && IsSpread(b) && IsSame(a->operand(0), b->operand(0)));
}

// concatenate(x[a:b], x[b:c]) => x[a:c]   (also of more operands)
// concatenate(spread(s), spread(s)) => spread(s)   (also of more operands)
Instruction* Joined(Instruction* i, std::span<Instruction* const> run, size_t d) {
  std::vector<int64_t> dims = run[0]->shape().dims();
  dims[d] = 0;
  for (const Instruction* x : run) dims[d] += x->shape().dim(static_cast<int64_t>(d));
  Shape shape = ShapeOf(i->shape().type(), dims);
  if (IsSpread(run[0])) return Spread(i, shape, run[0]->operand(0));
  Slices slices = run[0]->attributes().Slices(Attr::kSlice);
  slices[d].limit = run.back()->attributes().Slices(Attr::kSlice)[d].limit;
  return MakeShaped(i, shape, Opcode::kSlice, {run[0]->operand(0)},
                    {{Attr::kSlice, std::move(slices)}});
}

// Joins runs of operands without other users, or all of them.
std::vector<Instruction*> JoinRuns(Instruction* i, const std::vector<Instruction*>& parts,
                                   size_t d) {
  std::vector<Instruction*> joined;
  auto may_join = [&](const Instruction* x) { return !x->IsRoot() && x->users().size() == 1; };
  for (size_t k = 0; k < parts.size();) {
    size_t end = k + 1;
    bool own = may_join(parts[k]);
    while (end < parts.size() && Continues(parts[end - 1], parts[end], d)) {
      own &= may_join(parts[end++]);
    }
    std::span<Instruction* const> run(parts.data() + k, end - k);
    if (run.size() > 1 && (own || run.size() == parts.size())) {
      joined.push_back(Joined(i, run, d));
    } else {
      joined.insert(joined.end(), run.begin(), run.end());
    }
    k = end;
  }
  return joined;
}

// concatenate(spread(s), x) => pad(x, s),  concatenate(x, spread(s)) => pad(x, s)
Instruction* AsPad(Instruction* i, size_t d) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *edge = i->operand(k), *x = i->operand(1 - k);
    if (!IsSpread(edge)) continue;
    std::vector<PaddingDimension> padding(static_cast<size_t>(i->shape().rank()));
    int64_t amount = edge->shape().dim(static_cast<int64_t>(d));
    (k == 0 ? padding[d].low : padding[d].high) = amount;
    return Make(i, Opcode::kPad, {x, edge->operand(0)}, {{Attr::kPadding, std::move(padding)}});
  }
  return nullptr;
}

// concatenate(x, x, ...) => broadcast(x)   where x has size 1 along the dimension
Instruction* Repeated(Instruction* i, int64_t d) {
  Instruction* x = i->operand(0);
  if (x->shape().dim(d) != 1 ||
      !std::ranges::all_of(i->operands(), [&](const Instruction* y) { return y == x; })) {
    return nullptr;
  }
  std::vector<int64_t> dims;
  Ints places;
  for (int64_t k = 0; k < i->shape().rank(); ++k) {
    if (k == d) continue;
    dims.push_back(i->shape().dim(k));
    places.push_back(k);
  }
  Instruction* flat = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kReshape, {x});
  return Make(i, Opcode::kBroadcast, {flat}, {{Attr::kDimensions, std::move(places)}});
}

// concatenate(transpose(x), transpose(y)) => transpose(concatenate(x, y))   where the permutations
// are equal, and the transposes have no other users
Instruction* OfTransposes(Instruction* i) {
  const Instruction* lead = i->operand(0);
  std::vector<Instruction*> operands;
  for (const Instruction* x : i->operands()) {
    if (x->opcode() != Opcode::kTranspose || x->dimensions() != lead->dimensions() ||
        !IsUsedOnce(x) || WillBeConstant(x)) {
      return nullptr;
    }
    operands.push_back(x->operand(0));
  }
  const Ints& permutation = lead->dimensions();
  std::vector<int64_t> dims(permutation.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    dims[static_cast<size_t>(permutation[d])] = i->shape().dim(static_cast<int64_t>(d));
  }
  int64_t along = permutation[static_cast<size_t>(i->dimensions()[0])];
  Instruction* whole = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kConcatenate,
                                  std::move(operands), {{Attr::kDimensions, Ints{along}}});
  return Make(i, Opcode::kTranspose, {whole}, {{Attr::kDimensions, permutation}});
}

// Fewer are computed one by one.
constexpr int64_t kLeastStack = 4;

// concatenate(op(x), op(y), ...) => op(concatenate(x, y, ...))   where the operands are four
// scalars or more, whose expressions differ in constants, and in places in an array, alone
Instruction* OfScalars(Instruction* i) {
  if (i->operand_count() < kLeastStack || i->shape().num_elements() != i->operand_count()) {
    return nullptr;
  }
  Instruction* stacked =
      Stacking(i, {i}).Make(std::vector(i->operands().begin(), i->operands().end()));
  return stacked ? Make(i, Opcode::kReshape, {stacked}) : nullptr;
}

// The dimension along which slices of one array begin at different places, in all others at 0.
std::optional<int64_t> DifferentStart(const std::vector<Instruction*>& slices) {
  const Instruction* first = slices[0];
  std::optional<int64_t> along;
  for (int64_t d = 0; d < first->shape().rank(); ++d) {
    const Instruction* start = first->operand(d + 1);
    const bool same = std::ranges::all_of(
        slices, [&](const Instruction* x) { return IsSame(x->operand(d + 1), start); });
    if (same && IndexOf(start) == 0) continue;
    if (along) return std::nullopt;
    along = d;
  }
  return along;
}

// concatenate(dynamic-slice(x, s), dynamic-slice(x, t), ...) => reshape(gather(x, {s, t, ...}))
// where there are four slices or more, of more than two elements each, only dimensions of size 1
// precede that of the concatenation, and the starts become one array as above
Instruction* OfDynamicSlices(Instruction* i) {
  if (i->operand_count() < kLeastStack) return nullptr;
  for (int64_t d = 0; d < i->dimensions()[0]; ++d) {
    if (i->shape().dim(d) != 1) return nullptr;
  }
  std::vector<Instruction*> slices;
  std::set<const Instruction*> replaced = {i};
  for (Instruction* x : i->operands()) {
    replaced.insert(x);
    if (x->opcode() == Opcode::kReshape) replaced.insert(x = x->operand(0));
    if (x->opcode() != Opcode::kDynamicSlice || x->shape().num_elements() <= 2) return nullptr;
    slices.push_back(x);
    if (x->operand(0) != slices[0]->operand(0) || !x->shape().SameDimensions(slices[0]->shape())) {
      return nullptr;
    }
  }
  const std::optional<int64_t> along = DifferentStart(slices);
  if (!along) return nullptr;
  std::vector<Instruction*> starts;
  for (const Instruction* x : slices) starts.push_back(x->operand(*along + 1));
  Instruction* indices = Stacking(i, std::move(replaced)).Make(std::move(starts));
  if (!indices) return nullptr;
  const Ints sizes = slices[0]->shape().dims();
  std::vector<int64_t> dims = {i->operand_count()};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  Ints offsets(sizes.size());
  std::iota(offsets.begin(), offsets.end(), 1);
  Instruction* gather = MakeShaped(i, ShapeOf(i->shape().type(), dims), Opcode::kGather,
                                   {slices[0]->operand(0), indices},
                                   {{Attr::kOffsetDims, std::move(offsets)},
                                    {Attr::kCollapsedSliceDims, Ints{}},
                                    {Attr::kStartIndexMap, Ints{*along}},
                                    {Attr::kIndexVectorDim, int64_t{1}},
                                    {Attr::kSliceSizes, sizes}});
  return Make(i, Opcode::kReshape, {gather});
}

// Whether x is `op(y, number)`.
bool IsWithNumber(const Instruction* x, Opcode opcode, int64_t number) {
  if (x->opcode() != opcode) return false;
  const std::optional<Literal> splat = SplatOf(x->operand(1));
  return splat && splat->AsInt(0) == number;
}

// The byte of which `low` and `high` are the halves; null if they are not, or are signed.
Instruction* UnsignedByteOf(const Instruction* low, const Instruction* high) {
  if (low->shape().type() != ElementType::kU8 || !IsWithNumber(low, Opcode::kAnd, 15) ||
      !IsWithNumber(high, Opcode::kShiftRightLogical, 4)) {
    return nullptr;
  }
  return low->operand(0) == high->operand(0) ? low->operand(0) : nullptr;
}
Instruction* SignedByteOf(const Instruction* low, const Instruction* high) {
  if (low->shape().type() != ElementType::kS8 ||
      !IsWithNumber(low, Opcode::kShiftRightArithmetic, 4) ||
      !IsWithNumber(high, Opcode::kShiftRightArithmetic, 4)) {
    return nullptr;
  }
  const Instruction* shifted = low->operand(0);
  if (!IsWithNumber(shifted, Opcode::kShiftLeft, 4)) return nullptr;
  return shifted->operand(0) == high->operand(0) ? high->operand(0) : nullptr;
}

// Both halves of each byte side by side, as a bitcast-convert to numbers of four bits gives them:
// with signs where the bytes have them.
Instruction* HalvesOf(Instruction* at, Instruction* bytes, const std::vector<int64_t>& dims) {
  const bool is_signed = IsSigned(bytes);
  const Shape shape = ShapeOf(ElementType::kU8, dims), with_sign = ShapeOf(ElementType::kS8, dims);
  const std::vector<int64_t> flat(dims.begin(), dims.end() - 1);
  if (is_signed) {
    bytes = MakeShaped(at, WithType(bytes->shape(), ElementType::kU8), Opcode::kBitcastConvert,
                       {bytes});
  }
  bytes = MakeShaped(at, ShapeOf(ElementType::kU8, flat), Opcode::kReshape, {bytes});
  Ints places(flat.size());
  std::iota(places.begin(), places.end(), 0);
  const auto last = static_cast<int64_t>(flat.size());
  Instruction* spread =
      MakeShaped(at, shape, Opcode::kBroadcast, {bytes}, {{Attr::kDimensions, std::move(places)}});
  Instruction* by = MakeShaped(at, shape, Opcode::kIota, {}, {{Attr::kIotaDimension, last}});
  by = MakeShaped(at, shape, Opcode::kMultiply, {by, SplatNumber(at, shape, 4)});
  Instruction* halves = MakeShaped(at, shape, Opcode::kShiftRightLogical, {spread, by});
  halves = MakeShaped(at, shape, Opcode::kAnd, {halves, SplatNumber(at, shape, 15)});
  if (!is_signed) return halves;
  Instruction* four = SplatNumber(at, with_sign, 4);
  halves = MakeShaped(at, with_sign, Opcode::kBitcastConvert, {halves});
  halves = MakeShaped(at, with_sign, Opcode::kShiftLeft, {halves, four});
  return MakeShaped(at, with_sign, Opcode::kShiftRightArithmetic, {halves, four});
}

// What is made of halves of bytes, or of numbers beside them, as `low` and `high` are of each of
// two; of `dims`, of which the last is the pair. Null where it is anything else.
Instruction* OfHalves(Instruction* at, Instruction* low, Instruction* high,
                      const std::vector<int64_t>& dims, int depth = 0) {
  constexpr int kDeepest = 6;
  const ElementType type = low->shape().type();
  Instruction* byte = UnsignedByteOf(low, high);
  if (!byte) byte = SignedByteOf(low, high);
  if (byte) {
    return HalvesOf(at, byte, dims);
  }
  if (depth == kDeepest || low->opcode() != high->opcode() || high->shape().type() != type) {
    return nullptr;
  }
  const bool is_convert = low->opcode() == Opcode::kConvert;
  const bool is_binary = IsElementwise(low->opcode()) && low->operand_count() == 2 &&
                         low->attributes() == high->attributes();
  if (!is_convert && !is_binary) return nullptr;
  Instruction* number = is_binary ? low->operand(1) : nullptr;
  if (number && (!IsSpread(number) || !IsSame(number, high->operand(1)))) return nullptr;
  std::vector<Instruction*> operands = {
      OfHalves(at, low->operand(0), high->operand(0), dims, depth + 1)};
  if (!operands[0]) return nullptr;
  if (number) {
    const Shape shape = ShapeOf(number->shape().type(), dims);
    operands.push_back(Spread(at, shape, ScalarOf(at, number)));
  }
  return MakeShaped(at, ShapeOf(type, dims), low->opcode(), std::move(operands), low->attributes());
}

// concatenate(f(x & 15), f(x >> 4)) => f((broadcast(x) >> 4 * iota) & 15)   where x is of u8, and a
// pair of halves the last dimension; f converts, and has numbers for its right operands
// concatenate(f((x << 4) >> 4), f(x >> 4)) => f((((broadcast(x) >> 4 * iota) & 15) << 4) >> 4)   of
// s8 the same
Instruction* OfHalves(Instruction* i) {
  const int64_t last = i->shape().rank() - 1;
  if (i->operand_count() != 2 || i->dimensions()[0] != last || i->shape().dim(last) != 2 ||
      !i->shape().is_static()) {
    return nullptr;
  }
  Instruction *low = i->operand(0), *high = i->operand(1);
  for (Instruction** x : {&low, &high}) {
    if ((*x)->opcode() == Opcode::kReshape) *x = (*x)->operand(0);
  }
  if (!low->shape().SameDimensions(high->shape())) return nullptr;
  return OfHalves(i, low, high, i->shape().dims());
}

}  // namespace

Instruction* ConcatenateRules(Instruction* i) {
  if (i->opcode() != Opcode::kConcatenate || i->shape().num_elements() == 0) return nullptr;
  // concatenate(x) => x
  if (i->operand_count() == 1) return i->operand(0);
  size_t d = static_cast<size_t>(i->dimensions()[0]);
  if (Instruction* repeated = Repeated(i, i->dimensions()[0])) return repeated;
  std::vector<Instruction*> parts;
  for (Instruction* x : i->operands()) {
    // concatenate(x, {}) => concatenate(x)
    if (x->shape().num_elements() == 0) continue;
    if (x->opcode() == Opcode::kConcatenate && x->dimensions() == i->dimensions() &&
        IsUsedOnce(x)) {
      // concatenate(concatenate(x, y), z) => concatenate(x, y, z)   where the inner one has no
      // other users
      parts.insert(parts.end(), x->operands().begin(), x->operands().end());
    } else {
      parts.push_back(x);
    }
  }
  parts = JoinRuns(i, parts, d);
  if (!std::ranges::equal(parts, i->operands())) {
    return parts.size() == 1 ? parts[0]
                             : Make(i, Opcode::kConcatenate, std::move(parts),
                                    {{Attr::kDimensions, i->dimensions()}});
  }
  if (Instruction* moved = OfTransposes(i)) return moved;
  if (Instruction* stacked = OfScalars(i)) return stacked;
  if (Instruction* gathered = OfDynamicSlices(i)) return gathered;
  if (Instruction* halves = OfHalves(i)) return halves;
  return i->operand_count() == 2 ? AsPad(i, d) : nullptr;
}

}  // namespace kiln::passes::simplify
