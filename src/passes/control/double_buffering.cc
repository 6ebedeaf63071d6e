// Double buffering: a kernel that makes the next value of an array in a loop's state from elements
// at other places cannot make it in the state's memory, and a copy would bring it there. Two
// iterations in one need none: the first one goes to other memory, and the second one back.
#include <cstdlib>
#include <memory>
#include <vector>

#include "ir/analysis/trip_count.h"
#include "kernel/fusible.h"
#include "passes/control/computations.h"
#include "passes/control/inductions.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Copies of smaller arrays are not worth it, nor longer bodies.
constexpr int64_t kLeastBytes = 16 << 10;
constexpr int64_t kMostInstructions = 64;

// Whether element k's next value needs memory of its own, beside that of the state.
bool NeedsOther(const Computation& body, int64_t k, kernel::FusionAnalysis& analysis) {
  const Instruction *state = body.parameter(0), *maker = body.root()->operand(k);
  if (!maker->shape().is_array() || maker->shape().byte_size() < kLeastBytes) return false;
  int64_t output = 0;
  if (maker->opcode() == Opcode::kGetTupleElement) {
    if (ir::IsElementOf(maker, state)) return false;
    output = maker->attributes().Int(Attr::kIndex);
    maker = maker->operand(0);
  }
  if (maker->opcode() == Opcode::kWhile || maker->opcode() == Opcode::kConditional) return false;
  for (int64_t o = 0; o < maker->operand_count(); ++o) {
    const Instruction* read = maker->operand(o);
    if (ir::IsElementOf(read, state) && read->attributes().Int(Attr::kIndex) == k &&
        !kernel::MayShareBuffer(*maker, o, output, analysis)) {
      return true;
    }
  }
  return false;
}

bool GainsByTwo(const Instruction& loop, kernel::FusionAnalysis& analysis) {
  const Computation& body = *loop.called(1);
  if (body.root()->opcode() != Opcode::kTuple || body.instruction_count() > kMostInstructions) {
    return false;
  }
  for (int64_t k = 0; k < body.root()->operand_count(); ++k) {
    if (NeedsOther(body, k, analysis)) return true;
  }
  return false;
}

// Readers of a tuple's elements read these.
void TakeApart(Instruction* tuple) {
  Computation* c = tuple->parent();
  const std::vector<Instruction*> users(tuple->users().begin(), tuple->users().end());
  for (Instruction* user : users) {
    if (user->opcode() != Opcode::kGetTupleElement) continue;
    c->ReplaceAllUses(user, tuple->operand(user->attributes().Int(Attr::kIndex)));
    c->Remove(user);
  }
}

void RemoveIfUnused(Instruction* i) {
  if (i->users().empty() && !i->IsRoot() && i->opcode() != Opcode::kParameter) {
    i->parent()->Remove(i);
  }
}

// The first iteration is done before the loop, whose counts begin as constants again.
void Peel(Instruction* loop, const ir::Induction& induction) {
  Computation* c = loop->parent();
  Instruction* start = loop->operand(0);
  Instruction* next = CopyBody(loop, *loop->called(1), {&start, 1});
  if (start->opcode() == Opcode::kTuple) TakeApart(start);
  for (const ir::InductionVariable& variable : induction.variables) {
    constexpr int64_t kMost = int64_t{1} << 50;
    if (!variable.start || std::abs(*variable.start) > kMost || std::abs(variable.step) > kMost) {
      continue;
    }
    const Shape& shape = next->operand(variable.element)->shape();
    auto second = std::make_shared<const Literal>(
        Literal::ScalarOf(shape.type(), static_cast<double>(*variable.start + variable.step)));
    Instruction* counted = next->operand(variable.element);
    c->ReplaceOperand(
        next, variable.element,
        c->Create({.opcode = Opcode::kConstant, .shape = shape, .literal = std::move(second)},
                  next));
    RemoveIfUnused(counted);
  }
  c->ReplaceOperand(loop, 0, next);
  RemoveIfUnused(start);
}

void MakeTwoInOne(Instruction* loop) {
  Computation* body = OwnCallee(loop, 1);
  ir::Module* module = body->parent();
  const Computation* once = module->CloneComputation(*body, body->name());
  Instruction* between = body->root();
  const auto elements = between->operands();
  Instruction* end =
      MakeTuple(body, std::vector<Instruction*>(elements.begin(), elements.end()), nullptr);
  body->set_root(CopyBody(end, *once, {&between, 1}));
  body->Remove(end);
  TakeApart(between);
  RemoveIfUnused(between);
}

}  // namespace

Result<bool> DoubleBuffers(ir::Module& module, const PassContext& context) {
  std::vector<Instruction*> loops;
  for (Computation* c : ProgramComputations(module)) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() == Opcode::kWhile && i->shape().is_tuple() &&
          GainsByTwo(*i, *context.fusions)) {
        loops.push_back(i);
      }
    }
  }
  if (loops.empty()) return false;
  bool changed = false;
  const auto inductions = InductionsOf(module);
  for (Instruction* loop : loops) {
    const auto known = inductions.find(loop);
    if (known == inductions.end() || known->second.trip_count.value_or(0) < 2) continue;
    if (*known->second.trip_count % 2 != 0) Peel(loop, known->second);
    MakeTwoInOne(loop);
    changed = true;
  }
  if (changed) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
