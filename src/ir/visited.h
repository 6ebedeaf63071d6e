// The instructions that a search has met, by id. Many searches, one after the other, share the
// memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

class Visited {
 public:
  // Begins a search, which has met nothing.
  void Clear() { ++search_; }
  // Whether the search had not met it.
  bool Insert(const Instruction* i) {
    const auto id = static_cast<size_t>(i->id());
    if (id >= last_.size()) last_.resize(2 * id + 1, 0);
    return std::exchange(last_[id], search_) != search_;
  }

 private:
  int64_t search_ = 1;
  std::vector<int64_t> last_;  // the last search that met it
};

}  // namespace kiln::ir
