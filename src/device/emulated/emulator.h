// An emulated GPU: runs grids of GPU kernels on the CPU with their blocks, threads, barriers, warps
// and shared memory, and finds out what goes unnoticed on a GPU.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/cpu/link.h"
#include "device/gpu/machine.h"
#include "frame/emulated.h"
#include "runtime/thread_pool.h"

namespace kiln::device {

struct EmulatorOptions {
  // Of the orders in which blocks and threads run, which no result may depend on; 0 is by number.
  uint64_t seed = 1;
  // Looks for blocks and threads that get at the same global memory without a barrier in between,
  // on one thread of the host and several times as slowly.
  bool watch_global_memory = false;
  // How often the loops of one thread may go back together.
  int64_t most_rounds = int64_t{1} << 34;

  // What KILN_EMULATE_GPU_SEED (a number) and KILN_EMULATE_GPU_WATCH (0 or 1) say.
  static EmulatorOptions FromEnvironment();
};

struct EmulatedKernel {
  std::string name;
  kiln_emulated_kernel info{};
  size_t stack_bytes = 0;  // that a thread's code takes
};

// Code for the emulator.
class EmulatedCode {
 public:
  // An object that codegen::LowerPrimitivesToEmulator had a part in.
  static Result<std::unique_ptr<EmulatedCode>> Load(const std::string& object);

  // Borrowed. NOT_FOUND where there is no such kernel. From any thread.
  Result<const EmulatedKernel*> Find(const std::string& symbol);
  int64_t byte_size() const { return code_->byte_size(); }

 private:
  EmulatedCode() = default;
  std::unique_ptr<LinkedCode> code_;
  size_t stack_bytes_ = 0;
  std::mutex mutex_;
  std::map<std::string, EmulatedKernel> kernels_;
};

class EmulatedWorker;

class Emulator {
 public:
  Emulator(runtime::ThreadPool& pool, const EmulatorOptions& options);
  ~Emulator();

  // Runs all blocks to the end. INTERNAL names kernel, block and thread, and what is wrong: the
  // first mistake that is found stops the grid before memory is touched that should not be.
  // From any thread.
  Status Run(const EmulatedKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args,
             const int32_t* cancel = nullptr);

 private:
  friend class EmulatedGrid;
  Result<std::unique_ptr<EmulatedWorker>> Acquire();
  void Release(std::unique_ptr<EmulatedWorker> worker);

  runtime::ThreadPool& pool_;
  const EmulatorOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<EmulatedWorker>> idle_;
};

}  // namespace kiln::device
