/** @file
 *  Events of the plugin: events of the library, events that the caller sets, or no event for work
 *  that is done. */
#ifndef KILN_JAX_PLUGIN_EVENT_H_
#define KILN_JAX_PLUGIN_EVENT_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugin/api/async.h"
#include "plugin/api/event.h"
#include "plugin/handles.h"

namespace kiln_jax {

/** An event of no client's, to be set once. Any thread. */
class Promise {
 public:
  /** False if it has been set. Calls the callbacks. */
  bool Set(PJRT_Error_Code code, std::string message);
  bool IsReady() const;
  void Wait() const;
  /** Once it is ready: its error, for the caller, or NULL. */
  PJRT_Error* Error() const;
  void OnReady(PJRT_Event_OnReadyCallback function, void* user_arg);

 private:
  struct Callback {
    PJRT_Event_OnReadyCallback function;
    void* user_arg;
  };

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  bool is_ready_ = false;
  PJRT_Error_Code code_ = PJRT_Error_Code_OK;
  std::string message_;
  std::vector<Callback> callbacks_;
};

}  // namespace kiln_jax

/** The completion of asynchronous work. Without event and promise it is ready, without an error. */
struct PJRT_Event {
  kiln_jax::EventHandle event;
  std::shared_ptr<kiln_jax::Promise> promise;
};

namespace kiln_jax {

/** Makes an event of the caller's; NULL for work that is done. */
inline PJRT_Event* MakeEvent(EventHandle event) {
  return new PJRT_Event{std::move(event), nullptr};
}

PJRT_Error* EventDestroy(PJRT_Event_Destroy_Args* args);
PJRT_Error* EventIsReady(PJRT_Event_IsReady_Args* args);
PJRT_Error* EventError(PJRT_Event_Error_Args* args);
PJRT_Error* EventAwait(PJRT_Event_Await_Args* args);
PJRT_Error* EventOnReady(PJRT_Event_OnReady_Args* args);
PJRT_Error* EventCreate(PJRT_Event_Create_Args* args);
PJRT_Error* EventSet(PJRT_Event_Set_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_EVENT_H_
