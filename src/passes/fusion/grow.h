// A fusion that grows by its neighbours, in place: its present members stay where they are.
#pragma once

#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// Between construction and Finish the fusion is incomplete. No other fusion may call its
// computation, or the computation of a fusion that it takes in.
class FusionGrower {
 public:
  // The fusion, or one around the instruction, in its place.
  explicit FusionGrower(ir::Instruction* kernel);

  // Puts an operand inside, an instruction or a fusion of one output. Take moves it, and only the
  // fusion may use it; Copy leaves it to its other users.
  void Take(ir::Instruction* producer);
  void Copy(const ir::Instruction* producer);
  // Moves another kernel inside. Outputs of the kernel with other users become outputs of the
  // fusion, before its present outputs.
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
  // Replaces reads of `outer`, from outside, by `inner`.
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

// The instructions for a kernel's outputs: itself, or the elements of its tuple (null for an unused
// element; several of one element become one).
std::vector<ir::Instruction*> OutputsOf(ir::Instruction* kernel);

}  // namespace kiln::passes
