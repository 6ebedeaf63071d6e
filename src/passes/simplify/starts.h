// The start of a slice within another slice.
#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// An element of constant indices, or of a repeated constant; values above int64's range become its
// largest value.
std::optional<int64_t> IndexOf(const ir::Instruction* x, int64_t element = 0);

// min(max(start, 0), room), or null if the type of `start` lacks `room`.
ir::Instruction* ClampedStart(ir::Instruction* at, ir::Instruction* start, int64_t room);

// The starts of a slice in an array: a sum for each dimension.
class StartSum {
 public:
  // Of a slice of `at`'s shape, made before it.
  explicit StartSum(ir::Instruction* at) : at_(at) {}

  // Adds a start, clamped to `room`, to the current dimension.
  void Add(ir::Instruction* start, int64_t room);
  void AddNumber(int64_t number) { number_ += number; }
  // Ends the dimension, of `size` elements in the array. False if there is no sum: its type is too
  // narrow, or types differ.
  bool Next(int64_t size);
  // Whether the sums are free, or cost less than `saved`. Nothing is saved unless `own`.
  bool IsWorth(bool own, int64_t saved) const { return cost_ == 0 || (own && cost_ < saved); }
  // The sums.
  std::vector<ir::Instruction*> Make();

 private:
  struct Term {
    ir::Instruction* start;
    int64_t room;
  };
  struct Sum {
    std::vector<Term> terms;
    int64_t number;
  };

  ir::Instruction* at_;
  std::vector<Sum> sums_;
  std::vector<Term> terms_;
  int64_t number_ = 0;
  ElementType type_ = ElementType::kS32;
  bool has_type_ = false;
  int64_t cost_ = 0;
};

}  // namespace kiln::passes::simplify
