/** @file
 *  Timelines of the library's work, in Chrome's trace event format and in XLA's. */
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

/** A recording of the work of a context, or of single runs: passes and compilations, executions,
 *  transfers, and one bar per kernel with its ops, inside the bar of its execution. Each device is
 * a process of the timeline with its threads as lanes. GPUs have separate lanes for kernels, copies
 *  and graphs. \since 0.1 */
typedef struct kiln_trace kiln_trace;

/** Begins to record all work of the context, on any thread. Recording costs about a microsecond per
 *  kernel.
 *  @param trace receives one reference, to be released with kiln_trace_release()
 *  @return FAILED_PRECONDITION while another trace of the context is recording
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_start(kiln_context* context, kiln_trace** trace);

/** Makes a trace of single runs: those whose options name it (::kiln_execute_options). It has their
 *  executions, kernels and transfers, and no compilations. Any number of runs may record into one,
 *  at once too.
 *  @param trace receives one reference, to be released with kiln_trace_release()
 *  @return INVALID_ARGUMENT for NULL
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_create(kiln_context* context, kiln_trace** trace);

/** Ends a recording of kiln_trace_start(). It contains the work completed by then, and pending
 * transfers to GPUs, which are awaited. A second call has no effect. The release of the last
 * reference ends the recording, too.
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

/** The recording so far, as a serialised XSpace, the protocol buffer of XLA's profiler
 * (xplane.proto), for TensorBoard, XProf and jax.profiler.ProfileData: a plane for each device, a
 * line for each of its threads, and the arguments of events as stats. Lines begin at times of the
 * system's clock.
 *  @param bytes receives one reference, to be released with kiln_text_release(); the bytes may
 *         contain zeros
 *  @return RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_to_xspace(const kiln_trace* trace, kiln_text** bytes);

/** The sums of a recording, by op and device, as TensorFlow's RunMetadata. Does not change, and any
 *  thread may read it. \since 0.1 */
typedef struct kiln_run_metadata kiln_run_metadata;

/** The work of one op on one device. The text belongs to the ::kiln_run_metadata. \since 0.1 */
typedef struct kiln_op_metadata {
  size_t struct_size; /**< set by the caller to sizeof(kiln_op_metadata) */
  const char* op;     /**< the name of the op; the names of ops fused into one kernel, separated by
                           ", "; the name of an executable; or, of transfers, "CPU:0 to GPU:0" */
  size_t op_length;   /**< its number of characters */
  const char* device; /**< the device that did the work; of transfers, their source, or their
                           destination if the source is the host */
  size_t device_length; /**< its number of characters */
  const char* kind; /**< "kernel"; "call": a function on the host, called by a program; "host": an
                         op evaluated on the host; "transfer": a copy between devices or with the
                         host; "copy": a copy or fill by a GPU; "execute": a program or cluster as
                         a whole, its kernels included. Null-terminated, and static */
  int64_t count;    /**< how often */
  int64_t nanoseconds; /**< the time in all */
  int64_t bytes;       /**< bytes read and written by kernels, or copied, in all */
  int64_t flops;       /**< floating-point operations in all */
} kiln_op_metadata;

/** Makes a ::kiln_op_metadata of a variable. */
#define KILN_OP_METADATA_INIT \
  { sizeof(kiln_op_metadata), NULL, 0, NULL, 0, NULL, 0, 0, 0, 0 }

/** The sums of the recording so far.
 *  @param metadata receives one reference, to be released with kiln_run_metadata_release()
 *  @return RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_trace_metadata(const kiln_trace* trace, kiln_run_metadata** metadata);

/** The number of rows; 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_run_metadata_count(const kiln_run_metadata* metadata);

/** A row: an op of one device and kind. The rows with the most time come first.
 *  @param op receives the row
 *  @return INVALID_ARGUMENT for an index beyond the last, or if `op->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_run_metadata_get(const kiln_run_metadata* metadata, size_t index,
                                           kiln_op_metadata* op);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_run_metadata_retain(kiln_run_metadata* metadata);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_run_metadata_release(kiln_run_metadata* metadata);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_trace_retain(kiln_trace* trace);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_trace_release(kiln_trace* trace);

#ifdef __cplusplus
}
#endif

#endif /* KILN_TRACE_H_ */
