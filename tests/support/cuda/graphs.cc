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
  node->is_copy = true;
  node->copy = from;
  return Error::kSuccess;
}

// The node of an executable graph that was made of another's.
GraphNodeObject* Find(GraphExecObject& exec, GraphNodeHandle node) {
  for (auto& [of, own] : exec.nodes) {
    if (of == node) return &own;
  }
  return nullptr;
}

}  // namespace

Error cuGraphCreate(GraphHandle* graph, unsigned flags) {
  KILN_STANDIN_CALL(cuGraphCreate, kContext);
  if (flags != 0) return Error::kInvalidValue;
  *graph = call.state.Make<GraphObject>();
  return Error::kSuccess;
}

Error cuGraphDestroy(GraphHandle graph) {
  KILN_STANDIN_CALL(cuGraphDestroy, kContext);
  if (call.state.Check(graph) == nullptr) return Error::kInvalidValue;
  call.state.Delete(graph);
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
  *exec = call.state.Make<GraphExecObject>();
  for (const auto& node : graph->nodes) (*exec)->nodes.emplace_back(node.get(), *node);
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
  GraphNodeObject* own = Find(*exec, node);
  if (own == nullptr || own->is_copy) return Error::kInvalidValue;
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
  GraphNodeObject* own = Find(*exec, node);
  if (own == nullptr || !own->is_copy) return Error::kInvalidValue;
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
  for (const auto& [of, node] : exec->nodes) {
    if (!node.is_copy) {
      LaunchWork(state, stream, node, exec->number);
      continue;
    }
    const CopyNode copy = node.copy;
    state.Enqueue(
        stream,
        [&state, copy] {
          return CopyWork(state, copy.to_device, copy.from_device,
                          static_cast<int64_t>(copy.bytes));
        },
        CopyActivity(copy.bytes, exec->number));
  }
  return Error::kSuccess;
}

}  // namespace kiln::device::cuda
