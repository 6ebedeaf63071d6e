// Packed forms of A and B.
//
// A: [batch][k block][tile][step][mr], or rows [batch][m][step]. B: [batch][k block][panel][head,
// step][nv vectors]; lanes beyond n hold values that are computed with and never stored; or columns
// [batch][n][step]. Elements are words where several are multiplied at once.
#include <algorithm>
#include <numeric>
#include <string>

#include "base/integers.h"
#include "base/strings.h"
#include "codegen/cpu/gemm_internal.h"
#include "codegen/cpu/transpose.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen::gemm {

using llvm::Value;

namespace {

constexpr Emitter::Side kA = Emitter::Side::kA, kB = Emitter::Side::kB;

// Transposes `lanes` pieces of 128 bits, `narrow` elements each: result i has element i of all.
// The pieces are first put together so that the shuffles stay within 128 bits, which is cheap on
// every x86: vector j holds those whose number is j modulo `narrow`.
std::vector<Value*> Transpose(Emitter& e, const std::vector<Value*>& pieces, int narrow) {
  const int lanes = e.s.lanes;
  std::vector<Value*> rows;
  for (int j = 0; j < narrow; ++j) {
    std::vector<Value*> parts;
    for (int i = j; i < lanes; i += narrow) parts.push_back(pieces[i]);
    for (int width = narrow; width < lanes; width *= 2) {
      std::vector<int> both(static_cast<size_t>(2 * width));
      std::iota(both.begin(), both.end(), 0);
      for (size_t i = 0; 2 * i < parts.size(); ++i) {
        parts[i] = e.b.CreateShuffleVector(parts[2 * i], parts[2 * i + 1], both);
      }
      parts.resize(parts.size() / 2);
    }
    rows.push_back(parts[0]);
  }
  for (int width = 1; width < narrow; width *= 2) {
    // Units of `width` elements of both rows alternate, first the lower half of them.
    std::vector<int> masks[2];
    for (int half = 0; half < 2; ++half) {
      for (int group = 0; group < lanes; group += narrow) {
        for (int unit = 0; unit < narrow / 2; unit += width) {
          for (int source = 0; source < 2; ++source) {
            for (int lane = 0; lane < width; ++lane) {
              masks[half].push_back(source * lanes + group + half * narrow / 2 + unit + lane);
            }
          }
        }
      }
    }
    std::vector<Value*> next(rows.size());
    for (int i = 0; i < narrow; ++i) {
      if (i & width) continue;
      Value* x = rows[i];
      Value* y = rows[i + width];
      next[i] = e.b.CreateShuffleVector(x, y, masks[0]);
      next[i + width] = e.b.CreateShuffleVector(x, y, masks[1]);
    }
    rows = std::move(next);
  }
  // Each row is where the number with its bits in reverse order is.
  for (int i = 0; i < narrow; ++i) {
    int reversed = 0;
    for (int bit = 1; bit < narrow; bit *= 2) reversed = 2 * reversed + (i & bit ? 1 : 0);
    if (i < reversed) std::swap(rows[i], rows[reversed]);
  }
  return rows;
}

// How many steps of k ahead of the copy rows of B are prefetched: they are too far apart for the
// hardware to see a pattern.
constexpr int64_t kPrefetchSteps = 8;

// Rows of B as they are, through all panels at once: they are long pieces of memory then.
void PackRows(Emitter& e, Value* source, Value* panel, Value* count, Value* k, Value* packed,
              Value* panel_bytes) {
  const int64_t row_bytes = e.s.nv * e.b_vector_bytes;
  const int64_t source_bytes = e.BytesOfB(e.s.lanes);
  e.Loop(e.Int(0), e.StepsOf(k), 1, "pack", [&](Value* step) {
    Value* left = e.Left(k, step);
    Value* row = e.Offset(source, e.Multiply(e.Scale(step, e.group), e.shape.b_step));
    Value* to = e.Offset(packed, e.Scale(step, row_bytes));
    e.Loop(e.Int(0), count, 1, "pack.panel", [&](Value* i) {
      Value* first_vector = e.PanelVector(e.Add(panel, i));
      Value* in = e.Offset(row, e.Scale(first_vector, source_bytes));
      Value* out = e.Offset(to, e.b.CreateMul(i, panel_bytes));
      for (int64_t i = 0; i < e.group; ++i) {
        Value* ahead = e.Scale(e.shape.b_step, kPrefetchSteps + i);
        for (int64_t line = 0; line < e.s.nv * source_bytes; line += 64) {
          e.Prefetch(e.Offset(in, e.Add(ahead, e.Int(line))));
        }
      }
      Value* mask = nullptr;
      if (e.ragged) {
        Value* last = e.Add(first_vector, e.Int(e.s.nv - 1));
        mask = e.Mask(e.b.CreateSub(e.Int(e.p.n), e.Scale(last, e.s.lanes)));
      }
      for (int v = 0; v < e.s.nv; ++v) {
        Value* vector = e.LoadAcross(kB, e.s.lanes, e.Offset(in, v * source_bytes), e.shape.b_step,
                                     v == e.s.nv - 1 ? mask : nullptr, left);
        e.StorePacked(vector, e.Offset(out, v * e.b_vector_bytes));
      }
    });
  });
}

// Words in 128 bits.
int Narrow(const Emitter& e) {
  return std::min<int>(e.s.lanes, static_cast<int>(16 / e.b_word_bytes));
}

// Columns of B that become vectors of a panel. Each is contiguous, and so many bytes from the one
// before.
struct Columns {
  Value* first;
  Value* bytes;
  Value* vectors;
  Value* k;  // whole words
  Value* packed;
  Value* last = nullptr;  // the number of the last column, which those beyond it repeat, if any
};

// Pieces of all columns of a vector are transposed in registers. The last piece is moved back so
// that it ends with k.
void TransposeColumns(Emitter& e, const Columns& c) {
  const int lanes = e.s.lanes;
  const int narrow = Narrow(e);
  // Whole vectors take a pointer for each group of columns, to which multiples of one stride are
  // added: there are not enough registers for one of each column.
  const int group = c.last ? 1 : std::min(lanes, 4);
  std::vector<Value*> within;
  for (int i = 0; i < group; ++i) within.push_back(e.Scale(c.bytes, i));
  Value* row_bytes = e.Scale(c.vectors, e.b_vector_bytes);
  e.Loop(e.Int(0), c.vectors, 1, "pack.v", [&](Value* v) {
    std::vector<Value*> groups;
    for (int i = 0; i < lanes; i += group) {
      Value* column = e.Add(e.Scale(v, lanes), e.Int(i));
      if (c.last) column = e.Min(column, c.last);
      groups.push_back(e.Offset(c.first, e.Multiply(column, c.bytes)));
    }
    Value* out = e.Offset(c.packed, e.Scale(v, e.b_vector_bytes));
    e.Loop(e.Int(0), c.k, narrow, "pack.k", [&](Value* step) {
      step = e.Min(step, e.b.CreateSub(c.k, e.Int(narrow)));
      Value* at = e.p.HasHalves() ? e.b.CreateLShr(step, 1) : e.Scale(step, e.b_bytes * e.group);
      std::vector<Value*> pieces;
      for (Value* first : groups) {
        first = e.Offset(first, at);
        for (Value* bytes : within) {
          Value* piece = e.Offset(first, bytes);
          pieces.push_back(e.LoadAlong(kB, narrow, {piece, piece, 0}, nullptr));
        }
      }
      pieces = Transpose(e, pieces, narrow);
      Value* to = e.Offset(out, e.Multiply(step, row_bytes));
      for (int i = 0; i < narrow; ++i) {
        e.StorePacked(pieces[i], e.Offset(to, e.Scale(row_bytes, i)));
      }
    });
  });
}

// The same as a function of the module, whatever the strides are: void(first, bytes, vectors, k,
// packed), and `last` for `ragged` ones.
llvm::Function* TransposeFunction(Emitter& e, bool ragged) {
  const std::string name =
      Cat(ragged ? "pack ragged columns " : "pack columns ", TypeName(e.p.TypeOfB()), " ",
          TypeName(e.group > 1 ? e.FactorOf(kB) : e.p.type), "x", e.group, "x", e.s.lanes);
  if (llvm::Function* known = e.function->getParent()->getFunction(name)) return known;
  llvm::Type* pointer = e.b.getPtrTy();
  std::vector<llvm::Type*> types = {pointer, e.i64, e.i64, e.i64, pointer};
  if (ragged) types.push_back(e.i64);
  llvm::Function* f =
      NewFunction(*e.function, llvm::FunctionType::get(e.b.getVoidTy(), types, false), name);
  MakeOptimised(f);
  Emitter inner(f, e.p, e.s);
  TransposeColumns(inner, {f->getArg(0), f->getArg(1), f->getArg(2), f->getArg(3), f->getArg(4),
                           ragged ? f->getArg(5) : nullptr});
  inner.b.CreateRetVoid();
  return f;
}

// B whose columns are contiguous. Columns beyond n repeat the last one.
void PackColumns(Emitter& e, Value* source, Value* first_vector, Value* k, Value* packed) {
  Value* first = e.Scale(first_vector, e.s.lanes);
  Columns columns = {e.Offset(source, e.Multiply(first, e.shape.b_column)), e.shape.b_column,
                     e.Int(e.s.nv), e.group > 1 ? e.b.CreateUDiv(k, e.Int(e.group)) : k, packed};
  if (e.ragged) columns.last = e.b.CreateSub(e.Int(e.p.n - 1), first);
  if (e.b_prologue) return TransposeColumns(e, columns);
  std::vector<Value*> args = {columns.first, columns.bytes, columns.vectors, columns.k, packed};
  if (e.ragged) args.push_back(columns.last);
  e.b.CreateCall(TransposeFunction(e, e.ragged), args);
}

// Any strides, one word at a time, from a step on.
void PackElements(Emitter& e, Value* source, Value* first_vector, Value* first_step, Value* k,
                  Value* packed) {
  const int64_t width = int64_t{e.s.nv} * e.s.lanes;
  Value* first = e.Scale(first_vector, e.s.lanes);
  e.Loop(e.Int(0), e.Int(width), 1, "pack.n", [&](Value* i) {
    Value* column = e.Add(first, i);
    if (e.ragged) column = e.Min(column, e.Int(e.p.n - 1));
    Value* in = e.Offset(source, e.Multiply(column, e.shape.b_column));
    Value* out = e.Offset(packed, e.Scale(i, e.b_word_bytes));
    e.Loop(first_step, e.StepsOf(k), 1, "pack.k", [&](Value* step) {
      const int64_t bytes = e.BytesOfB(e.p.b_k);
      Value* value = e.LoadAcross(kB, 1, e.Offset(in, e.Scale(step, e.group * bytes)), e.Int(bytes),
                                  nullptr, e.Left(k, step));
      e.b.CreateAlignedStore(value, e.Offset(out, e.Scale(step, width * e.b_word_bytes)),
                             llvm::Align(static_cast<uint64_t>(e.b_word_bytes)));
    });
  });
}

// The mr words of A for one step of k, of which so many elements are left, if not all.
void PackSplats(Emitter& e, Value* in, Value* left, Value* out) {
  Value* stride = e.Int(e.p.a_k * e.a_bytes);
  const bool flips = kernel::FlipsBytes(e.p, e.s.unit);
  if (e.p.a_m == 1) {
    // Without AVX-512 a masked store takes longer than those of the rows by halves of vectors.
    const bool halves = e.group == 1 && e.vector_bytes < kLineBytes;
    int lanes = e.s.lanes;
    for (int i = 0; i < e.s.mr; i += lanes) {
      while (halves && lanes > e.s.mr - i) lanes /= 2;
      const int count = std::min(lanes, e.s.mr - i);
      Value* mask = count < lanes ? e.Mask(int64_t{count}) : nullptr;
      Value* rows = e.LoadAcross(kA, lanes, e.Offset(in, i * e.a_bytes), stride, mask, left);
      if (flips) rows = e.Flip(rows);
      e.StoreVector(rows, e.Offset(out, i * e.element_bytes), mask, false);
    }
    return;
  }
  for (int i = 0; i < e.s.mr; ++i) {
    Value* at = e.Offset(in, i * e.p.a_m * e.a_bytes);
    Value* value = e.LoadAcross(kA, 1, at, stride, nullptr, left);
    if (flips) value = e.Flip(value);
    e.b.CreateAlignedStore(value, e.Offset(out, i * e.element_bytes),
                           llvm::Align(static_cast<uint64_t>(e.element_bytes)));
  }
}

// The head of a panel: what its columns have more, or less, where the bytes of A are flipped.
void PackHead(Emitter& e, Value* steps, Value* packed) {
  const int64_t row_bytes = e.s.nv * e.vector_bytes;
  Values sums(static_cast<size_t>(e.s.nv), llvm::Constant::getNullValue(e.vector));
  EmitLoop(
      e.b, e.Int(0), steps, 1, sums,
      [&](Value* step, Values& sums) {
        Value* row = e.Offset(packed, e.Scale(step, row_bytes));
        for (int v = 0; v < e.s.nv; ++v) {
          sums[v] = e.AddBytes(kB, e.LoadPacked(e.Offset(row, v * e.vector_bytes)), sums[v]);
        }
      },
      e.FormOf("pack.head"));
  for (int v = 0; v < e.s.nv; ++v) {
    Value* head = e.b.CreateMul(sums[v], llvm::ConstantInt::getSigned(e.vector, e.FlippedBy()));
    e.StoreVector(head, e.Offset(packed, v * e.vector_bytes - row_bytes), nullptr, true);
  }
}

// All columns of B along the sum, in squares of as many steps and columns as there are lanes. The
// last ones are moved back so that they end with the sum and with n.
void PackAlongSum(Emitter& e, Value* source, Value* packed) {
  const int64_t lanes = e.s.lanes, n = e.p.n;
  Value* mask = n < lanes ? e.Mask(n) : nullptr;
  e.Loop(e.Int(0), e.Int(e.p.k), lanes, "pack.k", [&](Value* step) {
    step = e.Min(step, e.Int(e.p.k - lanes));
    Value* out = e.Offset(packed, e.Scale(step, e.element_bytes));
    for (int64_t stored = 0; stored < n;) {
      const int64_t first = std::max<int64_t>(std::min(stored, n - lanes), 0);
      std::vector<Value*> square;
      for (int64_t row = 0; row < lanes; ++row) {
        Value* at = e.Offset(source, e.Multiply(e.Add(step, e.Int(row)), e.shape.b_step));
        at = e.Offset(at, e.BytesOfB(first));
        square.push_back(e.LoadB(e.s.lanes, {at, at, 0}, mask));
      }
      SwapBlocks(e.b, square, 1);
      for (; stored < std::min(first + lanes, n); ++stored) {
        e.StoreVector(square[static_cast<size_t>(stored - first)],
                      e.Offset(out, stored * e.s.b_column_bytes), nullptr, false);
      }
    }
  });
}

// Steps of one level of the sum, of the fewest elements in any block of it.
void PackSteps(Emitter& e, Value* source, Value* panel, Value* count, Value* k, int64_t fewest,
               Value* packed, Value* panel_bytes) {
  if (e.p.b_n == 1 || e.p.n == 1) {
    return PackRows(e, source, panel, count, k, packed, panel_bytes);
  }
  const bool columns = e.p.b_k == 1 && fewest >= Narrow(e) * e.group;
  e.Loop(e.Int(0), count, 1, "pack.panel", [&](Value* i) {
    Value* first_vector = e.PanelVector(e.Add(panel, i));
    Value* out = e.Offset(packed, e.b.CreateMul(i, panel_bytes));
    if (columns) PackColumns(e, source, first_vector, k, out);
    if (columns && e.p.TotalK() % e.s.whole() == 0) return;
    Value* whole = columns ? e.b.CreateUDiv(k, e.Int(e.group)) : e.Int(0);
    PackElements(e, source, first_vector, whole, k, out);
  });
}

// The loops of the sum around its innermost steps, from level `at` on, of which there are `turns`.
void PackLevels(Emitter& e, size_t at, Value* turns, Value* source, Value* packed,
                const std::function<void(Value*, Value*)>& steps) {
  if (at == e.p.k_outer.size()) return steps(source, packed);
  int64_t below = e.p.k;
  for (size_t i = at + 1; i < e.p.k_outer.size(); ++i) below *= e.p.k_outer[i].size;
  const int64_t row_bytes = e.s.nv * e.b_vector_bytes;
  e.Loop(e.Int(0), turns, 1, "pack.level", [&](Value* turn) {
    Value* inner = at + 1 < e.p.k_outer.size() ? e.Int(e.p.k_outer[at + 1].size) : nullptr;
    PackLevels(e, at + 1, inner, e.Offset(source, e.Scale(turn, e.BytesOfB(e.p.k_outer[at].b))),
               e.Offset(packed, e.Scale(turn, below / e.group * row_bytes)), steps);
  });
}

}  // namespace

void EmitPackPanels(Emitter& e, Value* source, Value* panel, Value* count, Value* k, Value* packed,
                    Value* panel_bytes) {
  if (e.s.b_column_bytes > 0) return PackAlongSum(e, source, packed);
  packed = e.Offset(packed, e.s.head_rows() * e.s.nv * e.b_vector_bytes);
  if (e.p.IsLinearB()) {
    const int64_t shortest = e.p.TotalK() - (e.s.k_blocks - 1) * e.s.kc * e.group;
    PackSteps(e, source, panel, count, k, shortest, packed, panel_bytes);
  } else {
    PackLevels(e, 0, e.b.CreateUDiv(k, e.Int(e.p.InnerK())), source, packed,
               [&](Value* from, Value* to) {
                 PackSteps(e, from, panel, count, e.Int(e.p.k), e.p.k, to, panel_bytes);
               });
  }
  if (!e.s.has_head) return;
  e.Loop(e.Int(0), count, 1, "pack.panel", [&](Value* i) {
    PackHead(e, e.StepsOf(k), e.Offset(packed, e.b.CreateMul(i, panel_bytes)));
  });
}

}  // namespace kiln::codegen::gemm

namespace kiln::codegen {

using gemm::Emitter;
using llvm::Value;

namespace {

// Rows of A as words that are neighbours along k: an item is a row.
void PackRowsOfA(Emitter& e, Value* from, Value* to) {
  const Emitter::Side side = Emitter::Side::kA;
  const int64_t elements = e.s.lanes * e.group, k = e.p.TotalK();
  const bool flips = kernel::FlipsBytes(e.p, e.s.unit);
  e.Loop(e.function->getArg(2), e.function->getArg(3), 1, "item", [&](Value* item) {
    Value* batch = e.b.CreateUDiv(item, e.Int(e.p.m));
    Value* row = e.b.CreateURem(item, e.Int(e.p.m));
    Value* in = e.Offset(from, e.BatchOffsetA(e.BatchIndices(batch)));
    in = e.Offset(in, e.Scale(row, e.p.a_m * e.a_bytes));
    Value* out = e.Offset(to, e.Scale(item, e.s.a_row_bytes));
    auto pack = [&](Value* vector, Value* mask) {
      Value* at = e.Offset(in, e.Scale(vector, elements * e.a_bytes));
      Value* words = e.LoadAlong(side, e.s.lanes, {at, at, 0}, mask);
      if (flips) words = e.Flip(words);
      e.StoreVector(words, e.Offset(out, e.Scale(vector, e.vector_bytes)), nullptr, true);
    };
    if (e.p.a_k != 1) {
      Value* stride = e.Int(e.p.a_k * e.a_bytes);
      return e.Loop(e.Int(0), e.Int(e.steps), 1, "pack", [&](Value* step) {
        Value* word =
            e.LoadAcross(side, 1, e.Offset(in, e.Scale(step, e.p.a_k * e.a_bytes * e.group)),
                         stride, nullptr, e.Left(e.Int(k), step));
        e.b.CreateAlignedStore(word, e.Offset(out, e.Scale(step, e.element_bytes)), llvm::Align(4));
      });
    }
    const int64_t whole = k / elements;
    e.Loop(e.Int(0), e.Int(whole), 1, "pack", [&](Value* vector) { pack(vector, nullptr); });
    if (k % elements > 0) pack(e.Int(whole), e.Mask(k % elements, elements));
  });
  e.b.CreateRetVoid();
}

// Elements of a vector, of which `count` are wanted, at their places; those behind are kept.
void StoreFirst(Emitter& e, Value* vector, int count, Value* to) {
  if (count == e.s.lanes) return e.StoreVector(vector, to, nullptr, false);
  for (int i = 0, width = e.s.lanes; i < count; i += width) {
    while (width > count - i) width /= 2;
    Value* at = e.Offset(to, i * e.element_bytes);
    if (width == 1) {
      e.b.CreateAlignedStore(e.b.CreateExtractElement(vector, static_cast<uint64_t>(i)), at,
                             llvm::Align(static_cast<uint64_t>(e.element_bytes)));
      continue;
    }
    std::vector<int> lanes(static_cast<size_t>(width));
    std::iota(lanes.begin(), lanes.end(), i);
    e.StoreVector(e.b.CreateShuffleVector(vector, lanes), at, nullptr, false);
  }
}

// As many steps of a tile as a vector has lanes, which are neighbours in the tile's rows. What is
// stored beyond a step is overwritten by the next ones.
void PackSquare(Emitter& e, Value* in, Value* out) {
  const int lanes = e.s.lanes, mr = e.s.mr;
  std::vector<std::vector<Value*>> squares;
  for (int i = 0; i < mr; i += lanes) {
    std::vector<Value*>& square = squares.emplace_back();
    for (int row = i; row < std::min(i + lanes, mr); ++row) {
      Value* at = e.Offset(in, row * e.p.a_m * e.a_bytes);
      square.push_back(e.LoadAlong(Emitter::Side::kA, lanes, {at, at, 0}, nullptr));
    }
    square.resize(static_cast<size_t>(lanes), llvm::PoisonValue::get(e.vector));
    SwapBlocks(e.b, square, 1);
  }
  for (int step = 0; step < lanes; ++step) {
    for (int i = 0; i < mr; i += lanes) {
      Value* rows = squares[static_cast<size_t>(i / lanes)][static_cast<size_t>(step)];
      const int first = step * mr + i;
      const int count = first + lanes > lanes * mr ? std::min(lanes, mr - i) : lanes;
      StoreFirst(e, rows, count, e.Offset(out, first * e.element_bytes));
    }
  }
}

// An item is a tile of a block of k; those of the same rows follow each other.
void PackTilesOfA(Emitter& e, Value* from, Value* to) {
  const int64_t step_bytes = e.s.mr * e.element_bytes, lanes = e.s.lanes;
  e.Loop(e.function->getArg(2), e.function->getArg(3), 1, "item", [&](Value* item) {
    Value* k_block = e.b.CreateURem(item, e.Int(e.s.k_blocks));
    Value* rest = e.b.CreateUDiv(item, e.Int(e.s.k_blocks));
    Value* tile = e.b.CreateURem(rest, e.Int(e.s.row_tiles));
    Value* batch = e.b.CreateUDiv(rest, e.Int(e.s.row_tiles));
    Value* in = e.Offset(from, e.BatchOffsetA(e.BatchIndices(batch)));
    in = e.Offset(in, e.Scale(e.TileRow(tile), e.p.a_m * e.a_bytes));
    in = e.Offset(in, e.Scale(k_block, e.s.kc * e.a_bytes));
    Value* out = e.Offset(to, e.PackedAOffset(batch, k_block, tile));
    Value* steps = e.KCount(k_block);
    Value* squares = e.b.CreateUDiv(steps, e.Int(lanes));
    e.Loop(e.Int(0), squares, 1, "pack.square", [&](Value* square) {
      PackSquare(e, e.Offset(in, e.Scale(square, lanes * e.a_bytes)),
                 e.Offset(out, e.Scale(square, lanes * step_bytes)));
    });
    e.Loop(e.Scale(squares, lanes), steps, 1, "pack", [&](Value* step) {
      gemm::PackSplats(e, e.Offset(in, e.Scale(step, e.a_bytes)), nullptr,
                       e.Offset(out, e.Scale(step, step_bytes)));
    });
  });
  e.b.CreateRetVoid();
}

}  // namespace

Status EmitGemmPackA(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed,
                     const GemmPrologue* prologue) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  if (!schedule.pack_a) return InvalidArgument("the gemm schedule does not pack A");
  Emitter e(function, problem, schedule, prologue);
  Value* from = e.Offset(e.Arg(source), problem.a_first * e.a_bytes);
  Value* to = e.Arg(packed);
  if (schedule.a_row_bytes > 0) {
    PackRowsOfA(e, from, to);
    return OkStatus();
  }
  const int64_t step_bytes = schedule.mr * e.element_bytes;
  if (kernel::PacksByTiles(problem, schedule)) {
    PackTilesOfA(e, from, to);
    return OkStatus();
  }
  // An item is some steps of k of all tiles: few rows of memory, read from end to end.
  const int64_t in_block = CeilDiv(schedule.kc, kernel::kPackSteps);
  const int64_t chunks = schedule.pack_a_items / (schedule.a_shared ? 1 : problem.BatchSize());
  const int64_t source_bytes = problem.a_k * e.a_bytes * e.group;
  e.Loop(function->getArg(2), function->getArg(3), 1, "item", [&](Value* item) {
    Value* batch = e.b.CreateUDiv(item, e.Int(chunks));
    Value* chunk = e.b.CreateURem(item, e.Int(chunks));
    Value* k_block = e.b.CreateUDiv(chunk, e.Int(in_block));
    Value* first = e.Scale(e.b.CreateURem(chunk, e.Int(in_block)), kernel::kPackSteps);
    Value* count = e.Min(e.Int(kernel::kPackSteps), e.b.CreateSub(e.KCount(k_block), first));
    Value* step_of_sum = e.Add(e.Scale(k_block, schedule.kc), first);
    Value* batch_in = e.Offset(from, e.BatchOffsetA(e.BatchIndices(batch)));
    e.Loop(e.Int(0), e.Int(schedule.row_tiles), 1, "tile", [&](Value* tile) {
      Value* in = e.Offset(batch_in, e.Scale(e.TileRow(tile), problem.a_m * e.a_bytes));
      in = e.Offset(in, e.Scale(step_of_sum, source_bytes));
      Value* out = e.Offset(to, e.PackedAOffset(batch, k_block, tile));
      out = e.Offset(out, e.Scale(first, step_bytes));
      e.Loop(e.Int(0), count, 1, "pack", [&](Value* step) {
        gemm::PackSplats(e, e.Offset(in, e.Scale(step, source_bytes)),
                         e.Left(e.Int(problem.TotalK()), e.Add(step_of_sum, step)),
                         e.Offset(out, e.Scale(step, step_bytes)));
      });
    });
  });
  e.b.CreateRetVoid();
  return OkStatus();
}

Status EmitGemmPackB(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed,
                     const GemmPrologue* prologue) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  if (schedule.b != kernel::GemmB::kPrepacked) {
    return InvalidArgument("the gemm schedule does not prepack B");
  }
  Emitter e(function, problem, schedule, nullptr, prologue);
  Value* from = e.Offset(e.Arg(source), e.BytesOfB(problem.b_first));
  Value* to = e.Arg(packed);
  // An item is one panel of one block of k.
  const int64_t per_batch = schedule.k_blocks * schedule.n_panels;
  e.Loop(function->getArg(2), function->getArg(3), 1, "item", [&](Value* item) {
    Value* panel = e.b.CreateURem(item, e.Int(schedule.n_panels));
    Value* outer = e.b.CreateUDiv(item, e.Int(schedule.n_panels));
    Value* k_block =
        schedule.k_blocks == 1 ? e.Int(0) : e.b.CreateURem(outer, e.Int(schedule.k_blocks));
    Value* batch = e.b.CreateUDiv(item, e.Int(per_batch));
    std::vector<Value*> indices = e.BatchIndices(e.Scale(batch, schedule.row_batches));
    Value* in = e.Offset(from, e.BatchOffsetB(indices));
    in = e.Offset(in, e.KOffsetB(k_block));
    Value* out = e.Offset(to, e.PackedBOffset(batch, k_block, panel, e.KCount(k_block)));
    gemm::EmitPackPanels(e, in, panel, e.Int(1), e.KElements(k_block), out, e.Int(0));
  });
  e.b.CreateRetVoid();
  return OkStatus();
}

}  // namespace kiln::codegen
