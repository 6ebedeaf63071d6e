#include "kernel/prologue.h"

#include <algorithm>

#include "base/integers.h"
#include "kernel/contraction.h"
#include "kernel/schedule/scheduler.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

constexpr int64_t kMaxOps = 12;

// The same for all elements.
bool IsUniform(const Instruction& i) {
  if (i.shape().rank() == 0) return true;
  return i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().rank() == 0;
}

// Numbers shared by several elements: scales of rows or columns.
bool IsSpread(const Instruction& i) {
  return i.opcode() == Opcode::kBroadcast &&
         i.operand(0)->shape().num_elements() < i.shape().num_elements();
}

// A view of as many elements or fewer, of the same type. A broadcast is a number that several have
// in common, and a bitcast is what is in memory: a gemm has no strides through another type's.
bool IsPlace(const Instruction& i) {
  return IsView(i.opcode()) && i.opcode() != Opcode::kBroadcast && i.opcode() != Opcode::kBitcast;
}

// Whether it may take numbers of four bits out of bytes, two of each:
//
//   shift-right-logical(broadcast(x), 4 * iota),  x: u8[...], iota: u8[..., 2]
bool MayTakeHalves(const Instruction& i) {
  return i.opcode() == Opcode::kShiftRightLogical && i.shape().type() == ElementType::kU8 &&
         i.shape().rank() > 0 && i.shape().dim(i.shape().rank() - 1) == 2;
}

// The bytes, or null.
Instruction* BytesOfHalves(const Instruction& i) {
  if (!MayTakeHalves(i)) return nullptr;
  const int64_t last = i.shape().rank() - 1;
  const Instruction* spread = i.operand(0);
  const bool in_pairs = spread->opcode() == Opcode::kBroadcast &&
                        spread->operand(0)->shape().rank() == last &&
                        std::ranges::is_sorted(spread->dimensions()) &&
                        (last == 0 || spread->dimensions().back() == last - 1);
  return in_pairs ? spread->operand(0) : nullptr;
}

// The array that an op maps element by element; null if it cannot be in a prologue.
Instruction* ArrayOf(const Instruction& i) {
  if (IsPlace(i)) return i.operand(0);
  if (Instruction* bytes = BytesOfHalves(i)) return bytes;
  // The same bits, another sign.
  if (i.opcode() == Opcode::kBitcastConvert && IsInteger(i.shape().type()) &&
      i.shape().SameDimensions(i.operand(0)->shape())) {
    return i.operand(0);
  }
  if (!IsElementwise(i.opcode()) || i.opcode() == Opcode::kMap) return nullptr;
  Instruction* array = nullptr;
  for (Instruction* operand : i.operands()) {
    if ((IsUniform(*operand) || IsSpread(*operand)) && i.shape().rank() > 0) continue;
    if (array && array != operand) return nullptr;
    array = operand;
  }
  return array;
}

struct Path {
  const Instruction* from = nullptr;  // what it is made of
  int64_t ops = 0;
  bool heavy = false;
};

void Count(const Instruction& i, Path& path) {
  if (IsPlace(i)) return;
  ++path.ops;
  if (BytesOfHalves(i)) return;
  for (const Instruction* operand : i.operands()) {
    if (IsSpread(*operand) && !IsUniform(*operand)) path.ops += kSpreadOps;
  }
  path.heavy = path.heavy || IsExpensive(i.opcode());
}

// Through ops that make their results of one array.
bool Follow(const Instruction* i, Path& path) {
  while (const Instruction* array = ArrayOf(*i)) {
    Count(*i, path);
    if (path.ops > kMaxOps) return false;
    i = array;
  }
  path.from = i;
  return true;
}

// A fusion's, from its root to its one array.
const Instruction* FollowFusion(const Instruction& fusion, Path& path) {
  const ir::Computation& fused = *fusion.called(0);
  if (!fused.root()->shape().is_array() || !Follow(fused.root(), path)) return nullptr;
  if (path.from->opcode() != Opcode::kParameter) return nullptr;
  return fusion.operand(path.from->attributes().Int(Attr::kParameterNumber));
}

// Whether it is in memory regardless of fusion, or takes none.
bool IsInMemory(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kIota:
    case Opcode::kParameter:
    case Opcode::kGetTupleElement:
    case Opcode::kConstant:
    case Opcode::kWhile:
    case Opcode::kConditional:
      return true;
    case Opcode::kBitcast:
      return IsInMemory(*i.operand(0));
    default:
      return false;
  }
}

// From a producer back to arrays in memory.
bool FollowToMemory(const Instruction& producer, Path& path) {
  const Instruction* i = &producer;
  while (!IsInMemory(*i)) {
    if (i->opcode() == Opcode::kFusion) {
      i = FollowFusion(*i, path);
      if (!i) return false;
    } else {
      const Instruction* before = i;
      if (!Follow(i, path)) return false;
      i = path.from;
      if (i == before) return false;
    }
    if (path.ops > kMaxOps) return false;
  }
  return true;
}

// The dot that `value`, inside of a fusion, is read by, through ops that keep it a prologue's; null
// for anything else. `operand` is which of the dot's it becomes.
const Instruction* FollowToDot(const Instruction* value, Path& path, int& operand) {
  while (value->users().size() == 1 && !value->IsRoot()) {
    const Instruction* user = *value->users().begin();
    if (user->opcode() == Opcode::kDot) {
      if (user->operand(0) == user->operand(1)) return nullptr;
      operand = user->operand(0) == value ? 0 : 1;
      return user;
    }
    const bool shifts = MayTakeHalves(*user) && user->operand(1) == value;
    if (ArrayOf(*user) != value && !shifts) return nullptr;
    Count(*user, path);
    value = user;
  }
  return nullptr;
}

}  // namespace

bool MayBePrologue(const Instruction& producer, const Instruction& consumer,
                   const Scheduler& scheduler) {
  // A number that all elements have in common.
  if (producer.IsConstant()) return producer.shape().rank() == 0;
  Path path;
  if (!FollowToMemory(producer, path)) return false;
  if (path.ops == 0 && producer.opcode() != Opcode::kIota) return false;
  const Instruction* dot = &consumer;
  int operand = -1;
  if (consumer.opcode() == Opcode::kFusion) {
    const Instruction* inside = nullptr;
    for (int64_t o = 0; o < consumer.operand_count(); ++o) {
      if (consumer.operand(o) != &producer) continue;
      if (inside) return false;
      inside = consumer.called(0)->parameter(o);
    }
    dot = inside ? FollowToDot(inside, path, operand) : nullptr;
    if (!dot) return false;
  } else if (dot->operand(0) != dot->operand(1)) {
    operand = dot->operand(0) == &producer ? 0 : 1;
  }
  if (operand < 0 || path.ops > kMaxOps) return false;
  return scheduler.ReadsThrough(*dot, operand, path.ops, path.heavy);
}

}  // namespace kiln::kernel
