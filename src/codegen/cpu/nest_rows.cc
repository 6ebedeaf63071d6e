// Rows as in a pipeline.
#include <algorithm>

#include "codegen/cpu/nest_code.h"

namespace kiln::codegen {

using kernel::Reduction;
using llvm::Value;

void NestCode::On(size_t s, const std::function<void()>& emit) {
  NestEmitter* before = e_;
  e_ = &*of_stage_[s];
  e_->builder().restoreIP(before->builder().saveIP());
  emit();
  before->builder().restoreIP(e_->builder().saveIP());
  if (!e_->status().ok()) before->Fail(e_->status());
  e_ = before;
}

void NestCode::ForEachResult(const std::function<void(size_t s, size_t r, size_t k)>& f) const {
  for (size_t s = 0; s + 1 < kernel_.stages.size(); ++s) {
    for (size_t r = 0; r < kernel_.stages[s].reductions.size(); ++r) {
      for (size_t k = 0; k < kernel_.stages[s].reductions[r].inputs.size(); ++k) f(s, r, k);
    }
  }
}

void NestCode::OpenRow(size_t s, int variable, Value* row, const std::vector<Results>& ago) {
  e_->Bind(variable, row);
  ForEachResult([&](size_t from, size_t r, size_t k) {
    if (from >= s) return;
    SetReduced(static_cast<int>(from), r, k, {ago[s - from - 1][from][r][k]});
  });
}

void NestCode::CloseRow(size_t s, int variable, NestEmitter::Mark mark, Results& results) {
  for (size_t r = 0; r < results[s].size(); ++r) {
    for (size_t k = 0; k < results[s][r].size(); ++k) {
      auto number = [](size_t i) { return static_cast<int>(i); };
      results[s][r][k] = e_->Reduced(number(s), number(r), number(k)).copies.front();
    }
  }
  e_->ForgetReduced();
  e_->Unbind(variable);
  e_->Rewind(mark);
}

void NestCode::EmitRows(const OuterLoop& rows) {
  const size_t count = kernel_.stages.size();
  std::vector<NestEmitter::Mark> outside;
  for (size_t s = 0; s < count; ++s) {
    outside.push_back(of_stage_[s]->GetMark());
    for (int v = 0; v < kernel_.outer; ++v) {
      if (row_.bound(v)) of_stage_[s]->Bind(v, row_.bound(v));
    }
    On(s, [&] { e_->EmitReady(static_cast<int>(s), true); });
  }
  // The results of the last rounds, the latest first.
  auto carry = [&](const std::vector<Results>& ago) {
    Values flat;
    ForEachResult([&](size_t s, size_t r, size_t k) {
      for (size_t age = 0; age + s + 1 < count; ++age) flat.push_back(ago[age][s][r][k]);
    });
    return flat;
  };
  Results none(count);
  for (size_t s = 0; s + 1 < count; ++s) {
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
  Value *begin = rows.range.begin, *end = rows.range.end;
  Value* drained = b().CreateAdd(end, e_->Int(static_cast<int64_t>(count) - 1));
  auto emit_round = [&](Value* round, Values& values) {
    size_t at = 0;
    ForEachResult([&](size_t s, size_t r, size_t k) {
      for (size_t age = 0; age + s + 1 < count; ++age) ago[age][s][r][k] = values[at++];
    });
    Values row;
    for (size_t s = 0; s < count; ++s) {
      row.push_back(b().CreateSub(round, e_->Int(static_cast<int64_t>(s))));
    }
    Value* have_rows =
        b().CreateAnd(b().CreateICmpSGE(row.back(), begin), b().CreateICmpSLT(round, end));
    Results of_all, of_some = none;
    auto all = [&] { of_all = EmitTogether(rows.variable, row, ago, none); };
    auto some = [&] {
      for (size_t s = count; s-- > 0;) {
        Value* valid =
            b().CreateAnd(b().CreateICmpSGE(row[s], begin), b().CreateICmpSLT(row[s], end));
        EmitWhere(valid, s, rows.variable, row[s], ago, of_some);
      }
    };
    IfEnds ends = EmitIf(b(), have_rows, all, some, {.then = "all", .otherwise = "some"});
    Results latest = none;
    ForEachResult([&](size_t s, size_t r, size_t k) {
      latest[s][r][k] =
          EmitPhi(b(), {of_all[s][r][k], ends.then}, {of_some[s][r][k], ends.otherwise});
    });
    ago.insert(ago.begin(), std::move(latest));
    ago.pop_back();
    values = carry(ago);
  };
  EmitLoop(b(), begin, drained, 1, carried, emit_round, {.nonempty = true});
  for (size_t s = 0; s < count; ++s) {
    for (int v = 0; v < kernel_.outer; ++v) {
      if (row_.bound(v)) of_stage_[s]->Unbind(v);
    }
    of_stage_[s]->Rewind(outside[s]);
  }
}

void NestCode::EmitWhere(Value* valid, size_t s, int variable, Value* row,
                         const std::vector<Results>& ago, Results& results) {
  std::vector<Values> otherwise = results[s];
  auto inside = [&] {
    On(s, [&] {
      NestEmitter::Mark mark = e_->GetMark();
      OpenRow(s, variable, row, ago);
      EmitStage(static_cast<int>(s));
      CloseRow(s, variable, mark, results);
    });
  };
  IfEnds ends = EmitIf(b(), valid, inside, {.then = "row", .after = "no.row"});
  for (size_t r = 0; r < results[s].size(); ++r) {
    for (size_t k = 0; k < results[s][r].size(); ++k) {
      results[s][r][k] =
          EmitPhi(b(), {otherwise[r][k], ends.otherwise}, {results[s][r][k], ends.then});
    }
  }
}

NestCode::Results NestCode::EmitTogether(int variable, const Values& row,
                                         const std::vector<Results>& ago, Results results) {
  const size_t count = kernel_.stages.size(), last = count - 1;
  std::vector<NestEmitter::Mark> marks;
  Values carried;
  std::vector<size_t> first;
  for (size_t s = 0; s < count; ++s) {
    marks.push_back(of_stage_[s]->GetMark());
    On(s, [&] {
      OpenRow(s, variable, row[s], ago);
      e_->EmitReady(static_cast<int>(s));
      first.push_back(carried.size());
      Values own = Start(static_cast<int>(s), true, false);
      carried.insert(carried.end(), own.begin(), own.end());
    });
  }
  first.push_back(carried.size());
  auto slice = [&](const Values& values, size_t s) {
    return Values(values.begin() + static_cast<int64_t>(first[s]),
                  values.begin() + static_cast<int64_t>(first[s + 1]));
  };
  int driver = schedule_.stages[last].vector_variable;
  NestEmitter& leader = *of_stage_[last];
  auto body = [&](Values& values) {
    for (size_t s = count; s-- > 0;) {
      Values own = slice(values, s);
      auto emit = [&] { EmitPointOf(static_cast<int>(s), true, own); };
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
      std::copy(own.begin(), own.end(), values.begin() + static_cast<int64_t>(first[s]));
    }
  };
  On(last, [&] {
    e_->VectorLoop(driver, e_->FullRange(driver), schedule_.vector_width, schedule_.stages[last],
                   carried, body);
  });
  for (size_t s = 0; s < count; ++s) {
    On(s, [&] {
      Finish(static_cast<int>(s), true, false, slice(carried, s));
      CloseRow(s, variable, marks[s], results);
    });
  }
  return results;
}

}  // namespace kiln::codegen
