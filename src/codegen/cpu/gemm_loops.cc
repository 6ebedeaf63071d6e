// The loops around the register tiles, and their results.
#include <algorithm>

#include "base/integers.h"
#include "codegen/cpu/gemm_internal.h"
#include "codegen/poll.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen::gemm {

using kernel::GemmB;
using kernel::GemmKind;
using llvm::Value;

llvm::FunctionType* FinishType(llvm::LLVMContext& context) {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                 {pointer, pointer, pointer, i64, i64, i64, i64, i64}, false);
}

Value* SlotOf(Emitter& e, Value* tile, Value* i, Value* v) {
  return e.Offset(tile, e.Add(e.Scale(i, e.s.nv * e.vector_bytes), e.Scale(v, e.vector_bytes)));
}

void ForEachVector(Emitter& e, Value* first_row, Value* first_vector,
                   const std::function<void(Value*, Value*)>& body) {
  e.Loop(first_row, e.Int(e.s.mr), 1, "row", [&](Value* i) {
    e.Loop(first_vector, e.Int(e.s.nv), 1, "vector", [&](Value* v) { body(i, v); });
  });
}

namespace {

// The number that every sum keeps its bits with: of floats -0, because 0 + -0 is 0.
llvm::Constant* NoSum(Emitter& e) {
  return IsFloat(e.p.type) ? llvm::ConstantFP::getNegativeZero(e.vector)
                           : llvm::Constant::getNullValue(e.vector);
}

// The sum of a block of k and, if it `adds`, of what is in C.
Value* Added(Emitter& e, Value* sum, Value* c, Value* mask, Value* adds) {
  return e.Sum(e.b.CreateSelect(adds, e.LoadVector(c, mask, false), NoSum(e)), sum);
}

}  // namespace

void StoreResults(Emitter& e, Value* slot, Value* c, Value* row, Value* vector, Value* adds) {
  const kernel::GemmProblem& p = e.p;
  Value* n = e.Scale(vector, e.s.lanes);
  Value* left = e.b.CreateSub(e.Int(p.n), n);
  Value* to = e.Offset(c, e.Multiply(row, e.shape.c_row));
  to = e.Offset(to, e.Scale(n, p.c_n * e.element_bytes));
  if (p.c_n == 1 || p.n == 1) {
    Value* mask = e.ragged ? e.Mask(left) : nullptr;
    Value* result = e.LoadVector(slot, nullptr, true);
    if (adds) result = Added(e, result, to, mask, adds);
    return e.StoreVector(result, to, mask, false);
  }
  Value* lanes = e.ragged ? e.Min(left, e.Int(e.s.lanes)) : e.Int(e.s.lanes);
  e.Loop(e.Int(0), lanes, 1, "lane", [&](Value* lane) {
    Value* x = e.Load(e.element, e.Offset(slot, e.Scale(lane, e.element_bytes)), e.element_bytes);
    e.b.CreateAlignedStore(x, e.Offset(to, e.Scale(lane, p.c_n * e.element_bytes)),
                           llvm::Align(static_cast<uint64_t>(e.element_bytes)));
  });
}

bool IsDirect(const kernel::GemmProblem& p, const kernel::GemmSchedule& s) {
  return s.kind == GemmKind::kOuter && !kernel::IsTile(s.unit) && (p.c_n == 1 || p.n == 1);
}

namespace {

// How far ahead of inner products their columns are asked for, about: a page of 4 kB at a core's
// share of the memory takes as long to be read as its address takes to be translated, so that the
// translations of several have to be under way.
constexpr int64_t kInnerAheadBytes = 12 << 10;

// How far ahead of a tile its own panel is asked for.
constexpr int64_t kStreamAheadBytes = 4096;

// The loops around the register tile.
class GemmLoops {
 public:
  GemmLoops(Emitter& e, const LoopOperands& operands, const GemmEpilogue* in_registers)
      : e_(e),
        p_(e.p),
        s_(e.s),
        a_(operands.a),
        b_(operands.b),
        c_(operands.c),
        finish_(operands.finish),
        in_registers_(in_registers) {
    // A call reuses the slots from its first item on: they stay in the cache, and concurrent calls
    // use different ones.
    if (s_.scratch_bytes > 0) {
      slot_ = e.Offset(operands.scratch, e.Multiply(e.function->getArg(2), e.shape.slot));
    }
    direct_ = !finish_ && !in_registers_ && (IsDirect(p_, s_) || HasWholeGroups());
    adds_ = direct_ && s_.k_blocks > 1;
    if (adds_ || (!direct_ && (s_.k_blocks == 1 || e.may_be_one_block))) {
      auto* type = llvm::ArrayType::get(e.vector, static_cast<uint64_t>(s_.mr * s_.nv));
      llvm::AllocaInst* tile = e.b.CreateAlloca(type);
      tile->setAlignment(llvm::Align(64));
      tile_ = own_tile_ = tile;
    }
  }

  void Emit() {
    Value* end = e_.function->getArg(3);
    Values none;
    if (kernel::IsTile(s_.unit)) EmitTileSizes(e_);
    EmitStepLoop(
        e_.b, e_.function->getArg(2), end, none,
        [&](Value* item, Values&) { return Items(item, e_.b.CreateSub(end, item)); },
        e_.FormOf("item"));
    if (kernel::IsTile(s_.unit)) EmitTileRelease(e_);
    e_.b.CreateRetVoid();
  }

 private:
  // A run of tiles or panels: the first, and how many.
  struct Run {
    Value* first;
    Value* count;
  };

  // Takes the remainder by `count` off `rest`.
  Value* TakeIndex(Value*& rest, Value* count) {
    if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(count); c && c->isOne()) return e_.Int(0);
    Value* index = e_.b.CreateURem(rest, count);
    rest = e_.b.CreateUDiv(rest, count);
    return index;
  }

  // Does as many of the next `left` items as make a block, and returns their count.
  Value* Items(Value* item, Value* left) {
    Value* rest = item;
    Run panels;
    Run tiles;
    Value* done;
    auto most_panels = [&](Value* items) {
      if (s_.block_n == 1) return static_cast<Value*>(e_.Int(1));
      Value* count = e_.Min(items, e_.b.CreateSub(e_.shape.n_panels, panels.first));
      return e_.shape.block_n == e_.shape.n_panels ? count : e_.Min(count, e_.shape.block_n);
    };
    auto most_tiles = [&](Value* blocks) {
      Value* left_tiles = e_.b.CreateSub(e_.shape.m_tiles, tiles.first);
      return e_.Min(e_.Multiply(blocks, e_.shape.block_m), left_tiles);
    };
    if (s_.items_along_m && s_.m_blocks > 1) {
      // All rows of some panels, or some rows of one.
      Value* all = e_.shape.m_blocks;
      Value* m_block = TakeIndex(rest, all);
      panels.first = TakeIndex(rest, e_.shape.n_panels);
      tiles.first = e_.Multiply(m_block, e_.shape.block_m);
      Value* whole =
          e_.b.CreateAnd(e_.b.CreateICmpEQ(m_block, e_.Int(0)), e_.b.CreateICmpSGE(left, all));
      Value* blocks = e_.Min(e_.b.CreateSub(all, m_block), left);
      panels.count = e_.b.CreateSelect(whole, most_panels(e_.b.CreateUDiv(left, all)), e_.Int(1));
      tiles.count = most_tiles(blocks);
      done = e_.b.CreateMul(panels.count, blocks);
    } else {
      panels.first = TakeIndex(rest, e_.shape.n_panels);
      panels.count = most_panels(left);
      Value* all = s_.m_blocks == 1 ? e_.Int(1) : e_.shape.m_blocks;
      tiles.first = e_.Multiply(TakeIndex(rest, all), e_.shape.block_m);
      tiles.count = s_.m_tiles % s_.block_m == 0 ? e_.shape.block_m : most_tiles(e_.Int(1));
      done = panels.count;
    }
    outer_batch_ = p_.BatchSize() == s_.row_batches ? e_.Int(0) : rest;
    SetBatch(e_.Scale(outer_batch_, s_.row_batches));
    Value* b = b_;
    if (s_.b != GemmB::kPrepacked) {
      b = e_.Offset(b, e_.BatchOffsetB(indices_));
    }
    e_.Loop(e_.Int(0), e_.shape.k_blocks, 1, "k.block",
            [&](Value* k_block) { Block(b, k_block, tiles, panels); });
    return done;
  }

  // Where A and C are of one of the batch.
  void SetBatch(Value* batch) {
    batch_ = batch;
    indices_ = e_.BatchIndices(batch_);
    a_item_ = a_;
    if (e_.any_windows) {
      a_item_ = e_.Offset(a_, e_.Multiply(indices_[0], e_.shape.a_batch));
    } else if (!s_.pack_a) {
      a_item_ = e_.Offset(a_, e_.BatchOffsetA(indices_));
    }
    if (c_ != nullptr) {
      c_item_ = e_.Offset(c_, e_.BatchOffsetC(indices_));
    }
  }

  // All tiles of the items, for one block of k.
  void Block(Value* b, Value* k_block, const Run& tiles, const Run& panels) {
    k_block_ = k_block;
    k_ = e_.KCount(k_block);
    if (s_.b != GemmB::kPrepacked) {
      b = e_.Offset(b, e_.KOffsetB(k_block));
    }
    b_block_ = b;
    auto pack = [&](Value* panel, Value* count) {
      EmitPackPanels(e_, b, panel, count, e_.KElements(k_block), slot_, e_.shape.panel_slot);
    };
    auto packed = [&](Value* panel) {
      return e_.Offset(slot_, e_.Multiply(panel, e_.shape.panel_slot));
    };
    auto panel_b = [&](Value* panel) {
      switch (s_.b) {
        case GemmB::kInPlace:
          return b;
        case GemmB::kPackPanel:
          return s_.panels_inner ? packed(panel) : slot_;
        case GemmB::kPrepacked:
          break;
      }
      return e_.Offset(b, e_.PackedBOffset(outer_batch_, k_block, e_.Add(panels.first, panel), k_));
    };
    if (s_.panels_inner) {
      if (s_.b == GemmB::kPackPanel) pack(panels.first, panels.count);
      e_.Loop(e_.Int(0), tiles.count, s_.group_m, "tile", [&](Value* first) {
        if (s_.polls) EmitPoll(e_.b, e_.function->getArg(0), [&](Value*) { e_.b.CreateRetVoid(); });
        e_.Loop(e_.Int(0), panels.count, 1, "panel", [&](Value* j) {
          SetPanel(e_.Add(panels.first, j), panel_b(j));
          if (s_.group_m == 1) return Tile(tiles.first, first, j);
          Value* end = e_.Min(e_.Add(first, e_.Int(s_.group_m)), tiles.count);
          e_.Loop(first, end, 1, "tile.of.group", [&](Value* i) { Tile(tiles.first, i, j); });
        });
      });
      return;
    }
    e_.Loop(e_.Int(0), panels.count, 1, "panel", [&](Value* j) {
      if (s_.b == GemmB::kPackPanel) pack(e_.Add(panels.first, j), e_.Int(1));
      SetPanel(e_.Add(panels.first, j), panel_b(j));
      e_.Loop(e_.Int(0), tiles.count, 1, "tile", [&](Value* i) { Tile(tiles.first, i, j); });
    });
  }

  // The shared values of a panel's tiles.
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
    b_panel_ = e_.Offset(b, s_.head_rows() * s_.nv * e_.b_vector_bytes);
    if (s_.b == GemmB::kInPlace && s_.kind == GemmKind::kOuter) {
      b_panel_ = e_.Offset(b, e_.Scale(vector_, e_.BytesOfB(s_.lanes)));
    }
    if (s_.b == GemmB::kPrepacked && s_.prefetch_b) next_panel_ = NextPrepacked();
  }

  // Panels from one of a block to the same one of the next block of panels.
  Value* Ahead() { return s_.panels_inner ? e_.shape.block_n : e_.Int(1); }

  // The panel in the place of this one in the block that is used next: that of the next block of k,
  // and in the end of the first one again, of the next panels.
  Value* NextPrepacked() {
    if (s_.k_blocks == 1) {
      return e_.Offset(b_panel_,
                       e_.Scale(Ahead(), (s_.kc + s_.head_rows()) * s_.nv * e_.b_vector_bytes));
    }
    Value* k_block = e_.Add(k_block_, e_.Int(1));
    Value* is_last = e_.b.CreateICmpEQ(k_block, e_.shape.k_blocks);
    k_block = e_.b.CreateSelect(is_last, e_.Int(0), k_block);
    Value* panel = e_.b.CreateSelect(is_last, e_.Add(panel_, Ahead()), panel_);
    return e_.Offset(b_, e_.PackedBOffset(outer_batch_, k_block, panel, e_.KCount(k_block)));
  }

  void Tile(Value* first_tile, Value* tile, Value* panel_in_block) {
    Value* tile_index = e_.Add(first_tile, tile);
    if (s_.row_batches > 1) {
      Value* rows = TakeIndex(tile_index, e_.Int(s_.row_tiles));
      SetBatch(e_.Add(e_.Scale(outer_batch_, s_.row_batches), tile_index));
      tile_index = rows;
    }
    row_ = e_.TileRow(tile_index);
    TileOperands o{};
    o.a_packed = s_.pack_a;
    o.a_m = e_.shape.a_row;
    o.a_k = e_.shape.a_step;
    if (e_.any_a) {
      Value* at = e_.Multiply(tile_index, e_.shape.a_tile);
      if (p_.m % s_.mr != 0) {
        Value* last = e_.b.CreateSub(e_.shape.m_tiles, e_.Int(1));
        Value* is_last = e_.b.CreateICmpEQ(tile_index, last);
        at = e_.b.CreateSelect(is_last, e_.shape.a_last, at);
      }
      o.a = e_.Offset(e_.Offset(a_item_, at), e_.Multiply(k_block_, e_.shape.a_block));
    } else if (s_.pack_a) {
      o.a = e_.Offset(a_item_, e_.PackedAOffset(batch_, k_block_, tile_index));
    } else {
      o.a = e_.Offset(e_.Offset(a_item_, e_.Multiply(row_, o.a_m)), e_.KOffsetA(k_block_));
    }
    o.b = b_panel_;
    o.k = k_;
    const bool in_place = s_.b == GemmB::kInPlace;
    o.b_packed = !in_place;
    o.b_vector = in_place ? e_.BytesOfB(s_.lanes) : s_.lanes * e_.b_word_bytes;
    if (s_.kind == GemmKind::kInner) {
      InnerTiles(o);
      if (direct_) return;
    } else {
      o.b_k = in_place ? e_.shape.b_step : e_.Int(s_.nv * e_.b_vector_bytes);
      o.mask = in_place ? mask_ : nullptr;
      SetPrefetch(tile, o);
      if (s_.prefetch_a) {
        Value* next = e_.Offset(o.a, e_.shape.a_tile);
        // The first panel asks for the next rows, the other ones for the tile's own, which are
        // near.
        if (s_.panels_inner) {
          Value* is_first = e_.b.CreateICmpEQ(panel_in_block, e_.Int(0));
          next = e_.b.CreateSelect(is_first, next, o.a);
        }
        AddRows(next, s_.mr * e_.unroll * e_.a_bytes, o);
      }
      if (in_registers_) {
        for (const GemmRows& rows : in_registers_->reads) o.prefetch.push_back(TileOf(rows));
      }
      const IfForm form = {.after = "join", .after_last = true};
      const bool waits = !adds_ && s_.k_blocks > 1;
      // C of one tile's rows stays in the first cache.
      if (adds_ && s_.m_tiles > 1) {
        o.prefetch.push_back(RowsFrom(DirectTile(), e_.shape.c_row, e_.element_bytes));
      }
      if (waits) {
        // Sums of the blocks of k before this one wait in the panel's slot.
        tile_ = e_.Offset(slot_, e_.Add(e_.Multiply(panel_in_block, e_.shape.panel_slot),
                                        e_.Scale(tile, s_.mr * s_.nv * e_.vector_bytes)));
        tile_ = e_.Offset(tile_, e_.shape.panel_bytes);
        if (e_.may_be_one_block) {
          Value* is_one = e_.b.CreateICmpEQ(e_.shape.k_blocks, e_.Int(1));
          tile_ = e_.b.CreateSelect(is_one, own_tile_, tile_);
        }
        EmitIf(
            e_.b, e_.b.CreateICmpEQ(k_block_, e_.Int(0)), [&] { ClearTile(); }, form);
        if (s_.prefetch_a) AddSums(o);
      }
      std::vector<Value*> sums;
      if (kernel::IsTile(s_.unit)) {
        EmitTileSums(e_, o, tile_, s_.k_blocks > 1);
      } else {
        sums = EmitOuterTile(e_, o);
      }
      // What a tile shares with the one before has got its sums: that is left out in memory. Tiles
      // of one row, whose blocks are short, share nothing but vectors.
      const bool adds_in_memory = adds_ && (s_.mr > 1 || e_.n_vectors % s_.nv != 0);
      if (direct_ && !adds_in_memory) return StoreDirect(sums);
      if (waits) {
        StoreTile(sums, true);
        EmitIf(
            e_.b, IsLastBlock(), [&] { FinishTile(tile_index); }, form);
        return;
      }
      if (in_registers_) return FinishInRegisters(sums, tile_index);
      StoreTile(sums, false);
    }
    FinishTile(tile_index);
  }

  Value* IsLastBlock() { return e_.b.CreateICmpEQ(e_.Add(k_block_, e_.Int(1)), e_.shape.k_blocks); }

  // A loop is less to compile than a second way to store sums.
  void ClearTile() {
    llvm::Constant* none = NoSum(e_);
    e_.Loop(e_.Int(0), e_.Int(s_.mr * s_.nv), 1, "clear", [&](Value* i) {
      e_.StoreVector(none, e_.Offset(tile_, e_.Scale(i, e_.vector_bytes)), nullptr, true);
    });
  }

  // Stores a register tile, adding to the present contents or replacing them.
  void StoreTile(const std::vector<Value*>& sums, bool add) {
    for (size_t i = 0; i < sums.size(); ++i) {
      Value* to = e_.Offset(tile_, static_cast<int64_t>(i) * e_.vector_bytes);
      Value* sum = add ? e_.Sum(e_.LoadVector(to, nullptr, true), sums[i]) : sums[i];
      e_.StoreVector(sum, to, nullptr, true);
    }
  }

  // The rows and vectors of the tile before these have been covered.
  Value* FirstRow(Value* tile_index) {
    if (p_.m % s_.mr == 0) return e_.Int(0);
    return e_.b.CreateSub(e_.Scale(tile_index, s_.mr), row_);
  }
  Value* FirstVector() {
    if (e_.n_vectors % s_.nv == 0) return e_.Int(0);
    return e_.b.CreateSub(e_.Scale(panel_, s_.nv), vector_);
  }

  // Whole tiles have only vectors that are wanted as they are.
  void FinishInRegisters(const std::vector<Value*>& sums, Value* tile_index) {
    auto finish = [&] {
      for (int i = 0; i < s_.mr; ++i) {
        for (int v = 0; v < s_.nv; ++v) {
          GemmVector result;
          result.value = sums[i * s_.nv + v];
          result.lanes = s_.lanes;
          result.batch = indices_;
          result.m = e_.Add(row_, e_.Int(i));
          result.n = e_.Add(e_.Scale(vector_, s_.lanes), e_.Int(int64_t{v} * s_.lanes));
          in_registers_->emit(e_.b, result);
        }
      }
    };
    Value* whole = e_.b.getTrue();
    auto also = [&](Value* condition) { whole = e_.b.CreateAnd(whole, condition); };
    also(e_.b.CreateICmpEQ(FirstRow(tile_index), e_.Int(0)));
    also(e_.b.CreateICmpEQ(FirstVector(), e_.Int(0)));
    if (e_.ragged) also(e_.b.CreateICmpNE(panel_, e_.Int(s_.n_panels - 1)));
    if (!finish_) return finish();
    auto in_memory = [&] {
      StoreTile(sums, false);
      FinishTile(tile_index);
    };
    EmitIf(e_.b, whole, finish, in_memory, {.after = "join", .after_last = true});
  }

  void FinishTile(Value* tile_index) {
    Value* first_row = FirstRow(tile_index);
    Value* first_vector = FirstVector();
    if (finish_) {
      llvm::Function* f = e_.function;
      e_.b.CreateCall(
          FinishType(f->getContext()), finish_,
          {f->getArg(0), f->getArg(1), tile_, batch_, row_, first_row, vector_, first_vector});
      return;
    }
    Value* adds = AddsToC();
    ForEachVector(e_, first_row, first_vector, [&](Value* i, Value* v) {
      StoreResults(e_, SlotOf(e_, tile_, i, v), c_item_, e_.Add(row_, i), e_.Add(vector_, v), adds);
    });
  }

  // The next block of B is prefetched while this one is used: each tile prefetches a share of the
  // panel at its own panel's position in the next block.
  void SetPrefetch(Value* tile, TileOperands& o) {
    if (!s_.prefetch_b) return;
    const int64_t steps = kernel::IsTile(s_.unit) ? kernel::kTileSteps : e_.unroll;
    const int64_t vector_bytes =
        s_.b == GemmB::kPrepacked ? s_.lanes * e_.b_word_bytes : e_.BytesOfB(s_.lanes);
    const int64_t row_bytes = s_.nv * vector_bytes;
    const int64_t tiles = s_.items_along_m ? s_.m_tiles : s_.block_m;
    if (s_.b == GemmB::kPrepacked) {
      // One tile of words is done with a panel as fast as it comes, and asks for its own lines.
      if (tiles == 1 && s_.unit != kernel::GemmUnit::kElement) {
        const int64_t bytes = row_bytes * steps;
        o.prefetch.push_back({.pointer = e_.Offset(o.b, kStreamAheadBytes),
                              .step = e_.Int(bytes),
                              .lines = bytes / kLineBytes,
                              .level = Emitter::Level::kFirst});
        return;
      }
      const int64_t panel_bytes = s_.kc * row_bytes;
      const int64_t share = (panel_bytes + tiles - 1) / tiles;
      Value* next = e_.Offset(next_panel_, e_.Scale(tile, share));
      const int64_t step = (share * steps + s_.kc - 1) / s_.kc;
      o.prefetch.push_back({next, e_.Int(step), CeilDiv(step, kLineBytes)});
      return;
    }
    if (p_.b_n != 1 || !p_.IsLinearB()) return;
    // The rows of an iteration in the next block of k, or of panels: the tiles share their lines.
    // Tiles beyond the end prefetch cached lines.
    const int64_t row_lines = (row_bytes + kLineBytes - 1) / kLineBytes;
    const int64_t lines = e_.unroll * row_lines;
    const int64_t share = (lines + tiles - 1) / tiles;
    Value* next = e_.Offset(b_block_, e_.Scale(vector_, vector_bytes));
    next = e_.Offset(
        next, s_.k_blocks > 1 ? e_.Scale(e_.shape.b_step, s_.kc) : e_.Scale(Ahead(), row_bytes));
    Value* ahead_step = e_.Scale(e_.shape.b_step, e_.unroll);
    if (tiles == 1) {
      for (int step = 0; step < e_.unroll; ++step) {
        Value* row = e_.Offset(next, e_.Scale(e_.shape.b_step, step));
        o.prefetch.push_back({row, ahead_step, row_lines});
      }
      return;
    }
    for (int64_t i = 0; i < share; ++i) {
      Value* line = e_.Add(e_.Scale(tile, share), e_.Int(i));
      Value* row = e_.b.CreateUDiv(line, e_.Int(row_lines));
      Value* at = e_.b.CreateURem(line, e_.Int(row_lines));
      Value* pointer =
          e_.Offset(next, e_.Add(e_.Multiply(row, e_.shape.b_step), e_.Scale(at, kLineBytes)));
      Value* left = e_.b.CreateICmpSLT(line, e_.Int(lines));
      o.prefetch.push_back({e_.b.CreateSelect(left, pointer, o.b), ahead_step});
    }
  }

  // The rows of a tile of A: `step` bytes in each iteration.
  void AddRows(Value* pointer, int64_t step, TileOperands& o) {
    LinesAhead ahead;
    ahead.pointer = pointer;
    ahead.step = e_.Int(step);
    ahead.lines = CeilDiv(step, kLineBytes);
    ahead.level = Emitter::Level::kFirst;
    if (p_.a_m != p_.k || s_.k_blocks > 1) {
      ahead.row_bytes = e_.Multiply(k_, o.a_k);
      ahead.row_step = o.a_m;
    }
    o.prefetch.push_back(ahead);
  }

  // The sums of the blocks of k before this one.
  void AddSums(TileOperands& o) {
    o.prefetch.push_back({.pointer = tile_,
                          .step = e_.Int(kLineBytes),
                          .last = e_.Offset(tile_, s_.mr * s_.nv * e_.vector_bytes - kLineBytes),
                          .level = Emitter::Level::kFirst});
  }

  // The tile's rows in an array, the first one at a pointer: one in each iteration.
  LinesAhead RowsFrom(Value* pointer, Value* row_bytes, int64_t element_bytes) {
    LinesAhead ahead;
    ahead.pointer = pointer;
    ahead.step = row_bytes;
    ahead.last = e_.Offset(pointer, e_.Scale(row_bytes, s_.mr - 1));
    ahead.lines = CeilDiv(int64_t{s_.nv} * s_.lanes * element_bytes, kLineBytes);
    ahead.level = Emitter::Level::kFirst;
    return ahead;
  }

  LinesAhead TileOf(const GemmRows& rows) {
    Value* offset = e_.Add(e_.Scale(row_, rows.m), e_.Scale(vector_, s_.lanes));
    for (size_t i = 0; i < indices_.size(); ++i) {
      offset = e_.Add(offset, e_.Scale(indices_[i], rows.batch[i]));
    }
    offset = e_.Scale(e_.Add(offset, e_.Int(rows.first)), rows.element_bytes);
    return RowsFrom(e_.Offset(e_.Arg(rows.arg), offset), e_.Int(rows.m * rows.element_bytes),
                    rows.element_bytes);
  }

  // Whether inner products of groups of columns are neighbours in C, and all of them wanted.
  bool HasWholeGroups() const {
    return s_.kind == GemmKind::kInner && p_.n % s_.nr == 0 && (p_.c_n == 1 || p_.n == 1);
  }

  // Inner products fill the tile in memory or their rows of C, nr columns at a time.
  void InnerTiles(TileOperands& o) {
    Value* first = e_.Scale(vector_, s_.lanes);
    Value* count = e_.Int(s_.nv * s_.lanes);
    if (e_.ragged) count = e_.Min(count, e_.b.CreateSub(e_.Int(p_.n), first));
    const int64_t column_bytes = o.b_packed ? s_.b_column_bytes : e_.BytesOfB(p_.b_n);
    e_.Loop(e_.Int(0), count, s_.nr, "column", [&](Value* j) {
      Value* column = e_.Add(first, j);
      o.columns.clear();
      if (s_.prefetch_a) {
        // Each column asks for its share of the next rows.
        const int64_t columns = std::min<int64_t>(p_.n, s_.nv * s_.lanes);
        const int64_t share = CeilDiv(int64_t{s_.mr} * p_.k * e_.a_bytes, columns);
        Value* next = e_.Offset(e_.Offset(o.a, e_.shape.a_tile), e_.Scale(j, share));
        AddRows(next, CeilDiv(share * s_.nr * s_.lanes, p_.k), o);
      }
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
      if (s_.prefetch_b && p_.b_n == p_.k) {
        // Columns farther on, which follow these without a gap; at the end the last ones again.
        const int64_t groups = CeilDiv(kInnerAheadBytes, s_.nr * column_bytes);
        Value* last = e_.Int(std::max<int64_t>(p_.n - s_.nr, 0));
        Value* ahead = e_.Min(e_.Add(column, e_.Int(groups * s_.nr)), last);
        const int64_t step = s_.nr * e_.BytesOfB(s_.lanes);
        o.prefetch.push_back({.pointer = e_.Offset(b_panel_, e_.Scale(ahead, column_bytes)),
                              .step = e_.Int(step),
                              .lines = CeilDiv(step, kLineBytes),
                              .level = Emitter::Level::kFirst});
      }
      std::vector<Value*> sums = EmitInnerTile(e_, o);
      Value* row_bytes = direct_ ? e_.shape.c_row : e_.Int(s_.nv * e_.vector_bytes);
      Value* to = direct_ ? e_.Offset(c_item_, e_.Multiply(row_, row_bytes)) : tile_;
      to = e_.Offset(to, e_.Scale(direct_ ? column : j, e_.element_bytes));
      for (int i = 0; i < s_.mr; ++i) {
        for (int c = 0; c < s_.nr; ++c) {
          Value* at = e_.Offset(e_.Offset(to, e_.Scale(row_bytes, i)), c * e_.element_bytes);
          e_.b.CreateAlignedStore(sums[i * s_.nr + c], at,
                                  llvm::Align(static_cast<uint64_t>(e_.element_bytes)));
        }
      }
    });
  }

  // The tile in C.
  Value* DirectTile() {
    return e_.Offset(c_item_,
                     e_.Add(e_.Multiply(row_, e_.shape.c_row), e_.Scale(vector_, e_.vector_bytes)));
  }

  // Whether C has sums of a block before this one; null where blocks are not added there.
  Value* AddsToC() { return adds_ ? e_.b.CreateICmpNE(k_block_, e_.Int(0)) : nullptr; }

  void StoreDirect(const std::vector<Value*>& sums) {
    Value* adds = AddsToC();
    Value* to = DirectTile();
    for (int i = 0; i < s_.mr; ++i) {
      for (int v = 0; v < s_.nv; ++v) {
        Value* at = e_.Add(e_.Scale(e_.shape.c_row, i), e_.Int(v * e_.vector_bytes));
        at = e_.Offset(to, at);
        Value* mask = v == s_.nv - 1 ? mask_ : nullptr;
        Value* sum = sums[i * s_.nv + v];
        if (adds) sum = Added(e_, sum, at, mask, adds);
        e_.StoreVector(sum, at, mask, false);
      }
    }
  }

  Emitter& e_;
  const kernel::GemmProblem& p_;
  const kernel::GemmSchedule& s_;
  Value* a_;
  Value* b_;
  Value* c_;
  Value* finish_;
  const GemmEpilogue* in_registers_;
  Value* slot_ = nullptr;
  Value* tile_ = nullptr;      // a register tile in memory, row by row
  Value* own_tile_ = nullptr;  // the place of those that no other block adds to
  // Accumulators, or inner products, go straight to C; those of several blocks of k are added
  // there.
  bool direct_ = false, adds_ = false;
  // Of the item, block of k, panel and tile that is being emitted.
  Value* outer_batch_ = nullptr;  // the batch but for what goes together
  Value* batch_ = nullptr;
  std::vector<Value*> indices_;
  Value* a_item_ = nullptr;
  Value* c_item_ = nullptr;
  Value* k_block_ = nullptr;
  Value* k_ = nullptr;
  Value* panel_ = nullptr;
  Value* vector_ = nullptr;
  Value* mask_ = nullptr;
  Value* b_panel_ = nullptr;
  Value* next_panel_ = nullptr;  // of prepacked B, where it is prefetched
  Value* b_block_ = nullptr;     // B from the block of k on, unpacked
  Value* row_ = nullptr;
};

}  // namespace

void EmitLoops(Emitter& e, const LoopOperands& operands, const GemmEpilogue* in_registers) {
  GemmLoops(e, operands, in_registers).Emit();
}

}  // namespace kiln::codegen::gemm
