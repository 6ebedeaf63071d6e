#include "support/tiles.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "target/target.h"

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

float Bf16(const uint8_t* at) {
  return std::bit_cast<float>(static_cast<uint32_t>(at[0]) << 16 | static_cast<uint32_t>(at[1])
                                                                       << 24);
}

float F16(const uint8_t* at) {
  const int bits = at[0] | at[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return bits >> 15 ? -size : size;
}

template <float (*number)(const uint8_t*)>
void MultiplyHalves(uint8_t sums, uint8_t a, uint8_t b) {
  Multiply<float>(sums, a, b, [](float sum, const uint8_t* x, const uint8_t* y) {
    for (int i = 0; i < 4; i += 2) sum += number(x + i) * number(y + i);
    return sum;
  });
}

// Vectors of 32 bytes: sums[i] += the products of four bytes each.
template <typename A, typename B>
void MultiplyVectors(uint32_t* sums, const A* x, const B* y) {
  for (int i = 0; i < 32; ++i) sums[i / 4] += static_cast<uint32_t>(int32_t{x[i]} * y[i]);
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
      return reinterpret_cast<void*>(MultiplyHalves<Bf16>);
    case llvm::Intrinsic::x86_tdpfp16ps:
      return reinterpret_cast<void*>(MultiplyHalves<F16>);
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

void* VectorFunctionFor(llvm::Intrinsic::ID id) {
  switch (id) {
    case llvm::Intrinsic::x86_avx512_vpdpbusd_256:
      return reinterpret_cast<void*>(MultiplyVectors<uint8_t, int8_t>);
    case llvm::Intrinsic::x86_avx2_vpdpbssd_256:
      return reinterpret_cast<void*>(MultiplyVectors<int8_t, int8_t>);
    case llvm::Intrinsic::x86_avx2_vpdpbsud_256:
      return reinterpret_cast<void*>(MultiplyVectors<int8_t, uint8_t>);
    case llvm::Intrinsic::x86_avx2_vpdpbuud_256:
      return reinterpret_cast<void*>(MultiplyVectors<uint8_t, uint8_t>);
    default:
      return nullptr;
  }
}

// By way of memory, as vectors would need the same conventions of calls on both sides.
llvm::Value* CallOnVectors(llvm::IRBuilder<>& b, llvm::IntrinsicInst* call, llvm::Value* address) {
  llvm::BasicBlock& entry = call->getFunction()->getEntryBlock();
  llvm::IRBuilder<> first(&entry, entry.getFirstInsertionPt());
  std::vector<llvm::Value*> places;
  for (llvm::Value* argument : call->args()) {
    places.push_back(first.CreateAlloca(argument->getType()));
    b.CreateStore(argument, places.back());
  }
  std::vector<llvm::Type*> types(places.size(), b.getPtrTy());
  b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), types, false), address, places);
  return b.CreateLoad(call->getType(), places[0]);
}

}  // namespace

void EmulateUnits(llvm::Module& module) {
  const target::Cpu machine = target::HostCpu().cpu;
  const bool has_any = machine.Has("avxvnniint8"), has_mixed = machine.Has("avxvnni");
  std::vector<std::pair<llvm::IntrinsicInst*, void*>> calls;
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      for (llvm::Instruction& i : block) {
        auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
        if (!call) continue;
        const llvm::Intrinsic::ID id = call->getIntrinsicID();
        void* function = FunctionFor(id);
        const bool is_mixed = id == llvm::Intrinsic::x86_avx512_vpdpbusd_256;
        if (!function && !(is_mixed ? has_mixed : has_any)) function = VectorFunctionFor(id);
        if (function) calls.emplace_back(call, function);
      }
    }
  }
  for (auto [call, function] : calls) {
    llvm::IRBuilder<> b(call);
    llvm::Value* address =
        b.CreateIntToPtr(b.getInt64(reinterpret_cast<uint64_t>(function)), b.getPtrTy());
    if (call->getType()->isVoidTy()) {
      std::vector<llvm::Value*> args(call->arg_begin(), call->arg_end());
      b.CreateCall(call->getFunctionType(), address, args);
    } else {
      call->replaceAllUsesWith(CallOnVectors(b, call, address));
    }
    call->eraseFromParent();
  }
}

}  // namespace kiln::testing
