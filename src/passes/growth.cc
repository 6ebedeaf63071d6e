#include "passes/growth.h"

#include <algorithm>
#include <unordered_map>

#include "base/strings.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr int64_t kMost = int64_t{1} << 62;

std::string NumberOf(int64_t instructions) {
  return instructions >= kMost ? Cat("more than ", kMost) : Cat(instructions);
}

}  // namespace

Status CheckCopies(const ir::Module& module, const PassContext& context) {
  const int64_t limit = context.max_instructions;
  // Callees first, each with copies of its callees.
  std::unordered_map<const Computation*, int64_t> sizes;
  for (const Computation* c : module.CalleesFirst()) {
    int64_t size = 0, most = 0;
    const Computation* largest = nullptr;
    for (const Instruction* i : c->instructions()) {
      size = std::min(size + 1, kMost);
      for (const Computation* callee : i->called()) {
        const int64_t of_callee = sizes.at(callee);
        size = std::min(size + of_callee, kMost);
        if (of_callee <= most) continue;
        most = of_callee;
        largest = callee;
      }
    }
    sizes[c] = size;
    if (size <= limit) continue;
    if (!largest) return CheckGrowth(*c, context);
    return ResourceExhausted("'", c->name(), "' would have ", NumberOf(size),
                             " instructions with a copy of each computation that it calls, '",
                             largest->name(), "' ", NumberOf(most), " of them; the most is ",
                             limit);
  }
  return OkStatus();
}

Status CheckGrowth(const Computation& computation, const PassContext& context) {
  KILN_RETURN_IF_ERROR(context.interrupt.Check());
  if (computation.instruction_count() <= context.max_instructions) return OkStatus();
  return ResourceExhausted("'", computation.name(), "' would have more than ",
                           context.max_instructions, " instructions");
}

}  // namespace kiln::passes
