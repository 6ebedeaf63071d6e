#include "device/emulated/emulator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

#include "base/float_environment.h"
#include "base/strings.h"
#include "device/emulated/fiber.h"

namespace kiln::device {
namespace {

constexpr int kWarp = 32;

// What a thread waits for when it yields.
enum class Wait : uint8_t { kNothing, kBarrier, kShuffle };

struct Thread {
  Fiber fiber;
  Wait wait = Wait::kNothing;
  bool done = false;
  uint32_t shuffle_value = 0, shuffle_delta = 0, shuffle_result = 0;
};

// One block while it runs. Kernels reach it by the thread-local `current`.
struct Block {
  uint32_t index = 0;
  uint32_t running = 0;  // the thread that runs now
  std::deque<Thread> threads;
  std::vector<std::max_align_t> shared;
  void (*function)(void* const*) = nullptr;
  void* const* args = nullptr;
};

thread_local Block* current = nullptr;

uint32_t ThreadIndex() { return current->running; }
uint32_t BlockIndex() { return current->index; }
void* SharedMemory() { return current->shared.data(); }

void Suspend(Wait wait) {
  Thread& t = current->threads[current->running];
  t.wait = wait;
  t.fiber.Yield();
}

void Barrier() { Suspend(Wait::kBarrier); }

uint32_t ShuffleDown(uint32_t value, uint32_t delta) {
  Thread& t = current->threads[current->running];
  t.shuffle_value = value;
  t.shuffle_delta = delta;
  Suspend(Wait::kShuffle);
  return t.shuffle_result;
}

void RunThread(void* argument) {
  Block& block = *static_cast<Block*>(argument);
  block.function(block.args);
}

// Lets a warp's shuffle happen once all of its lanes are there.
bool ReleaseWarp(Block& block, size_t first) {
  size_t last = std::min(first + kWarp, block.threads.size());
  for (size_t i = first; i < last; ++i) {
    if (block.threads[i].done || block.threads[i].wait != Wait::kShuffle) return false;
  }
  for (size_t i = first; i < last; ++i) {
    Thread& t = block.threads[i];
    size_t source = i + t.shuffle_delta;
    t.shuffle_result = source < first + kWarp && source < last ? block.threads[source].shuffle_value
                                                               : t.shuffle_value;
  }
  for (size_t i = first; i < last; ++i) block.threads[i].wait = Wait::kNothing;
  return true;
}

bool ReleaseBarrier(Block& block) {
  for (const Thread& t : block.threads) {
    if (t.done || t.wait != Wait::kBarrier) return false;
  }
  for (Thread& t : block.threads) t.wait = Wait::kNothing;
  return true;
}

Status RunBlock(Block& block, const std::string& kernel) {
  for (Thread& t : block.threads) {
    t.wait = Wait::kNothing;
    t.done = false;
    t.fiber.Start(RunThread, &block);
  }
  size_t left = block.threads.size();
  while (left > 0) {
    bool progress = false;
    for (size_t i = 0; i < block.threads.size(); ++i) {
      Thread& t = block.threads[i];
      if (t.done || t.wait != Wait::kNothing) continue;
      block.running = static_cast<uint32_t>(i);
      t.done = t.fiber.Resume();
      left -= t.done;
      progress = true;
    }
    for (size_t w = 0; w < block.threads.size(); w += kWarp) progress |= ReleaseWarp(block, w);
    progress |= left == block.threads.size() && ReleaseBarrier(block);
    if (!progress) {
      return Internal("kernel ", kernel, ", block ", block.index,
                      ": not all threads reach the same barrier or shuffle");
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<EmulatedKernel>> EmulatedKernel::Load(const plan::ScheduledKernel& kernel,
                                                             const std::string& object) {
#if !defined(__x86_64__)
  return Unimplemented("the emulated GPU runs on x86-64 only");
#else
  std::unique_ptr<EmulatedKernel> e(new EmulatedKernel);
  e->name_ = kernel.kernel.name;
  e->schedule_ = kernel.gpu;
  std::vector<LinkSymbol> table = {
      {"kiln.gpu.thread", reinterpret_cast<void*>(&ThreadIndex)},
      {"kiln.gpu.block", reinterpret_cast<void*>(&BlockIndex)},
      {"kiln.gpu.barrier", reinterpret_cast<void*>(&Barrier)},
      {"kiln.gpu.shuffle_down", reinterpret_cast<void*>(&ShuffleDown)},
      {"kiln.gpu.shared", reinterpret_cast<void*>(&SharedMemory)},
  };
  KILN_ASSIGN_OR_RETURN(e->code_, Link({object}, table));
  KILN_ASSIGN_OR_RETURN(void* thread, e->code_->Find("kiln_thread"));
  e->thread_ = reinterpret_cast<void (*)(void* const*)>(thread);
  return e;
#endif
}

Status EmulatedKernel::Launch(std::span<void* const> args) {
  Block block;
  for (int i = 0; i < schedule_.threads; ++i) {
    if (!block.threads.emplace_back().fiber.valid()) {
      return ResourceExhausted("kernel ", name_, ": no memory for the stacks of ",
                               schedule_.threads, " emulated threads");
    }
  }
  block.shared.resize(static_cast<size_t>(schedule_.shared_bytes) / sizeof(std::max_align_t) + 1);
  block.function = thread_;
  block.args = args.data();
  DefaultFloatEnvironment environment;
  Block* outside = current;
  current = &block;
  Status status;
  for (int64_t i = 0; i < schedule_.blocks && status.ok(); ++i) {
    block.index = static_cast<uint32_t>(i);
    // Nothing may rely on what shared memory holds at the start.
    std::memset(block.shared.data(), 0xa5, block.shared.size() * sizeof(std::max_align_t));
    status = RunBlock(block, name_);
  }
  current = outside;
  return status;
}

}  // namespace kiln::device
