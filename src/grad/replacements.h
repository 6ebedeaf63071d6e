// Ops with more results, in place of ops with fewer: a loop that returns what its derivative reads.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/builder.h"

namespace kiln::grad {

// The former ops stay, with all their users, until the derivative is complete: if it fails, nothing
// has changed.
class Replacements {
 public:
  explicit Replacements(ir::Computation* computation) : computation_(computation) {}

  // Makes instructions before an op, for its replacement.
  class Early : public ir::Builder {
   public:
    Early(Replacements& replacements, ir::Instruction* op)
        : ir::Builder(op), replacements_(replacements), op_(op) {}

   protected:
    Result<ir::Instruction*> Insert(ir::InstructionSpec& spec, bool is_complete) override;

   private:
    Replacements& replacements_;
    const ir::Instruction* op_;
  };

  // `now`, made by Early, is a tuple that begins with the arrays of op's value, in order.
  void Add(ir::Instruction* op, ir::Instruction* now);
  // The same, for an instruction at the end of the computation.
  void AddLate(ir::Instruction* op, ir::Instruction* now);

  // Gives the users of the former ops the present ones, and removes the former.
  void Commit();
  // What was made before the ops.
  const std::vector<ir::Instruction*>& early() const { return early_; }

  struct Pair {
    ir::Instruction *op, *now;
    ir::Instruction* value;  // op's value by `now`
  };
  // Also after Commit(), when no `op` is there any more.
  const std::vector<Pair>& pairs() const { return pairs_; }
  // The value in place of x, which is x in most cases.
  ir::Instruction* Now(ir::Instruction* x) const;

 private:
  ir::Computation* computation_;
  std::vector<Pair> pairs_;
  std::unordered_map<const ir::Instruction*, ir::Instruction*> values_;
  std::vector<ir::Instruction*> early_;
  bool is_late_ = false;
};

}  // namespace kiln::grad
