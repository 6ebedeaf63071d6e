#include "kernel/schedule/gpu/gemm.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

// Calls f for each variable of an index, and g for each node.
template <typename F, typename G>
void ForEachAtom(const Index& index, const F& f, const G& g) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == Atom::Kind::kVariable) {
      f(t.atom.variable);
    } else if (t.atom.kind == Atom::Kind::kValue) {
      g(t.atom.node);
    } else {
      ForEachAtom(*t.atom.inner, f, g);
    }
  }
}

// On which variables a node depends.
IdVector<VariableId, bool> VariablesOf(const Kernel& kernel, const Stage& stage, NodeId node) {
  IdVector<VariableId, bool> on(kernel.variables.size(), false);
  for (NodeId n : GpuNodesOf(stage, node)) {
    ForEachAtom(
        stage.nodes[n].index, [&](VariableId v) { on[v] = true; }, [](NodeId) {});
  }
  return on;
}

}  // namespace

std::vector<NodeId> GpuNodesOf(const Stage& stage, NodeId node) {
  IdVector<NodeId, bool> seen(stage.nodes.size(), false);
  std::vector<NodeId> work = {node}, nodes;
  while (!work.empty()) {
    const NodeId at = work.back();
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    nodes.push_back(at);
    const Node& n = stage.nodes[at];
    ForEachAtom(
        n.index, [](VariableId) {}, [&](NodeId value) { work.push_back(value); });
    if (n.guard.valid()) work.push_back(n.guard);
    work.insert(work.end(), n.operands.begin(), n.operands.end());
  }
  return nodes;
}

std::optional<GpuFactors> FindGpuFactors(const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::kNest || kernel.stages.size() < 2) return std::nullopt;
  const Stage& stage = kernel.stages.front();
  if (stage.reductions.size() != 1 || !stage.stores.empty()) return std::nullopt;
  const Reduction& r = stage.reductions.front();
  if (r.combiner.kind != Combiner::Kind::kSum || r.inputs.size() != 1 || r.guard.valid()) {
    return std::nullopt;
  }
  for (StageId s : kernel.stages.ids(StageId(1))) {
    const Stage& later = kernel.stages[s];
    if (!later.variables.empty() || !later.reductions.empty()) return std::nullopt;
  }
  const Node& product = stage.nodes[r.inputs[0]];
  if (product.kind != Node::Kind::kOp || product.opcode != Opcode::kMultiply) return std::nullopt;
  if (IsPred(product.type)) return std::nullopt;
  GpuFactors f;
  f.x = product.operands[0];
  f.y = product.operands[1];
  const IdVector<VariableId, bool> x = VariablesOf(kernel, stage, f.x),
                                   y = VariablesOf(kernel, stage, f.y);
  for (VariableId v : kernel.OuterVariables()) {
    if (kernel.variables[v].extent == 0) return std::nullopt;
    (x[v] == y[v] ? f.batch : x[v] ? f.rows : f.columns).push_back(v);
  }
  for (VariableId v : stage.variables) {
    if (kernel.variables[v].extent == 0) return std::nullopt;
    f.inner.push_back(v);
  }
  if (f.rows.empty()) return f;
  // The store determines the layout of results; otherwise the order of the variables does.
  bool across = f.rows.back() == kernel.LastOuter();
  for (StageId s : kernel.stages.ids(StageId(1))) {
    if (kernel.stages[s].stores.empty()) continue;
    const Index& to = kernel.stages[s].stores[0].index;
    if (to.StrideOf(f.rows.back()) == 1) across = true;
    if (!f.columns.empty() && to.StrideOf(f.columns.back()) == 1) across = false;
    break;
  }
  if (across) {
    std::swap(f.rows, f.columns);
    std::swap(f.x, f.y);
  }
  return f;
}

std::optional<int64_t> GpuStrideOf(const Kernel& kernel, const Index& index,
                                   const std::vector<VariableId>& variables) {
  if (variables.empty()) return 0;
  auto stride = index.StrideOf(variables.back());
  if (!stride) return std::nullopt;
  int64_t next = *stride;
  for (size_t i = variables.size(); i-- > 0;) {
    if (index.StrideOf(variables[i]) != next) return std::nullopt;
    next *= kernel.variables[variables[i]].extent;
  }
  return stride;
}

}  // namespace kiln::kernel
