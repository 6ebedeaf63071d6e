// The CUDA driver's library, loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device/cuda/api.h"

namespace kiln::device::cuda {

constexpr char kDriverLibrary[] = "libcuda.so.1";

// 1000 * major + 10 * minor. The first with every function of api.h under its name and an assembler
// for all generated PTX (7.8, of 11.8); such drivers exist for every GPU from sm_75 on.
constexpr int kLeastDriverVersion = 12000;

// An initialised driver. Its library is never unloaded: it has threads of its own.
class Driver {
 public:
  Driver(const Functions& api, const OptionalFunctions& optional, int version)
      : api_(api), optional_(optional), version_(version) {}

  const Functions& api() const { return api_; }
  // Missing ones are null.
  const OptionalFunctions& optional() const { return optional_; }
  // Its CUDA version, as kLeastDriverVersion.
  int version() const { return version_; }
  // "CUDA_ERROR_INVALID_VALUE (invalid argument)", in the driver's words.
  std::string Describe(Error error) const;
  // A failed call as a status; `function` is the exported name.
  Status Failed(Error error, std::string_view function) const;

 private:
  Functions api_;
  OptionalFunctions optional_;
  int version_;
};

// "12.4" of 12040.
std::string VersionText(int version);

// The code returned to callers.
Code CodeOf(Error error);
// Whether the context is unusable after this.
bool LosesContext(Error error);

// FAILED_PRECONDITION or NOT_FOUND gives the reason for a missing driver.
Result<std::shared_ptr<const Driver>> LoadDriver(const std::string& path = kDriverLibrary);

}  // namespace kiln::device::cuda
