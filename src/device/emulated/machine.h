// The emulated GPU as a machine. Streams are lazy: work is done when awaited, or when much is
// pending, so that a missing wait is detected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/emulated/emulator.h"
#include "device/gpu/machine.h"
#include "runtime/arena.h"
#include "runtime/thread_pool.h"

namespace kiln::device {

struct EmulatedStreamState;

class EmulatedMachine : public GpuMachine {
 public:
  struct Options {
    int64_t memory_bytes = int64_t{16} << 30;
    // The limit of pending entries of a stream.
    size_t most_waiting = 256;
    bool loops_on_device = true;
    EmulatorOptions emulator = EmulatorOptions::FromEnvironment();
  };

  // `target` is target::EmulatedGpu's; INVALID_ARGUMENT otherwise. The pool and the allocator
  // outlive the machine, and the machine outlives its objects.
  static Result<std::unique_ptr<EmulatedMachine>> Create(const target::Target& target,
                                                         runtime::ThreadPool& pool,
                                                         runtime::Allocator& allocator,
                                                         const Options& options);
  static Result<std::unique_ptr<EmulatedMachine>> Create(const target::Target& target,
                                                         runtime::ThreadPool& pool,
                                                         runtime::Allocator& allocator);
  ~EmulatedMachine() override;

  Result<std::byte*> Allocate(int64_t bytes, GpuStream& stream) override;
  void Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept override;
  Result<GpuMemory> Memory() override;
  // Of the host's; ranges may overlap.
  Status Register(std::byte* memory, int64_t bytes) override;
  void Unregister(std::byte* memory, int64_t bytes) noexcept override;
  Result<std::byte*> AllocatePinned(int64_t bytes) override;
  void FreePinned(std::byte* memory, int64_t bytes) noexcept override;
  Result<std::unique_ptr<GpuStream>> MakeStream() override;
  Result<std::unique_ptr<GpuStream>> WrapStream(void* native) override;
  Result<std::unique_ptr<GpuEvent>> MakeEvent() override;
  Result<std::unique_ptr<GpuEvent>> MakeTimedEvent() override;
  // Of the host's clock.
  Result<double> ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) override;
  Result<std::unique_ptr<GpuGraph>> MakeGraph() override;
  bool loops_on_device() const override { return options_.loops_on_device; }
  Result<std::unique_ptr<GpuModule>> Load(const std::string& code,
                                          std::string_view image = {}) override;

 private:
  friend class EmulatedStream;
  friend class EmulatedEvent;
  friend class EmulatedGraph;
  friend struct EmulatedStreamState;

  struct Allocation {
    std::byte* memory = nullptr;  // of the allocator
    int64_t held = 0, bytes = 0;  // of that, and as asked for
  };

  EmulatedMachine(const target::Target& target, runtime::ThreadPool& pool,
                  runtime::Allocator& allocator, const Options& options);

  // All of these are called with the mutex held.
  Result<std::byte*> Take(int64_t bytes, std::map<std::byte*, Allocation>& from);
  Status CheckInside(const std::byte* address, int64_t bytes, const std::string& what) const;
  Status CheckLaunch(const GpuKernel& kernel, const GpuGrid& grid,
                     std::span<const GpuSpan> args) const;
  bool IsRegistered(const std::byte* address, int64_t bytes) const;
  void Release(std::byte* address);
  void FinishAll();

  runtime::Allocator& allocator_;
  const Options options_;
  Emulator emulator_;
  // Streams do their work under it, too.
  std::mutex mutex_;
  std::map<std::byte*, Allocation> memory_, pinned_;
  std::multimap<std::byte*, int64_t> registered_;  // the callers', and its size
  int64_t used_bytes_ = 0;
  std::vector<std::weak_ptr<EmulatedStreamState>> streams_;
};

}  // namespace kiln::device
