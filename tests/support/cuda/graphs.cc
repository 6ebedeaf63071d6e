// The stand-in's graphs.
#include <algorithm>

#include "state.h"

namespace kiln::device::cuda {
namespace {

bool IsNodeOf(const GraphObject& graph, GraphNodeHandle node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [node](const auto& known) { return known.get() == node; });
}

// A new node; null where what it comes after is no node of the graph.
GraphNodeObject* Add(GraphObject& graph, const GraphNodeHandle* after, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!IsNodeOf(graph, after[i])) return nullptr;
  }
  // Chains alone are made: each node but the first comes after the one before.
  if (graph.nodes.empty() ? count != 0 : count != 1 || after[0] != graph.nodes.back().get()) {
    return nullptr;
  }
  graph.nodes.push_back(std::make_unique<GraphNodeObject>());
  return graph.nodes.back().get();
}

Error ReadKernel(State& state, const KernelNode& from, GraphNodeObject* node) {
  if (from.extra != nullptr) return Error::kInvalidValue;
  const unsigned grid[] = {from.grid_x, from.grid_y, from.grid_z};
  const unsigned block[] = {from.block_x, from.block_y, from.block_z};
  return ReadLaunch(state, from.function, grid, block, from.shared_bytes, from.parameters, node);
}

Error ReadCopy(const CopyNode& from, GraphNodeObject* node) {
  const size_t zeros = from.from_x | from.from_y | from.from_z | from.from_lod | from.from_pitch |
                       from.from_height | from.to_x | from.to_y | from.to_z | from.to_lod |
                       from.to_pitch | from.to_height;
  if (zeros != 0 || from.bytes == 0 || from.height != 1 || from.depth != 1 ||
      from.from_type != MemoryType::kDevice || from.to_type != MemoryType::kDevice ||
      from.reserved0 != nullptr || from.reserved1 != nullptr) {
    return Error::kInvalidValue;
  }
  node->kind = GraphNodeObject::Kind::kCopy;
  node->copy = from;
  return Error::kSuccess;
}

// The node of an executable graph that was made of another's; null where it may not be changed.
GraphNodeObject* Find(std::vector<ExecNode>& nodes, GraphNodeHandle node, bool bodies) {
  for (ExecNode& known : nodes) {
    if (known.of == node) return &known.own;
    if (!bodies) continue;
    for (std::vector<ExecNode>& body : known.bodies) {
      if (GraphNodeObject* found = Find(body, node, true)) return found;
    }
  }
  return nullptr;
}

std::vector<ExecNode> Instantiate(const GraphObject& graph) {
  std::vector<ExecNode> nodes;
  for (const auto& node : graph.nodes) {
    ExecNode& made = nodes.emplace_back(ExecNode{node.get(), *node, {}});
    for (const GraphObject* body : node->bodies) made.bodies.push_back(Instantiate(*body));
  }
  return nodes;
}

bool IsWithin(const GraphObject* graph, const GraphObject* of) {
  while (graph != nullptr && graph != of) graph = graph->parent;
  return graph != nullptr;
}

Error Run(State& state, const std::vector<ExecNode>& nodes);

Error RunConditional(State& state, const ExecNode& node) {
  // The driver's own would hang, and tests with it.
  constexpr int kMostTurns = 1 << 20;
  const ConditionalNode& conditional = node.own.conditional;
  auto value = [&] { return state.conditionals[conditional.handle].value; };
  switch (conditional.type) {
    case ConditionalType::kWhile:
      for (int turns = 0; value() != 0; ++turns) {
        if (turns == kMostTurns) return Error::kLaunchTimeout;
        if (Error error = Run(state, node.bodies[0]); error != Error::kSuccess) return error;
      }
      return Error::kSuccess;
    case ConditionalType::kIf:
      if (value() != 0) return Run(state, node.bodies[0]);
      return node.bodies.size() > 1 ? Run(state, node.bodies[1]) : Error::kSuccess;
    case ConditionalType::kSwitch:
      return value() < node.bodies.size() ? Run(state, node.bodies[value()]) : Error::kSuccess;
  }
  return Error::kInvalidValue;
}

Error RunNode(State& state, const ExecNode& node) {
  const CopyNode& copy = node.own.copy;
  switch (node.own.kind) {
    case GraphNodeObject::Kind::kLaunch:
      return RunLaunch(state, node.own);
    case GraphNodeObject::Kind::kCopy:
      return CopyWork(state, copy.to_device, copy.from_device, static_cast<int64_t>(copy.bytes));
    case GraphNodeObject::Kind::kConditional:
      return RunConditional(state, node);
  }
  return Error::kInvalidValue;
}

Error Run(State& state, const std::vector<ExecNode>& nodes) {
  for (const ExecNode& node : nodes) {
    if (Error error = RunNode(state, node); error != Error::kSuccess) return error;
  }
  return Error::kSuccess;
}

// Drivers hang in conditional nodes with empty bodies before CUDA 12.8.
bool Hangs(const State& state, const std::vector<ExecNode>& nodes) {
  for (const ExecNode& node : nodes) {
    for (const std::vector<ExecNode>& body : node.bodies) {
      if (body.empty() && state.settings.driver_version < 12080) return true;
      if (Hangs(state, body)) return true;
    }
  }
  return false;
}

}  // namespace

Error cuGraphCreate(GraphHandle* graph, unsigned flags) {
  KILN_STANDIN_CALL(cuGraphCreate, kContext);
  if (flags != 0) return Error::kInvalidValue;
  *graph = call.state.Make<GraphObject>(nullptr);
  return Error::kSuccess;
}

Error cuGraphDestroy(GraphHandle graph) {
  KILN_STANDIN_CALL(cuGraphDestroy, kContext);
  if (call.state.Check(graph) == nullptr || graph->parent != nullptr) return Error::kInvalidValue;
  call.state.DeleteGraph(graph);
  return Error::kSuccess;
}

Error cuGraphConditionalHandleCreate(ConditionalHandle* handle, GraphHandle graph,
                                     ContextHandle context, unsigned value, unsigned flags) {
  KILN_STANDIN_CALL(cuGraphConditionalHandleCreate, kContext);
  State& state = call.state;
  if (state.settings.driver_version < 12030) {
    ++state.misuses;
    return Error::kNotSupported;
  }
  if (state.Check(graph) == nullptr || context != call.context || flags != 0 || value != 0) {
    return Error::kInvalidValue;
  }
  *handle = state.next_conditional++ << 32;
  // What nobody has set is nothing to rely on.
  state.conditionals[*handle] = {graph, false, 0xcbcbcbcb};
  return Error::kSuccess;
}

Error cuGraphAddNode_v2(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                        const GraphEdge* edges, size_t count, ConditionalNode* parameters) {
  KILN_STANDIN_CALL(cuGraphAddNode_v2, kContext);
  State& state = call.state;
  if (state.Check(graph) == nullptr) return Error::kInvalidValue;
  auto reserved = [](const auto& values) {
    return std::all_of(std::begin(values), std::end(values), [](auto v) { return v == 0; });
  };
  const unsigned bodies = parameters->bodies;
  const bool has_switch = state.settings.driver_version >= 12080;
  auto known = state.conditionals.find(parameters->handle);
  if (parameters->node_type != kNodeTypeConditional || edges != nullptr ||
      !reserved(parameters->reserved0) || !reserved(parameters->reserved1) ||
      parameters->reserved2 != 0 || parameters->context != call.context ||
      known == state.conditionals.end() || known->second.has_node ||
      !IsWithin(graph, known->second.graph)) {
    return Error::kInvalidValue;
  }
  switch (parameters->type) {
    case ConditionalType::kWhile:
      if (bodies != 1) return Error::kInvalidValue;
      break;
    case ConditionalType::kIf:
      if (bodies != 1 && (bodies != 2 || !has_switch)) return Error::kInvalidValue;
      break;
    case ConditionalType::kSwitch:
      if (bodies < 1 || !has_switch) return Error::kInvalidValue;
      break;
  }
  *node = Add(*graph, after, count);
  if (*node == nullptr) return Error::kInvalidValue;
  known->second.has_node = true;
  (*node)->kind = GraphNodeObject::Kind::kConditional;
  for (unsigned i = 0; i < bodies; ++i) {
    (*node)->bodies.push_back(state.Make<GraphObject>(graph));
  }
  (*node)->conditional = *parameters;
  parameters->body = (*node)->bodies.data();
  return Error::kSuccess;
}

Error cuGraphAddKernelNode_v2(GraphNodeHandle* node, GraphHandle graph,
                              const GraphNodeHandle* after, size_t count,
                              const KernelNode* parameters) {
  KILN_STANDIN_CALL(cuGraphAddKernelNode_v2, kContext);
  if (call.state.Check(graph) == nullptr) return Error::kInvalidValue;
  GraphNodeObject read;
  if (Error error = ReadKernel(call.state, *parameters, &read); error != Error::kSuccess) {
    return error;
  }
  *node = Add(*graph, after, count);
  if (*node == nullptr) return Error::kInvalidValue;
  **node = read;
  return Error::kSuccess;
}

Error cuGraphAddMemcpyNode(GraphNodeHandle* node, GraphHandle graph, const GraphNodeHandle* after,
                           size_t count, const CopyNode* parameters, ContextHandle context) {
  KILN_STANDIN_CALL(cuGraphAddMemcpyNode, kContext);
  if (call.state.Check(graph) == nullptr || call.state.Check(context) == nullptr) {
    return Error::kInvalidValue;
  }
  GraphNodeObject read;
  if (Error error = ReadCopy(*parameters, &read); error != Error::kSuccess) return error;
  *node = Add(*graph, after, count);
  if (*node == nullptr) return Error::kInvalidValue;
  **node = read;
  return Error::kSuccess;
}

Error cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph,
                                  unsigned long long flags) {
  KILN_STANDIN_CALL(cuGraphInstantiateWithFlags, kContext);
  if (call.state.Check(graph) == nullptr || flags != 0) return Error::kInvalidValue;
  State& state = call.state;
  if (graph->parent != nullptr) return Error::kInvalidValue;
  bool has_conditionals = false;
  for (const auto& [handle, conditional] : state.conditionals) {
    if (!IsWithin(conditional.graph, graph)) continue;
    has_conditionals = true;
    if (!conditional.has_node) return Error::kInvalidValue;
  }
  for (Object* object : state.live) {
    if (std::string(object->kind) == "execs" && has_conditionals &&
        static_cast<GraphExecObject*>(object)->of == graph) {
      return Error::kInvalidValue;
    }
  }
  std::vector<ExecNode> nodes = Instantiate(*graph);
  if (Hangs(state, nodes)) {
    ++state.misuses;
    return Error::kInvalidValue;
  }
  *exec = state.Make<GraphExecObject>(graph);
  (*exec)->nodes = std::move(nodes);
  return Error::kSuccess;
}

Error cuGraphExecDestroy(GraphExecHandle exec) {
  KILN_STANDIN_CALL(cuGraphExecDestroy, kContext);
  if (call.state.Check(exec) == nullptr) return Error::kInvalidValue;
  call.state.Delete(exec);
  return Error::kSuccess;
}

Error cuGraphExecKernelNodeSetParams_v2(GraphExecHandle exec, GraphNodeHandle node,
                                        const KernelNode* parameters) {
  KILN_STANDIN_CALL(cuGraphExecKernelNodeSetParams_v2, kContext);
  if (call.state.Check(exec) == nullptr) return Error::kInvalidValue;
  GraphNodeObject* own = Find(exec->nodes, node, call.state.settings.body_updates != 0);
  if (own == nullptr || own->kind != GraphNodeObject::Kind::kLaunch) return Error::kInvalidValue;
  GraphNodeObject read;
  if (Error error = ReadKernel(call.state, *parameters, &read); error != Error::kSuccess) {
    return error;
  }
  *own = read;
  return Error::kSuccess;
}

Error cuGraphExecMemcpyNodeSetParams(GraphExecHandle exec, GraphNodeHandle node,
                                     const CopyNode* parameters, ContextHandle context) {
  KILN_STANDIN_CALL(cuGraphExecMemcpyNodeSetParams, kContext);
  if (call.state.Check(exec) == nullptr || call.state.Check(context) == nullptr) {
    return Error::kInvalidValue;
  }
  GraphNodeObject* own = Find(exec->nodes, node, call.state.settings.body_updates != 0);
  if (own == nullptr || own->kind != GraphNodeObject::Kind::kCopy) return Error::kInvalidValue;
  GraphNodeObject read;
  if (Error error = ReadCopy(*parameters, &read); error != Error::kSuccess) return error;
  *own = read;
  return Error::kSuccess;
}

Error cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  KILN_STANDIN_CALL(cuGraphLaunch, kContext);
  State& state = call.state;
  if (state.Check(exec) == nullptr) return Error::kInvalidValue;
  if (!CheckStream(state, stream)) return Error::kInvalidHandle;
  // CUPTI is told of what is in no body.
  for (const ExecNode& node : exec->nodes) {
    Activity activity;
    if (node.own.kind == GraphNodeObject::Kind::kLaunch) {
      activity = LaunchActivity(node.own, exec->number);
    } else if (node.own.kind == GraphNodeObject::Kind::kCopy) {
      activity = CopyActivity(node.own.copy.bytes, exec->number);
    }
    state.Enqueue(
        stream, [&state, node] { return RunNode(state, node); }, activity);
  }
  return Error::kSuccess;
}

}  // namespace kiln::device::cuda
