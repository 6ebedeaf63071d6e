// Our declarations of cuBLASLt against cublasLt.h, where the build found one. The compiler checks
// all of it.

#ifdef KILN_TEST_HAS_CUBLASLT_H

#include <cublasLt.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/blas.h"

namespace kiln::device::cuda {
namespace {

#define KILN_SAME(ours, theirs) \
  static_assert(static_cast<unsigned long long>(ours) == static_cast<unsigned long long>(theirs))
KILN_SAME(BlasError::kSuccess, CUBLAS_STATUS_SUCCESS);
KILN_SAME(BlasError::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
KILN_SAME(BlasError::kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
KILN_SAME(BlasError::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
KILN_SAME(BlasError::kArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
KILN_SAME(BlasError::kMappingError, CUBLAS_STATUS_MAPPING_ERROR);
KILN_SAME(BlasError::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
KILN_SAME(BlasError::kInternalError, CUBLAS_STATUS_INTERNAL_ERROR);
KILN_SAME(BlasError::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
KILN_SAME(BlasError::kLicenseError, CUBLAS_STATUS_LICENSE_ERROR);
KILN_SAME(BlasType::kF32, CUDA_R_32F);
KILN_SAME(BlasType::kF64, CUDA_R_64F);
KILN_SAME(BlasType::kF16, CUDA_R_16F);
KILN_SAME(BlasType::kBF16, CUDA_R_16BF);
KILN_SAME(BlasType::kS8, CUDA_R_8I);
KILN_SAME(BlasType::kS32, CUDA_R_32I);
KILN_SAME(BlasCompute::k32F, CUBLAS_COMPUTE_32F);
KILN_SAME(BlasCompute::k64F, CUBLAS_COMPUTE_64F);
KILN_SAME(BlasCompute::k32I, CUBLAS_COMPUTE_32I);
KILN_SAME(BlasCompute::k32FFastTF32, CUBLAS_COMPUTE_32F_FAST_TF32);
KILN_SAME(BlasDescAttribute::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
KILN_SAME(BlasDescAttribute::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
KILN_SAME(BlasLayoutAttribute::kBatch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
KILN_SAME(BlasLayoutAttribute::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
KILN_SAME(BlasPreferenceAttribute::kMostWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
KILN_SAME(BlasPreferenceAttribute::kReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
KILN_SAME(BlasPreferenceAttribute::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
KILN_SAME(BlasPreferenceAttribute::kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
KILN_SAME(BlasPreferenceAttribute::kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
KILN_SAME(BlasPreferenceAttribute::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
KILN_SAME(BlasPreferenceAttribute::kImplementations, CUBLASLT_MATMUL_PREF_IMPL_MASK);
KILN_SAME(kBlasPlain, CUBLAS_OP_N);
KILN_SAME(kBlasTransposed, CUBLAS_OP_T);
KILN_SAME(kBlasReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
KILN_SAME(kBlasTensor16, CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA);
KILN_SAME(kBlasTensorInteger, CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA);
KILN_SAME(kBlasSumF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F);
KILN_SAME(kBlasInputF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F);
KILN_SAME(kBlasInputBF16, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF);
KILN_SAME(kBlasInputTF32, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32);

static_assert(sizeof(BlasAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(BlasChoice) == sizeof(cublasLtMatmulHeuristicResult_t));
#define KILN_MEMBER(ours, theirs) \
  static_assert(offsetof(BlasChoice, ours) == offsetof(cublasLtMatmulHeuristicResult_t, theirs))
KILN_MEMBER(workspace_bytes, workspaceSize);
KILN_MEMBER(state, state);
KILN_MEMBER(waves, wavesCount);
KILN_MEMBER(reserved, reserved);

// As many parameters, pointers where the header has pointers, of the same constness, and numbers of
// the same size.
template <typename Ours, typename Theirs>
constexpr bool SameParameter() {
  if constexpr (!std::is_pointer_v<Ours> || !std::is_pointer_v<Theirs>) {
    return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  } else {
    return std::is_const_v<std::remove_pointer_t<Ours>> ==
           std::is_const_v<std::remove_pointer_t<Theirs>>;
  }
}
template <typename Theirs, typename... Ours>
struct SameFunction : std::false_type {};
template <typename... Theirs, typename... Ours>
requires(sizeof...(Theirs) ==
         sizeof...(Ours)) struct SameFunction<cublasStatus_t(Theirs...), Ours...>
    : std::bool_constant<(SameParameter<Ours, Theirs>() && ...)> {
};

static_assert(sizeof(BlasError) == sizeof(cublasStatus_t));
#define KILN_BLAS_SAME(member, symbol, ...) \
  static_assert(SameFunction<decltype(::symbol), __VA_ARGS__>::value, #symbol);
KILN_BLAS_FUNCTIONS(KILN_BLAS_SAME)
#undef KILN_BLAS_SAME
static_assert(std::is_same_v<BlasGetVersionFunction, decltype(&::cublasLtGetVersion)>);
// The check tells functions apart.
static_assert(!SameFunction<decltype(::cublasLtDestroy), int>::value);
static_assert(!SameFunction<decltype(::cublasLtDestroy), BlasHandle, int>::value);

}  // namespace
}  // namespace kiln::device::cuda

#endif  // KILN_TEST_HAS_CUBLASLT_H
