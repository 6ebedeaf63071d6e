// The users of an instruction: each once, in no particular order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/short_list.h"

namespace kiln::ir {

class Instruction;

// Few have many users, but those have thousands: a parameter, a constant. Their places are kept in
// a table, so that adding and removing one takes the same time for all.
class Users {
 public:
  std::span<Instruction* const> all() const { return list_; }
  bool empty() const { return list_.empty(); }
  // Nothing happens where it is there already, or is not.
  void Add(Instruction* user);
  void Remove(Instruction* user);
  // The user is known not to be there.
  void AddNew(Instruction* user);

 private:
  // The place, or the list's size.
  uint32_t Find(Instruction* user) const;

  ShortList<Instruction*, 2> list_;
  std::unique_ptr<std::unordered_map<Instruction*, uint32_t>> places_;
};

}  // namespace kiln::ir
