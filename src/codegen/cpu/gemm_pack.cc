// Packed forms of A and B.
//
// A: [batch][tile][k][mr]. B: [batch][k block][panel][k][nv vectors]; lanes beyond n hold values
// that are computed with and never stored.
#include "codegen/cpu/gemm_internal.h"

namespace kiln::codegen::gemm {

using llvm::Value;

namespace {

// Transposes a square of vectors: result[i] lane j is rows[j] lane i.
std::vector<Value*> Transpose(Emitter& e, std::vector<Value*> rows) {
  const int lanes = e.s.lanes;
  // Lanes that share 128 bits are interleaved, wider pieces exchanged whole: those are the cheap
  // shuffles of every x86.
  const int narrow = std::min<int>(lanes, static_cast<int>(16 / e.element_bytes));
  for (int width = 1; width < lanes; width *= 2) {
    std::vector<Value*> next(rows.size());
    for (int i = 0; i < lanes; ++i) {
      if (i & width) continue;
      std::vector<int> low;
      std::vector<int> high;
      if (width < narrow) {
        // Units of `width` lanes of both rows alternate, within each group of `narrow` lanes.
        for (int group = 0; group < lanes; group += narrow) {
          for (int unit = 0; unit < narrow / 2; unit += width) {
            for (int source = 0; source < 2; ++source) {
              for (int lane = 0; lane < width; ++lane) {
                low.push_back(source * lanes + group + unit + lane);
                high.push_back(source * lanes + group + narrow / 2 + unit + lane);
              }
            }
          }
        }
      } else {
        for (int lane = 0; lane < lanes; ++lane) {
          const int source = (lane & width) ? lanes : 0;
          low.push_back(source + (lane & ~width));
          high.push_back(source + (lane | width));
        }
      }
      Value* x = rows[static_cast<size_t>(i)];
      Value* y = rows[static_cast<size_t>(i + width)];
      next[static_cast<size_t>(i)] = e.b.CreateShuffleVector(x, y, low);
      next[static_cast<size_t>(i + width)] = e.b.CreateShuffleVector(x, y, high);
    }
    rows = std::move(next);
  }
  // Interleaving leaves the columns of a group in bit-reversed order.
  std::vector<Value*> columns(rows.size());
  for (int i = 0; i < lanes; ++i) {
    int reversed = 0;
    for (int bit = 1, mirror = narrow / 2; bit < narrow; bit *= 2, mirror /= 2) {
      if (i & bit) reversed |= mirror;
    }
    columns[static_cast<size_t>(i)] = rows[static_cast<size_t>(i - i % narrow + reversed)];
  }
  return columns;
}

// Rows of B as they are.
void PackRows(Emitter& e, Value* source, Value* first_vector, Value* k, Value* packed) {
  const int64_t row_bytes = e.s.nv * e.vector_bytes;
  Value* mask = nullptr;
  if (e.ragged) {
    Value* last = e.Add(first_vector, e.Int(e.s.nv - 1));
    mask = e.Mask(e.b.CreateSub(e.Int(e.p.n), e.Scale(last, e.s.lanes)));
  }
  Value* from = e.Offset(source, e.Scale(first_vector, e.vector_bytes));
  e.Loop(e.Int(0), k, 1, "pack", [&](Value* step) {
    Value* in = e.Offset(from, e.Scale(step, e.p.b_k * e.element_bytes));
    Value* out = e.Offset(packed, e.Scale(step, row_bytes));
    for (int v = 0; v < e.s.nv; ++v) {
      Value* row =
          e.LoadVector(e.Offset(in, v * e.vector_bytes), v == e.s.nv - 1 ? mask : nullptr, false);
      e.StoreVector(row, e.Offset(out, v * e.vector_bytes), nullptr, true);
    }
  });
}

// B whose columns are contiguous: squares are transposed in registers. The last square is moved
// back so that it ends with k, and columns beyond n repeat the last one.
void PackColumns(Emitter& e, Value* source, Value* first_vector, Value* k, Value* packed) {
  const int lanes = e.s.lanes;
  const int64_t row_bytes = e.s.nv * e.vector_bytes;
  e.Loop(e.Int(0), e.Int(e.s.nv), 1, "pack.v", [&](Value* v) {
    Value* first = e.Scale(e.Add(first_vector, v), lanes);
    std::vector<Value*> columns;
    for (int i = 0; i < lanes; ++i) {
      Value* column = e.Add(first, e.Int(i));
      if (e.ragged) column = e.Min(column, e.Int(e.p.n - 1));
      columns.push_back(e.Offset(source, e.Scale(column, e.p.b_n * e.element_bytes)));
    }
    Value* out = e.Offset(packed, e.Scale(v, e.vector_bytes));
    e.Loop(e.Int(0), k, lanes, "pack.k", [&](Value* step) {
      step = e.Min(step, e.b.CreateSub(k, e.Int(lanes)));
      std::vector<Value*> square;
      for (Value* column : columns) {
        square.push_back(
            e.LoadVector(e.Offset(column, e.Scale(step, e.element_bytes)), nullptr, false));
      }
      square = Transpose(e, square);
      Value* to = e.Offset(out, e.Scale(step, row_bytes));
      for (int i = 0; i < lanes; ++i) {
        e.StoreVector(square[static_cast<size_t>(i)], e.Offset(to, i * row_bytes), nullptr, true);
      }
    });
  });
}

// Any strides, one element at a time.
void PackElements(Emitter& e, Value* source, Value* first_vector, Value* k, Value* packed) {
  const int64_t width = int64_t{e.s.nv} * e.s.lanes;
  Value* first = e.Scale(first_vector, e.s.lanes);
  e.Loop(e.Int(0), e.Int(width), 1, "pack.n", [&](Value* i) {
    Value* column = e.Add(first, i);
    if (e.ragged) column = e.Min(column, e.Int(e.p.n - 1));
    Value* in = e.Offset(source, e.Scale(column, e.p.b_n * e.element_bytes));
    Value* out = e.Offset(packed, e.Scale(i, e.element_bytes));
    e.Loop(e.Int(0), k, 1, "pack.k", [&](Value* step) {
      Value* value = e.Load(e.element, e.Offset(in, e.Scale(step, e.p.b_k * e.element_bytes)),
                            e.element_bytes);
      e.b.CreateAlignedStore(value, e.Offset(out, e.Scale(step, width * e.element_bytes)),
                             llvm::Align(static_cast<uint64_t>(e.element_bytes)));
    });
  });
}

}  // namespace

void EmitPackPanel(Emitter& e, Value* source, Value* first_vector, Value* k, Value* packed) {
  const int64_t shortest = e.p.k - (e.s.k_blocks - 1) * e.s.kc;
  if (e.p.b_n == 1 || e.p.n == 1) {
    PackRows(e, source, first_vector, k, packed);
  } else if (e.p.b_k == 1 && shortest >= e.s.lanes) {
    PackColumns(e, source, first_vector, k, packed);
  } else {
    PackElements(e, source, first_vector, k, packed);
  }
}

}  // namespace kiln::codegen::gemm

namespace kiln::codegen {

using gemm::Emitter;
using llvm::Value;

Status EmitGemmPackA(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  if (!schedule.pack_a) return InvalidArgument("the gemm schedule does not pack A");
  Emitter e(function, problem, schedule);
  Value* from = e.Arg(source);
  Value* to = e.Arg(packed);
  const int64_t step_bytes = schedule.mr * e.element_bytes;
  // An item is one tile of rows.
  e.Loop(function->getArg(2), function->getArg(3), 1, "item", [&](Value* item) {
    Value* tile = schedule.m_tiles == 1 ? e.Int(0) : e.b.CreateURem(item, e.Int(schedule.m_tiles));
    Value* batch = schedule.m_tiles == 1 ? item : e.b.CreateUDiv(item, e.Int(schedule.m_tiles));
    Value* in =
        e.Offset(from, e.BatchOffset(e.BatchIndices(batch), &kernel::GemmBatchDimension::a));
    in = e.Offset(in, e.Scale(e.TileRow(tile), problem.a_m * e.element_bytes));
    Value* out = e.Offset(to, e.PackedAOffset(batch, tile, e.Int(0)));
    e.Loop(e.Int(0), e.Int(problem.k), 1, "pack", [&](Value* k) {
      Value* x = e.Offset(in, e.Scale(k, problem.a_k * e.element_bytes));
      Value* y = e.Offset(out, e.Scale(k, step_bytes));
      if (problem.a_m != 1) {
        for (int i = 0; i < schedule.mr; ++i) {
          Value* value =
              e.Load(e.element, e.Offset(x, i * problem.a_m * e.element_bytes), e.element_bytes);
          e.b.CreateAlignedStore(value, e.Offset(y, i * e.element_bytes),
                                 llvm::Align(static_cast<uint64_t>(e.element_bytes)));
        }
        return;
      }
      for (int i = 0; i < schedule.mr; i += schedule.lanes) {
        const int count = std::min(schedule.lanes, schedule.mr - i);
        Value* mask = count < schedule.lanes ? e.Mask(int64_t{count}) : nullptr;
        Value* rows = e.LoadVector(e.Offset(x, i * e.element_bytes), mask, false);
        e.StoreVector(rows, e.Offset(y, i * e.element_bytes), mask, false);
      }
    });
  });
  e.b.CreateRetVoid();
  return OkStatus();
}

Status EmitGemmPackB(llvm::Function* function, const kernel::GemmProblem& problem,
                     const kernel::GemmSchedule& schedule, int source, int packed) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  if (schedule.b != kernel::GemmB::kPrepacked) {
    return InvalidArgument("the gemm schedule does not prepack B");
  }
  Emitter e(function, problem, schedule);
  Value* from = e.Arg(source);
  Value* to = e.Arg(packed);
  // An item is one panel of one block of k.
  const int64_t per_batch = schedule.k_blocks * schedule.n_panels;
  e.Loop(function->getArg(2), function->getArg(3), 1, "item", [&](Value* item) {
    Value* panel = e.b.CreateURem(item, e.Int(schedule.n_panels));
    Value* outer = e.b.CreateUDiv(item, e.Int(schedule.n_panels));
    Value* k_block =
        schedule.k_blocks == 1 ? e.Int(0) : e.b.CreateURem(outer, e.Int(schedule.k_blocks));
    Value* batch = e.b.CreateUDiv(item, e.Int(per_batch));
    Value* in =
        e.Offset(from, e.BatchOffset(e.BatchIndices(batch), &kernel::GemmBatchDimension::b));
    in = e.Offset(in, e.Scale(k_block, schedule.kc * problem.b_k * e.element_bytes));
    Value* k = e.KCount(k_block);
    Value* out = e.Offset(to, e.PackedBOffset(batch, k_block, panel, k));
    gemm::EmitPackPanel(e, in, e.PanelVector(panel), k, out);
  });
  e.b.CreateRetVoid();
  return OkStatus();
}

}  // namespace kiln::codegen
