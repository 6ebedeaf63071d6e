// Reference-counted objects that know whether they have one owner.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ref.h"

namespace kiln {

// As Counted, whose references (Ref) it has.
template <typename T>
class CountedOwners {
 public:
  CountedOwners() = default;
  CountedOwners(const CountedOwners&) = delete;
  CountedOwners& operator=(const CountedOwners&) = delete;

  void Retain() const { owners_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<const T*>(this);
  }
  // Asked by an owner: whether there is no other one. It then sees all that former owners have
  // done.
  bool has_one_owner() const { return owners_.load(std::memory_order_acquire) == 1; }

 protected:
  ~CountedOwners() = default;

 private:
  mutable std::atomic<int64_t> owners_{1};
};

}  // namespace kiln
