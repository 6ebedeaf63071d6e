// Rows as in a pipeline.
#include <algorithm>
#include <ranges>

#include "codegen/cpu/nest_code.h"

namespace kiln::codegen {

using kernel::Reduction;
using kernel::ReductionId;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

void NestCode::On(StageId s, const std::function<void()>& emit) {
  NestEmitter* before = e_;
  e_ = &*of_stage_[s];
  e_->builder().restoreIP(before->builder().saveIP());
  emit();
  before->builder().restoreIP(e_->builder().saveIP());
  if (!e_->status().ok()) before->Fail(e_->status());
  e_ = before;
}

void NestCode::ForEachResult(
    const std::function<void(StageId s, ReductionId r, size_t k)>& f) const {
  for (StageId s : IdRange(StageId(0), kernel_.stages.last())) {
    const auto& reductions = kernel_.stages[s].reductions;
    for (ReductionId r : reductions.ids()) {
      for (size_t k = 0; k < reductions[r].inputs.size(); ++k) f(s, r, k);
    }
  }
}

void NestCode::OpenRow(StageId s, VariableId variable, Value* row,
                       const std::vector<Results>& ago) {
  e_->Bind(variable, row);
  ForEachResult([&](StageId from, ReductionId r, size_t k) {
    if (from >= s) return;
    SetReduced(from, r, k, {ago[s.index() - from.index() - 1][from][r][k]});
  });
}

void NestCode::CloseRow(StageId s, VariableId variable, NestEmitter::Mark mark, Results& results) {
  for (ReductionId r : results[s].ids()) {
    for (size_t k = 0; k < results[s][r].size(); ++k) {
      results[s][r][k] = e_->Reduced(s, r, static_cast<int>(k)).copies.front();
    }
  }
  e_->ForgetReduced();
  e_->Unbind(variable);
  e_->Rewind(mark);
}

void NestCode::EmitRows(const OuterLoop& rows) {
  const size_t count = kernel_.stages.size();
  const IdRange<StageId> stages = kernel_.stages.ids();
  IdVector<StageId, NestEmitter::Mark> outside;
  for (StageId s : stages) {
    outside.push_back(of_stage_[s]->GetMark());
    for (VariableId v : kernel_.OuterVariables()) {
      if (row_.bound(v)) of_stage_[s]->Bind(v, row_.bound(v));
    }
    On(s, [&] { e_->EmitReady(s, true); });
  }
  // The results of the last rounds, the latest first.
  auto carry = [&](const std::vector<Results>& ago) {
    Values flat;
    ForEachResult([&](StageId s, ReductionId r, size_t k) {
      for (size_t age = 0; age + s.index() + 1 < count; ++age) flat.push_back(ago[age][s][r][k]);
    });
    return flat;
  };
  Results none(count);
  for (StageId s : IdRange(StageId(0), kernel_.stages.last())) {
    for (const Reduction& r : kernel_.stages[s].reductions) {
      none[s].emplace_back();
      for (ElementType type : r.types) {
        none[s].back().push_back(
            llvm::Constant::getNullValue(RegisterType(b().getContext(), type)));
      }
    }
  }
  std::vector<Results> ago(count, none);
  Values carried = carry(ago);
  Value* drained = b().CreateAdd(rows.range.end, e_->Int(static_cast<int64_t>(count) - 1));
  auto emit_round = [&](Value* round, Values& values) {
    size_t at = 0;
    ForEachResult([&](StageId s, ReductionId r, size_t k) {
      for (size_t age = 0; age + s.index() + 1 < count; ++age) ago[age][s][r][k] = values[at++];
    });
    ago.insert(ago.begin(), EmitRound(rows, round, ago, none));
    ago.pop_back();
    values = carry(ago);
  };
  EmitLoop(b(), rows.range.begin, drained, 1, carried, emit_round, {.nonempty = true});
  for (StageId s : stages) {
    for (VariableId v : kernel_.OuterVariables()) {
      if (row_.bound(v)) of_stage_[s]->Unbind(v);
    }
    of_stage_[s]->Rewind(outside[s]);
  }
}

bool NestCode::HasRoundsOfOneKind() const {
  // A round takes the same time then, and there are few of them beside the others.
  constexpr int64_t kRowsPerStage = 48;
  if (!cpu_.has_masks || schedule_.nontemporal || schedule_.vector_width == 1) return false;
  const bool all = schedule_.parallel < kernel_.outer;
  const int64_t rows = all ? kernel_.variables[kernel_.LastOuter()].extent : schedule_.block;
  return rows >= kRowsPerStage * (std::ssize(kernel_.stages) - 1);
}

NestCode::Results NestCode::EmitRound(const OuterLoop& rows, Value* round,
                                      const std::vector<Results>& ago, const Results& none) {
  const IdRange<StageId> stages = kernel_.stages.ids();
  Value *begin = rows.range.begin, *end = rows.range.end;
  Rows at;
  for (StageId s : stages) {
    Value* row = s.value() == 0 ? round : b().CreateSub(round, e_->Int(s.value()));
    at.row.push_back(row);
    at.valid.push_back(b().CreateAnd(b().CreateICmpSGE(row, begin), b().CreateICmpSLT(row, end)));
  }
  if (HasRoundsOfOneKind()) {
    for (StageId s : stages) at.row[s] = b().CreateSelect(at.valid[s], at.row[s], begin);
    return EmitTogether(rows.variable, at, ago, none);
  }
  Results of_all, of_some = none;
  auto all = [&] { of_all = EmitTogether(rows.variable, {at.row, {}}, ago, none); };
  auto some = [&] {
    for (StageId s : std::views::reverse(stages)) {
      EmitWhere(at.valid[s], s, rows.variable, at.row[s], ago, of_some);
    }
  };
  Value* have_rows =
      b().CreateAnd(b().CreateICmpSGE(at.row.back(), begin), b().CreateICmpSLT(round, end));
  IfEnds ends = EmitIf(b(), have_rows, all, some, {.then = "all", .otherwise = "some"});
  Results results = none;
  ForEachResult([&](StageId s, ReductionId r, size_t k) {
    results[s][r][k] =
        EmitPhi(b(), {of_all[s][r][k], ends.then}, {of_some[s][r][k], ends.otherwise});
  });
  return results;
}

void NestCode::EmitWhere(Value* valid, StageId s, VariableId variable, Value* row,
                         const std::vector<Results>& ago, Results& results) {
  const IdVector<ReductionId, Values> otherwise = results[s];
  auto inside = [&] {
    On(s, [&] {
      NestEmitter::Mark mark = e_->GetMark();
      OpenRow(s, variable, row, ago);
      EmitStage(s);
      CloseRow(s, variable, mark, results);
    });
  };
  IfEnds ends = EmitIf(b(), valid, inside, {.then = "row", .after = "no.row"});
  for (ReductionId r : results[s].ids()) {
    for (size_t k = 0; k < results[s][r].size(); ++k) {
      results[s][r][k] =
          EmitPhi(b(), {otherwise[r][k], ends.otherwise}, {results[s][r][k], ends.then});
    }
  }
}

NestCode::Results NestCode::EmitTogether(VariableId variable, const Rows& rows,
                                         const std::vector<Results>& ago, Results results) {
  const IdRange<StageId> stages = kernel_.stages.ids();
  const StageId last = kernel_.stages.last();
  IdVector<StageId, NestEmitter::Mark> marks;
  Values carried;
  // A stage's part of what is carried.
  struct Part {
    int64_t begin, end;
  };
  IdVector<StageId, Part> parts;
  for (StageId s : stages) {
    marks.push_back(of_stage_[s]->GetMark());
    On(s, [&] {
      OpenRow(s, variable, rows.row[s], ago);
      if (!rows.valid.empty()) e_->SetStores(rows.valid[s]);
      e_->EmitReady(s);
      Values own = Start(s, true, false);
      const int64_t begin = std::ssize(carried);
      carried.insert(carried.end(), own.begin(), own.end());
      parts.push_back({begin, std::ssize(carried)});
    });
  }
  auto slice = [&](const Values& values, StageId s) {
    return Values(values.begin() + parts[s].begin, values.begin() + parts[s].end);
  };
  const VariableId driver = schedule_.stages[last].vector_variable;
  NestEmitter& leader = *of_stage_[last];
  auto body = [&](Values& values) {
    for (StageId s : std::views::reverse(stages)) {
      Values own = slice(values, s);
      auto emit = [&] { EmitPointOf(s, true, own); };
      if (s == last) {
        emit();
      } else {
        On(s, [&] {
          NestEmitter::Mark point = e_->GetMark();
          e_->BindVectorLike(leader, schedule_.stages[s].vector_variable);
          emit();
          e_->UnbindVector();
          e_->Rewind(point);
        });
      }
      std::copy(own.begin(), own.end(), values.begin() + parts[s].begin);
    }
  };
  On(last, [&] {
    e_->VectorLoop(driver, e_->FullRange(driver), schedule_.vector_width, schedule_.stages[last],
                   carried, body);
  });
  for (StageId s : stages) {
    On(s, [&] {
      Finish(s, true, false, slice(carried, s));
      e_->SetStores(nullptr);
      CloseRow(s, variable, marks[s], results);
    });
  }
  return results;
}

}  // namespace kiln::codegen
