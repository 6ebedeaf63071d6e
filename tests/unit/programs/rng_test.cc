// Random numbers that nobody gave a state: in range, of the right distribution, others each time;
// from the evaluator, and from code for the CPU and the GPU, fused and op by op.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random_state.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"

namespace kiln {
namespace {

// Results of a module without arguments, by what made them.
std::map<std::string, Literal> Everywhere(const std::string& text) {
  auto module = ir::ParseOrDie(text);
  std::map<std::string, Literal> results;
  auto add = [&](std::string name, Result<Literal> result) {
    EXPECT_TRUE(result.ok()) << name << ": " << result.status().ToString() << "\n" << text;
    if (result.ok()) results.emplace(std::move(name), *std::move(result));
  };
  add("evaluator", interp::Evaluate(*module, std::vector<Literal>{}));
  for (bool fuse : {true, false}) {
    const char* how = fuse ? "" : ", op by op";
    add(Cat("CPU", how), testing::RunCompiled(*module, {}, fuse));
    auto loaded = testing::LoadOnGpu(*module, fuse);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (loaded.ok()) add(Cat("GPU", how), testing::RunOnGpu(*loaded, {}));
  }
  return results;
}

std::string Rng(std::string_view type, std::string_view dims, std::string_view a,
                std::string_view b, std::string_view distribution) {
  return Cat("HloModule m\nENTRY e {\n  a = ", type, "[] constant(", a, ")\n  b = ", type,
             "[] constant(", b, ")\n  ROOT r = ", type, dims,
             " rng(a, b), distribution=", distribution, "\n}\n");
}

std::vector<double> Numbers(const Literal& literal) {
  std::vector<double> numbers;
  for (int64_t k = 0; k < literal.shape().num_elements(); ++k)
    numbers.push_back(literal.AsDouble(k));
  return numbers;
}

// The draws differ from run to run, so a bound of chance is one that no run meets in practice.
// Kolmogorov and Smirnov's statistic times the root of the count is above this one for one set of
// numbers of that distribution in 10^9 (2 exp(-2 x^2)).
constexpr double kMaxDistance = 3.3;

double Distance(std::vector<double> numbers, const std::function<double(double)>& distribution) {
  std::ranges::sort(numbers);
  const double n = static_cast<double>(numbers.size());
  double worst = 0;
  for (size_t k = 0; k < numbers.size(); ++k) {
    const double at = distribution(numbers[k]);
    worst = std::max({worst, std::fabs(at - static_cast<double>(k) / n),
                      std::fabs(static_cast<double>(k + 1) / n - at)});
  }
  return worst * std::sqrt(n);
}

TEST(Rng, StatesAreOthersEachTime) {
  std::set<uint64_t> counters;
  for (int k = 0; k < 100; ++k) counters.insert(NextRandomState(1)[1]);
  EXPECT_EQ(counters.size(), 100u);
  EXPECT_EQ(NextRandomState(1)[0], NextRandomState(5)[0]);
}

TEST(Rng, UniformFloats) {
  for (const auto& [type, a, b] : {std::array<std::string_view, 3>{"f32", "-2", "6"},
                                   {"f64", "1", "1.0001"},
                                   {"f32", "-3e38", "3e38"}}) {
    for (const auto& [name, literal] : Everywhere(Rng(type, "[100,80]", a, b, "rng_uniform"))) {
      SCOPED_TRACE(Cat(name, " ", type, " from ", a));
      const double first = std::stod(std::string(a)), end = std::stod(std::string(b));
      std::vector<double> numbers = Numbers(literal);
      EXPECT_GE(*std::ranges::min_element(numbers), static_cast<float>(first));
      EXPECT_LT(*std::ranges::max_element(numbers), end);
      EXPECT_LT(Distance(numbers, [&](double x) { return (x - first) / (end - first); }),
                kMaxDistance);
    }
  }
}

// Most of what is drawn rounds to one of two numbers: the end is not among them.
TEST(Rng, RoundingDoesNotReachTheEnd) {
  for (std::string_view type : {"bf16", "f16", "f8e5m2"}) {
    for (const auto& [name, literal] : Everywhere(Rng(type, "[400]", "4", "5", "rng_uniform"))) {
      for (double x : Numbers(literal)) {
        EXPECT_GE(x, 4) << name << type;
        EXPECT_LT(x, 5) << name << type;
      }
    }
  }
}

TEST(Rng, Normal) {
  for (std::string_view type : {"f32", "f64"}) {
    for (const auto& [name, literal] : Everywhere(Rng(type, "[8000]", "3", "0.5", "rng_normal"))) {
      SCOPED_TRACE(Cat(name, " ", type));
      EXPECT_LT(Distance(Numbers(literal),
                         [](double x) { return std::erfc((3 - x) / 0.5 / std::sqrt(2)) / 2; }),
                kMaxDistance);
    }
  }
  for (const auto& [name, literal] : Everywhere(Rng("f16", "[2000]", "0", "1", "rng_normal"))) {
    double sum = 0, squares = 0;
    for (double x : Numbers(literal)) {
      sum += x;
      squares += x * x;
    }
    // Seven deviations of each.
    EXPECT_NEAR(sum / 2000, 0, 7 / std::sqrt(2000)) << name;
    EXPECT_NEAR(squares / 2000, 1, 7 * std::sqrt(2.0 / 2000)) << name;
  }
}

TEST(Rng, UniformIntegers) {
  for (const auto& [type, a, b] : {std::array<std::string_view, 3>{"s32", "-5", "5"},
                                   {"u8", "250", "255"},
                                   {"s8", "-128", "127"},
                                   {"u64", "18446744073709551605", "18446744073709551615"},
                                   {"s4", "-8", "7"},
                                   {"s64", "-3", "4"}}) {
    for (const auto& [name, literal] : Everywhere(Rng(type, "[5,401]", a, b, "rng_uniform"))) {
      SCOPED_TRACE(Cat(name, " ", type, " from ", a));
      const double first = std::stod(std::string(a));
      const auto range =
          static_cast<size_t>(std::stoull(std::string(b)) - std::stoull(std::string(a)));
      std::vector<double> numbers = Numbers(literal);
      if (type == "u64") {
        // Doubles do not tell these apart.
        std::set<uint64_t> all(literal.values<uint64_t>().begin(),
                               literal.values<uint64_t>().end());
        EXPECT_EQ(all.size(), 10u);
        EXPECT_EQ(*all.rbegin(), 18446744073709551614u);
        continue;
      }
      std::map<double, int> counts;
      for (double x : numbers) ++counts[x];
      EXPECT_LE(counts.size(), range);
      EXPECT_GE(counts.begin()->first, first);
      EXPECT_LT(counts.rbegin()->first, std::stod(std::string(b)));
      // Chi squared, of a mean of range - 1 and a deviation of its root twice; 30 more, for its
      // tail is long where the range is small.
      const double each = 2005.0 / static_cast<double>(range),
                   degrees = static_cast<double>(range) - 1;
      double chi = 0;
      for (const auto& [x, count] : counts) chi += (count - each) * (count - each) / each;
      chi += static_cast<double>(range - counts.size()) * each;
      EXPECT_LT(chi, degrees + 6 * std::sqrt(2 * degrees) + 30);
    }
  }
}

TEST(Rng, NothingBetween) {
  for (const auto& [name, literal] : Everywhere(Rng("s32", "[3]", "7", "7", "rng_uniform"))) {
    EXPECT_EQ(literal.ToString(), "{7, 7, 7}") << name;
  }
  for (const auto& [name, literal] : Everywhere(Rng("f32", "[0,3]", "1", "2", "rng_uniform"))) {
    EXPECT_EQ(literal.shape().num_elements(), 0) << name;
  }
}

// Two ops that are written alike, and one in a loop.
TEST(Rng, EachRunOfAnOpGivesOthers) {
  for (const auto& [name, literal] : Everywhere(R"(HloModule m
less {
  s = (s32[], f64[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f64[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f64[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  a = f64[] constant(0)
  b = f64[] constant(1)
  r = f64[1] rng(a, b), distribution=rng_uniform
  y = f64[4] dynamic-update-slice(x, r, i)
  ROOT t = (s32[], f64[4]) tuple(next, y)
}
ENTRY e {
  zero = s32[] constant(0)
  zeros = f64[4] constant({0, 0, 0, 0})
  s = (s32[], f64[4]) tuple(zero, zeros)
  w = (s32[], f64[4]) while(s), condition=less, body=body
  x = f64[4] get-tuple-element(w), index=1
  a = f64[] constant(0)
  b = f64[] constant(1)
  u = f64[2] rng(a, b), distribution=rng_uniform
  v = f64[2] rng(a, b), distribution=rng_uniform
  ROOT r = f64[8] concatenate(x, u, v), dimensions={0}
})")) {
    std::vector<double> numbers = Numbers(literal);
    EXPECT_EQ(std::set<double>(numbers.begin(), numbers.end()).size(), 8u)
        << name << ": " << literal.ToString();
  }
}

}  // namespace
}  // namespace kiln
