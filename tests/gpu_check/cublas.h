// cuBLAS, where it is installed, to measure beside: loaded at run time, and declared here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "clock.h"

namespace kiln::gpu_check {

// What a gemm is of: f32 exactly, f32 with factors rounded to tf32, or halves whose sums are f32.
enum class GemmType { kF32, kTF32, kF16, kBF16 };

struct GemmSize {
  int64_t m = 0, n = 0, k = 0;
};

// cuBLAS's numbers: cudaDataType_t, cublasComputeType_t, cublasGemmAlgo_t and cublasOperation_t.
inline constexpr int kR32F = 0, kR16F = 2, kR16BF = 14;
inline constexpr int kCompute32F = 68, kCompute32FFastTF32 = 77;
inline constexpr int kAlgorithmDefault = -1, kNotTransposed = 0;

// Its functions, which return 0 where all is well.
using CublasCreate = int (*)(void** handle);
using CublasDestroy = int (*)(void* handle);
using CublasSetStream = int (*)(void* handle, void* stream);
using CublasGetVersion = int (*)(void* handle, int* version);
using CublasGemmEx = int (*)(void* handle, int transpose_a, int transpose_b, int m, int n, int k,
                             const void* alpha, const void* a, int a_type, int a_stride,
                             const void* b, int b_type, int b_stride, const void* beta, void* c,
                             int c_type, int c_stride, int compute_type, int algorithm);

class Cublas {
 public:
  // From the file, or the loader's where that is "".
  static Result<std::unique_ptr<Cublas>> Open(const std::string& file, const Driver& driver);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // "cuBLAS 13.0.2"
  const std::string& name() const { return name_; }
  // Of row-major arrays, on the driver's stream.
  Status Multiply(GemmType type, const GemmSize& size, uint64_t x, uint64_t y, uint64_t out);

 private:
  Cublas() = default;

  CublasGemmEx gemm_ = nullptr;
  CublasDestroy destroy_ = nullptr;
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace kiln::gpu_check
