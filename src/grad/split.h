// A computation and its derivative as two: the forward part, which returns what the backward part
// reads, its residuals.
#pragma once

#include <vector>

#include "grad/body.h"
#include "ir/instruction_map.h"

namespace kiln::grad {

// What the backward part has of an argument of the forward part without storing it.
enum class Held : uint8_t {
  kNo,
  kYes,        // its value
  kInvariant,  // its value, the same in each iteration of a loop
};

class Split {
 public:
  struct Parts {
    const ir::Instruction* last;  // of the forward part
    size_t arguments;             // of the forward part; the others are cotangents
    std::vector<Held> held;       // of these arguments
    bool recomputes = false;      // all that can be
  };
  // The body ends with the instructions of its derivative; `cotangents` are the derivative's
  // results, null where there is none.
  Split(Body& body, Parts parts, std::span<ir::Instruction* const> cotangents);

  // What the backward part reads: held arguments, by their numbers, and other values of the forward
  // part. Cheap values are not among them: they are computed again.
  const std::vector<size_t>& arguments() const { return arguments_; }
  const std::vector<ir::Instruction*>& residuals() const { return residuals_; }

  // Copies the backward part to the end of a body. `made` has the values of arguments() and
  // residuals() there, and of the arguments for cotangents. Returns the derivative's results.
  std::vector<ir::Instruction*> CopyBackward(Body& to,
                                             ir::InstructionMap<ir::Instruction*>& made) const;
  // Leaves the forward part alone in the body.
  void DropBackward();

 private:
  void FindHeld();
  void FindRead();
  bool IsTail(const ir::Instruction* i) const { return tail_.contains(i); }
  bool IsRecomputed(const ir::Instruction& i) const;
  Held HeldOf(const ir::Instruction& i) const;

  Body& body_;
  Parts parts_;
  std::vector<ir::Instruction*> cotangents_;
  std::vector<ir::Instruction*> tail_list_;
  ir::InstructionSet tail_;
  ir::InstructionMap<size_t> numbers_;  // of arguments
  ir::InstructionMap<Held> held_;       // of values of the forward part
  std::vector<size_t> arguments_;
  std::vector<ir::Instruction*> residuals_;
  std::vector<ir::Instruction*> copied_;  // into the backward part
};

}  // namespace kiln::grad
