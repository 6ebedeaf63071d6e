// A program as a GPU's executable replays it: kernels found, launches and copies in rows.
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

// A launch, or a copy where there is neither kernel nor library.
struct GpuCommand {
  GpuKernel* kernel = nullptr;
  // In the place of a kernel: the arguments are the factors and the result. Never part of a graph.
  GpuLibraryGemm* library = nullptr;
  GpuGrid grid;
  std::vector<program::Slice> args;  // of a copy: to, from
  int launch = -1;                   // index into Program::launches
  GpuWorkPtr shown;                  // in timelines, once there has been one
};

// Commands in a row. Where they are not part of a larger graph, they are one from their second run
// on.
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
  const program::Call* call = nullptr;
  // Where in the host's memory each argument is, and which of them are copied there before, and
  // back behind.
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

// Whether there are loops among them, or choices unless it is about loops alone.
bool HasControl(const GpuSteps& steps, bool loops_alone);

// Where a run's allocations are.
using GpuAddresses = std::vector<std::byte*>;

inline std::byte* AddressOf(const program::Slice& slice, const GpuAddresses& addresses) {
  return addresses[static_cast<size_t>(slice.allocation)] + slice.offset;
}
std::vector<GpuSpan> SpansOf(const GpuCommand& command, const GpuAddresses& addresses);

}  // namespace kiln::device
