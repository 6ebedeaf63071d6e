#include "session/subgraph.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;
using ByName = std::unordered_map<std::string_view, Instruction*>;

Result<std::vector<Instruction*>> Find(const ByName& by_name, std::span<const std::string> names,
                                       std::string_view done) {
  std::vector<Instruction*> found;
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    auto it = by_name.find(name);
    if (it == by_name.end()) return NotFound("there is no value '", name, "' to be ", done);
    if (!it->second->shape().is_array()) {
      return InvalidArgument("'", name, "' is ", it->second->shape(), "; only arrays can be ",
                             done);
    }
    if (!seen.insert(name).second) return InvalidArgument("'", name, "' is ", done, " twice");
    found.push_back(it->second);
  }
  return found;
}

// The instructions needed by `roots`, including themselves, up to the fed ones.
std::unordered_set<const Instruction*> Needed(const std::vector<Instruction*>& roots,
                                              const std::vector<Instruction*>& feeds) {
  std::unordered_set<const Instruction*> needed(feeds.begin(), feeds.end());
  std::vector<const Instruction*> left;
  auto visit = [&](const Instruction* i) {
    if (needed.insert(i).second) left.push_back(i);
  };
  for (const Instruction* root : roots) visit(root);
  while (!left.empty()) {
    const Instruction* i = left.back();
    left.pop_back();
    for (const Instruction* operand : i->operands()) visit(operand);
  }
  return needed;
}

}  // namespace

Result<std::unique_ptr<ir::Module>> Subgraph(const ir::Module& module,
                                             std::span<const std::string> feeds,
                                             std::span<const std::string> fetches) {
  ByName by_name;
  for (Instruction* i : module.entry()->instructions()) by_name[i->name()] = i;
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fed, Find(by_name, feeds, "fed"));
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fetched, Find(by_name, fetches, "fetched"));
  auto needed = Needed(fetched, fed);

  auto part = std::make_unique<ir::Module>(module.name());
  std::unordered_map<const Computation*, Computation*> callees;
  for (Instruction* i : module.entry()->instructions()) {
    if (!needed.contains(i)) continue;
    for (const Computation* callee : i->called()) {
      Computation*& copy = callees[callee];
      if (!copy) copy = part->CloneComputation(*callee, callee->name());
    }
  }
  Computation* entry = part->AddComputation(module.entry()->name());
  part->set_entry(entry);
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (size_t i = 0; i < fed.size(); ++i) {
    copies[fed[i]] =
        entry->Create({.opcode = Opcode::kParameter,
                       .attributes = {{Attr::kParameterNumber, static_cast<int64_t>(i)}},
                       .shape = fed[i]->shape(),
                       .name = fed[i]->name(),
                       .op_name = fed[i]->op_name()});
  }
  for (Instruction* i : module.entry()->instructions()) {
    if (!needed.contains(i) || copies.contains(i)) continue;
    if (i->opcode() == Opcode::kParameter) {
      return InvalidArgument("the parameter '", i->name(), "', ", i->shape(),
                             ", is needed by what is fetched, and is not fed");
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    for (Computation*& callee : spec.called) callee = callees.at(callee);
    copies[i] = entry->Create(std::move(spec));
  }
  std::vector<Instruction*> results;
  for (const Instruction* i : fetched) results.push_back(copies.at(i));
  KILN_ASSIGN_OR_RETURN(Instruction * root,
                        entry->Add({.opcode = Opcode::kTuple, .operands = std::move(results)}));
  entry->set_root(root);
  return part;
}

}  // namespace kiln::session
