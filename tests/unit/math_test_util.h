// Elementary functions as programs compute them, held against a reference value by value: compiled
// for this machine, without fused multiply-adds, and without vectors.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/cpu/executable.h"

namespace kiln::testing {

// Odd, so that loops over vectors have a rest.
inline constexpr int64_t kMathBlock = 65535;

// What is to come out, for T = float: the value in double precision, whose own error is nothing to
// a float.
template <typename T>
struct Expected {
  double value = 0;
};
// For double the rounded value and what rounding took off, in units of the value's last place.
template <>
struct Expected<double> {
  double value = 0, rest = 0;
};

// The error in units of the last place that a number of T has at the true value, subnormals
// included; a number that rounds to infinity counts as the one after the largest. NaN for NaN is
// no error; a NaN that is missing or should not be, a zero, an infinity or a sign that is not
// exact are infinite ones.
double UlpError(float got, const Expected<float>& expected);
double UlpError(double got, const Expected<double>& expected);

enum MathVariant { kHost, kWithoutFma, kScalar, kMathVariants };
const char* NameOf(MathVariant variant);

// `op` on one or two operands of kMathBlock values; null after a failure of the test.
template <typename T>
std::unique_ptr<device::CpuExecutable> CompileMath(const std::string& op, int operands,
                                                   MathVariant variant);

// The largest error of a variant, and where.
struct Worst {
  double error = 0;
  double x = 0, y = 0, got = 0, expected = 0;

  void Include(const Worst& other) {
    if (other.error > error) *this = other;
  }
};

template <typename T>
class MathBlock {
 public:
  MathBlock() : data_(static_cast<T*>(std::aligned_alloc(64, (kMathBlock + 1) * sizeof(T)))) {}
  T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
};

void ReportMath(const std::string& op, int operands, MathVariant variant, const Worst& worst,
                double bound);

// Runs `blocks` blocks on two threads: fill(number, x, y) writes the operands of one,
// reference(x, y, out, n) what is to come out. No error may be above `bound`; one of 1/2 asks for
// the nearest number itself. Code without vectors must give the same bits as code with them.
template <typename T, typename Fill, typename Reference>
void CheckMath(const std::string& op, int operands, int64_t blocks, double bound, Fill fill,
               Reference reference) {
  std::unique_ptr<device::CpuExecutable> executables[kMathVariants];
  for (int v = 0; v < kMathVariants; ++v) {
    executables[v] = CompileMath<T>(op, operands, static_cast<MathVariant>(v));
    ASSERT_TRUE(executables[v]);
  }
  constexpr int kThreads = 2;
  constexpr size_t kBytes = kMathBlock * sizeof(T);
  Worst worst[kThreads][kMathVariants];
  std::atomic<int64_t> next{0}, failures{0}, different{0};
  auto work = [&](int thread) {
    MathBlock<T> x, y, rounded, out[kMathVariants];
    std::vector<Expected<T>> expected(kMathBlock);
    for (int64_t block; (block = next.fetch_add(1)) < blocks;) {
      fill(block, x.get(), y.get());
      reference(x.get(), y.get(), expected.data(), kMathBlock);
      for (int64_t i = 0; i < kMathBlock; ++i) {
        rounded.get()[i] = static_cast<T>(expected[i].value);
      }
      // Code without vectors is slow: an eighth of many blocks does.
      bool scalar = blocks < 4096 || block % 8 == 0;
      for (int v = 0; v < (scalar ? kMathVariants : kScalar); ++v) {
        const void* arguments[] = {x.get(), y.get()};
        void* results[] = {out[v].get()};
        if (!executables[v]->Run(std::span(arguments, static_cast<size_t>(operands)), results).ok())
          ++failures;
        const T* got = out[v].get();
        // Most blocks need no second look.
        if (std::memcmp(got, rounded.get(), kBytes) == 0) {
          worst[thread][v].Include({0.5, 0, 0, 0, 0});
          continue;
        }
        for (int64_t i = 0; i < kMathBlock; ++i) {
          T nearest = rounded.get()[i];
          if ((got[i] == nearest && nearest != 0) || (got[i] != got[i] && nearest != nearest)) {
            continue;
          }
          double error = UlpError(got[i], expected[i]);
          if (bound <= 0.5 && got[i] != nearest) {
            error = std::numeric_limits<double>::infinity();
          }
          if (error > worst[thread][v].error) {
            worst[thread][v] = {error, x.get()[i], operands == 2 ? y.get()[i] : 0, got[i],
                                expected[i].value};
          }
        }
      }
      if (!scalar || std::memcmp(out[kHost].get(), out[kScalar].get(), kBytes) == 0) continue;
      for (int64_t i = 0; i < kMathBlock; ++i) {
        T a = out[kHost].get()[i], b = out[kScalar].get()[i];
        // The sign and the payload of a NaN mean nothing.
        if (std::memcmp(&a, &b, sizeof(T)) != 0 && (a == a || b == b)) ++different;
      }
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(failures.load(), 0) << op;
  EXPECT_EQ(different.load(), 0) << op << ": values that differ between scalar and vector code";
  for (int v = 0; v < kMathVariants; ++v) {
    worst[0][v].Include(worst[1][v]);
    ReportMath(op, operands, static_cast<MathVariant>(v), worst[0][v], bound);
  }
}

}  // namespace kiln::testing
