#include "stablehlo/import/fold.h"

#include <algorithm>
#include <vector>

#include "interp/interpreter.h"
#include "ir/analysis/effects.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// Shapes are a few numbers, and so is what they are computed from.
constexpr int64_t kMostBytes = int64_t{1} << 24;      // of one value
constexpr int64_t kMostInAll = int64_t{1} << 28;      // of all values
constexpr int64_t kMostWork = int64_t{1} << 24;       // as the evaluator counts it, for one value
constexpr int64_t kMostWorkInAll = int64_t{1} << 28;  // and for all values
constexpr int64_t kMostCalled = 10'000;               // instructions of computations
constexpr int kMostCalls = 10;                        // inside of each other

}  // namespace

bool Folder::MayFold(const ir::Computation& computation, int depth) {
  if (depth > kMostCalls) return false;
  auto [known, fresh] = foldable_.try_emplace({&computation, depth}, false);
  if (!fresh) return known->second;
  bool may = computation.instruction_count() <= kMostCalled;
  for (const Instruction* i : computation.instructions()) {
    if (!may) break;
    may = i->opcode() == Opcode::kParameter || MayFold(*i, depth);
  }
  return foldable_[{&computation, depth}] = may;
}

// Whether an op gives the same value wherever and whenever it is run, and takes no more memory than
// there is for that.
bool Folder::MayFold(const Instruction& instruction, int depth) {
  if (HasTrait(instruction.opcode(), kSideEffect) || DependsOnProcess(instruction.opcode())) {
    return false;
  }
  switch (instruction.opcode()) {
    case Opcode::kParameter:
    case Opcode::kRng:
    case Opcode::kAfterAll:
    case Opcode::kCustomCall:
      return false;
    default:
      break;
  }
  if (!instruction.shape().is_static() || instruction.shape().byte_size() > kMostBytes) {
    return false;
  }
  for (const ir::Computation* called : instruction.called()) {
    if (!MayFold(*called, depth + 1)) return false;
  }
  return true;
}

std::shared_ptr<const Literal> Folder::Find(const Instruction* instruction) {
  // Operands first, without recursion: chains may be long.
  std::vector<const Instruction*> stack = {instruction};
  while (!stack.empty()) {
    const Instruction* at = stack.back();
    if (values_.contains(at)) {
      stack.pop_back();
      continue;
    }
    if (at->IsConstant()) {
      values_[at] = at->shared_literal();
      continue;
    }
    if (!MayFold(*at, 0)) {
      values_[at] = nullptr;
      continue;
    }
    bool known = true, ready = true;
    for (const Instruction* operand : at->operands()) {
      auto found = values_.find(operand);
      if (found == values_.end()) {
        stack.push_back(operand);
        ready = false;
      } else if (!found->second) {
        known = false;
      }
    }
    if (!known) {
      values_[at] = nullptr;
    } else if (ready) {
      values_[at] = Evaluate(*at);
    }
  }
  return values_.at(instruction);
}

std::shared_ptr<const Literal> Folder::Evaluate(const Instruction& instruction) {
  std::vector<const Literal*> operands;
  int64_t bytes = instruction.shape().byte_size();
  for (const Instruction* operand : instruction.operands()) {
    operands.push_back(values_.at(operand).get());
    bytes += operand->shape().byte_size();
  }
  evaluated_bytes_ += bytes;
  if (evaluated_bytes_ > kMostInAll) return nullptr;
  Result<Literal> value =
      interp::EvaluateInstruction(instruction, operands,
                                  {.max_work = std::min(kMostWork, kMostWorkInAll - work_),
                                   .work_done = &work_,
                                   .interrupt = interrupt_});
  return value.ok() ? std::make_shared<const Literal>(*std::move(value)) : nullptr;
}

}  // namespace kiln::stablehlo
