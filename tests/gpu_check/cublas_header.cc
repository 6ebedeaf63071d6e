// What cublas.h declares of cuBLAS against NVIDIA's header, where the build found one. The compiler
// checks all of it.

#ifdef KILN_TEST_HAS_CUBLAS_H

#include <cublas_v2.h>

#include <type_traits>

#include "cublas.h"

namespace kiln::gpu_check {
namespace {

static_assert(kR32F == CUDA_R_32F && kR16F == CUDA_R_16F && kR16BF == CUDA_R_16BF);
static_assert(kCompute32F == CUBLAS_COMPUTE_32F);
static_assert(kCompute32FFastTF32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kAlgorithmDefault == CUBLAS_GEMM_DEFAULT && kNotTransposed == CUBLAS_OP_N);

// As many parameters, pointers where the header has pointers, numbers of the same size.
template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename R, typename... Ours, typename S, typename... Theirs>
requires(sizeof...(Ours) == sizeof...(Theirs)) struct Same<R (*)(Ours...), S (*)(Theirs...)>
    : std::bool_constant<sizeof(R) == sizeof(S) &&
                         ((std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                           sizeof(Ours) == sizeof(Theirs)) &&
                          ...)> {
};

static_assert(Same<CublasCreate, decltype(&::cublasCreate_v2)>::value);
static_assert(Same<CublasDestroy, decltype(&::cublasDestroy_v2)>::value);
static_assert(Same<CublasSetStream, decltype(&::cublasSetStream_v2)>::value);
static_assert(Same<CublasGetVersion, decltype(&::cublasGetVersion_v2)>::value);
static_assert(Same<CublasGemmEx, cublasStatus_t (*)(
                                     cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                     int, const void*, const void*, cudaDataType, int, const void*,
                                     cudaDataType, int, const void*, void*, cudaDataType, int,
                                     cublasComputeType_t, cublasGemmAlgo_t)>::value);
// Overloads in C++ leave the one that the library exports to be named by its parameters.
[[maybe_unused]] constexpr cublasStatus_t (*kGemmEx)(cublasHandle_t, cublasOperation_t,
                                                     cublasOperation_t, int, int, int, const void*,
                                                     const void*, cudaDataType, int, const void*,
                                                     cudaDataType, int, const void*, void*,
                                                     cudaDataType, int, cublasComputeType_t,
                                                     cublasGemmAlgo_t) = &::cublasGemmEx;

}  // namespace
}  // namespace kiln::gpu_check

#endif  // KILN_TEST_HAS_CUBLAS_H
