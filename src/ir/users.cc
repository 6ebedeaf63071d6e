#include "ir/users.h"

#include <algorithm>

namespace kiln::ir {
namespace {

// Longer lists have a table.
constexpr size_t kMostSearched = 32;

}  // namespace

uint32_t Users::Find(Instruction* user) const {
  if (places_) {
    auto it = places_->find(user);
    return it == places_->end() ? static_cast<uint32_t>(list_.size()) : it->second;
  }
  return static_cast<uint32_t>(std::ranges::find(list_, user) - list_.begin());
}

void Users::Add(Instruction* user) {
  if (Find(user) == list_.size()) AddNew(user);
}

void Users::AddNew(Instruction* user) {
  if (places_) places_->emplace(user, list_.size());
  list_.push_back(user);
  if (!places_ && list_.size() > kMostSearched) {
    places_ = std::make_unique<std::unordered_map<Instruction*, uint32_t>>();
    for (uint32_t k = 0; k < list_.size(); ++k) places_->emplace(list_[k], k);
  }
}

void Users::Remove(Instruction* user) {
  uint32_t at = Find(user);
  if (at == list_.size()) return;
  if (!places_) return list_.erase(list_.begin() + at);
  Instruction* last = *(list_.end() - 1);
  list_[at] = last;
  (*places_)[last] = at;
  places_->erase(user);
  list_.truncate(list_.end() - 1);
}

}  // namespace kiln::ir
