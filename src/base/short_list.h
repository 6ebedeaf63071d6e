// A vector of small values that stores a few of them inline: short lists need no allocation and no
// second cache line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

namespace kiln {

template <typename T, uint32_t kOwn>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ShortList() = default;
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  // A move swaps the two.
  ShortList(ShortList&& other) noexcept { *this = std::move(other); }
  ShortList& operator=(ShortList&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~ShortList() {
    if (capacity_ > kOwn) delete[] place_.elsewhere;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return capacity_ > kOwn ? place_.elsewhere : place_.own; }
  const T* data() const { return capacity_ > kOwn ? place_.elsewhere : place_.own; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t k) { return data()[k]; }
  const T& operator[](size_t k) const { return data()[k]; }

  void push_back(T value) {
    if (size_ == capacity_) Grow(2 * capacity_);
    data()[size_++] = value;
  }
  void erase(T* at) {
    std::copy(at + 1, end(), at);
    --size_;
  }
  void truncate(T* end) { size_ = static_cast<uint32_t>(end - data()); }
  // `values` must not be elements of this list.
  void assign(std::span<const T> values) {
    size_ = 0;
    if (values.size() > capacity_) Grow(static_cast<uint32_t>(values.size()));
    std::ranges::copy(values, data());
    size_ = static_cast<uint32_t>(values.size());
  }

 private:
  void Grow(uint32_t capacity) {
    T* place = new T[capacity];
    std::copy(begin(), end(), place);
    if (capacity_ > kOwn) delete[] place_.elsewhere;
    place_.elsewhere = place;
    capacity_ = capacity;
  }

  uint32_t size_ = 0, capacity_ = kOwn;
  union {
    T own[kOwn];
    T* elsewhere;
  } place_ = {};
};

}  // namespace kiln
