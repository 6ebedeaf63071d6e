// A fusion that grows by its neighbours, in place: its present members stay where they are.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// Between construction and Finish the fusion is not whole. No other fusion may call its
// computation, nor that of a fusion which is taken in.
class FusionGrower {
 public:
  // The fusion, or one around the instruction, in its place.
  explicit FusionGrower(ir::Instruction* kernel);

  // Puts an operand inside, an instruction or a fusion of one output. Take moves it, and only the
  // fusion may use it; Copy leaves it to its other users.
  void Take(ir::Instruction* producer);
  void Copy(const ir::Instruction* producer);
  // Moves another kernel inside, whose outputs become outputs of the fusion, before those that it
  // has, where others use them.
  void TakeKeeping(ir::Instruction* kernel);

  ir::Instruction* Finish();

 private:
  struct Output {
    ir::Instruction* inner;
    ir::Instruction* outer;  // what takes it out of the tuple; null: nothing does, or there is none
  };

  std::vector<ir::Instruction*> Inside(std::span<ir::Instruction* const> values);
  // The values inside for the moved ones.
  std::vector<ir::Instruction*> Move(ir::Instruction* kernel);
  // What was read from outside as `outer` is `inner`.
  void Substitute(const ir::Instruction* outer, ir::Instruction* inner);

  ir::Computation* outer_;
  ir::Instruction* fusion_ = nullptr;
  ir::Computation* body_ = nullptr;
  ir::Instruction* first_ = nullptr;  // after the parameters: what is taken in stands before it
  std::vector<Output> outputs_;
  // Outer values and the parameters that they are inside.
  std::vector<ir::Instruction*> operands_, parameters_;
  size_t at_ = 0;  // where among them new ones are put
  std::string kind_;
};

// HLO's kind of a fusion, by its hero; "kLoop" by default.
std::string FusionKind(const ir::Instruction& instruction);

// The instructions that stand for a kernel's outputs: itself, or what takes its tuple apart (null
// where nothing does; two of the same element are made one).
std::vector<ir::Instruction*> OutputsOf(ir::Instruction* kernel);

}  // namespace kiln::passes
