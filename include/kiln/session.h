/** @file
 *  Sessions: a graph that runs with feeds and fetches, one op at a time.
 *
 *  This is what execution without compiling whole graphs is: each op is a kernel of its own,
 *  compiled once, kept, and as good as a single op can be. */
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

/** A graph and its kernels, op by op. Any number of threads may run one at once. \since 0.1 */
typedef struct kiln_session kiln_session;

/** How a session is made. Zero everywhere means the defaults. \since 0.1 */
typedef struct kiln_session_options {
  size_t struct_size;  /**< set by kiln_session_options_init() */
  kiln_device* device; /**< where ops run, borrowed; NULL: CPU:0 */
} kiln_session_options;

/** Makes default ::kiln_session_options of a variable. */
#define KILN_SESSION_OPTIONS_INIT \
  { sizeof(kiln_session_options), NULL }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_session_options). A size below
 *  that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_session_options_init(kiln_session_options* options, size_t size);

/** Makes a session of a graph, which is copied; values of the graph that exist now can be fed and
 *  fetched.
 *  @param options may be NULL: the defaults
 *  @param session receives one reference, which the caller gives back with kiln_session_release()
 *  @return the graph's first mistake if it has one; UNIMPLEMENTED for graphs with symbols and for
 *          devices that have no sessions
 *
 *  The graph's thread; the session is used by any. \since 0.1 */
KILN_API kiln_error* kiln_session_create(const kiln_graph* graph,
                                         const kiln_session_options* options,
                                         kiln_session** session);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_session_retain(kiln_session* session);

/** Gives a reference back; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_session_release(kiln_session* session);

/** Compiles what a run with these feeds and fetches needs, where it has not run before, and tells
 *  what it costs.
 *  @param feeds values of the graph that runs will be given
 *  @param fetches values of the graph that runs shall compute
 *  @param info unless NULL, receives kernels, temporary bytes and the time of compiling
 *  @return INVALID_ARGUMENT where a parameter that the fetches need is not among the feeds, naming
 *          it; or where a value is a tuple, fed or fetched twice, or not the graph's
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_prepare(kiln_session* session, const kiln_value* feeds,
                                          size_t feed_count, const kiln_value* fetches,
                                          size_t fetch_count, kiln_program_info* info);

/** Computes `fetches` from `feeds`, and returns when they are there. Any array of the graph can be
 *  fed, not parameters alone: what it would be computed from is then not needed.
 *  @param options may be NULL: the defaults
 *  @param feeds `feed_count` values of the graph
 *  @param feed_buffers a buffer for each, on the session's device, of the value's shape
 *  @param fetches `fetch_count` values of the graph
 *  @param fetch_buffers a place for each, as the results of kiln_executable_run()
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
