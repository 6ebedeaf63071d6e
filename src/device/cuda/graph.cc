#include "device/cuda/graph.h"

#include <utility>

namespace kiln::device::cuda {

CudaGraph::~CudaGraph() { Destroy(built_); }

void CudaGraph::Destroy(BuiltGraph& built) noexcept {
  const Functions& api = context_->api();
  // Launches keep the parts of the graph that they need, but the manual does not promise so for its
  // handles.
  if (built.exec != nullptr && !built.setters.empty()) context_->GiveBack(api.CtxSynchronize);
  if (built.exec != nullptr) context_->GiveBack(api.GraphExecDestroy, built.exec);
  // With the graphs of its bodies.
  if (built.graph != nullptr) context_->GiveBack(api.GraphDestroy, built.graph);
  built.exec = nullptr;
  built.graph = nullptr;
}

Result<int> CudaGraph::Add(GraphNode node) {
  if (built_.exec != nullptr) return Internal("a node after the end of its graph");
  node.in_body = !open_.empty();
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

Result<int> CudaGraph::AddLaunch(GpuKernel& kernel, const GpuGrid& grid,
                                 std::span<const GpuSpan> args) {
  std::lock_guard lock(mutex_);
  GraphNode node;
  node.kind = Kind::kLaunch;
  node.kernel = static_cast<CudaKernel*>(&kernel);
  node.grid = grid;
  node.args.assign(args.begin(), args.end());
  // So that an impossible grid is reported where it is added.
  KILN_RETURN_IF_ERROR(LaunchParameters::Make(*node.kernel, grid, node.args).status());
  return Add(std::move(node));
}

Result<int> CudaGraph::AddCopy(std::byte* to, const std::byte* from, int64_t bytes) {
  std::lock_guard lock(mutex_);
  GraphNode node;
  node.kind = Kind::kCopy;
  node.to = to;
  node.from = from;
  node.bytes = bytes;
  return Add(std::move(node));
}

Status CudaGraph::CheckConditions() const {
  if (conditions_->are_there()) return OkStatus();
  return Unimplemented("the CUDA driver (CUDA ", VersionText(context_->driver().version()),
                       ") has no conditional nodes of graphs");
}

Result<int> CudaGraph::BeginWhile(const std::byte* predicate) {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(CheckConditions());
  GraphNode node;
  node.kind = Kind::kWhile;
  node.from = predicate;
  node.by_predicate = true;
  KILN_ASSIGN_OR_RETURN(const int number, Add(std::move(node)));
  open_.BeginWhile(number);
  return number;
}

Result<int> CudaGraph::BeginBranches(const std::byte* index, bool by_predicate, int branches) {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(CheckConditions());
  GraphNode node;
  node.kind = Kind::kBranches;
  node.from = index;
  node.by_predicate = by_predicate;
  node.branches = branches;
  const auto number = static_cast<int>(nodes_.size());
  OpenBodies open = open_;
  KILN_RETURN_IF_ERROR(open.BeginBranches(number, by_predicate, branches));
  KILN_RETURN_IF_ERROR(Add(std::move(node)).status());
  open_ = std::move(open);
  return number;
}

Status CudaGraph::NextBranch() {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(open_.Next().status());
  GraphNode node;
  node.kind = Kind::kNext;
  return Add(std::move(node)).status();
}

Status CudaGraph::End() {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(open_.End().status());
  GraphNode node;
  node.kind = Kind::kEnd;
  return Add(std::move(node)).status();
}

Status CudaGraph::BuildAnew() {
  BuiltGraph anew;
  const Status status = BuildGraph(*context_, *conditions_, nodes_, anew);
  if (status.ok()) {
    std::swap(anew, built_);
    is_stale_ = false;
  }
  Destroy(anew);
  return status;
}

Status CudaGraph::Finish() {
  std::lock_guard lock(mutex_);
  if (built_.exec != nullptr) return Internal("a graph that ends twice");
  KILN_RETURN_IF_ERROR(open_.CheckNone());
  return BuildAnew();
}

Result<GraphNode*> CudaGraph::FinishedNode(int node, Kind kind, const char* what) {
  if (built_.exec == nullptr) return Internal("a graph's node is set before the graph's end");
  if (node >= 0 && node < static_cast<int>(nodes_.size())) {
    GraphNode& known = nodes_[static_cast<size_t>(node)];
    if (known.kind == kind || (kind == Kind::kWhile && known.kind == Kind::kBranches)) {
      return &known;
    }
  }
  return Internal("node ", node, " of a graph is no ", what);
}

Status CudaGraph::UpdateInPlace(size_t index) {
  const GraphNode& node = nodes_[index];
  const Functions& api = context_->api();
  Context::Scope scope(*context_);
  if (!scope.ok()) return scope.status();
  if (node.kind == Kind::kLaunch) {
    LaunchParameters launch;
    KILN_ASSIGN_OR_RETURN(const KernelNode parameters, LaunchOf(node, launch));
    return context_->Call(api.GraphExecKernelNodeSetParams, built_.exec, built_.nodes[index],
                          &parameters);
  }
  if (node.kind == Kind::kCopy) {
    const CopyNode copy = CopyOf(node);
    return context_->Call(api.GraphExecMemcpyNodeSetParams, built_.exec, built_.nodes[index], &copy,
                          context_->handle());
  }
  for (BuiltGraph::Setter& setter : built_.setters) {
    if (setter.of != index) continue;
    setter.condition.address = reinterpret_cast<DevicePointer>(node.from);
    Conditions::Launch launch;
    KILN_RETURN_IF_ERROR(conditions_->Describe(setter.condition, launch));
    KILN_RETURN_IF_ERROR(
        context_->Call(api.GraphExecKernelNodeSetParams, built_.exec, setter.node, &launch.node));
  }
  return OkStatus();
}

Status CudaGraph::Update(size_t index) {
  // A loop has a launch at the end of its body, too.
  const bool in_body = nodes_[index].in_body || nodes_[index].kind == Kind::kWhile;
  if (in_body && bodies_are_fixed_) {
    is_stale_ = true;
    return OkStatus();
  }
  const Status status = UpdateInPlace(index);
  if (status.ok() || context_->lost()) return status;
  if (in_body) bodies_are_fixed_ = true;
  return BuildAnew();
}

Status CudaGraph::SetLaunch(int node, std::span<const GpuSpan> args) {
  std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(GraphNode * known, FinishedNode(node, Kind::kLaunch, "launch"));
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
  KILN_ASSIGN_OR_RETURN(GraphNode * known, FinishedNode(node, Kind::kCopy, "copy"));
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

Status CudaGraph::SetCondition(int node, const std::byte* address) {
  std::lock_guard lock(mutex_);
  KILN_ASSIGN_OR_RETURN(GraphNode * known, FinishedNode(node, Kind::kWhile, "loop or choice"));
  std::swap(known->from, address);
  const Status status = Update(static_cast<size_t>(node));
  if (!status.ok()) {
    known->from = address;
    // Some of its launches may have been changed.
    is_stale_ = true;
  }
  return status;
}

Status CudaGraph::LaunchOn(StreamHandle stream) {
  std::lock_guard lock(mutex_);
  if (built_.exec == nullptr) return Internal("a graph is launched before its end");
  if (is_stale_) KILN_RETURN_IF_ERROR(BuildAnew());
  return context_->Call(context_->api().GraphLaunch, built_.exec, stream);
}

}  // namespace kiln::device::cuda
