// The floating-point environment of kernels and the evaluator.
#pragma once

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
#else
  DefaultFloatEnvironment() {}
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

#if defined(__x86_64__)
 private:
  static constexpr unsigned kDefault = 0x1f80;  // MXCSR after reset
  unsigned saved_;
#endif
};

}  // namespace kiln
