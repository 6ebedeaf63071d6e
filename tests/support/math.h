// Elementary functions as programs compute them, held against a reference value by value: compiled
// for this machine, for one without AVX-512, without fused multiply-adds, without vectors, and for
// the emulated GPU. The bounds are those of ops/ops.def, which the op reference shows.
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

#include "ops/op.h"
#include "runtime/device.h"
#include "tensor/small_float.h"

namespace kiln::testing {

// Odd, so that loops over vectors have a rest.
inline constexpr int64_t kMathBlock = 65535;

// What is to come out, for types narrower than double: the value in double precision, whose own
// error is nothing to them.
template <typename T>
struct Expected {
  double value = 0;
};
// For double the rounded value and what rounding took off, in units of the value's last place.
template <>
struct Expected<double> {
  double value = 0, rest = 0;
};
// Of a number that is known with more bits than a double has.
Expected<double> RoundedOf(long double value);

// The error in units of the last place that a number of a format has at the true value, subnormals
// included; a number that rounds to infinity counts as the one after the largest. NaN for NaN is
// no error; a NaN that is missing or should not be, a zero, an infinity or a sign that is not
// exact are infinite ones. Results below `least` count as if they were as large, whatever their
// sign: those of functions with zeros that no number is exactly.
double UlpErrorOf(const FloatFormat& format, double got, double expected, double least);
double UlpError(double got, const Expected<double>& expected, double least = 0);
template <typename T>
double UlpError(T got, const Expected<T>& expected, double least = 0) {
  return UlpErrorOf(FormatOf<T>(), static_cast<double>(got), expected.value, least);
}

enum MathVariant { kHost, kWithoutAvx512, kWithoutFma, kScalar, kGpu, kMathVariants };
const char* NameOf(MathVariant variant);

// A function and how many operands it is given: where it takes one more, that is 1.
struct MathOp {
  Opcode opcode;
  int operands = 1;

  std::string name() const;
};

// The function of kMathBlock values of f16, bf16, f32 or f64; null after a failure of the test.
std::unique_ptr<runtime::LoadedExecutable> CompileMath(const MathOp& op, ElementType type,
                                                       MathVariant variant);

// The largest error of a variant, and where.
struct Worst {
  double error = 0;
  double x = 0, y = 0, got = 0, expected = 0;

  void Include(const Worst& other) {
    if (other.error > error) *this = other;
  }
};

// The accuracy of ops.def: the bound, and what results count as at least.
struct MathBound {
  double error, least;
};
MathBound BoundOf(Opcode opcode, ElementType type);
void ReportMath(const MathOp& op, ElementType type, MathVariant variant, const Worst& worst);

template <typename T>
class MathBlock {
 public:
  MathBlock() : data_(static_cast<T*>(std::aligned_alloc(64, kBytes))) {}
  T* get() const { return data_.get(); }

 private:
  static constexpr size_t kBytes = (kMathBlock + 1) * sizeof(T);
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
};

// A block of operands, and what is to come out of them.
template <typename T>
struct MathSample {
  MathBlock<T> x, y, nearest;
  std::vector<Expected<T>> expected = std::vector<Expected<T>>(kMathBlock);

  template <typename Fill, typename Reference>
  void Make(int64_t block, const Fill& fill, const Reference& reference) {
    fill(block, x.get(), y.get());
    reference(x.get(), y.get(), expected.data(), kMathBlock);
    for (int64_t i = 0; i < kMathBlock; ++i) nearest.get()[i] = static_cast<T>(expected[i].value);
  }
  bool Run(runtime::LoadedExecutable& program, int operands, T* out) const {
    const void* arguments[] = {x.get(), y.get()};
    void* results[] = {out};
    return program.Run(std::span(arguments, static_cast<size_t>(operands)), results).ok();
  }
  void Compare(const T* out, const MathBound& bound, Worst& worst) const {
    // Most blocks need no second look.
    if (std::memcmp(out, nearest.get(), kMathBlock * sizeof(T)) == 0) {
      worst.Include({0.5, 0, 0, 0, 0});
      return;
    }
    for (int64_t i = 0; i < kMathBlock; ++i) {
      T got = out[i], close = nearest.get()[i];
      if ((got == close && close != T(0)) || (got != got && close != close)) continue;
      double error = UlpError(got, expected[i], bound.least);
      if (bound.error <= 0.5 && got != close) error = std::numeric_limits<double>::infinity();
      worst.Include({error, static_cast<double>(x.get()[i]), static_cast<double>(y.get()[i]),
                     static_cast<double>(got), expected[i].value});
    }
  }
};

// Runs `blocks` blocks on two threads: fill(number, x, y) writes the operands of one,
// reference(x, y, out, n) what is to come out. No error may be above the op's bound; one of 1/2
// asks for the nearest number itself. Code without vectors must give the same bits as code with
// them. The emulated GPU gets `gpu_blocks` of the blocks.
template <typename T, typename Fill, typename Reference>
void CheckMath(const MathOp& op, ElementType type, int64_t blocks, int64_t gpu_blocks, Fill fill,
               Reference reference) {
  std::unique_ptr<runtime::LoadedExecutable> programs[kMathVariants];
  for (int v = 0; v < kMathVariants; ++v) {
    programs[v] = CompileMath(op, type, static_cast<MathVariant>(v));
    ASSERT_TRUE(programs[v]);
  }
  constexpr int kThreads = 2;
  const MathBound bound = BoundOf(op.opcode, type);
  Worst worst[kThreads][kMathVariants];
  std::atomic<int64_t> next{0}, failures{0}, different{0};
  auto work = [&](int thread) {
    MathSample<T> sample;
    MathBlock<T> out[kMathVariants];
    for (int64_t block; (block = next.fetch_add(1)) < blocks;) {
      sample.Make(block, fill, reference);
      // Code without vectors is slow: an eighth of many blocks does.
      bool scalar = blocks < 4096 || block % 8 == 0;
      Worst own[kMathVariants];
      int last = -1;
      for (int v = 0; v < kMathVariants; ++v) {
        if ((v == kScalar && !scalar) || (v == kGpu && block >= gpu_blocks)) continue;
        if (!sample.Run(*programs[v], op.operands, out[v].get())) ++failures;
        // Variants often agree.
        if (last >= 0 && std::memcmp(out[v].get(), out[last].get(), kMathBlock * sizeof(T)) == 0) {
          own[v] = own[last];
        } else {
          sample.Compare(out[v].get(), bound, own[v]);
        }
        last = v;
        worst[thread][v].Include(own[v]);
      }
      if (!scalar) continue;
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
  EXPECT_EQ(failures.load(), 0) << op.name();
  EXPECT_EQ(different.load(), 0) << op.name()
                                 << ": values that differ between scalar and vector code";
  for (int v = 0; v < kMathVariants; ++v) {
    worst[0][v].Include(worst[1][v]);
    if (v != kGpu || gpu_blocks) ReportMath(op, type, static_cast<MathVariant>(v), worst[0][v]);
  }
}

}  // namespace kiln::testing
