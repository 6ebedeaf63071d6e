#include "kernel/repeats.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

using ir::Instruction;

// An element is read so often before its work counts as repeated.
constexpr double kFewReads = 1.5;
constexpr int64_t kManyPlaces = 9;
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

}  // namespace kiln::kernel
