#include "device/cuda/graph.h"

#include <utility>

namespace kiln::device::cuda {

CudaGraph::~CudaGraph() { Destroy(built_); }

void CudaGraph::Destroy(Built& built) noexcept {
  const Functions& api = context_->api();
  if (built.exec != nullptr) context_->GiveBack(api.GraphExecDestroy, built.exec);
  if (built.graph != nullptr) context_->GiveBack(api.GraphDestroy, built.graph);
  built.exec = nullptr;
  built.graph = nullptr;
}

Result<int> CudaGraph::AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                 std::span<const GpuSpan> args) {
  std::lock_guard lock(mutex_);
  if (built_.exec != nullptr) return Internal("a launch after the end of its graph");
  Node node;
  node.kernel = static_cast<CudaKernel*>(&kernel);
  node.grid = grid;
  node.args.assign(args.begin(), args.end());
  // So that the caller hears of a grid that cannot be where he gives it.
  KILN_RETURN_IF_ERROR(LaunchParameters::Make(*node.kernel, grid, node.args).status());
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

Result<int> CudaGraph::AddCopy(std::byte* to, const std::byte* from, int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (built_.exec != nullptr) return Internal("a copy after the end of its graph");
  Node node;
  node.to = to;
  node.from = from;
  node.bytes = bytes;
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

CopyNode CudaGraph::CopyOf(const Node& node) const {
  CopyNode copy;
  copy.from_device = reinterpret_cast<DevicePointer>(node.from);
  copy.to_device = reinterpret_cast<DevicePointer>(node.to);
  copy.bytes = static_cast<size_t>(node.bytes);
  return copy;
}

Result<KernelNode> CudaGraph::LaunchOf(const Node& node, LaunchParameters& launch) const {
  KILN_ASSIGN_OR_RETURN(launch, LaunchParameters::Make(*node.kernel, node.grid, node.args));
  KernelNode parameters;
  parameters.function = node.kernel->handle();
  parameters.grid_x = launch.blocks();
  parameters.block_x = launch.threads();
  parameters.shared_bytes = launch.shared_bytes();
  parameters.parameters = launch.pointers();
  return parameters;
}

Status CudaGraph::Build(Built& built) {
  Context::Scope scope(*context_);
  if (!scope.ok()) return scope.status();
  const Functions& api = context_->api();
  KILN_RETURN_IF_ERROR(context_->Call(api.GraphCreate, &built.graph, 0u));
  GraphNodeHandle last = nullptr;
  for (const Node& node : nodes_) {
    GraphNodeHandle made = nullptr;
    const GraphNodeHandle* after = last != nullptr ? &last : nullptr;
    const size_t after_count = last != nullptr ? 1 : 0;
    if (node.kernel != nullptr) {
      LaunchParameters launch;
      KILN_ASSIGN_OR_RETURN(const KernelNode parameters, LaunchOf(node, launch));
      KILN_RETURN_IF_ERROR(context_->Call(api.GraphAddKernelNode, &made, built.graph, after,
                                          after_count, &parameters));
    } else if (node.bytes > 0) {
      const CopyNode copy = CopyOf(node);
      KILN_RETURN_IF_ERROR(context_->Call(api.GraphAddMemcpyNode, &made, built.graph, after,
                                          after_count, &copy, context_->handle()));
    }
    built.nodes.push_back(made);
    if (made != nullptr) last = made;
  }
  return context_->Call(api.GraphInstantiate, &built.exec, built.graph, 0ull);
}

Status CudaGraph::Finish() {
  std::lock_guard lock(mutex_);
  if (built_.exec != nullptr) return Internal("a graph that ends twice");
  Built built;
  const Status status = Build(built);
  if (!status.ok()) {
    Destroy(built);
    return status;
  }
  built_ = std::move(built);
  return OkStatus();
}

Result<CudaGraph::Node*> CudaGraph::FinishedNode(int node, bool launch) {
  if (built_.exec == nullptr) return Internal("a graph's node is set before the graph's end");
  if (node < 0 || node >= static_cast<int>(nodes_.size()) ||
      (nodes_[node].kernel != nullptr) != launch) {
    return Internal("node ", node, " of a graph is no ", launch ? "launch" : "copy");
  }
  return &nodes_[node];
}

Status CudaGraph::Update(size_t index) {
  const Node& node = nodes_[index];
  const Functions& api = context_->api();
  Context::Scope scope(*context_);
  if (!scope.ok()) return scope.status();
  Status status;
  if (node.kernel != nullptr) {
    LaunchParameters launch;
    KILN_ASSIGN_OR_RETURN(const KernelNode parameters, LaunchOf(node, launch));
    status = context_->Call(api.GraphExecKernelNodeSetParams, built_.exec, built_.nodes[index],
                            &parameters);
  } else {
    const CopyNode copy = CopyOf(node);
    status = context_->Call(api.GraphExecMemcpyNodeSetParams, built_.exec, built_.nodes[index],
                            &copy, context_->handle());
  }
  if (status.ok() || context_->lost()) return status;
  Built anew;
  status = Build(anew);
  if (status.ok()) std::swap(anew, built_);
  Destroy(anew);
  return status;
}

Status CudaGraph::SetLaunch(int node, std::span<const GpuSpan> args) {
  std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(Node * known, FinishedNode(node, true));
  if (args.size() != known->args.size()) {
    return Internal("a kernel with ", known->args.size(), " parameters is given ", args.size());
  }
  std::vector<GpuSpan> before(args.begin(), args.end());
  before.swap(known->args);
  const Status status = Update(static_cast<size_t>(node));
  if (!status.ok()) known->args = std::move(before);
  return status;
}

Status CudaGraph::SetCopy(int node, std::byte* to, const std::byte* from) {
  std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(Node * known, FinishedNode(node, false));
  if (known->bytes == 0) return OkStatus();
  std::swap(known->to, to);
  std::swap(known->from, from);
  const Status status = Update(static_cast<size_t>(node));
  if (!status.ok()) {
    known->to = to;
    known->from = from;
  }
  return status;
}

Status CudaGraph::LaunchOn(StreamHandle stream) {
  std::lock_guard lock(mutex_);
  if (built_.exec == nullptr) return Internal("a graph is launched before its end");
  return context_->Call(context_->api().GraphLaunch, built_.exec, stream);
}

}  // namespace kiln::device::cuda
