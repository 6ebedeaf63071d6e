// The floating-point environment of kernels and the evaluator.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kiln {

// Round to nearest, all exceptions masked, neither flush-to-zero nor denormals-are-zero: set for
// the scope, and the caller's restored after it.
class DefaultFloatEnvironment {
 public:
#if defined(__x86_64__)
  DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  DefaultFloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (saved_ != kDefault) asm volatile("msr fpcr, %0" : : "r"(kDefault));
  }
  ~DefaultFloatEnvironment() {
    if (saved_ != kDefault) asm volatile("msr fpcr, %0" : : "r"(saved_));
  }
#else
  DefaultFloatEnvironment() {}
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned kDefault = 0x1f80;  // MXCSR after reset
  unsigned saved_;
#elif defined(__aarch64__)
 private:
  static constexpr uint64_t kDefault = 0;
  uint64_t saved_;
#endif
};

}  // namespace kiln
