// An artefact on a GPU: its steps are replayed on the device's stream, or on a caller's stream
// between the device's earlier and later work.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/gpu/command_buffer.h"
#include "device/gpu/device.h"
#include "device/gpu/library_gemm.h"
#include "device/gpu/machine.h"
#include "device/gpu/steps.h"
#include "device/gpu/timeline.h"
#include "program/program.h"
#include "runtime/constants.h"
#include "runtime/device.h"

namespace kiln::device {

class GpuExecutable : public runtime::LoadedExecutable {
 public:
  // The device must outlive the executable.
  static Result<std::unique_ptr<GpuExecutable>> Load(program::Artefact artefact, GpuDevice& device,
                                                     TraceSink* trace = nullptr);
  ~GpuExecutable() override;

  const program::Program& program() const override { return program_; }
  int64_t code_bytes() const override;
  std::string ResourceReport() const override;
  bool calls_users_functions() const override { return calls_.has_users(); }
  Status Run(std::span<const void* const> arguments, std::span<void* const> results,
             const runtime::RunOptions& options = {}) override;
  Result<std::unique_ptr<runtime::Completion>> Start(std::span<const void* const> arguments,
                                                     std::span<void* const> results,
                                                     const runtime::RunOptions& options) override;
  Result<std::shared_ptr<const runtime::Binding>> Bind(
      const runtime::Binding* previous, std::span<const size_t> groups,
      std::span<const void* const> arguments) override;

 private:
  // The state of a run during its submission.
  struct Replay {
    GpuStream& stream;
    program::Addresses addresses;
    const runtime::RunOptions& options;
    std::unique_ptr<GpuRecording> recording;  // null where there is no timeline
    std::string note = {};                    // for the log
    Probes probes = {};                       // what the program's calls keep
  };

  GpuExecutable(program::Program program, GpuDevice& device);
  Status SaveConstants(program::Program& saved) const override;
  std::optional<program::MachineCode> Assembled(std::span<const std::string> code) const override;
  Status LoadCode(const program::Artefact& artefact);
  Status LoadConstants();
  Status RunPrologue();
  // Runs steps with constants alone or frozen arguments, and waits for their end.
  Status RunOnce(const program::Steps& steps, const program::Addresses& addresses);
  Result<GpuKernel*> FindKernel(const std::string& symbol) const;
  Result<GpuSteps> Translate(const program::Steps& steps);
  // Adds a step to the replayed ones.
  Status Add(const program::Launch& launch, GpuSteps& steps);
  Status Add(const program::Copy& copy, GpuSteps& steps);
  Status Add(const program::HostCall& call, GpuSteps& steps);
  Status Add(const program::While& loop, GpuSteps& steps);
  Status Add(const program::Conditional& conditional, GpuSteps& steps);
  // The library gemm in place of a kernel's launches, or null.
  GpuLibraryCall* LibraryFor(program::KernelId kernel, std::span<const GpuCommand> ours);
  // The workspace of all library gemms, one after the other.
  Status ReserveWorkspace(int64_t bytes);

  // An argument that is not donated is copied to the result's memory.
  Status CopyAliases(std::span<const void* const> arguments, std::span<void* const> results,
                     Replay& run);
  // All of the program's steps as one graph with loops and conditionals on the device; false if the
  // host drives them.
  Result<bool> LaunchWhole(Replay& run);
  Status Enqueue(GpuSteps& steps, Replay& run);
  Status Enqueue(GpuSegment& segment, Replay& run);
  // Waits for the preceding work, and for the function.
  Status Enqueue(GpuHostCall& call, Replay& run);
  Status Enqueue(GpuLoop& loop, Replay& run);
  Status Enqueue(GpuBranch& branch, Replay& run);
  Status EnqueueOneByOne(GpuSegment& segment, Replay& run);
  // Waits for a number computed by the device.
  Status Read(const program::Slice& slice, Replay& run);
  GpuWorkPtr Describe(GpuCommand& command) const;
  GpuWorkPtr Describe(GpuSegment& segment) const;
  Status EnqueueCommand(const GpuCommand& command, std::span<const GpuSpan> spans,
                        GpuStream& stream) const;

  program::Program program_;  // without its literals, once these are in the device's memory
  GpuDevice& device_;
  std::vector<std::unique_ptr<GpuModule>> modules_;
  GpuSteps steps_;
  std::map<program::KernelId, std::unique_ptr<GpuLibraryCall>> library_;  // null: our launches
  runtime::LoadedConstants constants_;
  runtime::Binder binder_;
  // (result, argument) that share memory.
  std::vector<std::pair<size_t, size_t>> aliases_;

  // Runs are submitted to the stream one after the other, so one arena serves all.
  std::mutex mutex_;
  std::byte* arena_ = nullptr;
  std::byte* number_ = nullptr;  // pinned
  GpuSpan workspace_;
  runtime::ProgramCalls calls_;
  GpuSpan host_;  // pinned, for the arrays of one call
  // For programs with loops or conditionals.
  bool may_be_whole_ = false, has_loops_ = false;
  int64_t whole_runs_ = 0;
  std::unique_ptr<CommandBuffer> whole_;
};

}  // namespace kiln::device
