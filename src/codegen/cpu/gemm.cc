#include "codegen/cpu/gemm.h"

#include "codegen/cpu/gemm_internal.h"

namespace kiln::codegen {

using gemm::Emitter;
using kernel::GemmB;
using kernel::GemmBatchDimension;
using kernel::GemmKind;
using llvm::Value;

namespace {

// The loops around the register tile.
class GemmLoops {
 public:
  GemmLoops(Emitter& e, const GemmOperands& operands, const GemmEpilogue& epilogue)
      : e_(e), p_(e.p), s_(e.s), epilogue_(epilogue) {
    a_ = e.Arg(operands.a);
    b_ = e.Arg(operands.b);
    if (!epilogue) c_ = e.Arg(operands.c);
    if (s_.scratch_bytes > 0) scratch_ = e.Arg(operands.scratch);
    direct_ =
        !epilogue && s_.kind == GemmKind::kOuter && s_.k_blocks == 1 && (p_.c_n == 1 || p_.n == 1);
    if (!direct_) {
      auto* type = llvm::ArrayType::get(e.vector, static_cast<uint64_t>(s_.mr * s_.nv));
      llvm::AllocaInst* tile = e.b.CreateAlloca(type);
      tile->setAlignment(llvm::Align(64));
      tile_ = tile;
    }
  }

  void Emit() {
    e_.Loop(e_.function->getArg(2), e_.function->getArg(3), 1, "item",
            [&](Value* item) { Item(item); });
    e_.b.CreateRetVoid();
  }

 private:
  // A run of tiles or panels: the first, and how many.
  struct Run {
    Value* first;
    Value* count;
  };

  Run BlockRun(Value* block, int64_t size, int64_t total) {
    Value* first = e_.Scale(block, size);
    if (total % size == 0) return {first, e_.Int(size)};
    return {first, e_.Min(e_.Int(size), e_.b.CreateSub(e_.Int(total), first))};
  }

  // Takes the remainder by `count` off `rest`.
  Value* TakeIndex(Value*& rest, int64_t count) {
    if (count == 1) return e_.Int(0);
    Value* index = e_.b.CreateURem(rest, e_.Int(count));
    rest = e_.b.CreateUDiv(rest, e_.Int(count));
    return index;
  }

  void Item(Value* item) {
    Value* rest = item;
    Value* m_block = nullptr;
    Value* n_block = nullptr;
    if (s_.items_along_m) {
      m_block = TakeIndex(rest, s_.m_blocks);
      n_block = TakeIndex(rest, s_.n_blocks);
    } else {
      n_block = TakeIndex(rest, s_.n_blocks);
      m_block = TakeIndex(rest, s_.m_blocks);
    }
    batch_ = p_.BatchSize() == 1 ? e_.Int(0) : rest;
    indices_ = e_.BatchIndices(batch_);
    Value* a = a_;
    if (!s_.pack_a) a = e_.Offset(a, e_.BatchOffset(indices_, &GemmBatchDimension::a));
    Value* b = b_;
    if (s_.b != GemmB::kPrepacked) {
      b = e_.Offset(b, e_.BatchOffset(indices_, &GemmBatchDimension::b));
    }
    if (c_ != nullptr) c_item_ = e_.Offset(c_, e_.BatchOffset(indices_, &GemmBatchDimension::c));
    if (scratch_ != nullptr) slot_ = e_.Offset(scratch_, e_.Scale(item, s_.slot_bytes));

    const Run tiles = BlockRun(m_block, s_.block_m, s_.m_tiles);
    const Run panels = BlockRun(n_block, s_.block_n, s_.n_panels);
    e_.Loop(e_.Int(0), e_.Int(s_.k_blocks), 1, "k.block",
            [&](Value* k_block) { Block(a, b, k_block, tiles, panels); });
  }

  // All tiles of an item, for one block of k.
  void Block(Value* a, Value* b, Value* k_block, const Run& tiles, const Run& panels) {
    k_block_ = k_block;
    k_ = e_.KCount(k_block);
    Value* k_first = e_.Scale(k_block, s_.kc);
    if (s_.b != GemmB::kPrepacked) {
      b = e_.Offset(b, e_.Scale(k_first, p_.b_k * e_.element_bytes));
    }
    auto pack = [&](Value* panel, Value* packed) {
      gemm::EmitPackPanel(e_, b, e_.PanelVector(e_.Add(panels.first, panel)), k_, packed);
    };
    auto packed = [&](Value* panel) { return e_.Offset(slot_, e_.Scale(panel, s_.panel_bytes)); };
    auto panel_b = [&](Value* panel) {
      switch (s_.b) {
        case GemmB::kInPlace:
          return b;
        case GemmB::kPackPanel:
          return s_.panels_inner ? packed(panel) : slot_;
        case GemmB::kPrepacked:
          break;
      }
      return e_.Offset(b, e_.PackedBOffset(batch_, k_block, e_.Add(panels.first, panel), k_));
    };
    if (s_.panels_inner) {
      if (s_.b == GemmB::kPackPanel) {
        e_.Loop(e_.Int(0), panels.count, 1, "panel", [&](Value* i) { pack(i, packed(i)); });
      }
      e_.Loop(e_.Int(0), tiles.count, 1, "tile", [&](Value* i) {
        e_.Loop(e_.Int(0), panels.count, 1, "panel", [&](Value* j) {
          SetPanel(e_.Add(panels.first, j), panel_b(j));
          Tile(a, k_first, tiles.first, i, j);
        });
      });
      return;
    }
    e_.Loop(e_.Int(0), panels.count, 1, "panel", [&](Value* j) {
      if (s_.b == GemmB::kPackPanel) pack(j, slot_);
      SetPanel(e_.Add(panels.first, j), panel_b(j));
      e_.Loop(e_.Int(0), tiles.count, 1, "tile",
              [&](Value* i) { Tile(a, k_first, tiles.first, i, j); });
    });
  }

  // What the tiles of a panel share.
  void SetPanel(Value* panel, Value* b) {
    panel_ = panel;
    vector_ = e_.PanelVector(panel);
    mask_ = nullptr;
    if (e_.ragged && s_.kind == GemmKind::kOuter && (direct_ || s_.b == GemmB::kInPlace)) {
      Value* last = e_.Scale(e_.Add(vector_, e_.Int(s_.nv - 1)), s_.lanes);
      mask_ = e_.n_vectors == s_.nv
                  ? static_cast<Value*>(e_.Mask(p_.n - (s_.nv - 1) * int64_t{s_.lanes}))
                  : e_.Mask(e_.b.CreateSub(e_.Int(p_.n), last));
    }
    b_panel_ = b;
    if (s_.b == GemmB::kInPlace && s_.kind == GemmKind::kOuter) {
      b_panel_ = e_.Offset(b, e_.Scale(vector_, e_.vector_bytes));
    }
  }

  void Tile(Value* a, Value* k_first, Value* first_tile, Value* tile, Value* panel_in_block) {
    Value* tile_index = e_.Add(first_tile, tile);
    row_ = e_.TileRow(tile_index);
    gemm::TileOperands o{};
    if (s_.pack_a) {
      o.a = e_.Offset(a, e_.PackedAOffset(batch_, tile_index, k_first));
      o.a_m = e_.element_bytes;
      o.a_k = s_.mr * e_.element_bytes;
    } else {
      o.a_m = p_.a_m * e_.element_bytes;
      o.a_k = p_.a_k * e_.element_bytes;
      o.a = e_.Offset(e_.Offset(a, e_.Scale(row_, o.a_m)), e_.Scale(k_first, o.a_k));
    }
    o.b = b_panel_;
    o.k = k_;
    if (s_.kind == GemmKind::kInner) {
      InnerTiles(o);
    } else {
      const bool in_place = s_.b == GemmB::kInPlace;
      o.b_k = in_place ? p_.b_k * e_.element_bytes : s_.nv * e_.vector_bytes;
      o.b_aligned = !in_place;
      o.mask = in_place ? mask_ : nullptr;
      std::vector<Value*> sums = gemm::EmitOuterTile(e_, o);
      if (direct_) return StoreDirect(sums);
      for (size_t i = 0; i < sums.size(); ++i) {
        Value* to = e_.Offset(tile_, static_cast<int64_t>(i) * e_.vector_bytes);
        e_.StoreVector(sums[i], to, nullptr, true);
      }
    }
    // Rows and vectors that an earlier tile or panel covers are not visited again.
    Value* first_row = e_.Int(0);
    if (p_.m % s_.mr != 0) first_row = e_.b.CreateSub(e_.Scale(tile_index, s_.mr), row_);
    Value* first_vector = e_.Int(0);
    if (e_.n_vectors % s_.nv != 0) {
      first_vector = e_.b.CreateSub(e_.Scale(panel_, s_.nv), vector_);
    }
    Value* partials = nullptr;
    if (s_.k_blocks > 1) {
      const int64_t tile_bytes = s_.mr * s_.nv * e_.vector_bytes;
      Value* index = e_.Add(e_.Scale(tile, s_.block_n), panel_in_block);
      const int64_t packed = s_.slot_bytes - s_.block_m * s_.block_n * tile_bytes;
      partials = e_.Offset(slot_, e_.Add(e_.Scale(index, tile_bytes), e_.Int(packed)));
    }
    e_.Loop(first_row, e_.Int(s_.mr), 1, "row", [&](Value* i) {
      e_.Loop(first_vector, e_.Int(s_.nv), 1, "vector", [&](Value* v) { Finish(i, v, partials); });
    });
  }

  // Inner products fill the tile in memory, nr columns at a time.
  void InnerTiles(gemm::TileOperands& o) {
    Value* first = e_.Scale(vector_, s_.lanes);
    Value* count = e_.Int(s_.nv * s_.lanes);
    if (e_.ragged) count = e_.Min(count, e_.b.CreateSub(e_.Int(p_.n), first));
    const int64_t column_bytes = p_.b_n * e_.element_bytes;
    e_.Loop(e_.Int(0), count, s_.nr, "column", [&](Value* j) {
      Value* column = e_.Add(first, j);
      o.columns.clear();
      for (int i = 0; i < s_.nr; ++i) {
        // Columns beyond n repeat the last one.
        Value* offset = e_.Int(i * column_bytes);
        if (p_.n % s_.nr != 0) {
          Value* left = e_.b.CreateSub(e_.Int(p_.n - 1), column);
          offset = e_.Scale(e_.Min(e_.Int(i), left), column_bytes);
        }
        o.columns.push_back(offset);
      }
      o.b = e_.Offset(b_panel_, e_.Scale(column, column_bytes));
      std::vector<Value*> sums = gemm::EmitInnerTile(e_, o);
      Value* to = e_.Offset(tile_, e_.Scale(j, e_.element_bytes));
      for (int i = 0; i < s_.mr; ++i) {
        for (int c = 0; c < s_.nr; ++c) {
          Value* at = e_.Offset(to, i * s_.nv * e_.vector_bytes + c * e_.element_bytes);
          e_.b.CreateAlignedStore(sums[static_cast<size_t>(i * s_.nr + c)], at,
                                  llvm::Align(static_cast<uint64_t>(e_.element_bytes)));
        }
      }
    });
  }

  void StoreDirect(const std::vector<Value*>& sums) {
    const int64_t c_m = p_.c_m * e_.element_bytes;
    Value* to = e_.Offset(c_item_, e_.Add(e_.Scale(row_, c_m), e_.Scale(vector_, e_.vector_bytes)));
    for (int i = 0; i < s_.mr; ++i) {
      for (int v = 0; v < s_.nv; ++v) {
        e_.StoreVector(sums[static_cast<size_t>(i * s_.nv + v)],
                       e_.Offset(to, i * c_m + v * e_.vector_bytes),
                       v == s_.nv - 1 ? mask_ : nullptr, false);
      }
    }
  }

  // One vector of the tile in memory.
  void Finish(Value* i, Value* v, Value* partials) {
    Value* offset = e_.Add(e_.Scale(i, s_.nv * e_.vector_bytes), e_.Scale(v, e_.vector_bytes));
    Value* slot = e_.Offset(tile_, offset);
    Value* value = e_.LoadVector(slot, nullptr, true);
    if (partials == nullptr) return Result(i, v, slot, value);
    Value* partial = e_.Offset(partials, offset);
    Value* sum = e_.Sum(e_.LoadVector(partial, nullptr, true), value);
    Value* total = e_.b.CreateSelect(e_.b.CreateICmpEQ(k_block_, e_.Int(0)), value, sum);
    e_.If(
        e_.b.CreateICmpEQ(k_block_, e_.Int(s_.k_blocks - 1)),
        [&] {
          e_.StoreVector(total, slot, nullptr, true);
          Result(i, v, slot, total);
        },
        [&] { e_.StoreVector(total, partial, nullptr, true); });
  }

  // A finished vector, which is in the tile at `slot` too.
  void Result(Value* i, Value* v, Value* slot, Value* value) {
    GemmVector result;
    result.value = value;
    result.batch = indices_;
    result.m = e_.Add(row_, i);
    result.n = e_.Scale(e_.Add(vector_, v), s_.lanes);
    Value* left = e_.b.CreateSub(e_.Int(p_.n), result.n);
    if (e_.ragged) result.mask = e_.Mask(left);
    if (epilogue_) return epilogue_(e_.b, result);
    Value* to = e_.Offset(c_item_, e_.Scale(result.m, p_.c_m * e_.element_bytes));
    to = e_.Offset(to, e_.Scale(result.n, p_.c_n * e_.element_bytes));
    if (p_.c_n == 1 || p_.n == 1) return e_.StoreVector(value, to, result.mask, false);
    Value* lanes = e_.ragged ? e_.Min(left, e_.Int(s_.lanes)) : e_.Int(s_.lanes);
    e_.Loop(e_.Int(0), lanes, 1, "lane", [&](Value* lane) {
      Value* x =
          e_.Load(e_.element, e_.Offset(slot, e_.Scale(lane, e_.element_bytes)), e_.element_bytes);
      e_.b.CreateAlignedStore(x, e_.Offset(to, e_.Scale(lane, p_.c_n * e_.element_bytes)),
                              llvm::Align(static_cast<uint64_t>(e_.element_bytes)));
    });
  }

  Emitter& e_;
  const kernel::GemmProblem& p_;
  const kernel::GemmSchedule& s_;
  const GemmEpilogue& epilogue_;
  Value* a_ = nullptr;
  Value* b_ = nullptr;
  Value* c_ = nullptr;
  Value* scratch_ = nullptr;
  Value* tile_ = nullptr;  // a register tile in memory, row by row
  // Accumulators go straight to C.
  bool direct_ = false;
  // Of the item, block of k, panel and tile that is being emitted.
  Value* batch_ = nullptr;
  std::vector<Value*> indices_;
  Value* c_item_ = nullptr;
  Value* slot_ = nullptr;
  Value* k_block_ = nullptr;
  Value* k_ = nullptr;
  Value* panel_ = nullptr;
  Value* vector_ = nullptr;
  Value* mask_ = nullptr;
  Value* b_panel_ = nullptr;
  Value* row_ = nullptr;
};

}  // namespace

Status EmitGemm(llvm::Function* function, const kernel::GemmProblem& problem,
                const kernel::GemmSchedule& schedule, const GemmOperands& operands,
                const GemmEpilogue& epilogue) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  Emitter e(function, problem, schedule);
  GemmLoops(e, operands, epilogue).Emit();
  return OkStatus();
}

}  // namespace kiln::codegen
