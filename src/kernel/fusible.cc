#include "kernel/fusible.h"

#include <algorithm>
#include <unordered_set>

#include "base/strings.h"

namespace kiln::kernel {
namespace {

using ir::Computation;
using ir::Instruction;

// A kernel of more ops than this takes longer to compile than its traffic is worth.
constexpr int64_t kMaxFusedOps = 96;
constexpr int64_t kMaxKernelParams = 48;

FusionDecision No(std::string why) { return {false, std::move(why)}; }

int64_t OpCount(const Instruction& i) {
  return i.opcode() == Opcode::kFusion ? i.called(0)->instruction_count() : 1;
}

bool HasSeveralOutputs(const Instruction& i) { return i.shape().is_tuple(); }

bool IsExpensive(const Instruction& i) {
  if (i.opcode() == Opcode::kFusion) {
    const auto& members = i.called(0)->instructions();
    return std::any_of(members.begin(), members.end(),
                       [](const auto& m) { return IsExpensive(*m); });
  }
  return HasTrait(i.opcode(), kTranscendental) || i.opcode() == Opcode::kDivide ||
         i.opcode() == Opcode::kRemainder;
}

// The one reduce or dot of an instruction or fusion; several reduces: the first; or null.
const Instruction* HeroOf(const Instruction& i) {
  if (i.opcode() == Opcode::kReduce || i.opcode() == Opcode::kDot) return &i;
  if (i.opcode() != Opcode::kFusion) return nullptr;
  for (const auto& m : i.called(0)->instructions()) {
    if (m->opcode() == Opcode::kReduce || m->opcode() == Opcode::kDot) return m.get();
  }
  return nullptr;
}

// The dimensions that the kernel's outer loops run over.
std::vector<Dimension> IterationOf(const Instruction& i) {
  const Instruction* of = &i;
  if (const Instruction* hero = HeroOf(i)) {
    of = hero;
  } else if (i.opcode() == Opcode::kFusion) {
    of = i.called(0)->root();
    if (of->opcode() == Opcode::kTuple) of = of->operand(0);
  }
  const Shape& s = of->shape();
  return s.is_tuple() ? s.elements()[0].dimensions() : s.dimensions();
}

// Ops that a matrix product can read through: they only say where an element is.
bool IsView(const Instruction& i) {
  if (i.opcode() == Opcode::kFusion) {
    const auto& members = i.called(0)->instructions();
    return std::all_of(members.begin(), members.end(), [](const auto& m) {
      return m->opcode() == Opcode::kParameter || IsView(*m);
    });
  }
  return i.opcode() == Opcode::kTranspose || i.opcode() == Opcode::kReshape ||
         i.opcode() == Opcode::kSlice || i.opcode() == Opcode::kBroadcast;
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
    if (i->opcode() == Opcode::kReduce || i->opcode() == Opcode::kDot) return true;
    for (const Instruction* user : i->users()) work.push_back(user);
  }
  return false;
}

// Whether all that is made from `value` keeps its elements one to one, so that it can be computed
// where a reduction's result is.
bool OnlyElementwiseFrom(const Instruction* value) {
  std::vector<const Instruction*> work = {value};
  std::unordered_set<const Instruction*> seen;
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    if (!seen.insert(i).second) continue;
    for (const Instruction* user : i->users()) {
      bool one_to_one = user->opcode() == Opcode::kTuple || user->opcode() == Opcode::kReshape ||
                        user->opcode() == Opcode::kTranspose ||
                        (IsElementwise(user->opcode()) && user->shape().SameDimensions(i->shape()));
      if (!one_to_one) return false;
      work.push_back(user);
    }
  }
  return true;
}

FusionDecision IntoHero(const Instruction& producer, const Instruction& consumer, FusionRole role) {
  if (consumer.opcode() != Opcode::kFusion) {
    if (role == FusionRole::kDot && !IsView(producer)) {
      return No("a dot reads its operands from memory");
    }
    return {true, ""};
  }
  FusionDecision decision{true, ""};
  ForEachUse(producer, consumer, [&](const Instruction* p) {
    if (role == FusionRole::kDot && FeedsHero(p) && !IsView(producer)) {
      decision = No("a dot reads its operands from memory");
    }
  });
  return decision;
}

// An epilogue: the consumer of a reduce or dot.
FusionDecision AfterHero(const Instruction& producer, const Instruction& consumer) {
  if (consumer.opcode() != Opcode::kFusion) {
    bool one_to_one =
        consumer.opcode() == Opcode::kReshape || consumer.opcode() == Opcode::kTranspose ||
        (IsElementwise(consumer.opcode()) && consumer.shape().SameDimensions(producer.shape()));
    return one_to_one ? FusionDecision{true, ""}
                      : No("the consumer does not keep the reduction's elements one to one");
  }
  FusionDecision decision{true, ""};
  ForEachUse(producer, consumer, [&](const Instruction* p) {
    if (!OnlyElementwiseFrom(p)) {
      decision = No("the consumer does not keep the reduction's elements one to one");
    }
  });
  if (decision.fuse && consumer.shape().is_tuple()) {
    return No("the consumer has several outputs");
  }
  return decision;
}

// Whether a reduction's result is spread over what was reduced, or reduced again.
bool UsesReductionAgain(const Computation& fused) {
  std::unordered_set<const Instruction*> reduced;
  for (const auto& m : fused.instructions()) {
    bool after = std::any_of(m->operands().begin(), m->operands().end(),
                             [&](const Instruction* operand) { return reduced.contains(operand); });
    if (after && (m->opcode() == Opcode::kBroadcast || m->opcode() == Opcode::kReduce)) return true;
    if (after || m->opcode() == Opcode::kReduce) reduced.insert(m.get());
  }
  return false;
}

}  // namespace

FusionRole RoleOf(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kReduce:
      return FusionRole::kReduce;
    case Opcode::kDot:
      return FusionRole::kDot;
    case Opcode::kFusion: {
      const Instruction* hero = HeroOf(instruction);
      if (!hero) return FusionRole::kElemental;
      return UsesReductionAgain(*instruction.called(0)) ? FusionRole::kRows : RoleOf(*hero);
    }
    default:
      return IsElemental(instruction) ? FusionRole::kElemental : FusionRole::kNone;
  }
}

FusionDecision CanFuseProducer(const Instruction& producer, const Instruction& consumer,
                               const target::Target& target) {
  FusionRole from = RoleOf(producer), to = RoleOf(consumer);
  if (from == FusionRole::kNone) return No("the producer is no part of a kernel");
  if (to == FusionRole::kNone) return No("the consumer is no part of a kernel");
  if (from == FusionRole::kRows || to == FusionRole::kRows)
    return No("a row kernel stays as it is");
  if (HasSeveralOutputs(producer)) return No("the producer has several outputs");
  if (OpCount(producer) + OpCount(consumer) > kMaxFusedOps) return No("too many ops in one kernel");
  if (producer.operand_count() + consumer.operand_count() > kMaxKernelParams) {
    return No("too many operands of one kernel");
  }
  if (from == FusionRole::kElemental) {
    // Elements that are read several times would be computed several times.
    const Instruction* hero = HeroOf(consumer);
    int64_t reads = hero ? hero->operand(0)->shape().num_elements() : 1;
    if (!hero) {
      for (const Dimension& d : IterationOf(consumer)) reads *= d.size();
    }
    if (IsExpensive(producer) && producer.shape().num_elements() < reads) {
      return No("the consumer would repeat expensive work");
    }
    return to == FusionRole::kElemental ? FusionDecision{true, ""}
                                        : IntoHero(producer, consumer, to);
  }
  if (to != FusionRole::kElemental) return No("two reductions are two kernels");
  return AfterHero(producer, consumer);
}

FusionDecision CanFuseSiblings(const Instruction& a, const Instruction& b,
                               const target::Target& target) {
  FusionRole ra = RoleOf(a), rb = RoleOf(b);
  if (ra == FusionRole::kNone || rb == FusionRole::kNone) return No("no kernels");
  if (ra == FusionRole::kDot || rb == FusionRole::kDot) return No("a dot stays alone");
  if (ra == FusionRole::kRows || rb == FusionRole::kRows) return No("a row kernel stays as it is");
  if (ra != rb) return No("kernels of different kinds");
  if (OpCount(a) + OpCount(b) > kMaxFusedOps) return No("too many ops in one kernel");
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
    if (i.opcode() == Opcode::kDot) {
      points *= 2;
      for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
        points *= i.operand(0)->shape().dim(d);
      }
      cost.flops += points;
    } else if (i.opcode() == Opcode::kReduce) {
      cost.flops += points;
    } else if (IsElementwise(i.opcode())) {
      (HasTrait(i.opcode(), kTranscendental) ? cost.transcendentals : cost.flops) += points;
    }
  };
  if (instruction.opcode() == Opcode::kFusion) {
    for (const auto& m : instruction.called(0)->instructions()) add(*m);
  } else {
    add(instruction);
  }
  return cost;
}

bool MayShareBuffer(const Instruction& instruction, int64_t operand, int64_t output) {
  if (RoleOf(instruction) == FusionRole::kNone) return false;
  Group group = GroupOf(instruction);
  auto kernel = BuildKernel(group, "share");
  if (!kernel.ok()) return false;
  const Instruction* input = instruction.opcode() == Opcode::kFusion
                                 ? instruction.called(0)->parameter(operand)
                                 : instruction.operand(operand);
  auto at = std::find(group.inputs.begin(), group.inputs.end(), input);
  int param = static_cast<int>(at - group.inputs.begin());
  int out = static_cast<int>(group.inputs.size() + output);
  if (ByteWidth(kernel->params[param].type) != ByteWidth(kernel->params[out].type)) return false;
  bool stored = false;
  for (size_t at = 0; at < kernel->stages.size(); ++at) {
    for (const Store& store : kernel->stages[at].stores) {
      if (store.param != out) continue;
      stored = true;
      for (size_t s = 0; s < kernel->stages.size(); ++s) {
        for (const Node& n : kernel->stages[s].nodes) {
          if (n.kind != Node::Kind::kLoad || n.param != param) continue;
          // The factors of a product are read by tiles, in an order of its schedule's own.
          if (s == 0 && RoleOf(instruction) == FusionRole::kDot) return false;
          // What is read later would be gone. Earlier stages are done at the same outer point, and
          // at equal indices (stages share their variables) no other outer point is touched.
          if (s > at || !(n.index == store.index)) return false;
        }
      }
    }
  }
  return stored;
}

}  // namespace kiln::kernel
