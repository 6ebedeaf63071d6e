// CUDA graphs: a chain of nodes that is launched at once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/context.h"
#include "device/cuda/module.h"
#include "device/gpu/machine.h"

namespace kiln::device::cuda {

class CudaGraph final : public GpuGraph {
 public:
  explicit CudaGraph(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~CudaGraph() override;

  Result<int> AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                        std::span<const GpuSpan> args) override;
  Result<int> AddCopy(std::byte* to, const std::byte* from, int64_t bytes) override;
  Status Finish() override;
  Status SetLaunch(int node, std::span<const GpuSpan> args) override;
  Status SetCopy(int node, std::byte* to, const std::byte* from) override;

  Status LaunchOn(StreamHandle stream);

 private:
  struct Node {
    CudaKernel* kernel = nullptr;  // null: a copy
    GpuGrid grid;
    std::vector<GpuSpan> args;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    int64_t bytes = 0;
  };
  // The driver's graph. Launches that are under way hold what they need of it.
  struct Built {
    GraphHandle graph = nullptr;
    GraphExecHandle exec = nullptr;
    // One for each node, null for those that do nothing: the driver has no copies of no bytes.
    std::vector<GraphNodeHandle> nodes;
  };

  Status Build(Built& built);
  void Destroy(Built& built) noexcept;
  // Node `index` with its new addresses: in place, or where the driver refuses that (memory of
  // another kind, say), in a graph made anew.
  Status Update(size_t index);
  Result<Node*> FinishedNode(int node, bool launch);
  CopyNode CopyOf(const Node& node) const;
  Result<KernelNode> LaunchOf(const Node& node, LaunchParameters& launch) const;

  std::shared_ptr<Context> context_;
  // The driver's graphs are not for several threads at once.
  std::mutex mutex_;
  std::vector<Node> nodes_;
  Built built_;
};

}  // namespace kiln::device::cuda
