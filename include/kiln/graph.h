/** @file
 *  Graphs under construction: by the builder functions of ops.h, or read from HLO text or
 *  StableHLO.
 *
 *  A graph is used by one thread at a time, including the functions that only read it; different
 *  graphs may be used by different threads concurrently. Functions whose page says "Any thread" are
 *  exempt.
 *
 *  Ops made between the push and the pop of a scope (kiln_graph_push_device() and others) get what
 *  the scope says; parameters and constants, too. The kinds of scopes nest independently of each
 *  other, and graphs that are regions of an op have scopes of their own. A mistake is the graph's
 *  error, as for builder functions: the functions of scopes return it, and so does
 *  kiln_graph_status(). What scopes say can be set for single ops at any time, and is read by
 *  sessions; kiln_graph_compile() compiles the whole graph for one device. In HLO text it is
 *  frontend attributes, with the keys "kiln.device", "_XlaCompile", "_XlaScope" and
 *  "_XlaMustCompile", and control predecessors. */
#ifndef KILN_GRAPH_H_
#define KILN_GRAPH_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/context.h"
#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A computation from parameters to results. Used by one thread at a time. \since 0.1 */
typedef struct kiln_graph kiln_graph;

/** A value in a graph, made by a builder function. 0 is no value. Values of another graph are
 *  errors, and so is 0: after the first error every builder call returns 0, and kiln_graph_status()
 *  and the functions that take the graph return that error. \since 0.1 */
typedef uint64_t kiln_value;

/** Begins an empty graph.
 *  @param name the name in dumps and messages; any text, may be NULL with length 0
 *  @param name_length bytes of `name`
 *  @param graph receives one reference, to be released with kiln_graph_release()
 *  @return INVALID_ARGUMENT for a NULL name with a length; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_create(kiln_context* context, const char* name, size_t name_length,
                                       kiln_graph** graph);

/** Reads a module in HLO text, as printed by XLA and Kiln. Its entry computation becomes the graph;
 *  ops can be added. Ops that only HLO has are read as the ops that they consist of, and pairs of
 *  asynchronous ops (all-gather-start and -done) as the op itself. Constants whose elements are
 * left out, "{...}", and infeeds without an outfeed have made-up values, the same in each run and
 * valid as indices, and one warning is logged for all of them.
 *  @param graph receives one reference
 *  @return INVALID_ARGUMENT beginning with "line L, column C: "; UNIMPLEMENTED naming an
 *         unsupported op or type; RESOURCE_EXHAUSTED if elements of more than 256 MiB are left out
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_from_hlo_text(kiln_context* context, const char* text,
                                              size_t text_length, kiln_graph** graph);

/** The options of kiln_graph_from_stablehlo(). Members that are 0 have their defaults.
 *  \since 0.1 */
typedef struct kiln_stablehlo_options {
  size_t struct_size;  /**< set by kiln_stablehlo_options_init() */
  const char* entry;   /**< the name of the entry function; NULL: main, or else the only public
                            function */
  size_t entry_length; /**< its number of bytes */
  const kiln_shape* const* arguments; /**< the shape of each of its parameters, for types with
                                           dynamic sizes ("?"); NULL: the shapes of its type */
  size_t argument_count;              /**< number of `arguments`: 0, or the number of parameters */
  const int32_t* cancel; /**< unless NULL, polled while the program is read: a value other than 0
                              ends the call with CANCELLED. It must stay until the call returns, and
                              may be set by any thread */
  int64_t timeout_ns;    /**< time limit of the call in nanoseconds, beyond which it ends with
                              DEADLINE_EXCEEDED; 0: none; not negative */
} kiln_stablehlo_options;

/** Makes default ::kiln_stablehlo_options of a variable. */
#define KILN_STABLEHLO_OPTIONS_INIT \
  { sizeof(kiln_stablehlo_options), NULL, 0, NULL, 0, NULL, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_stablehlo_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_stablehlo_options_init(kiln_stablehlo_options* options, size_t size);

/** Reads a program in StableHLO or CHLO, as text or as portable bytecode, of all versions up to
 *  1.20. The entry function becomes the graph, with its parameters and results; ops can be added.
 *  Dynamic sizes are determined from the shapes of the parameters in `options`.
 *  @param program the text or bytecode
 *  @param program_size its number of bytes
 *  @param options may be NULL: the defaults
 *  @param graph receives one reference
 *  @return INVALID_ARGUMENT beginning with "line L, column C: ", or "byte N: " in bytecode;
 *         NOT_FOUND if no function has the name; UNIMPLEMENTED naming the operation, type or
 *         version; RESOURCE_EXHAUSTED for programs nested too deep, or too large; CANCELLED and
 *         DEADLINE_EXCEEDED by the options
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_from_stablehlo(kiln_context* context, const void* program,
                                               size_t program_size,
                                               const kiln_stablehlo_options* options,
                                               kiln_graph** graph);

/** The same from a file, which is mapped: of bytecode, large constants are not copied but used in
 * the file, until they are packed for a device. The file must not be changed or cut off while the
 * graph or an executable made of it is in use; it may be removed, or replaced by renaming.
 *  @param path `path_length` bytes without a NUL; a regular file
 *  @param options may be NULL: the defaults
 *  @param graph receives one reference
 *  @return also NOT_FOUND and PERMISSION_DENIED for the file; UNAVAILABLE for other errors of the
 *         system
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_from_stablehlo_file(kiln_context* context, const char* path,
                                                    size_t path_length,
                                                    const kiln_stablehlo_options* options,
                                                    kiln_graph** graph);

/** The text of an attribute of an argument of the entry function that kiln_graph_from_stablehlo()
 *  read, such as "mhlo.memory_kind" or "mhlo.layout_mode": a string as it is, an integer in
 * decimal, a boolean or an attribute without a value as "true" or "false". Changes of the graph do
 * not change it.
 *  @param index the number of the argument, tokens included
 *  @param name the attribute's name, of `name_length` bytes
 *  @param length unless NULL, receives the number of bytes
 *  @return the text, null-terminated, which lives as long as the graph; NULL if there is no such
 *          argument or attribute, or one of another kind, and for other graphs \since 0.1 */
KILN_API const char* kiln_graph_argument_attribute(const kiln_graph* graph, size_t index,
                                                   const char* name, size_t name_length,
                                                   size_t* length);

/** The same for a result of the entry function. \since 0.1 */
KILN_API const char* kiln_graph_result_attribute(const kiln_graph* graph, size_t index,
                                                 const char* name, size_t name_length,
                                                 size_t* length);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_graph_retain(kiln_graph* graph);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_graph_release(kiln_graph* graph);

/** The first error of a builder function.
 *  @return the error, one reference, to be released with kiln_error_release(): it names the graph,
 *         the op, and its operands with their shapes; NULL if there was none. Queries about the
 *         value 0, the result of the failed call, return it, too
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_status(const kiln_graph* graph);

/** Makes a mistake the graph's error, as builder functions do: for functions of the caller's that
 *  are built on them, as those of train.h are. The first error stays.
 *  @param code not KILN_OK
 *  @param message `message_length` bytes, copied; the graph's name is put in front
 *  @return the graph's error, one reference; INVALID_ARGUMENT for KILN_OK or an unknown code
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_fail(kiln_graph* graph, kiln_code code, const char* message,
                                     size_t message_length);

/** Sets the results of the graph. One value is the result itself; any other number becomes a tuple
 *  of them, in order, whose leaves are the results. May be called again. Aliases in a text
 *  (input_output_alias) belong to the text's results: other results have none.
 *  @param values `value_count` values of this graph; may be NULL with count 0
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_results(kiln_graph* graph, const kiln_value* values,
                                            size_t value_count);

/** A number that represents a symbol wherever this graph's functions take or return sizes: a
 *  dimension whose size is given when the graph is compiled. The same name gives the same number,
 *  and equal symbols are equal sizes.
 *
 *  Sizes may also be sums and products of symbols, found by shape inference (a concatenation of n
 *  and m rows has n+m) or made by kiln_graph_symbol_affine(), kiln_graph_symbol_sum() and
 *  kiln_graph_symbol_product(). Equal sizes have the same number, however they were computed;
 *  kiln_shape::dims of kiln_graph_value_shape() has these numbers. They are below -2^62, and valid
 *  for this graph only. Arithmetic on them gives no size: an argument of a builder function that is
 *  neither a size nor such a number is an error that names the op. In graphs with symbols, sizes
 *  are below 2^40.
 *
 *  Besides dimensions, the numbers are allowed as starts and limits of slices, sizes of dynamic
 *  slices and of gathers, and padding below and above.
 *  @param name an identifier of at most 15 characters
 *  @return the number; 0 after an error (kiln_graph_status()) \since 0.1 */
KILN_API int64_t kiln_graph_symbol(kiln_graph* graph, const char* name, size_t name_length);

/** The number of the size `symbol` * `times` + `plus`.
 *  @param symbol a number of the graph, for a symbol, a sum or a product; or a size
 *  @param times may be negative, as in 8 - n
 *  @return the number; the size itself if it is constant; 0 after an error: a size of more than 32
 *         terms or a product of more than 8 symbols \since 0.1 */
KILN_API int64_t kiln_graph_symbol_affine(kiln_graph* graph, int64_t symbol, int64_t times,
                                          int64_t plus);

/** The number of the size a + b, as kiln_graph_symbol_affine(). \since 0.1 */
KILN_API int64_t kiln_graph_symbol_sum(kiln_graph* graph, int64_t a, int64_t b);

/** The number of the size a * b, as kiln_graph_symbol_affine(). \since 0.1 */
KILN_API int64_t kiln_graph_symbol_product(kiln_graph* graph, int64_t a, int64_t b);

/** A number that represents a bounded size wherever this graph's functions take or return sizes:
 * one known during a run only, from 0 to `bound`, which is below 2^40. Results of ops such as
 * kiln_op_nonzero() have such dimensions; equal bounds have the same number. They are no starts,
 * limits or other attributes of ops, and symbols cannot be bounds.
 *  @return the number, as those of kiln_graph_symbol(); 0 after an error \since 0.1 */
KILN_API int64_t kiln_graph_bounded_size(kiln_graph* graph, int64_t bound);

/** A size as printed in dumps and messages: "2*n+1", "<=8".
 *  @param symbol a number of the graph, or a size
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return INVALID_ARGUMENT for any other number
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_symbol_text(const kiln_graph* graph, int64_t symbol,
                                            kiln_text** text);

/** The number of parameters of the graph. 0 for NULL. \since 0.1 */
KILN_API size_t kiln_graph_parameter_count(const kiln_graph* graph);

/** The value of a parameter, 0 for a number beyond the last. \since 0.1 */
KILN_API kiln_value kiln_graph_parameter(kiln_graph* graph, size_t number);

/** The value of the graph's result (kiln_graph_set_results()), 0 if none is set. \since 0.1 */
KILN_API kiln_value kiln_graph_result(kiln_graph* graph);

/** The value with a name: as printed in HLO text, without the '%', or else the origin of the only
 *  value that has it (kiln_graph_set_op_name()), with TensorFlow's ":0" at the end or without.
 *  @return NOT_FOUND, or the error of kiln_graph_status(), if any; INVALID_ARGUMENT for an origin
 *         of several values \since 0.1 */
KILN_API kiln_error* kiln_graph_find_value(kiln_graph* graph, const char* name, size_t name_length,
                                           kiln_value* value);

/** The shape of a value. `shape->dims` lives as long as the graph.
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's error, if any, for 0
 *         \since 0.1 */
KILN_API kiln_error* kiln_graph_value_shape(kiln_graph* graph, kiln_value value, kiln_shape* shape);

/** The name of a value as printed in HLO text, null-terminated; lives as long as the graph. NULL
 *  for a value of another graph. \since 0.1 */
KILN_API const char* kiln_graph_value_name(kiln_graph* graph, kiln_value value, size_t* length);

/** Sets the origin of a value in the terms of the program that builds the graph ("layer1/add"),
 *  shown by dumps, timelines and messages (HLO's op_name).
 *  @param name `name_length` bytes, copied
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_op_name(kiln_graph* graph, kiln_value value, const char* name,
                                            size_t name_length);

/** Begins a scope of ops that are requested to run on a device. The innermost scope counts.
 *  @param name a name as for kiln_context_find_device(); the device need not exist yet. Length 0:
 *         no device is requested
 *  @return INVALID_ARGUMENT for a text that is no name of a device; the graph's error, if any
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_push_device(kiln_graph* graph, const char* name,
                                            size_t name_length);

/** Ends the innermost scope of kiln_graph_push_device().
 *  @return FAILED_PRECONDITION if there is none; the graph's error, if any \since 0.1 */
KILN_API kiln_error* kiln_graph_pop_device(kiln_graph* graph);

/** Begins a scope of ops that a session compiles together, or never compiles. As in TensorFlow, ops
 *  of different outermost scopes are not compiled together; an inner scope only changes whether its
 *  ops are compiled.
 *  @param compile 1 or 0
 *  @return INVALID_ARGUMENT for any other number; the graph's error, if any
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_push_jit_scope(kiln_graph* graph, int32_t compile);

/** Ends the innermost scope of kiln_graph_push_jit_scope().
 *  @return FAILED_PRECONDITION if there is none; the graph's error, if any \since 0.1 */
KILN_API kiln_error* kiln_graph_pop_jit_scope(kiln_graph* graph);

/** Begins a scope of names: the origins (kiln_graph_set_op_name()) of ops made inside are
 *  "outer/inner/add", from the names of the scopes and of the op (or of the parameter). Names are
 *  made unique as in TensorFlow, whatever their case: a second scope "layer" is "layer_1", and a
 *  second op "layer/add" is "layer/add_1".
 *  @param name letters, digits, '.', '_', '-', '/', '\\' and '>'; an outermost one begins with a
 *         letter, a digit or '.'. One that ends with '/' is a whole name, continued as it is.
 *         Length 0: ops inside get no names
 *  @return INVALID_ARGUMENT for any other name; the graph's error, if any
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_push_name_scope(kiln_graph* graph, const char* name,
                                                size_t name_length);

/** Ends the innermost scope of kiln_graph_push_name_scope().
 *  @return FAILED_PRECONDITION if there is none; the graph's error, if any \since 0.1 */
KILN_API kiln_error* kiln_graph_pop_name_scope(kiln_graph* graph);

/** Begins a scope of ops that a session runs after the given values, as
 *  kiln_graph_add_control_dependency() for each op made inside; for scopes inside each other, after
 *  the values of all. Parameters and constants wait for nothing, and an op with an operand made
 *  inside waits by this operand.
 *  @param values `value_count` values of this graph; none: ops made inside do not wait for the
 *         values of outer scopes
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's error, if any
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_push_control_dependencies(kiln_graph* graph,
                                                          const kiln_value* values,
                                                          size_t value_count);

/** Ends the innermost scope of kiln_graph_push_control_dependencies().
 *  @return FAILED_PRECONDITION if there is none; the graph's error, if any \since 0.1 */
KILN_API kiln_error* kiln_graph_pop_control_dependencies(kiln_graph* graph);

/** Whether a session compiles an op. \since 0.1 */
typedef int32_t kiln_jit;

/** @name Compilation of an op */
/** @{ */
#define KILN_JIT_DEFAULT 0 /**< the session decides */
#define KILN_JIT_ON 1      /**< compile it */
#define KILN_JIT_OFF 2     /**< do not */
/** @} */

/** Requests the device that runs the op of a value.
 *  @param name as for kiln_graph_push_device(); length 0: none is requested
 *  @return INVALID_ARGUMENT for a text that is no name of a device, or a value of another graph;
 *         the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_device(kiln_graph* graph, kiln_value value, const char* name,
                                           size_t name_length);

/** Sets whether the op of a value is compiled. KILN_JIT_DEFAULT removes it from its jit scope, too.
 *  @return INVALID_ARGUMENT for any other mode, or a value of another graph; the graph's error
 *         for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_jit(kiln_graph* graph, kiln_value value, kiln_jit mode);

/** Sets whether a session must compile the graph called by a kiln_op_call() as a whole, with all
 *  that it calls, on the call's device and without regard to marks inside: if it cannot, the run
 *  fails, and names the op that does not compile.
 *  @param must_compile 1 or 0
 *  @return INVALID_ARGUMENT for any other number, a value that is no call, or one of another graph;
 *         the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_must_compile(kiln_graph* graph, kiln_value value,
                                                 int32_t must_compile);

/** Makes the op of `after` run after the op of `before`, without a use of its value. A session that
 *  runs `after` runs `before`. kiln_graph_compile() keeps the order of ops with side effects, and
 *  drops others that no result needs.
 *  @return INVALID_ARGUMENT if `before` needs `after`, or is it, or for a value of another graph;
 *         the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_add_control_dependency(kiln_graph* graph, kiln_value before,
                                                       kiln_value after);

/** Sets a frontend attribute of the op of a value, a text under a key.
 *  @param key not empty; "kiln.device" is checked as by kiln_graph_set_device()
 *  @param text copied; NULL: there is none
 *  @return INVALID_ARGUMENT for an empty key, or a value of another graph; the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_frontend_attribute(kiln_graph* graph, kiln_value value,
                                                       const char* key, size_t key_length,
                                                       const char* text, size_t text_length);

/** The text of a frontend attribute, null-terminated; lives as long as the graph. NULL, with length
 *  0, if the op has none of the key, and for a value of another graph. `length` may be NULL.
 *  \since 0.1 */
KILN_API const char* kiln_graph_value_frontend_attribute(kiln_graph* graph, kiln_value value,
                                                         const char* key, size_t key_length,
                                                         size_t* length);

/** The requested device of the op of a value, as it was given, null-terminated; lives as long as
 *  the graph. NULL, with length 0, if none is requested, and for a value of another graph.
 *  `length` may be NULL. \since 0.1 */
KILN_API const char* kiln_graph_value_device(kiln_graph* graph, kiln_value value, size_t* length);

/** The origin of a value (kiln_graph_set_op_name(), kiln_graph_push_name_scope()), null-terminated,
 *  empty if there is none; valid until it is set. NULL for a value of another graph. `length` may
 *  be NULL. \since 0.1 */
KILN_API const char* kiln_graph_value_op_name(kiln_graph* graph, kiln_value value, size_t* length);

/** The graph as HLO text, readable by XLA too.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return the graph's error, if any; FAILED_PRECONDITION if no results are set
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_to_hlo_text(const kiln_graph* graph, kiln_text** text);

/** The graph in Graphviz's language.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return the graph's error, if any; FAILED_PRECONDITION if no results are set
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_to_dot(const kiln_graph* graph, kiln_text** text);

#ifdef __cplusplus
}
#endif

#endif /* KILN_GRAPH_H_ */
