#include "device/cuda/driver.h"

#include <dlfcn.h>

namespace kiln::device::cuda {
namespace {

// The manual's names, without suffixes for versions.
std::string_view PlainName(std::string_view symbol) {
  const size_t at = symbol.rfind("_v");
  return at == std::string_view::npos ? symbol : symbol.substr(0, at);
}

std::string DescribeBy(const Functions& api, Error error) {
  const char* name = nullptr;
  const char* text = nullptr;
  // A driver does not know the errors of later ones.
  if (api.GetErrorName.call == nullptr || api.GetErrorName.call(error, &name) != Error::kSuccess ||
      name == nullptr) {
    return Cat("error ", static_cast<int>(error));
  }
  if (api.GetErrorString.call == nullptr ||
      api.GetErrorString.call(error, &text) != Error::kSuccess || text == nullptr) {
    return name;
  }
  return Cat(name, " (", text, ")");
}

Status FailedBy(const Functions& api, Error error, std::string_view function) {
  return Status(CodeOf(error), Cat(PlainName(function), ": ", DescribeBy(api, error)));
}

// Closes an unusable library; an initialised driver is never closed.
struct Library {
  explicit Library(const std::string& path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr && !keep) dlclose(handle);
  }
  void* Find(const char* symbol) const { return dlsym(handle, symbol); }

  void* handle;
  bool keep = false;
};

}  // namespace

std::string VersionText(int version) { return Cat(version / 1000, ".", version % 1000 / 10); }

Code CodeOf(Error error) {
  switch (error) {
    case Error::kSuccess:
      return Code::kOk;
    case Error::kOutOfMemory:
      return Code::kResourceExhausted;
    case Error::kNoDevice:
    case Error::kInvalidDevice:
    case Error::kNotFound:
      return Code::kNotFound;
    case Error::kNotInitialized:
    case Error::kStubLibrary:
    case Error::kCallRequiresNewerDriver:
    case Error::kDeviceNotLicensed:
    case Error::kJitCompilerNotFound:
    case Error::kUnsupportedPtxVersion:
    case Error::kJitCompilationDisabled:
    case Error::kSystemDriverMismatch:
    case Error::kCompatNotSupportedOnDevice:
    case Error::kStreamCaptureUnsupported:
      return Code::kFailedPrecondition;
    case Error::kDeinitialized:
    case Error::kDeviceUnavailable:
    case Error::kSystemNotReady:
    case Error::kMpsConnectionFailed:
    case Error::kMpsServerNotReady:
    case Error::kMpsClientTerminated:
      return Code::kUnavailable;
    case Error::kNotPermitted:
      return Code::kPermissionDenied;
    case Error::kNotSupported:
      return Code::kUnimplemented;
    case Error::kEccUncorrectable:
      return Code::kDataLoss;
    default:
      return Code::kInternal;
  }
}

// Errors after which, by cuda.h, any further work returns the same error, and errors for a lost
// context or driver.
bool LosesContext(Error error) {
  switch (error) {
    case Error::kDeinitialized:
    case Error::kEccUncorrectable:
    case Error::kNvlinkUncorrectable:
    case Error::kContained:
    case Error::kIllegalAddress:
    case Error::kLaunchTimeout:
    case Error::kContextIsDestroyed:
    case Error::kAssert:
    case Error::kHardwareStackError:
    case Error::kIllegalInstruction:
    case Error::kMisalignedAddress:
    case Error::kInvalidAddressSpace:
    case Error::kInvalidPc:
    case Error::kLaunchFailed:
    case Error::kTensorMemoryLeak:
    case Error::kMpsClientTerminated:
    case Error::kExternalDevice:
      return true;
    default:
      return false;
  }
}

std::string Driver::Describe(Error error) const { return DescribeBy(api_, error); }

Status Driver::Failed(Error error, std::string_view function) const {
  return FailedBy(api_, error, function);
}

Result<std::shared_ptr<const Driver>> LoadDriver(const std::string& path) {
  Library library(path);
  if (library.handle == nullptr) {
    const char* reason = dlerror();
    return NotFound("no CUDA driver: ", reason != nullptr ? reason : path);
  }

  auto get_version = reinterpret_cast<DriverGetVersionFunction>(library.Find(kDriverGetVersion));
  if (get_version == nullptr) {
    return FailedPrecondition(path, " is no CUDA driver: it has no ", kDriverGetVersion);
  }
  Functions api;
  OptionalFunctions optional;
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* symbol) {
    using Pointer = decltype(function.call);
    function.name = symbol;
    function.call = reinterpret_cast<Pointer>(library.Find(symbol));
    return function.call != nullptr;
  };
#define KILN_CUDA_FIND(member, symbol, ...) \
  if (!find(api.member, #symbol) && missing == nullptr) missing = #symbol;
  KILN_CUDA_FUNCTIONS(KILN_CUDA_FIND)
#undef KILN_CUDA_FIND
#define KILN_CUDA_FIND(member, symbol, ...) find(optional.member, #symbol);
  KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_CUDA_FIND)
#undef KILN_CUDA_FIND

  int version = 0;
  if (Error error = get_version(&version); error != Error::kSuccess) {
    return FailedBy(api, error, kDriverGetVersion).WithContext(path);
  }
  if (version < kLeastDriverVersion) {
    return FailedPrecondition("the CUDA driver ", path, " is too old: it is made for CUDA ",
                              VersionText(version), "; at least ", VersionText(kLeastDriverVersion),
                              " is needed");
  }
  if (missing != nullptr) {
    return FailedPrecondition("the CUDA driver ", path, " (CUDA ", VersionText(version),
                              ") has no ", missing);
  }
  // Threads of the driver may exist from here on, even after a failure.
  library.keep = true;
  if (Error error = api.Init.call(0); error != Error::kSuccess) {
    return FailedBy(api, error, api.Init.name)
        .WithContext(Cat("the CUDA driver ", path, " does not start"));
  }
  return std::make_shared<const Driver>(api, optional, version);
}

}  // namespace kiln::device::cuda
