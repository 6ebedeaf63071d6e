/** @file
 *  Derivatives of a graph's values, added to the graph as ops: reverse mode (gradients,
 *  vector–Jacobian products), forward mode (Jacobian–vector products), and both of their results
 *  again.
 *
 *  Floats and complex numbers have derivatives. Of a function of complex numbers the derivative is
 *  the complex one, and cotangents are not conjugated, as in JAX: the gradient of a real value by x
 *  + iy is d/dx - i d/dy. Of the points without a derivative a rule takes a subgradient: 0 for |x|
 *  at 0 and for a norm at 0, an equal share for each of several equal maxima. Ops that are constant
 *  between their jumps (floor, compare) have the derivative 0. The op reference says how each op is
 *  differentiated, and of which there is no derivative.
 *
 *  The ops of a derivative get the op name, the device and the other frontend attributes of the op
 *  that they belong to.
 *
 *  A graph is used by one thread at a time. */
#ifndef KILN_GRADIENT_H_
#define KILN_GRADIENT_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The options of kiln_graph_gradient() and its like. Members that are 0 have their defaults.
 *  \since 0.1 */
typedef struct kiln_gradient_options {
  size_t struct_size;      /**< set by kiln_gradient_options_init() */
  int32_t recompute_loops; /**< 1: reverse mode stores the state of a loop for each iteration, and
                                computes the body again; 0: it stores what the derivative of the
                                body reads */
  int32_t reserved;        /**< must be 0 */
} kiln_gradient_options;

/** Makes default ::kiln_gradient_options of a variable. */
#define KILN_GRADIENT_OPTIONS_INIT \
  { sizeof(kiln_gradient_options), 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_gradient_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_gradient_options_init(kiln_gradient_options* options, size_t size);

/** Adds the gradient of a scalar to the graph.
 *  @param value a scalar of a float type
 *  @param with_respect_to `count` values of the graph, parameters or others; one that depends on
 *         another one counts in full for both
 *  @param options may be NULL: the defaults
 *  @param gradients receives `count` values: gradients[i] has the shape of with_respect_to[i], and
 *         is 0 everywhere if `value` does not depend on it
 *  @return INVALID_ARGUMENT for values of the wrong shape or of a type without derivatives;
 *         UNIMPLEMENTED naming an op without a derivative on the way from one to the other;
 *         RESOURCE_EXHAUSTED if the calls of the graph, each with a copy of what it calls, make
 * more than 4 million ops. The graph is as it was then
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_gradient(kiln_graph* graph, kiln_value value,
                                         const kiln_value* with_respect_to, size_t count,
                                         const kiln_gradient_options* options,
                                         kiln_value* gradients);

/** Adds a vector–Jacobian product to the graph (reverse mode): the sums over i of cotangents[i] *
 *  d values[i] / d with_respect_to[k].
 *  @param values `value_count` values of any shape
 *  @param cotangents one for each, of its shape
 *  @param with_respect_to, options, gradients as for kiln_graph_gradient()
 *  @return as for kiln_graph_gradient()
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_vjp(kiln_graph* graph, const kiln_value* values,
                                    const kiln_value* cotangents, size_t value_count,
                                    const kiln_value* with_respect_to, size_t count,
                                    const kiln_gradient_options* options, kiln_value* gradients);

/** Adds a Jacobian–vector product to the graph (forward mode): the derivatives of `values` in the
 *  direction of the tangents.
 *  @param values `value_count` values of any shape
 *  @param with_respect_to `count` values of the graph
 *  @param tangents one for each of them, of its shape
 *  @param options may be NULL: the defaults
 *  @param derivatives receives `value_count` values, of the shapes of `values`
 *  @return as for kiln_graph_gradient()
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_jvp(kiln_graph* graph, const kiln_value* values, size_t value_count,
                                    const kiln_value* with_respect_to, const kiln_value* tangents,
                                    size_t count, const kiln_gradient_options* options,
                                    kiln_value* derivatives);

/** Sets whether reverse mode computes a call again: of the called graph it stores the arguments
 *  alone, and the backward computation begins with the called graph, once more, when the cotangents
 *  are there. A call with side effects is not computed again. In HLO text the call has the frontend
 *  attribute kiln.gradient="checkpoint".
 *  @param call the value of a kiln_op_call()
 *  @param checkpoint 1 or 0
 *  @return INVALID_ARGUMENT for any other number, a value that is no call, or one of another graph;
 *         the graph's error for 0
 *
 *  \since 0.1 */
KILN_API kiln_error* kiln_graph_set_checkpoint(kiln_graph* graph, kiln_value call,
                                               int32_t checkpoint);

/** Sets the derivative of a graph that is called: of each kiln_op_call() of it that is made
 *  afterwards. Loops, branches and other ops that take the graph as a region have the derivative of
 *  its ops.
 *  @param function its results are set
 *  @param backward a graph that takes the function's parameters, its results, and the cotangents of
 *         the results of float and complex types, all in order, and whose results are the
 *         cotangents of the parameters of float and complex types. Copied. NULL: the derivative is
 *         that of the function's ops again
 *  @return INVALID_ARGUMENT for a backward graph of other parameters or results, naming the shapes;
 *         the error of either graph; FAILED_PRECONDITION if results are not set
 *
 *  Reverse mode calls the backward graph; where no value depends on a result, its cotangent is 0.
 *  Forward mode transposes it at the cotangent 0, and second derivatives differentiate it. HLO text
 *  keeps the derivative: the called computation's root is a custom call of the target
 *  CustomGradient that returns its operand and names the backward computation; other compilers have
 *  no such function. \since 0.1 */
KILN_API kiln_error* kiln_graph_set_gradient(kiln_graph* function, const kiln_graph* backward);

/** A call whose backward graph is built, for kiln_context_register_gradient(). Tuples are lists of
 *  their arrays. \since 0.1 */
typedef struct kiln_gradient_call {
  size_t struct_size;           /**< sizeof(kiln_gradient_call) of the library */
  const char* target;           /**< the name of the called function */
  size_t target_length;         /**< its number of bytes */
  const char* backend_config;   /**< the op's text for the function, null-terminated */
  size_t backend_config_length; /**< its number of bytes */
  const kiln_value* operands;   /**< parameters of the backward graph: the call's operands */
  size_t operand_count;         /**< number of `operands` and `gradients` */
  const kiln_value* results;    /**< parameters: what the call returned */
  size_t result_count;          /**< number of `results` and `cotangents` */
  const kiln_value* cotangents; /**< parameters: the cotangents of the results; 0 for a result that
                                     is of another type than floats and complex numbers */
  kiln_value* gradients;        /**< to be set to the cotangents of the operands, each of the
                                     operand's shape; 0, as they are before: it is zero */
} kiln_gradient_call;

/** Registers the derivative of a custom-call target, for all graphs of the context that are
 *  differentiated afterwards.
 *  @param target the name in the calls, not empty
 *  @param build adds ops to `backward`, a graph with the parameters of `call`, and sets
 *         call->gradients. `call` and `backward` live as long as the call of `build`. It returns
 *         NULL, or hands over an error (see kiln_error_create()), which becomes the
 *         differentiation's. It is called on the thread that differentiates, by several at once if
 *         several do, and must not throw
 *  @param user_data the first argument of both functions
 *  @param destroy called once when `build` can no longer be called; may be NULL. Not called on
 *         failure
 *  @return ALREADY_EXISTS if the target has a derivative, INVALID_ARGUMENT for markers ("Sharding")
 *         and an empty name
 *
 *  The results of the backward graph are used as those of kiln_graph_set_gradient(). Any thread.
 *  \since 0.1 */
KILN_API kiln_error* kiln_context_register_gradient(
    kiln_context* context, const char* target, size_t target_length,
    kiln_error* (*build)(void* user_data, kiln_graph* backward, const kiln_gradient_call* call),
    void* user_data, void (*destroy)(void* user_data));

/** The operand, a constant for all derivatives. In HLO text it is a copy with the frontend
 *  attribute kiln.gradient="stop". \since 0.1 */
KILN_API kiln_value kiln_op_stop_gradient(kiln_graph* graph, kiln_value operand);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KILN_GRADIENT_H_ */
