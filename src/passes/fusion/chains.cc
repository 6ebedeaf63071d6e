// A matrix product and the kernel that goes over the rows of its result become one, a chain:
//
//   d = dot(x, w); y = softmax(d)
//
// A block of rows is made, and what follows is done with it while it is in the cache. What a chain
// is, and where it pays, is kernel/chain.h's and its schedule's to say.

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "kernel/build.h"
#include "kernel/fusible.h"
#include "kernel/schedule/cpu/chain.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using kernel::FusionRole;

// How many instructions are looked at to see that the second kernel needs the first one's results
// only where it reads them itself.
constexpr size_t kDependenceBudget = 512;

Instruction* KernelOf(Instruction* value) {
  return value->opcode() == Opcode::kGetTupleElement ? value->operand(0) : value;
}

bool IsUsedByOthers(const Instruction& product, int64_t result, const Instruction& rows) {
  auto others = [&](const Instruction& value) {
    return value.IsRoot() || std::ranges::any_of(value.users(), [&](const Instruction* user) {
             return user != &rows;
           });
  };
  if (!product.shape().is_tuple()) return others(product);
  return std::ranges::any_of(product.users(), [&](const Instruction* user) {
    return user->opcode() != Opcode::kGetTupleElement ||
           (user->attributes().Int(Attr::kIndex) == result && others(*user));
  });
}

class ChainFuser {
 public:
  ChainFuser(Computation& c, const target::Cpu& cpu) : c_(c), cpu_(cpu) {}

  bool Run() {
    bool changed = false;
    std::unordered_set<const Instruction*> gone;
    for (Instruction* rows : c_.PostOrder()) {
      // What a kernel has made is taken apart anew.
      if (gone.contains(rows)) continue;
      FusionRole role = kernel::RoleOf(*rows);
      if (role != FusionRole::kRows && role != FusionRole::kReduce) continue;
      if (rows->IsRoot() && rows->shape().is_tuple()) continue;
      Instruction* product = ProductFor(*rows);
      if (!product) continue;
      gone.insert(product);
      gone.insert(product->users().begin(), product->users().end());
      if (rows->shape().is_tuple()) gone.insert(rows->users().begin(), rows->users().end());
      MergeChain(product, rows);
      changed = true;
    }
    if (changed) c_.Reorder(c_.PostOrder());
    return changed;
  }

 private:
  Instruction* ProductFor(const Instruction& rows) const {
    for (Instruction* operand : rows.operands()) {
      Instruction* product = KernelOf(operand);
      if (kernel::RoleOf(*product) != FusionRole::kDot || product->IsRoot()) continue;
      if (product->opcode() != Opcode::kDot && product->opcode() != Opcode::kFusion) continue;
      if (IsOneKernel(*product, rows) && !NeedsOtherwise(rows, product)) return product;
    }
    return nullptr;
  }

  bool IsOneKernel(const Instruction& product, const Instruction& rows) const {
    auto chain = kernel::BuildChain(
        product, rows, [&](int64_t result) { return IsUsedByOthers(product, result, rows); });
    if (!chain.ok()) return false;
    kernel::Group group = kernel::GroupOf(product);
    auto is_constant = [&](int param) {
      auto p = static_cast<size_t>(param);
      if (product.opcode() == Opcode::kFusion) return product.operand(param)->IsConstant();
      return p < group.inputs.size() && group.inputs[p]->IsConstant();
    };
    return kernel::ScheduleChain(*chain, cpu_, is_constant).has_value();
  }

  // Whether something else that the second kernel reads is made with the product's results; true as
  // well where that would take too long to see.
  static bool NeedsOtherwise(const Instruction& rows, const Instruction* product) {
    std::vector<const Instruction*> work;
    for (Instruction* operand : rows.operands()) {
      if (KernelOf(operand) != product) work.push_back(operand);
    }
    std::unordered_set<const Instruction*> seen;
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (i == product) return true;
      if (!seen.insert(i).second) continue;
      if (seen.size() > kDependenceBudget) return true;
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
    return false;
  }

  Computation& c_;
  const target::Cpu& cpu_;
};

}  // namespace

Result<bool> FuseChains(ir::Module& module, const PassContext& context) {
  static const target::Target reference = target::Reference();
  const target::Target& target = context.target ? *context.target : reference;
  if (target.kind == target::Kind::kGpu) return false;
  bool changed = false;
  for (Computation* c : ProgramComputations(module)) {
    changed |= ChainFuser(*c, target.cpu).Run();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
