// Register tiles: the loops over k in which gemms spend their time.
#include <bit>

#include "codegen/cpu/gemm_internal.h"

namespace kiln::codegen::gemm {

using llvm::Value;

namespace {

// How far row `i` of A is from the first one. Multiples by two, four and eight cost nothing: x86
// takes them in addresses.
Value* RowOffset(Emitter& e, const TileOperands& o, int i) {
  if (i == 0 || o.odd_rows.empty()) return e.Scale(o.a_m, i);
  const int twos = std::countr_zero(static_cast<unsigned>(i));
  return e.Scale(o.odd_rows[static_cast<size_t>(i >> twos) / 2], int64_t{1} << twos);
}

// One step of k: mr splats of A times nv vectors of B, into the accumulators.
void OuterStep(Emitter& e, const TileOperands& o, Value* a, Value* b, int step,
               std::vector<Value*>& accumulators) {
  if (e.s.by_columns) return ColumnsStep(e, o, a, b, step, accumulators);
  const int mr = e.s.mr;
  const int nv = e.s.nv;
  std::vector<Value*> columns;
  Value* first = nullptr;
  for (int v = 0; v < nv; ++v) {
    Value* pointer = e.Offset(b, e.Add(e.Scale(o.b_k, step), e.Int(v * o.b_vector)));
    if (v == 0) first = pointer;
    Value* mask = v == nv - 1 ? o.mask : nullptr;
    columns.push_back(o.b_packed
                          ? e.LoadPacked(pointer)
                          : e.LoadB(e.s.lanes, {pointer, first, int64_t{v} * e.s.lanes}, mask));
  }
  const bool flips = !o.a_packed && kernel::FlipsBytes(e.p, e.s.unit);
  Value* to_step = e.Scale(o.a_k, step);
  if (!llvm::isa<llvm::Constant>(o.a_k)) {
    // One pointer for a step: its rows are the same distances from it as the first one's.
    a = e.Offset(a, to_step);
    to_step = e.Int(0);
  }
  for (int i = 0; i < mr; ++i) {
    Value* to_row = RowOffset(e, o, i);
    Value* from = llvm::isa<llvm::Constant>(to_row) ? e.Offset(a, e.Add(to_row, to_step))
                                                    : e.Offset(e.Offset(a, to_row), to_step);
    Value* scalar = o.a_packed    ? e.Load(e.word, from, e.element_bytes)
                    : e.group > 1 ? e.Load(e.word, from, e.a_bytes)
                                  : e.LoadElements(Emitter::Side::kA, 1, {from, from, 0}, nullptr);
    Value* row = e.b.CreateVectorSplat(static_cast<unsigned>(e.s.lanes), scalar);
    if (flips) row = e.Flip(row);
    for (int v = 0; v < nv; ++v) {
      Value*& accumulator = accumulators[i * nv + v];
      accumulator = e.MulAdd(row, columns[v], accumulator);
    }
  }
  e.Fence();
}

// A pointer and how far it goes on per iteration, in bytes, until it is at `last`, if that is set,
// and beyond the end of a row, if it has one, to the next row.
struct Cursor {
  Value* pointer;
  Value* step;
  Value* last = nullptr;
  Value* row_end = nullptr;
  Value* row_step = nullptr;
  Value* row_gap = nullptr;

  void Advance(Emitter& e) {
    pointer = e.Offset(pointer, step);
    if (last) pointer = e.b.CreateSelect(e.b.CreateICmpULT(pointer, last), pointer, last);
    if (!row_end) return;
    Value* in_row = e.b.CreateICmpULT(pointer, row_end);
    pointer = e.b.CreateSelect(in_row, pointer, e.Offset(pointer, row_gap));
    row_end = e.b.CreateSelect(in_row, row_end, e.Offset(row_end, row_step));
  }
  // The values that change from iteration to iteration.
  void AddTo(Values& carried) const {
    carried.push_back(pointer);
    if (row_end) carried.push_back(row_end);
  }
  // Takes them; the values behind them.
  Values::iterator Take(Values::iterator carried) {
    pointer = *carried++;
    if (row_end) row_end = *carried++;
    return carried;
  }
};

// A's and B's, and those of what is prefetched.
std::vector<Cursor> CursorsOf(Emitter& e, const TileOperands& o, Value* a_step, Value* b_step) {
  std::vector<Cursor> cursors = {{o.a, a_step}, {o.b, b_step}};
  for (const LinesAhead& p : o.prefetch) {
    Cursor& cursor = cursors.emplace_back(Cursor{p.pointer, p.step, p.last});
    if (!p.row_bytes) continue;
    cursor.row_end = e.Offset(p.pointer, p.row_bytes);
    cursor.row_step = p.row_step;
    cursor.row_gap = e.b.CreateSub(p.row_step, p.row_bytes);
  }
  return cursors;
}

// Asks for the lines of the cursors behind the first two.
void PrefetchLines(Emitter& e, const TileOperands& o, const std::vector<Cursor>& cursors) {
  for (size_t i = 0; i < o.prefetch.size(); ++i) {
    const LinesAhead& ahead = o.prefetch[i];
    for (int64_t line = 0; line < ahead.lines; ++line) {
      e.Prefetch(e.Offset(cursors[i + 2].pointer, line * kLineBytes), ahead.level);
    }
  }
}

// A loop of `iterations` over advancing pointers and the accumulators.
void AccumulateLoop(Emitter& e, std::vector<Cursor>& cursors, Value* iterations,
                    std::vector<Value*>& accumulators, const std::function<void()>& body) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(iterations)) {
    if (c->isZero()) return;
    if (c->isOne()) {
      body();
      for (Cursor& cursor : cursors) cursor.Advance(e);
      return;
    }
  }
  // The cursors, how often it still goes round, and the accumulators.
  Values carried;
  for (const Cursor& cursor : cursors) cursor.AddTo(carried);
  carried.push_back(iterations);
  carried.insert(carried.end(), accumulators.begin(), accumulators.end());
  auto turn = [&](Values& values) {
    auto at = values.begin();
    for (Cursor& cursor : cursors) at = cursor.Take(at);
    Value* left = *at++;
    std::copy(at, values.end(), accumulators.begin());
    body();
    for (Cursor& cursor : cursors) cursor.Advance(e);
    left = e.b.CreateSub(left, e.Int(1));
    values.clear();
    for (const Cursor& cursor : cursors) cursor.AddTo(values);
    values.push_back(left);
    values.insert(values.end(), accumulators.begin(), accumulators.end());
    return e.b.CreateICmpNE(left, e.Int(0));
  };
  EmitDoWhile(e.b, carried, turn, {.name = "k", .after = "", .after_last = true});
}

// A loop of the sum: how often it goes round, and how far A and B are from turn to turn; in bytes.
struct Level {
  Value* turns;
  Value* a;
  Value* b;
};

// From the outermost to the steps themselves. Levels that both operands walk as one are one.
std::vector<Level> LevelsOf(Emitter& e, const TileOperands& o) {
  struct Known {
    int64_t size, a, b;
  };
  if (e.p.k_outer.empty()) return {{o.k, o.a_k, o.b_k}};
  if (e.any_windows) {
    const int64_t inner = e.s.InnerSteps(e.p);
    Value* turns =
        e.s.k_blocks > 1 ? e.b.CreateUDiv(o.k, e.Int(inner)) : e.Int(e.p.k_outer[0].size);
    return {{turns, e.shape.a_level, e.Scale(o.b_k, inner)}, {e.Int(inner), o.a_k, o.b_k}};
  }
  const int64_t a_k = llvm::cast<llvm::ConstantInt>(o.a_k)->getSExtValue();
  const int64_t b_k = llvm::cast<llvm::ConstantInt>(o.b_k)->getSExtValue();
  int64_t below = e.p.k / e.group;
  std::vector<Known> known = {{below, a_k, b_k}};
  for (size_t i = e.p.k_outer.size(); i-- > 0;) {
    const kernel::GemmSumLevel& level = e.p.k_outer[i];
    int64_t a = o.a_packed ? a_k * below : level.a * e.a_bytes;
    int64_t b = o.b_packed ? b_k * below : e.BytesOfB(level.b);
    below *= level.size;
    Known& inner = known.back();
    if (a == inner.a * inner.size && b == inner.b * inner.size) {
      inner.size *= level.size;
    } else {
      known.push_back({level.size, a, b});
    }
  }
  std::vector<Level> levels;
  for (size_t i = known.size(); i-- > 0;) {
    levels.push_back({e.Int(known[i].size), e.Int(known[i].a), e.Int(known[i].b)});
  }
  // A block of k has some of the outermost one's turns.
  if (e.s.k_blocks > 1) {
    below /= known.back().size;
    levels[0].turns = below == 1 ? o.k : e.b.CreateUDiv(o.k, e.Int(below));
  }
  return levels;
}

// The innermost loop of tiles, behind which pointers stand behind the operands.
void SumTiles(Emitter& e, const TileOperands& o, const Level& level, std::vector<Cursor>& cursors) {
  cursors[0].step = e.Scale(level.a, kernel::kTileSteps);
  cursors[1].step = e.Scale(level.b, kernel::kTileSteps);
  for (size_t i = 2; i < cursors.size(); ++i) cursors[i].step = o.prefetch[i - 2].step;
  std::vector<Value*> none;
  AccumulateLoop(e, cursors, e.b.CreateUDiv(level.turns, e.Int(kernel::kTileSteps)), none, [&] {
    PrefetchLines(e, o, cursors);
    EmitTileStep(e, o, cursors[0].pointer, cursors[1].pointer);
  });
}

// The steps of the innermost loop, `unroll` of them at a time.
void SumSteps(Emitter& e, const TileOperands& o, const Level& level, std::vector<Cursor>& cursors,
              std::vector<Value*>& accumulators) {
  if (kernel::IsTile(e.s.unit)) return SumTiles(e, o, level, cursors);
  const int unroll = e.unroll;
  cursors[0].step = e.Scale(level.a, unroll);
  cursors[1].step = e.Scale(level.b, unroll);
  for (size_t i = 2; i < cursors.size(); ++i) cursors[i].step = o.prefetch[i - 2].step;
  TileOperands steps = o;
  steps.a_k = level.a;
  steps.b_k = level.b;
  Value* iterations = level.turns;
  int64_t tail = 0;
  if (auto* turns = llvm::dyn_cast<llvm::ConstantInt>(iterations)) {
    iterations = e.Int(turns->getSExtValue() / unroll);
    tail = turns->getSExtValue() % unroll;
  } else if (unroll > 1) {
    iterations = e.b.CreateUDiv(iterations, e.Int(unroll));
  }
  auto step = [&](int64_t number) {
    OuterStep(e, steps, cursors[0].pointer, cursors[1].pointer, static_cast<int>(number),
              accumulators);
  };
  AccumulateLoop(e, cursors, iterations, accumulators, [&] {
    PrefetchLines(e, steps, cursors);
    for (int number = 0; number < unroll; ++number) step(number);
  });
  for (int64_t number = 0; number < tail; ++number) step(number);
  cursors[0].pointer = e.Offset(cursors[0].pointer, e.Scale(level.a, tail));
  cursors[1].pointer = e.Offset(cursors[1].pointer, e.Scale(level.b, tail));
}

// The loops from level `at` on, behind which pointers stand where these have led them.
void SumLevels(Emitter& e, const TileOperands& o, const std::vector<Level>& levels, size_t at,
               std::vector<Cursor>& cursors, std::vector<Value*>& accumulators) {
  if (at + 1 == levels.size()) return SumSteps(e, o, levels[at], cursors, accumulators);
  // The advance not made by the loops below, which have equal trip counts.
  const Level& inner = levels[at + 1];
  int64_t turns = llvm::cast<llvm::ConstantInt>(inner.turns)->getSExtValue();
  cursors[0].step = e.b.CreateSub(levels[at].a, e.Scale(inner.a, turns));
  cursors[1].step = e.b.CreateSub(levels[at].b, e.Scale(inner.b, turns));
  for (size_t i = 2; i < cursors.size(); ++i) cursors[i].step = e.Int(0);
  AccumulateLoop(e, cursors, levels[at].turns, accumulators, [&] {
    std::vector<Cursor> below = cursors;
    SumLevels(e, o, levels, at + 1, below, accumulators);
    for (size_t i = 0; i < cursors.size(); ++i) cursors[i].pointer = below[i].pointer;
  });
}

// Adds the elements `low` and `high` of pairs of vectors, numbered through both: half as many.
std::vector<Value*> SumPairs(Emitter& e, const std::vector<Value*>& vectors,
                             const std::vector<int>& low, const std::vector<int>& high) {
  std::vector<Value*> sums;
  for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
    Value *x = vectors[i], *y = vectors[i + 1];
    sums.push_back(e.Sum(e.b.CreateShuffleVector(x, y, low), e.b.CreateShuffleVector(x, y, high)));
  }
  return sums;
}

// Lane i of the result is the sum of the lanes of vectors[i]; there are as many vectors as lanes.
// First neighbours within 128 bits are added, which takes x86 the fewest instructions, then parts
// of 128 bits.
Value* SumLanes(Emitter& e, std::vector<Value*> vectors) {
  const int lanes = e.s.lanes;
  const int part = std::min(lanes, static_cast<int>(16 / e.element_bytes));
  std::vector<int> low, high;
  for (int first = 0; first < lanes; first += part) {
    for (int source = 0; source < 2; ++source) {
      for (int lane = 0; lane < part; lane += 2) {
        low.push_back(source * lanes + first + lane);
        high.push_back(low.back() + 1);
      }
    }
  }
  for (int width = part; width > 1; width /= 2) vectors = SumPairs(e, vectors, low, high);
  for (int width = lanes; width > part; width /= 2) {
    // Each run of `width` lanes has sums of `part` vectors.
    low.clear();
    high.clear();
    for (int first = 0; first < 2 * lanes; first += width) {
      for (int lane = 0; lane < width / 2; ++lane) {
        low.push_back(first + lane);
        high.push_back(first + width / 2 + lane);
      }
    }
    vectors = SumPairs(e, vectors, low, high);
  }
  return vectors[0];
}

}  // namespace

std::vector<Value*> EmitOuterTile(Emitter& e, const TileOperands& o) {
  const int64_t count = e.s.by_columns ? e.s.mr / e.s.lanes * e.p.n : e.s.mr * e.s.nv;
  std::vector<Value*> accumulators(static_cast<size_t>(count),
                                   llvm::Constant::getNullValue(e.vector));
  if (e.s.has_head) {
    for (int v = 0; v < e.s.nv; ++v) {
      Value* begin = e.LoadVector(e.Offset(o.b, (v - e.s.nv) * e.b_vector_bytes), nullptr, true);
      for (int i = 0; i < e.s.mr; ++i) accumulators[i * e.s.nv + v] = begin;
    }
  }
  std::vector<Cursor> cursors = CursorsOf(e, o, e.Int(0), e.Int(0));
  TileOperands tile = o;
  if (!llvm::isa<llvm::Constant>(o.a_m)) {
    for (int row = 1; row < e.s.mr; row += 2) tile.odd_rows.push_back(e.Scale(o.a_m, row));
  }
  SumLevels(e, tile, LevelsOf(e, tile), 0, cursors, accumulators);
  return e.s.by_columns ? RowsOfColumns(e, accumulators) : accumulators;
}

void EmitTileSums(Emitter& e, const TileOperands& o, Value* sums, bool add) {
  EmitTileBegin(e, sums, add);
  std::vector<Cursor> cursors = CursorsOf(e, o, e.Int(0), e.Int(0));
  std::vector<Value*> none;
  SumLevels(e, o, LevelsOf(e, o), 0, cursors, none);
  EmitTileEnd(e, sums);
}

std::vector<Value*> EmitInnerTile(Emitter& e, const TileOperands& o) {
  using Side = Emitter::Side;
  const int mr = e.s.mr;
  const int nr = e.s.nr;
  const int64_t elements = e.s.lanes * e.group;  // of a vector
  const bool flips = kernel::FlipsBytes(e.p, e.s.unit);
  std::vector<Value*> accumulators(static_cast<size_t>(mr * nr),
                                   llvm::Constant::getNullValue(e.vector));
  // Behind them the sums of the rows' bytes.
  if (flips) accumulators.resize(static_cast<size_t>(mr * (nr + 1)), accumulators[0]);
  std::vector<Cursor> cursors =
      CursorsOf(e, o, e.Int(elements * e.a_bytes), e.Int(e.BytesOfB(elements)));
  auto step = [&](Value* mask) {
    Value* a = cursors[0].pointer;
    Value* b = cursors[1].pointer;
    std::vector<Value*> rows;
    for (int i = 0; i < mr; ++i) {
      Value* row = e.Offset(a, e.Scale(o.a_m, i));
      rows.push_back(e.LoadAlong(Side::kA, e.s.lanes, {row, row, 0}, mask));
      if (!flips) continue;
      Value*& sum = accumulators[mr * nr + i];
      sum = e.AddBytes(Side::kA, rows.back(), sum);
    }
    for (int j = 0; j < nr; ++j) {
      GemmPlace place{e.Offset(b, o.columns[j]), b, j};
      if (!llvm::isa<llvm::ConstantInt>(o.columns[j])) place = {place.pointer, place.pointer, 0};
      Value* column = o.b_packed ? e.LoadVector(place.pointer, mask, true)
                                 : e.WidenedB(e.LoadAlong(Side::kB, e.s.lanes, place, mask));
      if (flips) column = e.Flip(column);
      for (int i = 0; i < mr; ++i) {
        Value*& accumulator = accumulators[i * nr + j];
        accumulator = e.MulAdd(rows[i], column, accumulator);
      }
    }
    e.Fence();
  };
  const int64_t steps = e.p.k / elements;
  const int64_t tail = e.p.k % elements;
  AccumulateLoop(e, cursors, e.Int(steps), accumulators, [&] {
    PrefetchLines(e, o, cursors);
    step(nullptr);
  });
  if (tail > 0) step(e.Mask(tail, elements));
  if (flips) {
    for (int i = 0; i < mr; ++i) {
      Value* by = llvm::ConstantInt::getSigned(e.vector, e.FlippedBy());
      Value* more = e.b.CreateMul(accumulators[mr * nr + i], by);
      for (int j = 0; j < nr; ++j) {
        Value*& sum = accumulators[i * nr + j];
        sum = e.b.CreateAdd(sum, more);
      }
    }
    accumulators.resize(static_cast<size_t>(mr * nr));
  }

  // Sums groups of as many accumulators as there are lanes at once.
  std::vector<Value*> sums;
  const size_t lanes = static_cast<size_t>(e.s.lanes);
  for (size_t first = 0; first < accumulators.size(); first += lanes) {
    const size_t count = std::min(lanes, accumulators.size() - first);
    std::vector<Value*> group(accumulators.begin() + static_cast<ptrdiff_t>(first),
                              accumulators.begin() + static_cast<ptrdiff_t>(first + count));
    while (group.size() < lanes) group.push_back(llvm::PoisonValue::get(e.vector));
    Value* total = SumLanes(e, group);
    for (size_t i = 0; i < count; ++i) sums.push_back(e.b.CreateExtractElement(total, i));
  }
  return sums;
}

}  // namespace kiln::codegen::gemm
