// Declarations of the used part of cuBLASLt: its header may be missing at build time, and the
// library at run time. A test checks names and numbers against cublasLt.h if available. Their
// documentation is NVIDIA's "cuBLAS" manual.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/api.h"

namespace kiln::device::cuda {

enum class BlasError : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kArchMismatch = 8,
  kMappingError = 11,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
  kLicenseError = 16,
};

enum class BlasType : int {  // cudaDataType_t
  kF32 = 0,
  kF64 = 1,
  kF16 = 2,
  kS8 = 3,
  kS32 = 10,
  kBF16 = 14,
};

enum class BlasCompute : int {  // cublasComputeType_t
  k32F = 68,
  k64F = 70,
  k32I = 72,
  k32FFastTF32 = 77,
};

enum class BlasDescAttribute : int { kTransposeA = 3, kTransposeB = 4 };  // int32_t
enum class BlasLayoutAttribute : int { kBatch = 5, kBatchStride = 6 };    // int32_t, int64_t
enum class BlasPreferenceAttribute : int {
  kMostWorkspaceBytes = 1,  // uint64_t
  kReductionSchemes = 3,    // uint32_t
  kAlignmentA = 5,          // uint32_t
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8,
  kImplementations = 12,  // uint64_t
};
constexpr int32_t kBlasPlain = 0, kBlasTransposed = 1;  // cublasOperation_t

// cublasLtReductionScheme_t: partial sums are kept in the type of computation, and added up by a
// separate launch, always in the same order. No split is always allowed.
constexpr uint32_t kBlasReduceInComputeType = 2;

// cublasLtNumericalImplFlags_t: multiplication units, accumulator types, and types of converted
// factors.
constexpr uint64_t kBlasTensor16 = 0x02, kBlasTensorInteger = 0x04;
constexpr uint64_t kBlasSumF16 = 0x01ull << 8;
constexpr uint64_t kBlasInputF16 = 0x01ull << 16, kBlasInputBF16 = 0x02ull << 16,
                   kBlasInputTF32 = 0x04ull << 16;

struct BlasAlgorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8] = {};
};
struct BlasChoice {  // cublasLtMatmulHeuristicResult_t
  BlasAlgorithm algorithm;
  size_t workspace_bytes = 0;
  BlasError state = BlasError::kSuccess;
  float waves = 0;
  int reserved[4] = {};
};

using BlasHandle = struct BlasHandleObject*;
using BlasDesc = struct BlasDescObject*;
using BlasLayout = struct BlasLayoutObject*;
using BlasPreference = struct BlasPreferenceObject*;

// All used functions: member, exported name, parameters. All return a BlasError. clang-format off
#define KILN_BLAS_FUNCTIONS(X)                                                                    \
  X(Create, cublasLtCreate, BlasHandle*)                                                          \
  X(Destroy, cublasLtDestroy, BlasHandle)                                                         \
  X(DescCreate, cublasLtMatmulDescCreate, BlasDesc*, BlasCompute, BlasType)                       \
  X(DescDestroy, cublasLtMatmulDescDestroy, BlasDesc)                                             \
  X(DescSet, cublasLtMatmulDescSetAttribute, BlasDesc, BlasDescAttribute, const void*, size_t)    \
  X(LayoutCreate, cublasLtMatrixLayoutCreate, BlasLayout*, BlasType, uint64_t, uint64_t, int64_t) \
  X(LayoutDestroy, cublasLtMatrixLayoutDestroy, BlasLayout)                                       \
  X(LayoutSet, cublasLtMatrixLayoutSetAttribute, BlasLayout, BlasLayoutAttribute, const void*,    \
    size_t)                                                                                       \
  X(PreferenceCreate, cublasLtMatmulPreferenceCreate, BlasPreference*)                            \
  X(PreferenceDestroy, cublasLtMatmulPreferenceDestroy, BlasPreference)                           \
  X(PreferenceSet, cublasLtMatmulPreferenceSetAttribute, BlasPreference, BlasPreferenceAttribute, \
    const void*, size_t)                                                                          \
  X(GetHeuristic, cublasLtMatmulAlgoGetHeuristic, BlasHandle, BlasDesc, BlasLayout, BlasLayout,   \
    BlasLayout, BlasLayout, BlasPreference, int, BlasChoice*, int*)                               \
  X(Matmul, cublasLtMatmul, BlasHandle, BlasDesc, const void*, const void*, BlasLayout,           \
    const void*, BlasLayout, const void*, const void*, BlasLayout, void*, BlasLayout,             \
    const BlasAlgorithm*, void*, size_t, StreamHandle)
// clang-format on

// Called first: 10000 * major + 100 * minor + patch.
constexpr char kBlasGetVersion[] = "cublasLtGetVersion";
using BlasGetVersionFunction = size_t (*)();

template <typename... Parameters>
struct BlasFunction {
  BlasError (*call)(Parameters...) = nullptr;
  const char* name = "";
};

#define KILN_BLAS_MEMBER(member, symbol, ...) BlasFunction<__VA_ARGS__> member;
struct BlasFunctions {
  KILN_BLAS_FUNCTIONS(KILN_BLAS_MEMBER)
};
#undef KILN_BLAS_MEMBER

}  // namespace kiln::device::cuda
