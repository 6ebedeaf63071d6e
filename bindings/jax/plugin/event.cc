#include "plugin/event.h"

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

PJRT_Event* MakeEvent(kiln_event* event) {
  PJRT_Event* made = new (std::nothrow) PJRT_Event{event};
  if (made == nullptr) {
    kiln_event_release(event);
    throw std::bad_alloc();
  }
  return made;
}

PJRT_Error* EventDestroy(PJRT_Event_Destroy_Args* args) {
  if (args->event != nullptr) {
    kiln_event_release(args->event->event);
    delete args->event;
  }
  return nullptr;
}

PJRT_Error* EventIsReady(PJRT_Event_IsReady_Args* args) {
  args->is_ready = args->event->event == nullptr || kiln_event_is_ready(args->event->event) != 0;
  return nullptr;
}

PJRT_Error* EventError(PJRT_Event_Error_Args* args) {
  if (args->event->event == nullptr) return nullptr;
  if (kiln_event_is_ready(args->event->event) == 0) {
    return MakeError(PJRT_Error_Code_FAILED_PRECONDITION, "the event is not ready");
  }
  return TakeError(kiln_event_wait(args->event->event, -1));
}

PJRT_Error* EventAwait(PJRT_Event_Await_Args* args) {
  if (args->event->event == nullptr) return nullptr;
  return TakeError(kiln_event_wait(args->event->event, -1));
}

PJRT_Error* EventOnReady(PJRT_Event_OnReady_Args* args) {
  if (args->event->event == nullptr) {
    args->callback(nullptr, args->user_arg);
    return nullptr;
  }
  Callback* callback = new Callback{args->callback, args->user_arg};
  // The callback may release the event before the call returns.
  kiln_event* event = args->event->event;
  kiln_event_retain(event);
  kiln_error* error = kiln_event_on_ready(event, Call, callback, Destroy);
  kiln_event_release(event);
  if (error != nullptr) delete callback;
  return TakeError(error);
}

}  // namespace kiln_jax
