#include "kernel/sort.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "kernel/region.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

Node Argument(int number, ElementType type) {
  Node node{.kind = Node::Kind::kArgument, .type = type};
  node.result = number;
  return node;
}

bool IsOp(const Node& n, Opcode opcode) { return n.kind == Node::Kind::kOp && n.opcode == opcode; }

bool IsCompare(const Node& n, Direction direction) {
  return IsOp(n, Opcode::kCompare) && n.direction == direction;
}

// The comparator's nodes, of which `left` and `right` are compared at last.
class Matcher {
 public:
  explicit Matcher(const IdVector<NodeId, Node>& nodes) : nodes_(nodes) {}

  // Whether `right` is made of right elements as `left` is of left ones.
  bool Mirrors(NodeId left, NodeId right) {
    auto [it, fresh] = mirrors_.try_emplace({left, right}, false);
    if (fresh) it->second = FindMirrors(left, right);
    return mirrors_.at({left, right});
  }

  // A copy of `node` and its inputs, on left elements only.
  NodeId Copy(NodeId node, Combiner& to, IdVector<NodeId, NodeId>& copies) const {
    NodeId& copy = copies[node];
    if (copy.valid()) return copy;
    Node n = At(node);
    if (n.kind == Node::Kind::kArgument) n.result /= 2;
    for (NodeId& operand : n.operands) operand = Copy(operand, to, copies);
    return copy = to.nodes.Add(std::move(n));
  }

  bool IsArgument(NodeId node) const { return At(node).kind == Node::Kind::kArgument; }

  // Of x in  bits(x) xor ((bits(x) >> width - 1) >>> 1),  which is x by the total order; or -1.
  NodeId TotallyOrdered(NodeId node) const {
    const Node& n = At(node);
    if (!IsOp(n, Opcode::kXor)) return {};
    const Node& bits = At(n.operands[0]);
    const Node& rest = At(n.operands[1]);
    if (!IsOp(bits, Opcode::kBitcastConvert) || !IsOp(rest, Opcode::kShiftRightLogical)) return {};
    const Node& signs = At(rest.operands[0]);
    bool fits = IsOp(signs, Opcode::kShiftRightArithmetic) && signs.operands[0] == n.operands[0] &&
                IsNumber(rest.operands[1], 1) &&
                IsNumber(signs.operands[1], static_cast<double>(8 * ByteWidth(n.type) - 1));
    const NodeId x = bits.operands[0];
    return fits && IsFloat(At(x).type) ? x : NodeId();
  }

  // Of x in  select(x != x, NaN, select(x == 0, 0, x)),  in either order; or -1.
  NodeId Canonical(NodeId node) const {
    bool zero = false, nan = false;
    while (IsOp(At(node), Opcode::kSelect)) {
      const Node& select = At(node);
      const Node& test = At(select.operands[0]);
      const NodeId rest = select.operands[2];
      if (!zero && IsCompare(test, Direction::kEq) && IsNumber(test.operands[1], 0) &&
          IsNumber(select.operands[1], 0) && Tests(test.operands[0], rest)) {
        zero = true;
      } else if (!nan && IsCompare(test, Direction::kNe) && test.operands[0] == test.operands[1] &&
                 IsNan(select.operands[1]) && Tests(test.operands[0], rest)) {
        nan = true;
      } else {
        return {};
      }
      node = rest;
    }
    return zero && nan ? node : NodeId();
  }

 private:
  bool FindMirrors(NodeId left, NodeId right) {
    const Node &l = At(left), &r = At(right);
    if (l.kind == Node::Kind::kArgument) {
      return r.kind == Node::Kind::kArgument && l.result % 2 == 0 && r.result == l.result + 1;
    }
    if (l.operands.size() != r.operands.size()) return false;
    for (size_t k = 0; k < l.operands.size(); ++k) {
      if (!Mirrors(l.operands[k], r.operands[k])) return false;
    }
    Node same = r;
    same.operands = l.operands;
    return l == same;
  }

  const Node& At(NodeId node) const { return nodes_[node]; }

  bool IsNumber(NodeId node, double value) const {
    const Node& n = At(node);
    return n.kind == Node::Kind::kConstant && n.literal->IsAll(value);
  }
  bool IsNan(NodeId node) const {
    const Node& n = At(node);
    if (n.kind != Node::Kind::kConstant || !IsFloat(n.type)) return false;
    double value = n.literal->AsDouble(0);
    return std::isnan(value) && !std::signbit(value);
  }
  // The tested value may precede other selects that change its zeros or NaNs.
  bool Tests(NodeId tested, NodeId value) const {
    while (tested != value) {
      if (!IsOp(At(value), Opcode::kSelect)) return false;
      value = At(value).operands[2];
    }
    return true;
  }

  const IdVector<NodeId, Node>& nodes_;
  std::map<std::pair<NodeId, NodeId>, bool> mirrors_;
};

}  // namespace

bool IsSort(const Instruction& i) {
  return i.opcode() == Opcode::kSort || i.opcode() == Opcode::kTopK;
}

std::optional<SortKey> KeyOf(const Combiner& comparator, int64_t operands) {
  const auto& nodes = comparator.nodes;
  const Node& root = nodes[comparator.results[0]];
  if (!IsCompare(root, Direction::kLt) && !IsCompare(root, Direction::kGt)) return std::nullopt;
  Matcher match(nodes);
  SortKey key;
  key.descending = root.direction == Direction::kGt;
  NodeId left = root.operands[0], right = root.operands[1];
  if (match.Mirrors(right, left)) {
    std::swap(left, right);
    key.descending = !key.descending;
  }
  if (!match.Mirrors(left, right)) return std::nullopt;
  ElementType type = nodes[left].type;
  // The order of a compare, or the same by the bits as integers.
  NodeId ordered;
  if (!IsFloat(type)) ordered = match.TotallyOrdered(left);
  if (IsFloat(type) && root.total_order) ordered = left;
  if (ordered.valid()) {
    left = ordered;
    key.order = SortKey::Order::kTotal;
    if (NodeId y = match.Canonical(ordered); y.valid()) {
      left = y;
      key.order = SortKey::Order::kNumber;
    }
  } else if (IsFloat(type)) {
    key.order = SortKey::Order::kNumber;
  }
  IdVector<NodeId, NodeId> copies(nodes.size());
  key.value.results = {match.Copy(left, key.value, copies)};
  key.is_element = operands == 1 && match.IsArgument(left);
  return key;
}

namespace {

// The comparator of a topk: by the total order of the first operand.
Combiner TotalOrderOf(ElementType type, bool descending) {
  Combiner comparator;
  auto add = [&](Node node) { return comparator.nodes.Add(std::move(node)); };
  ElementType word = type;
  if (IsFloat(type)) {
    word = ByteWidth(type) == 2   ? ElementType::kS16
           : ByteWidth(type) == 4 ? ElementType::kS32
                                  : ElementType::kS64;
  }
  auto op = [&](Opcode opcode, NodeId a, NodeId b) {
    Node node{.kind = Node::Kind::kOp, .type = word, .opcode = opcode, .operands = {a}};
    if (b.valid()) node.operands.push_back(b);
    return add(std::move(node));
  };
  auto number = [&](int64_t value) {
    Literal literal = Literal::ScalarOf(word, static_cast<double>(value));
    return add({.kind = Node::Kind::kConstant,
                .type = word,
                .literal = std::make_shared<const Literal>(std::move(literal))});
  };
  NodeId sides[2];
  for (int side : {0, 1}) {
    NodeId x = add(Argument(side, type));
    if (IsFloat(type)) {
      NodeId bits = op(Opcode::kBitcastConvert, x, {});
      NodeId signs = op(Opcode::kShiftRightArithmetic, bits, number(8 * ByteWidth(word) - 1));
      x = op(Opcode::kXor, bits, op(Opcode::kShiftRightLogical, signs, number(1)));
    }
    sides[side] = x;
  }
  NodeId root = op(Opcode::kCompare, sides[0], sides[1]);
  comparator.nodes.back().type = ElementType::kPred;
  comparator.nodes.back().direction = descending ? Direction::kGt : Direction::kLt;
  comparator.results = {root};
  return comparator;
}

Status AddComparator(const Instruction& instruction, Sort& sort) {
  const ir::Computation& computation = *instruction.called(0);
  Combiner comparator;
  auto add = [&](Node node) { return comparator.nodes.Add(std::move(node)); };
  auto argument = [&](int64_t number) {
    return add(Argument(static_cast<int>(number), computation.parameter(number)->shape().type()));
  };
  auto results = AddRegion(computation, argument, add);
  if (!results.ok()) return results.status().WithContext("sort");
  comparator.results = *std::move(results);
  sort.comparator = std::move(comparator);
  return OkStatus();
}

}  // namespace

Status BuildSort(const Instruction& instruction, ParamId first_output, StageValues& values,
                 Kernel& kernel) {
  const Shape& shape = instruction.operand(0)->shape();
  bool top = instruction.opcode() == Opcode::kTopK;
  int64_t along = top ? shape.rank() - 1 : instruction.dimensions()[0];
  int64_t size = shape.dim(along);
  std::vector<Index> index(static_cast<size_t>(shape.rank()));
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d == along) continue;
    index[d] = Index::Variable(kernel.variables.Add({shape.dim(d), false}), shape.dim(d));
    ++kernel.outer;
  }
  Sort sort;
  sort.variable = kernel.variables.Add({size, true});
  index[along] = Index::Variable(sort.variable, size);
  kernel.stages.front().variables = {sort.variable};
  sort.keep = size;
  for (const Instruction* operand : instruction.operands()) {
    KILN_ASSIGN_OR_RETURN(NodeId node, values.At(*operand, index));
    sort.inputs.push_back(node);
  }
  if (top) {
    sort.keep = instruction.attributes().Int(Attr::kK);
    const AttrValue* largest = instruction.attributes().Find(Attr::kLargest);
    sort.comparator = TotalOrderOf(shape.type(), largest && std::get<bool>(*largest));
    sort.inputs.push_back(
        values.Add({.kind = Node::Kind::kIndex, .type = ElementType::kS32, .index = index[along]}));
  } else {
    KILN_RETURN_IF_ERROR(AddComparator(instruction, sort));
  }
  sort.key = KeyOf(sort.comparator, static_cast<int64_t>(sort.inputs.size()));
  for (size_t k = 0; k < sort.inputs.size(); ++k) {
    bool several = instruction.shape().is_tuple();
    const Shape& result = several ? instruction.shape().elements()[k] : instruction.shape();
    sort.params.emplace_back(first_output.index() + k);
    sort.indices.push_back(Linearise(index, result.strides()));
  }
  kernel.kind = Kernel::Kind::kSort;
  kernel.stages.front().sort = std::move(sort);
  return OkStatus();
}

}  // namespace kiln::kernel
