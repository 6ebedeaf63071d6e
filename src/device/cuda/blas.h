// cuBLASLt, loaded at run time if available.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "device/cuda/blas_api.h"
#include "device/cuda/context.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

// 10000 * major + 100 * minor. The first for CUDA 12, as the least driver is.
constexpr size_t kLeastBlasVersion = 120000;

// The largest workspace of a gemm: NVIDIA's recommendation for Hopper.
constexpr int64_t kMostBlasWorkspaceBytes = int64_t{32} << 20;

// The library, which stays loaded for the life of the process.
class BlasLibrary {
 public:
  // Without a path the newest one found by the loader and supported by the driver. NOT_FOUND or
  // FAILED_PRECONDITION gives the reason if there is none.
  static Result<std::shared_ptr<const BlasLibrary>> Load(const std::string& path,
                                                         int driver_version);

  BlasLibrary(const BlasFunctions& api, size_t version) : api_(api), version_(version) {}
  const BlasFunctions& api() const { return api_; }
  // "cuBLASLt 13.1.0"
  std::string name() const;
  // A failed call as a status.
  static Status Failed(BlasError error, const char* function);

 private:
  BlasFunctions api_;
  size_t version_;
};

// The library's state in a device's context.
class Blas {
 public:
  static Result<std::shared_ptr<Blas>> Make(std::shared_ptr<Context> context,
                                            std::shared_ptr<const BlasLibrary> library);
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  Context& context() { return *context_; }
  BlasHandle handle() const { return handle_; }
  const BlasFunctions& api() const { return library_->api(); }

  // One call of the library, in the context.
  template <typename... Parameters, typename... Args>
  Status Call(const BlasFunction<Parameters...>& function, Args... args) {
    Context::Scope scope(*context_);
    if (!scope.ok()) return scope.status();
    const BlasError error = function.call(args...);
    return error == BlasError::kSuccess ? OkStatus() : BlasLibrary::Failed(error, function.name);
  }
  // The same for a release of host memory, done even after a loss of the context. A failed call is
  // tried once more.
  template <typename T>
  static void GiveBack(const BlasFunction<T>& function, T object) {
    if (object == nullptr) return;
    if (function.call(object) != BlasError::kSuccess) function.call(object);
  }

 private:
  Blas(std::shared_ptr<Context> context, std::shared_ptr<const BlasLibrary> library)
      : context_(std::move(context)), library_(std::move(library)) {}

  std::shared_ptr<Context> context_;
  std::shared_ptr<const BlasLibrary> library_;
  BlasHandle handle_ = nullptr;
};

// A gemm with the library's algorithm for it: the same in every process, for one version and one
// kind of GPU.
class BlasGemm final : public GpuLibraryGemm {
 public:
  // Null if the library does not support it.
  static Result<std::unique_ptr<BlasGemm>> Make(std::shared_ptr<Blas> blas,
                                                const program::LibraryGemm& gemm);
  ~BlasGemm() override;

  int64_t workspace_bytes() const override { return static_cast<int64_t>(choice_.workspace_bytes); }
  Status LaunchOn(StreamHandle stream, std::span<const GpuSpan> args);

 private:
  BlasGemm(std::shared_ptr<Blas> blas, const program::LibraryGemm& gemm)
      : blas_(std::move(blas)), gemm_(gemm) {}
  Status Describe();
  Status MakeLayout(BlasLayout* layout, BlasType type, int64_t rows, int64_t columns,
                    const program::LibraryMatrix& matrix);
  // False without an algorithm.
  Result<bool> Choose();
  Status Prefer(BlasPreference preference);

  std::shared_ptr<Blas> blas_;
  const program::LibraryGemm gemm_;
  BlasDesc desc_ = nullptr;
  BlasLayout a_ = nullptr, b_ = nullptr, out_ = nullptr;
  BlasChoice choice_;
};

}  // namespace kiln::device::cuda
