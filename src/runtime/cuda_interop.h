// What devices of the CUDA driver have beside, for programs that use CUDA themselves.
#pragma once

#include "base/status.h"

namespace kiln::runtime {

class CudaInterop {
 public:
  virtual ~CudaInterop() = default;
  // The driver's number of the device.
  virtual int ordinal() const = 0;
  // What the device is asked for next comes after what the default stream, which the device's own
  // does not wait for, has been asked for.
  virtual Status JoinDefaultStream() = 0;
};

}  // namespace kiln::runtime
