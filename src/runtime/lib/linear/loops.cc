#include "runtime/lib/linear/loops.h"

#include <initializer_list>
#include <type_traits>

#define KILN_LINEAR_NAMESPACE base
#define KILN_LINEAR_BYTES 16
#include "runtime/lib/linear/loops_impl.h"

namespace kiln::runtime::lib::linear {

#if defined(__x86_64__)
// loops_avx2.cc, loops_avx512.cc.
namespace avx2 {
extern const Loops<float>* const f32;
extern const Loops<double>* const f64;
}  // namespace avx2
namespace avx512 {
extern const Loops<float>* const f32;
extern const Loops<double>* const f64;
}  // namespace avx512
#endif

namespace {

template <typename T>
const Loops<T>* Of(const Loops<float>* f32, const Loops<double>* f64) {
  if constexpr (std::is_same_v<T, float>) {
    return f32;
  } else {
    return f64;
  }
}

}  // namespace

template <typename T>
const Loops<T>* LoopsOf(LoopVectors vectors) {
#if defined(__x86_64__)
  if (vectors == LoopVectors::kAvx512) {
    return __builtin_cpu_supports("avx512f") ? Of<T>(avx512::f32, avx512::f64) : nullptr;
  }
  if (vectors == LoopVectors::kAvx2) {
    const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has ? Of<T>(avx2::f32, avx2::f64) : nullptr;
  }
#endif
  return vectors == LoopVectors::kBase ? Of<T>(base::f32, base::f64) : nullptr;
}
template const Loops<float>* LoopsOf<float>(LoopVectors);
template const Loops<double>* LoopsOf<double>(LoopVectors);

template <typename T>
const Loops<T>& LoopsOfMachine() {
  static const Loops<T>& best = [&]() -> const Loops<T>& {
    for (LoopVectors vectors : {LoopVectors::kAvx512, LoopVectors::kAvx2}) {
      if (const Loops<T>* loops = LoopsOf<T>(vectors)) return *loops;
    }
    return *LoopsOf<T>(LoopVectors::kBase);
  }();
  return best;
}
template const Loops<float>& LoopsOfMachine<float>();
template const Loops<double>& LoopsOfMachine<double>();

}  // namespace kiln::runtime::lib::linear
