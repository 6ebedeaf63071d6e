/** @file
 *  Builder functions in addition to ops.h, which is generated from the op table: parameters,
 *  constants, and shorter forms of ops.
 *
 *  For all builder functions, here and in ops.h:
 *  - each returns 0 after an error; see ::kiln_value. A graph is built by one thread at a time;
 *  - elementwise functions of two operands broadcast a scalar to an array. Other shapes must be
 *    equal: nothing else is broadcast unless stated;
 *  - a region (the computation of a reduction, a loop's condition and body, the branches of a
 *    conditional) is a separate graph with results set. It is copied, and may be released;
 *  - a region called with a tuple takes it as one parameter, or as one parameter per element. */
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

/** The comparison of kiln_op_compare(). \since 0.1 */
typedef int32_t kiln_direction;
/** @name Comparison directions
 *  Floats compare as in IEEE 754: with a NaN only KILN_NE is true. Added to another direction,
 *  KILN_TOTAL_ORDER selects IEEE 754's total order of floats, with -0 below +0 and NaNs beyond the
 *  infinities of their sign. */
/** @{ */
#define KILN_EQ 0          /**< equal */
#define KILN_NE 1          /**< not equal */
#define KILN_GE 2          /**< greater or equal */
#define KILN_GT 3          /**< greater */
#define KILN_LE 4          /**< less or equal */
#define KILN_LT 5          /**< less */
#define KILN_TOTAL_ORDER 8 /**< added to the others: by the total order */
/** @} */

/** The reducer of kiln_op_reduce_by(). \since 0.1 */
typedef int32_t kiln_reducer;
/** @name Reducers with their identity values, the results of empty reductions */
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
 *  @param name the name in dumps and messages; may be NULL with length 0 \since 0.1 */
KILN_API kiln_value kiln_op_parameter(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims,
                                      size_t rank, const char* name, size_t name_length);

/** The next input of the graph, with the shape of a value in `other`, which may be a tuple. For the
 *  regions of loops. `other` may be `graph`. \since 0.1 */
KILN_API kiln_value kiln_op_parameter_like(kiln_graph* graph, const kiln_graph* other,
                                           kiln_value like, const char* name, size_t name_length);

/** A constant: a copy of `bytes` bytes at `data`, the elements in row-major order.
 *  @param dims `rank` constant sizes; may be NULL with rank 0 \since 0.1 */
KILN_API kiln_value kiln_op_constant(kiln_graph* graph, kiln_dtype dtype, const int64_t* dims,
                                     size_t rank, const void* data, size_t bytes);

/** A scalar constant. `value` must be in the range of the type; float types round it to nearest
 *  even, and complex types have it as the real part, with an imaginary part of 0. \since 0.1 */
KILN_API kiln_value kiln_op_scalar(kiln_graph* graph, kiln_dtype dtype, double value);

/** The matrix product, as a kiln_op_dot(): it contracts the last dimension of `lhs` with the second
 *  to last of `rhs`, or with the only one of a vector. Leading dimensions are batch dimensions,
 *  equal in both. \since 0.1 */
KILN_API kiln_value kiln_op_matmul(kiln_graph* graph, kiln_value lhs, kiln_value rhs);

/** kiln_op_broadcast() to the dimensions of `like`.
 *  @param dimensions for each dimension of `operand` the corresponding one of `like`; may be NULL
 *         with count 0, for a scalar \since 0.1 */
KILN_API kiln_value kiln_op_broadcast_like(kiln_graph* graph, kiln_value operand, kiln_value like,
                                           const int64_t* dimensions, size_t dimensions_count);

/** kiln_op_reshape() to the dimensions of `like`. \since 0.1 */
KILN_API kiln_value kiln_op_reshape_like(kiln_graph* graph, kiln_value operand, kiln_value like);

/** kiln_op_iota() of the shape of `like`, counting along `iota_dimension`. \since 0.1 */
KILN_API kiln_value kiln_op_iota_like(kiln_graph* graph, kiln_value like, int64_t iota_dimension);

/** kiln_op_reduce() of one operand with a common reducer, from that reducer's identity value.
 *  @param dimensions the reduced dimensions, absent from the result \since 0.1 */
KILN_API kiln_value kiln_op_reduce_by(kiln_graph* graph, kiln_value operand,
                                      const int64_t* dimensions, size_t dimensions_count,
                                      kiln_reducer reducer);

#ifdef __cplusplus
}
#endif

#endif /* KILN_BUILDER_H_ */
