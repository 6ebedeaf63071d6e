#include "interp/called_function.h"

#include <unordered_set>

#include "interp/harness.h"
#include "interp/needed.h"
#include "ir/analysis/alias.h"
#include "ir/analysis/effects.h"
#include "ir/host_call.h"

namespace kiln::interp {

CalledFunction CalledFunctionOf(const ir::Instruction& call) {
  return {call.name(), ir::HostCallTarget(call), ir::CallSignatureOf(call),
          ir::AliasedArrays(call)};
}

std::vector<CalledFunction> CalledFunctionsOf(const ir::Module& module) {
  std::vector<CalledFunction> called;
  std::vector<const ir::Computation*> work = {module.entry()};
  std::unordered_set<const ir::Computation*> seen = {module.entry()};
  NeededSearch needed;
  while (!work.empty()) {
    const ir::Computation& c = *work.back();
    work.pop_back();
    const NeededSearch::Instructions run =
        needed.In(c, [](const ir::Instruction&) { return false; });
    for (const ir::Instruction* i : c.instructions()) {
      if (!run.contains(i)) continue;
      const bool is_custom = i->opcode() == Opcode::kCustomCall;
      if (!is_custom || i->attributes().Text(Attr::kCustomCallTarget) == kRunParallel) {
        for (const ir::Computation* callee : i->called()) {
          if (seen.insert(callee).second) work.push_back(callee);
        }
      } else if (!ir::IsMarker(*i) &&
                 !Harness::Has(i->attributes().Text(Attr::kCustomCallTarget))) {
        called.push_back(CalledFunctionOf(*i));
      }
    }
  }
  return called;
}

}  // namespace kiln::interp
