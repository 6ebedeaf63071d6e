#include "codegen/cpu/sort_network.h"

#include <algorithm>

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

// Each lane beside its partner in `other`, the one whose number differs in the bits of `flip`: of
// the two that with the highest of these bits gets the greater.
Value* ExchangeLanes(Builder& b, Value* own, Value* other, int flip) {
  int lanes = LanesOf(own);
  int top = 1;
  while (2 * top <= flip) top *= 2;
  std::vector<int> partners;
  std::vector<llvm::Constant*> lower;
  for (int lane = 0; lane < lanes; ++lane) {
    partners.push_back(lane ^ flip);
    lower.push_back(b.getInt1((lane & top) == 0));
  }
  Value* partner = b.CreateShuffleVector(other, partners);
  return b.CreateSelect(llvm::ConstantVector::get(lower), Least(b, own, partner),
                        Most(b, own, partner));
}

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
  size_t count = registers.size();
  int lanes = LanesOf(registers[0]);
  // Bitonic merges of twice as many lanes each: only the exchanges that are further than a lane's
  // elements need shuffles.
  for (int span = 2; span <= lanes; span *= 2) {
    std::vector<Value*> mirrored;
    for (size_t r = 0; r < count; ++r) {
      mirrored.push_back(ExchangeLanes(b, registers[r], registers[count - 1 - r], span - 1));
    }
    registers = mirrored;
    for (int distance = span / 4; distance >= 1; distance /= 2) {
      for (Value*& r : registers) r = ExchangeLanes(b, r, r, distance);
    }
    for (size_t distance = count / 2; distance >= 1; distance /= 2) {
      for (size_t r = 0; r < count; ++r) {
        if ((r & distance) == 0) Exchange(b, registers[r], registers[r + distance]);
      }
    }
  }
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
