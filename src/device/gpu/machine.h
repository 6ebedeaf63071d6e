// What the executor of GPU programs asks of a GPU. There are two machines: the CUDA driver's
// (device/cuda) and the emulated one (device/emulated).
//
// Everything may be called from any thread. Work of one stream is done in order, some time after
// the call that asks for it. A failure of the work itself is that of the first event that is
// recorded behind it, or else of the next Synchronise.
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
  // Borrowed. NOT_FOUND where there is no such kernel.
  virtual Result<GpuKernel*> Find(const std::string& symbol) = 0;
  virtual int64_t code_bytes() const = 0;
};

// A point in a stream's work. Recorded again and again. Those that tell times (MakeTimedEvent) are
// told no failures, so that these are the same with and without them.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
  virtual Result<bool> IsDone() = 0;
  // Until all that came before it in its stream is done. Tells the first failure among what came
  // after the event before it, every time. OK where it was never recorded.
  virtual Status Wait() = 0;
};

// A matrix product by a library's function.
class GpuLibraryGemm {
 public:
  virtual ~GpuLibraryGemm() = default;
  // Of memory that a launch has for itself until it is done; 0 for none.
  virtual int64_t workspace_bytes() const = 0;
};

class GpuGraph;

class GpuStream {
 public:
  // Waits for the work that is left.
  virtual ~GpuStream() = default;

  // Kernels have a parameter for each of the spans, its address.
  virtual Status Launch(GpuKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args) = 0;
  virtual Status Launch(GpuGraph& graph) = 0;
  // `args` are the arrays of both factors and of the result, then the workspace if there is one.
  virtual Status Launch(GpuLibraryGemm&, std::span<const GpuSpan>) {
    return Unimplemented("this stream has no library");
  }
  // Within the machine's memory.
  virtual Status Copy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // The host's memory must be as it is until the stream has done this. Asynchronous for pinned
  // memory; may wait otherwise.
  virtual Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) = 0;
  virtual Status CopyToHost(void* to, const std::byte* from, int64_t bytes) = 0;
  virtual Status Fill(std::byte* to, uint8_t value, int64_t bytes) = 0;

  // What follows may be left undone, as CANCELLED, once the flag is not 0; null: it is done.
  // Devices that cannot look at the host's memory do it all.
  virtual Status EndBy(const int32_t* cancel) { return OkStatus(); }

  virtual Status Record(GpuEvent& event) = 0;
  // What follows in this stream comes after the event, which is of any stream of the machine.
  virtual Status WaitFor(GpuEvent& event) = 0;
  // All that has been asked for is done. Tells the first failure that is no event's, once.
  virtual Status Synchronise() = 0;
};

// Work that is given once and launched many times, one node after the other in the order in which
// they were added.
//
// Where the machine has loops on the device, nodes may stand in loops and choices, within each
// other at will: those that are added between a Begin and its End.
class GpuGraph {
 public:
  virtual ~GpuGraph() = default;
  // A node's number.
  virtual Result<int> AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                std::span<const GpuSpan> args) = 0;
  virtual Result<int> AddCopy(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // A loop: again and again as long as the pred at `predicate` is true, which is read before each
  // time.
  virtual Result<int> BeginWhile(const std::byte* predicate) = 0;
  // A choice of so many branches, two by a predicate, as program::BranchAt makes it of what is at
  // `index` when the choice is come to. The nodes of the first branch follow, and after each
  // NextBranch those of the next one.
  virtual Result<int> BeginBranches(const std::byte* index, bool by_predicate, int branches) = 0;
  virtual Status NextBranch() = 0;
  virtual Status End() = 0;
  // After the last node; before the first launch.
  virtual Status Finish() = 0;
  // Between launches, of finished graphs: the same node with other addresses. Launches that are
  // under way keep theirs.
  virtual Status SetLaunch(int node, std::span<const GpuSpan> args) = 0;
  virtual Status SetCopy(int node, std::byte* to, const std::byte* from) = 0;
  // Of a loop its predicate, of a choice its index.
  virtual Status SetCondition(int node, const std::byte* address) = 0;
};

struct GpuMemory {
  int64_t total_bytes = 0, free_bytes = 0;
};

class GpuMachine {
 public:
  virtual ~GpuMachine() = default;

  const target::Target& target() const { return target_; }
  // One line for users: the product's name, or that it is emulated.
  const std::string& description() const { return description_; }
  // What makes machine code and runs it, with its version: "CUDA 12.4".
  virtual std::string driver() const { return "no driver"; }

  // Memory that is the stream's from here on in its order, at a multiple of 256 bytes; what is
  // freed goes to who asks later in the same stream's order. RESOURCE_EXHAUSTED, with sizes, leaves
  // everything usable. At least one byte is allocated.
  virtual Result<std::byte*> Allocate(int64_t bytes, GpuStream& stream) = 0;
  virtual void Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept = 0;
  virtual Result<GpuMemory> Memory() = 0;

  // Memory of the caller's, which work may use until it is unregistered as often as it was
  // registered. INVALID_ARGUMENT where it is none that this machine gets at.
  virtual Status Register(std::byte* memory, int64_t bytes) = 0;
  virtual void Unregister(std::byte* memory, int64_t bytes) noexcept = 0;

  // Host memory for transfers.
  virtual Result<std::byte*> AllocatePinned(int64_t bytes) = 0;
  virtual void FreePinned(std::byte* memory, int64_t bytes) noexcept = 0;

  virtual Result<std::unique_ptr<GpuStream>> MakeStream() = 0;
  // The caller's stream (a CUstream), which he keeps for longer than what is returned: its end does
  // not wait for the work. Nothing is allocated for it. UNIMPLEMENTED unless `takes_streams`.
  virtual Result<std::unique_ptr<GpuStream>> WrapStream(void* native) = 0;
  virtual bool takes_streams() const { return false; }
  // The CUDA driver's number of the device; -1 where it is none of CUDA's.
  virtual int cuda_ordinal() const { return -1; }
  virtual Result<std::unique_ptr<GpuEvent>> MakeEvent() = 0;
  // Events that know when they were reached, and the time between two that have been, in whatever
  // streams.
  virtual Result<std::unique_ptr<GpuEvent>> MakeTimedEvent() = 0;
  virtual Result<double> ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) = 0;
  // Begins to listen to what the machine itself tells of its work; null where it tells nothing.
  virtual std::unique_ptr<GpuActivities> ListenToActivities() { return nullptr; }
  virtual Result<std::unique_ptr<GpuGraph>> MakeGraph() = 0;
  // Whether graphs have loops and choices.
  virtual bool loops_on_device() const { return false; }
  // `code` is what codegen::GenerateGpu made for the machine's target: PTX, or an object for the
  // emulator.
  virtual Result<std::unique_ptr<GpuModule>> Load(const std::string& code) = 0;

  // The library that makes products of matrices, with its version: "cuBLASLt 13.1.0". It is loaded
  // when it is first asked for. An error says why there is none.
  virtual Result<std::string> GemmLibrary() {
    return NotFound(description_, " has no library of matrix products");
  }
  // Null where the library does not take it.
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
