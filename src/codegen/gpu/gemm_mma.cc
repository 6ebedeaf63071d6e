// Gemms by tensor cores: each warp multiplies some rows by some columns, of which its lanes hold
// fragments.

#include <algorithm>

#include "codegen/gpu/gemm.h"

namespace kiln::codegen {
namespace {

using kernel::GpuPiece;
using kernel::GpuTile;
using kernel::GpuUnit;
using llvm::Value;

Mma MmaOf(GpuUnit unit) {
  switch (unit) {
    case GpuUnit::kF16K8:
      return Mma::kM16N8K8F16;
    case GpuUnit::kBF16:
      return Mma::kM16N8K16BF16;
    case GpuUnit::kTF32:
      return Mma::kM16N8K8TF32;
    case GpuUnit::kS8:
      return Mma::kM16N8K32S8;
    case GpuUnit::kF64:
      return Mma::kM8N8K4F64;
    case GpuUnit::kFma:
    case GpuUnit::kF16:
      break;
  }
  return Mma::kM16N8K16F16;
}

class MmaSums : public GemmSums {
 public:
  explicit MmaSums(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        tile_(e.schedule().gemm),
        mma_(MmaOf(tile_.unit)),
        shape_(ShapeOf(mma_)),
        blocks_m_(tile_.part_m / shape_.m),
        blocks_n_(tile_.part_n / shape_.n) {
    const int warps_n = tile_.n / tile_.part_n;
    lane_ = b_.CreateURem(e.thread(), e.Int(kWarp));
    Value* warp = b_.CreateUDiv(e.thread(), e.Int(kWarp));
    warp_row_ = b_.CreateUDiv(warp, e.Int(warps_n));
    warp_column_ = b_.CreateURem(warp, e.Int(warps_n));
    x_ = SideOf(tile_.x, true, b_.CreateMul(warp_row_, e.Int(tile_.part_m)));
    y_ = SideOf(tile_.y, false, b_.CreateMul(warp_column_, e.Int(tile_.part_n)));
    for (int i = 0; i < blocks_m_ * blocks_n_ * shape_.c; ++i) {
      sums_.push_back(e_.NewSlot(RegisterType(e_.context(), tile_.sum)));
    }
  }

  void Begin(Value* x, Value* y) override {
    for (llvm::AllocaInst* sum : sums_) {
      b_.CreateStore(IdentityOf(e_.context(), kernel::Combiner::Kind::kSum, tile_.sum), sum);
    }
    Keep(x_, FragmentsOf(x_, From(x_, x), 0));
    Keep(y_, FragmentsOf(y_, From(y_, y), 0));
  }

  // Each step's fragments are loaded before the multiplication of the preceding step's, including
  // the first ones of the next pieces.
  void Multiply(Value* x, Value* y, Value* next_x, Value* next_y,
                const std::function<void()>& turn) override {
    x = From(x_, x);
    y = From(y_, y);
    const int steps = tile_.k / StepOf();
    std::vector<Fragment> xs = Kept(x_), ys = Kept(y_);
    for (int s = 0; s < steps; ++s) {
      const bool last = s + 1 == steps;
      if (last) turn();
      auto coming_x = FragmentsOf(x_, last ? From(x_, next_x) : x, last ? 0 : s + 1);
      auto coming_y = FragmentsOf(y_, last ? From(y_, next_y) : y, last ? 0 : s + 1);
      MultiplyStep(xs, ys);
      xs = std::move(coming_x);
      ys = std::move(coming_y);
    }
    Keep(x_, xs);
    Keep(y_, ys);
  }

  // Of 16 rows that an mma has, a lane has pairs of columns in two, eight apart.
  void Write(int pass, Value* to) override {
    const int blocks = blocks_m_ / tile_.passes, rows = blocks * shape_.m;
    const int pitch = tile_.sum_pitch();
    llvm::Type* memory = MemoryType(e_.context(), tile_.sum);
    Value* row =
        b_.CreateAdd(b_.CreateMul(warp_row_, e_.Int(rows)), b_.CreateUDiv(lane_, e_.Int(4)));
    Value* column = b_.CreateAdd(b_.CreateMul(warp_column_, e_.Int(tile_.part_n)),
                                 b_.CreateMul(b_.CreateURem(lane_, e_.Int(4)), e_.Int(2)));
    to = b_.CreateGEP(memory, to, b_.CreateAdd(b_.CreateMul(row, e_.Int(pitch)), column));
    for (int i = 0; i < blocks; ++i) {
      for (int j = 0; j < blocks_n_; ++j) {
        for (int c = 0; c < shape_.c; c += 2) {
          std::vector<Value*> pair;
          for (int h = 0; h < 2; ++h) {
            llvm::AllocaInst* slot = SumOf(pass * blocks + i, j, c + h);
            pair.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
          }
          int64_t at = int64_t{i * shape_.m + c / 2 * 8} * pitch + j * shape_.n;
          e_.StoreVector(pair, b_.CreateConstGEP1_64(memory, to, static_cast<uint64_t>(at)),
                         tile_.sum);
        }
      }
    }
  }

  int segment() const override { return tile_.part_m; }

 private:
  using Fragment = std::vector<Value*>;

  // How a lane finds its fragments in a piece.
  struct Side {
    bool is_x;
    bool along_k;
    bool by_matrix;                       // load_matrix brings them, else each element is loaded
    int64_t pitch, width;                 // bytes of a row and of an element
    int block, blocks;                    // points of an mma, and mmas side by side
    Value* offset;                        // bytes to what the lane reads first
    std::vector<llvm::AllocaInst*> kept;  // the fragments that are multiplied next
  };

  // Elements of k that are read at once: rows of 16 bytes, two of them, where load_matrix brings
  // them.
  int StepOf() const {
    return tile_.unit == GpuUnit::kF64 ? shape_.k : 32 / static_cast<int>(ByteWidth(tile_.x.type));
  }

  Side SideOf(const GpuPiece& piece, bool is_x, Value* first) {
    Side s;
    s.is_x = is_x;
    s.along_k = piece.along_k;
    s.width = ByteWidth(piece.type);
    s.pitch = piece.pitch * s.width;
    s.block = is_x ? shape_.m : shape_.n;
    s.blocks = is_x ? blocks_m_ : blocks_n_;
    s.by_matrix = tile_.unit != GpuUnit::kF64 && (s.along_k || s.width == 2);
    Value *point = nullptr, *k = nullptr;  // of the lane; k in bytes where rows go along it
    if (s.by_matrix) {
      // Four matrices of eight rows of 16 bytes. Those of x are rows 0 and 8, then the same further
      // along k; those of y go along k first.
      Value* in_matrix = b_.CreateURem(lane_, e_.Int(8));
      Value* low = b_.CreateURem(b_.CreateUDiv(lane_, e_.Int(8)), e_.Int(2));
      Value* high = b_.CreateUDiv(lane_, e_.Int(16));
      Value *by_point = is_x ? low : high, *by_k = is_x ? high : low;
      if (s.along_k) {
        point = b_.CreateAdd(b_.CreateMul(by_point, e_.Int(8)), in_matrix);
        k = b_.CreateMul(by_k, e_.Int(16 / s.width));
      } else {
        point = b_.CreateMul(by_point, e_.Int(8));
        k = b_.CreateAdd(b_.CreateMul(by_k, e_.Int(8)), in_matrix);
      }
    } else {
      point = b_.CreateUDiv(lane_, e_.Int(4));
      k = b_.CreateURem(lane_, e_.Int(4));
    }
    point = b_.CreateAdd(point, first);
    Value *row = s.along_k ? point : k, *column = s.along_k ? k : point;
    s.offset =
        b_.CreateAdd(b_.CreateMul(row, e_.Int(s.pitch)), b_.CreateMul(column, e_.Int(s.width)));
    return s;
  }

  Value* At(const Side& s, Value* base, int64_t point, int64_t k) {
    int64_t bytes = s.along_k ? point * s.pitch + k * s.width : k * s.pitch + point * s.width;
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(bytes));
  }

  Value* From(const Side& s, Value* piece) { return b_.CreateGEP(b_.getInt8Ty(), piece, s.offset); }

  void Keep(Side& s, const std::vector<Fragment>& fragments) {
    size_t i = 0;
    for (const Fragment& fragment : fragments) {
      for (Value* v : fragment) {
        if (i == s.kept.size()) s.kept.push_back(e_.NewSlot(v->getType()));
        b_.CreateStore(v, s.kept[i++]);
      }
    }
  }

  std::vector<Fragment> Kept(const Side& s) {
    std::vector<Fragment> fragments(static_cast<size_t>(s.blocks));
    const size_t size = s.kept.size() / fragments.size();
    for (size_t i = 0; i < s.kept.size(); ++i) {
      fragments[i / size].push_back(b_.CreateLoad(s.kept[i]->getAllocatedType(), s.kept[i]));
    }
    return fragments;
  }

  void MultiplyStep(const std::vector<Fragment>& xs, const std::vector<Fragment>& ys) {
    for (int part = 0; part < StepOf() / shape_.k; ++part) {
      for (int i = 0; i < blocks_m_; ++i) {
        for (int j = 0; j < blocks_n_; ++j) {
          // There and back, so that fragments are used again at once.
          int column = i % 2 == 0 ? j : blocks_n_ - 1 - j;
          MultiplyAdd(i, column, Part(xs[i], part, shape_.a), Part(ys[column], part, shape_.b));
        }
      }
    }
  }

  // The fragments of a step of k, by mma.
  std::vector<Fragment> FragmentsOf(const Side& s, Value* base, int step) {
    const int first_k = step * StepOf();
    std::vector<Fragment> fragments;
    if (!s.by_matrix) {
      for (int i = 0; i < s.blocks; ++i) {
        Fragment& fragment = fragments.emplace_back();
        for (int k = 0; k < StepOf(); k += 4) {
          for (int row = 0; row < s.block; row += 8) {
            Value* at = At(s, base, i * s.block + row, first_k + k);
            fragment.push_back(LoadElement(s, at));
          }
        }
      }
      return fragments;
    }
    for (int first = 0; first < s.blocks * s.block; first += 16) {
      Fragment four = e_.gpu().LoadMatrix(At(s, base, first, first_k), !s.along_k);
      if (tile_.unit == GpuUnit::kTF32) {
        for (Value*& v : four) v = RoundedToTF32(v);
      }
      if (s.is_x) {
        fragments.push_back(four);
      } else {
        fragments.push_back({four[0], four[1]});
        fragments.push_back({four[2], four[3]});
      }
    }
    return fragments;
  }

  Value* LoadElement(const Side& s, Value* at) {
    llvm::Type* type = s.width == 8 ? b_.getDoubleTy() : static_cast<llvm::Type*>(b_.getInt32Ty());
    Value* v = b_.CreateAlignedLoad(type, at, llvm::Align(static_cast<uint64_t>(s.width)));
    return tile_.unit == GpuUnit::kTF32 ? RoundedToTF32(v) : v;
  }

  // The machine leaves out the low 13 bits: half of the last one that counts is added first, to all
  // but NaNs.
  Value* RoundedToTF32(Value* bits) {
    Value* f = b_.CreateBitCast(bits, b_.getFloatTy());
    return b_.CreateSelect(b_.CreateFCmpUNO(f, f), bits, b_.CreateAdd(bits, b_.getInt32(0x1000)));
  }

  // The registers of one mma among those of a step that has several along k.
  static std::span<Value* const> Part(const Fragment& fragment, int part, int count) {
    return std::span(fragment).subspan(static_cast<size_t>(part * count),
                                       static_cast<size_t>(count));
  }

  llvm::AllocaInst* SumOf(int i, int j, int c) { return sums_[(i * blocks_n_ + j) * shape_.c + c]; }

  void MultiplyAdd(int i, int j, std::span<Value* const> x, std::span<Value* const> y) {
    std::vector<Value*> sums;
    for (int c = 0; c < shape_.c; ++c) {
      llvm::AllocaInst* slot = SumOf(i, j, c);
      sums.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
    }
    sums = e_.gpu().MatrixProduct(mma_, x, y, sums);
    for (int c = 0; c < shape_.c; ++c) b_.CreateStore(sums[c], SumOf(i, j, c));
  }

  GpuEmitter& e_;
  Builder& b_;
  const GpuTile& tile_;
  const Mma mma_;
  const MmaShape& shape_;
  const int blocks_m_, blocks_n_;  // of mmas that a warp has beside each other
  Value *lane_, *warp_row_, *warp_column_;
  Side x_, y_;
  std::vector<llvm::AllocaInst*> sums_;  // by row and column of mmas, and register
};

}  // namespace

std::unique_ptr<GemmSums> MakeMmaSums(GpuEmitter& e) { return std::make_unique<MmaSums>(e); }

}  // namespace kiln::codegen
