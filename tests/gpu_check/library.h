// The C ABI as far as it is used here, with statuses for errors and handles that give back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "kiln/kiln.h"

namespace kiln::gpu_check {

Status StatusOf(kiln_error* error);

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* handle) const {
    release(handle);
  }
};
using Context = std::unique_ptr<kiln_context, Releaser<kiln_context_release>>;
using Buffer = std::unique_ptr<kiln_buffer, Releaser<kiln_buffer_release>>;

struct Dims {
  kiln_dtype dtype = KILN_F32;
  std::vector<int64_t> sizes;
  int64_t elements = 0, bytes = 0;
};

// With the first GPU of the driver, or an emulated one.
Result<Context> MakeContext(bool emulate);
Result<kiln_device*> FindDevice(kiln_context* context, std::string_view name);

// A program in HLO text, compiled for a device.
class Program {
 public:
  static Result<Program> Compile(kiln_context* context, kiln_device* device,
                                 const std::string& text, bool allow_tf32 = false);

  const std::vector<Dims>& arguments() const { return arguments_; }
  const Dims& result() const { return result_; }
  int64_t kernels() const { return kernels_; }

  // Into a result that is there already.
  Status Run(const std::vector<Buffer>& arguments, const Buffer& result) const;
  // Put on a stream of the CUDA driver's.
  Status RunOn(void* stream, const std::vector<Buffer>& arguments, const Buffer& result) const;

 private:
  std::unique_ptr<kiln_executable, Releaser<kiln_executable_release>> executable_;
  std::vector<Dims> arguments_;
  Dims result_;
  int64_t kernels_ = 0;
};

Result<Buffer> MakeBuffer(kiln_device* device, const Dims& dims);
Result<Buffer> CopyToDevice(kiln_device* device, const Dims& dims, const void* data);
// The host's memory, at a multiple of KILN_ALIGNMENT, for as long as the buffer lives.
Result<Buffer> BorrowHost(kiln_device* device, const Dims& dims, void* data);
Status CopyToHost(const Buffer& buffer, void* data, int64_t bytes);
// The address on the device.
Result<uint64_t> AddressOf(const Buffer& buffer);

}  // namespace kiln::gpu_check
