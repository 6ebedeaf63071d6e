// Side data of a computation's instructions: arrays by id where ids are close to each other, as in
// large computations, and a hash table for the others. With a hundred thousand instructions, arrays
// are ten times as fast.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

template <typename T>
class InstructionMap {
 public:
  // For a few instructions of a large computation.
  InstructionMap() = default;
  // Any instruction may be a key; the computation's present ones are found fast.
  explicit InstructionMap(const Computation& computation) {
    const int64_t count = computation.instruction_count();
    if (count == 0) return;
    first_ = computation.instructions().front()->id();
    int64_t last = computation.instructions().back()->id();
    // A fresh computation's ids are in order and without gaps, which saves a walk.
    if (last - first_ + 1 != count) {
      last = first_;
      for (const Instruction* i : computation.instructions()) {
        first_ = std::min(first_, i->id());
        last = std::max(last, i->id());
      }
    }
    // A set's places are small.
    constexpr int64_t kMostPlacesEach = sizeof(std::optional<T>) <= 2 ? 128 : 16;
    const int64_t range = last - first_ + 1;
    if (range <= kMostPlacesEach * count) near_.resize(static_cast<size_t>(range));
  }

  // The value, made where there was none.
  T& operator[](const Instruction* i) {
    if (!IsNear(i)) return far_[i];
    std::optional<T>& place = Place(i);
    return place ? *place : place.emplace();
  }
  // Null where there is none.
  const T* Find(const Instruction* i) const {
    if (IsNear(i)) {
      const std::optional<T>& place = near_[static_cast<size_t>(i->id() - first_)];
      return place ? &*place : nullptr;
    }
    auto it = far_.find(i);
    return it == far_.end() ? nullptr : &it->second;
  }
  const T& at(const Instruction* i) const { return *Find(i); }
  bool contains(const Instruction* i) const { return Find(i) != nullptr; }
  // Whether it was not there; if it was, it stays.
  bool Insert(const Instruction* i, T value) {
    if (!IsNear(i)) return far_.emplace(i, std::move(value)).second;
    std::optional<T>& place = Place(i);
    if (place) return false;
    place = std::move(value);
    return true;
  }

 private:
  bool IsNear(const Instruction* i) const {
    int64_t offset = i->id() - first_;
    return offset >= 0 && offset < static_cast<int64_t>(near_.size());
  }
  std::optional<T>& Place(const Instruction* i) {
    return near_[static_cast<size_t>(i->id() - first_)];
  }

  int64_t first_ = 0;
  std::vector<std::optional<T>> near_;
  std::unordered_map<const Instruction*, T> far_;
};

class InstructionSet {
 public:
  InstructionSet() = default;
  explicit InstructionSet(const Computation& computation) : map_(computation) {}
  // Whether it was not there.
  bool Insert(const Instruction* i) { return map_.Insert(i, {}); }
  bool contains(const Instruction* i) const { return map_.contains(i); }

 private:
  struct Nothing {};
  InstructionMap<Nothing> map_;
};

}  // namespace kiln::ir
