/** @file
 *  Custom calls: functions of the user's that programs call by name, on every device. */
#ifndef KILN_CUSTOM_CALL_H_
#define KILN_CUSTOM_CALL_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/builder.h"
#include "kiln/context.h"
#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/graph.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An array in the host's memory, while a custom call runs. \since 0.1 */
typedef struct kiln_call_array {
  size_t struct_size;  /**< sizeof(kiln_call_array) of the library */
  kiln_dtype dtype;    /**< the type of its elements */
  int32_t reserved;    /**< 0 */
  size_t rank;         /**< number of dimensions */
  const int64_t* dims; /**< `rank` sizes */
  void* data;          /**< the elements in row-major order, at a multiple of KILN_ALIGNMENT; only a
                            result's may be written */
  int64_t byte_size;   /**< of the elements */
} kiln_call_array;

/** What a custom call's function gets; all of it is borrowed until the function returns. Tuples are
 *  taken apart, in order, and tokens left out. \since 0.1 */
typedef struct kiln_custom_call {
  size_t struct_size;                     /**< sizeof(kiln_custom_call) of the library */
  const char* target;                     /**< the name that is called */
  size_t target_length;                   /**< its number of bytes */
  const char* backend_config;             /**< the text that the op has for the function */
  size_t backend_config_length;           /**< its number of bytes */
  const kiln_call_array* const* operands; /**< what the function reads */
  size_t operand_count;                   /**< number of `operands` */
  const kiln_call_array* const* results;  /**< what it fills in; their contents are undefined
                                               before, but that one in an operand's memory has that
                                               operand's `data` */
  size_t result_count;                    /**< number of `results` */
} kiln_custom_call;

/** Registers the function that custom calls of a target run, in programs that are compiled from
 *  then on for any device of the context. On a GPU the arrays are copied to the host and back.
 *  @param target what the calls name, not empty
 *  @param function returns NULL, or an error (see kiln_error_create()), which it hands over: then
 *         the execution fails with it. It may be called by several threads at once, must not throw,
 *         and must not use the context's objects
 *  @param user_data the first argument of both functions
 *  @param destroy called once when nothing can call `function` any more; may be NULL. Not called
 *         where this fails
 *  @return ALREADY_EXISTS where the target has a function, INVALID_ARGUMENT for targets that the
 *          library deals with itself: names that begin with "kiln." and markers ("Sharding")
 *
 *  Unless kiln_context_options::callbacks_from_any_thread is set, both are called only on threads
 *  that are inside a call of this library: executions of programs with such calls are done by the
 *  thread that asks for them. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_register_call(
    kiln_context* context, const char* target, size_t target_length,
    kiln_error* (*function)(void* user_data, const kiln_custom_call* call), void* user_data,
    void (*destroy)(void* user_data));

/** What kiln_op_custom_call() may be told beside. Zero everywhere means the defaults. \since 0.1 */
typedef struct kiln_custom_call_options {
  size_t struct_size;           /**< set by kiln_custom_call_options_init() */
  const char* backend_config;   /**< a text for the function; NULL: "" */
  size_t backend_config_length; /**< its number of bytes */
  const int64_t* aliases;       /**< for each result the number of the operand, an array of the same
                                     shape, in whose memory the function finds it, or -1; NULL: none */
  size_t alias_count;           /**< 0, or the number of results */
  int32_t has_side_effect;      /**< 1: it is run though nobody needs its results */
  int32_t reserved;             /**< 0 */
} kiln_custom_call_options;

/** Makes default ::kiln_custom_call_options of a variable. */
#define KILN_CUSTOM_CALL_OPTIONS_INIT \
  { sizeof(kiln_custom_call_options), NULL, 0, NULL, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_custom_call_options). A size
 *  below that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_custom_call_options_init(kiln_custom_call_options* options, size_t size);

/** Calls a function of the user's; see kiln_context_register_call(), which may come later, but
 *  before the graph is compiled. No two calls become one, and none is made where a value is known
 *  beforehand.
 *  @param operands what the function gets; may be NULL with count 0
 *  @param results the shapes of the results: of each `dtype`, `rank` and `dims` count
 *  @param result_count one: the value is an array; else it is a tuple of so many
 *  @param options may be NULL: the defaults
 *  @return the op's value; 0 after a mistake
 *
 *  One thread at a time per graph. \since 0.1 */
KILN_API kiln_value kiln_op_custom_call(kiln_graph* graph, const char* target, size_t target_length,
                                        const kiln_value* operands, size_t operand_count,
                                        const kiln_shape* const* results, size_t result_count,
                                        const kiln_custom_call_options* options);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUSTOM_CALL_H_ */
