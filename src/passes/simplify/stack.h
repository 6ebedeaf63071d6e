// Scalars side by side as an array.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// Scalars of one expression become an array of that expression. A leaf is the same value for all of
// them, or a constant of each, or their elements are at equal distances in an array.
class Stacking {
 public:
  // Of scalars that `users` alone read. New instructions are made before `at`.
  Stacking(ir::Instruction* at, std::set<const ir::Instruction*> users)
      : at_(at), replaced_(std::move(users)) {}

  // The array, of one dimension, of two or more values of one element each. Null if there is none,
  // or if parts of the expressions have other users.
  ir::Instruction* Make(std::vector<ir::Instruction*> scalars);

 private:
  ir::Instruction* Array(std::vector<ir::Instruction*> scalars);
  ir::Instruction* Constants(const std::vector<ir::Instruction*>& scalars);
  ir::Instruction* Elements(const std::vector<ir::Instruction*>& scalars);
  ir::Instruction* Elementwise(const std::vector<ir::Instruction*>& scalars);

  ir::Instruction* const at_;
  // The instructions without use when the array takes the scalars' place.
  std::set<const ir::Instruction*> replaced_;
  std::map<std::vector<ir::Instruction*>, ir::Instruction*> arrays_;
};

}  // namespace kiln::passes::simplify
