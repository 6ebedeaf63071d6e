#include "interp/reducer.h"

#include <cstring>
#include <unordered_map>

#include "interp/narrow.h"

namespace kiln::interp {

using ir::Computation;
using ir::Instruction;

std::optional<Reducer> Reducer::Make(const Computation& computation) {
  Reducer reducer;
  std::unordered_map<const Instruction*, size_t> slot_of;
  // Lines have pointers into the slots, which do not move from here on.
  reducer.slots_.resize(static_cast<size_t>(computation.instruction_count()));
  reducer.parameters_.resize(computation.parameters().size());
  for (Instruction* owned : computation.instructions()) {
    const Instruction& i = *owned;
    if (i.opcode() == Opcode::kTuple && &i == computation.root()) continue;
    if (!i.shape().is_scalar()) return std::nullopt;
    size_t slot = slot_of.size();
    slot_of.emplace(&i, slot);
    std::byte* memory = reducer.At(slot);
    if (i.opcode() == Opcode::kParameter) {
      reducer.parameters_[static_cast<size_t>(i.attributes().Int(Attr::kParameterNumber))] = slot;
    } else if (i.opcode() == Opcode::kConstant) {
      std::memcpy(memory, i.literal().data(), static_cast<size_t>(i.literal().byte_size()));
    } else if (IsElementwise(i.opcode()) || ir::IsScalarBitcast(i)) {
      Line line{&i, {}, memory};
      for (const Instruction* operand : i.operands()) {
        line.operands.push_back(
            {reducer.At(slot_of.at(operand)), operand->shape().type(), /*repeats=*/false});
      }
      reducer.lines_.push_back(std::move(line));
    } else {
      return std::nullopt;
    }
  }
  const Instruction* root = computation.root();
  if (root->opcode() == Opcode::kTuple) {
    for (const Instruction* operand : root->operands()) {
      reducer.results_.push_back(slot_of.at(operand));
    }
  } else {
    reducer.results_.push_back(slot_of.at(root));
  }
  return reducer;
}

Status Reducer::Apply() {
  for (const Line& line : lines_) {
    if (ir::IsScalarBitcast(*line.instruction)) {
      const ElementwiseOperand& from = line.operands[0];
      std::memcpy(line.out, from.data, static_cast<size_t>(ByteWidth(from.type)));
      Normalise(line.instruction->shape().type(), line.out, 1);
      continue;
    }
    KILN_RETURN_IF_ERROR(EvaluateElementwise(*line.instruction, line.operands, line.out, 1));
  }
  return OkStatus();
}

}  // namespace kiln::interp
