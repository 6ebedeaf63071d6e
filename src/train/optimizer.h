// What an optimiser keeps for each parameter.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "kiln/train.h"
#include "train/value.h"

namespace kiln::train {

// An array of an optimiser's state that belongs to a parameter.
struct Slot {
  enum class Of {
    kElements,  // as the parameter
    kMaster,    // the parameter itself, in the type of the computation
    kRows,      // without the last dimension
    kColumns,   // without the one before
  };
  std::string_view name;
  Of of = Of::kElements;
};

// The slots of a parameter, in order.
std::vector<Slot> SlotsOf(const kiln_optimizer_options& o, const Value& parameter);
// The sizes of a slot.
std::vector<int64_t> DimsOf(const Slot& slot, const Value& parameter);

// The options of an optimiser of `count` parameters.
Result<kiln_optimizer_options> ReadOptimizer(const kiln_optimizer_options* options, size_t count);
inline bool IsDecayed(const kiln_optimizer_options& o, size_t parameter) {
  return o.weight_decay != 0 && (!o.decayed || o.decayed[parameter] != 0);
}

}  // namespace kiln::train
