// Calls of the user's functions that wait for a thread of his.
#pragma once

#include <memory>
#include <utility>

#include "capi/handle.h"
#include "kiln/context.h"

namespace kiln::capi {

// One such call. Made beforehand, so that putting it off cannot fail.
struct Deferred {
  Deferred();
  virtual ~Deferred();
  virtual void Call() noexcept = 0;

  std::unique_ptr<Deferred> next;
  // Kept until the call has been made, where nothing else does that.
  Ref<kiln_context> context;
};

// Calls in the order in which they came. Of any length: it goes without recursion.
class DeferredList {
 public:
  DeferredList() = default;
  ~DeferredList() {
    while (TakeFirst()) {
    }
  }
  DeferredList(const DeferredList&) = delete;
  DeferredList& operator=(const DeferredList&) = delete;

  void Append(std::unique_ptr<Deferred> call) noexcept {
    Deferred* added = call.get();
    (last_ ? last_->next : first_) = std::move(call);
    last_ = added;
  }
  // Null where there is none.
  std::unique_ptr<Deferred> TakeFirst() noexcept {
    std::unique_ptr<Deferred> call = std::move(first_);
    if (call) first_ = std::move(call->next);
    if (!first_) last_ = nullptr;
    return call;
  }
  void Swap(DeferredList& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
  }

 private:
  std::unique_ptr<Deferred> first_;
  Deferred* last_ = nullptr;
};

}  // namespace kiln::capi
