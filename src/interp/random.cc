// Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). The bits of
// the state for key and counter, and the bits of a block for an element, are as in XLA.
#include "interp/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/random_state.h"
#include "base/strings.h"
#include "interp/narrow.h"
#include "interp/special.h"

namespace kiln::interp {
namespace {

using Pair = std::array<uint32_t, 2>;
using Block = std::array<uint32_t, 4>;

// Threefry-2x32 of 20 rounds.
Pair ThreeFry(uint64_t key, uint64_t counter) {
  constexpr int kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  const uint32_t keys[] = {low, high, 0x1BD11BDA ^ low ^ high};
  uint32_t x = static_cast<uint32_t>(counter) + keys[0];
  uint32_t y = static_cast<uint32_t>(counter >> 32) + keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    x += y;
    y = std::rotl(y, kRotations[round % 8]) ^ x;
    if (round % 4 != 3) continue;
    const uint32_t injection = round / 4 + 1;
    x += keys[injection % 3];
    y += keys[(injection + 1) % 3] + injection;
  }
  return {x, y};
}

// Philox-4x32 of 10 rounds.
Block Philox(uint64_t key, uint64_t low, uint64_t high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Block c = {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
             static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// The lowest bits of `bits`, as element k.
void Put(Literal& to, int64_t k, uint64_t bits) {
  const ElementType type = to.shape().type();
  const int64_t width = BitWidth(type);
  if (width < 8) {
    bits &= (uint64_t{1} << width) - 1;
    if (IsSigned(type) && (bits >> (width - 1)) != 0) bits |= ~uint64_t{0} << width;
  }
  const int64_t bytes = ByteWidth(type);
  std::memcpy(to.data() + k * bytes, &bits, static_cast<size_t>(bytes));
}

uint64_t Joined(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

// Up to 32 bits, an array is split into pairs along a dimension, one block each: the first even
// dimension, or else the longest one, padded by one.
int64_t PairedDimension(const Shape& shape) {
  int64_t longest = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) % 2 == 0) return d;
    if (shape.dim(d) > shape.dim(longest)) longest = d;
  }
  return longest;
}

void FillThreeFry(const uint64_t* state, Literal& next, Literal& bits) {
  const Shape& shape = bits.shape();
  const uint64_t key = state[0];
  uint64_t blocks = 0;
  if (BitWidth(shape.type()) == 64) {
    blocks = static_cast<uint64_t>(shape.num_elements());
    for (uint64_t k = 0; k < blocks; ++k) {
      const Pair p = ThreeFry(key, state[1] + k);
      Put(bits, static_cast<int64_t>(k), Joined(p[0], p[1]));
    }
  } else if (shape.rank() == 0) {
    blocks = 1;
    Put(bits, 0, ThreeFry(key, state[1])[0]);
  } else {
    const int64_t paired = PairedDimension(shape);
    const std::vector<int64_t> dims = shape.dims();
    std::vector<int64_t> halves = dims;
    halves[static_cast<size_t>(paired)] = (shape.dim(paired) + 1) / 2;
    blocks = static_cast<uint64_t>(Product(halves));
    const std::vector<int64_t> strides = RowMajorStrides(halves);
    std::vector<int64_t> index(dims.size());
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      uint64_t block = 0;
      for (size_t d = 0; d < dims.size(); ++d) {
        int64_t at = static_cast<int64_t>(d) == paired ? index[d] / 2 : index[d];
        block += static_cast<uint64_t>(at * strides[d]);
      }
      Put(bits, k, ThreeFry(key, state[1] + block)[index[static_cast<size_t>(paired)] % 2]);
      NextIndex(dims, index);
    }
  }
  next.values<uint64_t>()[1] = state[1] + blocks;
}

void FillPhilox(std::span<const uint64_t> state, Literal& next, Literal& bits) {
  const bool wide_counter = state.size() == 3;
  const uint64_t low = state[1], high = wide_counter ? state[2] : state[0];
  const bool doubles = BitWidth(bits.shape().type()) == 64;
  const int64_t n = bits.shape().num_elements(), each = doubles ? 2 : 4;
  const uint64_t blocks = static_cast<uint64_t>((n + each - 1) / each);
  for (int64_t k = 0; k < n; ++k) {
    const uint64_t block = static_cast<uint64_t>(k / each), at = low + block;
    const Block b = Philox(state[0], at, high + (at < low ? 1 : 0));
    const size_t part = static_cast<size_t>(k % each);
    Put(bits, k, doubles ? Joined(b[2 * part], b[2 * part + 1]) : b[part]);
  }
  const uint64_t after = low + blocks;
  next.values<uint64_t>()[1] = after;
  if (wide_counter) next.values<uint64_t>()[2] = high + (after < low ? 1 : 0);
}

// From a to below b, integers as s64 that wraps.
Literal UniformIntegers(const Literal& a, const Literal& b, std::span<const uint64_t> bits,
                        const Shape& shape) {
  auto wide = [](const Literal& x) {
    uint64_t value = 0;
    const ElementType type = x.shape().type();
    Convert(type, x.data(), false, ElementType::kU64, reinterpret_cast<std::byte*>(&value), 1);
    return value;
  };
  const uint64_t first = wide(a), range = std::max<uint64_t>(wide(b) - first, 1);
  Literal numbers(Shape(ElementType::kU64, shape.dimensions()));
  for (size_t k = 0; k < bits.size(); ++k) {
    numbers.values<uint64_t>()[k] = first + bits[k] % range;
  }
  return numbers;
}

Literal Floats(const Literal& a, const Literal& b, bool is_normal, std::span<const uint64_t> bits,
               const Shape& shape) {
  const double x = a.AsDouble(0), y = b.AsDouble(0);
  Literal numbers(Shape(ElementType::kF64, shape.dimensions()));
  double* next = numbers.values<double>().data();
  for (uint64_t word : bits) {
    if (is_normal) {
      // The quantile of a number between 0 and 1.
      const double u = std::ldexp(static_cast<double>(word >> 12) + 0.5, -52);
      *next++ = x + y * std::numbers::sqrt2 * static_cast<double>(ErfInv(2 * u - 1));
    } else {
      const double u = std::ldexp(static_cast<double>(word >> 11), -53);
      *next++ = x * (1 - u) + y * u;
    }
  }
  return numbers;
}

}  // namespace

Result<Literal> EvaluateRng(const ir::Instruction& i, std::span<const Literal* const> operands) {
  const Literal &a = *operands[0], &b = *operands[1];
  const bool is_normal = i.attributes().Text(Attr::kDistribution) == "rng_normal";
  std::vector<uint64_t> bits(static_cast<size_t>(i.shape().num_elements()));
  const std::array<uint64_t, 2> state = NextRandomState(i.shape().num_elements());
  for (size_t k = 0; k < bits.size(); ++k) {
    const Block block = Philox(state[0], state[1] + k, state[0]);
    bits[k] = Joined(block[0], block[1]);
  }
  Literal out(i.shape());
  const ElementType type = i.shape().type();
  const Literal numbers = IsFloat(type) ? Floats(a, b, is_normal, bits, i.shape())
                                        : UniformIntegers(a, b, bits, i.shape());
  Convert(numbers.shape().type(), numbers.data(), false, type, out.data(),
          i.shape().num_elements());
  if (IsFloat(type) && !is_normal) {
    // Results rounded to b.
    const size_t width = static_cast<size_t>(ByteWidth(type));
    for (int64_t k = 0; k < i.shape().num_elements(); ++k) {
      if (out.AsDouble(k) < b.AsDouble(0)) continue;
      std::memcpy(out.data() + static_cast<size_t>(k) * width, a.data(), width);
    }
  }
  return out;
}

Literal EvaluateRngState(const ir::Instruction& i) {
  Literal out(i.shape());
  const std::array<uint64_t, 2> state = NextRandomState(i.attributes().Int(Attr::kDelta));
  std::ranges::copy(state, out.values<uint64_t>().begin());
  return out;
}

Result<Literal> EvaluateRngBitGenerator(const ir::Instruction& i,
                                        std::span<const Literal* const> operands) {
  const Literal& state = *operands[0];
  Literal next = state, bits(i.shape().elements()[1]);
  if (i.attributes().Text(Attr::kAlgorithm) == "rng_three_fry") {
    FillThreeFry(state.values<uint64_t>().data(), next, bits);
  } else {
    FillPhilox(state.values<uint64_t>(), next, bits);
  }
  std::vector<Literal> both;
  both.push_back(std::move(next));
  both.push_back(std::move(bits));
  return Literal::Tuple(std::move(both));
}

}  // namespace kiln::interp
