#include "kiln/event.h"

#include <memory>

#include "base/status.h"
#include "capi/error.h"
#include "capi/handle.h"

using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::NotNull;
using kiln::capi::Unwrap;
using kiln::client::Event;

namespace {

class UsersCallback : public Event::Callback {
 public:
  UsersCallback(void (*function)(void*, const kiln_error*), void* user_data, void (*destroy)(void*))
      : function_(function), user_data_(user_data), destroy_(destroy) {}
  ~UsersCallback() override {
    if (destroy_) destroy_(user_data_);
  }
  void Call(const Status& status) noexcept override {
    kiln_error* error = kiln::capi::ToError(status);
    function_(user_data_, error);
    kiln_error_release(error);
  }

 private:
  void (*function_)(void* user_data, const kiln_error* error);
  void* user_data_;
  void (*destroy_)(void* user_data);
};

}  // namespace

kiln_error* kiln_event_create(kiln_context* context, kiln_event** event) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_event_create", {{"context", context}, {"event", event}}));
    auto made = kiln::MakeRef<Event>(*Unwrap(context));
    made->LeaveToUser();
    *event = kiln::capi::HandOver(std::move(made));
    return kiln::OkStatus();
  });
}

kiln_error* kiln_event_set(kiln_event* event, const kiln_error* failure) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_event_set", {{"event", event}}));
    Status status;
    if (failure) status = Status(failure->code, failure->message);
    if (!Unwrap(event)->TakeFromUser()) {
      return kiln::FailedPrecondition(
          "kiln_event_set: the event is the library's, or has been set");
    }
    Unwrap(event)->Finish(std::move(status));
    return kiln::OkStatus();
  });
}

kiln_error* kiln_event_wait(kiln_event* event, int64_t timeout_ns) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_event_wait", {{"event", event}}));
    Event& waited = *Unwrap(event);
    const bool ready = waited.WaitFor(timeout_ns);
    waited.client().RunDeferred();
    if (!ready) return Status(kiln::Code::kDeadlineExceeded, "the work is still going on");
    return waited.status();
  });
}

int32_t kiln_event_is_ready(const kiln_event* event) {
  if (!event) return 0;
  const Event& asked = *Unwrap(event);
  return asked.is_ready() || asked.client().is_before_fork() ? 1 : 0;
}

kiln_error* kiln_event_on_ready(kiln_event* event,
                                void (*callback)(void* user_data, const kiln_error* error),
                                void* user_data, void (*destroy)(void* user_data)) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_event_on_ready",
                {{"event", event}, {"callback", reinterpret_cast<const void*>(callback)}}));
    Event& awaited = *Unwrap(event);
    if (!awaited.client().callbacks_from_any_thread()) {
      return kiln::FailedPrecondition(
          "kiln_event_on_ready: the context was made without callbacks_from_any_thread");
    }
    awaited.OnReady(std::make_unique<UsersCallback>(callback, user_data, destroy));
    return kiln::OkStatus();
  });
}

void kiln_event_retain(kiln_event* event) { kiln::capi::RetainHandle(event); }

void kiln_event_release(kiln_event* event) { kiln::capi::ReleaseHandle(event); }
