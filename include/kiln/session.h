/** @file
 *  Sessions: a graph run with feeds and fetches, one op at a time.
 *
 *  Each op is a kernel of its own, compiled once, cached, and optimised as a single op. */
#ifndef KILN_SESSION_H_
#define KILN_SESSION_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/buffer.h"
#include "kiln/device.h"
#include "kiln/error.h"
#include "kiln/executable.h"
#include "kiln/export.h"
#include "kiln/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph and its kernels, op by op. Any number of threads may run one concurrently. \since 0.1 */
typedef struct kiln_session kiln_session;

/** The options of a session. Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_session_options {
  size_t struct_size;  /**< set by kiln_session_options_init() */
  kiln_device* device; /**< the device of the ops, borrowed; NULL: CPU:0 */
} kiln_session_options;

/** Makes default ::kiln_session_options of a variable. */
#define KILN_SESSION_OPTIONS_INIT \
  { sizeof(kiln_session_options), NULL }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_session_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_session_options_init(kiln_session_options* options, size_t size);

/** Makes a session of a copy of a graph; the graph's present values can be fed and fetched.
 *  @param options may be NULL: the defaults
 *  @param session receives one reference, to be released with kiln_session_release()
 *  @return the graph's first error, if any; UNIMPLEMENTED for graphs with symbols and for devices
 *         without sessions
 *
 *  The graph's thread; the session may be used by any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_create(const kiln_graph* graph,
                                         const kiln_session_options* options,
                                         kiln_session** session);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_session_retain(kiln_session* session);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_session_release(kiln_session* session);

/** Compiles the ops of a run with these feeds and fetches, unless cached, and reports its cost.
 *  @param feeds values of the graph to be fed
 *  @param fetches values of the graph to be computed
 *  @param info unless NULL, receives kernels, temporary bytes and the compile time
 *  @return INVALID_ARGUMENT if a parameter needed by the fetches is not fed, naming it; or if a
 *         value is a tuple, fed or fetched twice, or another graph's
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_prepare(kiln_session* session, const kiln_value* feeds,
                                          size_t feed_count, const kiln_value* fetches,
                                          size_t fetch_count, kiln_program_info* info);

/** Computes `fetches` from `feeds`, and returns when they are ready. Any array of the graph can be
 *  fed, not only parameters: its own inputs are then not needed.
 *  @param options may be NULL: the defaults
 *  @param feeds `feed_count` values of the graph
 *  @param feed_buffers a buffer for each, on the session's device, of the value's shape
 *  @param fetches `fetch_count` values of the graph
 *  @param fetch_buffers a place for each, as for the results of kiln_executable_run()
 *  @return as kiln_session_prepare() and kiln_executable_run()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_run(kiln_session* session, const kiln_execute_options* options,
                                      const kiln_value* feeds, kiln_buffer* const* feed_buffers,
                                      size_t feed_count, const kiln_value* fetches,
                                      kiln_buffer** fetch_buffers, size_t fetch_count);

#ifdef __cplusplus
}
#endif

#endif /* KILN_SESSION_H_ */
