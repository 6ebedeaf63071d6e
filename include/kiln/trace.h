/** @file
 *  Timelines of the library's work, in Chrome's trace event format. */
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

/** A recording of a context's work: passes and compilations, executions, and one bar per kernel
 *  with its ops. GPUs have separate lanes for kernels, copies and graphs. \since 0.1 */
typedef struct kiln_trace kiln_trace;

/** Begins to record all work of the context, on any thread. Recording costs about a microsecond per
 *  kernel.
 *  @param trace receives one reference, to be released with kiln_trace_release()
 *  @return FAILED_PRECONDITION while another trace of the context is recording
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_start(kiln_context* context, kiln_trace** trace);

/** Ends the recording. It contains the work completed by then, and pending transfers to GPUs, which
 *  are awaited. A second call has no effect. The release of the last reference ends the recording,
 *  too.
 *  @return INVALID_ARGUMENT for NULL
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_stop(kiln_trace* trace);

/** The recording so far, as a JSON object in Chrome's trace event format, for chrome://tracing and
 *  Perfetto. Before the end of the recording, some work of GPUs may be missing.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_to_json(const kiln_trace* trace, kiln_text** text);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_trace_retain(kiln_trace* trace);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_trace_release(kiln_trace* trace);

#ifdef __cplusplus
}
#endif

#endif /* KILN_TRACE_H_ */
