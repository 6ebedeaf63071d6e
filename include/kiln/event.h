/** @file
 *  Events: the end of work that goes on while the caller does something else. */
#ifndef KILN_EVENT_H_
#define KILN_EVENT_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The completion of asynchronous work, and its failure if it failed. \since 0.1 */
typedef struct kiln_event kiln_event;

/** Waits for the event.
 *  @param timeout_ns nanoseconds to wait at most; negative: for as long as it takes; 0: not at all
 *  @return NULL when the work has succeeded, its error when it has failed, DEADLINE_EXCEEDED when
 *          it is still going on
 *
 *  Any thread, any number of them. \since 0.1 */
KILN_API kiln_error* kiln_event_wait(kiln_event* event, int64_t timeout_ns);

/** 1 when the work has ended, well or not; 0 while it goes on. In a child process 1:
 * kiln_event_wait() says more. Any thread. \since 0.1 */
KILN_API int32_t kiln_event_is_ready(const kiln_event* event);

/** Has `callback` called once when the work has ended: at once, on this thread, if it has ended
 *  already, else by a thread of the library.
 *  @param callback gets the work's error, or NULL, borrowed for the call
 *  @param destroy called after `callback`, or when it never comes to be called; may be NULL
 *  @return FAILED_PRECONDITION unless the context was made with callbacks_from_any_thread; then
 *          `destroy` is not called
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_event_on_ready(kiln_event* event,
                                         void (*callback)(void* user_data, const kiln_error* error),
                                         void* user_data, void (*destroy)(void* user_data));

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_event_retain(kiln_event* event);

/** Gives a reference back; NULL is taken. The work goes on. Any thread. \since 0.1 */
KILN_API void kiln_event_release(kiln_event* event);

#ifdef __cplusplus
}
#endif

#endif /* KILN_EVENT_H_ */
