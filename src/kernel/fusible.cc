#include "kernel/fusible.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"
#include "ir/analysis/alias.h"
#include "ir/host_call.h"
#include "kernel/bundle.h"
#include "kernel/chain.h"
#include "kernel/fusion_analysis.h"
#include "kernel/prologue.h"
#include "kernel/repeats.h"
#include "kernel/schedule/scheduler.h"
#include "kernel/window.h"

namespace kiln::kernel {
namespace {

using ir::Computation;
using ir::Instruction;

// The limit of ops in a kernel, beyond which compile time outweighs the saved traffic.
constexpr int64_t kMaxFusedOps = 96;
// The same where it is all elementwise, in units of a cheap op: straight code in one loop. Most ops
// of a chain of functions are more code than that.
constexpr int64_t kMaxLoopCode = 512;
constexpr int64_t kFunctionCode = 32;
constexpr int64_t kMaxKernelParams = 48;
// The number of cheap ops per element cheaper to recompute than to store and load.
constexpr int64_t kMaxRepeatedOps = 16;

FusionDecision No(std::string why) { return {false, std::move(why)}; }

int64_t OpCount(const Instruction& i) {
  return i.opcode() == Opcode::kFusion ? i.called(0)->instruction_count() : 1;
}

bool HasSeveralOutputs(const Instruction& i) { return i.shape().is_tuple(); }

bool IsExpensive(const Instruction& i) {
  if (i.opcode() != Opcode::kFusion) return kiln::IsExpensive(i.opcode());
  return std::ranges::any_of(i.called(0)->instructions(),
                             [](const Instruction* m) { return IsExpensive(*m); });
}

// Whether the computation may have one: a test without a look at its members.
bool MayHoldHero(const Computation& c) {
  static const std::vector<Opcode> heroes = [] {
    std::vector<Opcode> opcodes;
    for (int k = 0; k < kOpcodeCount; ++k) {
      if (IsHero(static_cast<Opcode>(k))) opcodes.push_back(static_cast<Opcode>(k));
    }
    return opcodes;
  }();
  return std::ranges::any_of(heroes, [&](Opcode hero) { return c.MayHold(hero); });
}

// The one reduction, dot, scatter or sort of an instruction or fusion; several reduces: the first;
// or null.
const Instruction* HeroOf(const Instruction& i) {
  if (IsHero(i.opcode())) return &i;
  if (i.opcode() != Opcode::kFusion) return nullptr;
  const Computation& fused = *i.called(0);
  if (!MayHoldHero(fused)) return nullptr;
  for (Instruction* m : fused.instructions()) {
    if (IsHero(m->opcode())) return m;
  }
  return nullptr;
}

// Whether both together are more code than one kernel should be.
bool IsTooMuch(const Instruction& a, const Instruction& b) {
  if (OpCount(a) + OpCount(b) <= kMaxFusedOps) return false;
  const bool is_loop = !HeroOf(a) && !HeroOf(b);
  int64_t ops = 0, code = 0;
  auto add = [&](const Instruction& i) {
    if (!IsCode(i.opcode())) return;
    ops += 1;
    code += kiln::IsExpensive(i.opcode()) ? kFunctionCode : 1;
  };
  for (const Instruction* i : {&a, &b}) {
    if (i->opcode() == Opcode::kFusion) {
      for (const Instruction* m : i->called(0)->instructions()) add(*m);
    } else {
      add(*i);
    }
  }
  return ops > kMaxFusedOps && !(is_loop && code <= kMaxLoopCode);
}

const Instruction& RootOf(const Instruction& i) {
  return i.opcode() == Opcode::kFusion ? *i.called(0)->root() : i;
}

// The dimensions that the kernel's outer loops run over.
std::vector<Dimension> IterationOf(const Instruction& i) {
  const Instruction* of = &i;
  if (UpdatedOperand(i, 0) >= 0 && RootOf(i).opcode() == Opcode::kDynamicUpdateSlice) {
    return RootOf(i).operand(1)->shape().dimensions();
  }
  if (const Instruction* hero = HeroOf(i)) {
    of = hero;
  } else if (i.opcode() == Opcode::kFusion) {
    of = i.called(0)->root();
    if (of->opcode() == Opcode::kTuple) of = of->operand(0);
  }
  const Shape& s = of->shape();
  return s.is_tuple() ? s.elements()[0].dimensions() : s.dimensions();
}

// Windows that see neither padding nor holes.
bool IsPatchesInside(const Instruction& i) {
  return i.opcode() == Opcode::kPatches &&
         std::ranges::all_of(i.attributes().Window(Attr::kWindow), [](const WindowDimension& w) {
           return w.low <= 0 && w.high <= 0 && w.base_dilation == 1;
         });
}

// Ops that a gemm can read through: they only say where an element is.
bool IsView(const Instruction& i) {
  if (i.opcode() == Opcode::kFusion) {
    const auto& members = i.called(0)->instructions();
    return std::all_of(members.begin(), members.end(), [](const auto& m) {
      return m->opcode() == Opcode::kParameter || IsView(*m);
    });
  }
  return kiln::IsView(i.opcode()) || IsPatchesInside(i);
}

// A reduce of several operands hands its results out by get-tuple-element, outside the kernel.
bool IsOneReduceOfSeveral(const Instruction& i) {
  const Instruction* root = i.opcode() == Opcode::kFusion ? i.called(0)->root() : &i;
  return root->opcode() == Opcode::kReduce && root->shape().is_tuple();
}

// Calls f(parameter) for every parameter of fusion `consumer` that is `producer`.
template <typename F>
void ForEachUse(const Instruction& producer, const Instruction& consumer, F&& f) {
  for (int64_t i = 0; i < consumer.operand_count(); ++i) {
    if (consumer.operand(i) == &producer) f(consumer.called(0)->parameter(i));
  }
}

// Whether a value of the fused computation is needed for a reduce or dot in it.
bool FeedsHero(const Instruction* value) {
  std::vector<const Instruction*> work = {value};
  std::unordered_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    if (IsHero(i->opcode())) return true;
    for (const Instruction* user : i->users()) work.push_back(user);
  }
  return false;
}

// Whether all that is made from `value` keeps its elements one to one, so that it can be computed
// where a reduction's result is. What meets its own transpose needs two elements at once.
bool OnlyElementwiseFrom(const Instruction* value) {
  std::vector<const Instruction*> work = {value};
  // The last ops that moved the elements, on any path to an instruction.
  std::unordered_map<const Instruction*, const Instruction*> moved = {{value, value}};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* user : i->users()) {
      if (user->opcode() == Opcode::kTuple) continue;
      bool moves = user->opcode() == Opcode::kReshape || user->opcode() == Opcode::kTranspose;
      bool keeps = IsElementwise(user->opcode()) && user->shape().SameDimensions(i->shape());
      if (!moves && !keeps) return false;
      const Instruction* by = moves ? user : moved.at(i);
      auto [at, fresh] = moved.emplace(user, by);
      if (!fresh && at->second != by) return false;
      if (fresh) work.push_back(user);
    }
  }
  return true;
}

// Whether all that is made from `value`, but for `end`, has its elements where `value` has them.
bool KeepsIndex(const Instruction* value, const Instruction* end) {
  std::vector<const Instruction*> work = {value};
  std::unordered_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    for (const Instruction* user : i->users()) {
      if (user == end) continue;
      if (!IsElementwise(user->opcode()) || !user->shape().SameDimensions(i->shape())) return false;
      work.push_back(user);
    }
  }
  return true;
}

// The outer operand for an operand of a member of `i`, which may be a fusion.
const Instruction* Outside(const Instruction& i, const Instruction* operand) {
  if (i.opcode() != Opcode::kFusion || operand->opcode() != Opcode::kParameter) return operand;
  return i.operand(operand->attributes().Int(Attr::kParameterNumber));
}

// Whether two starts of slices are one value: the operands of readers of one array.
bool IsSameStart(const Instruction* a, const Instruction* b) {
  if (a == b) return true;
  return a->IsConstant() && b->IsConstant() && a->literal().AsInt(0) == b->literal().AsInt(0);
}

// Whether `slice`, a member of `reader`, cuts out of an array of the size of x what the root of
// `update`, a dynamic-update-slice, writes.
bool CutsUpdated(const Instruction& reader, const Instruction& slice, const Instruction& update) {
  const Instruction& root = RootOf(update);
  if (!slice.shape().SameDimensions(root.operand(1)->shape())) return false;
  for (int64_t d = 0; d < root.shape().rank(); ++d) {
    const Instruction* start = Outside(update, root.operand(d + 2));
    if (slice.opcode() == Opcode::kDynamicSlice) {
      if (!IsSameStart(Outside(reader, slice.operand(d + 1)), start)) return false;
    } else if (slice.opcode() == Opcode::kSlice) {
      const SliceDimension& cut = slice.attributes().Slices(Attr::kSlice)[static_cast<size_t>(d)];
      if (cut.stride != 1 || !start->IsConstant() || start->literal().AsInt(0) != cut.start) {
        return false;
      }
    } else {
      return false;
    }
  }
  return true;
}

// Whether `reader` reads of array x only what `update`, a dynamic-update-slice of x, writes, and
// element by element.
bool ReadsOnlyUpdated(const Instruction& reader, const Instruction* x, const Instruction& update) {
  if (reader.opcode() != Opcode::kFusion) return CutsUpdated(reader, reader, update);
  for (int64_t o = 0; o < reader.operand_count(); ++o) {
    if (reader.operand(o) != x) continue;
    for (const Instruction* user : reader.called(0)->parameter(o)->users()) {
      if (!CutsUpdated(reader, *user, update) || !OnlyElementwiseFrom(user)) return false;
    }
  }
  return true;
}

// Whether nearly all of an array is updated: a kernel that writes all of it moves no more than one
// for the update and one that puts it in place.
bool IsNearlyWhole(const Instruction& update) {
  const Instruction& root = RootOf(update);
  return 3 * root.operand(1)->shape().num_elements() >= 2 * root.shape().num_elements();
}

// An update in place leaves most of an array alone; in a kernel of another kind all of it would be
// written.
FusionDecision WithUpdate(const Instruction& producer, const Instruction& consumer) {
  if (int64_t u = UpdatedOperand(producer, 0); u >= 0) {
    const Instruction* x = producer.operand(u);
    // Live arrays are copied anyway.
    if (x->opcode() != Opcode::kParameter && !x->IsConstant()) {
      return No("the producer updates an array in place");
    }
  }
  bool scatters = RoleOf(consumer) == FusionRole::kScatter;
  const int64_t outputs = scatters ? consumer.shape().result_count() : 1;
  for (int64_t output = 0; output < outputs; ++output) {
    int64_t u = UpdatedOperand(consumer, output);
    if (u < 0) continue;
    const Instruction* x = consumer.operand(u);
    if (x == &producer) return No("the consumer updates the producer's array in place");
    for (const Instruction* operand : producer.operands()) {
      if (operand != x) continue;
      if (scatters || !(ReadsOnlyUpdated(producer, x, consumer) || IsNearlyWhole(consumer))) {
        return No("the producer reads what the consumer updates in place");
      }
    }
  }
  return {true, ""};
}

FusionDecision IntoHero(const Instruction& producer, const Instruction& consumer, FusionRole role,
                        const Scheduler& scheduler) {
  if (consumer.opcode() != Opcode::kFusion) {
    if (role == FusionRole::kDot && !IsView(producer) &&
        !MayBePrologue(producer, consumer, scheduler)) {
      return No("a dot reads its operands from memory");
    }
    return {true, ""};
  }
  FusionDecision decision{true, ""};
  ForEachUse(producer, consumer, [&](const Instruction* p) {
    if (role == FusionRole::kDot && FeedsHero(p) && !IsView(producer) &&
        !MayBePrologue(producer, consumer, scheduler)) {
      decision = No("a dot reads its operands from memory");
    }
  });
  return decision;
}

// Whether what follows a dot, in the kernel of the producer and the consumer, is too much for it.
// `kept` results of the producer are stored, too.
bool IsCrowded(const Instruction& producer, const Instruction& consumer, int64_t kept,
               const Scheduler& scheduler) {
  const Instruction* hero = HeroOf(producer);
  if (!hero || OpRoleOf(hero->opcode()) != OpRole::kDot) return false;
  const Shape& shape = hero->shape();
  // The dot and, in a fusion, the members that it is made from.
  std::unordered_set<const Instruction*> before = {hero};
  std::vector<const Instruction*> work;
  if (hero != &producer) work.push_back(hero);
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* operand : i->operands()) {
      if (before.insert(operand).second) work.push_back(operand);
    }
  }
  int64_t heavy = 0;
  std::unordered_set<const Instruction*> read;
  auto add = [&](const Instruction& i) {
    if (i.opcode() != Opcode::kFusion) {
      if (before.contains(&i)) return;
      heavy += IsExpensive(i);
      read.insert(i.operands().begin(), i.operands().end());
      return;
    }
    for (const Instruction* m : i.called(0)->instructions()) {
      if (before.contains(m)) continue;
      heavy += IsExpensive(*m);
      if (m->opcode() == Opcode::kParameter) read.insert(Outside(i, m));
    }
  };
  add(producer);
  add(consumer);
  int64_t arrays = consumer.shape().result_count() + kept;
  for (const Instruction* value : read) {
    const bool is_made = value == &producer || (value->opcode() == Opcode::kGetTupleElement &&
                                                value->operand(0) == &producer);
    arrays += !is_made && value->shape().is_array() &&
              value->shape().num_elements() == shape.num_elements();
  }
  return scheduler.CrowdsGemm(arrays, shape.byte_size(), heavy);
}

// An epilogue: the consumer of a reduce or dot.
FusionDecision AfterHero(const Instruction& producer, const Instruction& consumer,
                         const Scheduler& scheduler) {
  bool one_to_one = true;
  if (consumer.opcode() == Opcode::kFusion) {
    ForEachUse(producer, consumer,
               [&](const Instruction* p) { one_to_one = one_to_one && OnlyElementwiseFrom(p); });
  } else if (IsElementwise(consumer.opcode())) {
    one_to_one = consumer.shape().SameDimensions(producer.shape());
  } else {
    one_to_one = consumer.opcode() == Opcode::kReshape || consumer.opcode() == Opcode::kTranspose;
  }
  if (!one_to_one) return No("the consumer does not keep the reduction's elements one to one");
  if (consumer.shape().is_tuple()) return No("the consumer has several outputs");
  if (IsCrowded(producer, consumer, 0, scheduler)) {
    return No("the consumer moves and does too much for the dot's kernel");
  }
  return {true, ""};
}

// Whether a reduction's result is spread over what was reduced, or reduced again.
bool UsesReductionAgain(const Computation& fused) {
  if (!fused.MayHold(Opcode::kReduce)) return false;
  std::unordered_set<const Instruction*> reduced;
  for (Instruction* m : fused.instructions()) {
    const bool after =
        !reduced.empty() && std::ranges::any_of(m->operands(), [&](const Instruction* operand) {
          return reduced.contains(operand);
        });
    if (after && (m->opcode() == Opcode::kBroadcast || m->opcode() == Opcode::kReduce)) return true;
    if ((after || m->opcode() == Opcode::kReduce) && !m->users().empty()) reduced.insert(m);
  }
  return false;
}

// Whether a fusion of that root has results, each of which is an array that it makes: a tuple that
// it hands on is none.
bool GivesArrays(const Instruction& root) {
  if (root.opcode() != Opcode::kTuple) {
    return root.shape().is_array() || OpRoleOf(root.opcode()) != OpRole::kNone;
  }
  return root.operand_count() > 0 &&
         std::ranges::all_of(root.operands(),
                             [](const Instruction* result) { return result->shape().is_array(); });
}

}  // namespace

FusionRole RoleOf(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kFusion) {
    if (IsBundle(instruction)) return FusionRole::kBundle;
    if (IsChain(instruction)) return FusionRole::kChain;
    if (!GivesArrays(*instruction.called(0)->root())) return FusionRole::kNone;
    const Instruction* hero = HeroOf(instruction);
    if (!hero) return FusionRole::kElemental;
    return UsesReductionAgain(*instruction.called(0)) ? FusionRole::kRows : RoleOf(*hero);
  }
  switch (OpRoleOf(instruction.opcode())) {
    case OpRole::kNone:
      return FusionRole::kNone;
    case OpRole::kElemental:
      return IsElemental(instruction) ? FusionRole::kElemental : FusionRole::kNone;
    case OpRole::kReduce:
      return FusionRole::kReduce;
    case OpRole::kDot:
      return FusionRole::kDot;
    case OpRole::kWindow:
      return FusionRole::kWindow;
    case OpRole::kScatter:
      return FusionRole::kScatter;
    case OpRole::kSort:
      return FusionRole::kSort;
  }
  return FusionRole::kNone;
}

namespace {

// All but how much code it would be.
FusionDecision DecideByRoles(const Instruction& producer, const Instruction& consumer,
                             const Scheduler& scheduler) {
  FusionRole from = RoleOf(producer), to = RoleOf(consumer);
  if (from == FusionRole::kNone) return No("the producer is no part of a kernel");
  if (to == FusionRole::kNone) return No("the consumer is no part of a kernel");
  if (from == FusionRole::kRows || to == FusionRole::kRows)
    return No("a row kernel stays as it is");
  if (from == FusionRole::kBundle || to == FusionRole::kBundle) return No("a bundle is complete");
  if (from == FusionRole::kChain || to == FusionRole::kChain) return No("a chain is complete");
  if (HasSeveralOutputs(producer)) return No("the producer has several outputs");
  if (IsTooMuch(producer, consumer)) return No("too many ops in one kernel");
  if (producer.operand_count() + consumer.operand_count() > kMaxKernelParams) {
    return No("too many operands of one kernel");
  }
  if (FusionDecision update = WithUpdate(producer, consumer); !update.fuse) return update;
  if (from == FusionRole::kElemental) {
    // Elements that are read several times would be computed several times.
    const Instruction* hero = HeroOf(consumer);
    int64_t reads = hero ? hero->operand(hero->operand_count() - 1)->shape().num_elements() : 1;
    if (hero && hero->opcode() == Opcode::kReduceWindow) {
      reads = WindowReads(*hero);
      int64_t repeats = reads / std::max<int64_t>(producer.shape().num_elements(), 1);
      if (repeats > 1 && OpCount(producer) * repeats > kMaxRepeatedOps) {
        return No("windows that overlap would repeat the producer's work");
      }
    } else if (hero && hero->opcode() != Opcode::kScatter) {
      reads = hero->operand(0)->shape().num_elements();
    }
    if (!hero) {
      for (const Dimension& d : IterationOf(consumer)) reads *= d.size();
    }
    if (IsExpensive(producer) && producer.shape().num_elements() < reads) {
      return No("the consumer would repeat expensive work");
    }
    // A sort may read an element more than once.
    if (to == FusionRole::kSort && IsExpensive(producer)) return No("a sort would repeat its work");
    return to == FusionRole::kElemental ? FusionDecision{true, ""}
                                        : IntoHero(producer, consumer, to, scheduler);
  }
  if (from == FusionRole::kScatter || from == FusionRole::kSort) {
    return No("a scatter's or a sort's result is memory");
  }
  if (to != FusionRole::kElemental) return No("two reductions are two kernels");
  return AfterHero(producer, consumer, scheduler);
}

}  // namespace

FusionDecision CanFuseProducer(const Instruction& producer, const Instruction& consumer,
                               const Scheduler& scheduler) {
  FusionDecision decision = DecideByRoles(producer, consumer, scheduler);
  if (decision.fuse && RepeatsTooMuch(producer, consumer, scheduler)) {
    return No("the consumer wants the producer's elements at too many places");
  }
  if (decision.fuse && WindowsRepeat(producer, consumer)) {
    return No("windows would repeat what is done once where the producer's operand is made");
  }
  return decision;
}

FusionDecision CanFuseSiblings(const Instruction& a, const Instruction& b,
                               const Scheduler& scheduler) {
  FusionRole ra = RoleOf(a), rb = RoleOf(b);
  if (ra == FusionRole::kNone || rb == FusionRole::kNone) return No("no kernels");
  if (ra == FusionRole::kDot || rb == FusionRole::kDot) return No("a dot stays alone");
  if (ra == FusionRole::kRows || rb == FusionRole::kRows) return No("a row kernel stays as it is");
  if (ra == FusionRole::kScatter || rb == FusionRole::kScatter) return No("a scatter stays alone");
  if (ra == FusionRole::kSort || rb == FusionRole::kSort) return No("a sort stays alone");
  if (ra == FusionRole::kWindow || rb == FusionRole::kWindow) return No("windows stay alone");
  if (ra == FusionRole::kBundle || rb == FusionRole::kBundle) return No("a bundle is complete");
  if (ra == FusionRole::kChain || rb == FusionRole::kChain) return No("a chain is complete");
  if (ra != rb) return No("kernels of different kinds");
  if (UpdatedOperand(a, 0) >= 0 || UpdatedOperand(b, 0) >= 0) {
    return No("an update in place stays alone");
  }
  if (IsTooMuch(a, b)) return No("too many ops in one kernel");
  if (a.operand_count() + b.operand_count() > kMaxKernelParams) {
    return No("too many operands of one kernel");
  }
  if (IterationOf(a) != IterationOf(b)) return No("different iteration spaces");
  if (ra == FusionRole::kReduce) {
    const Instruction *x = HeroOf(a), *y = HeroOf(b);
    if (x->dimensions() != y->dimensions() ||
        !x->operand(0)->shape().SameDimensions(y->operand(0)->shape())) {
      return No("reductions over different dimensions");
    }
    if (IsOneReduceOfSeveral(a) || IsOneReduceOfSeveral(b)) {
      return No("a reduce of several operands stays alone");
    }
  }
  return {true, ""};
}

namespace {

// Row kernels of so few elements take as long for a launch as for a part of their work; of more,
// each walk over a row has its own remedies (schedule/cpu/rows.h).
constexpr int64_t kMostOfJoinedRows = 1 << 14;

// Whether the consumer, a row kernel as the producer is, takes the producer's results row by row.
FusionDecision CanJoinRows(const Instruction& producer, const Instruction& consumer) {
  const Instruction *first = HeroOf(producer), *second = HeroOf(consumer);
  const Shape& full = first->operand(0)->shape();
  if (first->dimensions() != second->dimensions() ||
      !full.SameDimensions(second->operand(0)->shape())) {
    return No("reductions over different dimensions");
  }
  if (full.num_elements() > kMostOfJoinedRows) return No("row kernels of many elements");
  for (const Instruction* i : {&producer, &consumer}) {
    if (i->called(0)->MayHold(Opcode::kTranspose)) return No("rows that are turned");
  }
  Ints kept;
  for (int64_t d = 0; d < full.rank(); ++d) {
    if (std::ranges::find(first->dimensions(), d) == first->dimensions().end()) kept.push_back(d);
  }
  auto reads_own_row = [&](const Instruction& user, const Instruction& value) {
    if (IsElementwise(user.opcode())) return user.shape().SameDimensions(value.shape());
    if (user.opcode() == Opcode::kReduce) {
      return user.operand_count() == 2 && user.dimensions() == first->dimensions() &&
             value.shape().SameDimensions(full);
    }
    return user.opcode() == Opcode::kBroadcast && user.shape().SameDimensions(full) &&
           user.dimensions() == kept;
  };
  for (int64_t o = 0; o < consumer.operand_count(); ++o) {
    const Instruction* operand = consumer.operand(o);
    if (operand->opcode() == Opcode::kGetTupleElement) operand = operand->operand(0);
    if (operand != &producer) continue;
    const Instruction& value = *consumer.called(0)->parameter(o);
    for (const Instruction* user : value.users()) {
      if (!reads_own_row(*user, value)) return No("the consumer reads other rows");
    }
  }
  return {true, ""};
}

}  // namespace

FusionDecision CanFuseKeeping(const Instruction& producer, const Instruction& consumer,
                              const Scheduler& scheduler) {
  FusionRole from = RoleOf(producer), to = RoleOf(consumer);
  if (from == FusionRole::kRows && to == FusionRole::kRows) {
    if (IsTooMuch(producer, consumer)) return No("too many ops in one kernel");
    return CanJoinRows(producer, consumer);
  }
  if (to != FusionRole::kElemental) return No("the consumer is more than elementwise work");
  if (from != FusionRole::kElemental && from != FusionRole::kReduce && from != FusionRole::kDot) {
    return No("the producer's kind takes nothing in");
  }
  if (IsTooMuch(producer, consumer)) return No("too many ops in one kernel");
  if (producer.operand_count() + consumer.operand_count() > kMaxKernelParams) {
    return No("too many operands of one kernel");
  }
  if (UpdatedOperand(producer, 0) >= 0 || UpdatedOperand(consumer, 0) >= 0) {
    return No("an update in place stays alone");
  }
  if (IsOneReduceOfSeveral(producer)) return No("a reduce of several operands stays alone");
  std::vector<Dimension> points = IterationOf(producer);
  auto walks = [&](const Shape& shape) { return shape.is_array() && shape.dimensions() == points; };
  for (const Instruction* i : {&producer, &consumer}) {
    const Shape& shape = i->shape();
    bool all = shape.is_tuple()
                   ? std::all_of(shape.elements().begin(), shape.elements().end(), walks)
                   : walks(shape);
    if (!all) return No("different iteration spaces");
  }
  for (int64_t o = 0; o < consumer.operand_count(); ++o) {
    const Instruction* operand = consumer.operand(o);
    if (operand->opcode() == Opcode::kGetTupleElement) operand = operand->operand(0);
    if (operand != &producer) continue;
    bool keeps = IsElementwise(consumer.opcode());
    if (consumer.opcode() == Opcode::kFusion) {
      const Instruction* root = consumer.called(0)->root();
      const bool is_tuple = root->opcode() == Opcode::kTuple;
      keeps = KeepsIndex(consumer.called(0)->parameter(o), is_tuple ? root : nullptr);
    }
    if (!keeps) return No("the consumer reads the producer's elements elsewhere");
  }
  if (IsCrowded(producer, consumer, producer.shape().result_count(), scheduler)) {
    return No("the consumer moves and does too much for the dot's kernel");
  }
  return {true, ""};
}

Cost CostOf(const Instruction& instruction) {
  Cost cost;
  for (const Instruction* operand : instruction.operands()) {
    cost.bytes_read += operand->shape().byte_size();
  }
  cost.bytes_written = instruction.shape().byte_size();
  auto add = [&](const Instruction& i) {
    if (!i.shape().is_array()) return;
    int64_t points = i.shape().num_elements();
    if (i.opcode() == Opcode::kReduce) points = i.operand(0)->shape().num_elements();
    if (i.opcode() == Opcode::kReduceWindow) points = WindowReads(i);
    if (i.opcode() == Opcode::kDot) {
      points *= 2;
      for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
        points *= i.operand(0)->shape().dim(d);
      }
      cost.flops += points;
    } else if (i.opcode() == Opcode::kReduce || i.opcode() == Opcode::kReduceWindow) {
      cost.flops += points;
    } else if (IsElementwise(i.opcode())) {
      (IsTranscendental(i.opcode()) ? cost.transcendentals : cost.flops) += points;
    }
  };
  if (instruction.opcode() == Opcode::kFusion) {
    for (Instruction* m : instruction.called(0)->instructions()) add(*m);
  } else {
    add(instruction);
  }
  return cost;
}

bool ReadsBesideUpdate(const Instruction& root) {
  return std::ranges::any_of(root.operand(0)->users(), [&](const Instruction* user) {
    return user != &root && !(CutsUpdated(root, *user, root) && KeepsIndex(user, &root));
  });
}

int64_t UpdatedOperand(const Instruction& instruction, int64_t output) {
  const Instruction* root = &instruction;
  if (root->opcode() == Opcode::kFusion) root = root->called(0)->root();
  if (root->opcode() == Opcode::kTuple) return -1;
  if (root->opcode() == Opcode::kCustomCall) return ir::AliasedOperand(*root, output);
  int64_t operand = -1;
  if (root->opcode() == Opcode::kDynamicUpdateSlice) operand = 0;
  if (root->opcode() == Opcode::kScatter) operand = output;
  if (operand < 0 || root == &instruction) return operand;
  // Of a fusion it is a parameter, or is made inside.
  const Instruction* updated = root->operand(operand);
  if (updated->opcode() != Opcode::kParameter) return -1;
  if (root->opcode() == Opcode::kDynamicUpdateSlice && ReadsBesideUpdate(*root)) return -1;
  return updated->attributes().Int(Attr::kParameterNumber);
}

namespace {

// Of a bundle: the part that makes the output may, and no other part, which may run at any time,
// reads the operand.
bool MayShareInBundle(const Instruction& bundle, int64_t operand, int64_t output,
                      FusionAnalysis& analysis) {
  const Computation& parts = *bundle.called(0);
  if (parts.root()->opcode() != Opcode::kTuple) return false;
  const Instruction *maker = parts.root()->operand(output), *read = parts.parameter(operand);
  int64_t result = 0;
  if (maker->opcode() == Opcode::kGetTupleElement) {
    result = maker->attributes().Int(Attr::kIndex);
    maker = maker->operand(0);
  }
  if (read->users().size() != 1 || read->users()[0] != maker) return false;
  const auto operands = maker->operands();
  return maker->opcode() == Opcode::kFusion && std::ranges::count(operands, read) == 1 &&
         MayShareBuffer(*maker, std::ranges::find(operands, read) - operands.begin(), result,
                        analysis);
}

}  // namespace

bool MayShareBuffer(const Instruction& instruction, int64_t operand, int64_t output,
                    FusionAnalysis& analysis) {
  if (ir::IsHostCall(instruction)) return ir::MayShareInCall(instruction, operand, output);
  FusionRole role = RoleOf(instruction);
  if (role == FusionRole::kNone) return false;
  if (role == FusionRole::kBundle) return MayShareInBundle(instruction, operand, output, analysis);
  if (role == FusionRole::kChain) return MayShareInChain(instruction, operand, output, analysis);
  Group group = GroupOf(instruction);
  const Result<Kernel>& kernel = analysis.KernelOf(instruction);
  if (!kernel.ok()) return false;
  const Instruction* input = instruction.opcode() == Opcode::kFusion
                                 ? instruction.called(0)->parameter(operand)
                                 : instruction.operand(operand);
  auto at = std::find(group.inputs.begin(), group.inputs.end(), input);
  return KernelMayShare(instruction, *kernel, ParamId(at - group.inputs.begin()), output);
}

bool KernelMayShare(const Instruction& instruction, const Kernel& kernel, ParamId param,
                    int64_t output) {
  FusionRole role = RoleOf(instruction);
  if (role == FusionRole::kNone) return false;
  auto inputs = std::ranges::count_if(kernel.params,
                                      [](const Param& p) { return p.role == Param::Role::kInput; });
  const ParamId out(inputs + output);
  // The copy to the output must not precede the kernel's reads of that memory.
  const ParamId updated = kernel.params[out].in_place_of;
  if (updated.valid() && updated != param) return false;
  if (kernel.kind == Kernel::Kind::kScatter) {
    const auto& nodes = kernel.stages.front().nodes;
    return std::ranges::none_of(
        nodes, [&](const Node& n) { return n.kind == Node::Kind::kLoad && n.param == param; });
  }
  if (ByteWidth(kernel.params[param].type) != ByteWidth(kernel.params[out].type)) return false;
  bool stored = false;
  for (StageId at : kernel.stages.ids()) {
    for (const Store& store : kernel.stages[at].stores) {
      if (store.param != out) continue;
      stored = true;
      for (StageId s : kernel.stages.ids()) {
        for (const Node& n : kernel.stages[s].nodes) {
          if (n.kind != Node::Kind::kLoad || n.param != param) continue;
          // The factors of a gemm are read by tiles, in an order of its schedule's own.
          if (s == StageId(0) && role == FusionRole::kDot) return false;
          // Later reads would see overwritten elements. Earlier stages are done at the same outer
          // point, and at equal indices (stages share their variables) no other outer point is
          // touched.
          if (s > at || !(n.index == store.index)) return false;
        }
      }
    }
  }
  return stored;
}

}  // namespace kiln::kernel
