#include "kernel/contraction.h"

#include <algorithm>
#include <utility>

namespace kiln::kernel {
namespace {

// The load whose value a factor is, in another type perhaps; null where it is anything else.
const Node* LoadOf(const Stage& stage, int factor) {
  const Node* node = &stage.nodes[factor];
  if (node->kind == Node::Kind::kOp && node->opcode == Opcode::kConvert) {
    node = &stage.nodes[node->operands[0]];
  }
  bool plain = node->kind == Node::Kind::kLoad && node->guard < 0 && node->index.constant() == 0;
  return plain ? node : nullptr;
}

// The two loads whose product is summed, in `type`; null where stage 0 is anything else.
std::pair<const Node*, const Node*> FactorsOf(const Stage& stage, ElementType& type) {
  if (stage.reductions.size() != 1 || !stage.stores.empty()) return {};
  const Reduction& r = stage.reductions[0];
  if (r.guard >= 0) return {};
  if (r.combiner.kind != Combiner::Kind::kSum || r.inputs.size() != 1) return {};
  // The schedules' sums begin with 0.
  const Node& init = stage.nodes[r.inits[0]];
  if (init.kind != Node::Kind::kConstant || init.literal->AsDouble(0) != 0) return {};
  const Node& product = stage.nodes[r.inputs[0]];
  if (product.kind != Node::Kind::kOp || product.opcode != Opcode::kMultiply) return {};
  type = product.type;
  return {LoadOf(stage, product.operands[0]), LoadOf(stage, product.operands[1])};
}

// How far a step of a variable moves the kernel's first output; nothing where it has no stride.
std::optional<int64_t> OutputStride(const Kernel& kernel, int variable) {
  if (kernel.stages.size() < 2 || kernel.stages[1].stores.empty()) return std::nullopt;
  return kernel.stages[1].stores[0].index.StrideOf(variable);
}

// The product stored as it is: where, or -1.
int PlainOutput(const Kernel& kernel) {
  if (kernel.stages.size() != 2) return -1;
  const Stage& after = kernel.stages[1];
  if (after.stores.size() != 1 || after.nodes.size() != 1 ||
      after.nodes[0].kind != Node::Kind::kReduced || after.stores[0].index.constant() != 0) {
    return -1;
  }
  for (int v = 0; v < kernel.outer; ++v) {
    if (!after.stores[0].index.StrideOf(v)) return -1;
  }
  return after.stores[0].param;
}

}  // namespace

std::optional<Contraction> AsContraction(const Kernel& kernel, const target::Cpu& cpu) {
  const Stage& stage = kernel.stages[0];
  ElementType type = ElementType::kInvalid;
  auto [x, y] = FactorsOf(stage, type);
  if (!x || !y || !HasGemm(type)) return std::nullopt;
  if (stage.variables.size() > 1) return std::nullopt;
  for (const Variable& v : kernel.variables) {
    if (v.extent == 0) return std::nullopt;
  }
  // Stage 1 walks the outer points and no more.
  for (size_t s = 1; s < kernel.stages.size(); ++s) {
    if (!kernel.stages[s].variables.empty() || !kernel.stages[s].reductions.empty()) {
      return std::nullopt;
    }
  }
  int k = stage.variables.empty() ? -1 : stage.variables[0];
  std::vector<int64_t> sx(kernel.variables.size()), sy(kernel.variables.size());
  for (size_t v = 0; v < kernel.variables.size(); ++v) {
    auto a = x->index.StrideOf(v), b = y->index.StrideOf(v);
    if (!a || !b) return std::nullopt;
    sx[v] = *a;
    sy[v] = *b;
  }
  // Rows move the left factor alone, columns the right one; the largest of each is m and n.
  int row = -1, column = -1;
  for (int v = 0; v < kernel.outer; ++v) {
    auto larger = [&](int than) {
      return than < 0 || kernel.variables[v].extent >= kernel.variables[than].extent;
    };
    if (sx[v] != 0 && sy[v] == 0 && larger(row)) row = v;
    if (sx[v] == 0 && sy[v] != 0 && larger(column)) column = v;
  }
  Contraction c;
  c.a_param = x->param;
  c.b_param = y->param;
  c.m_variable = row;
  c.n_variable = column;
  c.c_param = PlainOutput(kernel);
  GemmProblem& p = c.problem;
  p.type = type;
  p.a_type = x->type;
  p.b_type = y->type;
  auto extent = [&](int v) { return v < 0 ? 1 : kernel.variables[v].extent; };
  auto stride = [](const std::vector<int64_t>& of, int v) { return v < 0 ? 0 : of[v]; };
  auto output = [&](int v) { return v < 0 ? 0 : OutputStride(kernel, v).value_or(0); };
  p.m = extent(row);
  p.n = extent(column);
  p.k = extent(k);
  p.a_m = stride(sx, row);
  p.a_k = stride(sx, k);
  p.b_k = stride(sy, k);
  p.b_n = stride(sy, column);
  p.c_m = output(row);
  p.c_n = output(column);
  for (int v = 0; v < kernel.outer; ++v) {
    if (v == row || v == column) continue;
    c.batch_variables.push_back(v);
    p.batch.push_back({kernel.variables[v].extent, sx[v], sy[v], output(v)});
  }
  bool transpose = (p.c_n != 1 && p.c_m == 1) || PrefersTransposedGemm(cpu, p);
  if (c.c_param < 0 && p.c_n == 1) transpose = false;  // Epilogues want contiguous vectors.
  if (transpose) {
    p = p.Transposed();
    std::swap(c.a_param, c.b_param);
    std::swap(c.m_variable, c.n_variable);
  }
  return c;
}

}  // namespace kiln::kernel
