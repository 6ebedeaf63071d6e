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
 *  that they belong to. */
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
 *         UNIMPLEMENTED naming an op without a derivative on the way from one to the other. The
 *         graph is as it was then
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
 *  @param with_respect_to, options, gradients, return as for kiln_graph_gradient()
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

/** The operand, a constant for all derivatives. In HLO text it is a copy with the frontend
 *  attribute kiln.gradient="stop". \since 0.1 */
KILN_API kiln_value kiln_op_stop_gradient(kiln_graph* graph, kiln_value operand);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KILN_GRADIENT_H_ */
