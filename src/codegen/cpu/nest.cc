#include "codegen/cpu/nest.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/strings.h"
#include "codegen/cpu/nest_code.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen {

using kernel::Combiner;
using kernel::CpuNestSchedule;
using kernel::Index;
using kernel::Kernel;
using kernel::Node;
using kernel::Reduction;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;
using Range = NestEmitter::Range;

NestCode::NestCode(llvm::Function* function, const Kernel& kernel, const CpuNestSchedule& schedule,
                   const target::Cpu& cpu)
    : function_(function),
      kernel_(kernel),
      schedule_(schedule),
      cpu_(cpu),
      row_(function, kernel, cpu),
      e_(&row_) {
  Prepare();
}

NestCode::NestCode(Builder::InsertPoint at, Values args, const Kernel& kernel,
                   const CpuNestSchedule& schedule, const target::Cpu& cpu)
    : function_(at.getBlock()->getParent()),
      kernel_(kernel),
      schedule_(schedule),
      cpu_(cpu),
      row_(std::move(args), kernel, cpu, at),
      e_(&row_) {
  Prepare();
}

Status NestCode::Emit() {
  if (IsEmpty()) {
    b().CreateRetVoid();
    return OkStatus();
  }
  PrepareSplit();
  if (schedule_.strips.width > 0) PrepareStrips();
  e_->EmitReadyInAll();
  Value *begin = function_->getArg(2), *end = function_->getArg(3);
  if (schedule_.split > 0) {
    auto finish = [&] {
      EmitFinish();
      b().CreateRetVoid();
    };
    EmitIf(b(), b().CreateICmpEQ(begin, e_->Int(schedule_.items)), finish,
           {.then = "finish", .after = "work"});
  }
  EmitLoop(b(), begin, end, 1, [&](Value* item) { EmitItem(item); });
  if (schedule_.nontemporal && llvm::StringRef(cpu_.triple).starts_with("x86_64")) {
    b().CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  }
  b().CreateRetVoid();
  return e_->status();
}

Result<Builder::InsertPoint> NestCode::EmitInline() {
  if (!IsEmpty()) {
    e_->EmitReadyInAll();
    EmitLoop(b(), e_->Int(0), e_->Int(schedule_.items), 1, [&](Value* item) { EmitItem(item); });
  }
  KILN_RETURN_IF_ERROR(e_->status());
  return b().saveIP();
}

void NestCode::Prepare() {
  row_.SetMemory(schedule_);
  if (!schedule_.pipelined) return;
  while (of_stage_.size() < kernel_.stages.size()) {
    of_stage_.push_back(
        std::make_unique<NestEmitter>(row_.args(), kernel_, cpu_, row_.builder().saveIP()));
    of_stage_.back()->SetMemory(schedule_, &row_);
  }
}

void NestCode::EmitItem(Value* item) {
  NestEmitter::Mark mark = e_->GetMark();
  if (schedule_.split > 0) {
    // Chunks are the innermost part of an item's number.
    chunk_ = item;
    if (schedule_.parallel > 0) {
      chunk_ = b().CreateURem(item, e_->Int(schedule_.chunks));
      item = b().CreateUDiv(item, e_->Int(schedule_.chunks));
    }
  }
  NestEmitter::Item ranges = e_->OpenItem(item, schedule_);
  std::vector<OuterLoop> loops = std::move(ranges.loops);
  e_->EmitReadyInAll();
  if (schedule_.strips.width > 0) {
    auto columns = std::find_if(loops.begin(), loops.end(), [&](const OuterLoop& l) {
      return l.variable == vector_variable();
    });
    Range range = columns->range;
    loops.erase(columns);
    EmitOuter(std::move(loops), [&] { EmitStrips(range); });
  } else {
    EmitOuter(std::move(loops), [&] { EmitPoint(); });
  }
  for (VariableId v : ranges.bound) e_->Unbind(v);
  e_->Rewind(mark);
}

void NestCode::EmitOuter(std::vector<OuterLoop> loops, const std::function<void()>& point) {
  // The vector variable's loop goes inside all others but that of tiles.
  auto depth = [&](const OuterLoop& l) {
    if (l.variable == vector_variable()) return 1;
    return l.variable == schedule_.tile_variable || l.variable == schedule_.interleaved ? 2 : 0;
  };
  std::stable_sort(loops.begin(), loops.end(),
                   [&](const OuterLoop& a, const OuterLoop& b) { return depth(a) < depth(b); });
  EmitOuterFrom(loops, 0, point);
}

void NestCode::EmitOuterFrom(const std::vector<OuterLoop>& loops, size_t at,
                             const std::function<void()>& point) {
  for (const kernel::CpuCases& cases : schedule_.cases) {
    if (!e_->bound(cases.variable) || e_->IsInCase(cases.variable)) continue;
    return EmitCases(cases, 0, cases.begins.size(), [&] { EmitOuterFrom(loops, at, point); });
  }
  if (at == loops.size()) return point();
  const OuterLoop& loop = loops[at];
  Values none;
  if (loop.variable == vector_variable()) {
    const auto vectors = [&](const Range& range) {
      e_->VectorLoop(loop.variable, range, schedule_.vector_width, schedule_.stages.front(), none,
                     [&](Values&) { EmitOuterFrom(loops, at + 1, point); });
    };
    for (const kernel::CpuCases& cases : schedule_.cases) {
      if (cases.variable == loop.variable) return EmitPieces(loop, cases.begins, vectors);
    }
    return vectors(loop.range);
  }
  if (loop.variable == schedule_.tile_variable) {
    return e_->TileLoop(loop.variable, loop.range, point);
  }
  if (loop.variable == schedule_.interleaved) {
    e_->EmitReadyInAll();
    const auto count = static_cast<int>(kernel_.variables[loop.variable].extent);
    return e_->TilePoints(loop.variable, e_->Int(0), count, point);
  }
  if (schedule_.pipelined && at + 1 == loops.size()) return EmitRows(loop);
  e_->ScalarLoop(loop.variable, loop.range, none, [&](Values&) {
    e_->EmitReadyInAll();
    EmitOuterFrom(loops, at + 1, point);
  });
}

void NestCode::EmitCases(const kernel::CpuCases& cases, size_t first, size_t end,
                         const std::function<void()>& emit) {
  const auto& begins = cases.begins;
  if (end - first > 1) {
    const size_t middle = first + (end - first) / 2;
    Value* before = b().CreateICmpSLT(e_->bound(cases.variable), e_->Int(begins[middle]));
    EmitIf(
        b(), before, [&] { EmitCases(cases, first, middle, emit); },
        [&] { EmitCases(cases, middle, end, emit); }, {.then = "before", .otherwise = "from"});
    return;
  }
  NestEmitter::Mark mark = e_->GetMark();
  e_->OpenCase(cases.variable, begins[first]);
  e_->EmitReadyInAll();
  emit();
  e_->CloseCase(cases.variable);
  e_->Rewind(mark);
}

void NestCode::EmitPieces(const OuterLoop& loop, const std::vector<int64_t>& begins,
                          const std::function<void(const Range&)>& emit) {
  const int64_t extent = kernel_.variables[loop.variable].extent;
  for (size_t i = 0; i < begins.size(); ++i) {
    NestEmitter::Mark mark = e_->GetMark();
    const int64_t first = begins[i], last = i + 1 < begins.size() ? begins[i + 1] : extent;
    Range piece{e_->Int(first), e_->Int(last), last - first, first == 0 ? last : first};
    if (!loop.whole) {
      piece.begin = EmitMax(b(), loop.range.begin, piece.begin);
      piece.end = EmitMax(b(), EmitMin(b(), loop.range.end, piece.end), piece.begin);
      piece.multiple = 1;
      piece.aligned = std::gcd(piece.aligned, loop.range.aligned);
      piece.maybe_empty = true;
    }
    e_->OpenCase(loop.variable, first);
    e_->EmitReadyInAll();
    emit(piece);
    e_->CloseCase(loop.variable);
    e_->Rewind(mark);
  }
}

void NestCode::PrepareSplit() {
  if (schedule_.split == 0) return;
  Value* slot =
      b().CreateConstInBoundsGEP1_64(b().getPtrTy(), function_->getArg(1), kernel_.params.size());
  Value* scratch = b().CreateLoad(b().getPtrTy(), slot);
  Index point = 0;
  int64_t points = 1;
  auto add = [&](VariableId v) {
    int64_t extent = kernel_.variables[v].extent;
    point = point + Index::Variable(v, extent) * points;
    points *= extent;
  };
  // Neighbours along the vector variable are neighbours in memory.
  if (kernel_.IsOuter(vector_variable())) add(vector_variable());
  for (VariableId v : std::views::reverse(kernel_.OuterVariables())) {
    if (v != vector_variable()) add(v);
  }
  int64_t offset = 0;
  for (const Reduction& r : kernel_.stages.front().reductions) {
    for (ElementType type : r.types) {
      Value* base =
          b().CreateConstInBoundsGEP1_64(b().getInt8Ty(), scratch, static_cast<uint64_t>(offset));
      int64_t bytes = kernel::CpuPartialBytes(type, points);
      partials_.push_back({point, type, base, bytes});
      offset += bytes * schedule_.chunks;
    }
  }
  if (offset > schedule_.scratch_bytes) {
    e_->Fail(Internal("kernel ", kernel_.name, ": scratch of ", schedule_.scratch_bytes,
                      " bytes for partial results of ", offset));
  }
}

std::vector<int> NestCode::PartialAccesses(Value* chunk) {
  std::vector<int> ids;
  for (const Partial& p : partials_) {
    Value* row =
        b().CreateGEP(b().getInt8Ty(), p.base, b().CreateMul(chunk, e_->Int(p.bytes_per_chunk)));
    ids.push_back(e_->AddAccess(p.point, p.type, row));
  }
  return ids;
}

void NestCode::EmitFinish() {
  NestEmitter::Mark mark = e_->GetMark();
  std::vector<OuterLoop> loops;
  for (VariableId v : kernel_.OuterVariables()) loops.push_back({v, e_->FullRange(v)});
  EmitOuter(std::move(loops), [&] {
    NestEmitter::Mark point = e_->GetMark();
    e_->EmitReady(StageId(0));
    const Stage& stage = kernel_.stages.front();
    int copies = e_->copies();
    Values accumulators;
    for (const Reduction& r : stage.reductions) {
      for (kernel::NodeId init : r.inits) {
        for (int u = 0; u < copies; ++u)
          accumulators.push_back(e_->Use(StageId(0), init, u, vectors()));
      }
    }
    EmitLoop(b(), e_->Int(0), e_->Int(schedule_.chunks), 1, accumulators,
             [&](Value* chunk, Values& values) {
               std::vector<int> ids = PartialAccesses(chunk);
               size_t at = 0, id = 0;
               for (const Reduction& r : stage.reductions) {
                 for (ElementType type : r.types) {
                   Lanes partial;
                   e_->LoadAccess(ids[id++], partial);
                   for (int u = 0; u < copies; ++u, ++at) {
                     Value* v = partial.vector ? partial.copies[u]
                                               : Splat(b(), partial.copies[0], e_->width());
                     values[at] =
                         EmitCombine(b(), r.combiner.kind, type, values[at], v, MathOf(cpu_));
                   }
                 }
               }
             });
    size_t at = 0;
    for (kernel::ReductionId r : stage.reductions.ids()) {
      for (size_t k = 0; k < stage.reductions[r].inputs.size(); ++k) {
        SetReduced(StageId(0), r, k,
                   {accumulators.begin() + at, accumulators.begin() + at + copies});
        at += copies;
      }
    }
    e_->Rewind(point);
    for (StageId s : kernel_.stages.ids(StageId(1))) EmitStage(s);
    e_->ForgetReduced();
  });
  e_->Rewind(mark);
}

namespace {

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// Checks that the schedule can be emitted; anything else is a bug of the scheduler.
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
  const VariableId last_parallel(schedule.parallel - 1);
  VariableId outer_vector = schedule.stages.front().vector_variable;
  if (kernel.IsInner(outer_vector)) outer_vector = {};
  for (StageId s : kernel.stages.ids()) {
    const kernel::CpuStageSchedule& stage = schedule.stages[s];
    const std::vector<VariableId>& variables = kernel.stages[s].variables;
    VariableId v = stage.vector_variable;
    if (!IsPowerOfTwo(stage.unroll) || stage.unroll > 64) return fail("unroll");
    if (stage.unroll > 1 && schedule.vector_width == 1) return fail("unrolled scalar code");
    if (kernel.IsInner(v)) {
      if (std::find(variables.begin(), variables.end(), v) == variables.end()) {
        return fail("vector variable of another stage");
      }
      if (outer_vector.valid()) return fail("vectors along an outer and an inner variable");
      if (schedule.vector_width == 1) return fail("vectors of one element");
    } else if (v != outer_vector) {
      return fail("an outer vector variable holds for all stages");
    }
    if (!kernel.stages[s].reductions.empty()) {
      for (VariableId i : variables) {
        if (!kernel.variables[i].reduction) {
          return Unimplemented("kernel ", kernel.name,
                               ": a reduction at each point of an inner variable");
        }
      }
    }
  }
  if (outer_vector.valid() && outer_vector < last_parallel) {
    return fail("the vector variable is a parallel one without blocks");
  }
  if (const VariableId tile = schedule.tile_variable; tile.valid()) {
    if (!kernel.IsOuter(tile) || tile == outer_vector || !outer_vector.valid()) {
      return fail("tiles");
    }
    if (tile < last_parallel) return fail("tiles of a parallel variable without blocks");
    for (StageId s : kernel.stages.ids()) {
      if (!kernel.stages[s].variables.empty()) return fail("tiles around inner loops");
      if (schedule.stages[s].unroll != 1) return fail("tiles that are unrolled");
    }
  }
  if (const VariableId side = schedule.interleaved; side.valid()) {
    const bool fits = kernel.IsOuter(side) && side != outer_vector && outer_vector.valid() &&
                      side.value() >= schedule.parallel && !schedule.tile_variable.valid() &&
                      kernel.stages.size() == 1 && kernel.stages.front().variables.empty() &&
                      schedule.stages.front().unroll == 1;
    if (!fits) return fail("interleaved vectors");
  }
  if (schedule.panels && (!schedule.tile_variable.valid() || schedule.parallel > 0)) {
    return fail("panels without tiles, or of parallel variables");
  }
  if (const kernel::CpuStrips& strips = schedule.strips; strips.width > 0) {
    bool fits = outer_vector.valid() && !schedule.tile_variable.valid() && !schedule.pipelined &&
                strips.width % schedule.vector_width == 0 && last_parallel >= outer_vector;
    if (!fits || (schedule.split > 0 && !strips.kept.empty())) return fail("strips");
    for (const kernel::CpuStageSchedule& stage : schedule.stages) {
      if (!IsPowerOfTwo(stage.rows)) return fail("rows of a strip");
    }
  }
  if (schedule.split > 0 &&
      (kernel.stages.front().variables.empty() || kernel.stages.front().reductions.empty())) {
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
  if (schedule.split > 0 || schedule.nontemporal || schedule.strips.width > 0) {
    return Internal("kernel ", kernel.name, " is too large to stand inside other code");
  }
  KILN_ASSIGN_OR_RETURN(Builder::InsertPoint end,
                        NestCode(b.saveIP(), std::move(args), kernel, schedule, cpu).EmitInline());
  b.restoreIP(end);
  return OkStatus();
}

}  // namespace kiln::codegen
