// Matrix products: a block makes a tile of the result. Its threads bring a piece of both factors
// into shared memory, and each multiplies its rows by its columns; then the next piece.

#include "kernel/schedule/gpu/product.h"
#include "codegen/gpu/emitter.h"
#include "kernel/schedule/gpu/vectors.h"

namespace kiln::codegen {
namespace {

using kernel::GpuFactors;
using kernel::GpuTile;
using kernel::Node;
using llvm::Value;

class Product {
 public:
  explicit Product(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        factors_(*kernel::FindGpuFactors(e.kernel())),
        tile_(e.schedule().product),
        m_(e.PointsOf(factors_.rows)),
        n_(e.PointsOf(factors_.columns)),
        k_(e.PointsOf(factors_.inner)),
        type_(e.kernel().stages[0].nodes[static_cast<size_t>(factors_.x)].type) {
    x_ = {factors_.x, &factors_.rows, m_, tile_.m, tile_.row_pitch(), nullptr, nullptr};
    y_ = {factors_.y, &factors_.columns, n_, tile_.n, tile_.column_pitch(), nullptr, nullptr};
    x_.base = e.gpu().Shared();
    y_.base = b_.CreateConstGEP1_64(
        b_.getInt8Ty(), x_.base,
        static_cast<uint64_t>(int64_t{tile_.k} * x_.pitch * ByteWidth(type_)));
  }

  void Emit() {
    const int64_t row_tiles = (m_ + tile_.m - 1) / tile_.m;
    const int64_t column_tiles = (n_ + tile_.n - 1) / tile_.n;
    const int64_t tiles = e_.PointsOf(factors_.batch) * row_tiles * column_tiles;
    const int threads_n = tile_.n / tile_.thread_n;
    // A thread's rows and columns lie as far apart as there are threads: neighbours read and write
    // neighbouring memory.
    thread_row_ = b_.CreateUDiv(e_.thread(), e_.Int(threads_n));
    thread_column_ = b_.CreateURem(e_.thread(), e_.Int(threads_n));
    for (int i = 0; i < tile_.thread_m * tile_.thread_n; ++i) {
      sums_.push_back(e_.NewSlot(RegisterType(e_.context(), type_)));
    }
    e_.Loop(e_.block(), e_.Int(tiles), e_.Int(e_.launch().blocks), [&](Value* t) {
      y_.first = b_.CreateMul(b_.CreateURem(t, e_.Int(column_tiles)), e_.Int(tile_.n));
      t = b_.CreateUDiv(t, e_.Int(column_tiles));
      x_.first = b_.CreateMul(b_.CreateURem(t, e_.Int(row_tiles)), e_.Int(tile_.m));
      e_.Delinearise(b_.CreateUDiv(t, e_.Int(row_tiles)), factors_.batch);
      for (llvm::AllocaInst* sum : sums_) {
        b_.CreateStore(IdentityOf(e_.context(), kernel::Combiner::Kind::kSum, type_), sum);
      }
      e_.Loop(e_.Int(0), e_.Int(k_), e_.Int(tile_.k), [&](Value* first_k) {
        Bring(x_, first_k);
        Bring(y_, first_k);
        e_.gpu().Barrier();
        Multiply();
        // Before the pieces are replaced.
        e_.gpu().Barrier();
      });
      Finish();
    });
  }

 private:
  struct Factor {
    int node;
    const std::vector<int>* variables;
    int64_t extent;  // of these
    int width;       // of the tile along them
    int pitch;       // of shared memory: [k][pitch]
    Value* base;
    Value* first;  // of the tile, among the extent's points
  };

  // Whether neighbours along k are neighbours in memory, for the loads that the factor is made of.
  bool GoesAlongK(const Factor& f) const {
    if (factors_.inner.empty()) return false;
    int along = 0;
    for (const Node& n : e_.kernel().stages[0].nodes) {
      if (n.kind != Node::Kind::kLoad) continue;
      bool of_factor = false;
      for (int v : *f.variables) of_factor |= n.index.DependsOn(v);
      if (of_factor && n.index.StrideOf(factors_.inner.back()) == 1) ++along;
    }
    return along > 0;
  }

  Value* Clamp(Value* at, Value* inside, int64_t extent) {
    return b_.CreateSelect(inside, at, e_.Int(extent - 1));
  }

  // The factor's piece of the tile, from first_k on. Beyond the factor's end it has zeros.
  void Bring(const Factor& f, Value* first_k) {
    const int threads = e_.launch().threads, elements = f.width * tile_.k;
    const bool along_k = GoesAlongK(f);
    for (int step = 0; step < (elements + threads - 1) / threads; ++step) {
      GpuEmitter::Scope scope(e_);
      e_.Forget(0);
      Value* i = b_.CreateAdd(e_.thread(), e_.Int(int64_t{step} * threads));
      Value *at, *k;
      if (along_k) {
        k = b_.CreateURem(i, e_.Int(tile_.k));
        at = b_.CreateUDiv(i, e_.Int(tile_.k));
      } else {
        at = b_.CreateURem(i, e_.Int(f.width));
        k = b_.CreateUDiv(i, e_.Int(f.width));
      }
      auto bring = [&] {
        Value* point = b_.CreateAdd(f.first, at);
        Value* inner = b_.CreateAdd(first_k, k);
        Value* inside = nullptr;
        if (f.extent % f.width != 0) {
          Value* is = b_.CreateICmpSLT(point, e_.Int(f.extent));
          point = Clamp(point, is, f.extent);
        }
        if (k_ % tile_.k != 0) {
          inside = b_.CreateICmpSLT(inner, e_.Int(k_));
          inner = Clamp(inner, inside, k_);
        }
        e_.Delinearise(point, *f.variables);
        e_.Delinearise(inner, factors_.inner);
        Value* value = e_.At(0, f.node);
        if (inside) {
          value = b_.CreateSelect(inside, value, llvm::Constant::getNullValue(value->getType()));
        }
        e_.StorePartial(value, f.base, b_.CreateAdd(b_.CreateMul(k, e_.Int(f.pitch)), at), type_);
      };
      if ((step + 1) * threads > elements) {
        e_.If(b_.CreateICmpSLT(i, e_.Int(elements)), bring);
      } else {
        bring();
      }
    }
  }

  Value* RowOf(int i) {
    return b_.CreateAdd(thread_row_, e_.Int(int64_t{i} * (tile_.m / tile_.thread_m)));
  }
  Value* ColumnOf(int j) {
    return b_.CreateAdd(thread_column_, e_.Int(int64_t{j} * (tile_.n / tile_.thread_n)));
  }

  Value* MultiplyAdd(Value* x, Value* y, Value* sum) {
    llvm::Type* t = sum->getType();
    if (!t->isFloatingPointTy()) return b_.CreateAdd(b_.CreateMul(x, y), sum);
    if (e_.math().has_fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {t}, {x, y, sum});
    return b_.CreateFAdd(b_.CreateFMul(x, y), sum);
  }

  void Multiply() {
    e_.Loop(e_.Int(0), e_.Int(tile_.k), e_.Int(1), [&](Value* k) {
      std::vector<Value*> x, y;
      for (int i = 0; i < tile_.thread_m; ++i) {
        Value* at = b_.CreateAdd(b_.CreateMul(k, e_.Int(x_.pitch)), RowOf(i));
        x.push_back(e_.LoadPartial(x_.base, at, type_));
      }
      for (int j = 0; j < tile_.thread_n; ++j) {
        Value* at = b_.CreateAdd(b_.CreateMul(k, e_.Int(y_.pitch)), ColumnOf(j));
        y.push_back(e_.LoadPartial(y_.base, at, type_));
      }
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t j = 0; j < y.size(); ++j) {
          llvm::AllocaInst* slot = sums_[i * y.size() + j];
          Value* sum = b_.CreateLoad(slot->getAllocatedType(), slot);
          b_.CreateStore(MultiplyAdd(x[i], y[j], sum), slot);
        }
      }
    });
  }

  // What is done with each sum.
  void Finish() {
    for (int i = 0; i < tile_.thread_m; ++i) {
      Value* row = b_.CreateAdd(x_.first, RowOf(i));
      for (int j = 0; j < tile_.thread_n; ++j) {
        Value* column = b_.CreateAdd(y_.first, ColumnOf(j));
        Value* inside = nullptr;
        if (m_ % tile_.m != 0) inside = b_.CreateICmpSLT(row, e_.Int(m_));
        if (n_ % tile_.n != 0) {
          Value* in_columns = b_.CreateICmpSLT(column, e_.Int(n_));
          inside = inside ? b_.CreateAnd(inside, in_columns) : in_columns;
        }
        llvm::AllocaInst* slot = sums_[static_cast<size_t>(i * tile_.thread_n + j)];
        auto store = [&] {
          GpuEmitter::Scope scope(e_);
          for (size_t s = 0; s < e_.kernel().stages.size(); ++s) e_.Forget(static_cast<int>(s));
          e_.Delinearise(row, factors_.rows);
          e_.Delinearise(column, factors_.columns);
          e_.FinishReduction(0, 0, {b_.CreateLoad(slot->getAllocatedType(), slot)});
          e_.EmitSerialStages(1);
        };
        if (inside) {
          e_.If(inside, store);
        } else {
          store();
        }
      }
    }
  }

  GpuEmitter& e_;
  Builder& b_;
  const GpuFactors factors_;
  const GpuTile tile_;
  const int64_t m_, n_, k_;
  const ElementType type_;
  Factor x_, y_;
  Value* thread_row_ = nullptr;
  Value* thread_column_ = nullptr;
  std::vector<llvm::AllocaInst*> sums_;  // by row and column
};

}  // namespace

void EmitProduct(GpuEmitter& e) { Product(e).Emit(); }

}  // namespace kiln::codegen
