#include "random/calls.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

// A part of a computation, instructions that follow each other.
struct Part {
  std::vector<Instruction*> members;
  std::vector<Instruction*> arguments, results;
  Instruction* next = nullptr;  // behind it
};

// The values that enter and leave it; whether they are arrays.
bool FindBorder(Part& part) {
  const std::unordered_set<const Instruction*> inside(part.members.begin(), part.members.end());
  for (Instruction* i : part.members) {
    if (i->IsRoot() || i->opcode() == Opcode::kParameter) return false;
    for (Instruction* operand : i->operands()) {
      if (inside.contains(operand) || std::ranges::count(part.arguments, operand)) continue;
      if (!operand->shape().is_array()) return false;
      part.arguments.push_back(operand);
    }
    const bool leaves =
        std::ranges::any_of(i->users(), [&](const Instruction* u) { return !inside.contains(u); });
    if (leaves && !i->shape().is_array()) return false;
    if (leaves) part.results.push_back(i);
  }
  return part.next && !part.results.empty();
}

// Elements of tuples belong to the part of the tuple.
Part RandomPart(const Computation& c, std::mt19937_64& random) {
  const std::vector<Instruction*> all(c.instructions().begin(), c.instructions().end());
  Part part;
  size_t at = random() % all.size();
  const size_t end = std::min(all.size(), at + 1 + random() % 8);
  for (; at < all.size() && (at < end || all[at]->opcode() == Opcode::kGetTupleElement); ++at) {
    part.members.push_back(all[at]);
  }
  if (at < all.size()) part.next = all[at];
  return part;
}

Computation* MoveOut(const Part& part, bool as_tuple) {
  Computation* from = part.next->parent();
  Computation* body = from->parent()->AddComputation("function");
  std::unordered_map<const Instruction*, Instruction*> inside;
  for (size_t k = 0; k < part.arguments.size(); ++k) {
    inside[part.arguments[k]] =
        body->Create({.opcode = Opcode::kParameter,
                      .attributes = {{Attr::kParameterNumber, static_cast<int64_t>(k)}},
                      .shape = part.arguments[k]->shape()});
  }
  for (Instruction* i : part.members) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) {
      auto it = inside.find(operand);
      operands.push_back(it == inside.end() ? operand : it->second);
    }
    body->TakeInstruction(i, operands, nullptr);
  }
  Instruction* root = part.results.front();
  if (as_tuple || part.results.size() > 1) {
    std::vector<Shape> shapes;
    for (const Instruction* result : part.results) shapes.push_back(result->shape());
    root = body->Create({.opcode = Opcode::kTuple,
                         .operands = part.results,
                         .shape = Shape::Tuple(std::move(shapes))});
  }
  body->set_root(root);
  Instruction* call = from->Create({.opcode = Opcode::kCall,
                                    .operands = part.arguments,
                                    .called = {body},
                                    .shape = root->shape()},
                                   part.next);
  for (size_t k = 0; k < part.results.size(); ++k) {
    Instruction* value =
        root == part.results[k] ? call : ir::ElementOf(call, static_cast<int64_t>(k), part.next);
    const auto users = part.results[k]->users();
    for (Instruction* user : std::vector(users.begin(), users.end())) {
      if (user->parent() != from) continue;
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == part.results[k]) from->ReplaceOperand(user, o, value);
      }
    }
  }
  return body;
}

}  // namespace

void MakeCalls(ir::Module& module, int count, std::mt19937_64& random) {
  std::vector<Computation*> callers = {module.entry()};
  for (int k = 0; k < count; ++k) {
    Part part = RandomPart(*callers[random() % callers.size()], random);
    if (FindBorder(part)) callers.push_back(MoveOut(part, random() % 2 == 0));
  }
  module.SortComputations();
}

std::vector<Computation*> CalledByEntry(const ir::Module& module) {
  std::vector<Computation*> found = {module.entry()};
  for (size_t k = 0; k < found.size(); ++k) {
    for (const Instruction* i : found[k]->instructions()) {
      if (i->opcode() != Opcode::kCall) continue;
      if (!std::ranges::count(found, i->called(0))) found.push_back(i->called(0));
    }
  }
  return found;
}

}  // namespace kiln::testing
