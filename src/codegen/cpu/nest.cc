#include "codegen/cpu/nest.h"

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "codegen/cpu/nest_emitter.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen {
namespace {

using kernel::Combiner;
using kernel::CpuNestSchedule;
using kernel::Index;
using kernel::Kernel;
using kernel::Node;
using kernel::Reduction;
using kernel::Stage;
using llvm::Value;
using Values = NestEmitter::Values;
using Range = NestEmitter::Range;

class NestCode {
 public:
  NestCode(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
           const target::Cpu& cpu)
      : function_(function),
        kernel_(kernel),
        schedule_(schedule),
        cpu_(cpu),
        e_(function, kernel, cpu, schedule.nontemporal),
        b_(e_.builder()) {
    e_.AddPrefetches(schedule.prefetches);
  }
  NestCode(Builder::InsertPoint at, Values args, const Kernel& kernel,
           const CpuNestSchedule& schedule, const target::Cpu& cpu)
      : function_(at.getBlock()->getParent()),
        kernel_(kernel),
        schedule_(schedule),
        cpu_(cpu),
        e_(std::move(args), kernel, cpu, at),
        b_(e_.builder()) {}

  Status Emit() {
    if (IsEmpty()) {
      b_.CreateRetVoid();
      return OkStatus();
    }
    PrepareSplit();
    e_.EmitReadyInAll();
    Value *begin = function_->getArg(2), *end = function_->getArg(3);
    if (schedule_.split > 0) {
      auto* finish = llvm::BasicBlock::Create(b_.getContext(), "finish", function_);
      auto* work = llvm::BasicBlock::Create(b_.getContext(), "work", function_);
      b_.CreateCondBr(b_.CreateICmpEQ(begin, e_.Int(schedule_.items)), finish, work);
      b_.SetInsertPoint(finish);
      EmitFinish();
      b_.CreateRetVoid();
      b_.SetInsertPoint(work);
    }
    Values none;
    e_.Loop(begin, end, 1, false, none, [&](Value* item, Values&) { EmitItem(item); });
    if (schedule_.nontemporal && llvm::StringRef(cpu_.triple).starts_with("x86_64")) {
      b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    }
    b_.CreateRetVoid();
    return e_.status();
  }

  // All items, and nothing that ends the function.
  Result<Builder::InsertPoint> EmitInline() {
    if (!IsEmpty()) {
      e_.EmitReadyInAll();
      Values none;
      e_.Loop(e_.Int(0), e_.Int(schedule_.items), 1, schedule_.items > 0, none,
              [&](Value* item, Values&) { EmitItem(item); });
    }
    KILN_RETURN_IF_ERROR(e_.status());
    return b_.saveIP();
  }

 private:
  bool IsEmpty() const {
    return std::any_of(kernel_.variables.begin(), kernel_.variables.begin() + kernel_.outer,
                       [](const kernel::Variable& v) { return v.extent == 0; });
  }

  using OuterLoop = NestEmitter::ItemLoop;

  int vector_variable() const { return schedule_.stages[0].vector_variable; }
  bool IsOuter(int variable) const { return variable >= 0 && variable < kernel_.outer; }

  // --- Outer loops

  void EmitItem(Value* item) {
    NestEmitter::Mark mark = e_.GetMark();
    if (schedule_.split > 0) {
      // Chunks are the innermost part of an item's number.
      chunk_ = item;
      if (schedule_.parallel > 0) {
        chunk_ = b_.CreateURem(item, e_.Int(schedule_.chunks));
        item = b_.CreateUDiv(item, e_.Int(schedule_.chunks));
      }
    }
    NestEmitter::Item ranges = e_.OpenItem(item, schedule_);
    std::vector<OuterLoop> loops = std::move(ranges.loops);
    e_.EmitReadyInAll();
    EmitOuter(std::move(loops), [&] { EmitPoint(); });
    for (int v : ranges.bound) e_.Unbind(v);
    e_.Rewind(mark);
  }

  void EmitOuter(std::vector<OuterLoop> loops, const std::function<void()>& point) {
    // The vector variable's loop goes inside all others but that of tiles.
    auto depth = [&](const OuterLoop& l) {
      return l.variable == vector_variable() ? 1 : l.variable == schedule_.tile_variable ? 2 : 0;
    };
    std::stable_sort(loops.begin(), loops.end(),
                     [&](const OuterLoop& a, const OuterLoop& b) { return depth(a) < depth(b); });
    EmitOuterFrom(loops, 0, point);
  }

  void EmitOuterFrom(const std::vector<OuterLoop>& loops, size_t at,
                     const std::function<void()>& point) {
    if (at == loops.size()) return point();
    const OuterLoop& loop = loops[at];
    Values none;
    if (loop.variable == vector_variable()) {
      e_.VectorLoop(loop.variable, loop.range, schedule_.vector_width, schedule_.stages[0], none,
                    [&](Values&) { EmitOuterFrom(loops, at + 1, point); });
      return;
    }
    if (loop.variable == schedule_.tile_variable) {
      return e_.TileLoop(loop.variable, loop.range, point);
    }
    e_.ScalarLoop(loop.variable, loop.range, none, [&](Values&) {
      e_.EmitReadyInAll();
      EmitOuterFrom(loops, at + 1, point);
    });
  }

  // --- Split reductions: partial results are in scratch: of each result, by chunk, then by outer
  // point.

  void PrepareSplit() {
    if (schedule_.split == 0) return;
    Value* slot =
        b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(1), kernel_.params.size());
    Value* scratch = b_.CreateLoad(b_.getPtrTy(), slot);
    Index point = 0;
    int64_t points = 1;
    auto add = [&](int v) {
      int64_t extent = kernel_.variables[v].extent;
      point = point + Index::Variable(v, extent) * points;
      points *= extent;
    };
    // Neighbours along the vector variable are neighbours in memory.
    if (IsOuter(vector_variable())) add(vector_variable());
    for (int v = kernel_.outer; v-- > 0;) {
      if (v != vector_variable()) add(v);
    }
    int64_t offset = 0;
    for (const Reduction& r : kernel_.stages[0].reductions) {
      for (ElementType type : r.types) {
        Value* base =
            b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, static_cast<uint64_t>(offset));
        int64_t bytes = kernel::CpuPartialBytes(type, points);
        partials_.push_back({point, type, base, bytes});
        offset += bytes * schedule_.chunks;
      }
    }
    if (offset > schedule_.scratch_bytes) {
      e_.Fail(Internal("kernel ", kernel_.name, ": scratch of ", schedule_.scratch_bytes,
                       " bytes for partial results of ", offset));
    }
  }

  // Where the partial results of a chunk are.
  std::vector<int> PartialAccesses(Value* chunk) {
    std::vector<int> ids;
    for (const Partial& p : partials_) {
      Value* row =
          b_.CreateGEP(b_.getInt8Ty(), p.base, b_.CreateMul(chunk, e_.Int(p.bytes_per_chunk)));
      ids.push_back(e_.AddAccess(p.point, p.type, row));
    }
    return ids;
  }

  void EmitFinish() {
    NestEmitter::Mark mark = e_.GetMark();
    std::vector<OuterLoop> loops;
    for (int v = 0; v < kernel_.outer; ++v) loops.push_back({v, e_.FullRange(v)});
    EmitOuter(std::move(loops), [&] {
      NestEmitter::Mark point = e_.GetMark();
      e_.EmitReady(0);
      const Stage& stage = kernel_.stages[0];
      int copies = e_.copies();
      Values accumulators;
      for (const Reduction& r : stage.reductions) {
        for (int init : r.inits) {
          for (int u = 0; u < copies; ++u) accumulators.push_back(e_.Use(0, init, u, vectors()));
        }
      }
      e_.Loop(e_.Int(0), e_.Int(schedule_.chunks), 1, true, accumulators,
              [&](Value* chunk, Values& values) {
                std::vector<int> ids = PartialAccesses(chunk);
                size_t at = 0, id = 0;
                for (const Reduction& r : stage.reductions) {
                  for (ElementType type : r.types) {
                    Lanes partial;
                    e_.LoadAccess(ids[id++], partial);
                    for (int u = 0; u < copies; ++u, ++at) {
                      Value* v = partial.vector ? partial.copies[u]
                                                : Splat(b_, partial.copies[0], e_.width());
                      values[at] =
                          EmitCombine(b_, r.combiner.kind, type, values[at], v, MathOf(cpu_));
                    }
                  }
                }
              });
      size_t at = 0;
      for (size_t r = 0; r < stage.reductions.size(); ++r) {
        for (size_t k = 0; k < stage.reductions[r].inputs.size(); ++k) {
          SetReduced(0, r, k, {accumulators.begin() + at, accumulators.begin() + at + copies});
          at += copies;
        }
      }
      e_.Rewind(point);
      for (size_t s = 1; s < kernel_.stages.size(); ++s) EmitStage(static_cast<int>(s));
      e_.ForgetReduced();
    });
    e_.Rewind(mark);
  }

  // --- Stages at one outer point (or the points of one vector step)

  bool vectors() const { return e_.width() > 1; }

  void SetReduced(int stage, size_t reduction, size_t result, Values values) {
    e_.SetReduced(stage, static_cast<int>(reduction), static_cast<int>(result),
                  Lanes{std::move(values), vectors()});
  }

  void EmitPoint() {
    if (schedule_.split > 0) {
      EmitStage(0);
      return;
    }
    for (size_t s = 0; s < kernel_.stages.size(); ++s) EmitStage(static_cast<int>(s));
    e_.ForgetReduced();
  }

  void EmitStage(int s) {
    const Stage& stage = kernel_.stages[s];
    NestEmitter::Mark mark = e_.GetMark();
    e_.EmitReady(s);
    int vector = schedule_.stages[s].vector_variable;
    // A vector variable of the stage's own makes lanes of accumulators that are combined at last.
    bool own = vector >= 0 && !IsOuter(vector);
    bool partial = schedule_.split > 0 && s == 0;
    if (own && vectors()) {
      e_.Fail(Internal("kernel ", kernel_.name, ": vectors along two variables"));
      return;
    }
    Values carried = Start(s, own, partial);
    if (!e_.IsDead(s)) {
      std::vector<int> order = stage.variables;
      std::stable_partition(order.begin(), order.end(), [&](int v) { return v != vector; });
      EmitInner(s, order, 0, own, carried);
    }
    Finish(s, own, partial, carried);
    e_.Rewind(mark);
  }

  void EmitInner(int s, const std::vector<int>& order, size_t at, bool own, Values& carried) {
    if (at == order.size()) {
      e_.EmitReady(s);
      Fold(s, own, carried);
      for (size_t i = 0; i < kernel_.stages[s].stores.size(); ++i) {
        e_.EmitStore(s, static_cast<int>(i));
      }
      e_.EmitPrefetches(s);
      return;
    }
    int v = order[at];
    Range range = e_.FullRange(v);
    if (schedule_.split > 0 && s == 0 && v == kernel_.stages[0].variables[0]) {
      int64_t extent = kernel_.variables[v].extent, split = schedule_.split;
      range.begin = b_.CreateMul(chunk_, e_.Int(split));
      range.end = b_.CreateAdd(range.begin, e_.Int(split));
      range.aligned = split;
      range.multiple = std::gcd(split, extent);
      if (extent % split != 0) {
        Value* limit = e_.Int(extent);
        range.end = b_.CreateSelect(b_.CreateICmpSLT(range.end, limit), range.end, limit);
      }
    }
    if (own && v == schedule_.stages[s].vector_variable) {
      e_.VectorLoop(v, range, schedule_.vector_width, schedule_.stages[s], carried,
                    [&](Values& values) { EmitInner(s, order, at + 1, own, values); });
    } else {
      e_.ScalarLoop(v, range, carried, [&](Values& values) {
        e_.EmitReady(s);
        EmitInner(s, order, at + 1, own, values);
      });
    }
  }

  // --- Accumulators. Of each result: with a vector variable of the stage's own, `unroll` vectors
  // and a scalar for the scalar tail; else one for each copy of the outer point.

  bool ScalarTail() const { return !cpu_.has_masks; }
  size_t PerResult(int s, bool own) const {
    if (!own) return static_cast<size_t>(e_.copies());
    return static_cast<size_t>(schedule_.stages[s].unroll) + (ScalarTail() ? 1 : 0);
  }

  Values Start(int s, bool own, bool partial) {
    Values carried;
    for (const Reduction& r : kernel_.stages[s].reductions) {
      for (size_t k = 0; k < r.inputs.size(); ++k) {
        Value* identity = IdentityOf(b_.getContext(), r.combiner.kind, r.types[k]);
        if ((own || partial) && !identity) {
          e_.Fail(Internal("kernel ", kernel_.name, ": a general reduction cannot be cut"));
          identity = llvm::Constant::getNullValue(RegisterType(b_.getContext(), r.types[k]));
        }
        size_t count = PerResult(s, own);
        for (size_t i = 0; i < count; ++i) {
          if (own) {
            bool scalar = ScalarTail() && i + 1 == count;
            carried.push_back(Splat(b_, identity, scalar ? 1 : schedule_.vector_width));
          } else if (partial) {
            carried.push_back(Splat(b_, identity, e_.width()));
          } else {
            carried.push_back(e_.Use(s, r.inits[k], static_cast<int>(i), vectors()));
          }
        }
      }
    }
    return carried;
  }

  void Fold(int s, bool own, Values& carried) {
    size_t at = 0, per_result = PerResult(s, own);
    for (const Reduction& r : kernel_.stages[s].reductions) {
      if (r.combiner.kind == Combiner::Kind::kGeneral) {
        for (int u = 0; u < e_.copies(); ++u) FoldGeneral(s, r, u, at, per_result, carried);
        at += per_result * r.inputs.size();
        continue;
      }
      for (size_t k = 0; k < r.inputs.size(); ++k, at += per_result) {
        bool scalar_tail = own && !vectors();
        for (int u = 0; u < e_.copies(); ++u) {
          Value*& accumulator = carried[scalar_tail ? at + per_result - 1 : at + u];
          Value* input = e_.Use(s, r.inputs[k], u, vectors());
          Value* next =
              EmitCombine(b_, r.combiner.kind, r.types[k], accumulator, input, MathOf(cpu_));
          if (r.guard >= 0) {
            next = b_.CreateSelect(e_.Use(s, r.guard, u, vectors()), next, accumulator);
          }
          // Lanes beyond the end must not count; where lanes are outer points they do not matter.
          if (own && e_.mask()) next = b_.CreateSelect(e_.mask(), next, accumulator);
          accumulator = next;
        }
      }
    }
  }

  void FoldGeneral(int s, const Reduction& r, int copy, size_t at, size_t per_result,
                   Values& carried) {
    size_t n = r.inputs.size();
    Values arguments;
    for (size_t k = 0; k < n; ++k) arguments.push_back(carried[at + k * per_result + copy]);
    for (int input : r.inputs) arguments.push_back(e_.Use(s, input, copy, vectors()));
    Values results = e_.EmitCombiner(r.combiner, arguments);
    for (size_t k = 0; k < results.size(); ++k) {
      Value*& accumulator = carried[at + k * per_result + copy];
      if (r.guard >= 0) {
        results[k] = b_.CreateSelect(e_.Use(s, r.guard, copy, vectors()), results[k], accumulator);
      }
      accumulator = results[k];
    }
  }

  // In a fixed tree: i with i + n/2, and lanes alike.
  Value* CombineTree(const Reduction& r, ElementType type, Values values) {
    Combiner::Kind kind = r.combiner.kind;
    for (size_t n = values.size(); n > 1; n /= 2) {
      for (size_t i = 0; i < n / 2; ++i) {
        values[i] = EmitCombine(b_, kind, type, values[i], values[i + n / 2], MathOf(cpu_));
      }
    }
    Value* v = values[0];
    for (int64_t width = schedule_.vector_width; width > 1; width /= 2) {
      std::vector<int> low, high;
      for (int64_t l = 0; l < width / 2; ++l) {
        low.push_back(static_cast<int>(l));
        high.push_back(static_cast<int>(l + width / 2));
      }
      v = EmitCombine(b_, kind, type, b_.CreateShuffleVector(v, low),
                      b_.CreateShuffleVector(v, high), MathOf(cpu_));
    }
    return schedule_.vector_width > 1 ? b_.CreateExtractElement(v, uint64_t{0}) : v;
  }

  void Finish(int s, bool own, bool partial, const Values& carried) {
    size_t at = 0, per_result = PerResult(s, own), id = 0;
    std::vector<int> ids;
    const auto& reductions = kernel_.stages[s].reductions;
    if (partial) ids = PartialAccesses(chunk_);
    for (size_t r = 0; r < reductions.size(); ++r) {
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
          Value* total = CombineTree(reductions[r], type, std::move(values));
          if (tail) total = EmitCombine(b_, kind, type, total, tail, MathOf(cpu_));
          if (!partial) {
            Value* init = e_.Use(s, reductions[r].inits[k], 0, false);
            total = EmitCombine(b_, kind, type, init, total, MathOf(cpu_));
          }
          values = {total};
        }
        if (partial) {
          e_.StoreAccess(ids[id++], Lanes{std::move(values), vectors()});
        } else {
          SetReduced(s, r, k, std::move(values));
        }
      }
    }
  }

  struct Partial {
    Index point;
    ElementType type;
    Value* base;
    int64_t bytes_per_chunk;
  };

  llvm::Function* function_;
  const Kernel& kernel_;
  const CpuNestSchedule& schedule_;
  const target::Cpu& cpu_;
  NestEmitter e_;
  Builder& b_;
  Value* chunk_ = nullptr;
  std::vector<Partial> partials_;
};

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// A schedule that the emission can follow; anything else is a bug of the one who made it.
Status Check(const Kernel& kernel, const CpuNestSchedule& schedule) {
  auto fail = [&](std::string_view what) {
    return Internal("schedule of kernel ", kernel.name, ": ", what);
  };
  if (schedule.stages.size() != kernel.stages.size() || kernel.stages.empty()) {
    return fail("it has another number of stages");
  }
  if (!IsPowerOfTwo(schedule.vector_width) || schedule.vector_width > 64) {
    return fail("vector width");
  }
  if (schedule.parallel < 0 || schedule.parallel > kernel.outer || schedule.block < 1) {
    return fail("parallel variables");
  }
  int outer_vector = schedule.stages[0].vector_variable;
  if (outer_vector >= kernel.outer) outer_vector = -1;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const kernel::CpuStageSchedule& stage = schedule.stages[s];
    const std::vector<int>& variables = kernel.stages[s].variables;
    int v = stage.vector_variable;
    if (!IsPowerOfTwo(stage.unroll) || stage.unroll > 64) return fail("unroll");
    if (stage.unroll > 1 && schedule.vector_width == 1) return fail("unrolled scalar code");
    if (v >= kernel.outer) {
      if (std::find(variables.begin(), variables.end(), v) == variables.end()) {
        return fail("vector variable of another stage");
      }
      if (outer_vector >= 0) return fail("vectors along an outer and an inner variable");
      if (schedule.vector_width == 1) return fail("vectors of one element");
    } else if (v != outer_vector) {
      return fail("an outer vector variable holds for all stages");
    }
    if (!kernel.stages[s].reductions.empty()) {
      for (int i : variables) {
        if (!kernel.variables[i].reduction) {
          return Unimplemented("kernel ", kernel.name,
                               ": a reduction at each point of an inner variable");
        }
      }
    }
  }
  if (outer_vector >= 0 && outer_vector < schedule.parallel - 1) {
    return fail("the vector variable is a parallel one without blocks");
  }
  if (int tile = schedule.tile_variable; tile >= 0) {
    if (tile >= kernel.outer || tile == outer_vector || outer_vector < 0) return fail("tiles");
    if (tile < schedule.parallel - 1) return fail("tiles of a parallel variable without blocks");
    for (size_t s = 0; s < kernel.stages.size(); ++s) {
      if (!kernel.stages[s].variables.empty()) return fail("tiles around inner loops");
      if (schedule.stages[s].unroll != 1) return fail("tiles that are unrolled");
    }
  }
  if (schedule.panels && (schedule.tile_variable < 0 || schedule.parallel > 0)) {
    return fail("panels without tiles, or of parallel variables");
  }
  if (schedule.split > 0 &&
      (kernel.stages[0].variables.empty() || kernel.stages[0].reductions.empty())) {
    return fail("nothing to split");
  }
  return OkStatus();
}

}  // namespace

Status EmitNest(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
                const target::Cpu& cpu) {
  KILN_RETURN_IF_ERROR(Check(kernel, schedule));
  return NestCode(function, kernel, schedule, cpu).Emit();
}

Status EmitNestInline(Builder& b, Values args, const Kernel& kernel,
                      const CpuNestSchedule& schedule, const target::Cpu& cpu) {
  KILN_RETURN_IF_ERROR(Check(kernel, schedule));
  if (schedule.split > 0 || schedule.nontemporal) {
    return Internal("kernel ", kernel.name, " is too large to stand inside other code");
  }
  KILN_ASSIGN_OR_RETURN(Builder::InsertPoint end,
                        NestCode(b.saveIP(), std::move(args), kernel, schedule, cpu).EmitInline());
  b.restoreIP(end);
  return OkStatus();
}

}  // namespace kiln::codegen
