// Typed ids: indices into lists. An id of one list cannot be taken for an id of another.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace kiln {

// The index of a thing of the kind that `Tag` names; by default it is not valid. It costs no more
// than the int in it.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto index) : value_(static_cast<int>(index)) {}

  constexpr bool valid() const { return value_ >= 0; }
  constexpr int value() const { return value_; }
  // Of a valid one.
  constexpr size_t index() const { return static_cast<size_t>(value_); }

  constexpr Id& operator++() {
    ++value_;
    return *this;
  }
  constexpr Id& operator--() {
    --value_;
    return *this;
  }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  int value_ = -1;
};

template <typename Tag>
void AppendTo(std::string& out, Id<Tag> id) {
  AppendTo(out, id.value());
}

}  // namespace kiln

template <typename Tag>
struct std::hash<kiln::Id<Tag>> {
  size_t operator()(kiln::Id<Tag> id) const { return id.index(); }
};

namespace kiln {

// All ids from `first` up to `last`, which is not among them: a view, also backwards.
template <typename Key>
class IdRange {
 public:
  class Iterator {
   public:
    using iterator_concept = std::bidirectional_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Key;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Key;

    constexpr Iterator() = default;
    constexpr explicit Iterator(Key id) : id_(id) {}
    constexpr Key operator*() const { return id_; }
    constexpr Iterator& operator++() {
      ++id_;
      return *this;
    }
    constexpr Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    constexpr Iterator& operator--() {
      --id_;
      return *this;
    }
    constexpr Iterator operator--(int) {
      Iterator before = *this;
      --*this;
      return before;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    Key id_;
  };

  constexpr IdRange(Key first, Key last) : first_(first), last_(last) {}
  constexpr Iterator begin() const { return Iterator(first_); }
  constexpr Iterator end() const { return Iterator(last_); }

 private:
  Key first_, last_;
};

}  // namespace kiln

template <typename Key>
inline constexpr bool std::ranges::enable_view<kiln::IdRange<Key>> = true;

namespace kiln {

// A vector indexed by Key, an Id type.
template <typename Key, typename T>
class IdVector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  IdVector() = default;
  explicit IdVector(std::vector<T> items) : std::vector<T>(std::move(items)) {}

  decltype(auto) operator[](Key id) { return std::vector<T>::operator[](id.index()); }
  decltype(auto) operator[](Key id) const { return std::vector<T>::operator[](id.index()); }

  // The id of the next element at the end.
  Key next() const { return Key(this->size()); }
  // Adds an element at the end, and returns its id.
  Key Add(T item) {
    this->push_back(std::move(item));
    return Key(this->size() - 1);
  }
  // The id of the last element; not valid where there is none.
  Key last() const { return Key(this->size() - 1); }
  // The ids of all elements, in order; or of those from `first` on.
  IdRange<Key> ids() const { return {Key(0), next()}; }
  IdRange<Key> ids(Key first) const { return {first, next()}; }
};

}  // namespace kiln
