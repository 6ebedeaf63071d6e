#include "support/cuda_standin.h"

#include "support/standin_library.h"

namespace kiln::device::cuda {

const Standin& TheStandin() {
  static const Standin standin = [] {
    Standin s;
    s.path = KILN_TEST_CUDA_LIBRARY;
    const testing::StandinLibrary library(s.path);
    library.Find(s.configure, "kiln_test_cuda_configure");
    library.Find(s.reset, "kiln_test_cuda_reset");
    library.Find(s.fail, "kiln_test_cuda_fail");
    library.Find(s.fail_work, "kiln_test_cuda_fail_work");
    library.Find(s.forget, "kiln_test_cuda_forget");
    library.Find(s.count, "kiln_test_cuda_count");
    library.Find(s.make_context, "kiln_test_cuda_make_context");
    library.Find(s.destroy_context, "kiln_test_cuda_destroy_context");
    library.Find(s.make_stream, "kiln_test_cuda_make_stream");
    library.Find(s.destroy_stream, "kiln_test_cuda_destroy_stream");
    return s;
  }();
  return standin;
}

const char kPtx[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(
  .param .u64 copy_param_0,
  .param .u64 copy_param_1
)
{
  ret;
}
.visible .entry fill(
  .param .u64 fill_param_0
)
{
  ret;
}
)";

void CudaTest::SetUp() { standin_.reset(); }

void CudaTest::TearDown() {
  EXPECT_EQ(Count("live"), 0);
  EXPECT_EQ(Count("leaked"), 0);
  EXPECT_EQ(Count("depth"), 0);
  EXPECT_EQ(Count("misuse"), 0);
  standin_.reset();
}

CudaOptions CudaTest::Options() const {
  CudaOptions options;
  options.library = standin_.path;
  options.cupti_library = "off";
  return options;
}

std::unique_ptr<CudaMachine> CudaTest::Machine(const CudaOptions& options) {
  CudaDevices devices = Discover(options);
  EXPECT_EQ(devices.machines.size(), 1u) << Join(devices.notes, "\n");
  return devices.machines.empty() ? nullptr : std::move(devices.machines[0]);
}

void CudaTest::Configure(const std::string& settings) {
  EXPECT_EQ(standin_.configure(settings.c_str()), 0) << settings;
}

int64_t CudaTest::Count(const std::string& what) {
  const int64_t count = standin_.count(what.c_str());
  EXPECT_GE(count, 0) << "no count of " << what;
  return count;
}

}  // namespace kiln::device::cuda
