// Merge sort of neighbouring runs: stable, and safe with any comparator, because accesses never
// depend on more than one of its answers at a time.
#include "codegen/cpu/sort_phases.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// The layout of scratch: records, or elements of each operand.
class Elements {
 public:
  Elements(const SortContext& c, SortPhase& p) : c_(c), p_(p), b_(p.b()) {
    if (c.schedule.records) {
      types_ = {RecordType(c)};
      return;
    }
    for (kernel::NodeId input : c.sort.inputs) {
      element_types_.push_back(c.kernel.stages.front().nodes[input].type);
      types_.push_back(MemoryType(b_.getContext(), element_types_.back()));
    }
  }

  Values Load(Value* place, Value* index) {
    Values values;
    for (size_t k = 0; k < types_.size(); ++k) {
      values.push_back(b_.CreateAlignedLoad(types_[k], Address(k, place, index), AlignOf(k)));
    }
    return values;
  }

  void Store(const Values& values, Value* place, Value* index) {
    for (size_t k = 0; k < types_.size(); ++k) {
      b_.CreateAlignedStore(values[k], Address(k, place, index), AlignOf(k));
    }
  }

  // Whether x comes first.
  Value* Before(const Values& x, const Values& y) {
    if (c_.schedule.records) return b_.CreateICmpULT(x[0], y[0]);
    Values arguments;
    for (size_t k = 0; k < types_.size(); ++k) {
      for (const Values* of : {&x, &y}) {
        arguments.push_back(FromMemory(b_, (*of)[k], element_types_[k], MathOf(c_.cpu)));
      }
    }
    Values results = p_.nest().EmitCombiner(c_.sort.comparator, arguments);
    return results.empty() ? b_.getFalse() : results[0];
  }

  Values Select(Value* condition, const Values& x, const Values& y) {
    Values values;
    for (size_t k = 0; k < types_.size(); ++k) {
      values.push_back(b_.CreateSelect(condition, x[k], y[k]));
    }
    return values;
  }

 private:
  Value* Address(size_t k, Value* place, Value* index) {
    return p_.At(types_[k], p_.At(b_.getInt8Ty(), place, p_.Int(c_.schedule.offsets[k])), index);
  }
  llvm::Align AlignOf(size_t k) const {
    return llvm::Align(std::min<uint64_t>(types_[k]->getPrimitiveSizeInBits() / 8, 8));
  }

  const SortContext& c_;
  SortPhase& p_;
  Builder& b_;
  std::vector<llvm::Type*> types_;
  std::vector<ElementType> element_types_;
};

// Copies from[begin, end) to to[at...); gives where it ends there.
Value* EmitCopyRun(SortPhase& p, Elements& elements, Value* from, Value* begin, Value* end,
                   Value* to, Value* at) {
  Builder& b = p.b();
  return EmitWhile(
      b, {begin, at}, [&](const Values& v) { return b.CreateICmpSLT(v[0], end); },
      [&](Values& v) {
        elements.Store(elements.Load(from, v[0]), to, v[1]);
        v = {b.CreateAdd(v[0], p.Int(1)), b.CreateAdd(v[1], p.Int(1))};
      })[1];
}

// Merges from[left, left_end) and from[right, right_end) to to[at...); of equals the left first.
void EmitMerge(SortPhase& p, Elements& elements, Value* from, Value* left, Value* left_end,
               Value* right, Value* right_end, Value* to, Value* at) {
  Builder& b = p.b();
  Values next = EmitWhile(
      b, {left, right, at},
      [&](const Values& v) {
        return b.CreateAnd(b.CreateICmpSLT(v[0], left_end), b.CreateICmpSLT(v[1], right_end));
      },
      [&](Values& v) {
        Values x = elements.Load(from, v[0]), y = elements.Load(from, v[1]);
        Value* take_right = elements.Before(y, x);
        elements.Store(elements.Select(take_right, y, x), to, v[2]);
        Value* step = b.CreateZExt(take_right, b.getInt64Ty());
        v = {b.CreateAdd(v[0], b.CreateSub(p.Int(1), step)), b.CreateAdd(v[1], step),
             b.CreateAdd(v[2], p.Int(1))};
      });
  Value* end = EmitCopyRun(p, elements, from, next[0], left_end, to, next[2]);
  EmitCopyRun(p, elements, from, next[1], right_end, to, end);
}

// Merges the runs of from[first, end) until they are of `length` elements; gives where they came
// out, which is `to` after an odd number of levels.
Value* EmitMerges(SortPhase& p, Elements& elements, Value* from, Value* first, Value* end,
                  Value* run, Value* length, Value* to) {
  Builder& b = p.b();
  return EmitWhile(
      b, {run, from, to}, [&](const Values& v) { return b.CreateICmpSLT(v[0], length); },
      [&](Values& v) {
        Value *now = v[0], *source = v[1], *target = v[2];
        EmitWhile(
            b, {first}, [&](const Values& at) { return b.CreateICmpSLT(at[0], end); },
            [&](Values& at) {
              Value* middle = EmitMin(b, b.CreateAdd(at[0], now), end);
              Value* last = EmitMin(b, b.CreateAdd(middle, now), end);
              EmitMerge(p, elements, source, at[0], middle, middle, last, target, at[0]);
              at[0] = last;
            });
        v = {b.CreateMul(now, p.Int(2)), target, source};
      })[1];
}

int64_t SizeOf(const SortContext& c) { return c.kernel.variables[c.sort.variable].extent; }

// The pair of runs of `run` elements that position `at` is in: where its first, its second, and
// what is after it begin.
struct Pair {
  Value *begin, *middle, *end;
};
Pair PairAt(const SortContext& c, SortPhase& p, Value* run, Value* at) {
  Builder& b = p.b();
  Value* both = b.CreateMul(run, p.Int(2));
  Value* begin = b.CreateSub(at, b.CreateURem(at, both));
  Value* size = p.Int(SizeOf(c));
  return {begin, EmitMin(b, b.CreateAdd(begin, run), size),
          EmitMin(b, b.CreateAdd(begin, both), size)};
}

}  // namespace

int64_t LevelsOf(int64_t run, int64_t size) {
  int64_t levels = 0;
  for (; run < size; run *= 2) ++levels;
  return levels;
}

void EmitRunsPhase(const SortContext& c, SortPhase& p) {
  Elements elements(c, p);
  Value *from = p.Pointer(SortState::kFrom), *to = p.Pointer(SortState::kTo);
  p.ForEachChunk([&](Value*, Value* first, Value* end) {
    EmitMerges(p, elements, from, first, end, p.Int(1), p.Int(c.schedule.chunk), to);
  });
}

void EmitOrderPhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  Elements elements(c, p);
  Value *front = p.Scratch(c.schedule.front), *back = p.Scratch(c.schedule.back);
  Value* first = b.CreateMul(p.function()->getArg(2), p.Int(c.schedule.candidates));
  Value* count = p.function()->getArg(3);
  Value* end = b.CreateAdd(first, count);
  Value* sorted = EmitMerges(p, elements, front, first, end, p.Int(1), count, back);
  // Where it came out in the other place it goes back.
  Value* home = b.CreateICmpEQ(sorted, front);
  EmitCopyRun(p, elements, back, b.CreateSelect(home, end, first), end, front, first);
}

void EmitPickPhase(const SortContext& c, SortPhase& p) {
  Elements elements(c, p);
  Value *front = p.Scratch(c.schedule.front), *back = p.Scratch(c.schedule.back);
  Value* sorted = front;
  if (c.schedule.chunks > 1) {
    Value* at = p.Int(0);
    for (int64_t chunk = 0; chunk < c.schedule.chunks; ++chunk) {
      int64_t first = chunk * c.schedule.candidates;
      at = EmitCopyRun(p, elements, front, p.Int(first), p.Int(first + c.sort.keep), back, at);
    }
    sorted = EmitMerges(p, elements, back, p.Int(0), at, p.Int(c.sort.keep), at, front);
  }
  p.SetState(SortState::kFrom, sorted);
}

// A chunk of what comes out of the merges is one piece of one of them: splits[c] is how many
// elements of the first run of its pair come before it. A comparator that contradicts itself may
// give splits that go back; they are moved so that each piece is as long as it must be.
void EmitSplitPhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  Elements elements(c, p);
  Value *from = p.Pointer(SortState::kFrom), *run = p.State(SortState::kStep);
  Value* splits = p.Scratch(c.schedule.splits);
  Values previous = {p.Int(0)};
  EmitLoop(b, p.Int(0), p.Int(c.schedule.chunks), 1, previous, [&](Value* i, Values& v) {
    Value* at = b.CreateMul(i, p.Int(c.schedule.chunk));
    Pair pair = PairAt(c, p, run, at);
    Value* diagonal = b.CreateSub(at, pair.begin);
    Value* lefts = b.CreateSub(pair.middle, pair.begin);
    Value* rights = b.CreateSub(pair.end, pair.middle);
    Value* low = EmitMax(b, p.Int(0), b.CreateSub(diagonal, rights));
    Value* high = EmitMin(b, diagonal, lefts);
    Value* split = EmitWhile(
        b, {low, high}, [&](const Values& w) { return b.CreateICmpSLT(w[0], w[1]); },
        [&](Values& w) {
          Value* middle = b.CreateLShr(b.CreateAdd(w[0], w[1]), 1);
          Value* right = b.CreateSub(b.CreateSub(diagonal, middle), p.Int(1));
          Values x = elements.Load(from, b.CreateAdd(pair.begin, middle));
          Values y = elements.Load(from, b.CreateAdd(pair.middle, right));
          Value* take_right = elements.Before(y, x);
          w = {b.CreateSelect(take_right, w[0], b.CreateAdd(middle, p.Int(1))),
               b.CreateSelect(take_right, middle, w[1])};
        })[0];
    // Not before the previous one, nor further from it than a piece is long.
    Value* starts = b.CreateICmpEQ(diagonal, p.Int(0));
    Value* least = EmitMax(b, v[0], low);
    Value* most = EmitMin(b, b.CreateAdd(v[0], p.Int(c.schedule.chunk)), high);
    split = b.CreateSelect(starts, p.Int(0), EmitMin(b, EmitMax(b, split, least), most));
    b.CreateStore(split, p.At(b.getInt64Ty(), splits, i));
    v[0] = split;
  });
}

void EmitMergePhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  Elements elements(c, p);
  Value *from = p.Pointer(SortState::kFrom), *to = p.Pointer(SortState::kTo);
  Value* run = p.State(SortState::kStep);
  Value* splits = p.Scratch(c.schedule.splits);
  p.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
    Pair pair = PairAt(c, p, run, first);
    Value* left =
        b.CreateAdd(pair.begin, b.CreateLoad(b.getInt64Ty(), p.At(b.getInt64Ty(), splits, chunk)));
    Value* right = b.CreateAdd(pair.middle, b.CreateSub(first, left));
    // The next chunk begins where this one ends, unless the pair ends here.
    Value* last = b.CreateICmpEQ(end, pair.end);
    Value* slot = p.At(b.getInt64Ty(), splits, b.CreateAdd(chunk, p.Int(1)));
    Value* next = b.CreateAdd(pair.begin, b.CreateLoad(b.getInt64Ty(), slot));
    Value* left_end = b.CreateSelect(last, pair.middle, next);
    Value* right_end = b.CreateAdd(pair.middle, b.CreateSub(end, left_end));
    right_end = b.CreateSelect(last, pair.end, right_end);
    EmitMerge(p, elements, from, left, left_end, right, right_end, to, first);
  });
}

}  // namespace kiln::codegen
