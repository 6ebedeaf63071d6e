/** @file
 *  Builder functions beside those of ops.h, which are made from the op table: parameters,
 *  constants, and shorter ways to say what ops say.
 *
 *  For all builder functions, these and those of ops.h:
 *  - each returns 0 after a mistake; see ::kiln_value. A graph is built by one thread at a time;
 *  - a scalar goes with an array in elementwise functions of two operands, and is broadcast. Other
 *    shapes must be equal: nothing else is broadcast unless it is said;
 *  - a region (the computation of a reduction, a loop's condition and body, the branches of a
 *    conditional) is a graph of its own with results set. It is copied, and may be given back;
 *  - a region that is called with a tuple takes it as one parameter, or with one parameter for each
 *    element. */
#ifndef KILN_BUILDER_H_
#define KILN_BUILDER_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"
#include "kiln/graph.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The order that kiln_op_compare() tests. \since 0.1 */
typedef int32_t kiln_direction;
/** @name Orders
 *  Floats compare as IEEE 754 says: with a NaN only KILN_NE is true. Added to one of the others,
 *  KILN_TOTAL_ORDER makes it IEEE 754's total order of floats, in which -0 is below +0 and NaNs
 *  have a place beyond the infinities of their sign. */
/** @{ */
#define KILN_EQ 0          /**< equal */
#define KILN_NE 1          /**< not equal */
#define KILN_GE 2          /**< greater or equal */
#define KILN_GT 3          /**< greater */
#define KILN_LE 4          /**< less or equal */
#define KILN_LT 5          /**< less */
#define KILN_TOTAL_ORDER 8 /**< added to the others: by the total order */
/** @} */

/** What kiln_op_reduce_by() folds with. \since 0.1 */
typedef int32_t kiln_reducer;
/** @name Reducers and what an empty reduction gives */
/** @{ */
#define KILN_REDUCER_SUM 1     /**< add, from 0; of pred: or */
#define KILN_REDUCER_PRODUCT 2 /**< multiply, from 1; of pred: and */
#define KILN_REDUCER_MAX \
  3 /**< maximum, from the smallest value (of floats from -inf, where they have it) */
#define KILN_REDUCER_MIN \
  4 /**< minimum, from the largest value (of floats from +inf, where they have it) */
#define KILN_REDUCER_AND 5 /**< and, from all bits set */
#define KILN_REDUCER_OR 6  /**< or, from 0 */
#define KILN_REDUCER_XOR 7 /**< xor, from 0 */
/** @} */

/** The next input of the graph: the first call makes parameter 0.
 *  @param dims `rank` sizes, constants or symbols of kiln_graph_symbol(); may be NULL with rank 0
 *  @param name what dumps and messages call it; may be NULL with length 0 \since 0.1 */
KILN_API kiln_value kiln_op_parameter(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims,
                                      size_t rank, const char* name, size_t name_length);

/** The next input of the graph, of the shape of a value in `other`: a tuple where that is one. For
 *  the regions of loops. `other` may be `graph`. \since 0.1 */
KILN_API kiln_value kiln_op_parameter_like(kiln_graph* graph, const kiln_graph* other,
                                           kiln_value like, const char* name, size_t name_length);

/** A value that is known now: a copy of `bytes` bytes at `data`, the elements in row-major order.
 *  @param dims `rank` constant sizes; may be NULL with rank 0 \since 0.1 */
KILN_API kiln_value kiln_op_constant(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims,
                                     size_t rank, const void* data, size_t bytes);

/** A constant without dimensions. `value` must be a value of the type; a float type rounds it to
 *  nearest even, and a complex one has it for its real part, with an imaginary part of 0. \since
 * 0.1 */
KILN_API kiln_value kiln_op_scalar(kiln_graph* graph, kiln_dtype dtype, double value);

/** The matrix product, as a kiln_op_dot(): the last dimension of `lhs` times the second to last of
 *  `rhs`, or the only one of a vector; the dimensions before are batches, and equal in both.
 *  \since 0.1 */
KILN_API kiln_value kiln_op_matmul(kiln_graph* graph, kiln_value lhs, kiln_value rhs);

/** kiln_op_broadcast() to the dimensions of `like`.
 *  @param dimensions for each dimension of `operand`, the one of `like` that it becomes; may be
 * NULL with count 0, for a scalar \since 0.1 */
KILN_API kiln_value kiln_op_broadcast_like(kiln_graph* graph, kiln_value operand, kiln_value like,
                                           const int64_t* dimensions, size_t dimensions_count);

/** kiln_op_reshape() to the dimensions of `like`. \since 0.1 */
KILN_API kiln_value kiln_op_reshape_like(kiln_graph* graph, kiln_value operand, kiln_value like);

/** kiln_op_iota() of the shape of `like`, counting along `iota_dimension`. \since 0.1 */
KILN_API kiln_value kiln_op_iota_like(kiln_graph* graph, kiln_value like, int64_t iota_dimension);

/** kiln_op_reduce() of one operand with a common reducer, from that reducer's neutral value.
 *  @param dimensions the dimensions to fold along, which the result lacks \since 0.1 */
KILN_API kiln_value kiln_op_reduce_by(kiln_graph* graph, kiln_value operand,
                                      const int64_t* dimensions, size_t dimensions_count,
                                      kiln_reducer reducer);

#ifdef __cplusplus
}
#endif

#endif /* KILN_BUILDER_H_ */
