// How long the GPU works on something, by events of the CUDA driver's on a stream of our own; on an
// emulated GPU by the host's clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/cuda/api.h"
#include "library.h"

namespace kiln::gpu_check {

namespace cuda = device::cuda;

// The driver and the primary context of one of its devices, which is the thread's current one
// while this lives. The driver is the one that Kiln has: libcuda.so.1, or what KILN_CUDA_LIBRARY
// names.
class Driver {
 public:
  static Result<std::unique_ptr<Driver>> Open(const kiln_device* gpu);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const cuda::Functions& api() const { return api_; }
  cuda::StreamHandle stream() const { return stream_; }
  int version() const { return version_; }
  const std::string& device_name() const { return device_name_; }
  int architecture() const { return architecture_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  Status Check(cuda::Error error, const char* function) const;

 private:
  Driver() = default;
  Status Start(int ordinal);

  cuda::Functions api_;
  cuda::DeviceHandle device_ = 0;
  cuda::ContextHandle context_ = nullptr;
  cuda::StreamHandle stream_ = nullptr;
  int version_ = 0, architecture_ = 0;
  int64_t memory_bytes_ = 0;
  std::string device_name_;
};

struct Times {
  double median = 0, minimum = 0;  // seconds of one run
  int64_t runs = 0;
};

// Times what puts a run on the driver's stream. Samples are of several runs in a row where one is
// short, and begin when all of their runs have been asked for, as far as that goes.
Result<Times> MeasureOnGpu(const Driver& driver, const std::function<Status()>& enqueue);
// The time between two events with nothing between them.
Result<Times> MeasureNothing(const Driver& driver);
// Times what has ended when it returns.
Result<Times> MeasureOnHost(const std::function<Status()>& run);

}  // namespace kiln::gpu_check
