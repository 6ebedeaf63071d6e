// Strips: every stage over some columns, row by row, with accumulators in memory.
#include <algorithm>
#include <numeric>

#include "codegen/cpu/nest_code.h"
#include "program/program.h"

namespace kiln::codegen {

using kernel::Reduction;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;
using Range = NestEmitter::Range;

// On the stack; values that do not fit are recomputed for every few rows.
constexpr int64_t kMostValuesBytes = 16 << 10;

NestCode::StripArray NestCode::MakeStripArray(ElementType type) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.getFirstInsertionPt());
  auto* array = llvm::ArrayType::get(MemoryType(b().getContext(), type),
                                     static_cast<uint64_t>(schedule_.strips.width));
  llvm::AllocaInst* memory = at_entry.CreateAlloca(array);
  memory->setAlignment(llvm::Align(program::kAlignment));
  return {type, memory, -1};
}

// Where the array would begin if it had all columns. All of the strip's code may use it.
void NestCode::OpenStripArray(StripArray& array) {
  auto* before = llvm::dyn_cast<llvm::Instruction>(strip_back_);
  if (!before) before = llvm::cast<llvm::Instruction>(array.memory);
  llvm::IRBuilder<> at_strip(before->getParent(), std::next(before->getIterator()));
  const VariableId v = vector_variable();
  Value* base =
      at_strip.CreateGEP(MemoryType(b().getContext(), array.type), array.memory, strip_back_);
  array.access = e_->AddAccess(Index::Variable(v, kernel_.variables[v].extent), array.type, base,
                               /*padded=*/true);
}

void NestCode::PrepareStrips() {
  for (const Stage& stage : kernel_.stages) {
    sums_.emplace_back();
    for (const Reduction& r : stage.reductions) {
      for (ElementType type : r.types) sums_.back().push_back(MakeStripArray(type));
    }
  }
  if (schedule_.strips.piece_bytes == 0) return;
  Value* slot =
      b().CreateConstInBoundsGEP1_64(b().getPtrTy(), function_->getArg(1), kernel_.params.size());
  // A call uses the piece of its first item, and that again and again: it stays warm, and calls
  // that run at the same time do not meet.
  piece_ =
      b().CreateGEP(b().getInt8Ty(), b().CreateLoad(b().getPtrTy(), slot),
                    b().CreateMul(function_->getArg(2), e_->Int(schedule_.strips.piece_bytes)));
}

void NestCode::EmitStrips(const Range& columns) {
  const int64_t width = schedule_.strips.width;
  const int64_t extent = kernel_.variables[vector_variable()].extent;
  auto emit_strip = [&](Value* begin) {
    NestEmitter::Mark mark = e_->GetMark();
    Range strip{begin, b().CreateAdd(begin, e_->Int(width)), width, width};
    if (extent % width != 0) {
      strip.end = EmitMin(b(), strip.end, columns.end);
      strip.multiple = std::gcd(width, extent);
    }
    EmitStrip(strip);
    e_->Rewind(mark);
  };
  EmitLoop(b(), columns.begin, columns.end, width, emit_strip, {.nonempty = !columns.maybe_empty});
}

void NestCode::EmitStrip(const Range& strip) {
  strip_back_ = b().CreateNeg(strip.begin);
  for (std::vector<StripArray>& of_stage : sums_) {
    for (StripArray& sums : of_stage) OpenStripArray(sums);
  }
  if (schedule_.split > 0) {
    std::vector<int> ids = PartialAccesses(chunk_);
    for (size_t i = 0; i < ids.size(); ++i) sums_.front()[i].access = ids[i];
    return EmitStripStage(StageId(0), strip);
  }
  if (piece_) e_->OpenStrip(piece_, strip.begin);
  for (StageId s : kernel_.stages.ids()) EmitStripStage(s, strip);
}

void NestCode::EmitStripStage(StageId s, const Range& strip) {
  const Stage& stage = kernel_.stages[s];
  NestEmitter::Mark mark = e_->GetMark();
  e_->EmitReady(s);
  Values none;
  std::vector<StripValue> values;
  auto columns = [&](const kernel::CpuStageSchedule& schedule, const std::function<void()>& body) {
    e_->VectorLoop(vector_variable(), strip, schedule_.vector_width, schedule, none, [&](Values&) {
      LoadReduced(s);
      for (const StripValue& v : values) {
        Lanes lanes;
        e_->LoadAccess(v.array.access, lanes);
        e_->SetValue(s, v.node, std::move(lanes));
      }
      e_->EmitReady(s);
      body();
      e_->ForgetReduced();
    });
  };
  if (stage.variables.empty()) {
    columns(schedule_.stages[s], [&] { EmitPointOf(s, false, none); });
  } else {
    // Once for all rows: initial values of sums, and expensive values.
    bool found = false;
    std::vector<StripValue> costly;
    columns(schedule_.stages[s], [&] {
      StoreSums(s, Start(s, false, schedule_.split > 0 && s == StageId(0)));
      // Each version of the loop over columns finds the same.
      if (!found) {
        for (kernel::NodeId node : e_->Costly(s)) {
          if (values_bytes_ >= kMostValuesBytes) break;
          values_bytes_ += schedule_.strips.width * ByteWidth(stage.nodes[node].type);
          StripArray array = MakeStripArray(stage.nodes[node].type);
          OpenStripArray(array);
          costly.push_back({node, array});
        }
      }
      found = true;
      for (const StripValue& v : costly) e_->StoreAccess(v.array.access, e_->ValueOf(s, v.node));
    });
    values = std::move(costly);
    if (e_->IsDead(s)) {
      // No rows: sums have their initial values.
    } else if (schedule_.stages[s].by_columns) {
      kernel::CpuStageSchedule schedule = schedule_.stages[s];
      schedule.unroll = 1;
      columns(schedule, [&] {
        Values sums = LoadSums(s);
        EmitStripRows(
            s, 0, sums, [&](VariableId variable, Value* first, int count, Values& carried) {
              e_->TilePoints(variable, first, count, [&] { EmitPointOf(s, false, carried); });
            });
        StoreSums(s, sums);
      });
    } else {
      EmitStripRows(s, 0, none, [&](VariableId variable, Value* first, int count, Values&) {
        kernel::CpuStageSchedule schedule = schedule_.stages[s];
        if (count > 1) schedule.unroll = 1;
        columns(schedule, [&] {
          Values sums = LoadSums(s);
          e_->TilePoints(variable, first, count, [&] { EmitPointOf(s, false, sums); });
          StoreSums(s, sums);
        });
      });
    }
  }
  e_->Rewind(mark);
}

void NestCode::EmitStripRows(StageId s, size_t at, Values& carried, const StripRows& rows) {
  const std::vector<VariableId>& variables = kernel_.stages[s].variables;
  const VariableId v = variables[at];
  Range range = InnerRange(s, v);
  if (at + 1 < variables.size()) {
    e_->ScalarLoop(v, range, carried, [&](Values& values) {
      e_->EmitReady(s);
      EmitStripRows(s, at + 1, values, rows);
    });
    return;
  }
  const int count = schedule_.stages[s].rows;
  Value* whole = range.end;
  const bool all = range.multiple % count == 0;
  if (!all) {
    Value* length = b().CreateSub(range.end, range.begin);
    whole = b().CreateAdd(range.begin, b().CreateAnd(length, e_->Int(-count)));
  }
  EmitLoop(b(), range.begin, whole, count, carried,
           [&](Value* first, Values& values) { rows(v, first, count, values); },
           {.nonempty = all && !range.maybe_empty});
  if (all) return;
  EmitLoop(b(), whole, range.end, 1, carried,
           [&](Value* row, Values& values) { rows(v, row, 1, values); });
}

void NestCode::LoadReduced(StageId s) {
  for (StageId t : IdRange(StageId(0), s)) {
    size_t at = 0;
    const auto& reductions = kernel_.stages[t].reductions;
    for (kernel::ReductionId r : reductions.ids()) {
      for (size_t k = 0; k < reductions[r].types.size(); ++k) {
        Lanes sums;
        e_->LoadAccess(sums_[t][at++].access, sums);
        e_->SetReduced(t, r, static_cast<int>(k), std::move(sums));
      }
    }
  }
}

Values NestCode::LoadSums(StageId s) {
  Values all;
  for (const StripArray& sums : sums_[s]) {
    Lanes lanes;
    e_->LoadAccess(sums.access, lanes);
    all.insert(all.end(), lanes.copies.begin(), lanes.copies.end());
  }
  return all;
}

void NestCode::StoreSums(StageId s, const Values& all) {
  const size_t copies = static_cast<size_t>(e_->copies());
  for (size_t i = 0; i < sums_[s].size(); ++i) {
    Values values(all.begin() + static_cast<ptrdiff_t>(i * copies),
                  all.begin() + static_cast<ptrdiff_t>((i + 1) * copies));
    e_->StoreAccess(sums_[s][i].access, Lanes{std::move(values), vectors()});
  }
}

}  // namespace kiln::codegen
