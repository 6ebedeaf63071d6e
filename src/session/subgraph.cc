#include "session/subgraph.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "ir/instruction_map.h"
#include "session/clustering.h"
#include "session/outline.h"
#include "session/values.h"

namespace kiln::session {
namespace {

using ir::Instruction;
// The instructions of some names, or null.
using ByName = std::unordered_map<std::string_view, Instruction*>;

Result<std::vector<Instruction*>> Find(const ByName& by_name, std::span<const std::string> names,
                                       std::string_view done) {
  std::vector<Instruction*> found;
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    Instruction* i = by_name.at(name);
    if (!i) return NotFound("there is no value '", name, "' to be ", done);
    if (!i->shape().is_array()) {
      return InvalidArgument("'", name, "' is ", i->shape(), "; only arrays can be ", done);
    }
    if (!seen.insert(name).second) return InvalidArgument("'", name, "' is ", done, " twice");
    found.push_back(i);
  }
  return found;
}

// Of any shape, any number of times.
Result<std::vector<Instruction*>> FindTargets(const ByName& by_name,
                                              std::span<const std::string> names) {
  std::vector<Instruction*> found;
  for (const std::string& name : names) {
    Instruction* i = by_name.at(name);
    if (!i) return NotFound("there is no value '", name, "' to be a target");
    found.push_back(i);
  }
  return found;
}

// Whether an instruction is fed; without a value: it is not needed.
using Needs = ir::InstructionMap<bool>;

// The instructions needed by `roots`, including themselves, up to the fed ones. Control
// predecessors are needed like operands.
Needs Needed(const ir::Computation& entry, const std::vector<Instruction*>& roots,
             const std::vector<Instruction*>& feeds) {
  Needs needed(entry);
  for (const Instruction* fed : feeds) needed.Insert(fed, true);
  std::vector<const Instruction*> left;
  auto visit = [&](const Instruction* i) {
    if (needed.Insert(i, false)) left.push_back(i);
  };
  for (const Instruction* root : roots) visit(root);
  while (!left.empty()) {
    const Instruction* i = left.back();
    left.pop_back();
    for (const Instruction* operand : i->operands()) visit(operand);
    for (const Instruction* before : i->control_predecessors()) visit(before);
  }
  return needed;
}

}  // namespace

Result<std::unique_ptr<ir::Module>> Subgraph(const ir::Module& module,
                                             std::span<const std::string> feeds,
                                             std::span<const std::string> fetches,
                                             std::span<const std::string> targets) {
  const ir::Computation& entry = *module.entry();
  ByName by_name;
  for (const std::string& name : feeds) by_name.emplace(name, nullptr);
  for (const std::string& name : fetches) by_name.emplace(name, nullptr);
  for (const std::string& name : targets) by_name.emplace(name, nullptr);
  for (Instruction* i : entry.instructions()) {
    if (auto it = by_name.find(i->name()); it != by_name.end()) it->second = i;
  }
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fed, Find(by_name, feeds, "fed"));
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fetched, Find(by_name, fetches, "fetched"));
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> roots, FindTargets(by_name, targets));
  roots.insert(roots.end(), fetched.begin(), fetched.end());
  const Needs needed = Needed(entry, roots, fed);
  std::vector<Instruction*> computed;
  computed.reserve(entry.instructions().size());
  for (Instruction* i : entry.instructions()) {
    const bool* is_fed = needed.Find(i);
    if (!is_fed || *is_fed) continue;
    (i->opcode() == Opcode::kParameter ? fed : computed).push_back(i);
  }
  return Outliner(entry)
      .Outline(module.name(), computed, std::move(fed), std::move(fetched))
      .module;
}

Status CheckAllFed(const ir::Module& module, size_t fed) {
  const auto parameters = module.entry()->parameters();
  if (parameters.size() <= fed) return OkStatus();
  const Instruction& parameter = *parameters[fed];
  return InvalidArgument("the parameter '", parameter.name(), "', ", parameter.shape(),
                         ", is needed by what is fetched, and is not fed");
}

void CopyResultsWithoutOp(ir::Module& module) {
  ir::Computation& entry = *module.entry();
  Instruction* root = entry.root();
  for (int64_t k = 0; k < root->operand_count(); ++k) {
    Instruction* fetched = root->operand(k);
    if (fetched->opcode() != Opcode::kParameter && !IsSmallConstant(*fetched)) continue;
    entry.ReplaceOperand(root, k, CopyOf(fetched, root, Cat(fetched->name(), ".copy")));
  }
}

}  // namespace kiln::session
