// Intrusively reference-counted objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace kiln {

// An object begins with one reference, and is destroyed with the last one. Any thread.
template <typename T>
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void Retain() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete static_cast<const T*>(this);
  }
  // Asked with a reference: whether there is no other one. The caller then sees all that the former
  // ones were used for.
  bool has_one_reference() const { return references_.load(std::memory_order_acquire) == 1; }

 protected:
  ~Counted() = default;

 private:
  mutable std::atomic<int64_t> references_{1};
};

// One reference.
template <typename T>
class Ref {
 public:
  Ref() = default;
  // Adopts an existing reference, such as that of a new object.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref Share(T* object) {
    if (object) object->Retain();
    return Adopt(object);
  }
  Ref(const Ref& other) : object_(other.object_) {
    if (object_) object_->Retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->Release();
  }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref&) const = default;
  // Releases ownership of the reference.
  T* Detach() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>::Adopt(new T(std::forward<Args>(args)...));
}

}  // namespace kiln
