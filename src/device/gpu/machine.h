// The interface of GPUs to the executor of programs. There are two machines: the CUDA driver's
// (device/cuda) and the emulated one (device/emulated).
//
// Everything may be called from any thread. Work of one stream is done in order, asynchronously. A
// failure of the work itself is reported by the first event recorded behind it, or else by the next
// Synchronise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "device/gpu/activity.h"
#include "program/library_gemm.h"
#include "target/target.h"

namespace kiln::device {

// A piece of the machine's memory.
struct GpuSpan {
  std::byte* address = nullptr;
  int64_t bytes = 0;
};

struct GpuGrid {
  int64_t blocks = 1;
  int threads = 32;          // per block, whole warps
  int64_t shared_bytes = 0;  // dynamic shared memory of a block
};

// As the machine reports them.
struct GpuResources {
  int registers = -1;        // of a thread; -1 where there are none: an emulated GPU
  int64_t local_bytes = 0;   // of a thread: spilled registers and arrays
  int64_t shared_bytes = 0;  // of a block, beside the dynamic part
};

// A kernel of a module, alive as long as that.
class GpuKernel {
 public:
  virtual ~GpuKernel() = default;
  virtual const std::string& symbol() const = 0;
  virtual GpuResources resources() const = 0;
};

// Code on the machine.
class GpuModule {
 public:
  virtual ~GpuModule() = default;
  // Borrowed. NOT_FOUND for an unknown kernel.
  virtual Result<GpuKernel*> Find(const std::string& symbol) = 0;
  virtual int64_t code_bytes() const = 0;
};

// A point in a stream's work. Can be recorded repeatedly. Timed events (MakeTimedEvent) report no
// failures, so that failures are the same with and without them.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
  virtual Result<bool> IsDone() = 0;
  // Waits until all preceding work of its stream is done. Returns the first failure since the
  // preceding event, every time. OK if it was never recorded.
  virtual Status Wait() = 0;
};

// A gemm by a library's function.
class GpuLibraryGemm {
 public:
  virtual ~GpuLibraryGemm() = default;
  // The workspace bytes of a launch; 0 for none.
  virtual int64_t workspace_bytes() const = 0;
};

class GpuGraph;

class GpuStream {
 public:
  // Waits for the remaining work.
  virtual ~GpuStream() = default;

  // Kernels have a parameter for each of the spans, its address.
  virtual Status Launch(GpuKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args) = 0;
  virtual Status Launch(GpuGraph& graph) = 0;
  // `args` are the arrays of both factors and of the result, then the workspace, if any.
  virtual Status Launch(GpuLibraryGemm&, std::span<const GpuSpan>) {
    return Unimplemented("this stream has no library");
  }
  // Within the machine's memory.
  virtual Status Copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // The host's memory must stay unchanged until the stream has done this. Asynchronous for pinned
  // memory; may wait otherwise.
  virtual Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) = 0;
  virtual Status CopyToHost(void* to, const std::byte* from, int64_t bytes) = 0;
  virtual Status Fill(std::byte* to, uint8_t value, int64_t bytes) = 0;

  // Later work may be skipped, as CANCELLED, once the flag is not 0; null: never. Devices that
  // cannot read host memory do all of it.
  virtual Status EndBy(const int32_t* cancel) { return OkStatus(); }

  virtual Status Record(GpuEvent& event) = 0;
  // Later work of this stream comes after the event, of any stream of the machine.
  virtual Status WaitFor(GpuEvent& event) = 0;
  // Waits for all submitted work. Returns the first failure not reported by an event, once.
  virtual Status Synchronise() = 0;
};

// Work defined once and launched many times, one node after the other in the order of their
// addition.
//
// On machines with device loops, nodes may be in arbitrarily nested loops and conditionals: those
// added between a Begin and its End.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  // A node's number.
  virtual Result<int> AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                std::span<const GpuSpan> args) = 0;
  virtual Result<int> AddCopy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // A loop: repeats while the pred at `predicate`, read before each iteration, is true.
  virtual Result<int> BeginWhile(const std::byte* predicate) = 0;
  // A conditional with this number of branches, two for a predicate, selected by program::BranchAt
  // from the value at `index`. The nodes of the first branch follow, and after each NextBranch the
  // nodes of the next one.
  virtual Result<int> BeginBranches(const std::byte* index, bool by_predicate, int branches) = 0;
  virtual Status NextBranch() = 0;
  virtual Status End() = 0;
  // After the last node; before the first launch.
  virtual Status Finish() = 0;
  // Between launches of finished graphs: the same node with other addresses. Pending launches keep
  // theirs.
  virtual Status SetLaunch(int node, std::span<const GpuSpan> args) = 0;
  virtual Status SetCopy(int node, std::byte* to, const std::byte* from) = 0;
  // The predicate of a loop, the index of a conditional.
  virtual Status SetCondition(int node, const std::byte* address) = 0;
};

struct GpuMemory {
  int64_t total_bytes = 0, free_bytes = 0;
};

class GpuMachine {
 public:
  virtual ~GpuMachine() = default;

  const target::Target& target() const { return target_; }
  // One line for users: the product's name, or a note that it is emulated.
  const std::string& description() const { return description_; }
  // The driver with its version: "CUDA 12.4".
  virtual std::string driver() const { return "no driver"; }

  // Stream-ordered memory, aligned to 256 bytes; freed memory is reused by later allocations in the
  // same stream's order. RESOURCE_EXHAUSTED, with sizes, leaves everything usable. At least one
  // byte is allocated.
  virtual Result<std::byte*> Allocate(int64_t bytes, GpuStream& stream) = 0;
  virtual void Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept = 0;
  virtual Result<GpuMemory> Memory() = 0;

  // Registers memory of the caller for work, until it is unregistered as often as it was
  // registered. INVALID_ARGUMENT for memory inaccessible to this machine.
  virtual Status Register(std::byte* memory, int64_t bytes) = 0;
  virtual void Unregister(std::byte* memory, int64_t bytes) noexcept = 0;

  // Host memory for transfers.
  virtual Result<std::byte*> AllocatePinned(int64_t bytes) = 0;
  virtual void FreePinned(std::byte* memory, int64_t bytes) noexcept = 0;

  virtual Result<std::unique_ptr<GpuStream>> MakeStream() = 0;
  // The caller's stream (a CUstream), which must outlive the returned object. The object's end does
  // not wait for the work. Nothing is allocated for it. UNIMPLEMENTED unless `takes_streams`.
  virtual Result<std::unique_ptr<GpuStream>> WrapStream(void* native) = 0;
  virtual bool takes_streams() const { return false; }
  // The CUDA driver's number of the device; -1 for other devices.
  virtual int cuda_ordinal() const { return -1; }
  virtual Result<std::unique_ptr<GpuEvent>> MakeEvent() = 0;
  // Timed events, and the time between two of them, in any streams.
  virtual Result<std::unique_ptr<GpuEvent>> MakeTimedEvent() = 0;
  virtual Result<double> ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) = 0;
  // Subscribes to the machine's own records of its work; null if there are none.
  virtual std::unique_ptr<GpuActivities> ListenToActivities() { return nullptr; }
  virtual Result<std::unique_ptr<GpuGraph>> MakeGraph() = 0;
  // Whether graphs have loops and conditionals.
  virtual bool loops_on_device() const { return false; }
  // `code` is the output of codegen::GenerateGpu for the machine's target: PTX, or an object for
  // the emulator. `image`, unless empty, is what a machine of the same architecture has assembled
  // of it, and is taken if the driver takes it.
  virtual Result<std::unique_ptr<GpuModule>> Load(const std::string& code,
                                                  std::string_view image = {}) = 0;
  // The architecture of assembled code ("sm_90"), and the code assembled for it. Empty: code is not
  // assembled.
  virtual std::string architecture() const { return ""; }
  virtual Result<std::string> Assemble(const std::string& code) {
    (void)code;
    return Unimplemented(description_, " has no assembler");
  }

  // The library of gemms, with its version: "cuBLASLt 13.1.0". It is loaded on the first call. An
  // error gives the reason if there is none.
  virtual Result<std::string> GemmLibrary() {
    return NotFound(description_, " has no library of gemms");
  }
  // Null if the library does not support it.
  virtual Result<std::unique_ptr<GpuLibraryGemm>> FindLibraryGemm(const program::LibraryGemm&) {
    return std::unique_ptr<GpuLibraryGemm>();
  }

 protected:
  GpuMachine(target::Target target, std::string description)
      : target_(std::move(target)), description_(std::move(description)) {}

 private:
  target::Target target_;
  std::string description_;
};

}  // namespace kiln::device
