// f(x) => f(or(x, x))   where x is a pred from outside, and f is not elementwise
//
// A kernel tests the byte of a truth value against 0, and writes 0 or 1, so elementwise ops need
// nothing. The `or` is fused into the kernels of most other ops, where it is no instruction. The
// rest are copies, now kernels, and sorts, calls and loops with a kernel before them.
#include "passes/normalise_preds.h"

#include <algorithm>

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

namespace {

bool HasPreds(const Shape& shape) {
  if (!shape.is_tuple()) return shape.is_array() && IsPred(shape.type());
  return std::ranges::any_of(shape.elements(), HasPreds);
}

// Whether the user reads a truth value, and moves no byte.
bool ReadsTruth(const Instruction& user, int64_t operand) {
  if (user.opcode() == Opcode::kConditional) return operand == 0;
  return IsElementwise(user.opcode()) && user.opcode() != Opcode::kCopy &&
         user.opcode() != Opcode::kBitcastConvert;
}

class Normaliser {
 public:
  explicit Normaliser(Computation& c) : c_(c) {}

  // Replaces `value` and its elements in their users by normalised ones.
  void Visit(Instruction* value) {
    if (!HasPreds(value->shape())) return;
    std::vector<Instruction*> users(value->users().begin(), value->users().end());
    std::ranges::sort(users, {}, &Instruction::id);
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (Instruction* user : users) {
      if (user->opcode() == Opcode::kGetTupleElement) {
        Visit(user);
        continue;
      }
      Instruction* normal = nullptr;
      for (int64_t k = 0; k < user->operand_count(); ++k) {
        if (user->operand(k) != value || ReadsTruth(*user, k)) continue;
        if (!normal) normal = Normal(value, user);
        c_.ReplaceOperand(user, k, normal);
      }
    }
    if (c_.root() == value) c_.set_root(Normal(value, nullptr));
  }

  bool changed() const { return changed_; }

 private:
  Instruction* Normal(Instruction* value, Instruction* before) {
    const Shape& shape = value->shape();
    if (!HasPreds(shape)) return value;
    changed_ = true;
    if (!shape.is_tuple()) {
      return c_.Create({.opcode = Opcode::kOr, .operands = {value, value}, .shape = shape}, before);
    }
    std::vector<Instruction*> elements;
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      Instruction* element = c_.Create({.opcode = Opcode::kGetTupleElement,
                                        .operands = {value},
                                        .attributes = {{Attr::kIndex, static_cast<int64_t>(i)}},
                                        .shape = shape.elements()[i]},
                                       before);
      elements.push_back(Normal(element, before));
    }
    return c_.Create({.opcode = Opcode::kTuple, .operands = std::move(elements), .shape = shape},
                     before);
  }

  Computation& c_;
  bool changed_ = false;
};

}  // namespace

Result<bool> NormalisePreds(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    std::vector<Instruction*> sources;
    if (c.get() == module.entry()) {
      sources.assign(c->parameters().begin(), c->parameters().end());
    }
    if (c->MayHold(Opcode::kCustomCall)) {
      for (Instruction* i : c->instructions()) {
        if (i->opcode() == Opcode::kCustomCall) sources.push_back(i);
      }
    }
    Normaliser normaliser(*c);
    for (Instruction* source : sources) normaliser.Visit(source);
    changed |= normaliser.changed();
  }
  return changed;
}

}  // namespace kiln::passes
