// An artefact on a GPU: its plan is replayed on the device's stream, or on one of the caller's
// between what the device is asked for before and after.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/gpu/device.h"
#include "device/gpu/machine.h"
#include "device/gpu/timeline.h"
#include "plan/plan.h"
#include "runtime/device.h"

namespace kiln::device {

class GpuExecutable : public runtime::LoadedExecutable {
 public:
  // The device must outlive the executable.
  static Result<std::unique_ptr<GpuExecutable>> Load(std::shared_ptr<const plan::Artefact> artefact,
                                                     GpuDevice& device);
  ~GpuExecutable() override;

  const plan::Program& program() const override { return artefact_->program; }
  int64_t code_bytes() const override;
  std::string ResourceReport() const override;
  Status Run(std::span<const void* const> arguments, std::span<void* const> results,
             const runtime::RunOptions& options = {}) override;
  Result<std::unique_ptr<runtime::Completion>> Start(std::span<const void* const> arguments,
                                                     std::span<void* const> results,
                                                     const runtime::RunOptions& options) override;

 private:
  // A launch, or a copy where there is no kernel.
  struct Command {
    GpuKernel* kernel = nullptr;
    GpuGrid grid;
    std::vector<plan::Slice> args;  // of a copy: to, from
    int launch = -1;                // index into Program::launches
    GpuWorkPtr shown;               // in timelines, once there has been one
  };
  // Commands in a row. From its second run on it is a graph of the machine's, whose nodes are given
  // other addresses when memory is elsewhere.
  struct Segment {
    std::vector<Command> commands;
    int64_t runs = 0;
    bool may_be_graph = true;
    std::unique_ptr<GpuGraph> graph;
    std::vector<std::byte*> addresses;  // of the allocations, when the graph's were set
    GpuWorkPtr shown;                   // the graph in timelines
  };
  struct Loop;
  struct Branch;
  using Step = std::variant<Segment, std::unique_ptr<Loop>, std::unique_ptr<Branch>>;
  using Steps = std::vector<Step>;
  struct Loop {
    Steps condition;
    plan::Slice predicate;
    Steps body;
  };
  struct Branch {
    plan::Slice index;
    bool by_predicate = true;
    std::vector<Steps> branches;
  };

  // One run while it is put into the stream.
  struct Replay {
    GpuStream& stream;
    std::vector<std::byte*> addresses;  // of the allocations
    const runtime::RunOptions& options;
    std::unique_ptr<GpuRecording> recording;  // null where there is no timeline
  };

  GpuExecutable(std::shared_ptr<const plan::Artefact> artefact, GpuDevice& device);
  Status LoadCode();
  Status LoadConstants();
  Result<GpuKernel*> FindKernel(const std::string& symbol) const;
  Result<Steps> Translate(const plan::Steps& steps);
  Status AddLaunch(const plan::Launch& launch, Segment& segment);

  // What is not donated is copied to where the program finds it, and the result will be.
  Status CopyAliases(std::span<const void* const> arguments, std::span<void* const> results,
                     Replay& run);
  Status Enqueue(Steps& steps, Replay& run);
  Status Enqueue(Segment& segment, Replay& run);
  Status Enqueue(Loop& loop, Replay& run);
  Status Enqueue(Branch& branch, Replay& run);
  Status EnqueueOneByOne(Segment& segment, Replay& run);
  // Makes the graph, or gives it the run's addresses.
  Status PrepareGraph(Segment& segment, const Replay& run);
  // A number that the device has computed, once it has.
  Status Read(const plan::Slice& slice, Replay& run);
  std::vector<GpuSpan> SpansOf(const Command& command, const std::vector<std::byte*>& addresses);
  GpuWorkPtr Describe(Command& command) const;
  GpuWorkPtr Describe(Segment& segment) const;

  std::shared_ptr<const plan::Artefact> artefact_;
  GpuDevice& device_;
  std::vector<std::unique_ptr<GpuModule>> modules_;
  Steps steps_;
  std::vector<std::byte*> constants_;  // by allocation; null for the others
  // (result, argument) that are to be one memory.
  std::vector<std::pair<size_t, size_t>> aliases_;

  // Runs are put into the stream one after the other, which is why one arena serves all.
  std::mutex mutex_;
  std::byte* arena_ = nullptr;
  std::byte* number_ = nullptr;  // pinned
};

}  // namespace kiln::device
