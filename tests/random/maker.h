// What the makers of random ops share: values to choose from, numbers to choose by, and ops that
// have to be valid.
#pragma once

#include <random>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::testing {

struct RandomSource {
  ir::Module& module;
  ir::Computation& computation;
  std::mt19937_64& random;
  std::span<ir::Instruction* const> values;  // what may be an operand
  int64_t max_elements = 0;
  int max_rank = 0;
  bool rare_types = false;  // whether there may be any of kRareTypes
  bool smooth = false;      // whether there have to be derivatives
};

struct RandomOp {
  std::vector<ir::Instruction*> results;     // arrays
  std::vector<const ir::Instruction*> data;  // the operands that results are made of
  bool rounds = false;                       // of floats: more than moved and compared
};

// Makers derive from it. Where none says otherwise, ops are added to the source's computation.
class RandomMaker {
 public:
  explicit RandomMaker(const RandomSource& source) : source_(source) {}

  int64_t Pick(int64_t low, int64_t high) const {
    return low + static_cast<int64_t>(source_.random() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) const { return Pick(1, 100) <= percent; }
  template <typename T, size_t n>
  const T& OneOf(const T (&choices)[n]) const {
    return choices[Pick(0, static_cast<int64_t>(n) - 1)];
  }
  // A divisor of n, of 12 or less.
  int64_t Divisor(int64_t n) const;

  // Ends the process where the op is not valid: the maker is broken then.
  static ir::Instruction* AddTo(ir::Computation& c, ir::InstructionSpec spec);
  ir::Instruction* Add(ir::InstructionSpec spec) const {
    return AddTo(source_.computation, std::move(spec));
  }
  ir::Instruction* Op(Opcode opcode, std::vector<ir::Instruction*> operands) const {
    return Add({.opcode = opcode, .operands = std::move(operands)});
  }

  static ir::Instruction* ParameterOf(ir::Computation& c, const Shape& shape);
  ir::Instruction* Parameter(const Shape& shape) const {
    return ParameterOf(source_.computation, shape);
  }
  ir::Instruction* Scalar(ElementType type, double value) const;
  ir::Instruction* Full(const Shape& shape, double value) const;
  ir::Instruction* Element(ir::Instruction* tuple, int64_t index) const;

 protected:
  const RandomSource& source_;
};

}  // namespace kiln::testing
