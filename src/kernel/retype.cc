#include "kernel/retype.h"

#include <numeric>

namespace kiln::kernel {
namespace {

// Sets of parameters and nodes that must have one type.
class Types {
 public:
  explicit Types(const Kernel& kernel) {
    size_t count = kernel.params.size();
    for (const Stage& stage : kernel.stages) {
      first_.push_back(count);
      count += stage.nodes.size();
    }
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    computed_.resize(count, false);
  }

  size_t Param(ParamId param) const { return param.index(); }
  size_t Node(StageId stage, NodeId node) const { return first_[stage] + node.index(); }

  void Join(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    computed_[a] = computed_[a] || computed_[b];
    parent_[b] = a;
  }
  void MarkComputed(size_t a) { computed_[Find(a)] = true; }
  bool IsComputed(size_t a) { return computed_[Find(a)]; }

 private:
  size_t Find(size_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }

  IdVector<StageId, size_t> first_;
  std::vector<size_t> parent_;
  std::vector<bool> computed_;
};

// Whether the op's result has, or may have, the operand's bits.
bool IsMoved(Opcode opcode, size_t operand) {
  return HasTrait(opcode, kMovesElements) && (opcode != Opcode::kSelect || operand > 0);
}

// Whether an update only replaces elements, without computation.
bool Replaces(const Update& update) {
  size_t count = update.inputs.size();
  for (const Node& n : update.combiner.nodes) {
    if (n.kind != Node::Kind::kArgument) return false;
  }
  for (size_t k = 0; k < count; ++k) {
    const Node& result = update.combiner.nodes[update.combiner.results[k]];
    if (result.result != static_cast<int>(count + k)) return false;
  }
  return true;
}

std::shared_ptr<const Literal> Retyped(const Literal& scalar) {
  auto bits = std::make_shared<Literal>(Shape::Scalar(ElementType::kU16));
  std::memcpy(bits->data(), scalar.data(), static_cast<size_t>(bits->byte_size()));
  return bits;
}

}  // namespace

void RetypeMoves(Kernel& kernel) {
  bool any = false;
  for (const Param& p : kernel.params) any |= IsHalf(p.type);
  if (!any) return;
  Types types(kernel);
  for (StageId s : kernel.stages.ids()) {
    const Stage& stage = kernel.stages[s];
    for (NodeId n : stage.nodes.ids()) {
      const Node& node = stage.nodes[n];
      size_t self = types.Node(s, n);
      switch (node.kind) {
        case Node::Kind::kLoad:
          types.Join(self, types.Param(node.param));
          break;
        case Node::Kind::kConstant:
          break;
        case Node::Kind::kOp:
          // Between two types of one width nothing is computed, and neither need be the other.
          if (node.opcode == Opcode::kBitcastConvert) break;
          for (size_t k = 0; k < node.operands.size(); ++k) {
            size_t operand = types.Node(s, node.operands[k]);
            if (IsMoved(node.opcode, k)) {
              types.Join(self, operand);
            } else {
              types.MarkComputed(operand);
            }
          }
          if (!IsMoved(node.opcode, node.operands.size() - 1)) types.MarkComputed(self);
          break;
        case Node::Kind::kIndex:
        case Node::Kind::kInRange:
        case Node::Kind::kReduced:
        case Node::Kind::kArgument:
          types.MarkComputed(self);
          break;
      }
    }
    for (const Reduction& r : stage.reductions) {
      for (NodeId input : r.inputs) types.MarkComputed(types.Node(s, input));
      for (NodeId init : r.inits) types.MarkComputed(types.Node(s, init));
    }
    for (const Update& update : stage.updates) {
      bool replaces = Replaces(update);
      for (size_t k = 0; k < update.params.size(); ++k) {
        types.Join(types.Param(update.params[k]), types.Node(s, update.inputs[k]));
        if (!replaces) types.MarkComputed(types.Param(update.params[k]));
      }
    }
    for (const Store& store : stage.stores) {
      types.Join(types.Param(store.param), types.Node(s, store.value));
    }
  }
  for (ParamId p : kernel.params.ids()) {
    bool moved = IsHalf(kernel.params[p].type) && !types.IsComputed(types.Param(p));
    if (moved) kernel.params[p].type = ElementType::kU16;
  }
  for (StageId s : kernel.stages.ids()) {
    for (NodeId n : kernel.stages[s].nodes.ids()) {
      Node& node = kernel.stages[s].nodes[n];
      if (!IsHalf(node.type) || types.IsComputed(types.Node(s, n))) continue;
      node.type = ElementType::kU16;
      if (node.literal) node.literal = Retyped(*node.literal);
    }
    for (Update& update : kernel.stages[s].updates) {
      if (!Replaces(update)) continue;
      // Its arguments are the present elements, then the new ones.
      for (Node& n : update.combiner.nodes) {
        size_t of = static_cast<size_t>(n.result) % update.params.size();
        n.type = kernel.params[update.params[of]].type;
      }
    }
  }
}

}  // namespace kiln::kernel
