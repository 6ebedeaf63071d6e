// A GPU as a device: memory and executables on one stream of a machine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "device/gpu/machine.h"
#include "device/gpu/staging.h"
#include "device/gpu/timeline.h"
#include "runtime/device.h"

namespace kiln::device {

class AutotuneResults;  // autotune_results.h

class GpuDevice : public runtime::Device, private runtime::CudaInterop {
 public:
  // At most `limit_bytes` are allocated; 0 for no limit.
  GpuDevice(std::string name, std::shared_ptr<GpuMachine> machine, int64_t limit_bytes);
  ~GpuDevice() override;

  GpuMachine& machine() { return *machine_; }
  // Receives messages on fallbacks, from any thread; set before the first Load.
  void set_on_note(std::function<void(std::string_view)> on_note) { on_note_ = std::move(on_note); }
  void Note(std::string_view text) const {
    if (on_note_) on_note_(text);
  }
  // The choice of library gemms; set before the first Load. Without it our kernels are used.
  void set_autotune_results(std::shared_ptr<AutotuneResults> results) {
    autotune_results_ = std::move(results);
  }
  AutotuneResults* autotune_results() const { return autotune_results_.get(); }
  // Once, because the reason is the same every time.
  void NoteNoLibrary(std::string_view reason) {
    if (!noted_no_library_.exchange(true)) Note(reason);
  }
  // The stream of all work, created on first use.
  Result<GpuStream*> Stream();
  // Held while work and the event behind it are submitted: a failure is reported by the first event
  // behind the work, which must not be another thread's.
  std::mutex& order() { return order_; }
  GpuTimeline& timeline() { return timeline_; }

  Result<std::byte*> Allocate(int64_t bytes) override;
  void Deallocate(std::byte* memory, int64_t bytes) override;
  runtime::DeviceMemory Memory() const override;
  Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) override;
  Status CopyToHost(void* to, const std::byte* from, int64_t bytes) override;
  Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  Status FillZero(std::byte* memory, int64_t bytes) override;
  Status Synchronise() override;
  Status Register(std::byte* memory, int64_t bytes) override {
    return machine_->Register(memory, bytes);
  }
  void Unregister(std::byte* memory, int64_t bytes) noexcept override {
    machine_->Unregister(memory, bytes);
  }
  void SetTrace(std::shared_ptr<TraceSink> trace) override { timeline_.SetTrace(std::move(trace)); }
  bool shows_runs() const override { return true; }
  runtime::CudaInterop* cuda() override { return machine_->takes_streams() ? this : nullptr; }

 private:
  int ordinal() const override { return machine_->cuda_ordinal(); }
  Status JoinDefaultStream() override;
  Result<std::unique_ptr<runtime::LoadedExecutable>> LoadChecked(program::Artefact artefact,
                                                                 TraceSink* trace) override;

  const std::shared_ptr<GpuMachine> machine_;
  const int64_t limit_bytes_;
  std::function<void(std::string_view)> on_note_;
  std::shared_ptr<AutotuneResults> autotune_results_;
  std::atomic<bool> noted_no_library_{false};
  std::atomic<int64_t> live_{0}, peak_{0};
  std::mutex mutex_, order_;
  std::unique_ptr<GpuStream> stream_;
  Staging staging_;  // before the stream goes
  GpuTimeline timeline_;
};

}  // namespace kiln::device
