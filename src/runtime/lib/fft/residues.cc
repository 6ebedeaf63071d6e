#include "runtime/lib/fft/residues.h"

#include <algorithm>

namespace kiln::runtime::lib::fft {
namespace {

std::vector<int64_t> PrimeFactors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t k = 2; k <= n / k; ++k) {
    if (n % k != 0) continue;
    factors.push_back(k);
    while (n % k == 0) n /= k;
  }
  if (n > 1) factors.push_back(n);
  return factors;
}

int64_t Times(int64_t a, int64_t b, int64_t p) {
  return static_cast<int64_t>(static_cast<__int128>(a) * b % p);
}

int64_t Power(int64_t base, int64_t exponent, int64_t p) {
  int64_t power = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) power = Times(power, base, p);
    base = Times(base, base, p);
  }
  return power;
}

}  // namespace

bool IsPrime(int64_t n) {
  const std::vector<int64_t> factors = PrimeFactors(n);
  return factors.size() == 1 && factors[0] == n;
}

// g is a primitive root unless g^((p - 1) / q) is 1 for a prime factor q of p - 1.
std::vector<uint32_t> PowersOfPrimitiveRoot(int64_t p) {
  const std::vector<int64_t> factors = PrimeFactors(p - 1);
  int64_t g = 2;
  while (std::ranges::any_of(factors, [&](int64_t q) { return Power(g, (p - 1) / q, p) == 1; })) {
    ++g;
  }
  std::vector<uint32_t> powers;
  powers.reserve(static_cast<size_t>(p - 1));
  for (int64_t power = 1, k = 0; k < p - 1; ++k, power = Times(power, g, p)) {
    powers.push_back(static_cast<uint32_t>(power));
  }
  return powers;
}

}  // namespace kiln::runtime::lib::fft
