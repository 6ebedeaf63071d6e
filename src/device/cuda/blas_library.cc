// The loading of the library, and its state in a context.

#include <dlfcn.h>

#include "base/strings.h"
#include "device/cuda/blas.h"

namespace kiln::device::cuda {
namespace {

// From the newest on, each with its minimal driver.
struct Candidate {
  const char* file;
  int least_driver;
};
constexpr Candidate kCandidates[] = {{"libcublasLt.so.13", 13000}, {"libcublasLt.so.12", 12000}};

const char* NameOf(BlasError error) {
  switch (error) {
    case BlasError::kSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case BlasError::kNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case BlasError::kAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case BlasError::kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case BlasError::kArchMismatch:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case BlasError::kMappingError:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case BlasError::kExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case BlasError::kInternalError:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case BlasError::kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case BlasError::kLicenseError:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return nullptr;
}

std::string VersionOf(size_t version) {
  return Cat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

// Any other library is closed again; cuBLASLt stays loaded.
Result<std::shared_ptr<const BlasLibrary>> LoadFile(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return NotFound("no cuBLASLt: ", reason != nullptr ? reason : path);
  }
  auto refuse = [&](Status status) {
    dlclose(handle);
    return status;
  };
  auto get_version = reinterpret_cast<BlasGetVersionFunction>(dlsym(handle, kBlasGetVersion));
  if (get_version == nullptr) {
    return refuse(FailedPrecondition(path, " is no cuBLASLt: it has no ", kBlasGetVersion));
  }
  const size_t version = get_version();
  if (version < kLeastBlasVersion) {
    return refuse(FailedPrecondition("cuBLASLt ", path, " is too old: it is ", VersionOf(version),
                                     "; at least ", VersionOf(kLeastBlasVersion), " is needed"));
  }
  BlasFunctions api;
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* symbol) {
    using Pointer = decltype(function.call);
    function.name = symbol;
    function.call = reinterpret_cast<Pointer>(dlsym(handle, symbol));
    if (function.call == nullptr && missing == nullptr) missing = symbol;
  };
#define KILN_BLAS_FIND(member, symbol, ...) find(api.member, #symbol);
  KILN_BLAS_FUNCTIONS(KILN_BLAS_FIND)
#undef KILN_BLAS_FIND
  if (missing != nullptr) {
    return refuse(
        FailedPrecondition("cuBLASLt ", path, " (", VersionOf(version), ") has no ", missing));
  }
  return std::make_shared<const BlasLibrary>(api, version);
}

}  // namespace

Result<std::shared_ptr<const BlasLibrary>> BlasLibrary::Load(const std::string& path,
                                                             int driver_version) {
  if (!path.empty()) return LoadFile(path);
  Status first;
  for (const Candidate& candidate : kCandidates) {
    if (driver_version < candidate.least_driver) continue;
    auto library = LoadFile(candidate.file);
    if (library.ok()) return library;
    if (first.ok()) first = library.status();
  }
  return first.ok() ? NotFound("no cuBLASLt is made for the driver") : first;
}

std::string BlasLibrary::name() const { return Cat("cuBLASLt ", VersionOf(version_)); }

Status BlasLibrary::Failed(BlasError error, const char* function) {
  const char* name = NameOf(error);
  const Code code = error == BlasError::kAllocFailed    ? Code::kResourceExhausted
                    : error == BlasError::kNotSupported ? Code::kUnimplemented
                    : error == BlasError::kArchMismatch ? Code::kUnimplemented
                                                        : Code::kInternal;
  return Status(
      code, Cat(function, ": ", name != nullptr ? name : Cat("error ", static_cast<int>(error))));
}

Result<std::shared_ptr<Blas>> Blas::Make(std::shared_ptr<Context> context,
                                         std::shared_ptr<const BlasLibrary> library) {
  std::shared_ptr<Blas> blas(new Blas(std::move(context), std::move(library)));
  KILN_RETURN_IF_ERROR(blas->Call(blas->api().Create, &blas->handle_));
  return blas;
}

Blas::~Blas() {
  // A lost context frees its state; a failed call is tried once more.
  if (handle_ == nullptr) return;
  for (int attempt = 0; attempt < 2 && !context_->lost(); ++attempt) {
    if (Call(api().Destroy, handle_).ok()) return;
  }
}

}  // namespace kiln::device::cuda
