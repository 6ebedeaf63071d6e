#include "kernel/contraction.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "kernel/collapse.h"

namespace kiln::kernel {
namespace {

// Of an access, by variable.
using VariableStrides = IdVector<VariableId, int64_t>;

// Elements that a load meets.
int64_t ReachOf(const Kernel& kernel, const Node& load) {
  int64_t reach = 1;
  for (VariableId v : kernel.variables.ids()) {
    if (load.index.DependsOn(v)) reach *= kernel.variables[v].extent;
  }
  return reach;
}

// Finds the axes of the load; whether the place of each element tells its point along them, and
// the other loads' places by that. Vectors are along the axis of stride 1.
bool FindAxes(const Kernel& kernel, const Stage& stage, Prologue& p) {
  for (VariableId v : kernel.variables.ids()) {
    auto stride = p.place.StrideOf(v);
    if (!stride || *stride < 0) return false;
    if (*stride > 0) p.axes.push_back({v, *stride});
  }
  std::ranges::sort(p.axes, std::greater<>(), &Prologue::Axis::stride);
  int64_t reach = 1;
  for (size_t i = p.axes.size(); i-- > 0;) {
    if (p.axes[i].stride < reach) return false;
    reach += p.axes[i].stride * (kernel.variables[p.axes[i].variable].extent - 1);
  }
  for (NodeId other : p.others) {
    Index rest = stage.nodes[other].index;
    for (const Prologue::Axis& axis : p.axes) {
      auto stride = rest.StrideOf(axis.variable);
      if (!stride || (axis.stride == 1 && *stride != 0 && *stride != 1)) return false;
      int64_t extent = kernel.variables[axis.variable].extent;
      rest = rest + Index::Variable(axis.variable, extent) * -*stride;
    }
    if (!rest.is_constant()) return false;
  }
  return true;
}

// The variable of an atom `v floordiv 2` or `v mod 2`; not valid for others.
VariableId PairsOf(const Atom& atom, Atom::Kind kind) {
  if (atom.kind != kind || atom.divisor != 2) return {};
  const auto& terms = atom.inner->terms();
  const bool plain = terms.size() == 1 && atom.inner->constant() == 0 &&
                     terms[0].coefficient == 1 && terms[0].atom.kind == Atom::Kind::kVariable;
  return plain ? terms[0].atom.variable : VariableId();
}

// The node of an op with a constant number for its right operand, whose left one it gives; not
// valid for others.
NodeId WithNumber(const Stage& stage, NodeId node, Opcode opcode, int64_t number) {
  const Node& n = stage.nodes[node];
  if (n.kind != Node::Kind::kOp || n.opcode != opcode) return {};
  const Node& right = stage.nodes[n.operands[1]];
  if (right.kind != Node::Kind::kConstant || right.literal->AsInt(0) != number) return {};
  return n.operands[0];
}

// Through a change of the sign of bytes.
NodeId ByteOf(const Stage& stage, NodeId node) {
  const Node& n = stage.nodes[node];
  const bool bits = n.kind == Node::Kind::kOp && n.opcode == Opcode::kBitcastConvert;
  return bits && ByteWidth(stage.nodes[n.operands[0]].type) == 1 ? n.operands[0] : node;
}

// Finds the half of a byte that a node may be, without a sign or with one:
//
//   (x[i + v floordiv 2] >> 4 * (v mod 2)) & 15     (that << 4) >> 4
bool FindHalf(const Kernel& kernel, const Stage& stage, NodeId node, Prologue& p) {
  ElementType type = ElementType::kU4;
  NodeId half = node;
  if (const NodeId up = WithNumber(stage, node, Opcode::kShiftRightArithmetic, 4); up.valid()) {
    half = WithNumber(stage, up, Opcode::kShiftLeft, 4);
    if (!half.valid() || stage.nodes[node].type != ElementType::kS8) return false;
    half = ByteOf(stage, half);
    type = ElementType::kS4;
  }
  const NodeId shifted = WithNumber(stage, half, Opcode::kAnd, 15);
  if (!shifted.valid() || stage.nodes[shifted].type != ElementType::kU8) return false;
  const Node& shift = stage.nodes[shifted];
  if (shift.kind != Node::Kind::kOp || shift.opcode != Opcode::kShiftRightLogical) return false;
  const NodeId byte = ByteOf(stage, shift.operands[0]);
  const NodeId second = WithNumber(stage, shift.operands[1], Opcode::kMultiply, 4);
  if (!second.valid()) return false;
  const Node& load = stage.nodes[byte];
  const Index& in_byte = stage.nodes[second].index;
  if (load.kind != Node::Kind::kLoad || load.guard.valid() || ByteWidth(load.type) != 1) {
    return false;
  }
  if (stage.nodes[second].kind != Node::Kind::kIndex || in_byte.constant() != 0) return false;
  if (in_byte.terms().size() != 1 || in_byte.terms()[0].coefficient != 1) return false;
  const VariableId v = PairsOf(in_byte.terms()[0].atom, Atom::Kind::kMod);
  if (!v.valid()) return false;
  Index place(load.index.constant() * 2);
  bool in_pairs = false;
  for (const Index::Term& t : load.index.terms()) {
    if (t.coefficient == 1 && PairsOf(t.atom, Atom::Kind::kDiv) == v) {
      place = place + Index::Variable(v, kernel.variables[v].extent);
      in_pairs = true;
    } else {
      const Index other = Index::OfTerm(2 * t.coefficient, t.atom);
      if (other.DependsOn(v)) return false;
      place = place + other;
    }
  }
  if (!in_pairs || (p.half.valid() && p.half != node)) return false;
  p.half = node;
  p.half_type = type;
  p.load = byte;
  p.place = std::move(place);
  return true;
}

// The single load of a factor, and its prologue; nothing for any other form.
std::optional<Prologue> FactorOf(const Kernel& kernel, const Stage& stage, NodeId factor) {
  // What it takes to make numbers of halves of bytes.
  constexpr int64_t kHalfOps = 2;
  Prologue p;
  p.node = factor;
  std::vector<NodeId> loads;
  std::vector<NodeId> work = {factor};
  IdVector<NodeId, bool> seen(stage.nodes.size());
  while (!work.empty()) {
    const NodeId at = work.back();
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const Node& node = stage.nodes[at];
    switch (node.kind) {
      case Node::Kind::kConstant:
        break;
      case Node::Kind::kLoad:
        if (node.guard.valid()) return std::nullopt;
        loads.push_back(at);
        break;
      case Node::Kind::kOp:
        if (FindHalf(kernel, stage, at, p)) {
          p.ops += kHalfOps;
          loads.push_back(p.load);
          break;
        }
        p.ops += IsExpensive(node.opcode) ? kHeavyOps : 1;
        work.insert(work.end(), node.operands.begin(), node.operands.end());
        break;
      case Node::Kind::kIndex:
      case Node::Kind::kInRange:
      case Node::Kind::kReduced:
      case Node::Kind::kArgument:
        return std::nullopt;
    }
  }
  if (loads.empty()) return std::nullopt;
  std::ranges::sort(loads);
  auto reach = [&](NodeId load) { return ReachOf(kernel, stage.nodes[load]); };
  const NodeId load = *std::ranges::max_element(loads, {}, reach);
  if (p.half.valid() && p.load != load) return std::nullopt;
  p.load = load;
  if (!p.half.valid()) p.place = stage.nodes[load].index;
  std::erase(loads, p.load);
  p.others = std::move(loads);
  p.ops += kSpreadOps * std::ssize(p.others);
  if (!p.others.empty() && !FindAxes(kernel, stage, p)) return std::nullopt;
  return p;
}

// Whether it is the load, in another type perhaps.
bool IsPlain(const Stage& stage, const Prologue& p) {
  const Node& node = stage.nodes[p.node];
  if (p.node == p.load) return true;
  return node.kind == Node::Kind::kOp && node.opcode == Opcode::kConvert &&
         node.operands[0] == p.load;
}

// A type that has all values of a factor; kInvalid where that is what is loaded.
ElementType ValuesOf(const Stage& stage, const Prologue& p) {
  if (IsPlain(stage, p)) return ElementType::kInvalid;
  const Node& node = stage.nodes[p.node];
  const bool widened = node.kind == Node::Kind::kOp && node.opcode == Opcode::kConvert;
  return widened ? stage.nodes[node.operands[0]].type : node.type;
}

struct Factors {
  Prologue x, y;
};

// Whether the place is known from the variables: not where a value tells where a slice begins.
bool IsOfVariables(const Index& index) {
  return std::ranges::all_of(
      index.terms(), [](const Index::Term& t) { return t.atom.kind == Atom::Kind::kVariable; });
}

// The two factors of the summed product, in `type`; nothing if stage 0 has any other form.
std::optional<Factors> FactorsOf(const Kernel& kernel, ElementType& type) {
  const Stage& stage = kernel.stages.front();
  if (stage.reductions.size() != 1 || !stage.stores.empty()) return {};
  const Reduction& r = stage.reductions.front();
  if (r.guard.valid()) return {};
  if (r.combiner.kind != Combiner::Kind::kSum || r.inputs.size() != 1) return {};
  // The schedules' sums begin with 0.
  const Node& init = stage.nodes[r.inits[0]];
  if (init.kind != Node::Kind::kConstant || init.literal->AsDouble(0) != 0) return {};
  const Node& product = stage.nodes[r.inputs[0]];
  if (product.kind != Node::Kind::kOp || product.opcode != Opcode::kMultiply) return {};
  type = product.type;
  auto x = FactorOf(kernel, stage, product.operands[0]);
  auto y = FactorOf(kernel, stage, product.operands[1]);
  if (!x || !y) return {};
  return Factors{*std::move(x), *std::move(y)};
}

// The stride of a variable in the kernel's first output; nothing if it has none.
std::optional<int64_t> OutputStride(const Kernel& kernel, VariableId variable) {
  if (kernel.stages.size() < 2 || kernel.stages[StageId(1)].stores.empty()) return std::nullopt;
  return kernel.stages[StageId(1)].stores[0].index.StrideOf(variable);
}

// The gemm stored as it is: where, if it is.
ParamId PlainOutput(const Kernel& kernel) {
  if (kernel.stages.size() != 2) return {};
  const Stage& after = kernel.stages[StageId(1)];
  if (after.stores.size() != 1 || after.nodes.size() != 1 ||
      after.nodes.front().kind != Node::Kind::kReduced || after.stores[0].index.constant() != 0) {
    return {};
  }
  for (VariableId v : kernel.OuterVariables()) {
    if (!after.stores[0].index.StrideOf(v)) return {};
  }
  return after.stores[0].param;
}

int CountLoads(const Kernel& kernel, ParamId param) {
  int count = 0;
  for (const Stage& stage : kernel.stages) {
    for (const Node& n : stage.nodes) {
      count += n.kind == Node::Kind::kLoad && n.param == param;
    }
  }
  return count;
}

// Whether each element of the factors counts for one element of the result, or for few while what
// lies in order is a batch. Tiles win nothing then; a nest goes along whatever lies in order.
//
//   sum(x * x, {0}),  x: f32[rows, columns]
//
//   sum(windows(x) * spread(w), {3, 4}),  x: f32[batch, places, places, channels], w: f32[channels]
//
// Nor where rows are as short as strided vectors are apart, which a nest loads whole and shuffles.
//
//   sum(x * spread(w), {1}),  x: f32[pixels, 3], w: f32[3]
bool IsPlainReduction(const GemmProblem& p) {
  constexpr int64_t kFewReads = 4, kShortSum = 256;
  if (p.m == 1 && p.n == 1) return true;
  auto are_short = [&](int64_t along, int64_t to_next) {
    return p.TotalK() > 1 && p.TotalK() <= kMostInterleaved && along == 1 &&
           to_next >= p.TotalK() && to_next <= kMostInterleaved;
  };
  if (p.m == 1 && are_short(p.b_k, p.b_n)) return true;
  if (p.n == 1 && are_short(p.a_k, p.a_m)) return true;
  const int64_t reads = p.TotalK() <= kShortSum ? std::min(p.m, p.n) : std::max(p.m, p.n);
  if (reads > kFewReads || p.a_k == 1 || p.b_k == 1 || p.b_n == 1) return false;
  return std::ranges::any_of(p.batch, [](const GemmBatchDimension& d) {
    return d.a == 1 && d.b == 1 && d.size > kFewReads;
  });
}

// Whether all that scales a factor goes along where the sum's variables walk the factor as one: a
// vector of that lies in a row of each of them, too. Not in
//
//   sum(x * spread(w), {1, 2}),  x: f32[rows, 2, 2], w: f32[2]
bool ScalesGoAlong(const Kernel& kernel, const target::Cpu& cpu, const Stage& stage,
                   const Prologue& factor, const VariableStrides& strides) {
  if (factor.others.empty()) return true;
  std::vector<VariableId> variables = stage.variables;
  auto stride = [&](VariableId v) { return strides[v]; };
  std::ranges::stable_sort(variables, std::greater<>(), stride);
  for (size_t i = 1; i < variables.size(); ++i) {
    const VariableId outer = variables[i - 1], inner = variables[i];
    const int64_t size = kernel.variables[inner].extent;
    // Rows of whole vectors have none that goes on in the next one.
    if (stride(outer) != stride(inner) * size || size % (cpu.vector_bytes / 4) == 0) continue;
    for (NodeId other : factor.others) {
      const Index& scale = stage.nodes[other].index;
      auto o = scale.StrideOf(outer), n = scale.StrideOf(inner);
      if (!o || !n || *o != *n * size) return false;
    }
  }
  return true;
}

// The levels of a sum over variables by which the factors move so far, outermost first. What both
// walk as one is one.
std::vector<GemmSumLevel> LevelsOf(const Kernel& kernel, std::vector<VariableId> variables,
                                   const VariableStrides& sx, const VariableStrides& sy) {
  auto in_order_of = [&](const VariableStrides& strides) {
    std::ranges::stable_sort(variables, std::greater<>(),
                             [&](VariableId v) { return std::abs(strides[v]); });
    std::vector<GemmSumLevel> levels;
    for (VariableId v : variables) {
      const int64_t size = kernel.variables[v].extent;
      GemmSumLevel* outer = levels.empty() ? nullptr : &levels.back();
      if (outer && outer->a == sx[v] * size && outer->b == sy[v] * size) {
        *outer = {outer->size * size, sx[v], sy[v]};
      } else {
        levels.push_back({size, sx[v], sy[v]});
      }
    }
    return levels;
  };
  // The order of one factor's memory, whichever of them makes fewer loops or longer ones.
  auto by_x = in_order_of(sx), by_y = in_order_of(sy);
  if (by_x.empty() || by_x.size() < by_y.size()) return by_x;
  return by_y.size() < by_x.size() || by_y.back().size > by_x.back().size ? by_y : by_x;
}

// Whether B can be in halves of bytes: vectors are whole, of whole bytes, and begin with one.
bool TakesHalves(const GemmProblem& p, const target::Cpu& cpu) {
  // Blocks of longer sums may end with fewer steps than a piece of a column has.
  constexpr int64_t kLongestSum = 1 << 16;
  const int64_t lanes = cpu.vector_bytes / ByteWidth(p.type);
  const bool along_n = p.b_n == 1 && p.n % lanes == 0;
  const bool along_k = p.b_k == 1 && p.k % lanes == 0 && p.n > 1 && p.TotalK() <= kLongestSum;
  if (lanes < 2 || (!along_n && !along_k)) return false;
  auto is_even = [](int64_t stride) { return stride % 2 == 0; };
  return is_even(p.b_first) && is_even(along_n ? p.b_k : p.b_n) &&
         std::ranges::all_of(p.batch, is_even, &GemmBatchDimension::b) &&
         std::ranges::all_of(p.k_outer, is_even, &GemmSumLevel::b);
}

}  // namespace

std::optional<Contraction> AsContraction(const Kernel& kernel, const target::Cpu& cpu) {
  const Stage& stage = kernel.stages.front();
  ElementType type = ElementType::kInvalid;
  auto factors = FactorsOf(kernel, type);
  if (!factors || !HasGemm(type)) return std::nullopt;
  const NodeId x_load = factors->x.load, y_load = factors->y.load;
  const Node* x = &stage.nodes[x_load];
  const Node* y = &stage.nodes[y_load];
  const Index x_place = factors->x.place, y_place = factors->y.place;
  if (!IsOfVariables(x_place) || !IsOfVariables(y_place)) return std::nullopt;
  for (const Variable& v : kernel.variables) {
    if (v.extent == 0) return std::nullopt;
  }
  // Stage 1 walks the outer points and no more.
  for (StageId s : kernel.stages.ids(StageId(1))) {
    if (!kernel.stages[s].variables.empty() || !kernel.stages[s].reductions.empty()) {
      return std::nullopt;
    }
  }
  VariableStrides sx(kernel.variables.size()), sy(kernel.variables.size());
  for (VariableId v : kernel.variables.ids()) {
    auto a = x_place.StrideOf(v), b = y_place.StrideOf(v);
    if (!a || !b) return std::nullopt;
    sx[v] = *a;
    sy[v] = *b;
  }
  if (!ScalesGoAlong(kernel, cpu, stage, factors->x, sx) ||
      !ScalesGoAlong(kernel, cpu, stage, factors->y, sy)) {
    return std::nullopt;
  }
  const std::vector<GemmSumLevel> levels = LevelsOf(kernel, stage.variables, sx, sy);
  // Rows move the left factor alone, columns the right one; the largest of each is m and n. Windows
  // of neighbours have most of their elements in common: there it is the closest one of some size.
  VariableId row, column;
  for (VariableId v : kernel.OuterVariables()) {
    auto better = [&](VariableId than, const VariableStrides& strides) {
      if (!than.valid()) return true;
      const int64_t one = kernel.variables[v].extent, other = kernel.variables[than].extent;
      constexpr int64_t kSome = 8;
      if (levels.size() > 1 && std::min(one, other) >= kSome) {
        return std::abs(strides[v]) <= std::abs(strides[than]);
      }
      return one >= other;
    };
    if (sx[v] != 0 && sy[v] == 0 && better(row, sx)) row = v;
    if (sx[v] == 0 && sy[v] != 0 && better(column, sy)) column = v;
  }
  Contraction c;
  c.a_param = x->param;
  c.b_param = y->param;
  c.a_load = x_load;
  c.m_variable = row;
  c.n_variable = column;
  c.c_param = PlainOutput(kernel);
  GemmProblem& p = c.problem;
  p.type = type;
  p.a_factor = ValuesOf(stage, factors->x);
  p.b_factor = ValuesOf(stage, factors->y);
  if (!IsPlain(stage, factors->x)) c.a_prologue = std::move(factors->x);
  if (!IsPlain(stage, factors->y)) c.b_prologue = std::move(factors->y);
  p.a_type = x->type;
  p.b_type = y->type;
  auto extent = [&](VariableId v) { return v.valid() ? kernel.variables[v].extent : 1; };
  auto stride = [](const VariableStrides& of, VariableId v) { return v.valid() ? of[v] : 0; };
  auto output = [&](VariableId v) { return v.valid() ? OutputStride(kernel, v).value_or(0) : 0; };
  p.a_first = x_place.constant();
  p.b_first = y_place.constant();
  p.m = extent(row);
  p.n = extent(column);
  p.a_m = stride(sx, row);
  if (levels.empty()) {
    p.k = 1;
    p.a_k = p.b_k = 0;
  } else {
    p.k = levels.back().size;
    p.a_k = levels.back().a;
    p.b_k = levels.back().b;
    p.k_outer.assign(levels.begin(), levels.end() - 1);
  }
  p.b_n = stride(sy, column);
  p.c_m = output(row);
  p.c_n = output(column);
  // Those that do not move the right factor come last.
  for (bool last : {false, true}) {
    for (VariableId v : kernel.OuterVariables()) {
      if (v == row || v == column || (sy[v] == 0) != last) continue;
      c.batch_variables.push_back(v);
      p.batch.push_back({kernel.variables[v].extent, sx[v], sy[v], output(v)});
    }
  }
  bool transpose = (p.c_n != 1 && p.c_m == 1) || PrefersTransposedGemm(cpu, p);
  // Epilogues want contiguous vectors.
  if (!c.c_param.valid() && p.c_n == 1 && !HasFewColumns(cpu, p)) transpose = false;
  if (transpose) {
    // And of the two the other one is the right factor now.
    auto moves = [](const auto& d) { return d.a != 0; };
    std::vector<VariableId> variables;
    for (bool last : {false, true}) {
      for (size_t i = 0; i < p.batch.size(); ++i) {
        if (moves(p.batch[i]) != last) variables.push_back(c.batch_variables[i]);
      }
    }
    std::ranges::stable_partition(p.batch, moves);
    c.batch_variables = std::move(variables);
    p = p.Transposed();
    std::swap(c.a_param, c.b_param);
    c.a_load = y_load;
    std::swap(c.a_prologue, c.b_prologue);
    std::swap(c.m_variable, c.n_variable);
  }
  if (c.a_prologue && c.a_prologue->half.valid()) return std::nullopt;
  if (c.b_prologue) {
    p.b_ops = c.b_prologue->ops;
    p.b_half = c.b_prologue->half_type;
    if (p.HasHalves() && !TakesHalves(p, cpu)) return std::nullopt;
  }
  return c;
}

std::optional<Gemm> AsGemm(const Kernel& kernel, const target::Cpu& cpu,
                           const std::function<bool(ParamId)>& is_constant) {
  auto contraction = AsContraction(kernel, cpu);
  if (!contraction || IsPlainReduction(contraction->problem)) return std::nullopt;
  Gemm gemm{*std::move(contraction)};
  Contraction& c = gemm.contraction;
  const bool same = c.a_param == c.b_param;
  c.problem.may_pack_a = !same && CountLoads(kernel, c.a_param) == 1;
  gemm.may_pack_b = !same && CountLoads(kernel, c.b_param) == 1;
  // Only operands computed from constants can be packed at load time.
  auto varies = [&](NodeId load) { return !is_constant(kernel.stages.front().nodes[load].param); };
  bool b_varies = c.b_prologue && std::ranges::any_of(c.b_prologue->others, varies);
  c.problem.b_constant = gemm.may_pack_b && !b_varies && is_constant(c.b_param);
  return gemm;
}

}  // namespace kiln::kernel
