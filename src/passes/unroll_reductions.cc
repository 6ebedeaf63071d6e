// reduce(concatenate(x1, ..., xn), init, f) => f(...f(f(init, x1), x2)..., xn)   where each of few
// xk has one element along the reduced dimension; also behind elementwise ops, and of several
// operands at once   (sums of narrow floats: in f32)
// reduce(concatenate(x1, ..., xn), init, op) => reduce(op(...op(x1, x2)..., xn), init, op)   where
// other dimensions are reduced, too   (order)
//
// A kernel that folds a concatenation asks of each element which operand it is from. Unrolled, the
// operands are values of one kernel, and a region of several results, such as that of argmax, has
// places that are constants.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

#include "kernel/region.h"
#include "passes/call_layouts.h"
#include "passes/control/computations.h"
#include "passes/inline_region.h"
#include "passes/passes.h"
#include "passes/simplify/terms.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// The most columns of a reduction, and the most ops on them all.
constexpr int64_t kMaxColumns = 16, kMaxOps = 256;

Shape Without(const Shape& shape, int64_t d) {
  std::vector<int64_t> dims = shape.dims();
  dims.erase(dims.begin() + d);
  return simplify::ShapeOf(shape.type(), dims);
}

// Whether x is a concatenation of single columns along d.
bool IsStack(const Instruction& x, int64_t d) {
  if (x.opcode() != Opcode::kConcatenate || x.dimensions()[0] != d) return false;
  return std::ranges::all_of(
      x.operands(), [&](const Instruction* column) { return column->shape().dim(d) == 1; });
}

bool IsElementwiseArray(const Instruction& x) {
  return IsElementwise(x.opcode()) && x.shape().rank() > 0;
}

// Whether sums are wider than their type.
bool IsNarrowSum(const Instruction& reduce) {
  if (!reduce.shape().is_array() || !IsHalf(reduce.shape().type())) return false;
  std::optional<Opcode> op = simplify::ReducerOf(reduce);
  return op == Opcode::kAdd || op == Opcode::kMultiply;
}

// The columns along d of the operands of a reduction.
class Columns {
 public:
  // What operands are made of.
  struct Parts {
    // Stacks, and the elementwise ops behind them: without use when the columns are used instead.
    std::unordered_set<const Instruction*> inside;
    bool has_stack = false, has_columns = true;
  };

  static Parts PartsOf(const Instruction& reduce, int64_t d) {
    Parts parts;
    for (int64_t k = 0; k < reduce.operand_count() / 2; ++k) Visit(*reduce.operand(k), d, &parts);
    return parts;
  }

  Columns(int64_t d, Instruction* at) : d_(d), at_(at) {}

  Instruction* Of(Instruction* x, int64_t k) {
    if (x->shape().rank() == 0) return x;
    Instruction*& column = columns_[{x, k}];
    if (!column) column = Make(x, k);
    return column;
  }

 private:
  static void Visit(const Instruction& x, int64_t d, Parts* parts) {
    if (!parts->has_columns || x.shape().rank() == 0 || parts->inside.contains(&x)) return;
    if (IsStack(x, d)) {
      parts->has_stack = true;
      parts->inside.insert(&x);
    } else if (IsElementwiseArray(x)) {
      parts->inside.insert(&x);
      parts->has_columns &= std::ssize(parts->inside) <= kMaxOps;
      for (const Instruction* operand : x.operands()) Visit(*operand, d, parts);
    } else if (x.opcode() != Opcode::kBroadcast && x.opcode() != Opcode::kIota && !x.IsConstant()) {
      // Vectors read slices as they are, unless they are of the last dimension.
      parts->has_columns &= d + 1 < x.shape().rank() && x.shape().is_row_major();
    }
  }

  Instruction* Make(Instruction* x, int64_t k) {
    const Shape shape = Without(x->shape(), d_);
    if (IsStack(*x, d_)) return Reshaped(shape, x->operand(k));
    if (IsElementwiseArray(*x)) {
      std::vector<Instruction*> operands;
      for (Instruction* operand : x->operands()) operands.push_back(Of(operand, k));
      return simplify::MakeShaped(at_, shape, x->opcode(), std::move(operands), x->attributes());
    }
    if (x->opcode() == Opcode::kIota) {
      const int64_t along = x->attributes().Int(Attr::kIotaDimension);
      if (along == d_) return simplify::SplatNumber(at_, shape, static_cast<double>(k));
      return simplify::MakeShaped(at_, shape, Opcode::kIota, {},
                                  {{Attr::kIotaDimension, along - (along > d_)}});
    }
    if (x->opcode() == Opcode::kBroadcast) {
      Instruction* operand = x->operand(0);
      Ints dimensions;
      for (int64_t place = 0; int64_t d : x->dimensions()) {
        if (d == d_) {
          operand = Slice(operand, place, k);
        } else {
          dimensions.push_back(d - (d > d_));
        }
        ++place;
      }
      return simplify::MakeShaped(at_, shape, Opcode::kBroadcast, {operand},
                                  {{Attr::kDimensions, std::move(dimensions)}});
    }
    return Slice(x, d_, k);
  }

  // The kth column of x along d.
  Instruction* Slice(Instruction* x, int64_t d, int64_t k) {
    std::vector<SliceDimension> slices;
    for (int64_t size : x->shape().dims()) slices.push_back({0, size, 1});
    slices[static_cast<size_t>(d)] = {k, k + 1, 1};
    std::vector<int64_t> dims = x->shape().dims();
    dims[static_cast<size_t>(d)] = 1;
    const Shape shape = simplify::ShapeOf(x->shape().type(), dims);
    return Reshaped(Without(shape, d), simplify::MakeShaped(at_, shape, Opcode::kSlice, {x},
                                                            {{Attr::kSlice, std::move(slices)}}));
  }

  Instruction* Reshaped(const Shape& shape, Instruction* x) {
    return simplify::MakeShaped(at_, shape, Opcode::kReshape, {x});
  }

  const int64_t d_;
  Instruction* const at_;
  std::map<std::pair<Instruction*, int64_t>, Instruction*> columns_;
};

// A reduction that is unrolled along a dimension.
struct Candidate {
  Instruction* reduce;
  int64_t dimension;
  std::unordered_set<const Instruction*> inside;
};

std::optional<Candidate> CandidateOf(Instruction* i) {
  if (i->opcode() != Opcode::kReduce || (i->users().empty() && !i->IsRoot())) return std::nullopt;
  const Shape& shape = i->operand(0)->shape();
  if (!shape.is_static()) return std::nullopt;
  for (int64_t d : i->dimensions()) {
    if (shape.dim(d) < 2 || shape.dim(d) > kMaxColumns) continue;
    if (i->dimensions().size() > 1 && (!simplify::ReducerOf(*i) || IsNarrowSum(*i))) continue;
    Columns::Parts parts = Columns::PartsOf(*i, d);
    if (!parts.has_stack || !parts.has_columns) continue;
    if (!kernel::IsScalarRegion(*i->called(0))) continue;
    const int64_t ops = std::ssize(parts.inside) + std::ssize(i->called(0)->instructions());
    if (ops * shape.dim(d) <= kMaxOps) return Candidate{i, d, std::move(parts.inside)};
  }
  return std::nullopt;
}

// Those of a computation after which their stacks have no users: otherwise the columns are in
// memory anyway.
std::vector<Candidate> CandidatesOf(const Computation& c) {
  std::vector<Candidate> candidates;
  for (Instruction* i : c.instructions()) {
    if (std::optional<Candidate> candidate = CandidateOf(i)) {
      candidates.push_back(*std::move(candidate));
    }
  }
  size_t before;
  do {
    before = candidates.size();
    std::unordered_set<const Instruction*> gone;
    for (const Candidate& candidate : candidates) {
      gone.insert(candidate.reduce);
      gone.insert(candidate.inside.begin(), candidate.inside.end());
    }
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return std::ranges::any_of(candidate.inside, [&](const Instruction* x) {
        return x->IsRoot() || std::ranges::any_of(x->users(), [&](const Instruction* user) {
                 return !gone.contains(user);
               });
      });
    });
  } while (candidates.size() < before);
  return candidates;
}

// The values of the reduction, row-major.
std::vector<Instruction*> Unrolled(Instruction* reduce, int64_t d) {
  const int64_t count = reduce->operand_count() / 2;
  const bool is_whole = reduce->dimensions().size() == 1, is_narrow = IsNarrowSum(*reduce);
  const Shape shape = Without(reduce->operand(0)->shape(), d);
  Columns columns(d, reduce);
  auto wide = [&](Instruction* x) {
    if (!is_narrow) return x;
    return simplify::MakeShaped(reduce, simplify::WithType(shape, ElementType::kF32),
                                Opcode::kConvert, {x});
  };
  auto column = [&](int64_t x, int64_t k) { return wide(columns.Of(reduce->operand(x), k)); };
  std::vector<Instruction*> values;
  for (int64_t x = 0; x < count; ++x) {
    Instruction* init = reduce->operand(count + x);
    values.push_back(is_whole ? wide(simplify::Spread(
                                    reduce, simplify::WithType(shape, init->shape().type()), init))
                              : column(x, 0));
  }
  for (int64_t k = is_whole ? 0 : 1; k < reduce->operand(0)->shape().dim(d); ++k) {
    for (int64_t x = 0; x < count; ++x) values.push_back(column(x, k));
    values = is_narrow ? std::vector<Instruction*>{simplify::MakeShaped(
                             reduce, values[0]->shape(), *simplify::ReducerOf(*reduce), values)}
                       : InlineRegion(*reduce->called(0), values, shape, reduce);
  }
  if (is_narrow) {
    values[0] = simplify::MakeShaped(reduce, shape, Opcode::kConvert, {values[0]});
  }
  if (!is_whole) {
    Ints rest;
    for (int64_t other : reduce->dimensions()) {
      if (other != d) rest.push_back(other - (other > d));
    }
    values[0] =
        simplify::MakeReduce(reduce, simplify::WithType(reduce->shape(), reduce->shape().type()),
                             values[0], reduce->operand(count), std::move(rest));
  }
  return values;
}

void Replace(Instruction* reduce, std::vector<Instruction*> values) {
  Computation& c = *reduce->parent();
  const Shape& shape = reduce->shape();
  Instruction* value = shape.is_tuple() ? MakeTuple(&c, std::move(values), reduce) : values[0];
  c.ReplaceAllUses(reduce, WithLayouts(value, shape, reduce));
  c.Remove(reduce);
}

}  // namespace

Result<bool> UnrollReductions(ir::Module& module, const PassContext&) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    for (const Candidate& candidate : CandidatesOf(*c)) {
      Replace(candidate.reduce, Unrolled(candidate.reduce, candidate.dimension));
      changed = true;
    }
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
