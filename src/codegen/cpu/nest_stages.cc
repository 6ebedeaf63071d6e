// Stages at one outer point: their loops, reductions and stores.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/strings.h"
#include "codegen/cpu/nest_code.h"
#include "kernel/selection.h"

namespace kiln::codegen {

using kernel::Reduction;
using kernel::ReductionId;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;
using Range = NestEmitter::Range;

void NestCode::EmitPoint() {
  if (schedule_.split > 0) {
    EmitStage(StageId(0));
    return;
  }
  for (StageId s : kernel_.stages.ids()) EmitStage(s);
  e_->ForgetReduced();
}

void NestCode::EmitStage(StageId s) {
  const Stage& stage = kernel_.stages[s];
  NestEmitter::Mark mark = e_->GetMark();
  e_->EmitReady(s);
  VariableId vector = schedule_.stages[s].vector_variable;
  // A vector variable of the stage's own makes lanes of accumulators that are combined at last.
  bool own = kernel_.IsInner(vector);
  bool partial = schedule_.split > 0 && s == StageId(0);
  if (own && vectors()) {
    e_->Fail(Internal("kernel ", kernel_.name, ": vectors along two variables"));
    return;
  }
  Values carried = Start(s, own, partial);
  if (!e_->IsDead(s)) {
    std::vector<VariableId> order = stage.variables;
    std::stable_partition(order.begin(), order.end(), [&](VariableId v) { return v != vector; });
    EmitInner(s, order, 0, own, carried);
  }
  Finish(s, own, partial, carried);
  e_->Rewind(mark);
}

void NestCode::EmitPointOf(StageId s, bool own, Values& carried) {
  e_->EmitReady(s);
  Fold(s, own, carried);
  for (size_t i = 0; i < kernel_.stages[s].stores.size(); ++i) {
    e_->EmitStore(s, static_cast<int>(i));
  }
  e_->EmitPrefetches(s);
}

Range NestCode::InnerRange(StageId s, VariableId v) {
  Range range = e_->FullRange(v);
  if (schedule_.split > 0 && s == StageId(0) && v == kernel_.stages.front().variables[0]) {
    int64_t extent = kernel_.variables[v].extent, split = schedule_.split;
    range.begin = b().CreateMul(chunk_, e_->Int(split));
    range.end = b().CreateAdd(range.begin, e_->Int(split));
    range.aligned = split;
    range.multiple = std::gcd(split, extent);
    if (extent % split != 0) range.end = EmitMin(b(), range.end, e_->Int(extent));
  }
  return range;
}

void NestCode::EmitInner(StageId s, const std::vector<VariableId>& order, size_t at, bool own,
                         Values& carried) {
  if (at == order.size()) return EmitPointOf(s, own, carried);
  const VariableId v = order[at];
  Range range = InnerRange(s, v);
  if (own && v == schedule_.stages[s].vector_variable) {
    e_->VectorLoop(v, range, schedule_.vector_width, schedule_.stages[s], carried,
                   [&](Values& values) { EmitInner(s, order, at + 1, own, values); });
  } else {
    e_->ScalarLoop(v, range, carried, [&](Values& values) {
      e_->EmitReady(s);
      EmitInner(s, order, at + 1, own, values);
    });
  }
}

Values NestCode::Start(StageId s, bool own, bool partial) {
  Values carried, nans;
  for (const Reduction& r : kernel_.stages[s].reductions) {
    for (size_t k = 0; k < r.inputs.size(); ++k) {
      Value* identity = IdentityOf(b().getContext(), r.combiner.kind, r.types[k]);
      // A selection may begin with its initial values as often as it likes.
      if (!identity && own && !partial) identity = e_->Use(s, r.inits[k], 0, false);
      if ((own || partial) && !identity) {
        e_->Fail(Internal("kernel ", kernel_.name, ": a general reduction cannot be cut"));
        identity = llvm::Constant::getNullValue(RegisterType(b().getContext(), r.types[k]));
      }
      if (SeeksNans(r, k, own)) {
        nans.push_back(AsNans(Splat(b(), b().getFalse(), schedule_.vector_width)));
      }
      size_t count = PerResult(s, own);
      for (size_t i = 0; i < count; ++i) {
        if (own) {
          bool scalar = ScalarTail() && i + 1 == count;
          carried.push_back(Splat(b(), identity, scalar ? 1 : schedule_.vector_width));
        } else if (partial) {
          carried.push_back(Splat(b(), identity, e_->width()));
        } else {
          carried.push_back(e_->Use(s, r.inits[k], static_cast<int>(i), vectors()));
        }
      }
    }
  }
  carried.insert(carried.end(), nans.begin(), nans.end());
  return carried;
}

size_t NestCode::FirstNan(StageId s, bool own, const Values& carried) const {
  size_t first = carried.size();
  for (const Reduction& r : kernel_.stages[s].reductions) {
    for (size_t k = 0; k < r.inputs.size(); ++k) first -= SeeksNans(r, k, own);
  }
  return first;
}

void NestCode::Fold(StageId s, bool own, Values& carried) {
  size_t at = 0, per_result = PerResult(s, own), nans = FirstNan(s, own, carried);
  for (const Reduction& r : kernel_.stages[s].reductions) {
    if (r.combiner.kind == Combiner::Kind::kGeneral) {
      for (int u = 0; u < e_->copies(); ++u) FoldGeneral(s, r, own, u, at, carried);
      at += per_result * r.inputs.size();
      continue;
    }
    for (size_t k = 0; k < r.inputs.size(); ++k, at += per_result) {
      bool scalar_tail = own && !vectors(), seeks_nans = SeeksNans(r, k, own);
      if (seeks_nans) {
        // The scalar behind the vectors keeps its own.
        Value*& nan = carried[nans++];
        if (!scalar_tail) nan = b().CreateOr(nan, AsNans(AnyNan(s, r, k)));
        seeks_nans = !scalar_tail;
      }
      if (!own && e_->tiled() && vectors() && !r.guard.valid() && IsExtremum(r, k)) {
        carried[at] = Combine(r, k, false, carried[at], ExtremumOfRows(s, r, k));
        continue;
      }
      for (int u = 0; u < e_->copies(); ++u) {
        Value*& accumulator = carried[at + AccumulatorOf(s, own, u)];
        auto use = [&](kernel::NodeId node) { return e_->Use(s, node, u, vectors()); };
        const auto* factors = MathOf(cpu_).has_fma ? FusedFactors(kernel_.stages[s], r) : nullptr;
        Value* next = factors ? EmitFma(b(), use((*factors)[0]), use((*factors)[1]), accumulator)
                              : Combine(r, k, seeks_nans, accumulator, use(r.inputs[k]));
        if (r.guard.valid()) {
          next = b().CreateSelect(e_->Use(s, r.guard, u, vectors()), next, accumulator);
        }
        // Lanes beyond the end must not count; where lanes are outer points they do not matter.
        if (own && e_->mask()) next = b().CreateSelect(e_->mask(), next, accumulator);
        accumulator = next;
      }
    }
  }
}

Value* NestCode::AnyNan(StageId s, const Reduction& r, size_t result) {
  Value* any = nullptr;
  auto add = [&](Value* nan) { any = any ? b().CreateOr(any, nan) : nan; };
  int copies = e_->copies();
  bool pairs = !r.guard.valid();
  for (int u = 0; u < copies; u += pairs ? 2 : 1) {
    Value* first = e_->Use(s, r.inputs[result], u, true);
    Value* second = pairs && u + 1 < copies ? e_->Use(s, r.inputs[result], u + 1, true) : first;
    Value* nan = b().CreateFCmpUNO(first, second);
    add(pairs ? nan : b().CreateAnd(nan, e_->Use(s, r.guard, u, true)));
  }
  return e_->mask() ? b().CreateAnd(any, e_->mask()) : any;
}

Value* NestCode::ExtremumOfRows(StageId s, const Reduction& r, size_t result) {
  Values rows;
  for (int u = 0; u < e_->copies(); ++u) rows.push_back(e_->Use(s, r.inputs[result], u, true));
  for (size_t n = rows.size(); n > 1; n -= n / 2) {
    for (size_t i = 0; i < n / 2; ++i) {
      rows[i] = Combine(r, result, true, rows[i], rows[i + n - n / 2]);
    }
  }
  llvm::Constant* nan = llvm::ConstantFP::getNaN(rows[0]->getType());
  return b().CreateSelect(AnyNan(s, r, result), nan, rows[0]);
}

void NestCode::FoldGeneral(StageId s, const Reduction& r, bool own, int copy, size_t at,
                           Values& carried) {
  const size_t n = r.inputs.size(), per_result = PerResult(s, own);
  const size_t place = AccumulatorOf(s, own, copy);
  Values arguments;
  for (size_t k = 0; k < n; ++k) arguments.push_back(carried[at + k * per_result + place]);
  for (kernel::NodeId input : r.inputs) arguments.push_back(e_->Use(s, input, copy, vectors()));
  Values results = e_->EmitCombiner(r.combiner, arguments);
  for (size_t k = 0; k < results.size(); ++k) {
    Value*& accumulator = carried[at + k * per_result + place];
    auto keep_unless = [&](Value* condition) {
      results[k] = b().CreateSelect(condition, results[k], accumulator);
    };
    if (r.guard.valid()) keep_unless(e_->Use(s, r.guard, copy, vectors()));
    if (own && e_->mask()) keep_unless(e_->mask());
    accumulator = results[k];
  }
}

Values NestCode::CombineSequences(StageId s, const Reduction& r, const Values& carried, size_t at) {
  const std::optional<kernel::Sequences> sequences =
      kernel::SequencesOf(kernel_, kernel_.stages[s], r);
  const size_t n = r.inputs.size(), per_result = PerResult(s, true);
  if (!sequences) {
    e_->Fail(Internal("kernel ", kernel_.name, ": a general reduction cannot be cut"));
    return Values(carried.begin() + at, carried.begin() + at + n);
  }
  auto accumulators = [&](size_t i) {
    Values of;
    for (size_t k = 0; k < n; ++k) of.push_back(carried[at + k * per_result + i]);
    return of;
  };
  auto combine = [&](Values x, Values y) {
    if (sequences->by) EmitOrder(b(), r.types[*sequences->by], *sequences->by, x, y);
    x.insert(x.end(), y.begin(), y.end());
    Values both = e_->EmitCombiner(r.combiner, x);
    return both.size() == n ? both : y;
  };
  const size_t vectors = per_result - (ScalarTail() ? 1 : 0);
  Values total = accumulators(0);
  for (size_t i = 1; i < vectors; ++i) total = combine(std::move(total), accumulators(i));
  for (int distance = schedule_.vector_width / 2; distance > 0; distance /= 2) {
    std::vector<int> lanes;
    for (int l = 0; l < schedule_.vector_width; ++l) {
      lanes.push_back((l + distance) % schedule_.vector_width);
    }
    Values turned;
    for (Value* v : total) turned.push_back(b().CreateShuffleVector(v, lanes));
    total = combine(std::move(total), std::move(turned));
  }
  if (schedule_.vector_width > 1) {
    for (Value*& v : total) v = b().CreateExtractElement(v, uint64_t{0});
  }
  return ScalarTail() ? combine(std::move(total), accumulators(vectors)) : total;
}

Value* NestCode::CombineTree(const Reduction& r, size_t result, bool seeks_nans, Values values) {
  for (size_t n = values.size(); n > 1; n /= 2) {
    for (size_t i = 0; i < n / 2; ++i) {
      values[i] = Combine(r, result, seeks_nans, values[i], values[i + n / 2]);
    }
  }
  Value* v = values[0];
  // Numbers have no instruction of fewer than four lanes.
  int64_t least = seeks_nans ? 4 : 1;
  for (int64_t width = schedule_.vector_width; width > 1; width /= 2) {
    std::vector<int> low, high;
    for (int64_t l = 0; l < std::max(width / 2, least); ++l) {
      low.push_back(static_cast<int>(l));
      high.push_back(static_cast<int>(l % (width / 2) + width / 2));
    }
    v = Combine(r, result, seeks_nans, b().CreateShuffleVector(v, low),
                b().CreateShuffleVector(v, high));
  }
  return schedule_.vector_width > 1 ? b().CreateExtractElement(v, uint64_t{0}) : v;
}

void NestCode::Finish(StageId s, bool own, bool partial, const Values& carried) {
  size_t at = 0, per_result = PerResult(s, own), id = 0;
  std::vector<int> ids;
  const auto& reductions = kernel_.stages[s].reductions;
  if (partial) ids = PartialAccesses(chunk_);
  size_t nans = FirstNan(s, own, carried);
  for (ReductionId r : reductions.ids()) {
    if (own && !partial && reductions[r].combiner.kind == Combiner::Kind::kGeneral) {
      Values totals = CombineSequences(s, reductions[r], carried, at);
      for (size_t k = 0; k < totals.size(); ++k) SetReduced(s, r, k, {totals[k]});
      at += per_result * totals.size();
      continue;
    }
    for (size_t k = 0; k < reductions[r].inputs.size(); ++k, at += per_result) {
      ElementType type = reductions[r].types[k];
      Combiner::Kind kind = reductions[r].combiner.kind;
      Values values(carried.begin() + at, carried.begin() + at + per_result);
      if (own) {
        Value* tail = nullptr;
        if (ScalarTail()) {
          tail = values.back();
          values.pop_back();
        }
        bool seeks_nans = SeeksNans(reductions[r], k, own);
        Value* total = CombineTree(reductions[r], k, seeks_nans, std::move(values));
        if (seeks_nans) {
          llvm::Constant* nan = llvm::ConstantFP::getNaN(total->getType());
          Value* any = b().CreateIsNotNull(b().CreateOrReduce(carried[nans++]));
          total = b().CreateSelect(any, nan, total);
        }
        if (tail) total = EmitCombine(b(), kind, type, total, tail, MathOf(cpu_));
        if (!partial) {
          Value* init = e_->Use(s, reductions[r].inits[k], 0, false);
          total = EmitCombine(b(), kind, type, init, total, MathOf(cpu_));
        }
        values = {total};
      }
      if (partial) {
        e_->StoreAccess(ids[id++], Lanes{std::move(values), vectors()});
      } else {
        SetReduced(s, r, k, std::move(values));
      }
    }
  }
}

}  // namespace kiln::codegen
