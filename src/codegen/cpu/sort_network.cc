#include "codegen/cpu/sort_network.h"

#include <algorithm>

#include "codegen/control_flow.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

int LanesOf(Value* vector) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
}

Value* Least(Builder& b, Value* x, Value* y) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y);
}
Value* Most(Builder& b, Value* x, Value* y) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y);
}

void Exchange(Builder& b, Value*& low, Value*& high) {
  Value *x = low, *y = high;
  low = Least(b, x, y);
  high = Most(b, x, y);
}

// Pairs of lanes: their numbers differ in the bits of `flip`, and the one with the bit `top` gets
// the greater element.
class LanePairs {
 public:
  LanePairs(Builder& b, llvm::Type* type, Value* flip, Value* top) : b_(b) {
    auto* vector = llvm::cast<llvm::FixedVectorType>(type);
    unsigned lanes = vector->getNumElements();
    std::vector<llvm::Constant*> numbers;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      numbers.push_back(llvm::ConstantInt::get(vector->getElementType(), lane));
    }
    Value* iota = llvm::ConstantVector::get(numbers);
    partners_ = b.CreateXor(iota, b.CreateVectorSplat(lanes, flip));
    Value* bit = b.CreateAnd(iota, b.CreateVectorSplat(lanes, top));
    lower_ = b.CreateICmpEQ(bit, llvm::Constant::getNullValue(type));
    permute_ = vector->getScalarSizeInBits() == 32 ? llvm::Intrinsic::x86_avx512_permvar_si_512
                                                   : llvm::Intrinsic::x86_avx512_permvar_di_512;
  }

  // Each lane of `own` and its partner in `other`.
  Value* Exchange(Value* own, Value* other) {
    Value* partner = b_.CreateIntrinsic(permute_, {}, {other, partners_});
    return b_.CreateSelect(lower_, Least(b_, own, partner), Most(b_, own, partner));
  }

 private:
  Builder& b_;
  Value *partners_, *lower_;
  llvm::Intrinsic::ID permute_;
};

// Batcher's odd-even merge sort of each lane's elements.
void SortLanes(Builder& b, std::vector<Value*>& r) {
  size_t n = r.size();
  for (size_t p = 1; p < n; p *= 2) {
    for (size_t k = p; k >= 1; k /= 2) {
      for (size_t j = k % p; j + k < n; j += 2 * k) {
        for (size_t i = j; i < std::min(j + k, n - k); ++i) {
          if (i / (2 * p) == (i + k) / (2 * p)) Exchange(b, r[i], r[i + k]);
        }
      }
    }
  }
}

}  // namespace

void EmitNetwork(Builder& b, std::vector<Value*>& registers) {
  SortLanes(b, registers);
  const size_t count = registers.size();
  llvm::Type* type = registers[0]->getType();
  llvm::Type* word = type->getScalarType();
  Value *zero = llvm::ConstantInt::get(word, 0), *one = llvm::ConstantInt::get(word, 1);
  Value* lanes = llvm::ConstantInt::get(word, static_cast<uint64_t>(LanesOf(registers[0])));
  // Bitonic merges of twice as many lanes each: only the exchanges that are further than a lane's
  // elements need permutations. These are a loop, as straight code is long and slow to compile.
  std::vector<Value*> state = registers;
  state.push_back(llvm::ConstantInt::get(word, 2));
  state = EmitWhile(
      b, state, [&](const std::vector<Value*>& v) { return b.CreateICmpULE(v[count], lanes); },
      [&](std::vector<Value*>& v) {
        Value* span = v[count];
        LanePairs mirror(b, type, b.CreateSub(span, one), b.CreateLShr(span, 1));
        for (size_t r = 0; r < count; ++r) state[r] = mirror.Exchange(v[r], v[count - 1 - r]);
        state[count] = b.CreateLShr(span, 2);
        v = EmitWhile(
            b, state, [&](const std::vector<Value*>& w) { return b.CreateICmpNE(w[count], zero); },
            [&](std::vector<Value*>& w) {
              LanePairs pairs(b, type, w[count], w[count]);
              for (size_t r = 0; r < count; ++r) w[r] = pairs.Exchange(w[r], w[r]);
              w[count] = b.CreateLShr(w[count], 1);
            });
        for (size_t distance = count / 2; distance >= 1; distance /= 2) {
          for (size_t r = 0; r < count; ++r) {
            if ((r & distance) == 0) Exchange(b, v[r], v[r + distance]);
          }
        }
        v[count] = b.CreateShl(span, 1);
      });
  registers.assign(state.begin(), state.begin() + static_cast<int64_t>(count));
}

std::vector<Value*> EmitWeave(Builder& b, const std::vector<Value*>& registers) {
  if (registers.size() == 1) return registers;
  std::vector<Value*> halves[2], result;
  for (size_t r = 0; r < registers.size(); ++r) halves[r % 2].push_back(registers[r]);
  for (std::vector<Value*>& half : halves) half = EmitWeave(b, half);
  int lanes = LanesOf(registers[0]);
  for (size_t r = 0; r < halves[0].size(); ++r) {
    for (int side : {0, 1}) {
      std::vector<int> order;
      for (int lane = 0; lane < lanes / 2; ++lane) {
        order.push_back(side * lanes / 2 + lane);
        order.push_back(lanes + side * lanes / 2 + lane);
      }
      result.push_back(b.CreateShuffleVector(halves[0][r], halves[1][r], order));
    }
  }
  return result;
}

}  // namespace kiln::codegen
