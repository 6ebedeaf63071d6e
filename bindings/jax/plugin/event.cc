#include "plugin/event.h"

#include <utility>

#include "plugin/error.h"

namespace kiln_jax {
namespace {

/** A callback of the caller, until it has been called. */
struct Callback {
  PJRT_Event_OnReadyCallback function;
  void* user_arg;
};

void Call(void* user_data, const kiln_error* error) {
  // The function may destroy the event, so nothing of it is used here.
  const Callback* callback = static_cast<const Callback*>(user_data);
  callback->function(CopyError(error), callback->user_arg);
}

void Destroy(void* user_data) { delete static_cast<Callback*>(user_data); }

}  // namespace

bool Promise::Set(PJRT_Error_Code code, std::string message) {
  std::vector<Callback> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_ready_) return false;
    code_ = code;
    message_ = std::move(message);
    is_ready_ = true;
    callbacks.swap(callbacks_);
  }
  wake_.notify_all();
  for (const Callback& callback : callbacks) callback.function(Error(), callback.user_arg);
  return true;
}

bool Promise::IsReady() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_ready_;
}

void Promise::Wait() const {
  std::unique_lock<std::mutex> lock(mutex_);
  wake_.wait(lock, [&] { return is_ready_; });
}

PJRT_Error* Promise::Error() const {
  return code_ == PJRT_Error_Code_OK ? nullptr : MakeError(code_, message_);
}

void Promise::OnReady(PJRT_Event_OnReadyCallback function, void* user_arg) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!is_ready_) {
      callbacks_.push_back({function, user_arg});
      return;
    }
  }
  function(Error(), user_arg);
}

PJRT_Error* EventDestroy(PJRT_Event_Destroy_Args* args) {
  delete args->event;
  return nullptr;
}

PJRT_Error* EventIsReady(PJRT_Event_IsReady_Args* args) {
  if (const auto& promise = args->event->promise) {
    args->is_ready = promise->IsReady();
    return nullptr;
  }
  args->is_ready =
      args->event->event == nullptr || kiln_event_is_ready(args->event->event.get()) != 0;
  return nullptr;
}

PJRT_Error* EventError(PJRT_Event_Error_Args* args) {
  const Promise* promise = args->event->promise.get();
  if (promise != nullptr && promise->IsReady()) return promise->Error();
  if (promise == nullptr && args->event->event == nullptr) return nullptr;
  if (promise != nullptr || kiln_event_is_ready(args->event->event.get()) == 0) {
    return MakeError(PJRT_Error_Code_FAILED_PRECONDITION, "the event is not ready");
  }
  return TakeError(kiln_event_wait(args->event->event.get(), -1));
}

PJRT_Error* EventAwait(PJRT_Event_Await_Args* args) {
  if (const std::shared_ptr<Promise> promise = args->event->promise) {
    promise->Wait();
    return promise->Error();
  }
  if (args->event->event == nullptr) return nullptr;
  return TakeError(kiln_event_wait(args->event->event.get(), -1));
}

PJRT_Error* EventOnReady(PJRT_Event_OnReady_Args* args) {
  if (const std::shared_ptr<Promise> promise = args->event->promise) {
    promise->OnReady(args->callback, args->user_arg);
    return nullptr;
  }
  if (args->event->event == nullptr) {
    args->callback(nullptr, args->user_arg);
    return nullptr;
  }
  Callback* callback = new Callback{args->callback, args->user_arg};
  // The callback may release the event before the call returns.
  kiln_event* event = args->event->event.get();
  kiln_event_retain(event);
  const EventHandle owner(event);
  kiln_error* error = kiln_event_on_ready(event, Call, callback, Destroy);
  if (error != nullptr) delete callback;
  return TakeError(error);
}

PJRT_Error* EventCreate(PJRT_Event_Create_Args* args) {
  args->event = new PJRT_Event{nullptr, std::make_shared<Promise>()};
  return nullptr;
}

PJRT_Error* EventSet(PJRT_Event_Set_Args* args) {
  const std::shared_ptr<Promise> promise = args->event->promise;
  std::string message(args->error_message == nullptr ? "" : args->error_message,
                      args->error_message == nullptr ? 0 : args->error_message_size);
  if (promise != nullptr && promise->Set(args->error_code, std::move(message))) return nullptr;
  return MakeError(PJRT_Error_Code_FAILED_PRECONDITION,
                   promise == nullptr ? "the event was not made by PJRT_Event_Create"
                                      : "the event has been set already");
}

}  // namespace kiln_jax
