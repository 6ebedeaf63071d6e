// Streams, events and graphs of the emulated GPU.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/emulated/machine.h"
#include "device/gpu/open_bodies.h"

namespace kiln::device {

class EmulatedGpuKernel : public GpuKernel {
 public:
  EmulatedGpuKernel(std::shared_ptr<EmulatedCode> code_of, const EmulatedKernel* kernel_of)
      : code(std::move(code_of)), kernel(kernel_of) {}
  const std::string& symbol() const override { return kernel->name; }
  // Shared memory is dynamic, all of it.
  GpuResources resources() const override { return {}; }

  const std::shared_ptr<EmulatedCode> code;
  const EmulatedKernel* const kernel;
};

class EmulatedGpuModule : public GpuModule {
 public:
  explicit EmulatedGpuModule(std::shared_ptr<EmulatedCode> code) : code_(std::move(code)) {}
  Result<GpuKernel*> Find(const std::string& symbol) override;
  int64_t code_bytes() const override { return code_->byte_size(); }

 private:
  std::shared_ptr<EmulatedCode> code_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<EmulatedGpuKernel>> kernels_;
};

// The kinds of work of a stream. Launches keep their code alive.
struct EmulatedLaunch {
  std::shared_ptr<EmulatedCode> code;
  const EmulatedKernel* kernel = nullptr;
  GpuGrid grid;
  std::vector<GpuSpan> args;
};
struct EmulatedCopy {
  enum class Kind : uint8_t { kWithin, kFromHost, kToHost };
  Kind kind = Kind::kWithin;
  void* to = nullptr;
  const void* from = nullptr;
  int64_t bytes = 0;
};
struct EmulatedFill {
  std::byte* to = nullptr;
  uint8_t value = 0;
  int64_t bytes = 0;
};
struct EmulatedFree {
  std::byte* memory = nullptr;
};
// In graphs: continues behind `end` unless the pred at `predicate` is true.
struct EmulatedWhile {
  const std::byte* predicate = nullptr;
  size_t end = 0;
};
// Continues with a branch's first node.
struct EmulatedBranches {
  const std::byte* index = nullptr;
  bool by_predicate = true;
  std::vector<size_t> branches;
};
// The end of a loop's body, or of a branch.
struct EmulatedJump {
  size_t to = 0;
};
using EmulatedNode =
    std::variant<EmulatedLaunch, EmulatedCopy, EmulatedWhile, EmulatedBranches, EmulatedJump>;
using EmulatedNodes = std::vector<EmulatedNode>;
// Later work is cancelled by this flag; null: by none.
struct EmulatedCancel {
  const int32_t* flag = nullptr;
};
struct EmulatedWait {
  std::shared_ptr<EmulatedStreamState> stream;
  uint64_t position = 0;
};
// A recorded event: the failure since the preceding one, or the time when it was reached.
struct EmulatedPoint {
  bool timed = false;
  Status failure;
  int64_t time_ns = -1;  // TraceSink::Now's
};
struct EmulatedMark {
  std::shared_ptr<EmulatedPoint> point;
};
using EmulatedWork =
    std::variant<EmulatedLaunch, EmulatedCopy, EmulatedFill, EmulatedFree, EmulatedWait,
                 EmulatedMark, EmulatedCancel, std::shared_ptr<const EmulatedNodes>>;

// The pending work of a stream. Entries are numbered from 0 on; everything is under the machine's
// mutex.
struct EmulatedStreamState {
  explicit EmulatedStreamState(EmulatedMachine& machine_of) : machine(machine_of) {}

  void Add(EmulatedWork work);
  // Until `position` entries are done.
  void Finish(uint64_t position);
  void DoOne();
  uint64_t end() const { return done + waiting.size(); }

  EmulatedMachine& machine;
  std::deque<EmulatedWork> waiting;
  const int32_t* cancel = nullptr;  // of what is done now
  uint64_t done = 0;
  Status failure;  // the first since the last mark

 private:
  Status Do(const EmulatedLaunch& launch);
  Status Do(const EmulatedCopy& copy);
  Status Do(const EmulatedFill& fill);
  Status Do(const EmulatedFree& free);
  Status Do(const EmulatedWait& wait);
  Status Do(const EmulatedMark& mark);
  Status Do(const EmulatedCancel& by);
  Status Do(const std::shared_ptr<const EmulatedNodes>& nodes);

  // Does a node's work; returns the next node.
  Result<size_t> Step(const EmulatedLaunch& launch, size_t at);
  Result<size_t> Step(const EmulatedCopy& copy, size_t at);
  Result<size_t> Step(const EmulatedWhile& loop, size_t at);
  Result<size_t> Step(const EmulatedBranches& choice, size_t at);
  Result<size_t> Step(const EmulatedJump& jump, size_t at);
};

class EmulatedEvent : public GpuEvent {
 public:
  EmulatedEvent(EmulatedMachine& machine, bool timed) : machine_(machine), timed_(timed) {}
  // Each call does at least one entry, so repeated calls terminate.
  Result<bool> IsDone() override;
  Status Wait() override;

 private:
  friend class EmulatedMachine;
  friend class EmulatedStream;
  EmulatedMachine& machine_;
  const bool timed_;
  std::shared_ptr<EmulatedStreamState> stream_;  // null before the first record
  std::shared_ptr<EmulatedPoint> point_;
  uint64_t position_ = 0;
};

class EmulatedGraph : public GpuGraph {
 public:
  explicit EmulatedGraph(EmulatedMachine& machine) : machine_(machine) {}
  Result<int> AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                        std::span<const GpuSpan> args) override;
  Result<int> AddCopy(std::byte* to, const std::byte* from, int64_t bytes) override;
  Result<int> BeginWhile(const std::byte* predicate) override;
  Result<int> BeginBranches(const std::byte* index, bool by_predicate, int branches) override;
  Status NextBranch() override;
  Status End() override;
  Status Finish() override;
  Status SetLaunch(int node, std::span<const GpuSpan> args) override;
  Status SetCopy(int node, std::byte* to, const std::byte* from) override;
  Status SetCondition(int node, const std::byte* address) override;

 private:
  friend class EmulatedStream;
  Result<int> Add(EmulatedNode node);
  Result<EmulatedNode*> NodeToChange(int node);

  EmulatedMachine& machine_;
  // Shared with pending launches, which keep their own.
  std::shared_ptr<EmulatedNodes> nodes_ = std::make_shared<EmulatedNodes>();
  OpenBodies open_;
  bool finished_ = false;
};

class EmulatedStream : public GpuStream {
 public:
  EmulatedStream(EmulatedMachine& machine, std::shared_ptr<EmulatedStreamState> state)
      : machine_(machine), state_(std::move(state)) {}
  ~EmulatedStream() override;

  Status Launch(GpuKernel& kernel, const GpuGrid& grid, std::span<const GpuSpan> args) override;
  Status Launch(GpuGraph& graph) override;
  Status EndBy(const int32_t* cancel) override;
  Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override;
  Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) override;
  Status CopyToHost(void* to, const std::byte* from, int64_t bytes) override;
  Status Fill(std::byte* to, uint8_t value, int64_t bytes) override;
  Status Record(GpuEvent& event) override;
  Status WaitFor(GpuEvent& event) override;
  Status Synchronise() override;

 private:
  friend class EmulatedMachine;
  Status Add(EmulatedWork work);

  EmulatedMachine& machine_;
  std::shared_ptr<EmulatedStreamState> state_;
};

}  // namespace kiln::device
