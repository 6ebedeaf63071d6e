#include "kernel/values.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/combiner.h"
#include "kernel/region.h"

namespace kiln::kernel {

using ir::Instruction;

namespace {

// Of a stage: ops of which each reads another at several places become exponentially many.
constexpr size_t kMostNodes = 1 << 14;

// x - max(x, ...): the exponents of a softmax.
bool IsLessItsMaximum(const Instruction& i) {
  if (i.opcode() != Opcode::kSubtract || i.operand(1)->opcode() != Opcode::kBroadcast) return false;
  const Instruction &x = *i.operand(0), &spread = *i.operand(1), &reduce = *spread.operand(0);
  bool is_maximum =
      reduce.opcode() == Opcode::kReduce && reduce.operand(0) == &x && reduce.operand_count() == 2;
  if (!is_maximum) return false;
  auto combiner = CombinerOf(reduce);
  if (!combiner.ok() || combiner->kind != Combiner::Kind::kMax) return false;
  Ints kept;
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    if (std::ranges::find(reduce.dimensions(), d) == reduce.dimensions().end()) kept.push_back(d);
  }
  return spread.dimensions() == kept;
}

}  // namespace

NodeId StageValues::Add(Node node) { return stage_.nodes.Add(std::move(node)); }

NodeId StageValues::Op(Opcode opcode, ElementType type, std::vector<NodeId> operands) {
  Node node{.kind = Node::Kind::kOp, .type = type, .opcode = opcode};
  node.operands = std::move(operands);
  return Add(std::move(node));
}

NodeId StageValues::Converted(NodeId node, ElementType type) {
  return stage_.nodes[node].type == type ? node : Op(Opcode::kConvert, type, {node});
}

NodeId StageValues::InRange(const Index& index, int64_t bound) {
  if (index.low() >= 0 && index.high() < bound) return {};
  Node node{.kind = Node::Kind::kInRange, .type = ElementType::kPred};
  node.index = index;
  node.bound = bound;
  return Add(std::move(node));
}

NodeId StageValues::Both(NodeId a, NodeId b) {
  if (!a.valid()) return b;
  if (!b.valid() || a == b) return a;
  return Op(Opcode::kAnd, ElementType::kPred, {a, b});
}

const std::vector<Index>& StageValues::Known(const std::vector<Index>& index) {
  auto is_it = [&](const std::vector<Index>& known) { return &known == &index; };
  if (std::ranges::any_of(indices_, is_it)) return index;
  auto at = std::ranges::find(indices_, index);
  return at == indices_.end() ? indices_.emplace_back(index) : *at;
}

Result<NodeId> StageValues::At(const Instruction& instruction, const std::vector<Index>& index,
                               NodeId guard) {
  const std::vector<Index>& known = Known(index);
  for (const Memo& m : memo_[&instruction]) {
    if (m.guard == guard && m.index == &known) return m.node;
  }
  if (stage_.nodes.size() > kMostNodes) {
    return ResourceExhausted("'", instruction.name(), "' is part of a kernel of more than ",
                             kMostNodes, " scalar operations");
  }
  KILN_ASSIGN_OR_RETURN(NodeId node, Compute(instruction, known, guard));
  memo_[&instruction].push_back({&known, guard, node});
  return node;
}

Result<NodeId> StageValues::ReducedAt(const Instruction& instruction, int result,
                                      const std::vector<Index>& index) {
  auto reduced = sources_.reduced(instruction);
  if (!reduced) {
    return Unimplemented(OpcodeName(instruction.opcode()), ": '", instruction.name(),
                         "' cannot be part of this kernel");
  }
  if (*reduced->at != index) {
    return Unimplemented(OpcodeName(instruction.opcode()), ": '", instruction.name(),
                         "' is read at another index than the kernel computes it at");
  }
  const Shape& shape = instruction.shape();
  Node node{.kind = Node::Kind::kReduced, .type = (*reduced->types)[result]};
  node.stage = reduced->stage;
  node.reduction = reduced->reduction;
  node.result = result;
  return Converted(Add(std::move(node)),
                   shape.is_tuple() ? shape.elements()[result].type() : shape.type());
}

Result<NodeId> StageValues::Compute(const Instruction& instruction, const std::vector<Index>& index,
                                    NodeId guard) {
  const Shape& shape = instruction.shape();
  if (Sources::Memory memory = sources_.memory_of(instruction); memory.param.valid()) {
    Node node{.kind = Node::Kind::kLoad, .type = shape.type()};
    node.param = memory.param;
    node.index = Linearise(index, memory.strides ? *memory.strides : shape.strides());
    node.guard = guard;
    return Add(std::move(node));
  }
  if (instruction.opcode() == Opcode::kGetTupleElement) {
    return ReducedAt(*instruction.operand(0),
                     static_cast<int>(instruction.attributes().Int(Attr::kIndex)), index);
  }
  if (instruction.opcode() == Opcode::kCopy) return At(*instruction.operand(0), index, guard);
  switch (instruction.opcode()) {
    case Opcode::kConstant: {
      if (shape.num_elements() != 1 && !instruction.literal().IsSplat()) {
        return Unimplemented("constant: '", instruction.name(), "' of shape ", shape,
                             " is no scalar and must be an input of the kernel");
      }
      Node node{.kind = Node::Kind::kConstant, .type = shape.type()};
      auto scalar = std::make_shared<Literal>(Shape::Scalar(shape.type()));
      std::memcpy(scalar->data(), instruction.literal().data(), ByteWidth(shape.type()));
      node.literal = std::move(scalar);
      return Add(std::move(node));
    }
    case Opcode::kIota: {
      Node node{.kind = Node::Kind::kIndex, .type = shape.type()};
      node.index = index[instruction.attributes().Int(Attr::kIotaDimension)];
      return Add(std::move(node));
    }
    case Opcode::kBitcastConvert:
      return BitcastConvert(instruction, index, guard);
    case Opcode::kBroadcast: {
      std::vector<Index> from;
      for (int64_t d : instruction.dimensions()) from.push_back(index[d]);
      return At(*instruction.operand(0), from, guard);
    }
    case Opcode::kBitcast:
      if (shape.type() != instruction.operand(0)->shape().type()) {
        return Unimplemented("bitcast: '", instruction.name(), "' of ",
                             instruction.operand(0)->shape(), " as ", shape,
                             " cannot be part of a kernel");
      }
      [[fallthrough]];
    case Opcode::kReshape: {
      std::vector<int64_t> from = instruction.operand(0)->shape().dims();
      std::vector<int64_t> to = shape.dims();
      return At(*instruction.operand(0), Reshaped(index, to, from), guard);
    }
    case Opcode::kTranspose: {
      std::vector<Index> from(index.size());
      for (size_t i = 0; i < index.size(); ++i) from[instruction.dimensions()[i]] = index[i];
      return At(*instruction.operand(0), from, guard);
    }
    case Opcode::kReverse: {
      std::vector<Index> from = index;
      for (int64_t d : instruction.dimensions()) from[d] = from[d] * -1 + (shape.dim(d) - 1);
      return At(*instruction.operand(0), from, guard);
    }
    case Opcode::kSlice: {
      std::vector<Index> from;
      const auto& slices = instruction.attributes().Slices(Attr::kSlice);
      for (size_t i = 0; i < index.size(); ++i) {
        from.push_back(index[i] * slices[i].stride + slices[i].start);
      }
      return At(*instruction.operand(0), from, guard);
    }
    case Opcode::kDynamicSlice:
      return DynamicSlice(instruction, index, guard);
    case Opcode::kDynamicUpdateSlice:
      return DynamicUpdateSlice(instruction, index, guard);
    case Opcode::kGather:
      return Gather(instruction, index, guard);
    case Opcode::kGetDimensionSize:
      return Number(shape.type(), instruction.operand(0)->shape().dim(instruction.dimensions()[0]));
    case Opcode::kMap:
      return Map(instruction, index, guard);
    case Opcode::kPad:
      return Pad(instruction, index, guard);
    case Opcode::kPatches:
      return Patches(instruction, index, guard);
    case Opcode::kConcatenate:
      return Concatenate(instruction, index, guard);
#define KILN_ELEMENTWISE_OP(Name, ...) case Opcode::k##Name:
#include "ops/ops.def"
      return Elementwise(instruction, index, guard);
// The other elemental ops have a formula above; heroes are reduced in an earlier stage.
#define KILN_CASE_kElemental(Name)
#define KILN_CASE_kNone(Name) case Opcode::k##Name:
#define KILN_CASE_kReduce(Name) case Opcode::k##Name:
#define KILN_CASE_kDot(Name) case Opcode::k##Name:
#define KILN_CASE_kWindow(Name) case Opcode::k##Name:
#define KILN_CASE_kScatter(Name) case Opcode::k##Name:
#define KILN_CASE_kSort(Name) case Opcode::k##Name:
#define KILN_OP(Name, text, operands, attributes, inference, evaluator, types, traits, cost, role, \
                ...)                                                                               \
  KILN_CASE_##role(Name)
#include "ops/ops.def"
      return ReducedAt(instruction, 0, index);
  }
  return Internal("no opcode: ", static_cast<int>(instruction.opcode()));
}

Result<NodeId> StageValues::Elementwise(const Instruction& instruction,
                                        const std::vector<Index>& index, NodeId guard) {
  const std::vector<Index> no_index;
  std::vector<NodeId> operands;
  for (const Instruction* operand : instruction.operands()) {
    // The scalar pred of select and the scalar bounds of clamp.
    const bool is_scalar = operand->shape().rank() == 0;
    KILN_ASSIGN_OR_RETURN(NodeId node, At(*operand, is_scalar ? no_index : index, guard));
    operands.push_back(node);
  }
  Node node = ElementwiseNode(instruction);
  node.operands = std::move(operands);
  node.at_most_zero =
      instruction.opcode() == Opcode::kExponential && IsLessItsMaximum(*instruction.operand(0));
  return Add(std::move(node));
}

Result<NodeId> StageValues::Map(const Instruction& instruction, const std::vector<Index>& index,
                                NodeId guard) {
  std::vector<NodeId> operands;
  for (const Instruction* operand : instruction.operands()) {
    KILN_ASSIGN_OR_RETURN(NodeId node, At(*operand, index, guard));
    operands.push_back(node);
  }
  auto argument = [&](int64_t number) { return operands[number]; };
  auto add = [&](Node node) { return Add(std::move(node)); };
  auto results = AddRegion(*instruction.called(0), argument, add);
  if (!results.ok()) return results.status().WithContext("map");
  return (*results)[0];
}

Result<NodeId> StageValues::Spaced(const Instruction& operand, const std::vector<Index>& places,
                                   const std::vector<int64_t>& steps, const Instruction* fill,
                                   NodeId guard) {
  std::vector<Index> from;
  NodeId inside;
  for (size_t d = 0; d < places.size(); ++d) {
    from.push_back(places[d].FloorDiv(steps[d]));
    inside = Both(inside, InRange(places[d].Mod(steps[d]), 1));
    inside = Both(inside, InRange(from.back(), operand.shape().dim(static_cast<int64_t>(d))));
  }
  if (!inside.valid()) return At(operand, from, guard);
  ElementType type = operand.shape().type();
  KILN_ASSIGN_OR_RETURN(NodeId value, At(operand, from, Both(guard, inside)));
  NodeId other;
  if (fill) {
    KILN_ASSIGN_OR_RETURN(other, At(*fill, {}, guard));
  } else {
    Node zero{.kind = Node::Kind::kConstant, .type = type};
    zero.literal = std::make_shared<Literal>(Shape::Scalar(type));
    other = Add(std::move(zero));
  }
  return Op(Opcode::kSelect, type, {inside, value, other});
}

// pad(x)[i] = x[(i - low) / (interior + 1)] where that is whole and inside x, else the padding.
Result<NodeId> StageValues::Pad(const Instruction& instruction, const std::vector<Index>& index,
                                NodeId guard) {
  std::vector<Index> places;
  std::vector<int64_t> steps;
  const auto& padding = instruction.attributes().Padding(Attr::kPadding);
  for (size_t i = 0; i < index.size(); ++i) {
    places.push_back(index[i] - padding[i].low);
    steps.push_back(padding[i].interior + 1);
  }
  return Spaced(*instruction.operand(0), places, steps, instruction.operand(1), guard);
}

// patches(x)[p, k] = x[(p * stride + k * window_dilation - low) / base_dilation] where that is
// whole and inside x, else 0.
Result<NodeId> StageValues::Patches(const Instruction& instruction, const std::vector<Index>& index,
                                    NodeId guard) {
  std::vector<Index> places;
  std::vector<int64_t> steps;
  const auto& window = instruction.attributes().Window(Attr::kWindow);
  for (size_t i = 0; i < window.size(); ++i) {
    const WindowDimension& w = window[i];
    Index k = index[window.size() + i];
    if (w.reversed) k = k * -1 + (w.size - 1);
    places.push_back(index[i] * w.stride + k * w.window_dilation - w.low);
    steps.push_back(w.base_dilation);
  }
  return Spaced(*instruction.operand(0), places, steps, nullptr, guard);
}

Result<NodeId> StageValues::Concatenate(const Instruction& instruction,
                                        const std::vector<Index>& index, NodeId guard) {
  int64_t dimension = instruction.dimensions()[0];
  int64_t offset = instruction.shape().dim(dimension);
  NodeId result;
  // From the last operand, which needs no test of its own, to the first.
  for (int64_t i = instruction.operand_count(); i-- > 0;) {
    const Instruction& operand = *instruction.operand(i);
    int64_t size = operand.shape().dim(dimension);
    offset -= size;
    if (size == 0) continue;
    std::vector<Index> from = index;
    from[dimension] = from[dimension] - offset;
    if (from[dimension].low() >= size || from[dimension].high() < 0) continue;
    NodeId inside = InRange(from[dimension], size);
    if (size == 1) from[dimension] = 0;  // where it is inside
    KILN_ASSIGN_OR_RETURN(NodeId value, At(operand, from, Both(guard, inside)));
    result = !result.valid() || !inside.valid()
                 ? value
                 : Op(Opcode::kSelect, instruction.shape().type(), {inside, value, result});
  }
  if (!result.valid()) {  // Nothing to concatenate: never evaluated, but a node there must be.
    Node zero{.kind = Node::Kind::kConstant, .type = instruction.shape().type()};
    zero.literal = std::make_shared<Literal>(Shape::Scalar(instruction.shape().type()));
    result = Add(std::move(zero));
  }
  return result;
}

}  // namespace kiln::kernel
