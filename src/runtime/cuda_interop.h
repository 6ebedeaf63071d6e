// The additional interface of the CUDA driver's devices, for programs that use CUDA themselves.
#pragma once

#include "base/status.h"

namespace kiln::runtime {

class CudaInterop {
 public:
  virtual ~CudaInterop() = default;
  // The driver's number of the device.
  virtual int ordinal() const = 0;
  // Orders later work of the device after the work in the default stream, which the device's own
  // stream does not wait for by itself.
  virtual Status JoinDefaultStream() = 0;
};

}  // namespace kiln::runtime
