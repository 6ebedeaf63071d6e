// The driver's graph of a list of nodes: a sequence. Bodies of loops and conditionals are sequences
// inside conditional nodes.
#pragma once

#include <span>
#include <vector>

#include "device/cuda/conditions.h"
#include "device/cuda/context.h"
#include "device/cuda/module.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

struct GraphNode {
  enum class Kind : uint8_t { kLaunch, kCopy, kWhile, kBranches, kNext, kEnd };
  Kind kind = Kind::kLaunch;
  bool in_body = false;
  CudaKernel* kernel = nullptr;  // of a launch
  GpuGrid grid;
  std::vector<GpuSpan> args;
  std::byte* to = nullptr;          // of a copy
  const std::byte* from = nullptr;  // of a copy; a loop's predicate, a choice's index
  int64_t bytes = 0;
  bool by_predicate = false;  // of a choice
  int branches = 0;
};

// Pending launches keep what they need of it.
struct BuiltGraph {
  // The launch that sets a handle; a loop has one before it and one at the end of its body.
  struct Setter {
    size_t of = 0;  // which loop or choice
    GraphNodeHandle node = nullptr;
    Condition condition;
  };

  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  // The nodes of launches and copies; null for empty ones: the driver has no copies of zero bytes.
  std::vector<GraphNodeHandle> nodes;
  std::vector<Setter> setters;
};

// `built` must be destroyed even after a failure.
Status BuildGraph(Context& context, Conditions& conditions, std::span<const GraphNode> nodes,
                  BuiltGraph& built);

CopyNode CopyOf(const GraphNode& node);
// Has pointers into the node and the launch.
Result<KernelNode> LaunchOf(const GraphNode& node, LaunchParameters& launch);

}  // namespace kiln::device::cuda
