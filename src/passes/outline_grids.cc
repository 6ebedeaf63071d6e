// Grids of processes become calls with their programs: the computations called by run_parallel go
// into its config, as the text of a module whose entry is the call.
#include <unordered_map>
#include <unordered_set>

#include "interp/harness.h"
#include "ir/text.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool IsGrid(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall && !i.called().empty() &&
         i.attributes().Text(Attr::kCustomCallTarget) == interp::kRunParallel;
}

// The call as a module: of its operands' values.
std::string ModuleOf(const Instruction& call) {
  ir::Module module("grid");
  std::unordered_map<const Computation*, Computation*> copies;
  ir::InstructionSpec spec = ir::CopySpec(call, {});
  for (Computation*& called : spec.called) {
    Computation*& copy = copies[called];
    if (!copy) copy = module.CloneComputation(*called, called->name());
    called = copy;
  }
  Computation* entry = module.AddComputation("entry");
  for (int64_t k = 0; k < call.operand_count(); ++k) {
    spec.operands.push_back(entry->Create({.opcode = Opcode::kParameter,
                                           .attributes = {{Attr::kParameterNumber, k}},
                                           .shape = call.operand(k)->shape()}));
  }
  entry->set_root(entry->Create(std::move(spec)));
  module.set_entry(entry);
  module.SortComputations();
  return ir::ToHloText(module, {.metadata = false});
}

}  // namespace

Result<bool> OutlineGrids(ir::Module& module, const PassContext& context) {
  bool changed = false;
  // Grids inside of others' programs go with these.
  std::vector<Computation*> work = {module.entry()};
  std::unordered_set<const Computation*> seen = {module.entry()};
  while (!work.empty()) {
    Computation* c = work.back();
    work.pop_back();
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      if (!IsGrid(*i)) {
        for (Computation* called : i->called()) {
          if (seen.insert(called).second) work.push_back(called);
        }
        continue;
      }
      ir::InstructionSpec spec =
          ir::CopySpec(*i, std::vector<Instruction*>(i->operands().begin(), i->operands().end()));
      spec.attributes.Set(Attr::kBackendConfig, QuotedText{ModuleOf(*i)});
      spec.called.clear();
      c->Replace(i, std::move(spec));
      changed = true;
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
