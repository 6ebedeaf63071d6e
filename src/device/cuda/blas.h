// cuBLASLt, loaded at run time where it is there.
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

// What a product may have to itself at most: what NVIDIA recommends for Hopper.
constexpr int64_t kMostBlasWorkspaceBytes = int64_t{32} << 20;

// The library, which stays in the process for good once it is one.
class BlasLibrary {
 public:
  // Without a path the newest of those that the loader finds and the driver is made for. NOT_FOUND
  // or FAILED_PRECONDITION says why there is none.
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
  // The same for what gives something back in the host's memory, which is done whatever has become
  // of the context. What is refused is asked for once more.
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

// A product with the way that the library has chosen for it: the same in every process, for one
// version and one kind of GPU.
class BlasGemm final : public GpuLibraryGemm {
 public:
  // Null where the library does not take it.
  static Result<std::unique_ptr<BlasGemm>> Make(std::shared_ptr<Blas> blas,
                                                const program::LibraryGemm& product);
  ~BlasGemm() override;

  int64_t workspace_bytes() const override { return static_cast<int64_t>(choice_.workspace_bytes); }
  Status LaunchOn(StreamHandle stream, std::span<const GpuSpan> args);

 private:
  BlasGemm(std::shared_ptr<Blas> blas, const program::LibraryGemm& product)
      : blas_(std::move(blas)), product_(product) {}
  Status Describe();
  Status MakeLayout(BlasLayout* layout, BlasType type, int64_t rows, int64_t columns,
                    const program::LibraryMatrix& matrix);
  // False where nothing is chosen.
  Result<bool> Choose();
  Status Prefer(BlasPreference preference);

  std::shared_ptr<Blas> blas_;
  const program::LibraryGemm product_;
  BlasDesc desc_ = nullptr;
  BlasLayout a_ = nullptr, b_ = nullptr, out_ = nullptr;
  BlasChoice choice_;
};

}  // namespace kiln::device::cuda
