/** @file
 *  Events of the plugin: events of the library, or no event for work that is done. */
#ifndef KILN_JAX_PLUGIN_EVENT_H_
#define KILN_JAX_PLUGIN_EVENT_H_

#include "kiln/event.h"
#include "plugin/api/event.h"

/** The completion of asynchronous work. */
struct PJRT_Event {
  kiln_event* event = nullptr;  // one reference; NULL: ready, without an error
};

namespace kiln_jax {

/** Makes an event that takes over the reference `event`; NULL for work that is done. Throws
 *  std::bad_alloc, with the reference released. */
PJRT_Event* MakeEvent(kiln_event* event);

PJRT_Error* EventDestroy(PJRT_Event_Destroy_Args* args);
PJRT_Error* EventIsReady(PJRT_Event_IsReady_Args* args);
PJRT_Error* EventError(PJRT_Event_Error_Args* args);
PJRT_Error* EventAwait(PJRT_Event_Await_Args* args);
PJRT_Error* EventOnReady(PJRT_Event_OnReady_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_EVENT_H_
