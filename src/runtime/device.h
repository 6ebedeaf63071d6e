// The interface of devices: they load artefacts and run them. One to one with PJRT's device and
// loaded executable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/strings.h"
#include "base/trace.h"
#include "program/memory.h"
#include "program/program.h"
#include "runtime/arena.h"
#include "runtime/binding.h"
#include "runtime/cuda_interop.h"
#include "runtime/custom_calls.h"
#include "target/target.h"

namespace kiln::runtime {

struct RunOptions {
  int threads = 0;  // 0: all that the device has
  TraceSink* trace = nullptr;
  // Polled by loops of the program: non-zero ends the run with CANCELLED.
  const int32_t* cancel = nullptr;
  // Set to true when the program begins, before it writes anything: a failure without it has left
  // the memory of donated arguments as it was. May be null.
  bool* begun = nullptr;
  // The caller's stream for the run, on devices with streams; null: the device's own.
  void* stream = nullptr;
  // What is made of the program's frozen arguments, until the end of the run; null where the
  // program makes nothing of them.
  const Binding* binding = nullptr;
};

// The completion of a started run.
class Completion {
 public:
  virtual ~Completion() = default;
  // Waits until the run is over; its failure if it failed.
  virtual Status Wait() = 0;
};

// A loaded artefact, ready to run.
class LoadedExecutable {
 public:
  virtual ~LoadedExecutable();
  virtual const program::Program& program() const = 0;

  // The required alignment of an argument.
  int64_t argument_alignment(size_t argument) const {
    const std::vector<int64_t>& alignments = program().argument_alignments;
    return alignments.empty() ? program::kAlignment : alignments[argument];
  }

  // Runs to the end. Arguments and results are leaves in order, as large as their shapes (frozen
  // arguments that runs do not read are null), arguments aligned to argument_alignment and results
  // to program::kAlignment. Results overlap neither arguments nor each other, except that an
  // aliased result may be in its argument's memory. Any number of threads may run one executable at
  // once.
  virtual Status Run(std::span<const void* const> arguments, std::span<void* const> results,
                     const RunOptions& options = {}) = 0;

  // Begins an asynchronous run; null if it has ended already. Later work of the device comes after
  // the run; arguments and results must stay until its end. `options` is used until this returns,
  // except the trace, which must outlive the completion.
  virtual Result<std::unique_ptr<Completion>> Start(std::span<const void* const> arguments,
                                                    std::span<void* const> results,
                                                    const RunOptions& options);

  // Of a program with binding steps: `previous` with some groups (program::FrozenGroups) bound to
  // other arguments, which stand under their numbers, aligned as for a run; null: none is bound
  // yet. Returns at the end of the work. Any thread, beside runs too.
  virtual Result<std::shared_ptr<const Binding>> Bind(const Binding* previous,
                                                      std::span<const size_t> groups,
                                                      std::span<const void* const> arguments);

  // Whether a run calls functions of the user, on the thread that runs or starts it.
  virtual bool calls_users_functions() const { return false; }

  // The program with its code as it is now: what the prologue has made is among its constants, and
  // what the device has assembled is beside the code. Any thread. FAILED_PRECONDITION if its
  // artefact did not say `keeps_code`.
  Result<program::Artefact> Save() const;
  // Frees the kept code, as if the artefact had not asked for it. Before others have the
  // executable.
  void DropCode();

  // Bytes of machine code and its data.
  virtual int64_t code_bytes() const { return 0; }
  // Bytes of constants and of values computed from them, while it is loaded.
  virtual int64_t constant_bytes() const { return program::MemoryOf(program()).constants; }
  // A readable table of each kernel's resources on the device; empty if there are none to report.
  virtual std::string ResourceReport() const { return ""; }

 protected:
  // The loaded form of an artefact keeps its code, if it is to.
  void KeepCode(program::Artefact& artefact);
  // Gives a copy of the program the constants that are in the device's memory.
  virtual Status SaveConstants(program::Program& saved) const {
    (void)saved;
    return OkStatus();
  }
  // What the device has assembled of the code, if it can be had.
  virtual std::optional<program::MachineCode> Assembled(std::span<const std::string> code) const;

 private:
  bool keeps_code_ = false;
  std::vector<std::string> code_;
};

// The use of a device's memory, in bytes.
struct DeviceMemory {
  int64_t live_bytes = 0;   // given out: buffers, constants and kept temporaries
  int64_t peak_bytes = 0;   // the most that was ever given out
  int64_t limit_bytes = 0;  // of what may be given out; 0 for no limit
};

class Device : public MemorySource {
 public:
  ~Device() override;
  const std::string& name() const { return name_; }  // "CPU:0"
  const target::Target& target() const { return target_; }
  // Sets the functions that programs call outside generated code; before the first Load. Its
  // members outlive the device.
  void set_call_host(const CallHost& host) { call_host_ = host; }
  const CallHost& call_host() const { return call_host_; }
  // Makes an artefact ready to run. Parts needed only for loading, such as the host's copy of its
  // constants, are freed on the way. FAILED_PRECONDITION if it was compiled for an incompatible
  // target, or for another version of the frame. `trace`, which may be null, gets a bar for each
  // part of the work.
  Result<std::unique_ptr<LoadedExecutable>> Load(program::Artefact artefact,
                                                 TraceSink* trace = nullptr);

  // Uninitialised memory for arguments and results, aligned to program::kAlignment, of at least one
  // byte, so that empty arrays have an address too.
  Result<std::byte*> Allocate(int64_t bytes) override = 0;
  // May be called while pending work uses the memory.
  void Deallocate(std::byte* memory, int64_t bytes) override = 0;
  virtual DeviceMemory Memory() const = 0;
  // Whether the host can access it directly.
  virtual bool has_host_memory() const { return false; }

  // Copies between device and host memory, after all earlier work of the device. `from` may change
  // once CopyFromHost has returned, and `to` is complete once CopyToHost has.
  virtual Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) = 0;
  virtual Status CopyToHost(void* to, const std::byte* from, int64_t bytes) = 0;
  // Within its memory.
  virtual Status Copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual Status FillZero(std::byte* memory, int64_t bytes) = 0;
  // Waits for all work of the device.
  virtual Status Synchronise() { return OkStatus(); }

  // Registers memory of the caller for arguments and results, until it is unregistered as often as
  // it was registered. INVALID_ARGUMENT for memory of another device. No pending work may use it
  // when it is unregistered.
  virtual Status Register(std::byte* memory, int64_t bytes) {
    (void)memory, (void)bytes;
    return OkStatus();
  }
  virtual void Unregister(std::byte* memory, int64_t bytes) noexcept { (void)memory, (void)bytes; }

  // Records transfers from now on, until a call with null, which waits for them. Runs are recorded
  // by their options.
  virtual void SetTrace(std::shared_ptr<TraceSink> trace) { (void)trace; }
  // Whether its work has lanes of its own in timelines, with its actual times.
  virtual bool shows_runs() const { return false; }

  // The interface for the CUDA driver's devices, which accept a caller's stream (CUstream) in
  // RunOptions; otherwise null.
  virtual CudaInterop* cuda() { return nullptr; }

 protected:
  // Loads an artefact for this target and the frame's version.
  virtual Result<std::unique_ptr<LoadedExecutable>> LoadChecked(program::Artefact artefact,
                                                                TraceSink* trace) = 0;
  Device(std::string name, target::Target target);

 private:
  std::string name_;
  target::Target target_;
  CallHost call_host_;
};

}  // namespace kiln::runtime
