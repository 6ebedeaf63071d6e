/** @file
 *  Functions: a graph called with arguments of any shapes that fit its symbols. */
#ifndef KILN_FUNCTION_H_
#define KILN_FUNCTION_H_

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

/** A graph with its programs, one for each set of sizes that occurred. Any number of threads may
 *  call one concurrently. \since 0.1 */
typedef struct kiln_function kiln_function;

/** The options of a function. Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_function_options {
  size_t struct_size;  /**< set by kiln_function_options_init() */
  kiln_device* device; /**< the device of ops without a mark, borrowed; NULL: CPU:0 */
  /** 1: the graph is compiled as a whole for one device, and an op that cannot be compiled is an
   *  error naming it; 0: in clusters by TensorFlow's rules (::kiln_session), the rest runs op by
   *  op. */
  int32_t must_compile;
  /** 1: a program for new sizes is compiled at their second call, and for no more sizes once 10
   *  compiles have had fewer than 50 calls each; until then calls run op by op. 0: at the first
   * call. Not with `must_compile`. */
  int32_t lazy;
  /** The most programs kept of each cluster; the least recently used one goes. 0: 64. */
  int64_t max_programs;
  /** 1: clusters are compiled by a thread of the library, and run op by op until that is done. Not
   *  with `must_compile`. Contexts without asynchronous work (one thread; an allocator for the
   *  caller's threads only) compile at once. */
  int32_t asynchronous_compilation;
  int32_t reserved; /**< 0 */
} kiln_function_options;

/** Makes default ::kiln_function_options of a variable. */
#define KILN_FUNCTION_OPTIONS_INIT \
  { sizeof(kiln_function_options), NULL, 0, 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_function_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_function_options_init(kiln_function_options* options, size_t size);

/** The work of a function so far. \since 0.1 */
typedef struct kiln_function_info {
  size_t struct_size; /**< set by the caller to sizeof(kiln_function_info) */
  int64_t calls;      /**< runs of clusters and op-by-op parts, together */
  int64_t compiles;   /**< programs made */
  int64_t fallbacks;  /**< runs of clusters op by op, as their sizes were not compiled yet */
  int64_t evictions;  /**< programs dropped beyond `max_programs` */
  int64_t programs;   /**< programs kept now */
} kiln_function_info;

/** Makes a ::kiln_function_info of a variable. */
#define KILN_FUNCTION_INFO_INIT \
  { sizeof(kiln_function_info), 0, 0, 0, 0, 0 }

/** Makes a function of a copy of a graph: its arguments are the graph's parameters, and its results
 *  the leaves of the graph's result. A graph without symbols is compiled at once.
 *  @param options may be NULL: the defaults
 *  @param function receives one reference, to be released with kiln_function_release()
 *  @return the graph's first error, if any; FAILED_PRECONDITION if it has no results; UNIMPLEMENTED
 *         for tuples as parameters; INVALID_ARGUMENT naming op and device, if an op is marked with
 * a device that does not exist, or must be compiled and cannot be
 *
 *  The graph's thread; the function may be used by any thread. \since 0.1 */
KILN_API kiln_error* kiln_function_create(const kiln_graph* graph,
                                          const kiln_function_options* options,
                                          kiln_function** function);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_function_retain(kiln_function* function);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_function_release(kiln_function* function);

/** Calls the function, and returns when the results are ready. The first call with new sizes makes
 *  programs for them.
 *  @param options may be NULL: the defaults
 *  @param arguments a buffer for each parameter, on any device of the context; it is copied to
 * other devices that need it
 *  @param results a place for each result, as for kiln_executable_run()
 *  @return INVALID_ARGUMENT if shapes do not fit the parameters, or each other where a symbol
 * occurs several times; errors of compiling as kiln_function_create(); otherwise as
 *         kiln_executable_run()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_function_call(kiln_function* function,
                                        const kiln_execute_options* options,
                                        kiln_buffer* const* arguments, size_t argument_count,
                                        kiln_buffer** results, size_t result_count);

/** The number of results; 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_function_result_count(const kiln_function* function);

/** Reports the work of the function so far.
 *  @return INVALID_ARGUMENT if `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_function_statistics(kiln_function* function, kiln_function_info* info);

#ifdef __cplusplus
}
#endif

#endif /* KILN_FUNCTION_H_ */
