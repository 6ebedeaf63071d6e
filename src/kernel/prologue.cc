#include "kernel/prologue.h"

#include <algorithm>

#include "base/integers.h"
#include "kernel/build.h"
#include "kernel/contraction.h"
#include "kernel/schedule/gpu/product.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

// Ops on an element, or on a vector of them, times how often the product reads it, beside the
// product itself.
constexpr int64_t kMaxWork = 4, kMaxVectorWork = 16;
constexpr int64_t kMaxOps = 8;
// On a GPU an op on an element takes about a fiftieth of what it takes to write it to memory and to
// read it again.
constexpr int64_t kMaxGpuWork = 48, kHeavyOps = 16;
// To find a number that is another one for each row or column, and to load it.
constexpr int64_t kSpreadOps = 3;

bool IsHeavy(const Instruction& i) {
  return HasTrait(i.opcode(), kTranscendental) || i.opcode() == Opcode::kDivide ||
         i.opcode() == Opcode::kRemainder || i.opcode() == Opcode::kMap;
}

bool IsView(const Instruction& i) {
  return i.opcode() == Opcode::kTranspose || i.opcode() == Opcode::kReshape ||
         i.opcode() == Opcode::kSlice;
}

// The same for all elements.
bool IsUniform(const Instruction& i) {
  if (i.shape().rank() == 0) return true;
  return i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().rank() == 0;
}

// Numbers that several elements have in common: scales of rows or columns.
bool IsSpread(const Instruction& i) {
  return i.opcode() == Opcode::kBroadcast &&
         i.operand(0)->shape().num_elements() < i.shape().num_elements();
}

// The array that an op makes its result of, element by element; null where it is no prologue's.
Instruction* ArrayOf(const Instruction& i) {
  if (IsView(i)) return i.operand(0);
  if (!IsElementwise(i.opcode()) || i.opcode() == Opcode::kMap) return nullptr;
  Instruction* array = nullptr;
  for (Instruction* operand : i.operands()) {
    if ((IsUniform(*operand) || IsSpread(*operand)) && i.shape().rank() > 0) continue;
    if (array && array != operand) return nullptr;
    array = operand;
  }
  return array;
}

struct Chain {
  const Instruction* from = nullptr;  // what it is made of
  int64_t ops = 0;
  bool heavy = false;
};

void Count(const Instruction& i, Chain& chain) {
  if (IsView(i)) return;
  ++chain.ops;
  for (const Instruction* operand : i.operands()) {
    if (IsSpread(*operand) && !IsUniform(*operand)) chain.ops += kSpreadOps;
  }
  chain.heavy = chain.heavy || IsHeavy(i);
}

// Through ops that make their results of one array.
bool Follow(const Instruction* i, Chain& chain) {
  while (const Instruction* array = ArrayOf(*i)) {
    Count(*i, chain);
    if (chain.ops > kMaxOps) return false;
    i = array;
  }
  chain.from = i;
  return true;
}

// A fusion's, from its root to its one array.
const Instruction* FollowFusion(const Instruction& fusion, Chain& chain) {
  const ir::Computation& fused = *fusion.called(0);
  if (!fused.root()->shape().is_array() || !Follow(fused.root(), chain)) return nullptr;
  if (chain.from->opcode() != Opcode::kParameter) return nullptr;
  return fusion.operand(chain.from->attributes().Int(Attr::kParameterNumber));
}

// Whether it is in memory whatever is fused with it.
bool IsInMemory(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kGetTupleElement:
    case Opcode::kConstant:
    case Opcode::kWhile:
    case Opcode::kConditional:
      return true;
    default:
      return false;
  }
}

// From a producer back to what is in memory.
bool FollowToMemory(const Instruction& producer, Chain& chain) {
  const Instruction* i = &producer;
  while (!IsInMemory(*i)) {
    if (i->opcode() == Opcode::kFusion) {
      i = FollowFusion(*i, chain);
      if (!i) return false;
    } else {
      const Instruction* before = i;
      if (!Follow(i, chain)) return false;
      i = chain.from;
      if (i == before) return false;
    }
    if (chain.ops > kMaxOps) return false;
  }
  return true;
}

// The dot that `value`, inside of a fusion, is read by, through ops that keep it a prologue's; null
// for anything else. `operand` is which of the dot's it becomes.
const Instruction* FollowToDot(const Instruction* value, Chain& chain, int& operand) {
  while (value->users().size() == 1 && !value->IsRoot()) {
    const Instruction* user = *value->users().begin();
    if (user->opcode() == Opcode::kDot) {
      if (user->operand(0) == user->operand(1)) return nullptr;
      operand = user->operand(0) == value ? 0 : 1;
      return user;
    }
    if (ArrayOf(*user) != value) return nullptr;
    Count(*user, chain);
    value = user;
  }
  return nullptr;
}

// How often the product loads each element of an operand from where it is not packed, and whether
// it does so in vectors.
struct Reads {
  int64_t times = int64_t{1} << 40;
  bool vectors = false;
};
Reads ReadsOf(const Instruction& dot, int operand, const target::Cpu& cpu) {
  auto kernel = BuildKernel(GroupOf(dot), "reads");
  if (!kernel.ok()) return {};
  auto c = AsContraction(*kernel, cpu);
  if (!c || c->a_param == c->b_param) return {};
  auto schedule = ChooseGemmSchedule(cpu, c->problem);
  if (!schedule.ok()) return {};
  bool is_a = c->a_param == operand;
  if (schedule->kind == GemmKind::kInner) {
    return {is_a ? (c->problem.n + schedule->nr - 1) / schedule->nr : schedule->m_tiles, true};
  }
  if (is_a) return {schedule->pack_a ? 1 : schedule->n_panels, false};
  switch (schedule->b) {
    case GemmB::kInPlace:
      return {schedule->m_tiles, true};
    case GemmB::kPackPanel:
      return {schedule->m_blocks, true};
    case GemmB::kPrepacked:
      return {1, true};
  }
  return {};
}

// On a GPU every tile of the result reads its operands' pieces anew.
int64_t ReadsOnGpu(const Instruction& dot, int operand, const target::Gpu& gpu) {
  constexpr int64_t kNever = int64_t{1} << 40;
  auto kernel = BuildKernel(GroupOf(dot), "reads");
  if (!kernel.ok()) return kNever;
  auto factors = FindGpuFactors(*kernel);
  if (!factors) return kNever;
  // Factors that are converted, as they are multiplied in another type, or guarded.
  const Stage& stage = kernel->stages[0];
  bool is_x = std::ranges::any_of(GpuNodesOf(stage, factors->x), [&](int n) {
    return stage.nodes[static_cast<size_t>(n)].param == operand;
  });
  const int64_t others = kernel->PointsOf(is_x ? factors->columns : factors->rows);
  auto schedule = ScheduleGpuProduct(*kernel, gpu);
  if (!schedule) return others;
  return CeilDiv(others, is_x ? schedule->product.n : schedule->product.m);
}

}  // namespace

bool MayBePrologue(const Instruction& producer, const Instruction& consumer,
                   const target::Target& target) {
  // A number that all elements have in common.
  if (producer.IsConstant()) return producer.shape().rank() == 0;
  Chain chain;
  if (!FollowToMemory(producer, chain) || chain.ops == 0) return false;
  const Instruction* dot = &consumer;
  int operand = -1;
  if (consumer.opcode() == Opcode::kFusion) {
    const Instruction* inside = nullptr;
    for (int64_t o = 0; o < consumer.operand_count(); ++o) {
      if (consumer.operand(o) != &producer) continue;
      if (inside) return false;
      inside = consumer.called(0)->parameter(o);
    }
    dot = inside ? FollowToDot(inside, chain, operand) : nullptr;
    if (!dot) return false;
  } else if (dot->operand(0) != dot->operand(1)) {
    operand = dot->operand(0) == &producer ? 0 : 1;
  }
  if (operand < 0 || chain.ops > kMaxOps) return false;
  if (target.kind == target::Kind::kGpu) {
    const int64_t ops = chain.ops + (chain.heavy ? kHeavyOps : 0);
    return ops * ReadsOnGpu(*dot, operand, target.gpu) <= kMaxGpuWork;
  }
  Reads reads = ReadsOf(*dot, operand, target.cpu);
  const int64_t most = reads.vectors ? kMaxVectorWork : kMaxWork;
  return reads.times <= 1 || (!chain.heavy && chain.ops * reads.times <= most);
}

}  // namespace kiln::kernel
