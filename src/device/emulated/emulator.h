// An emulated GPU: runs GPU kernels on the CPU with their blocks, threads, barriers, shuffles and
// shared memory, so that every GPU kernel's results can be tested anywhere.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "device/cpu/link.h"
#include "plan/plan.h"

namespace kiln::device {

class EmulatedKernel {
 public:
  // `object` is what codegen::GenerateEmulated made of the kernel.
  static Result<std::unique_ptr<EmulatedKernel>> Load(const plan::ScheduledKernel& kernel,
                                                      const std::string& object);

  // Runs all blocks to the end; `args` are the addresses of the kernel's parameters. INTERNAL,
  // naming kernel and block, where the threads of a block do not all reach a barrier or the lanes
  // of a warp a shuffle.
  Status Launch(std::span<void* const> args);

 private:
  EmulatedKernel() = default;
  std::string name_;
  kernel::GpuNestSchedule schedule_;
  std::unique_ptr<LinkedCode> code_;
  void (*thread_)(void* const* args) = nullptr;
};

}  // namespace kiln::device
