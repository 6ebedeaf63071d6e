// A program in the form replayed by a GPU's executable: resolved kernels, and runs of launches and
// copies.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "device/gpu/machine.h"
#include "device/gpu/timeline.h"
#include "program/program.h"

namespace kiln::device {

class CommandBuffer;  // command_buffer.h

// A launch, or a copy without kernel and library.
struct GpuCommand {
  GpuKernel* kernel = nullptr;
  // In place of a kernel: the arguments are the factors and the result. Never part of a graph.
  GpuLibraryGemm* library = nullptr;
  GpuGrid grid;
  std::vector<program::Slice> args;  // of a copy: to, from
  program::LaunchId launch;
  GpuWorkPtr shown;  // in timelines, once there has been one
};

// Consecutive commands. If not part of a larger graph, they become a graph in their second run.
struct GpuSegment {
  GpuSegment();
  GpuSegment(GpuSegment&& other) noexcept;
  GpuSegment& operator=(GpuSegment&& other) noexcept;
  ~GpuSegment();

  std::vector<GpuCommand> commands;
  int64_t runs = 0;
  bool may_be_graph = true;
  std::unique_ptr<CommandBuffer> graph;
  GpuWorkPtr shown;  // the graph in timelines
};

// A function on the host, on copies of its arrays there.
struct GpuHostCall {
  const program::HostCall* call = nullptr;
  // The place of each argument in host memory, with the copies before and after the call.
  struct Argument {
    program::Slice slice;  // of scratch none
    int64_t offset = 0;
    bool is_read = false, is_written = false;
  };
  std::vector<Argument> args;
};

struct GpuLoop;
struct GpuBranch;
using GpuStep =
    std::variant<GpuSegment, GpuHostCall, std::unique_ptr<GpuLoop>, std::unique_ptr<GpuBranch>>;
using GpuSteps = std::vector<GpuStep>;

struct GpuLoop {
  GpuSteps condition;
  program::Slice predicate;
  GpuSteps body;
  int64_t trips = -1;  // program::While's
};
struct GpuBranch {
  program::Slice index;
  bool by_predicate = true;
  std::vector<GpuSteps> branches;
};

// Whether they contain loops, or, unless asked for loops only, conditionals.
bool HasControl(const GpuSteps& steps, bool loops_alone);

inline std::byte* AddressOf(const program::Slice& slice, const program::Addresses& addresses) {
  return addresses[slice.allocation] + slice.offset;
}
std::vector<GpuSpan> SpansOf(const GpuCommand& command, const program::Addresses& addresses);

}  // namespace kiln::device
