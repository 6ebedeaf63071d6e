#include "passes/simplify/simplify.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "ir/analysis/effects.h"
#include "passes/growth.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace simplify {

std::span<const Family> Families() {
  static constexpr Family kFamilies[] = {
      {"empty arrays", EmptyArrays, true},
      {"association", Association},
      {"add and subtract", AddAndSubtract},
      {"multiply and divide", MultiplyAndDivide},
      {"powers and remainders", PowersAndRemainders},
      {"signs and rounding", SignsAndRounding},
      {"logic", LogicRules},
      {"extrema and clamp", ExtremaAndClamp},
      {"compare", CompareRules},
      {"select", SelectRules, true},
      {"convert", ConvertRules},
      {"bits", BitRules},
      {"reshape", ReshapeRules, true},
      {"transpose", TransposeRules, true},
      {"reverse", ReverseRules, true},
      {"slice", SliceRules, true},
      {"dynamic slices", DynamicSliceRules},
      {"gather and scatter", GatherScatterRules},
      {"concatenate", ConcatenateRules, true},
      {"pad", PadRules, true},
      {"reduce", ReduceRules},
      {"reduce windows", ReduceWindowRules},
      {"dot", DotRules},
      {"broadcast", BroadcastRules, true},
      {"sort", SortRules},
      {"rearrangement", RearrangementRules},
  };
  return kFamilies;
}

bool MayReplace(const ir::Instruction& i) {
  if (i.users().empty() && !i.IsRoot()) return false;
  auto is_plain = [](const Shape& s) { return s.is_array() && s.is_static(); };
  return is_plain(i.shape()) &&
         std::ranges::all_of(i.operands(), [&](const ir::Instruction* operand) {
           return is_plain(operand->shape());
         });
}

namespace {

// Removes a dead instruction, and its operands without other users. Rules for values with one user
// depend on it.
void RemoveDead(ir::Computation* c, ir::Instruction* instruction) {
  std::vector<ir::Instruction*> work = {instruction};
  while (!work.empty()) {
    ir::Instruction* dead = work.back();
    work.pop_back();
    std::vector<ir::Instruction*> operands(dead->operands().begin(), dead->operands().end());
    std::ranges::sort(operands);
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    c->Remove(dead);
    for (ir::Instruction* operand : operands) {
      if (operand->users().empty() && !operand->IsRoot() &&
          operand->opcode() != Opcode::kParameter && !ir::HasSideEffect(*operand)) {
        work.push_back(operand);
      }
    }
  }
}

bool HasKernelTypes(const ir::Instruction& i) {
  return IsKernelType(i.shape().type()) &&
         std::ranges::all_of(i.operands(), [](const ir::Instruction* operand) {
           return IsKernelType(operand->shape().type());
         });
}

ir::Instruction* Simpler(ir::Instruction* i) {
  if (!MayReplace(*i)) return nullptr;
  const bool has_kernel_types = HasKernelTypes(*i);
  for (const Family& family : Families()) {
    if (!has_kernel_types && !family.of_any_type) continue;
    ir::Instruction* simpler = family.rewrite(i);
    // The layout of a root or of a loop's state is part of its meaning. No rule may change it.
    if (simpler && simpler != i && simpler->shape() == i->shape()) return simpler;
  }
  return nullptr;
}

// Removes the instructions of a rule without a result. As dead code they would be a change, again
// and again.
void RemoveVain(ir::Computation* c, ir::Instructions::Iterator it, int64_t before) {
  std::vector<ir::Instruction*> made;
  while (it != c->instructions().begin() && (*std::prev(it))->id() > before) {
    made.push_back(*--it);
  }
  for (ir::Instruction* m : made) {
    if (m->users().empty() && !m->IsRoot()) c->Remove(m);
  }
}

Result<bool> SimplifyComputation(ir::Computation* c, const PassContext& context) {
  bool changed = false;
  int64_t looked_at = 0;
  for (auto it = c->instructions().begin(); it != c->instructions().end();) {
    if (++looked_at % 256 == 0) KILN_RETURN_IF_ERROR(CheckGrowth(*c, context));
    ir::Instruction* i = *it++;
    const int64_t before = c->parent()->NextId();
    ir::Instruction* simpler = Simpler(i);
    if (!simpler) {
      RemoveVain(c, std::prev(it), before);
      continue;
    }
    changed = true;
    c->ReplaceAllUses(i, simpler);
    if (i->users().empty()) RemoveDead(c, i);
    // Goes back to the new instructions, which may be simplified further.
    while (it != c->instructions().begin() && (*std::prev(it))->id() > before) --it;
  }
  return changed;
}

}  // namespace
}  // namespace simplify

Result<bool> SimplifyAlgebra(ir::Module& module, const PassContext& context) {
  bool changed = false;
  std::vector<ir::Computation*> computations;
  for (const auto& c : module.computations()) computations.push_back(c.get());
  for (ir::Computation* c : computations) {
    KILN_ASSIGN_OR_RETURN(bool simpler, simplify::SimplifyComputation(c, context));
    changed |= simpler;
  }
  // Rules may have added reducers, also in vain.
  if (module.computations().size() > computations.size()) {
    module.RemoveUnusedComputations();
    module.SortComputations();
  }
  return changed;
}

}  // namespace kiln::passes
