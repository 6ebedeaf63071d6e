#include "device/cuda/graph_build.h"

namespace kiln::device::cuda {
namespace {

using Kind = GraphNode::Kind;

class Builder {
 public:
  Builder(Context& context, Conditions& conditions, std::span<const GraphNode> nodes,
          BuiltGraph& built)
      : context_(context), conditions_(conditions), nodes_(nodes), built_(built) {}

  Status Run() {
    const Functions& api = context_.api();
    KILN_RETURN_IF_ERROR(context_.Call(api.GraphCreate, &built_.graph, 0u));
    built_.nodes.assign(nodes_.size(), nullptr);
    sequence_ = {built_.graph, nullptr};
    for (size_t i = 0; i < nodes_.size(); ++i) KILN_RETURN_IF_ERROR(Add(i));
    return context_.Call(api.GraphInstantiate, &built_.exec, built_.graph, 0ull);
  }

 private:
  struct Sequence {
    GraphHandle graph = nullptr;
    GraphNodeHandle last = nullptr;
  };
  // An open loop or conditional.
  struct Body {
    size_t node = 0;
    Sequence outside;
    int branch = 0;
    ConditionalHandle handle = 0;                // of a loop
    std::vector<GraphHandle> graphs;             // of all branches, where they are one node's
    std::vector<ConditionalHandle> own_handles;  // where each is a node's; 0 for an empty one
  };

  Status Add(size_t i) {
    const GraphNode& node = nodes_[i];
    switch (node.kind) {
      case Kind::kLaunch:
        return AddLaunch(i);
      case Kind::kCopy:
        return node.bytes > 0 ? AddCopy(i) : OkStatus();
      case Kind::kWhile:
        return BeginWhile(i);
      case Kind::kBranches:
        return BeginBranches(i);
      case Kind::kNext:
        return EnterBranch(bodies_.back().branch + 1);
      case Kind::kEnd:
        return End();
    }
    return OkStatus();
  }

  Status AddLaunch(size_t i) {
    LaunchParameters launch;
    KILN_ASSIGN_OR_RETURN(const KernelNode parameters, LaunchOf(nodes_[i], launch));
    return AddKernel(parameters, built_.nodes[i]);
  }

  Status AddKernel(const KernelNode& parameters, GraphNodeHandle& made) {
    KILN_RETURN_IF_ERROR(context_.Call(context_.api().GraphAddKernelNode, &made, sequence_.graph,
                                       After(), AfterCount(), &parameters));
    sequence_.last = made;
    return OkStatus();
  }

  Status AddCopy(size_t i) {
    const CopyNode copy = CopyOf(nodes_[i]);
    GraphNodeHandle made = nullptr;
    KILN_RETURN_IF_ERROR(context_.Call(context_.api().GraphAddMemcpyNode, &made, sequence_.graph,
                                       After(), AfterCount(), &copy, context_.handle()));
    built_.nodes[i] = sequence_.last = made;
    return OkStatus();
  }

  // No default: the handle keeps its last value.
  Result<ConditionalHandle> MakeHandle() {
    ConditionalHandle handle = 0;
    KILN_RETURN_IF_ERROR(context_.Call(context_.driver().optional().GraphConditionalHandleCreate,
                                       &handle, sequence_.graph, context_.handle(), 0u, 0u));
    return handle;
  }

  Status AddSetter(size_t of, ConditionalHandle handle, uint32_t branch) {
    const GraphNode& node = nodes_[of];
    BuiltGraph::Setter setter{.of = of};
    setter.condition = {handle, reinterpret_cast<DevicePointer>(node.from),
                        node.by_predicate ? 0 : static_cast<uint32_t>(node.branches), branch};
    Conditions::Launch launch;
    KILN_RETURN_IF_ERROR(conditions_.Describe(setter.condition, launch));
    KILN_RETURN_IF_ERROR(AddKernel(launch.node, setter.node));
    built_.setters.push_back(setter);
    return OkStatus();
  }

  // The graphs of its bodies.
  Result<std::vector<GraphHandle>> AddConditional(ConditionalHandle handle, ConditionalType type,
                                                  unsigned bodies) {
    ConditionalNode node;
    node.handle = handle;
    node.type = type;
    node.bodies = bodies;
    node.context = context_.handle();
    GraphNodeHandle made = nullptr;
    KILN_RETURN_IF_ERROR(
        context_.Call(context_.driver().optional().GraphAddNode, &made, sequence_.graph, After(),
                      static_cast<const GraphEdge*>(nullptr), AfterCount(), &node));
    sequence_.last = made;
    if (node.body == nullptr) return Internal("the driver has made a conditional node of nothing");
    return std::vector<GraphHandle>(node.body, node.body + bodies);
  }

  Status BeginWhile(size_t i) {
    Body body{.node = i};
    KILN_ASSIGN_OR_RETURN(body.handle, MakeHandle());
    KILN_RETURN_IF_ERROR(AddSetter(i, body.handle, 0));
    KILN_ASSIGN_OR_RETURN(body.graphs, AddConditional(body.handle, ConditionalType::kWhile, 1));
    body.outside = sequence_;
    sequence_ = {body.graphs[0], nullptr};
    bodies_.push_back(std::move(body));
    return OkStatus();
  }

  Status BeginBranches(size_t i) {
    const GraphNode& node = nodes_[i];
    Body body{.node = i};
    if (conditions_.has_switch()) {
      KILN_ASSIGN_OR_RETURN(const ConditionalHandle handle, MakeHandle());
      KILN_RETURN_IF_ERROR(AddSetter(i, handle, node.by_predicate ? 0 : Condition::kWhich));
      KILN_ASSIGN_OR_RETURN(
          body.graphs,
          AddConditional(handle,
                         node.by_predicate ? ConditionalType::kIf : ConditionalType::kSwitch,
                         static_cast<unsigned>(node.branches)));
    } else {
      // All handles are set before the first branch, which may overwrite the index.
      for (int branch = 0; branch < node.branches; ++branch) {
        ConditionalHandle& handle = body.own_handles.emplace_back(0);
        if (IsEmpty(i, branch)) continue;
        KILN_ASSIGN_OR_RETURN(handle, MakeHandle());
        KILN_RETURN_IF_ERROR(AddSetter(i, handle, static_cast<uint32_t>(branch)));
      }
    }
    body.outside = sequence_;
    bodies_.push_back(std::move(body));
    return EnterBranch(0);
  }

  Status EnterBranch(int branch) {
    Body& body = bodies_.back();
    body.branch = branch;
    if (!body.graphs.empty()) {
      sequence_ = {body.graphs[static_cast<size_t>(branch)], nullptr};
      return OkStatus();
    }
    // A node after the preceding branch's.
    const ConditionalHandle handle = body.own_handles[static_cast<size_t>(branch)];
    if (handle == 0) return OkStatus();
    sequence_ = body.outside;
    KILN_ASSIGN_OR_RETURN(const std::vector<GraphHandle> graphs,
                          AddConditional(handle, ConditionalType::kIf, 1));
    body.outside = sequence_;
    sequence_ = {graphs[0], nullptr};
    return OkStatus();
  }

  Status End() {
    const Body body = std::move(bodies_.back());
    bodies_.pop_back();
    if (nodes_[body.node].kind == Kind::kWhile) {
      KILN_RETURN_IF_ERROR(AddSetter(body.node, body.handle, 0));
    }
    sequence_ = body.outside;
    return OkStatus();
  }

  // Whether a conditional's branch has no node of the driver.
  bool IsEmpty(size_t choice, int branch) const {
    int depth = 0;
    for (size_t i = choice + 1;; ++i) {
      const GraphNode& node = nodes_[i];
      switch (node.kind) {
        case Kind::kLaunch:
          if (branch == 0) return false;
          break;
        case Kind::kCopy:
          if (branch == 0 && node.bytes > 0) return false;
          break;
        case Kind::kWhile:
          if (branch == 0) return false;
          ++depth;
          break;
        case Kind::kBranches:
          ++depth;
          break;
        case Kind::kNext:
          if (depth == 0 && branch-- == 0) return true;
          break;
        case Kind::kEnd:
          if (depth-- == 0) return true;
          break;
      }
    }
  }

  const GraphNodeHandle* After() const {
    return sequence_.last != nullptr ? &sequence_.last : nullptr;
  }
  size_t AfterCount() const { return sequence_.last != nullptr ? 1 : 0; }

  Context& context_;
  Conditions& conditions_;
  const std::span<const GraphNode> nodes_;
  BuiltGraph& built_;
  Sequence sequence_;
  std::vector<Body> bodies_;
};

}  // namespace

CopyNode CopyOf(const GraphNode& node) {
  CopyNode copy;
  copy.from_device = reinterpret_cast<DevicePointer>(node.from);
  copy.to_device = reinterpret_cast<DevicePointer>(node.to);
  copy.bytes = static_cast<size_t>(node.bytes);
  return copy;
}

Result<KernelNode> LaunchOf(const GraphNode& node, LaunchParameters& launch) {
  KILN_ASSIGN_OR_RETURN(launch, LaunchParameters::Make(*node.kernel, node.grid, node.args));
  KernelNode parameters;
  parameters.function = node.kernel->handle();
  parameters.grid_x = launch.blocks();
  parameters.block_x = launch.threads();
  parameters.shared_bytes = launch.shared_bytes();
  parameters.parameters = launch.pointers();
  return parameters;
}

Status BuildGraph(Context& context, Conditions& conditions, std::span<const GraphNode> nodes,
                  BuiltGraph& built) {
  Context::Scope scope(context);
  if (!scope.ok()) return scope.status();
  return Builder(context, conditions, nodes, built).Run();
}

}  // namespace kiln::device::cuda
