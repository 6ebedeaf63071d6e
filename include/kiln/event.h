/** @file
 *  Events: the completion of asynchronous work. */
#ifndef KILN_EVENT_H_
#define KILN_EVENT_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/context.h"
#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The completion of asynchronous work, and its error if it failed. \since 0.1 */
typedef struct kiln_event kiln_event;

/** Makes an event that is ready when kiln_event_set() is called. It must be called: work that waits
 *  for the event waits until then, and so does the release of the last reference to the context.
 *  @param event receives one reference, to be released with kiln_event_release()
 *  @return RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_event_create(kiln_context* context, kiln_event** event);

/** Makes an event of kiln_event_create() ready, once.
 *  @param failure NULL, or the error of the event, which is copied
 *  @return FAILED_PRECONDITION for other events, and for one that has been set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_event_set(kiln_event* event, const kiln_error* failure);

/** Waits for the event.
 *  @param timeout_ns the longest wait in nanoseconds; negative: no limit; 0: no wait
 *  @return NULL if the work has succeeded, its error if it has failed, DEADLINE_EXCEEDED if it is
 *         still in progress
 *
 *  Any thread, any number of them. \since 0.1 */
KILN_API kiln_error* kiln_event_wait(kiln_event* event, int64_t timeout_ns);

/** 1 if the work has ended, with or without an error, 0 while it is in progress. In a child process
 *  1; kiln_event_wait() returns the error. Any thread. \since 0.1 */
KILN_API int32_t kiln_event_is_ready(const kiln_event* event);

/** Has `callback` called once at the end of the work: at once, on this thread, if it has ended
 *  already, otherwise by a thread of the library.
 *  @param callback gets the work's error, or NULL, borrowed for the call. It must not wait for
 *         other work of the context
 *  @param destroy called after `callback`, or when it will never be called; may be NULL
 *  @return FAILED_PRECONDITION unless the context was created with callbacks_from_any_thread;
 *         `destroy` is not called then
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_event_on_ready(kiln_event* event,
                                         void (*callback)(void* user_data, const kiln_error* error),
                                         void* user_data, void (*destroy)(void* user_data));

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_event_retain(kiln_event* event);

/** Releases a reference; NULL is allowed. The work continues. Any thread. \since 0.1 */
KILN_API void kiln_event_release(kiln_event* event);

#ifdef __cplusplus
}
#endif

#endif /* KILN_EVENT_H_ */
