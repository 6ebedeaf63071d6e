// What depends on frozen arguments and constants alone is computed when they are bound, as
// constants are folded at compile time:
//
//   f(x, g(w))  =>  f(x, p), and a module of its own p = g(w)   where p has no more bytes than w,
//   or
//                                                               twice as many if g is a product
//
// Values that kernels compute as they read them stay where they are: g is then no copy, slice,
// broadcast, or transpose before a dot.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/strings.h"
#include "ir/analysis/alias.h"
#include "ir/analysis/effects.h"
#include "ir/analysis/frozen.h"
#include "ir/host_call.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Values so small may be larger than their origin.
constexpr int64_t kSmallBytes = 4096;

bool IsPlain(const Instruction& i) {
  return i.shape().is_array() && i.shape().is_static() && !HasTrait(i.opcode(), kStructural) &&
         ir::IsPure(i) && !DependsOnProcess(i.opcode()) && !ir::IsHostCall(i) &&
         i.control_predecessors().empty() && i.control_successors().empty();
}

class Splitter {
 public:
  Splitter(ir::Module& module, std::vector<FrozenPart>& parts)
      : module_(module), c_(*module.entry()), parts_(parts) {}

  bool Run() {
    Find();
    Prune();
    for (std::vector<Instruction*>& component : Components()) Move(component);
    return !moved_.empty();
  }

 private:
  // The frozen arrays that a value is made of, by their leaves, and their bytes.
  struct Origin {
    std::vector<int64_t> leaves;
    int64_t bytes = 0;
  };

  // Whether an array is a leaf of the parameters as it is.
  static bool IsLeaf(const Instruction& array) {
    const Instruction* i = &array;
    while (i->opcode() == Opcode::kGetTupleElement) i = i->operand(0);
    return i->opcode() == Opcode::kParameter;
  }
  // Whether it is frozen, and known to be: not what comes out of a barrier.
  bool IsSource(const Instruction& i) const {
    if (!ir::IsFrozen(i)) return false;
    return IsLeaf(i) || (i.operand_count() == 1 && sources_.contains(i.operand(0)));
  }

  void Find() {
    std::unordered_map<const Instruction*, int64_t> first_leaves;
    int64_t leaves = 0;
    for (const Instruction* parameter : c_.parameters()) {
      first_leaves[parameter] = leaves;
      bytes_.resize(static_cast<size_t>(leaves += LeafCount(parameter->shape())));
    }
    for (Instruction* i : c_.instructions()) {
      if (IsSource(*i)) {
        const ir::Leaf leaf = ir::OriginOf({i, 0});
        sources_[i] = first_leaves.at(leaf.instruction) + leaf.index;
        bytes_[static_cast<size_t>(sources_[i])] = i->shape().byte_size();
        continue;
      }
      if (!IsPlain(*i) && !(i->IsConstant() && i->shape().is_array())) continue;
      bool is_known = true;
      Origin origin;
      for (const Instruction* operand : i->operands()) {
        if (auto source = sources_.find(operand); source != sources_.end()) {
          AddOrigin(source->second, origin);
        } else if (auto it = origins_.find(operand); it != origins_.end()) {
          for (const int64_t leaf : it->second.leaves) AddOrigin(leaf, origin);
        } else {
          is_known &= fixed_.contains(operand);
        }
      }
      if (!is_known) continue;
      if (origin.leaves.empty()) {
        fixed_.insert(i);
      } else {
        origins_.emplace(i, std::move(origin));
        order_.push_back(i);
      }
    }
  }

  void AddOrigin(int64_t leaf, Origin& origin) const {
    if (std::ranges::find(origin.leaves, leaf) != origin.leaves.end()) return;
    origin.leaves.push_back(leaf);
    origin.bytes += bytes_[static_cast<size_t>(leaf)];
  }

  bool IsMoved(const Instruction* i) const { return origins_.contains(i); }
  // Whether the rest of the program reads it.
  bool IsResult(const Instruction& i) const {
    return i.IsRoot() ||
           std::ranges::any_of(i.users(), [&](const Instruction* user) { return !IsMoved(user); });
  }

  // Leaves results where they are that are not worth memory of their own; then what they are made
  // of is a result. Parts that need them compute them, too.
  void Prune() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      const Instruction* i = *it;
      if (IsResult(*i) && !IsWorthMemory(*i)) origins_.erase(i);
      if (IsMoved(i) || std::ranges::any_of(i->users(), [&](const Instruction* user) {
            return computed_.contains(user);
          })) {
        computed_.insert(i);
      }
    }
  }

  bool IsWorthMemory(const Instruction& i) const {
    if (ir::IsAlias(i)) return false;
    switch (i.opcode()) {
      case Opcode::kBroadcast:
      case Opcode::kReshape:
      case Opcode::kSlice:
      case Opcode::kCopy:
        return false;
      case Opcode::kTranspose:
        if (std::ranges::all_of(i.users(), [&](const Instruction* user) {
              return IsMoved(user) || user->opcode() == Opcode::kDot;
            })) {
          return false;
        }
        break;
      default:
        break;
    }
    // A product is as much work as its sums are long.
    const int64_t growth = i.opcode() == Opcode::kDot ? 2 : 1;
    return i.shape().byte_size() <= std::max(growth * origins_.at(&i).bytes, kSmallBytes);
  }

  // What is computed together, each in the order of the computation.
  std::vector<std::vector<Instruction*>> Components() {
    std::unordered_map<const Instruction*, const Instruction*> parents;
    auto of = [&](const Instruction* i) {
      while (true) {
        auto it = parents.find(i);
        if (it == parents.end()) return i;
        i = it->second;
      }
    };
    auto unite = [&](const Instruction* a, const Instruction* b) {
      a = of(a), b = of(b);
      if (a != b) parents[a] = b;
    };
    // Frozen arrays by their leaves: one may be read under several shapes.
    std::unordered_map<int64_t, const Instruction*> leaves;
    for (const Instruction* i : order_) {
      if (!computed_.contains(i)) continue;
      for (const Instruction* operand : i->operands()) {
        if (computed_.contains(operand)) unite(operand, i);
        auto source = sources_.find(operand);
        if (source == sources_.end()) continue;
        unite(leaves.try_emplace(source->second, i).first->second, i);
      }
    }
    std::vector<std::vector<Instruction*>> components;
    std::unordered_map<const Instruction*, size_t> numbers;
    for (Instruction* i : order_) {
      if (!IsMoved(i)) continue;
      auto [it, fresh] = numbers.try_emplace(of(i), components.size());
      if (fresh) components.emplace_back();
      components[it->second].push_back(i);
    }
    return components;
  }

  // Moves the instructions into a part.
  void Move(const std::vector<Instruction*>& component) {
    part_ = {};
    part_.module = std::make_unique<ir::Module>(Cat(module_.name(), ".frozen", parts_.size()));
    body_ = part_.module->AddComputation("frozen");
    part_.module->set_entry(body_);
    part_.first_parameter = static_cast<int64_t>(c_.parameters().size());
    copies_.clear();
    parameters_.clear();
    called_.clear();
    std::vector<Instruction*> results, outputs;
    for (Instruction* i : component) {
      Instruction* copy = CopyOf(*i);
      if (!IsResult(*i)) continue;
      results.push_back(i);
      outputs.push_back(copy);
    }
    if (outputs.empty()) return;  // nobody needs it
    Instruction* root = outputs[0];
    if (outputs.size() > 1) {
      std::vector<Shape> shapes;
      for (const Instruction* output : outputs) shapes.push_back(output->shape());
      root = body_->Create({.opcode = Opcode::kTuple,
                            .operands = outputs,
                            .shape = Shape::Tuple(std::move(shapes))});
    }
    body_->set_root(root);
    for (Instruction* result : results) {
      c_.ReplaceAllUses(result, AddParameter(*result));
      moved_.push_back(result);
    }
    parts_.push_back(std::move(part_));
  }

  Instruction* AddParameter(const Instruction& result) {
    return c_.Create(
        {.opcode = Opcode::kParameter,
         .attributes = {{Attr::kParameterNumber, static_cast<int64_t>(c_.parameters().size())}},
         .shape = result.shape(),
         .name = "bound",
         .op_name = result.op_name(),
         .frontend_attributes =
             ir::MakeFrontendAttributes({{std::string(ir::kFrozenAttribute), "1"}})},
        c_.instructions().front());
  }

  // In the part, with its operands.
  Instruction* CopyOf(const Instruction& i) {
    if (auto it = copies_.find(&i); it != copies_.end()) return it->second;
    Instruction* copy;
    if (auto source = sources_.find(&i); source != sources_.end() && IsLeaf(i)) {
      Instruction*& parameter = parameters_[source->second];
      if (!parameter) {
        parameter =
            body_->Create({.opcode = Opcode::kParameter,
                           .attributes = {{Attr::kParameterNumber, std::ssize(part_.arguments)}},
                           .shape = i.shape(),
                           .op_name = i.op_name()});
        part_.arguments.push_back(source->second);
      }
      copy = parameter;
    } else {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i.operands()) operands.push_back(CopyOf(*operand));
      ir::InstructionSpec spec = ir::CopySpec(i, std::move(operands));
      for (Computation*& called : spec.called) {
        Computation*& own = called_[called];
        if (!own) own = part_.module->CloneComputation(*called, called->name());
        called = own;
      }
      copy = body_->Create(std::move(spec));
    }
    copies_[&i] = copy;
    return copy;
  }

  ir::Module& module_;
  Computation& c_;
  std::vector<FrozenPart>& parts_;
  std::unordered_map<const Instruction*, int64_t> sources_;  // frozen as they are; by leaf
  std::vector<int64_t> bytes_;                               // of frozen leaves
  std::unordered_set<const Instruction*> fixed_;             // of constants alone
  std::unordered_map<const Instruction*, Origin> origins_;
  std::vector<Instruction*> order_;                  // of those that had origins at first
  std::unordered_set<const Instruction*> computed_;  // of these what is in a part
  std::vector<Instruction*> moved_;

  // The part at hand.
  FrozenPart part_;
  Computation* body_ = nullptr;
  std::unordered_map<const Instruction*, Instruction*> copies_;
  std::unordered_map<int64_t, Instruction*> parameters_;  // by leaf
  std::unordered_map<Computation*, Computation*> called_;
};

}  // namespace

Result<bool> SplitFrozen(ir::Module& module, const PassContext& context) {
  if (ir::FrozenLeaves(module).empty()) return false;
  if (!Splitter(module, *context.frozen_parts).Run()) return false;
  return EliminateDeadCode(module, context);
}

}  // namespace kiln::passes
