/** @file
 *  Timelines: what the library did when, in Chrome's trace event format. */
#ifndef KILN_TRACE_H_
#define KILN_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/context.h"
#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A recording of what a context does: passes and compilations, executions, and one bar per kernel
 *  that names its ops. GPUs have lanes of their own, of kernels, copies and graphs. \since 0.1 */
typedef struct kiln_trace kiln_trace;

/** Begins to record everything that the context does, on any thread. Recording costs about a
 *  microsecond per kernel.
 *  @param trace receives one reference, which the caller gives back with kiln_trace_release()
 *  @return FAILED_PRECONDITION while another trace of the context is recording
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_start(kiln_context* context, kiln_trace** trace);

/** Ends the recording; what has ended by then is in it, and transfers to GPUs that are under way,
 *  which are waited for. Ending it twice is no error; so does giving back the last reference.
 *  @return INVALID_ARGUMENT for NULL
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_stop(kiln_trace* trace);

/** What was recorded so far, as a JSON object in Chrome's trace event format, which
 *  chrome://tracing and Perfetto show. Before the end of the recording, some of what GPUs have done
 *  may be missing.
 *  @param text receives one reference, which the caller gives back with kiln_text_release()
 *  @return RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_to_json(const kiln_trace* trace, kiln_text** text);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_trace_retain(kiln_trace* trace);

/** Gives a reference back; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_trace_release(kiln_trace* trace);

#ifdef __cplusplus
}
#endif

#endif /* KILN_TRACE_H_ */
