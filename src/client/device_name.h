// Names of devices as users write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::client {

struct DeviceName {
  std::string kind;  // in capitals: "XLA_GPU"
  int64_t number = 0;
  // The part that names another process than this one, as it was written ("job:worker"), or empty.
  std::string elsewhere;

  // "XLA_GPU:0", as devices are named.
  std::string ToString() const;
};

// "GPU:1", "gpu" for its number 0, or TensorFlow's form:
// "/job:localhost/replica:0/task:0/device:GPU:1" with any of its parts left out but the device,
// which may be an old "/gpu:1", too. Case does not matter. INVALID_ARGUMENT for any other text. The
// device need not exist.
Result<DeviceName> ParseDeviceName(std::string_view name);

}  // namespace kiln::client
