// What every device is to the rest of the library: it loads artefacts and runs them. One to one
// with PJRT's notions of device and loaded executable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/trace.h"
#include "program/memory.h"
#include "program/program.h"
#include "runtime/arena.h"
#include "runtime/cuda_interop.h"
#include "runtime/custom_calls.h"
#include "target/target.h"

namespace kiln::runtime {

struct RunOptions {
  int threads = 0;  // 0: all that the device has
  TraceSink* trace = nullptr;
  // Polled by loops of the program: non-zero ends the run with CANCELLED.
  const int32_t* cancel = nullptr;
  // The caller's stream that the run is put on, where the device takes streams; null: its own.
  void* stream = nullptr;
};

// The end of a run that has been started.
class Completion {
 public:
  virtual ~Completion() = default;
  // Until the run is over; its failure if it failed.
  virtual Status Wait() = 0;
};

// An artefact that is ready to run.
class LoadedExecutable {
 public:
  virtual ~LoadedExecutable() = default;
  virtual const program::Program& program() const = 0;

  // What the address of an argument must be a multiple of.
  int64_t argument_alignment(size_t argument) const {
    const std::vector<int64_t>& alignments = program().argument_alignments;
    return alignments.empty() ? program::kAlignment : alignments[argument];
  }

  // Runs to the end. Arguments and results are leaves in order, as large as their shapes, arguments
  // at multiples of argument_alignment and results of program::kAlignment; results overlap neither
  // arguments nor each other, but that a result of the signature's aliases may be the argument's
  // memory, which it then becomes. Any number of threads may run one executable at once.
  virtual Status Run(std::span<const void* const> arguments, std::span<void* const> results,
                     const RunOptions& options = {}) = 0;

  // Begins a run, which may end later than this does: null where it is done already. What the
  // device is asked for after this comes after the run; arguments and results stay until its end.
  // `options` is used until this returns, but for the trace, which must outlive the completion.
  virtual Result<std::unique_ptr<Completion>> Start(std::span<const void* const> arguments,
                                                    std::span<void* const> results,
                                                    const RunOptions& options) {
    KILN_RETURN_IF_ERROR(Run(arguments, results, options));
    return std::unique_ptr<Completion>();
  }

  // Whether a run calls functions of the user's, on the thread that runs or starts it.
  virtual bool calls_users_functions() const { return false; }

  // Machine code, and what belongs to it.
  virtual int64_t code_bytes() const { return 0; }
  // Constants, and what is made of them, as long as it is loaded.
  virtual int64_t constant_bytes() const { return program::MemoryOf(program()).constants; }
  // A table of what each kernel takes of the device, for people; empty where there is nothing to
  // tell.
  virtual std::string ResourceReport() const { return ""; }
};

// What a device's memory holds, in bytes.
struct DeviceMemory {
  int64_t live_bytes = 0;   // given out: buffers, constants and kept temporaries
  int64_t peak_bytes = 0;   // the most that was ever given out
  int64_t limit_bytes = 0;  // of what may be given out; 0 for no limit
};

class Device : public MemorySource {
 public:
  const std::string& name() const { return name_; }  // "CPU:0"
  const target::Target& target() const { return target_; }
  // What programs call outside generated code; before the first Load. What it names outlives the
  // device.
  void set_call_host(const CallHost& host) { call_host_ = host; }
  const CallHost& call_host() const { return call_host_; }
  // Makes an artefact ready to run. What loading alone needs of it, as the host's copy of its
  // constants, is given back on the way. FAILED_PRECONDITION where it was compiled for a target
  // that the device is not, or for another version of the frame. `trace`, which may be null, gets a
  // bar for each part of the work.
  Result<std::unique_ptr<LoadedExecutable>> Load(program::Artefact artefact,
                                                 TraceSink* trace = nullptr);

  // Memory for arguments and results, at a multiple of program::kAlignment, for at least one byte,
  // so that empty arrays have an address too; its contents are undefined.
  Result<std::byte*> Allocate(int64_t bytes) override = 0;
  // May be called while work that uses the memory is under way.
  void Deallocate(std::byte* memory, int64_t bytes) override = 0;
  virtual DeviceMemory Memory() const = 0;
  // Whether the host reads and writes it as its own.
  virtual bool has_host_memory() const { return false; }

  // Between the device's memory and the host's, after all that the device was asked for before.
  // `from` may change once CopyFromHost has returned, and `to` is there once CopyToHost has.
  virtual Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) = 0;
  virtual Status CopyToHost(void* to, const std::byte* from, int64_t bytes) = 0;
  // Within its memory.
  virtual Status Copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual Status FillZero(std::byte* memory, int64_t bytes) = 0;
  // Until all that the device was asked for is done.
  virtual Status Synchronise() { return OkStatus(); }

  // Memory of the caller's is to be arguments and results, until it is unregistered as often as it
  // was registered. INVALID_ARGUMENT where it is not the device's. Nothing that uses it is under
  // way any more when it is unregistered.
  virtual Status Register(std::byte* memory, int64_t bytes) {
    (void)memory, (void)bytes;
    return OkStatus();
  }
  virtual void Unregister(std::byte* memory, int64_t bytes) noexcept { (void)memory, (void)bytes; }

  // Transfers from here on are recorded, too, until it is called with null, which waits for them.
  // Runs are recorded where their options say so.
  virtual void SetTrace(std::shared_ptr<TraceSink> trace) { (void)trace; }
  // Whether its work is shown in lanes of its own, at the times when it was done.
  virtual bool shows_runs() const { return false; }

  // Where it is one of the CUDA driver's, which takes streams of the caller's (CUstream) in
  // RunOptions; else null.
  virtual CudaInterop* cuda() { return nullptr; }

 protected:
  // Of an artefact for this target and the frame's version.
  virtual Result<std::unique_ptr<LoadedExecutable>> LoadChecked(program::Artefact artefact,
                                                                TraceSink* trace) = 0;
  Device(std::string name, target::Target target)
      : name_(std::move(name)), target_(std::move(target)) {}

 private:
  std::string name_;
  target::Target target_;
  CallHost call_host_;
};

}  // namespace kiln::runtime
