/** @file
 *  Sessions: a graph run with feeds and fetches, its ops placed on devices and compiled in clusters
 *  or run one by one.
 *
 *  A session takes the part of the graph needed by the fetches. It places each op on a device: the
 *  device of its mark (kiln_graph_push_device(), kiln_graph_set_device()), or the session's. It
 *  finds clusters by TensorFlow's rules, by the JIT level and by marks
 * (kiln_graph_push_jit_scope()), and compiles each as a whole. Ops of XLA_CPU and XLA_GPU devices
 * are always compiled. All other ops run one by one: each is a kernel of its own, compiled once and
 * cached. Values needed on another device are copied there; clusters and single ops of one device
 * share them without a copy.
 *
 *  Called graphs (kiln_op_call()) are parts of the graph: their ops are placed and compiled by
 * their own marks, or else by those of the call, and are named "call_op"; their values cannot be
 * fed or fetched, the call's can. Calls that must be compiled (kiln_graph_set_must_compile()),
 * loops and conditionals are single ops. */
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

/** A graph and its kernels. Any number of threads may run one concurrently. \since 0.1 */
typedef struct kiln_session kiln_session;

/** The options of a session. Members that are 0 have their defaults, or the values of flags of the
 *  environment.
 *
 *  The JIT level decides which ops are compiled in clusters, beside ops of XLA_CPU and XLA_GPU
 *  devices and calls that must be compiled: KILN_JIT_DEFAULT takes marked ops (those of a jit
 * scope), KILN_JIT_ON all ops not marked otherwise, KILN_JIT_OFF none. Lists of ops are HLO opcodes
 * and TensorFlow's groups PW, RED, PWRED, REDUCEWINDOW, REDUCEWINDOWPW, BN, Conv, SORT, MISC,
 * FUSIBLE, separated by commas. \since 0.1 */
typedef struct kiln_session_options {
  size_t struct_size;  /**< set by kiln_session_options_init() */
  kiln_device* device; /**< the device of ops without a mark, borrowed; NULL: CPU:0 */
  kiln_jit jit;        /**< the JIT level */
  /** 1: ops marked with a missing device move to the first device of the same kind, or else to
   *  `device`, with a line of the log (info) each; 0: they are errors. */
  int32_t soft_placement;
  /** With KILN_JIT_ON, the number of ops that a cluster needs, without constants, copies and
   *  tuples; 0: 4. */
  int64_t min_cluster_size;
  int64_t max_cluster_size; /**< most ops of a cluster; 0: no limit */
  /** The number of ops that may be in clusters, in the order of the graph, plus 1; 0: no limit. For
   *  bisecting. */
  int64_t cluster_fuel;
  const char* ops_to_cluster;        /**< the ops that may be in clusters; NULL: all */
  size_t ops_to_cluster_length;      /**< its number of characters */
  const char* cluster_exclude_ops;   /**< the ops that may not; NULL: none */
  size_t cluster_exclude_ops_length; /**< its number of characters */
  int32_t no_cpu_clustering; /**< 1: KILN_JIT_ON is KILN_JIT_DEFAULT for ops on CPU devices */
  int32_t lazy;              /**< as kiln_function_options::lazy, for clusters of varying sizes */
  int32_t asynchronous_compilation; /**< as in ::kiln_function_options */
  /** 1: each cluster is compiled before it runs, or the run fails and names the op; 0: a cluster
   * may run op by op. Not with `lazy` or `asynchronous_compilation`. */
  int32_t strict;
  int64_t memory_limit_bytes; /**< kiln_compile_options::memory_limit_bytes of each cluster */
} kiln_session_options;

/** Makes default ::kiln_session_options of a variable. */
#define KILN_SESSION_OPTIONS_INIT \
  { sizeof(kiln_session_options), NULL, 0, 0, 0, 0, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_session_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_session_options_init(kiln_session_options* options, size_t size);

/** Makes a session of a copy of a graph; the graph's present values can be fed and fetched. Symbols
 *  (kiln_graph_symbol()) get their sizes from the buffers fed to each run; programs are made for
 * the sizes that occur, and the last 64 of each cluster are kept.
 *  @param options may be NULL: the defaults
 *  @param session receives one reference, to be released with kiln_session_release()
 *  @return the graph's first error, if any; INVALID_ARGUMENT for options out of range
 *
 *  The graph's thread; the session may be used by any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_create(const kiln_graph* graph,
                                         const kiln_session_options* options,
                                         kiln_session** session);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_session_retain(kiln_session* session);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_session_release(kiln_session* session);

/** The value with a name, for runs: as kiln_graph_find_value(), of the values that the graph had
 * when the session was made. The graph may be gone.
 *  @return NOT_FOUND; INVALID_ARGUMENT for an origin of several values
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_find_value(const kiln_session* session, const char* name,
                                             size_t name_length, kiln_value* value);

/** Places, clusters and compiles a run with these feeds, fetches and targets, unless cached, and
 *  reports its cost. A cluster that cannot be compiled will run op by op, with a line of the log
 *  (warning); ops of XLA_CPU and XLA_GPU devices, calls that must be compiled and clusters of
 *  strict sessions are errors instead.
 *  @param feeds values of the graph to be fed
 *  @param fetches arrays of the graph to be computed
 *  @param targets values of the graph, of any shape, to be computed without a result: for their
 *         side effects, as those of assignments, prints and assertions
 *  @param info unless NULL, receives kernels, temporary bytes and the compile time
 *  @return INVALID_ARGUMENT if a parameter needed by the fetches is not fed, naming it; or if a
 *         feed or fetch is no array, fed or fetched twice, or a value another graph's; naming op
 * and device, if an op is marked with a device that does not exist, or must be compiled and cannot
 * be
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_prepare(kiln_session* session, const kiln_value* feeds,
                                          size_t feed_count, const kiln_value* fetches,
                                          size_t fetch_count, const kiln_value* targets,
                                          size_t target_count, kiln_program_info* info);

/** Computes `fetches` and `targets` from `feeds`, and returns when they are ready. Any array of the
 *  graph can be fed, not only parameters: its own inputs are then not needed.
 *  @param options may be NULL: the defaults
 *  @param feeds `feed_count` values of the graph
 *  @param feed_buffers a buffer for each, of the value's shape, on any device of the context; it is
 *         copied to other devices that need it
 *  @param fetches `fetch_count` values of the graph
 *  @param fetch_buffers a place for each, as for the results of kiln_executable_run()
 *  @param targets as in kiln_session_prepare(); NULL if `target_count` is 0
 *  @return as kiln_session_prepare() and kiln_executable_run()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_run(kiln_session* session, const kiln_execute_options* options,
                                      const kiln_value* feeds, kiln_buffer* const* feed_buffers,
                                      size_t feed_count, const kiln_value* fetches,
                                      kiln_buffer** fetch_buffers, size_t fetch_count,
                                      const kiln_value* targets, size_t target_count);

/** Explains a run with these feeds, fetches and targets: for each op a line with its device and its
 * cluster, or the reason why it is in none. Compiles nothing.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return as kiln_session_prepare()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_explain(kiln_session* session, const kiln_value* feeds,
                                          size_t feed_count, const kiln_value* fetches,
                                          size_t fetch_count, const kiln_value* targets,
                                          size_t target_count, kiln_text** text);

/** The ops of a run with these feeds, fetches and targets in Graphviz's language: a colour for each
 * device, and a box for each cluster. Compiles nothing.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return as kiln_session_prepare()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_to_dot(kiln_session* session, const kiln_value* feeds,
                                         size_t feed_count, const kiln_value* fetches,
                                         size_t fetch_count, const kiln_value* targets,
                                         size_t target_count, kiln_text** text);

/** @name Variables
 *  A variable is an array with a name, whose value outlives runs. The graph's ops
 * kiln_op_variable(), kiln_op_assign() and kiln_op_assign_add() declare it, and read and assign it
 * in their order. A run sees the values of its start. The values that it assigns are set at its
 * end, all at once: a run that fails or is cancelled sets none. Runs that assign a variable follow
 * each other; others go on meanwhile, with the values that they began with.
 *
 *  A run updates a variable in its memory if nobody else has the value, neither the user nor
 * another run, and otherwise sets a new array. It does so in the last part of its work, once
 * nothing can fail, if that part has no loops and calls and is short: some 20 ms. It then ignores
 * its cancel flag, and whoever asks for the value waits for its end. If the device is lost in those
 * milliseconds, the variables have no value afterwards. */
/** @{ */

/** The number of the session's variables; 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_session_variable_count(const kiln_session* session);

/** The name of a variable, in alphabetical order, null-terminated; lives as long as the session.
 * NULL for a number beyond the last. `length`, unless NULL, receives the number of characters. Any
 * thread. \since 0.1 */
KILN_API const char* kiln_session_variable_name(const kiln_session* session, size_t index,
                                                size_t* length);

/** Sets the value of a variable to a copy of a buffer, on the buffer's device.
 *  @return NOT_FOUND if the graph has no such variable; INVALID_ARGUMENT for another type or shape
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_set_variable(kiln_session* session, const char* name,
                                               size_t name_length, kiln_buffer* value);

/** The value of a variable. Later assignments do not change the buffer, and runs cannot write it.
 *  @param value receives one reference, to be released with kiln_buffer_release()
 *  @return NOT_FOUND if the graph has no such variable; FAILED_PRECONDITION if it has no value yet
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_variable(kiln_session* session, const char* name,
                                           size_t name_length, kiln_buffer** value);

/** Writes all variables to a file in the safetensors format (kiln/safetensors.h), with the values
 * of one moment. A file at `path` is replaced once the new one is complete and on the disk.
 *  @return FAILED_PRECONDITION if a variable has no value yet; errors of the system
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_save(kiln_session* session, const char* path, size_t path_length);

/** Sets all variables, at once, from a file in the safetensors format, on the session's device.
 * Other arrays of the file are ignored.
 *  @return INVALID_ARGUMENT with all mistakes, if a variable is missing there, or of another type
 * or shape; then none is set; errors of the system
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_session_restore(kiln_session* session, const char* path,
                                          size_t path_length);

/** @} */

#ifdef __cplusplus
}
#endif

#endif /* KILN_SESSION_H_ */
