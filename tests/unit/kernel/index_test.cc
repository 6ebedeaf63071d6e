#include "kernel/index.h"

#include <gtest/gtest.h>

#include <random>

#include "base/strings.h"
#include "tensor/shape.h"

namespace kiln::kernel {
namespace {

constexpr VariableId kFirst(0), kSecond(1);

std::vector<Index> Variables(const std::vector<int64_t>& dims) {
  std::vector<Index> v;
  for (size_t i = 0; i < dims.size(); ++i) v.push_back(Index::Variable(VariableId(i), dims[i]));
  return v;
}

TEST(Index, ReshapeOfRowMajorIsLinear) {
  // [6,28] read through [6,4,7] has the offset of [6,28].
  Index e = Index::Variable(kFirst, 6) * 28 + Index::Variable(kSecond, 28);
  std::vector<int64_t> dims = {6, 4, 7};
  std::vector<Index> parts = Delinearise(e, dims);
  EXPECT_EQ(parts[0].ToString(), "d0");
  EXPECT_EQ(Linearise(parts, RowMajorStrides(dims)).ToString(), "28*d0 + d1");
}

TEST(Index, MergedVariableSplitsAndRecombines) {
  Index e = Index::Variable(kFirst, 7 * 5 * 3 * 2);
  std::vector<int64_t> dims = {7, 5, 3, 2};
  EXPECT_EQ(Linearise(Delinearise(e, dims), RowMajorStrides(dims)).ToString(), "d0");
}

TEST(Index, StrideOfIsTheCoefficientOrNothing) {
  Index v = Index::Variable(kFirst, 100), w = Index::Variable(kSecond, 10);
  EXPECT_EQ((v * 3 + w).StrideOf(kFirst), 3);
  EXPECT_EQ((w * 3).StrideOf(kFirst), 0);
  EXPECT_EQ(v.FloorDiv(7).StrideOf(kFirst), std::nullopt);
  EXPECT_EQ(v.FloorDiv(7).StrideOf(kSecond), 0);
}

// Simplified division and remainder agree with arithmetic at every point, on random sums.
TEST(Index, DivisionsAgreeWithArithmetic) {
  std::mt19937 random(1);
  auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<int64_t> dims = {pick(1, 6), pick(1, 7), pick(1, 4)};
    auto variables = Variables(dims);
    Index e = pick(-9, 9);
    for (const Index& v : variables) e = e + v * pick(-3, 14);
    int64_t a = pick(1, 12), b = pick(1, 9);
    Index quotient = e.FloorDiv(a), rest = e.Mod(a);
    Index nested = e.FloorDiv(a).FloorDiv(b), both = e.FloorDiv(a).Mod(b) * 2 + e.Mod(a).Mod(b);
    Index back = quotient * a + rest;
    IdVector<VariableId, int64_t> at(3);
    do {
      int64_t value = e.Evaluate(at);
      int64_t q = value >= 0 ? value / a : -((-value + a - 1) / a);
      int64_t q2 = q >= 0 ? q / b : -((-q + b - 1) / b);
      ASSERT_EQ(quotient.Evaluate(at), q) << e.ToString() << " div " << a;
      ASSERT_EQ(rest.Evaluate(at), value - q * a) << e.ToString() << " mod " << a;
      ASSERT_EQ(nested.Evaluate(at), q2) << e.ToString();
      ASSERT_EQ(both.Evaluate(at), (q - q2 * b) * 2 + (value - q * a) % b) << e.ToString();
      ASSERT_EQ(back.Evaluate(at), value) << back.ToString();
      ASSERT_GE(value, e.low());
      ASSERT_LE(value, e.high());
    } while (NextIndex(dims, at));
  }
}

}  // namespace
}  // namespace kiln::kernel
