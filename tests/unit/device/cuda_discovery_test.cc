// Which GPUs there are, and why there are none.

#include <filesystem>

#include "support/cuda_standin.h"

namespace kiln::device::cuda {
namespace {

class CudaDiscovery : public CudaTest {
 protected:
  // What is said where no GPU is found.
  std::string Reason(const std::string& library) {
    CudaOptions options = Options();
    options.library = library;
    const CudaDevices devices = Discover(options);
    EXPECT_TRUE(devices.machines.empty());
    EXPECT_EQ(devices.notes.size(), 1u);
    return Join(devices.notes, "\n");
  }
  std::string Reason() { return Reason(Options().library); }
  void ExpectParts(const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
  }
};

TEST_F(CudaDiscovery, NoLibrary) {
  ExpectParts(Reason("/nowhere/libcuda.so.1"), {"no CUDA driver", "/nowhere/libcuda.so.1"});
}

TEST_F(CudaDiscovery, ALibraryThatIsNoDriver) {
  ExpectParts(Reason("libm.so.6"), {"libm.so.6 is no CUDA driver", "cuDriverGetVersion"});
}

TEST_F(CudaDiscovery, OldDriver) {
  Configure("driver_version=11080");
  ExpectParts(Reason(), {"too old", "11.8", "12.0"});
  EXPECT_EQ(Count("cuInit"), 0);
}

TEST_F(CudaDiscovery, DriverThatDoesNotStart) {
  Configure("init_error=803");
  ExpectParts(Reason(), {"cuInit", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "display driver"});
  Configure("init_error=100");
  ExpectParts(Reason(), {"cuInit", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"});
  // An error that the driver has no name for.
  Configure("init_error=4711");
  ExpectParts(Reason(), {"cuInit", "error 4711"});
}

TEST_F(CudaDiscovery, NoDevice) {
  Configure("devices=0");
  ExpectParts(Reason(), {"knows of no GPU"});
}

TEST_F(CudaDiscovery, OldDevice) {
  Configure("sm=70");
  ExpectParts(Reason(), {"CUDA device 0 is not used", "Stand-in 0", "sm_70", "sm_75"});
}

// The first call of each function during discovery fails in turn: there is always a reason, with
// the function's name and the error's.
TEST_F(CudaDiscovery, EveryCallThatFailsIsNamed) {
  for (const char* symbol : {"cuDriverGetVersion", "cuInit", "cuDeviceGetCount", "cuDeviceGet",
                             "cuDeviceGetName", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"}) {
    Fail(symbol, 1, 1, Error::kUnknown);
    const std::string reason = Reason();
    ExpectParts(reason, {"CUDA_ERROR_UNKNOWN (unknown error)"});
    const std::string name = symbol;
    EXPECT_NE(reason.find(name.substr(0, name.find("_v2")) + ":"), std::string::npos) << reason;
  }
}

// As a program says it by the environment.
TEST_F(CudaDiscovery, FailuresAmongTheSettings) {
  Configure("fail_with=999,fail=2");
  ExpectParts(Reason(), {"cuInit", "CUDA_ERROR_UNKNOWN"});
  EXPECT_NE(standin_.configure("nonsense=1"), 0);
  EXPECT_NE(standin_.configure("sm"), 0);
}

TEST_F(CudaDiscovery, Targets) {
  struct Case {
    int device, code;
  };
  for (const Case c : {Case{75, 75}, Case{80, 80}, Case{86, 86}, Case{87, 86}, Case{89, 89},
                       Case{90, 90}, Case{100, 90}, Case{120, 90}}) {
    Configure(Cat("sm=", c.device, ",multiprocessors=68"));
    auto machine = Machine();
    ASSERT_NE(machine, nullptr);
    const target::Gpu& gpu = machine->target().gpu;
    EXPECT_EQ(machine->target().kind, target::Kind::kGpu);
    EXPECT_EQ(gpu.sm, c.code);
    EXPECT_EQ(gpu.multiprocessors, 68);
    EXPECT_EQ(gpu.shared_bytes_per_block, 99 << 10);
    EXPECT_EQ(gpu.max_threads_per_block, 1024);
    EXPECT_FALSE(gpu.emulated);
    EXPECT_EQ(machine->description(),
              Cat("Stand-in 0 (sm_", c.device, ", 68 multiprocessors, 1.0 GiB)"));
  }
}

TEST_F(CudaDiscovery, SeveralDevices) {
  Configure("devices=3");
  const CudaDevices devices = Discover(Options());
  ASSERT_EQ(devices.machines.size(), 3u);
  EXPECT_TRUE(devices.notes.empty());
  EXPECT_EQ(devices.machines[2]->cuda_ordinal(), 2);
  // A device that is not worked on has no context.
  EXPECT_EQ(Count("contexts"), 0);
  auto stream = devices.machines[1]->MakeStream();
  ASSERT_TRUE(stream.ok()) << stream.status().ToString();
  EXPECT_EQ(Count("contexts"), 1);
}

// A toolkit's library for linking has every function, and fails.
TEST_F(CudaDiscovery, StubLibrary) {
  const char* stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (!std::filesystem::exists(stub)) GTEST_SKIP() << "no CUDA toolkit";
  ExpectParts(Reason(stub), {stub, "cuDriverGetVersion", "34"});
}

}  // namespace
}  // namespace kiln::device::cuda
