// Where a window begins that is cut out of another one, or out of which another one is cut.
#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// A constant index, what is above an int64 being as good as its largest value.
std::optional<int64_t> IndexOf(const ir::Instruction* x, int64_t element = 0);

// min(max(start, 0), room), where the type has both bounds, else null.
ir::Instruction* ClampedStart(ir::Instruction* at, ir::Instruction* start, int64_t room);

// The starts of a window in an array, dimension by dimension, as sums.
class StartSum {
 public:
  // Of a window of `at`'s shape, made before it.
  explicit StartSum(ir::Instruction* at) : at_(at) {}

  // To the current dimension: a start that is clamped to `room`.
  void Add(ir::Instruction* start, int64_t room);
  void AddNumber(int64_t number) { number_ += number; }
  // Ends the dimension, of an array that has `size` elements along it. False where no sum can be
  // made, as its type is too narrow or the types differ.
  bool Next(int64_t size);
  // Whether nothing has to be computed, or it costs less than what is saved where `own` says that
  // it is.
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
