// Computations that differentiation makes: copies of called ones, with arguments and results for
// derivatives.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "grad/builder.h"
#include "grad/options.h"

namespace kiln::grad {

// Which of a list of arrays: not of bools, whose list is no span.
using Flags = std::vector<char>;

// A computation of arrays to arrays, which it takes as a parameter each, or as the elements of one,
// and returns as a tuple.
class Body {
 public:
  enum class Takes : uint8_t { kEach, kTuple };

  // Without arguments.
  Body(ir::Module& module, std::string_view name, Takes takes);
  // A copy of a computation of the module, whose arguments and results are the leaves of its
  // parameters and its root. What it calls is part of it, but for calls with rules and marks of
  // their own.
  Body(const ir::Computation& original, Takes takes);

  ir::Computation* computation() const { return builder_.computation(); }
  Builder& builder() { return builder_; }
  const std::vector<ir::Instruction*>& arguments() const { return arguments_; }
  const std::vector<ir::Instruction*>& results() const { return results_; }
  ir::Instruction* AddArgument(const Shape& shape);
  // That an argument is always a number, so that the trip counts of loops inside are known. The
  // results still have the argument.
  void Bind(size_t argument, const ir::Instruction& constant);
  // Keeps the first ones. The others must be unused.
  void DropArguments(size_t kept);

  // Of the arguments that are given the results depend on.
  Flags ActiveResults(const Options& options, const Flags& arguments);
  // Whether a result with a flag depends on the arguments, as far as these have one.
  Flags ReachedArguments(const Options& options, const Flags& arguments, const Flags& results);

  // Both modes: adds the tangents of the results, given those of arguments, or the cotangents of
  // the arguments with a flag, given those of results. Null stands for zero.
  std::vector<ir::Instruction*> Tangents(const Options& options,
                                         std::span<ir::Instruction* const> of_arguments);
  std::vector<ir::Instruction*> Cotangents(const Options& options, const Flags& arguments,
                                           std::span<ir::Instruction* const> of_results);

  // Makes the results, and others, the computation's.
  ir::Computation* Return(std::span<ir::Instruction* const> others = {});
  // Of a loop's condition: the only result, as it is.
  ir::Computation* ReturnOne();
  // For a computation that is not needed.
  void Clear() { computation()->Clear(); }
  const Status& status() const { return builder_.status(); }

 private:
  std::vector<ir::Instruction*> Flagged(const Flags& arguments) const;
  void Commit(std::vector<ir::Instruction*>& derivatives);

  Takes takes_;
  Builder builder_;
  std::vector<ir::Instruction*> arguments_, results_;
};

// A copy of an instruction, for other operands; an element of a tuple that is made is that element.
ir::Instruction* CopyOf(const ir::Instruction& i, std::vector<ir::Instruction*> operands,
                        ir::Computation& to);

// The instructions of a computation, in order.
std::vector<ir::Instruction*> AllOf(const ir::Computation& computation);

}  // namespace kiln::grad
