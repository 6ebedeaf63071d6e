// CUDA graphs: a sequence of nodes launched at once, with loops and conditionals if the driver has
// conditional nodes.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/conditions.h"
#include "device/cuda/context.h"
#include "device/cuda/graph_build.h"
#include "device/cuda/module.h"
#include "device/gpu/machine.h"
#include "device/gpu/open_bodies.h"

namespace kiln::device::cuda {

class CudaGraph final : public GpuGraph {
 public:
  CudaGraph(std::shared_ptr<Context> context, std::shared_ptr<Conditions> conditions)
      : context_(std::move(context)), conditions_(std::move(conditions)) {}
  ~CudaGraph() override;

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

  Status LaunchOn(StreamHandle stream);

 private:
  using Kind = GraphNode::Kind;

  Result<int> Add(GraphNode node);
  Status CheckConditions() const;
  void Destroy(BuiltGraph& built) noexcept;
  Status BuildAnew();
  // Updates the addresses of node `index`: in place, or, if the driver refuses (for memory of
  // another kind, say), by a new graph. After one refusal, updates in bodies are deferred to the
  // next launch.
  Status Update(size_t index);
  Status UpdateInPlace(size_t index);
  Result<GraphNode*> FinishedNode(int node, Kind kind, const char* what);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Conditions> conditions_;
  // The driver's graphs are not thread-safe.
  std::mutex mutex_;
  std::vector<GraphNode> nodes_;
  OpenBodies open_;
  BuiltGraph built_;
  bool bodies_are_fixed_ = false, is_stale_ = false;
};

}  // namespace kiln::device::cuda
