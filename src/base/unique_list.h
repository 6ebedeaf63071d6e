// An intrusive list: adding an element allocates nothing.
#pragma once

#include <memory>
#include <utility>

namespace kiln {

// T has a member `std::unique_ptr<T> next`. Destroyed without recursion, for any length.
template <typename T>
class UniqueList {
 public:
  UniqueList() = default;
  ~UniqueList() {
    while (TakeFirst()) {
    }
  }
  UniqueList(const UniqueList&) = delete;
  UniqueList& operator=(const UniqueList&) = delete;

  bool is_empty() const { return !first_; }
  void Append(std::unique_ptr<T> element) noexcept {
    T* added = element.get();
    (last_ ? last_->next : first_) = std::move(element);
    last_ = added;
  }
  // Null if empty.
  std::unique_ptr<T> TakeFirst() noexcept {
    std::unique_ptr<T> element = std::move(first_);
    if (element) first_ = std::move(element->next);
    if (!first_) last_ = nullptr;
    return element;
  }
  void Swap(UniqueList& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
  }

 private:
  std::unique_ptr<T> first_;
  T* last_ = nullptr;
};

}  // namespace kiln
