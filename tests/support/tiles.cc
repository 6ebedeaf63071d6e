#include "support/tiles.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::testing {
namespace {

struct Tile {
  int rows = 0, bytes = 0;
  uint8_t data[16][64] = {};
};
thread_local Tile tiles[8];

void SetSizes(const uint8_t* sizes) {
  if (sizes[0] != 1) std::abort();
  for (int t = 0; t < 8; ++t) {
    tiles[t] = Tile();
    tiles[t].bytes = sizes[16 + 2 * t] | sizes[17 + 2 * t] << 8;
    tiles[t].rows = sizes[48 + t];
    if (tiles[t].rows > 16 || tiles[t].bytes > 64) std::abort();
  }
}

void Release() {
  for (Tile& tile : tiles) tile = Tile();
}

Tile& Known(uint8_t number) {
  if (number >= 8 || tiles[number].rows == 0) std::abort();
  return tiles[number];
}

void Zero(uint8_t number) { std::memset(Known(number).data, 0, sizeof(Tile::data)); }

void Load(uint8_t number, const uint8_t* at, int64_t stride) {
  Zero(number);
  Tile& tile = Known(number);
  for (int row = 0; row < tile.rows; ++row) {
    std::memcpy(tile.data[row], at + row * stride, static_cast<size_t>(tile.bytes));
  }
}

void Store(uint8_t number, uint8_t* at, int64_t stride) {
  const Tile& tile = Known(number);
  for (int row = 0; row < tile.rows; ++row) {
    std::memcpy(at + row * stride, tile.data[row], static_cast<size_t>(tile.bytes));
  }
}

// sums[m][n] += the products of the words a[m][k] and b[k][n].
template <typename T, typename F>
void Multiply(uint8_t sums, uint8_t a, uint8_t b, F add) {
  Tile &to = Known(sums), &x = Known(a), &y = Known(b);
  if (to.rows != x.rows || to.bytes != y.bytes || x.bytes != 4 * y.rows) std::abort();
  for (int m = 0; m < to.rows; ++m) {
    for (int n = 0; n < to.bytes / 4; ++n) {
      T sum;
      std::memcpy(&sum, to.data[m] + 4 * n, sizeof sum);
      for (int k = 0; k < y.rows; ++k) sum = add(sum, x.data[m] + 4 * k, y.data[k] + 4 * n);
      std::memcpy(to.data[m] + 4 * n, &sum, sizeof sum);
    }
  }
}

template <typename A, typename B>
void MultiplyBytes(uint8_t sums, uint8_t a, uint8_t b) {
  Multiply<int32_t>(sums, a, b, [](int32_t sum, const uint8_t* x, const uint8_t* y) {
    auto wrapped = static_cast<uint32_t>(sum);
    for (int i = 0; i < 4; ++i) {
      wrapped += static_cast<uint32_t>(int32_t{static_cast<A>(x[i])} * static_cast<B>(y[i]));
    }
    return static_cast<int32_t>(wrapped);
  });
}

void MultiplyBf16(uint8_t sums, uint8_t a, uint8_t b) {
  auto number = [](const uint8_t* at) {
    return std::bit_cast<float>(static_cast<uint32_t>(at[0]) << 16 | static_cast<uint32_t>(at[1])
                                                                         << 24);
  };
  Multiply<float>(sums, a, b, [&](float sum, const uint8_t* x, const uint8_t* y) {
    for (int i = 0; i < 4; i += 2) sum += number(x + i) * number(y + i);
    return sum;
  });
}

void* FunctionFor(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::x86_ldtilecfg:
      return reinterpret_cast<void*>(SetSizes);
    case llvm::Intrinsic::x86_tilerelease:
      return reinterpret_cast<void*>(Release);
    case llvm::Intrinsic::x86_tilezero:
      return reinterpret_cast<void*>(Zero);
    case llvm::Intrinsic::x86_tileloadd64:
      return reinterpret_cast<void*>(Load);
    case llvm::Intrinsic::x86_tilestored64:
      return reinterpret_cast<void*>(Store);
    case llvm::Intrinsic::x86_tdpbf16ps:
      return reinterpret_cast<void*>(MultiplyBf16);
    case llvm::Intrinsic::x86_tdpbssd:
      return reinterpret_cast<void*>(MultiplyBytes<int8_t, int8_t>);
    case llvm::Intrinsic::x86_tdpbsud:
      return reinterpret_cast<void*>(MultiplyBytes<int8_t, uint8_t>);
    case llvm::Intrinsic::x86_tdpbusd:
      return reinterpret_cast<void*>(MultiplyBytes<uint8_t, int8_t>);
    case llvm::Intrinsic::x86_tdpbuud:
      return reinterpret_cast<void*>(MultiplyBytes<uint8_t, uint8_t>);
    default:
      return nullptr;
  }
}

}  // namespace

void EmulateTiles(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> calls;
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::Instruction& i : block) {
        auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        if (call && FunctionFor(call->getIntrinsicID())) calls.push_back(call);
      }
    }
  }
  for (llvm::IntrinsicInst* call : calls) {
    llvm::IRBuilder<> b(call);
    llvm::Value* address = b.CreateIntToPtr(
        b.getInt64(reinterpret_cast<uint64_t>(FunctionFor(call->getIntrinsicID()))), b.getPtrTy());
    std::vector<llvm::Value*> args(call->arg_begin(), call->arg_end());
    b.CreateCall(call->getFunctionType(), address, args);
    call->eraseFromParent();
  }
}

}  // namespace kiln::testing
