#include "ir/elided.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::ir {
namespace {

// SplitMix64, whose numbers are the same everywhere.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  size_t Below(size_t count) { return static_cast<size_t>((Next() >> 32) * count >> 32); }

 private:
  uint64_t state_;
};

}  // namespace

void FillSeeded(Literal& literal, uint64_t seed, int64_t bound) {
  const ElementType type = literal.shape().type();
  const ElementType part = IsComplex(type) ? PartOf(type) : type;
  const int64_t bits = BitWidth(type) - (IsSigned(type) ? 1 : 0);
  std::vector<Literal> choices;
  if (IsPred(type) || IsInteger(type)) {
    const int64_t count = std::min(bound, int64_t{1} << std::min<int64_t>(bits, 3));
    for (int64_t k = 0; k < count; ++k) {
      choices.push_back(Literal::ScalarOf(type, static_cast<double>(k)));
    }
  } else {
    constexpr int kCount = 251;
    for (int k = 0; k < kCount; ++k) {
      const double value = 2.0 * k / (kCount - 1) - 1;
      // A type of powers of two alone.
      const bool powers = type == ElementType::kF8E8M0FNU;
      choices.push_back(Literal::ScalarOf(part, powers ? std::exp2(k % 6 - 3) : value));
    }
  }
  const auto width = static_cast<size_t>(choices[0].byte_size());
  Draws draws(seed);
  std::byte* const end = literal.data() + literal.byte_size();
  for (std::byte* at = literal.data(); at != end; at += width) {
    std::memcpy(at, choices[draws.Below(choices.size())].data(), width);
  }
}

}  // namespace kiln::ir
