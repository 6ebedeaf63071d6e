// Elements at positions given by other operands: the positions are values of the kernel, clamped so
// that the slice is inside the array.
#include <algorithm>
#include <map>

#include "kernel/values.h"
#include "ops/gather_scatter.h"

namespace kiln::kernel {

using ir::Instruction;

namespace {

// The largest value of an integer type, as far as an index needs to know.
int64_t LargestOf(ElementType type) {
  int64_t bits = BitWidth(type) - (IsSigned(type) ? 1 : 0);
  return bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
}

void CollectVariables(const Index& index, std::map<VariableId, Atom>& variables) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == Atom::Kind::kVariable) variables.emplace(t.atom.variable, t.atom);
    if (t.atom.inner) CollectVariables(*t.atom.inner, variables);
  }
}

}  // namespace

// The variables that a node depends on, as the terms of an index.
Result<Index> StageValues::DependenceOf(NodeId node) const {
  std::map<VariableId, Atom> variables;
  IdVector<NodeId, bool> seen(stage_.nodes.size());
  std::vector<NodeId> work = {node};
  while (!work.empty()) {
    NodeId at = work.back();
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const Node& n = stage_.nodes[at];
    if (n.kind == Node::Kind::kReduced) {
      return Unimplemented("a position that a reduction of the same kernel computes");
    }
    CollectVariables(n.index, variables);
    work.insert(work.end(), n.operands.begin(), n.operands.end());
    if (n.guard.valid()) work.push_back(n.guard);
  }
  Index sum;
  for (const auto& [id, atom] : variables) sum = sum + Index::OfTerm(1, atom);
  return sum;
}

Result<Index> StageValues::Position(NodeId node) {
  const Node& n = stage_.nodes[node];
  int64_t most = LargestOf(n.type);
  if (n.kind == Node::Kind::kConstant) {
    int64_t value = n.literal->AsInt(0);
    return Index(value < 0 && !IsSigned(n.type) ? INT64_MAX : value);
  }
  if (n.kind == Node::Kind::kIndex && n.index.low() >= 0 && n.index.high() <= most) return n.index;
  // Numbers above an int64 read as negative ones: both are out of bounds.
  int64_t least = IsSigned(n.type) ? -most - 1 : most == INT64_MAX ? INT64_MIN : 0;
  KILN_ASSIGN_OR_RETURN(Index depends, DependenceOf(node));
  return Index::Value(node, least, most, std::move(depends));
}

Result<Index> StageValues::Within(NodeId node, int64_t high) {
  KILN_ASSIGN_OR_RETURN(Index position, Position(node));
  high = std::max<int64_t>(high, 0);
  if (position.is_constant()) return Index(std::clamp<int64_t>(position.constant(), 0, high));
  const Node& n = stage_.nodes[node];
  if (n.kind == Node::Kind::kIndex) return position;
  KILN_ASSIGN_OR_RETURN(Index depends, DependenceOf(node));
  return Index::Value(node, 0, std::min(high, LargestOf(n.type)), std::move(depends));
}

Result<Index> StageValues::Clamped(NodeId node, int64_t high) {
  for (const ClampMemo& m : clamped_) {
    if (m.node == node && m.high == high) return m.index;
  }
  KILN_ASSIGN_OR_RETURN(Index position, Position(node));
  ElementType type = stage_.nodes[node].type;
  Index result;
  if (position.is_constant()) {
    result = std::clamp<int64_t>(position.constant(), 0, high);
  } else if (position.low() >= 0 && position.high() <= high) {
    result = position;
  } else {
    NodeId value = node;
    if (IsSigned(type)) value = Op(Opcode::kMaximum, type, {value, Number(type, 0)});
    bool above = LargestOf(type) > high || (!IsSigned(type) && LargestOf(type) == INT64_MAX);
    if (above) value = Op(Opcode::kMinimum, type, {value, Number(type, high)});
    KILN_ASSIGN_OR_RETURN(Index depends, DependenceOf(value));
    result = Index::Value(value, 0, std::min(high, LargestOf(type)), std::move(depends));
  }
  clamped_.push_back({node, high, result});
  return result;
}

Result<Index> StageValues::StartOf(const Instruction& start, const std::vector<Index>& at,
                                   int64_t high, NodeId guard) {
  if (high <= 0) return Index(0);
  KILN_ASSIGN_OR_RETURN(NodeId node, At(start, at, guard));
  return Clamped(node, high);
}

// dynamic-slice(x, s)[i] = x[clamp(s) + i]
Result<NodeId> StageValues::DynamicSlice(const Instruction& instruction,
                                         const std::vector<Index>& index, NodeId guard) {
  const Instruction& operand = *instruction.operand(0);
  std::vector<Index> from;
  for (size_t d = 0; d < index.size(); ++d) {
    int64_t dim = static_cast<int64_t>(d);
    int64_t high = operand.shape().dim(dim) - instruction.shape().dim(dim);
    KILN_ASSIGN_OR_RETURN(Index start, StartOf(*instruction.operand(dim + 1), {}, high, guard));
    from.push_back(index[d] + start);
  }
  return At(operand, from, guard);
}

Result<std::vector<Index>> StageValues::UpdateStarts(const Instruction& instruction, NodeId guard) {
  const Shape& update = instruction.operand(1)->shape();
  std::vector<Index> starts;
  for (int64_t d = 0; d < update.rank(); ++d) {
    int64_t high = instruction.shape().dim(d) - update.dim(d);
    KILN_ASSIGN_OR_RETURN(Index start, StartOf(*instruction.operand(d + 2), {}, high, guard));
    starts.push_back(std::move(start));
  }
  return starts;
}

// dynamic-update-slice(x, u, s)[i] = u[i - clamp(s)] where that is inside u, else x[i].
Result<NodeId> StageValues::DynamicUpdateSlice(const Instruction& instruction,
                                               const std::vector<Index>& index, NodeId guard) {
  const Instruction &operand = *instruction.operand(0), &update = *instruction.operand(1);
  if (update.shape().num_elements() == 0) return At(operand, index, guard);
  KILN_ASSIGN_OR_RETURN(std::vector<Index> starts, UpdateStarts(instruction, guard));
  std::vector<Index> from;
  NodeId inside;
  for (size_t d = 0; d < index.size(); ++d) {
    from.push_back(index[d] - starts[d]);
    int64_t size = update.shape().dim(static_cast<int64_t>(d));
    // The whole of a dimension has no outside.
    if (size < operand.shape().dim(static_cast<int64_t>(d))) {
      inside = Both(inside, InRange(from.back(), size));
    }
  }
  if (!inside.valid()) return At(update, from, guard);
  KILN_ASSIGN_OR_RETURN(NodeId value, At(update, from, Both(guard, inside)));
  KILN_ASSIGN_OR_RETURN(NodeId old, At(operand, index, guard));
  return Op(Opcode::kSelect, instruction.shape().type(), {inside, value, old});
}

Result<NodeId> StageValues::Gather(const Instruction& instruction, const std::vector<Index>& index,
                                   NodeId guard) {
  const Instruction &operand = *instruction.operand(0), &indices = *instruction.operand(1);
  const Shape& shape = operand.shape();
  // Dropped slices of size 0 leave undefined elements.
  if (shape.num_elements() == 0) return Number(instruction.shape().type(), 0);
  SliceMap map =
      SliceMapOf(Opcode::kGather, instruction.attributes(), shape.rank(), indices.shape().rank());
  const Ints& sizes = instruction.attributes().IntsOf(Attr::kSliceSizes);
  std::vector<Index> from;
  for (size_t d = 0; d < sizes.size(); ++d) {
    Index position;
    if (map.component[d] >= 0) {
      std::vector<Index> at = VectorIndex(map, index, map.component[d]);
      KILN_ASSIGN_OR_RETURN(
          position, StartOf(indices, at, shape.dim(static_cast<int64_t>(d)) - sizes[d], guard));
    }
    if (map.slice[d] >= 0) position = position + index[map.slice[d]];
    if (map.batch[d] >= 0) {
      int64_t outside = map.outside[map.batch[d]];
      position = position + index[outside];
    }
    from.push_back(std::move(position));
  }
  return At(operand, from, guard);
}

std::vector<Index> VectorIndex(const SliceMap& map, const std::vector<Index>& index,
                               int64_t component) {
  std::vector<Index> at;
  for (size_t d = 0; d < map.outside.size(); ++d) {
    bool of_vector = static_cast<int64_t>(d) == map.index_vector_dim;
    at.push_back(of_vector ? Index(component) : index[map.outside[d]]);
  }
  return at;
}

}  // namespace kiln::kernel
