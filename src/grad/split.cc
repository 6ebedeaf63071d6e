#include "grad/split.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "grad/reverse.h"
#include "ir/analysis/effects.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

bool IsElement(const Instruction& i) { return i.opcode() == Opcode::kGetTupleElement; }

// An op that costs nothing beside what it moves, or counts for a loop.
bool IsCheap(const Instruction& i) {
  if (IsFreeToRepeat(i.opcode()) || i.opcode() == Opcode::kCopy) return true;
  const Shape& shape = i.shape();
  return shape.is_scalar() && !IsDifferentiable(shape) && i.called().empty();
}

// Whether the operands take less memory than the result, of which they are a form.
bool HasSmallOperands(const Instruction& i) {
  if (i.opcode() == Opcode::kTuple) return true;
  if (!IsFreeToRepeat(i.opcode()) && i.opcode() != Opcode::kConvert) return false;
  if (!i.shape().is_array() || IsElement(i)) return false;
  if (!i.shape().is_static())
    return i.opcode() == Opcode::kBroadcast || i.opcode() == Opcode::kReshape;
  int64_t bytes = 0;
  for (const Instruction* x : i.operands()) {
    if (!x->shape().is_static()) return false;
    bytes += x->shape().byte_size();
  }
  return bytes <= i.shape().byte_size();
}

}  // namespace

Split::Split(Body& body, Parts parts, std::span<Instruction* const> cotangents)
    : body_(body),
      parts_(std::move(parts)),
      cotangents_(cotangents.begin(), cotangents.end()),
      tail_(*body.computation()),
      numbers_(*body.computation()),
      held_(*body.computation()) {
  for (size_t k = 0; k < body.arguments().size(); ++k) numbers_[body.arguments()[k]] = k;
  for (Instruction* i : InstructionsBehind(parts_.last)) {
    // An element that the derivative takes belongs to what it is taken from.
    const bool is_forward = IsElement(*i) && !IsTail(i->operand(0)) && !numbers_.contains(i);
    if (is_forward) continue;
    tail_.Insert(i);
    tail_list_.push_back(i);
  }
  FindHeld();
  FindRead();
}

// An argument's is known, another value's is the least of its operands, where it is cheap to
// compute again; values that no iteration changes cost what they cost before.
void Split::FindHeld() {
  for (const Instruction* i : body_.computation()->instructions()) {
    if (IsTail(i)) continue;
    if (const size_t* number = numbers_.Find(i)) {
      if (*number < parts_.arguments) held_[i] = parts_.held[*number];
      continue;
    }
    if (i->opcode() == Opcode::kParameter) continue;
    Held least = Held::kInvariant;
    for (const Instruction* x : i->operands()) least = std::min(least, HeldOf(*x));
    if (least == Held::kNo || !ir::IsPure(*i)) continue;
    if (least == Held::kInvariant || IsCheap(*i)) held_[i] = least;
  }
}

Held Split::HeldOf(const Instruction& i) const {
  const Held* held = held_.Find(&i);
  return held ? *held : Held::kNo;
}

bool Split::IsRecomputed(const Instruction& i) const {
  if (HeldOf(i) != Held::kNo) return true;
  if (parts_.recomputes && ir::IsPure(i)) return true;
  return HasSmallOperands(i) && ir::IsPure(i);
}

void Split::FindRead() {
  ir::InstructionSet read(*body_.computation());
  for (Instruction* x : cotangents_) {
    if (x) read.Insert(x);
  }
  const std::vector<Instruction*> all = AllOf(*body_.computation());
  for (Instruction* i : std::ranges::reverse_view(all)) {
    if (!read.contains(i)) continue;
    if (const size_t* number = numbers_.Find(i)) {
      if (*number >= parts_.arguments) continue;
      if (parts_.held[*number] == Held::kNo) {
        residuals_.push_back(i);
      } else {
        arguments_.push_back(*number);
      }
    } else if (IsTail(i) || IsRecomputed(*i)) {
      copied_.push_back(i);
      for (const Instruction* x : i->operands()) read.Insert(x);
    } else if (i->shape().is_array()) {
      residuals_.push_back(i);
    } else {
      body_.builder().Fail(Unimplemented("'", i->name(), "': ", OpcodeName(i->opcode()),
                                         " of shape ", i->shape(),
                                         " is read by the derivative as a whole"));
    }
  }
  std::ranges::reverse(arguments_);
  std::ranges::reverse(residuals_);
  std::ranges::reverse(copied_);
}

std::vector<Instruction*> Split::CopyBackward(Body& to,
                                              ir::InstructionMap<Instruction*>& made) const {
  for (const Instruction* i : copied_) {
    std::vector<Instruction*> operands;
    for (const Instruction* x : i->operands()) operands.push_back(made.at(x));
    made[i] = CopyOf(*i, std::move(operands), *to.computation());
  }
  std::vector<Instruction*> results;
  for (const Instruction* x : cotangents_) results.push_back(x ? made.at(x) : nullptr);
  return results;
}

void Split::DropBackward() {
  for (Instruction* i : std::ranges::reverse_view(tail_list_)) {
    if (!numbers_.contains(i)) body_.computation()->Remove(i);
  }
  body_.DropArguments(parts_.arguments);
}

}  // namespace kiln::grad
