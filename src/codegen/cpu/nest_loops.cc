// Loops, over scalars and over vectors with their tails.
#include <algorithm>
#include <numeric>
#include <ranges>

#include "codegen/cpu/nest_emitter.h"
#include "codegen/poll.h"

namespace kiln::codegen {

using llvm::Value;

NestEmitter::Range NestEmitter::FullRange(VariableId variable) {
  int64_t extent = kernel_.variables[variable].extent;
  return {Int(0), Int(extent), std::max<int64_t>(extent, 1), 0, extent == 0};
}

NestEmitter::Item NestEmitter::OpenItem(Value* rest, const kernel::CpuNestSchedule& schedule,
                                        Value* end_item) {
  Item item;
  auto take = [&](int64_t count, bool last) -> Value* {
    if (count == 1) return Int(0);
    if (last) return rest;
    Value* value = b_.CreateURem(rest, Int(count));
    rest = b_.CreateUDiv(rest, Int(count));
    return value;
  };
  const VariableId vector = schedule.stages.front().vector_variable;
  // The variables that items are numbered by, the last of them first, which has the blocks.
  std::vector<VariableId> numbered;
  if (schedule.panels) numbered.push_back(vector);
  const VariableId end(schedule.panels ? kernel_.outer : schedule.parallel);
  for (VariableId v : std::views::reverse(IdRange(VariableId(0), end))) {
    if (!schedule.panels || (v != vector && v != schedule.tile_variable)) numbered.push_back(v);
  }
  for (VariableId v : numbered) {
    int64_t extent = kernel_.variables[v].extent;
    int64_t block = v == numbered.front() ? std::min(schedule.block, extent) : 1;
    bool last = v == numbered.back();
    Value* first = take((extent + block - 1) / block, last);
    if (block != 1) first = b_.CreateMul(first, Int(block));
    if (block == 1 && v != vector && v != schedule.tile_variable) {
      Bind(v, first);
      item.bound.push_back(v);
      continue;
    }
    Value* end_point =
        end_item ? b_.CreateMul(end_item, Int(block)) : b_.CreateAdd(first, Int(block));
    Range range{first, end_point, block, block};
    if (extent % block != 0) {
      range.end = EmitMin(b_, range.end, Int(extent));
      range.multiple = std::gcd(block, extent);
    }
    item.loops.push_back({v, range});
  }
  for (VariableId v : kernel_.OuterVariables()) {
    bool taken = std::find(numbered.begin(), numbered.end(), v) != numbered.end();
    if (!taken) item.loops.push_back({v, FullRange(v), /*whole=*/true});
  }
  return item;
}

void NestEmitter::InPieces(VariableId variable, Values& carried,
                           const std::function<void(const Range&, Values&)>& body) {
  const Range all = FullRange(variable);
  const int64_t extent = kernel_.variables[variable].extent;
  constexpr int64_t kPiece = 4 * kStepsBetweenPolls;
  if (extent <= kPiece) return body(all, carried);
  EmitLoop(b_, all.begin, all.end, kPiece, carried, [&](Value* first, Values& values) {
    Value* frame = b_.GetInsertBlock()->getParent()->getArg(0);
    EmitPoll(b_, frame, [&](Value*) { b_.CreateRetVoid(); });
    Value* end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(first, Int(kPiece)),
                                          Int(extent));
    body({first, end, std::gcd(kPiece, extent), kPiece}, values);
  });
}

void NestEmitter::ScalarLoop(VariableId variable, const Range& range, Values& carried,
                             const std::function<void(Values&)>& body) {
  auto point = [&](Value* i, Values& values) {
    Mark mark = GetMark();
    Bind(variable, i);
    body(values);
    Unbind(variable);
    Rewind(mark);
  };
  EmitLoop(b_, range.begin, range.end, 1, carried, point, {.nonempty = !range.maybe_empty});
}

void NestEmitter::VectorLoop(VariableId variable, const Range& range, int64_t width,
                             const kernel::CpuStageSchedule& schedule, Values& carried,
                             const std::function<void(Values&)>& body) {
  auto loop = [&](Value* begin, Value* end, int64_t lanes, int copies, bool nonempty, bool masked) {
    auto step = [&](Value* i, Values& values) {
      Mark mark = GetMark();
      Value *mask = nullptr, *lanes_left = nullptr;
      if (masked) {
        lanes_left = b_.CreateSub(end, i);
        Value* left = Splat(b_, b_.CreateTrunc(lanes_left, b_.getInt32Ty()), lanes);
        width_ = lanes;
        mask = b_.CreateICmpULT(Ramp(0, 1, b_.getInt32Ty()), left);
      }
      BindVector(variable, i, lanes, copies, mask, std::gcd(range.aligned, lanes));
      SetLanesLeft(lanes_left);
      body(values);
      UnbindVector();
      Rewind(mark);
    };
    EmitLoop(b_, begin, end, lanes * copies, carried, step, {.nonempty = nonempty});
  };
  // The last point that steps of so many points reach from `begin`.
  auto whole_end = [&](Value* begin, int64_t step) -> Value* {
    if (range.multiple % step == 0) return range.end;
    Value* length = b_.CreateSub(range.end, begin);
    return b_.CreateAdd(begin, b_.CreateAnd(length, Int(-step)));
  };
  bool nonempty = !range.maybe_empty;
  if (schedule.halving) {
    Value* begin = range.begin;
    for (int64_t lanes = width; lanes > 0; lanes /= 2) {
      Value* end = whole_end(begin, lanes);
      loop(begin, end, lanes, 1, false, false);
      begin = end;
    }
    return;
  }
  if (schedule.masked && cpu_.has_masks && range.multiple % width != 0) {
    return loop(range.begin, range.end, width, 1, nonempty, true);
  }
  int unroll = schedule.unroll;
  int64_t step = width * unroll;
  Value* begin = range.begin;
  Value* end = whole_end(begin, step);
  loop(begin, end, width, unroll, nonempty && range.multiple % step == 0, false);
  if (range.multiple % step == 0) return;
  begin = end;
  if (range.multiple % width == 0) {
    loop(begin, range.end, width, 1, false, false);
  } else if (cpu_.has_masks) {
    loop(begin, range.end, width, 1, false, true);
  } else {
    if (unroll > 1) {
      end = whole_end(begin, width);
      loop(begin, end, width, 1, false, false);
      begin = end;
    }
    loop(begin, range.end, 1, 1, false, false);
  }
}

void NestEmitter::TileLoop(VariableId variable, const Range& range,
                           const std::function<void()>& body) {
  Values none;
  auto single = [&](Values&) { body(); };
  // Without vectors there is nothing to transpose.
  if (width_ == 1) return ScalarLoop(variable, range, none, single);
  // Values independent of the tile's variable.
  EmitReadyInAll();
  Range rest = range;
  if (range.multiple % width_ != 0) {
    Value* length = b_.CreateSub(range.end, range.begin);
    rest.begin = b_.CreateAdd(range.begin, b_.CreateAnd(length, Int(-width_)));
    rest.maybe_empty = true;
  }
  Value* end = range.multiple % width_ == 0 ? range.end : rest.begin;
  bool nonempty = !range.maybe_empty && range.multiple % width_ == 0;
  auto square = [&](Value* i) {
    Mark mark = GetMark();
    BindTile(variable, i, static_cast<int>(width_));
    body();
    UnbindTile();
    Rewind(mark);
  };
  EmitLoop(b_, range.begin, end, width_, square, {.nonempty = nonempty});
  if (range.multiple % width_ != 0) ScalarLoop(variable, rest, none, single);
}

void NestEmitter::TilePoints(VariableId variable, Value* first, int count,
                             const std::function<void()>& body) {
  Mark mark = GetMark();
  if (width_ > 1 && count > 1) {
    BindTile(variable, first, count, count);
    body();
    UnbindTile();
    return Rewind(mark);
  }
  for (int i = 0; i < count; ++i) {
    Bind(variable, i == 0 ? first : b_.CreateAdd(first, Int(i)));
    body();
    Unbind(variable);
    Rewind(mark);
  }
}

}  // namespace kiln::codegen
