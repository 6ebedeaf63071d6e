// Kernels that tests write by hand, on the emulated GPU and as PTX.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "codegen/gpu/primitives.h"
#include "codegen/llvm_session.h"
#include "device/emulated/emulator.h"
#include "support/emulated_run.h"
#include "support/ptxas.h"

namespace kiln::testing {

// A kernel of a test.
class HandWritten {
 public:
  // Emits the body of a function with so many parameters; what it returns for is done here.
  using Body = std::function<void(llvm::IRBuilder<>& b, codegen::GpuPrimitives& gpu,
                                  llvm::Function* function)>;
  // As an object for the emulator, made fast or quickly; the failure is a test's.
  HandWritten(int parameters, const Body& body, const std::string& name = "k", int sm = 90,
              bool quick = false);

  Status Run(const device::GpuGrid& grid, std::span<const device::GpuSpan> args,
             const device::EmulatorOptions& options = {.watch_global_memory = true});
  // Of its code alone.
  const device::EmulatedKernel* kernel() const { return kernel_; }
  const std::string& object() const { return object_; }
  Status status() const { return status_; }

  // The same kernel as PTX.
  static Result<std::string> Ptx(int sm, int parameters, const Body& body);

 private:
  Status status_;
  std::string object_;
  std::unique_ptr<device::EmulatedCode> code_;
  const device::EmulatedKernel* kernel_ = nullptr;
};

template <typename T>
device::GpuSpan SpanOf(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(T))};
}

}  // namespace kiln::testing
