// Instruction fusion. Producers are fused into consumers if it saves memory traffic, from the last
// instruction to the first. Then kernels over the same space with a common operand become one with
// several outputs. `kernel` decides whether a group is one kernel; this pass decides whether it
// pays.

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/analysis/effects.h"
#include "ir/instruction_map.h"
#include "ir/visited.h"
#include "kernel/build.h"
#include "kernel/fusible.h"
#include "kernel/repeats.h"
#include "kernel/schedule/scheduler.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using kernel::FusionRole;

// How many instructions are looked at to see that two do not depend on each other.
constexpr int kDependenceBudget = 512;
constexpr int64_t kMaxOutputs = 8;
// How many simple ops one after the other, of those that other kernels compute, too, a kernel
// repeats. Without a limit each kernel along a chain of them would begin at its start.
constexpr int64_t kMostRepeated = 8;
// How many readers of an array are tried with each other.
constexpr size_t kMostSiblings = 64;

int64_t OperandBytes(const Instruction& i) {
  int64_t bytes = 0;
  for (const Instruction* operand : i.operands()) bytes += operand->shape().byte_size();
  return bytes;
}

// A set of instructions' ids, which are never given out twice.
class Ids {
 public:
  void Insert(int64_t id) {
    auto at = static_cast<size_t>(id);
    if (at >= is_in_.size()) is_in_.resize(2 * at + 1);
    is_in_[at] = true;
  }
  void Erase(int64_t id) {
    if (Contains(id)) is_in_[static_cast<size_t>(id)] = false;
  }
  bool Contains(int64_t id) const {
    auto at = static_cast<size_t>(id);
    return at < is_in_.size() && is_in_[at];
  }

 private:
  std::vector<bool> is_in_;
};

class Fuser {
 public:
  Fuser(Computation& c, const kernel::Scheduler& scheduler)
      : c_(c), scheduler_(scheduler), previous_(ir::PreviousEffects(c)) {}

  bool Run() {
    for (Instruction* i : c_.instructions()) NoteUpdates(i);
    FuseProducers(Candidates());
    FuseKeeping();
    FuseSiblings();
    // A consumer's producer may have become the last thing that it waits for.
    if (changed_) FuseKeeping();
    if (changed_) c_.Reorder(c_.PostOrder());
    return changed_;
  }

  // Fuses producers into consumers among some instructions, but nothing into dots.
  void RunAmong(const std::vector<Instruction*>& some) {
    for (Instruction* i : c_.instructions()) NoteUpdates(i);
    std::vector<Candidate> candidates;
    Ids among;
    for (Instruction* i : some) {
      candidates.push_back({i, i->id()});
      among.Insert(i->id());
    }
    for (const Instruction* i : some) {
      if (i->opcode() != Opcode::kDot) continue;
      for (const Instruction* factor : i->operands()) among.Erase(factor->id());
    }
    among_ = &among;
    FuseProducers(std::move(candidates));
    among_ = nullptr;
    if (changed_) c_.Reorder(c_.PostOrder());
  }

 private:
  // One that a phase began with: its id tells whether it is there still.
  struct Candidate {
    Instruction* instruction;
    int64_t id;
  };
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (Instruction* i : c_.PostOrder()) candidates.push_back({i, i->id()});
    return candidates;
  }

  // The simple ops of a producer, for each of its elements.
  static int64_t OpsOf(const Instruction& producer) {
    const int64_t elements = std::max<int64_t>(producer.shape().num_elements(), 1);
    const int64_t flops = (kernel::CostOf(producer).flops + elements - 1) / elements;
    // A hero's operands are what it has counted.
    if (kernel::RoleOf(producer) != FusionRole::kElemental) return flops;
    return std::max(flops, kernel::ArithmeticOf(producer));
  }

  int64_t RepeatedBehind(const Instruction& operand) const {
    const auto at = repeated_.find(operand.id());
    return at == repeated_.end() ? 0 : at->second;
  }

  // A producer that is fused into one of several users is computed several times. Worth it if its
  // work is light, together with that of other repeated producers that the kernel needs it for, and
  // its reads are hardly more than its result.
  bool MayRepeat(const Instruction& producer) {
    if (producer.IsRoot() || stored_.Contains(producer.id())) return false;
    if (IsFreeToRepeat(producer.opcode())) return true;
    if (kernel::RoleOf(producer) != FusionRole::kElemental ||
        kernel::CostOf(producer).transcendentals > 0) {
      return false;
    }
    const int64_t bytes = producer.shape().byte_size(), ops = OpsOf(producer);
    const auto others = static_cast<int64_t>(producer.users().size()) - 1;
    if (RepeatedBehind(producer) + ops > kMostRepeated) {
      stored_.Insert(producer.id());
      return false;
    }
    if (ops > kMostRepeated / 2 || ops * others > scheduler_.OpsWorthStoring(bytes) ||
        OperandBytes(producer) > 2 * bytes) {
      return false;
    }
    return std::all_of(producer.users().begin(), producer.users().end(), [&](Instruction* user) {
      return kernel::CanFuseProducer(producer, *user, scheduler_).fuse;
    });
  }

  // That the kernel at hand takes in the producer, or a copy.
  void NoteRepeats(const Instruction& producer, bool is_copy) {
    const int64_t ops = RepeatedBehind(producer) + (is_copy ? OpsOf(producer) : 0);
    repeated_.erase(producer.id());
    if (ops == 0) return;
    for (const Instruction* operand : producer.operands()) {
      if (kernel::AreFewBeside(operand->shape(), producer.shape())) continue;
      int64_t& most = repeated_[operand->id()];
      most = std::max(most, ops);
    }
  }

  // Whether `later` would read an array of the producer's operands after an in-place update of it,
  // which would then need a copy.
  bool ReadsAfterUpdate(const Instruction& producer, const Instruction& later) {
    for (const Instruction* x : producer.operands()) {
      if (!updated_.contains(x)) continue;
      for (const Instruction* user : x->users()) {
        if (user == &producer || user == &later) continue;
        int64_t updated = kernel::UpdatedOperand(*user, 0);
        if (updated >= 0 && user->operand(updated) == x && DependsOn(&later, user)) return true;
      }
    }
    return false;
  }

  // Producers without other readers come first. Their operands may be further producers, then
  // without other readers, too.
  Instruction* ProducerFor(Instruction* consumer) {
    for (bool alone : {true, false}) {
      for (Instruction* producer : consumer->operands()) {
        if (producer->opcode() == Opcode::kParameter) continue;
        if (among_ && !among_->Contains(producer->id())) continue;
        if (alone != (producer->users().size() == 1 && !producer->IsRoot())) continue;
        if (!alone && !MayRepeat(*producer) && !IsFreeToRepeat(producer->opcode())) continue;
        if (kernel::CanFuseProducer(*producer, *consumer, scheduler_).fuse &&
            !ReadsAfterUpdate(*producer, *consumer)) {
          return producer;
        }
      }
    }
    return nullptr;
  }

  void FuseProducers(std::vector<Candidate> order) {
    for (size_t i = order.size(); i-- > 0;) {
      if (gone_.Contains(order[i].id)) continue;
      Instruction* consumer = order[i].instruction;
      if (kernel::RoleOf(*consumer) == FusionRole::kNone || consumer->IsConstant()) continue;
      repeated_.clear();
      while (Instruction* producer = ProducerFor(consumer)) {
        bool last_use = producer->users().size() == 1 && !producer->IsRoot();
        gone_.Insert(consumer->id());
        if (last_use) gone_.Insert(producer->id());
        NoteRepeats(*producer, !last_use);
        consumer = MergeProducer(producer, consumer);
        Revive(consumer);
        changed_ = true;
      }
    }
  }

  static Instruction* KernelOf(Instruction* value) {
    return value->opcode() == Opcode::kGetTupleElement ? value->operand(0) : value;
  }

  // Consumers go into the kernels of producers with other readers, too. The consumer's other
  // operands must come before: with instructions numbered in an order of execution, the producer
  // must be the last of a consumer's operands. The kernel of both keeps its number, and the order
  // holds. What follows a hero becomes one before, so that it is taken as a whole or not at all.
  void FuseKeeping() {
    FuseKeeping(/*heroes=*/false);
    FuseKeeping(/*heroes=*/true);
  }
  void FuseKeeping(bool heroes) {
    std::vector<Candidate> order = Candidates();
    ir::InstructionMap<size_t> number(c_);
    for (size_t k = 0; k < order.size(); ++k) {
      const Instruction* i = order[k].instruction;
      bool is_there = i->opcode() == Opcode::kParameter || i->IsConstant();
      number[i] = is_there ? 0 : k + 1;
    }
    for (auto [consumer, id] : order) {
      if (gone_.Contains(id) || !IsKernel(*consumer) || consumer->IsRoot()) continue;
      Instruction* producer = nullptr;
      for (Instruction* operand : consumer->operands()) {
        Instruction* kernel = KernelOf(operand);
        if (!producer || number.at(kernel) > number.at(producer)) producer = kernel;
      }
      if (!producer || !IsKeeper(*producer) || producer->IsRoot()) continue;
      if (heroes == (kernel::RoleOf(*producer) == FusionRole::kElemental)) continue;
      if (!HasRoom(*producer, *consumer)) continue;
      if (!kernel::CanFuseKeeping(*producer, *consumer, scheduler_).fuse ||
          ReadsAfterUpdate(*producer, *consumer)) {
        continue;
      }
      size_t at = number.at(producer);
      Forget(producer);
      Forget(consumer);
      Instruction* kernel = MergeKeeping(producer, consumer);
      Revive(kernel);
      number[kernel] = at;
      // A kernel of one result has users that wait for others, too.
      for (Instruction* user : kernel->users()) {
        if (user->opcode() == Opcode::kGetTupleElement) number[user] = at;
      }
      changed_ = true;
    }
  }

  // Whether `a` needs `b`'s result, or an effect behind it; true also if the search takes too long.
  bool DependsOn(const Instruction* a, const Instruction* b) {
    work_ = {a};
    seen_.Clear();
    for (int looked = 0; !work_.empty();) {
      const Instruction* i = work_.back();
      work_.pop_back();
      if (i == b) return true;
      if (!seen_.Insert(i)) continue;
      if (++looked > kDependenceBudget) return true;
      work_.insert(work_.end(), i->operands().begin(), i->operands().end());
      if (auto effect = previous_.find(i); effect != previous_.end()) {
        work_.push_back(effect->second);
      }
    }
    return false;
  }

  // Whether one kernel may have the outputs of both.
  static bool HasRoom(const Instruction& a, const Instruction& b) {
    return a.shape().result_count() + b.shape().result_count() <= kMaxOutputs;
  }

  bool AreSiblings(const Instruction* a, const Instruction* b) {
    return a != b && HasRoom(*a, *b) && !a->IsRoot() && !b->IsRoot() &&
           kernel::CanFuseSiblings(*a, *b, scheduler_).fuse && !DependsOn(a, b) &&
           !DependsOn(b, a) && !ReadsAfterUpdate(*a, *b) && !ReadsAfterUpdate(*b, *a);
  }

  static bool IsKernel(const Instruction& i) {
    return i.opcode() == Opcode::kFusion || i.opcode() == Opcode::kReduce ||
           i.opcode() == Opcode::kReduceWindow ||
           (IsElementwise(i.opcode()) && kernel::RoleOf(i) == FusionRole::kElemental);
  }

  static bool IsKeeper(const Instruction& i) { return IsKernel(i) || i.opcode() == Opcode::kDot; }

  void FuseSiblings() {
    for (auto [shared, id] : Candidates()) {
      if (gone_.Contains(id)) continue;
      if (!shared->shape().is_array() || shared->shape().rank() == 0) continue;
      strangers_.clear();
      while (MergePair(shared)) {
      }
    }
  }

  bool MergePair(Instruction* shared) {
    std::vector<Instruction*> users;
    for (Instruction* user : shared->users()) {
      if (IsKernel(*user)) users.push_back(user);
      if (users.size() == kMostSiblings) break;
    }
    std::sort(users.begin(), users.end(),
              [](Instruction* a, Instruction* b) { return a->id() < b->id(); });
    for (size_t a = 0; a < users.size(); ++a) {
      for (size_t b = a + 1; b < users.size(); ++b) {
        // Kernels only grow: what does not fit now does not later.
        const std::pair pair(users[a]->id(), users[b]->id());
        if (strangers_.contains(pair)) continue;
        if (!AreSiblings(users[a], users[b])) {
          strangers_.insert(pair);
          continue;
        }
        Forget(users[a]);
        Forget(users[b]);
        Revive(MergeSiblings({users[a], users[b]}));
        changed_ = true;
        return true;
      }
    }
    return false;
  }

  // With its get-tuple-elements.
  void Forget(Instruction* kernel) {
    gone_.Insert(kernel->id());
    if (!kernel->shape().is_tuple()) return;
    for (const Instruction* user : kernel->users()) gone_.Insert(user->id());
  }
  // Fusions that grew in place still exist.
  void Revive(Instruction* made) {
    gone_.Erase(made->id());
    NoteUpdates(made);
    for (Instruction* user : made->users()) {
      gone_.Erase(user->id());
      NoteUpdates(user);
      if (user->opcode() != Opcode::kGetTupleElement) continue;
      for (Instruction* reader : user->users()) NoteUpdates(reader);
    }
  }
  void NoteUpdates(const Instruction* i) {
    int64_t updated = kernel::UpdatedOperand(*i, 0);
    if (updated >= 0) updated_.insert(i->operand(updated));
  }

  Computation& c_;
  const kernel::Scheduler& scheduler_;
  const std::unordered_map<const Instruction*, Instruction*> previous_;  // effects before effects
  Ids gone_;  // of those that a phase began with
  // Readers of the array at hand that are no siblings, by their ids.
  std::set<std::pair<int64_t, int64_t>> strangers_;
  const Ids* among_ = nullptr;  // the only producers; null: all
  // Of the kernel that producers are fused into: by the id of an operand, how many repeated ops one
  // after the other it is read for.
  std::unordered_map<int64_t, int64_t> repeated_;
  Ids stored_;  // what a kernel reads behind as many as it repeats: others read it, too
  // Arrays that some reader updates in place: few, where arrays may have very many readers.
  std::unordered_set<const Instruction*> updated_;
  // Of the search for a dependence.
  ir::Visited seen_;
  std::vector<const Instruction*> work_;
  bool changed_ = false;
};

// Whether fusion has spoilt a dot as a gemm: elements of its operands have no strides, like rows
// that were shortened and then concatenated.
bool IsSpoiltGemm(const Instruction& fusion, const kernel::Kernel& kernel,
                  const kernel::Scheduler& scheduler) {
  const auto& members = fusion.called(0)->instructions();
  auto dot = std::ranges::find(members, Opcode::kDot, [](const auto& m) { return m->opcode(); });
  return dot != members.end() && scheduler.SpoilsGemm(kernel, **dot);
}

// The rules above look at two instructions at a time. The kernel of a whole fusion is built here,
// once, for all later steps. A fusion without a kernel, or with a bad one, is undone: each op is by
// itself. Returns the ops of spoilt gemms. Fusions with ids below `first` are known.
std::vector<Instruction*> CommitToKernels(Computation& c, int64_t first,
                                          const kernel::Scheduler& scheduler,
                                          kernel::FusionAnalysis& analysis) {
  std::vector<Instruction*> fusions, undone;
  for (Instruction* i : c.instructions()) {
    if (i->opcode() == Opcode::kFusion && i->id() >= first) fusions.push_back(i);
  }
  for (Instruction* fusion : fusions) {
    const Result<kernel::Kernel>& kernel = analysis.KernelOf(*fusion);
    bool spoilt = kernel.ok() && IsSpoiltGemm(*fusion, *kernel, scheduler);
    if (kernel.ok() && !spoilt) continue;
    const std::vector<Instruction*> ops = Unfuse(fusion);
    if (spoilt) undone.insert(undone.end(), ops.begin(), ops.end());
  }
  return undone;
}

}  // namespace

void PartFusions(ir::Module& module) {
  std::vector<Computation*> all;
  for (const auto& c : module.computations()) all.push_back(c.get());
  std::unordered_set<const Computation*> seen;
  for (Computation* c : all) {
    for (Instruction* i : c->instructions()) {
      if (i->opcode() != Opcode::kFusion || seen.insert(i->called(0)).second) continue;
      i->set_called(0, module.CloneComputation(*i->called(0), i->called(0)->name()));
    }
  }
}

bool FuseIn(Computation& c, const kernel::Scheduler& scheduler, kernel::FusionAnalysis& analysis) {
  const bool changed = Fuser(c, scheduler).Run();
  // What reads a spoilt gemm is fused with it again, and what it reads is not.
  const std::vector<Instruction*> undone = CommitToKernels(c, 0, scheduler, analysis);
  if (undone.empty()) return changed;
  const int64_t first = undone.back()->id() + 1;
  Fuser(c, scheduler).RunAmong(undone);
  CommitToKernels(c, first, scheduler, analysis);
  return changed;
}

Result<bool> Fuse(ir::Module& module, const PassContext& context) {
  bool changed = false;
  std::vector<Computation*> programs = ProgramComputations(module);
  PartFusions(module);
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  for (Computation* c : programs) {
    KILN_RETURN_IF_ERROR(context.interrupt.Check());
    changed |= FuseIn(*c, *scheduler, *context.fusions);
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
