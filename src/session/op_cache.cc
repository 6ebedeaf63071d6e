#include <utility>

#include "session/op_by_op.h"

namespace kiln::session {

std::shared_ptr<const CompiledOp> OpCache::Find(const std::string& text) {
  std::lock_guard lock(mutex_);
  auto it = by_text_.find(text);
  if (it == by_text_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->op;
}

void OpCache::Insert(std::string text, std::shared_ptr<const CompiledOp> op) {
  std::lock_guard lock(mutex_);
  // Another thread may have compiled it, too.
  if (by_text_.contains(text)) return;
  entries_.push_front({std::move(text), std::move(op)});
  by_text_.emplace(entries_.front().text, entries_.begin());
  if (entries_.size() <= bound_) return;
  by_text_.erase(entries_.back().text);
  entries_.pop_back();
}

size_t OpCache::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace kiln::session
