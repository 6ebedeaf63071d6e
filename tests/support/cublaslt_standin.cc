#include "support/cublaslt_standin.h"

#include "support/standin_library.h"

namespace kiln::device::cuda {

const BlasStandin& TheBlasStandin() {
  static const BlasStandin standin = [] {
    // Its driver is the one that tests have loaded already.
    TheStandin();
    BlasStandin s;
    s.path = KILN_TEST_CUBLASLT_LIBRARY;
    const testing::StandinLibrary library(s.path);
    library.Find(s.configure, "kiln_test_cublaslt_configure");
    library.Find(s.reset, "kiln_test_cublaslt_reset");
    library.Find(s.fail, "kiln_test_cublaslt_fail");
    library.Find(s.count, "kiln_test_cublaslt_count");
    return s;
  }();
  return standin;
}

void CublasLtTest::SetUp() {
  CudaTest::SetUp();
  blas_.reset();
}

void CublasLtTest::TearDown() {
  EXPECT_EQ(CountBlas("live"), 0);
  EXPECT_EQ(CountBlas("misuse"), 0);
  CudaTest::TearDown();
  blas_.reset();
}

CudaOptions CublasLtTest::BlasOptions() const {
  CudaOptions options = Options();
  options.gemm_library = blas_.path;
  return options;
}

void CublasLtTest::ConfigureBlas(const std::string& settings) {
  EXPECT_EQ(blas_.configure(settings.c_str()), 0) << settings;
}

int64_t CublasLtTest::CountBlas(const std::string& what) {
  const int64_t count = blas_.count(what.c_str());
  EXPECT_GE(count, 0) << "no count of " << what;
  return count;
}

}  // namespace kiln::device::cuda
