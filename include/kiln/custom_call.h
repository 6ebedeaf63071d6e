/** @file
 *  Custom calls: the user's functions, called by programs by name, on every device. */
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

/** An array in host memory during a custom call. \since 0.1 */
typedef struct kiln_call_array {
  size_t struct_size;            /**< sizeof(kiln_call_array) of the library */
  kiln_dtype dtype;              /**< the type of its elements */
  int32_t reserved;              /**< 0 */
  size_t rank;                   /**< number of dimensions */
  const int64_t* dims;           /**< `rank` sizes */
  void* data;                    /**< the elements in the order of `minor_to_major`, aligned to
                                      KILN_ALIGNMENT; only results may be written. NULL in
                                      kiln_call_handler::instantiate */
  int64_t byte_size;             /**< of the elements */
  const int64_t* minor_to_major; /**< the `rank` dimensions in the order of memory, the one with
                                      contiguous elements first: `rank` - 1, ..., 0 is row-major */
} kiln_call_array;

/** The kind of a ::kiln_call_attribute. \since 0.1 */
typedef int32_t kiln_call_attribute_kind;
enum {
  KILN_CALL_SCALAR = 1,     /**< one number */
  KILN_CALL_ARRAY = 2,      /**< `count` numbers */
  KILN_CALL_STRING = 3,     /**< `count` bytes of text */
  KILN_CALL_DICTIONARY = 4, /**< `count` attributes */
};

/** An attribute of a custom call of api_version 4. \since 0.1 */
typedef struct kiln_call_attribute {
  size_t struct_size;            /**< sizeof(kiln_call_attribute) of the library */
  const char* name;              /**< its name */
  size_t name_length;            /**< its number of bytes */
  kiln_call_attribute_kind kind; /**< the kind of value */
  kiln_dtype dtype;              /**< the type of the numbers, KILN_PRED for booleans; else 0 */
  size_t count;                  /**< 1 for a scalar, else see the kinds */
  const void* data;              /**< the numbers, aligned for their type; the text, with a 0
                                      behind it; NULL for a dictionary */
  const struct kiln_call_attribute* const* members; /**< those of a dictionary, sorted by name;
                                                         else NULL */
} kiln_call_attribute;

/** The arguments of a custom call's function, borrowed until it returns. Tuples are flattened, in
 *  order, and tokens are omitted. \since 0.1 */
typedef struct kiln_custom_call {
  size_t struct_size;                     /**< sizeof(kiln_custom_call) of the library */
  const char* target;                     /**< the name of the called function */
  size_t target_length;                   /**< its number of bytes */
  const char* backend_config;             /**< the op's text for the function */
  size_t backend_config_length;           /**< its number of bytes */
  const kiln_call_array* const* operands; /**< the inputs */
  size_t operand_count;                   /**< number of `operands` */
  const kiln_call_array* const* results;  /**< the outputs, uninitialised on entry; an output in an
                                               operand's memory has that operand's `data` */
  size_t result_count;                    /**< number of `results` */
  int32_t api_version;     /**< XLA's calling convention: 1 original, 2 with a status, 3 with a
                                status and the text, 4 typed attributes */
  int32_t has_side_effect; /**< 1 if the call is marked so */
  const kiln_call_attribute* const* attributes; /**< with api_version 4 those of the dictionary in
                                                     `backend_config`, sorted by name */
  size_t attribute_count;                       /**< number of `attributes` */
  const int64_t*
      aliases; /**< for each result the number of the operand whose memory it is, or -1 */
  void* state; /**< what kiln_call_handler::instantiate made, else NULL */
} kiln_custom_call;

/** Registers the function of a custom-call target, for programs compiled afterwards for any device
 *  of the context. On a GPU the arrays are copied to the host and back.
 *  @param target the name in the calls, not empty
 *  @param function returns NULL, or hands over an error (see kiln_error_create()), which becomes
 *         the execution's. It may be called by several threads at once, must not throw, and must
 *         not use the context's objects, except on a device of the host of a context with
 *         callbacks_from_any_thread: there it may request work, and wait for it
 *  @param user_data the first argument of both functions
 *  @param destroy called once when `function` can no longer be called; may be NULL. Not called on
 *         failure
 *  @return ALREADY_EXISTS if the target has a function, INVALID_ARGUMENT for targets of the library
 *         itself: names that begin with "kiln." and markers ("Sharding")
 *
 *  Unless kiln_context_options::callbacks_from_any_thread is set, both are called only on threads
 *  inside a call of this library: programs with such calls are executed by the calling thread. Any
 *  thread. \since 0.1 */
KILN_API kiln_error* kiln_context_register_call(
    kiln_context* context, const char* target, size_t target_length,
    kiln_error* (*function)(void* user_data, const kiln_custom_call* call), void* user_data,
    void (*destroy)(void* user_data));

/** The functions of a custom-call target. Members that are 0 are absent. \since 0.1 */
typedef struct kiln_call_handler {
  size_t struct_size; /**< set by kiln_call_handler_init() */
  /** Runs a call, as in kiln_context_register_call(). Required. */
  kiln_error* (*execute)(void* user_data, const kiln_custom_call* call);
  /** Called once for each call of a program, as it is compiled or loaded: checks the call, and
   * makes the state that `execute` finds in it, or leaves NULL. An error fails the compilation.
   * Calls on the device REFERENCE and of single ops in sessions have a new state for each run. */
  kiln_error* (*instantiate)(void* user_data, const kiln_custom_call* call, void** state);
  /** Releases a state that is not NULL, when its program is gone. */
  void (*destroy_state)(void* user_data, void* state);
  void* user_data;                  /**< the first argument of all functions */
  void (*destroy)(void* user_data); /**< called once when nothing can be called any more */
} kiln_call_handler;

/** Makes a ::kiln_call_handler without functions of a variable. */
#define KILN_CALL_HANDLER_INIT \
  { sizeof(kiln_call_handler), NULL, NULL, NULL, NULL, NULL }

/** Sets `size` bytes at `handler` to absent functions; pass sizeof(kiln_call_handler). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_call_handler_init(kiln_call_handler* handler, size_t size);

/** Registers the functions of a custom-call target, like kiln_context_register_call(), whose
 * threads, errors and rules they have. Programs are compiled on several threads, so `instantiate`
 * needs kiln_context_options::callbacks_from_any_thread.
 *  @param handler copied; nothing of it is called on failure
 *  @return as kiln_context_register_call(); FAILED_PRECONDITION for `instantiate` without that
 * option
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_register_call_handler(kiln_context* context, const char* target,
                                                        size_t target_length,
                                                        const kiln_call_handler* handler);

/** The options of kiln_op_custom_call(). Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_custom_call_options {
  size_t struct_size;           /**< set by kiln_custom_call_options_init() */
  const char* backend_config;   /**< a text for the function; NULL: "". With api_version 4 a
                                     dictionary in MLIR's text: {a = 1 : i32, b = "text"} */
  size_t backend_config_length; /**< its number of bytes */
  const int64_t* aliases;       /**< for each result the number of the operand, an array of the same
                                     shape, that it shares memory with, or -1; NULL: none */
  size_t alias_count;           /**< 0, or the number of results */
  int32_t has_side_effect;      /**< 1: it is run even if its results are unused */
  int32_t api_version;          /**< kiln_custom_call::api_version, from 1 to 4; 0: 1 */
  const int64_t* operand_layouts; /**< kiln_call_array::minor_to_major of all operands, one behind
                                       the other, with api_version 4; NULL: they are row-major */
  size_t operand_layout_count;    /**< number of `operand_layouts`: the sum of the ranks, or 0 */
  const int64_t* result_layouts;  /**< the same of the results */
  size_t result_layout_count;     /**< number of `result_layouts`: the sum of the ranks, or 0 */
} kiln_custom_call_options;

/** Makes default ::kiln_custom_call_options of a variable. */
#define KILN_CUSTOM_CALL_OPTIONS_INIT \
  { sizeof(kiln_custom_call_options), NULL, 0, NULL, 0, 0, 0, NULL, 0, NULL, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_custom_call_options). NULL, or
 *  a size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_custom_call_options_init(kiln_custom_call_options* options, size_t size);

/** Calls a function of the user; see kiln_context_register_call(), to be called before the graph is
 *  compiled. Calls are never merged and never evaluated at compile time.
 *  @param operands the inputs of the function; may be NULL with count 0
 *  @param results the shapes of the results; their `dtype`, `rank` and `dims` are read
 *  @param result_count with 1 the value is an array, otherwise a tuple of this size
 *  @param options may be NULL: the defaults
 *  @return the op's value; 0 after an error
 *
 *  One thread at a time per graph. \since 0.1 */
KILN_API kiln_value kiln_op_custom_call(kiln_graph* graph, const char* target, size_t target_length,
                                        const kiln_value* operands, size_t operand_count,
                                        const kiln_shape* const* results, size_t result_count,
                                        const kiln_custom_call_options* options);

/** Calls a function of the user on the host, in a session; see "kiln.host-callback" in the
 * reference of the ops. Unlike those of a custom call, its results may have sizes known during a
 * run only (kiln_graph_bounded_size()). Graphs with such calls cannot be compiled.
 *  @param callback the name of the function, not empty
 *  @param operands the inputs of the function, arrays; may be NULL with count 0
 *  @param results the shapes of the results; their `dtype`, `rank` and `dims` are read
 *  @param result_count with 1 the value is an array, otherwise a tuple of this size
 *  @param has_side_effect 1: it is run even if its results are unused, in the order of the graph's
 *         side effects; 0: it is run where its results are needed
 *  @return the op's value; 0 after an error
 *
 *  One thread at a time per graph. \since 0.1 */
KILN_API kiln_value kiln_op_host_callback(kiln_graph* graph, const char* callback,
                                          size_t callback_length, const kiln_value* operands,
                                          size_t operand_count, const kiln_shape* const* results,
                                          size_t result_count, int32_t has_side_effect);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUSTOM_CALL_H_ */
