// Gemms: a block computes a tile of the result. Pieces of both factors go through shared memory,
// several in flight at once, and the tile's sums go there at the end, so that the epilogue accesses
// memory in order.

#include "codegen/gpu/gemm.h"

#include <functional>

namespace kiln::codegen {
namespace {

using kernel::GpuFactors;
using kernel::GpuTile;
using kernel::GpuUnit;
using kernel::ReductionId;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

// The stages of a gemm, of which the epilogue may be several.
constexpr StageId kSums(0), kEpilogue(1);

class Gemm {
 public:
  explicit Gemm(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        factors_(*kernel::FindGpuFactors(e.kernel())),
        tile_(e.schedule().gemm),
        m_(e.kernel().PointsOf(factors_.rows)),
        n_(e.kernel().PointsOf(factors_.columns)),
        k_(e.kernel().PointsOf(factors_.inner)),
        pieces_((k_ + tile_.k - 1) / tile_.k),
        chunks_(e.schedule().chunks) {}

  void Emit() {
    if (e_.launch_number() == 1) return AddChunks();
    shared_ = e_.gpu().Shared();
    x_.emplace(e_, tile_.x, factors_.rows, factors_.inner, tile_.m);
    y_.emplace(e_, tile_.y, factors_.columns, factors_.inner, tile_.n);
    sums_ = tile_.unit == GpuUnit::kFma ? MakeFmaSums(e_) : MakeMmaSums(e_);
    const int64_t row_tiles = (m_ + tile_.m - 1) / tile_.m;
    const int64_t column_tiles = (n_ + tile_.n - 1) / tile_.n;
    const int64_t items = e_.kernel().PointsOf(factors_.batch) * row_tiles * column_tiles * chunks_;
    auto item = [&](Value* i) {
      if (chunks_ > 1) {
        chunk_ = b_.CreateURem(i, e_.Int(chunks_));
        i = b_.CreateUDiv(i, e_.Int(chunks_));
      }
      FindTile(i, row_tiles, column_tiles);
      MultiplyPieces();
      Finish();
    };
    if (items == e_.launch().blocks) {
      item(e_.block());
    } else {
      e_.Loop(e_.block(), e_.Int(items), e_.Int(e_.launch().blocks), item);
    }
  }

 private:
  // --- Which tile, and which part of k
  void FindTile(Value* t, int64_t row_tiles, int64_t column_tiles) {
    Value *row = nullptr, *column = nullptr;
    Value* in_batch = b_.CreateURem(t, e_.Int(row_tiles * column_tiles));
    e_.Delinearise(b_.CreateUDiv(t, e_.Int(row_tiles * column_tiles)), factors_.batch);
    if (tile_.group == 1) {
      row = b_.CreateUDiv(in_batch, e_.Int(column_tiles));
      column = b_.CreateURem(in_batch, e_.Int(column_tiles));
    } else {
      // So many rows of tiles go together from column to column; the last may be fewer.
      Value* of_group = e_.Int(tile_.group * column_tiles);
      Value* first = b_.CreateMul(b_.CreateUDiv(in_batch, of_group), e_.Int(tile_.group));
      Value* in_group = b_.CreateURem(in_batch, of_group);
      Value* rows = e_.Int(tile_.group);
      if (row_tiles % tile_.group != 0) {
        Value* left = b_.CreateSub(e_.Int(row_tiles), first);
        rows = EmitMin(b_, left, rows);
      }
      row = b_.CreateAdd(first, b_.CreateURem(in_group, rows));
      column = b_.CreateUDiv(in_group, rows);
    }
    row_ = b_.CreateMul(row, e_.Int(tile_.m));
    column_ = b_.CreateMul(column, e_.Int(tile_.n));
  }

  // --- The pieces
  Value* AtByte(Value* base, Value* offset) { return b_.CreateGEP(b_.getInt8Ty(), base, offset); }
  Value* Y(Value* x) {
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), x, static_cast<uint64_t>(tile_.XBytes()));
  }

  void Fetch(Value* piece, Value* to) {
    Value* k = b_.CreateMul(piece, e_.Int(tile_.k));
    x_->Fetch(k, to);
    y_->Fetch(k, Y(to));
  }
  void Put(Value* to) {
    x_->Put(to);
    y_->Put(Y(to));
  }

  // The next place of a piece in shared memory, in a circle.
  Value* Next(Value* offset) {
    const int64_t bytes = tile_.StageBytes();
    Value* next = b_.CreateAdd(offset, e_.Int(bytes));
    return b_.CreateSelect(b_.CreateICmpEQ(next, e_.Int(tile_.stages * bytes)), e_.Int(0), next);
  }

  void MultiplyPieces() {
    Value *begin = e_.Int(0), *end = e_.Int(pieces_);
    if (chunks_ > 1) {
      const int64_t size = (pieces_ + chunks_ - 1) / chunks_;
      begin = b_.CreateMul(chunk_, e_.Int(size));
      end = b_.CreateAdd(begin, e_.Int(size));
      if (pieces_ % size != 0) {
        end = EmitMin(b_, end, e_.Int(pieces_));
      }
    }
    const bool copies = x_->copied() || y_->copied();
    Value* first_k = b_.CreateMul(begin, e_.Int(tile_.k));
    x_->Begin(row_, first_k);
    y_->Begin(column_, first_k);
    // All but one of the places are filled.
    for (int s = 0; s + 1 < tile_.stages; ++s) {
      Value* piece = b_.CreateAdd(begin, e_.Int(s));
      e_.If(b_.CreateICmpSLT(piece, end), [&] {
        Value* to = AtByte(shared_, e_.Int(s * tile_.StageBytes()));
        Fetch(piece, to);
        Put(to);
      });
      if (copies) e_.gpu().CopyCommit();
    }
    auto wait = [&] {
      if (copies) e_.gpu().CopyWait(tile_.stages - 2);
      e_.gpu().Barrier();
    };
    wait();
    sums_->Begin(shared_, Y(shared_));
    llvm::AllocaInst* read = e_.NewSlot(e_.index_type());
    llvm::AllocaInst* write = e_.NewSlot(e_.index_type());
    b_.CreateStore(e_.Int(0), read);
    b_.CreateStore(e_.Int((tile_.stages - 1) * tile_.StageBytes()), write);
    e_.Loop(begin, end, e_.Int(1), [&](Value* piece) {
      Value* from_offset = b_.CreateLoad(e_.index_type(), read);
      Value* to_offset = b_.CreateLoad(e_.index_type(), write);
      Value* to = AtByte(shared_, to_offset);
      // Its place is that of the preceding piece, no longer in use.
      Value* coming = b_.CreateAdd(piece, e_.Int(tile_.stages - 1));
      Value* is_one = b_.CreateICmpSLT(coming, end);
      e_.If(is_one, [&] { Fetch(coming, to); });
      if (copies) e_.gpu().CopyCommit();
      Value* next_offset = Next(from_offset);
      // After the last piece it is there again, so that something is.
      Value* is_last = b_.CreateICmpEQ(b_.CreateAdd(piece, e_.Int(1)), end);
      Value* x = AtByte(shared_, from_offset);
      Value* next_x = AtByte(shared_, b_.CreateSelect(is_last, from_offset, next_offset));
      sums_->Multiply(x, Y(x), next_x, Y(next_x), [&] {
        if (!x_->copied() || !y_->copied()) e_.If(is_one, [&] { Put(to); });
        wait();
      });
      b_.CreateStore(next_offset, read);
      b_.CreateStore(Next(to_offset), write);
    });
    if (copies) e_.gpu().CopyWait(0);
    e_.gpu().Barrier();
  }

  // --- The results
  void Finish() {
    for (int pass = 0; pass < tile_.passes; ++pass) {
      sums_->Write(pass, shared_);
      e_.gpu().Barrier();
      FinishPass(pass);
      // Before the memory is written again.
      e_.gpu().Barrier();
    }
  }

  // Neighbouring threads take neighbouring columns.
  void FinishPass(int pass) {
    const int lanes = tile_.lanes, in_row = tile_.n / lanes;
    const int rows = tile_.m / tile_.passes;
    const int segment = sums_->segment(), part = segment / tile_.passes;
    const int threads = e_.launch().threads;
    e_.Loop(e_.thread(), e_.Int(int64_t{rows} * in_row), e_.Int(threads), [&](Value* i) {
      Value* shared_row = b_.CreateUDiv(i, e_.Int(in_row));
      Value* shared_column = b_.CreateMul(b_.CreateURem(i, e_.Int(in_row)), e_.Int(lanes));
      Value* row = b_.CreateAdd(
          b_.CreateMul(b_.CreateUDiv(shared_row, e_.Int(part)), e_.Int(segment)),
          b_.CreateAdd(b_.CreateURem(shared_row, e_.Int(part)), e_.Int(int64_t{pass} * part)));
      row = b_.CreateAdd(row_, row);
      Value* column = b_.CreateAdd(column_, shared_column);
      Value* inside = nullptr;
      if (m_ % tile_.m != 0) inside = b_.CreateICmpSLT(row, e_.Int(m_));
      if (n_ % tile_.n != 0) {
        Value* in_columns = b_.CreateICmpSLT(column, e_.Int(n_));
        inside = inside ? b_.CreateAnd(inside, in_columns) : in_columns;
      }
      auto finish = [&] {
        Value* at =
            b_.CreateAdd(b_.CreateMul(shared_row, e_.Int(tile_.sum_pitch())), shared_column);
        std::vector<Value*> sums = e_.LoadVector(
            b_.CreateGEP(MemoryType(e_.context(), tile_.sum), shared_, at), tile_.sum, lanes);
        for (StageId s : e_.kernel().stages.ids()) e_.Forget(s);
        e_.Delinearise(row, factors_.rows);
        e_.Delinearise(column, factors_.columns);
        if (chunks_ > 1) return KeepChunk(sums);
        if (e_.kernel().stages.size() > 2) {
          e_.FinishReduction(kSums, ReductionId(0), {sums[0]});
          return e_.EmitSerialStages(kEpilogue);
        }
        e_.StoreLanes(kEpilogue, factors_.columns.back(), lanes, [&](int lane) {
          e_.Forget(kSums);
          e_.FinishReduction(kSums, ReductionId(0), {sums[lane]});
        });
      };
      if (inside) {
        e_.If(inside, finish);
      } else {
        finish();
      }
    });
  }

  // --- Split k: a second launch adds up the partial sums.
  Value* ChunkAt(Value* chunk, Value* point) {
    return b_.CreateAdd(b_.CreateMul(chunk, e_.Int(e_.outer_points())), point);
  }

  void KeepChunk(const std::vector<Value*>& sums) {
    const VariableId last = factors_.columns.back();
    int64_t stride = 1;
    Value* point = e_.Int(0);
    for (VariableId v : std::views::reverse(e_.kernel().OuterVariables())) {
      if (v == last) last_stride_ = stride;
      point = b_.CreateAdd(point, b_.CreateMul(e_.variable(v), e_.Int(stride)));
      stride *= e_.kernel().variables[v].extent;
    }
    llvm::Type* type = MemoryType(e_.context(), tile_.sum);
    Value* to = b_.CreateGEP(type, e_.Scratch(0), ChunkAt(chunk_, point));
    if (last_stride_ == 1) return e_.StoreVector(sums, to, tile_.sum);
    for (size_t i = 0; i < sums.size(); ++i) {
      e_.Store(sums[i], b_.CreateConstGEP1_64(type, to, i * static_cast<uint64_t>(last_stride_)),
               tile_.sum);
    }
  }

  void AddChunks() {
    const int64_t threads = e_.launch().threads;
    Value* first = b_.CreateAdd(b_.CreateMul(e_.block(), e_.Int(threads)), e_.thread());
    llvm::AllocaInst* slot = e_.NewSlot(RegisterType(e_.context(), tile_.sum));
    e_.Loop(first, e_.Int(e_.outer_points()), e_.Int(threads * e_.launch().blocks),
            [&](Value* point) {
              e_.Delinearise(point, e_.OuterVariables());
              b_.CreateStore(e_.LoadPartial(e_.Scratch(0), point, tile_.sum), slot);
              e_.Loop(e_.Int(1), e_.Int(chunks_), e_.Int(1), [&](Value* chunk) {
                Value* sum = b_.CreateLoad(slot->getAllocatedType(), slot);
                Value* part = e_.LoadPartial(e_.Scratch(0), ChunkAt(chunk, point), tile_.sum);
                b_.CreateStore(
                    EmitCombine(b_, kernel::Combiner::Kind::kSum, tile_.sum, sum, part, e_.math()),
                    slot);
              });
              e_.FinishReduction(kSums, ReductionId(0),
                                 {b_.CreateLoad(slot->getAllocatedType(), slot)});
              e_.EmitSerialStages(kEpilogue);
            });
  }

  GpuEmitter& e_;
  Builder& b_;
  const GpuFactors factors_;
  const GpuTile& tile_;
  const int64_t m_, n_, k_, pieces_, chunks_;
  std::optional<GemmPieces> x_, y_;
  std::unique_ptr<GemmSums> sums_;
  Value* shared_ = nullptr;
  Value *row_ = nullptr, *column_ = nullptr;  // of the tile, its first
  Value* chunk_ = nullptr;
  int64_t last_stride_ = 1;
};

}  // namespace

void EmitGemm(GpuEmitter& e) { Gemm(e).Emit(); }

}  // namespace kiln::codegen
