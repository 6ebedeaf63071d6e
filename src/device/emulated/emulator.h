// An emulated GPU: runs grids of GPU kernels on the CPU with their blocks, threads, barriers, warps
// and shared memory, and detects errors that go unnoticed on a GPU.
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
  // The seed of the order of blocks and threads, which must not affect results; 0: by number.
  uint64_t seed = 1;
  // Detects data races on global memory, on one host thread and several times as slowly.
  bool watch_global_memory = false;
  // The limit of loop iterations of one thread.
  int64_t most_rounds = int64_t{1} << 34;

  // The options of KILN_EMULATE_GPU_SEED (a number) and KILN_EMULATE_GPU_WATCH (0 or 1).
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
  // An object lowered by codegen::LowerPrimitivesToEmulator.
  static Result<std::unique_ptr<EmulatedCode>> Load(const std::string& object);

  // Borrowed. NOT_FOUND for an unknown kernel. From any thread.
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

  // Runs all blocks to the end. INTERNAL names kernel, block, thread and mistake: the first one
  // stops the grid before an illegal access of memory. From any thread.
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
