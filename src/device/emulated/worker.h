// A host thread that runs blocks of a grid, one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/emulated/emulator.h"
#include "device/emulated/fiber.h"
#include "device/emulated/shadow.h"
#include "device/emulated/warp.h"

namespace kiln::device {

// A permutation by a seed: steps of a size coprime to the count.
class ShuffledOrder {
 public:
  ShuffledOrder(uint64_t count, uint64_t seed);
  uint64_t operator[](uint64_t i) const { return (start_ + i * step_) % count_; }
  uint64_t step() const { return step_; }

 private:
  uint64_t count_, start_ = 0, step_ = 1;
};

// A grid while it runs, on several workers.
class EmulatedGrid {
 public:
  EmulatedGrid(const EmulatedKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args,
               const EmulatorOptions& options, int64_t piece_blocks, const int32_t* cancel);

  const EmulatedKernel& kernel;
  const GpuGrid& grid;
  const std::span<const GpuSpan> args;
  const EmulatorOptions& options;
  // Workers take this number of neighbouring blocks at once, in this order.
  const int64_t piece_blocks;
  const int64_t piece_count;
  const ShuffledOrder pieces;
  // The argument of generated code: without sizes if each access is to be reported.
  std::vector<kiln_emulated_parameter> parameters;
  GlobalShadow global;  // where that is watched, which one worker does
  std::atomic<int64_t> next{0};

  // Keeps the first.
  void Fail(Status status);
  // Whether to stop: the grid has failed, or is cancelled by this call.
  bool Stops();
  Status status() const { return status_; }

 private:
  const int32_t* const cancel_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  Status status_;
};

// A thread of the running block. Generated code accesses the view.
struct EmulatedThread {
  enum class State : uint8_t { kReady, kBarrier, kWarp, kEnded };
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    int32_t bytes = 0, size = 0;
    int32_t group = 0;
  };
  kiln_emulated_thread view{};
  State state = State::kReady;
  Fiber* fiber = nullptr;
  std::vector<Copy> copies;  // that have not been waited for
  int32_t groups = 0;        // of copies, committed
};

class EmulatedWorker {
 public:
  // Takes blocks of the grid until none is left. Failures are the grid's.
  void Run(EmulatedGrid& grid);

  // The functions called by generated code, on the thread's fiber.
  void Access(EmulatedThread& thread, std::byte* address, uint64_t access);
  void Barrier(EmulatedThread& thread, int32_t site);
  void Warp(EmulatedThread& thread, int32_t operation, int32_t site);
  void Copy(EmulatedThread& thread, std::byte* to, const std::byte* from, int32_t bytes,
            uint64_t access);
  void Commit(EmulatedThread& thread) { ++thread.groups; }
  void Fence() {
    if (grid_->options.watch_global_memory) grid_->global.Fence();
  }
  void Wait(EmulatedThread& thread, int32_t pending);
  [[noreturn]] void Endless(EmulatedThread& thread);

 private:
  struct WarpState {
    uint32_t arrived = 0;
    int32_t operation = 0, site = 0;
    uint32_t barriers = 0;  // of the warp, that all lanes have come to
  };
  struct Mistake;

  Status Prepare();
  void RunAlone(int64_t begin, int64_t end);
  void RunTogether(int64_t block);
  void StartBlock(uint32_t block);
  // Runs fibers until they return: the block has ended, a thread has failed, or all wait.
  void GoInside(FiberContext& first) { SwitchFiber(outside_, first); }
  static FiberContext* AloneMain(void* worker);
  static FiberContext* ThreadMain(void* thread);

  ShuffledOrder OrderOfThreads() const;
  void MakeReady(uint32_t thread);
  FiberContext& Next();
  // Of a thread, while one of its warp runs.
  void CheckAccess(EmulatedThread& running, uint32_t thread, const std::byte* address,
                   uint64_t access);
  // Abandons the running fiber. The message is formatted outside.
  [[noreturn]] void Fail(EmulatedThread& running, const Mistake& mistake);
  Status DescribeMistake() const;
  Status DescribeDeadlock() const;

  EmulatedGrid* grid_ = nullptr;
  FiberStacks stacks_;
  FiberContext outside_;
  std::vector<EmulatedThread> threads_;
  uint32_t thread_count_ = 0, block_ = 0;
  int64_t piece_begin_ = 0, piece_end_ = 0;

  std::vector<std::byte> shared_memory_;
  std::byte* shared_ = nullptr;
  SharedShadow shadow_;

  // The ring of runnable threads, each in it once.
  std::vector<uint32_t> ready_;
  uint32_t ready_first_ = 0, ready_count_ = 0;
  uint32_t ended_ = 0, at_barrier_ = 0;
  int32_t barrier_site_ = 0;
  uint32_t barriers_ = 0;
  std::vector<WarpState> warps_;

  struct Mistake {
    enum class Kind : uint8_t {
      kNone,
      kOutside,     // of what the address was made of
      kMisaligned,  //
      kConflict,    //
      kBarriers,    // threads wait at different ones
      kWarps,       // lanes do different things
      kCopies,      // that are not waited for
      kEndless,     //
      kMemory,      // of the host has run out
    };
    Kind kind = Kind::kNone;
    uint32_t thread = 0;
    const std::byte* address = nullptr;
    uint64_t access = 0;
    Conflict conflict;
    uint32_t other = 0;  // thread
    int32_t operation = 0, other_operation = 0;
  };
  Mistake mistake_;
};

}  // namespace kiln::device
