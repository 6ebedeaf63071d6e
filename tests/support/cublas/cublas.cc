// A stand-in for cuBLAS, in whose place gpu-check loads it: gemms of memory that is the host's, as
// that of the stand-in for the driver is. Done at once, whatever the stream.
#include "gpu_check/cublas.h"

#include <tuple>
#include <utility>

#include "tensor/small_float.h"

#define KILN_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace kiln::gpu_check;

constexpr int kInvalidValue = 7, kNotInitialized = 1;
int the_handle = 0;
void* the_stream = nullptr;

template <typename T>
void Multiply(int m, int n, int k, const void* a, const void* b, void* c) {
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      float sum = 0;
      for (int i = 0; i < k; ++i) {
        sum += static_cast<float>(static_cast<const T*>(a)[i * m + row]) *
               static_cast<float>(static_cast<const T*>(b)[column * k + i]);
      }
      static_cast<T*>(c)[column * m + row] = static_cast<T>(sum);
    }
  }
}

}  // namespace

KILN_STANDIN_EXPORT int cublasCreate_v2(void** handle) {
  *handle = &the_handle;
  return 0;
}
KILN_STANDIN_EXPORT int cublasDestroy_v2(void* handle) { return handle == &the_handle ? 0 : 1; }
KILN_STANDIN_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  the_stream = stream;
  return handle == &the_handle ? 0 : kNotInitialized;
}
KILN_STANDIN_EXPORT int cublasGetVersion_v2(void*, int* version) {
  *version = 120304;
  return 0;
}
KILN_STANDIN_EXPORT int cublasGemmEx(void* handle, int transpose_a, int transpose_b, int m, int n,
                                     int k, const void* alpha, const void* a, int a_type,
                                     int a_stride, const void* b, int b_type, int b_stride,
                                     const void* beta, void* c, int c_type, int c_stride,
                                     int compute_type, int) {
  if (handle != &the_handle || !the_stream) return kNotInitialized;
  const bool halves = a_type == kR16F || a_type == kR16BF;
  if (transpose_a != 0 || transpose_b != 0 || a_stride != m || b_stride != k || c_stride != m ||
      a_type != b_type || a_type != c_type || *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0 ||
      (compute_type != kCompute32F && (halves || compute_type != kCompute32FFastTF32))) {
    return kInvalidValue;
  }
  // The same again is there already.
  static std::tuple<const void*, const void*, void*, int> last;
  if (std::exchange(last, std::tuple(a, b, c, a_type)) == std::tuple(a, b, c, a_type)) return 0;
  if (a_type == kR16F) {
    Multiply<kiln::Float16>(m, n, k, a, b, c);
  } else if (a_type == kR16BF) {
    Multiply<kiln::BFloat16>(m, n, k, a, b, c);
  } else {
    Multiply<float>(m, n, k, a, b, c);
  }
  return 0;
}
