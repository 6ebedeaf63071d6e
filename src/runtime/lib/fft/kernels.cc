#include "runtime/lib/fft/kernels.h"

#include <initializer_list>

#define KILN_FFT_NAMESPACE base
#define KILN_FFT_NAME "16 bytes"
#define KILN_FFT_BYTES 16
#include "runtime/lib/fft/kernels_impl.h"

namespace kiln::runtime::lib::fft {

#if defined(__x86_64__)
// kernels_avx2.cc, kernels_avx512.cc.
namespace avx2 {
extern const Kernels<float>* const f32;
extern const Kernels<double>* const f64;
}  // namespace avx2
namespace avx512 {
extern const Kernels<float>* const f32;
extern const Kernels<double>* const f64;
}  // namespace avx512
#endif

namespace {

template <typename T>
const Kernels<T>* Of(const Kernels<float>* f32, const Kernels<double>* f64) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return f32;
  } else {
    return f64;
  }
}

}  // namespace

template <typename T>
const Kernels<T>* KernelsOf(Vectors vectors) {
#if defined(__x86_64__)
  if (vectors == Vectors::kAvx2) {
    const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has ? Of<T>(avx2::f32, avx2::f64) : nullptr;
  }
  if (vectors == Vectors::kAvx512) {
    return __builtin_cpu_supports("avx512f") ? Of<T>(avx512::f32, avx512::f64) : nullptr;
  }
#endif
  return vectors == Vectors::kBase ? Of<T>(base::f32, base::f64) : nullptr;
}
template const Kernels<float>* KernelsOf<float>(Vectors);
template const Kernels<double>* KernelsOf<double>(Vectors);

template <typename T>
const Kernels<T>& KernelsOfMachine() {
  static const Kernels<T>& best = [&]() -> const Kernels<T>& {
    for (Vectors vectors : {Vectors::kAvx512, Vectors::kAvx2}) {
      if (const Kernels<T>* kernels = KernelsOf<T>(vectors)) return *kernels;
    }
    return *KernelsOf<T>(Vectors::kBase);
  }();
  return best;
}
template const Kernels<float>& KernelsOfMachine<float>();
template const Kernels<double>& KernelsOfMachine<double>();

}  // namespace kiln::runtime::lib::fft
