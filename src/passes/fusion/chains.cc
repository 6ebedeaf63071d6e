// A gemm and the kernel over the rows of its result become one, a chain:
//
//   d = dot(x, w); y = softmax(d)
//
// A block of rows is computed, and consumed while it is in the cache. kernel/chain.h defines
// chains; their schedules decide whether they pay.
//
// A reduction of the whole gemm goes by rows, too, if its order is free:
//
//   reduce(d, {0, 1}) = reduce(reduce(d, {1}), {0})

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/strings.h"
#include "ir/analysis/frozen.h"
#include "kernel/build.h"
#include "kernel/combiner.h"
#include "kernel/fusible.h"
#include "kernel/schedule/scheduler.h"
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

bool IsUsedByOthers(const Instruction& gemm, int64_t result, const Instruction& rows) {
  auto others = [&](const Instruction& value) {
    return value.IsRoot() || std::ranges::any_of(value.users(), [&](const Instruction* user) {
             return user != &rows;
           });
  };
  if (!gemm.shape().is_tuple()) return others(gemm);
  return std::ranges::any_of(gemm.users(), [&](const Instruction* user) {
    return user->opcode() != Opcode::kGetTupleElement ||
           (user->attributes().Int(Attr::kIndex) == result && others(*user));
  });
}

class ChainFuser {
 public:
  ChainFuser(Computation& c, const kernel::Scheduler& scheduler, kernel::FusionAnalysis& analysis)
      : c_(c), scheduler_(scheduler), analysis_(analysis) {}

  bool Run() {
    bool changed = false;
    std::unordered_set<const Instruction*> gone;
    for (Instruction* rows : c_.PostOrder()) {
      // Kernels taken apart are gone.
      if (gone.contains(rows)) continue;
      FusionRole role = kernel::RoleOf(*rows);
      if (role != FusionRole::kRows && role != FusionRole::kReduce) continue;
      if (rows->IsRoot() && rows->shape().is_tuple()) continue;
      Instruction* gemm = GemmFor(*rows);
      if (!gemm && role == FusionRole::kReduce) {
        Instruction* parts = SplitByRows(rows);
        if (!parts) continue;
        gone.insert(rows);
        rows = parts;
        gemm = GemmFor(*rows);
      }
      if (!gemm) continue;
      gone.insert(gemm);
      gone.insert(gemm->users().begin(), gemm->users().end());
      if (rows->shape().is_tuple()) gone.insert(rows->users().begin(), rows->users().end());
      analysis_.KeepSchedule(*MergeChain(gemm, rows), *std::move(schedule_), std::move(constants_));
      changed = true;
    }
    if (changed) c_.Reorder(c_.PostOrder());
    return changed;
  }
  // Whether attempts have left computations without callers.
  bool leaves_computations() const { return leaves_computations_; }

 private:
  // With its schedule.
  Instruction* GemmFor(const Instruction& rows) {
    for (Instruction* operand : rows.operands()) {
      Instruction* gemm = KernelOf(operand);
      if (kernel::RoleOf(*gemm) != FusionRole::kDot || gemm->IsRoot()) continue;
      if (gemm->opcode() != Opcode::kDot && gemm->opcode() != Opcode::kFusion) continue;
      if (IsOneKernel(*gemm, rows) && !NeedsOtherwise(rows, gemm)) return gemm;
    }
    return nullptr;
  }

  // The only reduction of a fusion, if it is one over its operand's last dimension and others that
  // may be taken in any order without more roundings.
  static Instruction* WholeReduction(const Computation& fused) {
    Instruction* hero = nullptr;
    for (Instruction* member : fused.instructions()) {
      if (member->opcode() != Opcode::kReduce) continue;
      if (hero || !member->shape().is_array()) return nullptr;
      hero = member;
    }
    if (!hero || hero->dimensions().size() < 2 || IsHalf(hero->shape().type())) return nullptr;
    const int64_t last = hero->operand(0)->shape().rank() - 1;
    if (std::ranges::count(hero->dimensions(), last) == 0) return nullptr;
    auto combiner = kernel::CombinerOf(*hero);
    if (!combiner.ok()) return nullptr;
    switch (combiner->kind) {
      case kernel::Combiner::Kind::kSum:
      case kernel::Combiner::Kind::kMax:
      case kernel::Combiner::Kind::kMin:
      case kernel::Combiner::Kind::kAnd:
      case kernel::Combiner::Kind::kOr:
        return hero;
      case kernel::Combiner::Kind::kGeneral:
      case kernel::Combiner::Kind::kProduct:
      case kernel::Combiner::Kind::kXor:
        break;
    }
    return nullptr;
  }

  static void Prune(Computation& fused) {
    std::vector<Instruction*> members;
    for (Instruction* member : fused.instructions()) members.push_back(member);
    for (size_t i = members.size(); i-- > 0;) {
      Instruction* m = members[i];
      bool needed = m->IsRoot() || !m->users().empty() || m->opcode() == Opcode::kParameter;
      if (!needed) fused.Remove(m);
    }
  }

  // A fusion with only the operands it needs, in the place of one with more.
  static Instruction* Tidied(Instruction* fusion) {
    std::vector<Instruction*> members = Unfuse(fusion);
    return MergeGroup(members, {members.back()});
  }

  // The reductions of a gemm's rows, where those and the gemm are one kernel; the reduction of all
  // then takes theirs. Null, and nothing done, where that is not so.
  Instruction* SplitByRows(Instruction* whole) {
    bool is_whole = whole->opcode() == Opcode::kFusion && whole->shape().is_array() &&
                    WholeReduction(*whole->called(0));
    if (!is_whole) return nullptr;
    bool has_gemm = std::ranges::any_of(whole->operands(), [](Instruction* operand) {
      return kernel::RoleOf(*KernelOf(operand)) == FusionRole::kDot;
    });
    if (!has_gemm) return nullptr;
    std::vector<Instruction*> operands(whole->operands().begin(), whole->operands().end());
    auto fusion_of = [&](Computation* fused) {
      return c_.Create({.opcode = Opcode::kFusion,
                        .operands = operands,
                        .attributes = {{Attr::kFusionKind, "kInput"}},
                        .called = {fused},
                        .shape = fused->root()->shape()},
                       whole);
    };
    ir::Module& module = *c_.parent();
    leaves_computations_ = true;
    Computation* by_rows = module.CloneComputation(*whole->called(0), whole->called(0)->name());
    Instruction* hero = WholeReduction(*by_rows);
    const int64_t last = hero->operand(0)->shape().rank() - 1;
    const ElementType type = hero->shape().type();
    Instruction* init = hero->operand(1);
    if (kernel::CombinerOf(*hero)->kind == kernel::Combiner::Kind::kSum) {
      // Of all zeros the one that changes nothing.
      auto zero = Literal::ScalarOf(type, IsFloat(type) ? -0.0 : 0.0);
      init = by_rows->Create({.opcode = Opcode::kConstant,
                              .shape = Shape::Scalar(type),
                              .literal = std::make_shared<const Literal>(std::move(zero))},
                             hero);
    }
    std::vector<int64_t> kept = hero->operand(0)->shape().dims();
    kept.pop_back();
    by_rows->set_root(by_rows->Create({.opcode = Opcode::kReduce,
                                       .operands = {hero->operand(0), init},
                                       .attributes = {{Attr::kDimensions, Ints{last}}},
                                       .called = {hero->called(0)},
                                       .shape = Shape(type, kept)}));
    Prune(*by_rows);
    Instruction* rows = Tidied(fusion_of(by_rows));
    if (!GemmFor(*rows)) {
      c_.Remove(rows);
      return nullptr;
    }
    Computation* of_rows = module.CloneComputation(*whole->called(0), whole->called(0)->name());
    hero = WholeReduction(*of_rows);
    auto number = static_cast<int64_t>(operands.size());
    operands.push_back(rows);
    Instruction* parts = of_rows->Create({.opcode = Opcode::kParameter,
                                          .attributes = {{Attr::kParameterNumber, number}},
                                          .shape = rows->shape(),
                                          .name = Cat("param_", number)});
    Ints rest;
    for (int64_t d : hero->dimensions()) {
      if (d != last) rest.push_back(d);
    }
    of_rows->ReplaceAllUses(hero, of_rows->Create({.opcode = Opcode::kReduce,
                                                   .operands = {parts, hero->operand(1)},
                                                   .attributes = {{Attr::kDimensions, rest}},
                                                   .called = {hero->called(0)},
                                                   .shape = hero->shape()},
                                                  hero));
    Prune(*of_rows);
    c_.ReplaceAllUses(whole, Tidied(fusion_of(of_rows)));
    c_.Remove(whole);
    return rows;
  }

  bool IsOneKernel(const Instruction& gemm, const Instruction& rows) {
    auto chain = kernel::BuildChain(
        gemm, rows, [&](int64_t result) { return IsUsedByOthers(gemm, result, rows); }, analysis_);
    if (!chain.ok()) return false;
    const bool is_fusion = gemm.opcode() == Opcode::kFusion;
    const std::vector<const Instruction*> inputs = kernel::GroupOf(gemm).inputs;
    constants_.clear();
    for (size_t p = 0; p < inputs.size(); ++p) {
      const Instruction* input = is_fusion ? gemm.operand(static_cast<int64_t>(p)) : inputs[p];
      constants_.push_back(ir::IsFixed(*input));
    }
    schedule_ = scheduler_.ScheduleChain(*chain, [&](kernel::ParamId param) {
      return param.index() < constants_.size() && constants_[param.index()];
    });
    return schedule_.has_value();
  }

  // Whether another operand of the second kernel depends on the gemm; true also if the search takes
  // too long.
  static bool NeedsOtherwise(const Instruction& rows, const Instruction* gemm) {
    std::vector<const Instruction*> work;
    for (Instruction* operand : rows.operands()) {
      if (KernelOf(operand) != gemm) work.push_back(operand);
    }
    std::unordered_set<const Instruction*> seen;
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (i == gemm) return true;
      if (!seen.insert(i).second) continue;
      if (seen.size() > kDependenceBudget) return true;
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
    return false;
  }

  Computation& c_;
  const kernel::Scheduler& scheduler_;
  kernel::FusionAnalysis& analysis_;
  // Of the last examined pair: the schedule, and whether each operand of the gemm is a constant.
  std::optional<kernel::CpuChainSchedule> schedule_;
  std::vector<bool> constants_;
  bool leaves_computations_ = false;
};

}  // namespace

Result<bool> FuseChains(ir::Module& module, const PassContext& context) {
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  if (!scheduler->has_chains()) return false;
  bool changed = false, tried = false;
  for (Computation* c : ProgramComputations(module)) {
    ChainFuser fuser(*c, *scheduler, *context.fusions);
    changed |= fuser.Run();
    tried |= fuser.leaves_computations();
  }
  if (changed || tried) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
