/** @file
 *  Graphs under construction: by the builder functions of ops.h, or read from HLO text or
 *  StableHLO.
 *
 *  A graph is used by one thread at a time, by the functions that read it, too; different graphs by
 *  different threads at once. Functions of which a page says "Any thread" are free of that. */
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

/** A value in a graph, made by a builder function. 0 is none. Another graph's value is refused, and
 *  so is 0 itself: after the first mistake every builder call returns 0, and kiln_graph_status()
 *  and what takes the graph tell what the mistake was. \since 0.1 */
typedef uint64_t kiln_value;

/** Begins an empty graph.
 *  @param name what dumps and messages call it; any text, may be NULL with length 0
 *  @param name_length bytes of `name`
 *  @param graph receives one reference, which the caller gives back with kiln_graph_release()
 *  @return INVALID_ARGUMENT for NULL in the place of a name with a length; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_create(kiln_context* context, const char* name, size_t name_length,
                                       kiln_graph** graph);

/** Reads a module in HLO text, the form in which XLA and Kiln print it. Its entry computation is
 *  the graph, which can be added to.
 *  @param graph receives one reference
 *  @return INVALID_ARGUMENT beginning with "line L, column C: "; UNIMPLEMENTED naming an op or type
 *          that Kiln does not have
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_from_hlo_text(kiln_context* context, const char* text,
                                              size_t text_length, kiln_graph** graph);

/** What kiln_graph_from_stablehlo() may be told beside. Zero everywhere means the defaults.
 *  \since 0.1 */
typedef struct kiln_stablehlo_options {
  size_t struct_size;  /**< set by kiln_stablehlo_options_init() */
  const char* entry;   /**< the name of the function that becomes the graph; NULL: main, or else the
                            only public one */
  size_t entry_length; /**< its number of bytes */
  const kiln_shape* const* arguments; /**< the shape of each of its parameters, where its type
                                         leaves sizes open ("?"); NULL: those of its type */
  size_t argument_count;              /**< number of `arguments`: 0, or that of the parameters */
  const int32_t* cancel; /**< unless NULL, looked at while the program is read: not 0 ends that with
                            CANCELLED. It must stay until the call returns, and may be set by any
                            thread */
  int64_t timeout_ns;    /**< unless 0, reading that takes longer than so many nanoseconds ends with
                              DEADLINE_EXCEEDED; not negative */
} kiln_stablehlo_options;

/** Makes default ::kiln_stablehlo_options of a variable. */
#define KILN_STABLEHLO_OPTIONS_INIT \
  { sizeof(kiln_stablehlo_options), NULL, 0, NULL, 0, NULL, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_stablehlo_options). A size
 * below that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_stablehlo_options_init(kiln_stablehlo_options* options, size_t size);

/** Reads a program in StableHLO, with what CHLO has beside: in text or in portable bytecode, of all
 *  versions up to 1.20. A function is the graph, which can be added to; the parameters and results
 *  are the function's. Sizes that are left open get the numbers that `options` has for the
 *  parameters, and what follows from these.
 *  @param program the text or bytecode
 *  @param program_size its number of bytes
 *  @param options may be NULL: the defaults
 *  @param graph receives one reference
 *  @return INVALID_ARGUMENT beginning with "line L, column C: ", or "byte N: " in bytecode;
 *          NOT_FOUND where there is no function of the name; UNIMPLEMENTED naming the operation or
 *          type, or the version; RESOURCE_EXHAUSTED for programs that are nested too deep, or too
 *          large; CANCELLED and DEADLINE_EXCEEDED as the options ask for
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_graph_from_stablehlo(kiln_context* context, const void* program,
                                               size_t program_size,
                                               const kiln_stablehlo_options* options,
                                               kiln_graph** graph);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_graph_retain(kiln_graph* graph);

/** Gives a reference back; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_graph_release(kiln_graph* graph);

/** The first mistake that a builder function met.
 *  @return the mistake, one reference that the caller gives back with kiln_error_release(): it
 * names the graph, the op, and its operands with their shapes; NULL if there was none. Questions
 *          about the value 0, which the mistake has given, return it, too
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_status(const kiln_graph* graph);

/** Says what the graph computes. One value is the result itself; any other number becomes a tuple
 *  of them, in order, whose leaves are the results. May be called again. Aliases that a text has
 *  told (input_output_alias) are those of its results: other ones have none.
 *  @param values `value_count` values of this graph; may be NULL with count 0
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's mistake for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_results(kiln_graph* graph, const kiln_value* values,
                                            size_t value_count);

/** A number that stands for a symbol wherever this graph's functions take or give sizes: a
 *  dimension whose size is put in when the graph is compiled. The same name gives the same number,
 *  and equal symbols are equal sizes.
 *
 *  Sizes are also sums and products of symbols: those that inference finds (a concatenation of n
 * and m rows has n+m), and those of kiln_graph_symbol_affine(), kiln_graph_symbol_sum() and
 *  kiln_graph_symbol_product(). Each has a number of its own, which is the same for equal sizes,
 *  however they came about; kiln_shape::dims of kiln_graph_value_shape() has these numbers. They
 *  are below -2^62, and good for this graph alone. Arithmetic on them gives no size: what a builder
 *  function is given in the place of a size and is neither a size nor such a number is a mistake,
 *  which names the op; beside symbols, sizes are below 2^40.
 *
 *  Besides dimensions, the numbers stand for starts and limits of slices, sizes of dynamic slices
 *  and of gathers, and padding below and above.
 *  @param name an identifier of at most 15 characters
 *  @return the number; 0 after a mistake (kiln_graph_status()) \since 0.1 */
KILN_API int64_t kiln_graph_symbol(kiln_graph* graph, const char* name, size_t name_length);

/** The number of the size `symbol` * `times` + `plus`.
 *  @param symbol a number of the graph's, of a symbol or of a sum or product; or a size
 *  @param times may be negative: 8 - n elements are left
 *  @return the number; the size itself, where no symbol is left in it; 0 after a mistake: a size of
 *          more than 32 terms or a product of more than 8 symbols \since 0.1 */
KILN_API int64_t kiln_graph_symbol_affine(kiln_graph* graph, int64_t symbol, int64_t times,
                                          int64_t plus);

/** The number of the size a + b, as kiln_graph_symbol_affine(). \since 0.1 */
KILN_API int64_t kiln_graph_symbol_sum(kiln_graph* graph, int64_t a, int64_t b);

/** The number of the size a * b, as kiln_graph_symbol_affine(). \since 0.1 */
KILN_API int64_t kiln_graph_symbol_product(kiln_graph* graph, int64_t a, int64_t b);

/** A size as dumps and messages have it: "2*n+1".
 *  @param symbol a number of the graph's, or a size
 *  @param text receives one reference, which the caller gives back with kiln_text_release()
 *  @return INVALID_ARGUMENT for a number that is neither
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_symbol_text(const kiln_graph* graph, int64_t symbol,
                                            kiln_text** text);

/** The number of parameters of the graph. 0 for NULL. \since 0.1 */
KILN_API size_t kiln_graph_parameter_count(const kiln_graph* graph);

/** The value of a parameter, 0 if there is none of that number. \since 0.1 */
KILN_API kiln_value kiln_graph_parameter(kiln_graph* graph, size_t number);

/** The value that the graph computes (kiln_graph_set_results()), 0 if none is set. \since 0.1 */
KILN_API kiln_value kiln_graph_result(kiln_graph* graph);

/** The value of a name, as HLO text prints it, without the '%'.
 *  @return NOT_FOUND, or the mistake of kiln_graph_status() where there was one \since 0.1 */
KILN_API kiln_error* kiln_graph_find_value(kiln_graph* graph, const char* name, size_t name_length,
                                           kiln_value* value);

/** The shape of a value. `shape->dims` lives as long as the graph.
 *  @return INVALID_ARGUMENT for what is no value of the graph; of 0 the graph's mistake, if there
 * was one \since 0.1 */
KILN_API kiln_error* kiln_graph_value_shape(kiln_graph* graph, kiln_value value, kiln_shape* shape);

/** The name of a value as HLO text prints it, with a 0 behind it; lives as long as the graph. NULL
 *  for a value that is not this graph's. \since 0.1 */
KILN_API const char* kiln_graph_value_name(kiln_graph* graph, kiln_value value, size_t* length);

/** Says where a value comes from in the words of the program that builds the graph ("layer1/add"):
 *  dumps, timelines and messages show it (HLO's op_name).
 *  @param name `name_length` bytes, which are copied
 *  @return INVALID_ARGUMENT for a value of another graph; the graph's mistake for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_op_name(kiln_graph* graph, kiln_value value, const char* name,
                                            size_t name_length);

/** The graph as HLO text, which XLA reads too.
 *  @param text receives one reference, which the caller gives back with kiln_text_release()
 *  @return the graph's mistake if it has one; FAILED_PRECONDITION where no results are set
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_to_hlo_text(const kiln_graph* graph, kiln_text** text);

/** The graph in Graphviz' language.
 *  @param text receives one reference, which the caller gives back with kiln_text_release()
 *  @return the graph's mistake if it has one; FAILED_PRECONDITION where no results are set
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_to_dot(const kiln_graph* graph, kiln_text** text);

#ifdef __cplusplus
}
#endif

#endif /* KILN_GRAPH_H_ */
