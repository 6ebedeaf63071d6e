// Callbacks that wait for a thread of the user.
#pragma once

#include <memory>

#include "base/ref.h"
#include "base/unique_list.h"

namespace kiln::client {

class Client;

// One such call. Allocated in advance, so that deferring it cannot fail.
struct Deferred {
  Deferred();
  virtual ~Deferred();
  virtual void Call() noexcept = 0;

  std::unique_ptr<Deferred> next;
  // Kept alive until the call has been made, if nothing else does.
  Ref<Client> client;
};

// A deleter of the user.
class DeleterCall : public Deferred {
 public:
  DeleterCall(void (*function)(void*), void* user_data)
      : function_(function), user_data_(user_data) {}
  void Call() noexcept override { function_(user_data_); }

 private:
  void (*function_)(void*);
  void* user_data_;
};

// Calls in order.
using DeferredList = UniqueList<Deferred>;

}  // namespace kiln::client
