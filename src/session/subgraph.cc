#include "session/subgraph.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "session/clustering.h"
#include "session/outline.h"
#include "session/values.h"

namespace kiln::session {
namespace {

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

// Of any shape, any number of times.
Result<std::vector<Instruction*>> FindTargets(const ByName& by_name,
                                              std::span<const std::string> names) {
  std::vector<Instruction*> found;
  for (const std::string& name : names) {
    auto it = by_name.find(name);
    if (it == by_name.end()) return NotFound("there is no value '", name, "' to be a target");
    found.push_back(it->second);
  }
  return found;
}

// The instructions needed by `roots`, including themselves, up to the fed ones. Control
// predecessors are needed like operands.
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
    for (const Instruction* before : i->control_predecessors()) visit(before);
  }
  return needed;
}

}  // namespace

Result<std::unique_ptr<ir::Module>> Subgraph(const ir::Module& module,
                                             std::span<const std::string> feeds,
                                             std::span<const std::string> fetches,
                                             std::span<const std::string> targets) {
  ByName by_name;
  for (Instruction* i : module.entry()->instructions()) by_name[i->name()] = i;
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fed, Find(by_name, feeds, "fed"));
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> fetched, Find(by_name, fetches, "fetched"));
  KILN_ASSIGN_OR_RETURN(std::vector<Instruction*> roots, FindTargets(by_name, targets));
  roots.insert(roots.end(), fetched.begin(), fetched.end());
  const auto needed = Needed(roots, fed);

  const std::unordered_set<const Instruction*> is_fed(fed.begin(), fed.end());
  std::vector<Instruction*> computed;
  for (Instruction* i : module.entry()->instructions()) {
    if (!needed.contains(i) || is_fed.contains(i)) continue;
    (i->opcode() == Opcode::kParameter ? fed : computed).push_back(i);
  }
  return OutlinePart(module.name(), computed, std::move(fed), std::move(fetched)).module;
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
