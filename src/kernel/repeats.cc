#include "kernel/repeats.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernel/schedule/scheduler.h"

namespace kiln::kernel {
namespace {

using ir::Computation;
using ir::Instruction;

// An element is read so often before its work counts as repeated.
constexpr double kFewReads = 1.5;
constexpr int64_t kManyPlaces = 9;
// The limit of code for ops evaluated at several places, in units of a cheap op.
constexpr int64_t kMaxEvaluations = 2048;
constexpr int64_t kExpensiveCode = 8;
// The most code, in units of a cheap op, of all ops of a kernel at places beside their first, in
// times of the ops that are worth to store and to read the value for which they are. Where an array
// is put together of its halves again and again, work would grow with the power of the levels.
constexpr int64_t kMaxRepeatedCode = 8;
// Instructions that are followed, and ops of an epilogue.
constexpr int kMostSteps = 256, kMostOps = 16;

// How often a fused computation reads each element of a member of it, about, by slices and windows.
double ReadsOf(const Instruction& value, int& steps) {
  const auto elements = static_cast<double>(std::max<int64_t>(value.shape().num_elements(), 1));
  // Several that read an element for one place of the result read it once.
  double by_slices = 0, by_others = 1;
  for (const Instruction* user : value.users()) {
    if (++steps > kMostSteps) return 1;
    const bool is_slice = user->opcode() == Opcode::kSlice || user->opcode() == Opcode::kPatches;
    if (is_slice) {
      by_slices +=
          static_cast<double>(user->shape().num_elements()) / elements * ReadsOf(*user, steps);
    } else if (user->opcode() == Opcode::kPad || user->opcode() == Opcode::kReshape ||
               user->opcode() == Opcode::kTranspose) {
      by_others = std::max(by_others, ReadsOf(*user, steps));
    }
  }
  return std::max(by_slices, by_others);
}

// Whether padding is read at so many places that asking of each whether it is there takes longer
// than storing it.
bool ReadsPadding(const Instruction& producer, const Instruction& consumer) {
  if (producer.opcode() != Opcode::kPad) return false;
  for (int64_t i = 0; i < consumer.operand_count(); ++i) {
    if (consumer.operand(i) != &producer) continue;
    const auto& users = consumer.called(0)->parameter(i)->users();
    const auto is_slice = [](const Instruction* user) { return user->opcode() == Opcode::kSlice; };
    if (std::ranges::count_if(users, is_slice) >= kManyPlaces) return true;
  }
  return false;
}

// Whether it puts parts together that are computed.
bool PutsTogether(const Instruction& i) {
  if (i.opcode() != Opcode::kConcatenate) return false;
  return std::ranges::any_of(i.operands(), [](const Instruction* part) {
    while (part->opcode() == Opcode::kReshape) part = part->operand(0);
    return IsElementwise(part->opcode()) || part->opcode() == Opcode::kConcatenate;
  });
}

// Whether it is made element by element of the result of a dot or a reduction, or of parts.
bool IsEpilogue(const Instruction& i) {
  const Instruction* value = &i;
  for (int ops = 0; ops < kMostOps; ++ops) {
    const Instruction* from = nullptr;
    for (const Instruction* operand : value->operands()) {
      if (operand->opcode() == Opcode::kBroadcast || operand->IsConstant()) continue;
      if (!from) from = operand;
    }
    if (!from) return false;
    if (IsHero(from->opcode()) || PutsTogether(*from)) return true;
    if (!IsElementwise(from->opcode()) && from->opcode() != Opcode::kReshape) return false;
    value = from;
  }
  return false;
}

// Whether ops of a fused computation may be evaluated at several places for one element: x[i] and
// x[i + 1] by two slices, and what these are made of in turn.
bool MayRepeat(const Computation& fused) {
  constexpr Opcode kMoves[] = {
      Opcode::kConcatenate, Opcode::kDynamicSlice, Opcode::kDynamicUpdateSlice,
      Opcode::kGather,      Opcode::kPad,          Opcode::kPatches,
      Opcode::kReverse,     Opcode::kSlice};
  return std::ranges::any_of(kMoves, [&](Opcode move) { return fused.MayHold(move); }) ||
         (fused.MayHold(Opcode::kTranspose) && fused.MayHold(Opcode::kReshape));
}

// Bounds and a select, and for holes a quotient and a remainder.
int64_t PadCode(const Instruction& pad) {
  int64_t code = 1;
  for (const PaddingDimension& d : pad.attributes().Padding(Attr::kPadding)) {
    if (d.low != 0 || d.high != 0) code += 2;
    if (d.interior != 0) code += 4;
  }
  return code;
}

// The code size of an op of a kernel at one place.
int64_t CodeOf(const Instruction& i) {
  if (!IsCode(i.opcode())) return 0;
  if (i.opcode() == Opcode::kConcatenate) return i.operand_count();
  if (i.opcode() == Opcode::kPad) return PadCode(i);
  return IsExpensive(i.opcode()) ? kExpensiveCode : 1;
}

// At how many places each instruction of a fused computation is evaluated, at most: once where
// those who use it want it at their own place, and once for each that wants it elsewhere.
class Places {
 public:
  explicit Places(const Computation& fused)
      : table_(std::bit_ceil(2 * static_cast<size_t>(fused.instruction_count()) + 1)) {
    const ir::Instructions all = fused.instructions();
    for (auto it = all.end(); it != all.begin();) {
      const Instruction* i = *--it;
      int64_t here = i->IsRoot() ? 1 : 0, elsewhere = 0;
      for (const Instruction* user : i->users()) {
        const int64_t places = Of(user);
        if (IsElementwise(user->opcode()) || user->opcode() == Opcode::kTuple) {
          here = std::max(here, places);
          continue;
        }
        const auto times = std::ranges::count(user->operands(), i);
        elsewhere = std::min(elsewhere + times * places, kMost);
      }
      Entry& entry = EntryOf(i);
      entry = {i, std::min(here + elsewhere, kMost)};
      const int64_t code = CodeOf(*i);
      code_ = std::min(code_ + code * entry.places, kMost);
      once_ += entry.places > 0 ? code : 0;
      if (IsElementwise(i->opcode()) && !AreFewBeside(i->shape(), fused.root()->shape())) {
        arithmetic_ = std::min(arithmetic_ + entry.places, kMost);
      }
    }
  }

  int64_t Of(const Instruction* i) const { return EntryOf(i).places; }
  // Of all instructions together.
  int64_t code() const { return code_; }
  // Of that, all but the first place of each.
  int64_t repeated() const { return code_ - std::min(once_, code_); }
  // Of elementwise ops together.
  int64_t arithmetic() const { return arithmetic_; }

 private:
  static constexpr int64_t kMost = int64_t{1} << 40;
  // Fusion asks for each pair of kernels: a table of the standard library would take longer than
  // all else.
  struct Entry {
    const Instruction* key = nullptr;
    int64_t places = 0;
  };
  size_t SlotOf(const Instruction* i) const {
    const size_t mask = table_.size() - 1;
    size_t slot = static_cast<size_t>(i->id()) & mask;
    while (table_[slot].key && table_[slot].key != i) slot = (slot + 1) & mask;
    return slot;
  }
  Entry& EntryOf(const Instruction* i) { return table_[SlotOf(i)]; }
  const Entry& EntryOf(const Instruction* i) const { return table_[SlotOf(i)]; }

  std::vector<Entry> table_;
  int64_t code_ = 0, once_ = 0, arithmetic_ = 0;
};

// Of a shape of rank 1 or more.
int64_t MinorOf(const Shape& shape) {
  return shape.is_row_major() ? shape.rank() - 1 : shape.minor_to_major().front();
}

// Whether it leaves holes between the elements of a row, or fills them with those of others.
bool PutsApart(const Instruction& i) {
  const Shape& shape = i.shape();
  const bool is_concatenate = i.opcode() == Opcode::kConcatenate;
  if ((i.opcode() != Opcode::kPad && !is_concatenate) || shape.rank() == 0) return false;
  const int64_t minor = MinorOf(shape);
  if (!is_concatenate) {
    return i.attributes().Padding(Attr::kPadding)[static_cast<size_t>(minor)].interior != 0;
  }
  return i.dimensions()[0] == minor && shape.num_elements() > shape.dim(minor) &&
         std::ranges::all_of(i.operands(),
                             [&](const Instruction* x) { return x->shape().dim(minor) == 1; });
}

bool AnyPutsApart(const Instruction& i) {
  if (i.opcode() != Opcode::kFusion) return PutsApart(i);
  const Computation& fused = *i.called(0);
  return (fused.MayHold(Opcode::kPad) || fused.MayHold(Opcode::kConcatenate)) &&
         std::ranges::any_of(fused.instructions(),
                             [](const Instruction* member) { return PutsApart(*member); });
}

// Whether it takes elements of a row that are apart.
bool TakesApart(const Instruction& i) {
  if (i.opcode() != Opcode::kSlice || i.shape().rank() == 0) return false;
  const auto minor = static_cast<size_t>(MinorOf(i.shape()));
  return i.attributes().Slices(Attr::kSlice)[minor].stride != 1;
}

// Whether the value is among what is put apart, side by side as it is.
bool IsPutApart(const Instruction& value, int& steps) {
  return std::ranges::any_of(value.users(), [&](const Instruction* user) {
    if (TakesApart(*user)) return false;
    return ++steps > kMostSteps || PutsApart(*user) || IsPutApart(*user, steps);
  });
}

// Whether elements between those of others are put apart again: with each level places would be
// quotients of quotients, and lanes find their elements one by one.
bool PutsApartAgain(const Instruction& producer, const Instruction& consumer) {
  if (!AnyPutsApart(producer) || !AnyPutsApart(consumer)) return false;
  if (consumer.opcode() != Opcode::kFusion) return true;
  for (int64_t i = 0; i < consumer.operand_count(); ++i) {
    int steps = 0;
    if (consumer.operand(i) == &producer && IsPutApart(*consumer.called(0)->parameter(i), steps)) {
      return true;
    }
  }
  return false;
}

// Whether the instruction, or each of a fusion, says no more than where an element is.
bool OnlyMoves(const Instruction& i) {
  if (i.opcode() != Opcode::kFusion) return IsView(i.opcode());
  return std::ranges::all_of(i.called(0)->instructions(), [](const Instruction* member) {
    return member->opcode() == Opcode::kParameter || IsView(member->opcode());
  });
}

}  // namespace

bool WindowsRepeat(const Instruction& producer, const Instruction& consumer) {
  const bool puts_together = PutsTogether(producer);
  if (consumer.opcode() != Opcode::kFusion) {
    return puts_together && consumer.opcode() == Opcode::kTranspose;
  }
  // Parts are made one beside the other, in the order of memory.
  if (puts_together && consumer.called(0)->MayHold(Opcode::kTranspose)) return true;
  if (ReadsPadding(producer, consumer)) return true;
  const bool is_epilogue = IsElementwise(producer.opcode()) && IsEpilogue(producer);
  if (!is_epilogue && !puts_together && producer.opcode() != Opcode::kTranspose) return false;
  for (int64_t i = 0; i < consumer.operand_count(); ++i) {
    if (consumer.operand(i) != &producer) continue;
    int steps = 0;
    if (ReadsOf(*consumer.called(0)->parameter(i), steps) > kFewReads) return true;
  }
  return false;
}

bool IsCode(Opcode opcode) {
  return OpCostOf(opcode) != OpCost::kFree && (!IsView(opcode) || opcode == Opcode::kSlice);
}

bool RepeatsTooMuch(const Instruction& producer, const Instruction& consumer,
                    const Scheduler& scheduler) {
  if (PutsApartAgain(producer, consumer)) return true;
  int64_t reads = 0, own = 0, repeated = 0;
  if (consumer.opcode() != Opcode::kFusion) {
    if (IsElementwise(consumer.opcode())) return false;
    reads = std::ranges::count(consumer.operands(), &producer);
    own = CodeOf(consumer);
  } else if (!MayRepeat(*consumer.called(0))) {
    return false;
  } else {
    const Places places(*consumer.called(0));
    for (int64_t i = 0; i < consumer.operand_count(); ++i) {
      if (consumer.operand(i) == &producer) reads += places.Of(consumer.called(0)->parameter(i));
    }
    own = places.code();
    repeated = places.repeated();
  }
  int64_t code = 0;
  if (producer.opcode() != Opcode::kFusion) {
    code = CodeOf(producer);
  } else if (MayRepeat(*producer.called(0))) {
    const Places places(*producer.called(0));
    code = places.code();
    repeated += places.repeated();
  } else {
    for (const Instruction* i : producer.called(0)->instructions()) code += CodeOf(*i);
  }
  if (own + reads * code > kMaxEvaluations) return true;
  // A view is no work beside that of a kernel which stores it.
  if (reads <= 1 || code == 0 || OnlyMoves(producer)) return false;
  return repeated + (reads - 1) * code >
         kMaxRepeatedCode * scheduler.OpsWorthStoring(producer.shape().byte_size());
}

bool AreFewBeside(const Shape& values, const Shape& others) {
  constexpr int64_t kFewer = 8;
  return values.is_array() && others.is_array() &&
         kFewer * values.num_elements() < others.num_elements();
}

int64_t ArithmeticOf(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kFusion) return Places(*instruction.called(0)).arithmetic();
  return IsElementwise(instruction.opcode()) ? 1 : 0;
}

}  // namespace kiln::kernel
