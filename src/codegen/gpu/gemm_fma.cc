// Gemms by fused multiply-adds: each thread multiplies some rows by some columns.

#include <algorithm>

#include "codegen/gpu/gemm.h"
#include "kernel/schedule/gpu/vectors.h"

namespace kiln::codegen {
namespace {

using kernel::GpuPiece;
using kernel::GpuTile;
using llvm::Value;

class FmaSums : public GemmSums {
 public:
  explicit FmaSums(GpuEmitter& e)
      : e_(e), b_(e.b()), tile_(e.schedule().gemm), type_(tile_.sum), width_(ByteWidth(type_)) {
    // A warp's threads are a rectangle, eight columns wide where the tile has as many, so that it
    // reads as few rows and columns as can be.
    const int threads_m = tile_.m / tile_.part_m, threads_n = tile_.n / tile_.part_n;
    int lanes_n = std::min(8, threads_n), lanes_m = kWarp / lanes_n;
    if (lanes_m > threads_m) {
      lanes_m = threads_m;
      lanes_n = kWarp / lanes_m;
    }
    Value* lane = b_.CreateURem(e.thread(), e.Int(kWarp));
    Value* warp = b_.CreateUDiv(e.thread(), e.Int(kWarp));
    const int warps_n = threads_n / lanes_n;
    Value* row = b_.CreateAdd(b_.CreateMul(b_.CreateUDiv(warp, e.Int(warps_n)), e.Int(lanes_m)),
                              b_.CreateUDiv(lane, e.Int(lanes_n)));
    Value* column = b_.CreateAdd(b_.CreateMul(b_.CreateURem(warp, e.Int(warps_n)), e.Int(lanes_n)),
                                 b_.CreateURem(lane, e.Int(lanes_n)));
    x_ = SideOf(tile_.x, tile_.part_m, threads_m, row);
    y_ = SideOf(tile_.y, tile_.part_n, threads_n, column);
    for (int i = 0; i < tile_.part_m * tile_.part_n; ++i) {
      sums_.push_back(e_.NewSlot(RegisterType(e_.context(), type_)));
    }
  }

  void Begin(Value*, Value*) override {
    for (llvm::AllocaInst* sum : sums_) {
      b_.CreateStore(IdentityOf(e_.context(), kernel::Combiner::Kind::kSum, type_), sum);
    }
  }

  void Multiply(Value* x, Value* y, Value*, Value*, const std::function<void()>& turn) override {
    x = b_.CreateGEP(Memory(), x, x_.offset);
    y = b_.CreateGEP(Memory(), y, y_.offset);
    const int depth = std::max(DepthOf(x_), DepthOf(y_));
    for (int k = 0; k < tile_.k; k += depth) {
      std::vector<std::vector<Value*>> xs = Read(x_, x, k, depth), ys = Read(y_, y, k, depth);
      for (int d = 0; d < depth; ++d) {
        for (int i = 0; i < x_.count; ++i) {
          for (int j = 0; j < y_.count; ++j) {
            llvm::AllocaInst* slot = sums_[i * y_.count + j];
            Value* sum = b_.CreateLoad(slot->getAllocatedType(), slot);
            b_.CreateStore(MultiplyAdd(xs[d][i], ys[d][j], sum), slot);
          }
        }
      }
    }
    turn();
  }

  void Write(int pass, Value* to) override {
    const int rows = x_.count / tile_.passes;
    Value* first = b_.CreateAdd(b_.CreateMul(x_.start, e_.Int(tile_.sum_pitch())), y_.start);
    to = b_.CreateGEP(Memory(), to, first);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < y_.count; j += y_.together) {
        std::vector<Value*> values;
        for (int c = 0; c < y_.together; ++c) {
          llvm::AllocaInst* slot = sums_[(pass * rows + i) * y_.count + j + c];
          values.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
        }
        int64_t at = PointOf(x_, i) * tile_.sum_pitch() + PointOf(y_, j);
        e_.StoreVector(values, b_.CreateConstGEP1_64(Memory(), to, static_cast<uint64_t>(at)),
                       type_);
      }
    }
  }

  int segment() const override { return tile_.m; }

 private:
  // A thread's rows, or its columns. They come in groups of neighbours that are read at once, the
  // groups as far apart as all threads together reach; where memory goes along k the neighbours are
  // other threads' points, so that these read rows that lie on different banks.
  struct Side {
    bool along_k;
    int pitch, count;
    int together;   // neighbours
    int threads;    // along the side
    Value* start;   // the thread's first point
    Value* offset;  // where that begins in a piece
  };

  Side SideOf(const GpuPiece& piece, int count, int threads, Value* thread) {
    Side s{piece.along_k, piece.pitch, count, 1, threads, nullptr, nullptr};
    if (!s.along_k)
      s.together = std::min(count, static_cast<int>(kernel::kGpuAccessBytes / width_));
    s.together = std::min(s.together, 4);
    s.start = b_.CreateMul(thread, e_.Int(s.together));
    s.offset = s.along_k ? b_.CreateMul(s.start, e_.Int(s.pitch)) : s.start;
    return s;
  }

  static int64_t PointOf(const Side& s, int i) {
    return int64_t{i} / s.together * s.together * s.threads + i % s.together;
  }

  llvm::Type* Memory() { return MemoryType(e_.context(), type_); }

  // How many steps of k are read at once.
  int DepthOf(const Side& s) const {
    return s.along_k ? std::min(4, static_cast<int>(kernel::kGpuAccessBytes / width_)) : 1;
  }

  // The side's values by step of k and point.
  std::vector<std::vector<Value*>> Read(const Side& s, Value* base, int k, int depth) {
    std::vector<std::vector<Value*>> values(static_cast<size_t>(depth),
                                            std::vector<Value*>(static_cast<size_t>(s.count)));
    auto at = [&](int64_t offset) {
      return b_.CreateConstGEP1_64(Memory(), base, static_cast<uint64_t>(offset));
    };
    if (s.along_k) {
      for (int i = 0; i < s.count; ++i) {
        auto vector = e_.LoadVector(at(PointOf(s, i) * s.pitch + k), type_, depth);
        for (size_t d = 0; d < vector.size(); ++d) values[d][i] = vector[d];
      }
      return values;
    }
    for (int d = 0; d < depth; ++d) {
      for (int i = 0; i < s.count; i += s.together) {
        auto vector =
            e_.LoadVector(at(int64_t{k + d} * s.pitch + PointOf(s, i)), type_, s.together);
        std::ranges::copy(vector, values[d].begin() + i);
      }
    }
    return values;
  }

  Value* MultiplyAdd(Value* x, Value* y, Value* sum) {
    llvm::Type* t = sum->getType();
    if (!t->isFloatingPointTy()) return b_.CreateAdd(b_.CreateMul(x, y), sum);
    if (e_.math().has_fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {t}, {x, y, sum});
    return b_.CreateFAdd(b_.CreateFMul(x, y), sum);
  }

  GpuEmitter& e_;
  Builder& b_;
  const GpuTile& tile_;
  const ElementType type_;
  const int64_t width_;
  Side x_, y_;
  std::vector<llvm::AllocaInst*> sums_;  // by row and column
};

}  // namespace

std::unique_ptr<GemmSums> MakeFmaSums(GpuEmitter& e) { return std::make_unique<FmaSums>(e); }

}  // namespace kiln::codegen
