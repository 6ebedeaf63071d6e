// The stand-in for cuBLASLt, from the side of tests.
#pragma once

#include <string>

#include "device/cuda/blas_api.h"
#include "support/cuda_standin.h"

namespace kiln::device::cuda {

// Functions of tests/support/cublas/cublaslt.h.
struct BlasStandin {
  int (*configure)(const char*);
  void (*reset)();
  void (*fail)(const char*, long long, long long, int);
  long long (*count)(const char*);

  std::string path;
};
const BlasStandin& TheBlasStandin();

// Beside the stand-in for the driver: of this one nothing is left at the end of a test, either, and
// nobody has asked it for what cannot be.
class CublasLtTest : public CudaTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  CudaOptions BlasOptions() const;
  void ConfigureBlas(const std::string& settings);
  int64_t CountBlas(const std::string& what);
  void FailBlas(const char* symbol, int64_t first, int64_t times,
                BlasError error = BlasError::kInternalError) {
    blas_.fail(symbol, first, times, static_cast<int>(error));
  }

  const BlasStandin& blas_ = TheBlasStandin();
};

}  // namespace kiln::device::cuda
