/** @file
 *  Functions for neural networks and arrays, as in NumPy and JAX, each built from ops: softmax,
 *  normalisations, activations, argmax and argmin, statistics, embedding lookups, attention, and
 *  elementwise functions with NumPy's broadcasting.
 *
 *  For all of these functions:
 *  - each returns 0 after an error; see ::kiln_value. The error names the graph, the function and
 *    the shapes. A graph is built by one thread at a time;
 *  - a negative dimension counts from the end, -1 is the last one. Lists of dimensions must not
 *    have duplicates;
 *  - sizes may be symbols (kiln_graph_symbol());
 *  - floats of 32 and 64 bits are computed in their own type, narrower ones in f32, with one
 *    rounding of the result. */
#ifndef KILN_NN_H_
#define KILN_NN_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/builder.h"
#include "kiln/export.h"
#include "kiln/graph.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @name NumPy's broadcasting
 *  Shapes are aligned at their last dimensions; missing leading dimensions count as 1, and a
 *  dimension of size 1 is broadcast to any size. Element types must be equal. */
/** @{ */
/** `operand` broadcast to the given sizes, as numpy.broadcast_to().
 *  @param dims `rank` sizes, constants or symbols; may be NULL with rank 0 \since 0.1 */
KILN_API kiln_value kiln_nn_broadcast_to(kiln_graph* graph, kiln_value operand, const int64_t* dims,
                                         size_t rank);
/** kiln_op_add() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_add(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_subtract() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_subtract(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_multiply() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_multiply(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_divide() of broadcast operands: integers round towards 0, unlike NumPy's floor_divide.
 *  \since 0.1 */
KILN_API kiln_value kiln_nn_divide(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_remainder() of broadcast operands: the sign is that of `lhs`, as numpy.fmod()'s.
 *  \since 0.1 */
KILN_API kiln_value kiln_nn_remainder(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_power() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_power(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_maximum() of broadcast operands; NaN if either is NaN, as in NumPy. \since 0.1 */
KILN_API kiln_value kiln_nn_maximum(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_minimum() of broadcast operands; NaN if either is NaN, as in NumPy. \since 0.1 */
KILN_API kiln_value kiln_nn_minimum(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_atan2() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_atan2(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_and() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_and(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_or() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_or(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_xor() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_xor(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_shift_left() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_shift_left(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_shift_right_arithmetic() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_shift_right_arithmetic(kiln_graph* graph, kiln_value lhs,
                                                   kiln_value rhs);
/** kiln_op_shift_right_logical() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_shift_right_logical(kiln_graph* graph, kiln_value lhs, kiln_value rhs);
/** kiln_op_compare() of broadcast operands. \since 0.1 */
KILN_API kiln_value kiln_nn_compare(kiln_graph* graph, kiln_value lhs, kiln_value rhs,
                                    kiln_direction direction);
/** kiln_op_select() of broadcast operands, as numpy.where(): `on_true` where `condition`, a pred,
 * is true, and `on_false` elsewhere. \since 0.1 */
KILN_API kiln_value kiln_nn_where(kiln_graph* graph, kiln_value condition, kiln_value on_true,
                                  kiln_value on_false);
/** kiln_op_clamp() of broadcast operands, as numpy.clip(): min(max(operand, low), high). Either
 *  bound may be 0 (no value), for no bound. \since 0.1 */
KILN_API kiln_value kiln_nn_clip(kiln_graph* graph, kiln_value operand, kiln_value low,
                                 kiln_value high);
/** @} */

/** @name Activations */
/** @{ */
/** exp(x - max(x)) / sum(exp(x - max(x))), over `dimensions`, as jax.nn.softmax(). A slice with a
 *  NaN or +inf, or with -inf only, is NaN.
 *  @param operand floats
 *  @param dimensions the reduced dimensions, one for the usual softmax \since 0.1 */
KILN_API kiln_value kiln_nn_softmax(kiln_graph* graph, kiln_value operand,
                                    const int64_t* dimensions, size_t dimensions_count);
/** x - max(x) - log(sum(exp(x - max(x)))), over `dimensions`: the logarithm of kiln_nn_softmax()
 *  without its underflow, as jax.nn.log_softmax().
 *  @param operand floats
 *  @param dimensions the reduced dimensions \since 0.1 */
KILN_API kiln_value kiln_nn_log_softmax(kiln_graph* graph, kiln_value operand,
                                        const int64_t* dimensions, size_t dimensions_count);
/** The Gaussian error linear unit (Hendrycks and Gimpel, arXiv:1606.08415), as jax.nn.gelu():
 *  x / 2 * erfc(-x / sqrt(2)), or its approximation
 *  x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
 *  @param operand floats
 *  @param approximate 0 or 1 \since 0.1 */
KILN_API kiln_value kiln_nn_gelu(kiln_graph* graph, kiln_value operand, int32_t approximate);
/** x * logistic(x), also known as swish, as jax.nn.silu(). -inf gives NaN.
 *  @param operand floats \since 0.1 */
KILN_API kiln_value kiln_nn_silu(kiln_graph* graph, kiln_value operand);
/** @} */

/** @name Normalisations */
/** @{ */
/** (x - mean) / sqrt(variance + epsilon) * scale + offset, with mean and variance over `dimensions`
 *  (Ba, Kiros and Hinton, arXiv:1607.06450).
 *  @param operand floats
 *  @param scale 0 for none; broadcast to the operand as in NumPy. A float type no wider than the
 *         type of the computation
 *  @param offset as `scale`
 *  @param dimensions the dimensions normalised together, usually the last
 *  @param epsilon 1e-5 in PyTorch, 1e-6 in Flax \since 0.1 */
KILN_API kiln_value kiln_nn_layer_norm(kiln_graph* graph, kiln_value operand, kiln_value scale,
                                       kiln_value offset, const int64_t* dimensions,
                                       size_t dimensions_count, double epsilon);
/** x / sqrt(mean(x^2) + epsilon) * scale, with the mean over `dimensions` (Zhang and Sennrich,
 *  arXiv:1910.07467). The parameters are those of kiln_nn_layer_norm(). \since 0.1 */
KILN_API kiln_value kiln_nn_rms_norm(kiln_graph* graph, kiln_value operand, kiln_value scale,
                                     const int64_t* dimensions, size_t dimensions_count,
                                     double epsilon);
/** @} */

/** @name Statistics, argmax and argmin */
/** @{ */
/** The mean over `dimensions`, as numpy.mean(): floats and complex numbers keep their type,
 *  integers and pred are summed in f64, the type of the result. The mean of no elements is NaN.
 *  @param dimensions NULL with count 0: all of them
 *  @param keepdims 1: the result keeps the reduced dimensions with size 1; 0: it drops them
 *         \since 0.1 */
KILN_API kiln_value kiln_nn_mean(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                                 size_t dimensions_count, int32_t keepdims);
/** The mean square distance from the mean, sum(abs(x - mean(x))^2) / max(N - ddof, 0), as
 *  numpy.var(). Types are those of kiln_nn_mean(), except that the variance of complex numbers is
 *  real.
 *  @param ddof "delta degrees of freedom": 0, or 1 for the sample variance
 *  @param dimensions NULL with count 0: all of them
 *  @param keepdims as in kiln_nn_mean() \since 0.1 */
KILN_API kiln_value kiln_nn_variance(kiln_graph* graph, kiln_value operand,
                                     const int64_t* dimensions, size_t dimensions_count,
                                     double ddof, int32_t keepdims);
/** The position of the largest element along `dimensions`, as numpy.argmax(): the first NaN, or
 *  else the first of equal elements (-0 equals +0). Along several dimensions it is the position in
 *  row-major order among their elements. There must be at least one element; with a symbol of size
 *  0 the result is the largest position of the type.
 *  @param operand pred, integers or floats
 *  @param dimensions NULL with count 0: all of them, the position in the flattened array
 *  @param keepdims as in kiln_nn_mean()
 *  @param dtype an integer type that holds the positions; 0: s64 \since 0.1 */
KILN_API kiln_value kiln_nn_argmax(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                                   size_t dimensions_count, int32_t keepdims, kiln_dtype dtype);
/** The position of the smallest element, as numpy.argmin(); otherwise as kiln_nn_argmax().
 *  \since 0.1 */
KILN_API kiln_value kiln_nn_argmin(kiln_graph* graph, kiln_value operand, const int64_t* dimensions,
                                   size_t dimensions_count, int32_t keepdims, kiln_dtype dtype);
/** @} */

/** @name Embedding lookups */
/** @{ */
/** The treatment of out-of-bounds indices by kiln_nn_take(). \since 0.1 */
typedef int32_t kiln_take_mode;
/** @name Modes of kiln_nn_take(), those of jax.numpy.take() */
/** @{ */
#define KILN_TAKE_FILL                                                                             \
  1 /**< -size to -1 count from the end; other indices out of bounds give NaN, the smallest signed \
         integer, the largest unsigned integer, or true */
#define KILN_TAKE_CLIP 2 /**< negative indices become 0, indices beyond the end the last one */
#define KILN_TAKE_WRAP 3 /**< modulo the size, not negative */
/** @} */
/** The slices of `operand` along a dimension at `indices`, as numpy.take(): the result has the
 *  indices' dimensions in place of that one. For an embedding, the rows of a table, it is dimension
 *  0.
 *  @param operand any type; with KILN_TAKE_FILL a float type must have NaN
 *  @param indices integers
 *  @param mode KILN_TAKE_FILL, KILN_TAKE_CLIP or KILN_TAKE_WRAP; the latter two fail on a dimension
 *         of size 0 \since 0.1 */
KILN_API kiln_value kiln_nn_take(kiln_graph* graph, kiln_value operand, kiln_value indices,
                                 int64_t dimension, kiln_take_mode mode);
/** 1 where a new dimension's position equals the index and 0 elsewhere, as jax.nn.one_hot(): an
 *  index outside of 0 to `classes` - 1 gives zeros.
 *  @param indices integers
 *  @param classes the size of the new dimension, a constant or a symbol
 *  @param dimension the position of the new dimension in the result; -1 is the last
 *  @param dtype the result's type \since 0.1 */
KILN_API kiln_value kiln_nn_one_hot(kiln_graph* graph, kiln_value indices, int64_t classes,
                                    int64_t dimension, kiln_dtype dtype);
/** @} */

/** The options of kiln_nn_attention(). \since 0.1 */
typedef struct kiln_attention_options {
  size_t struct_size; /**< set by kiln_attention_options_init() */
  double scale;       /**< factor of the logits; 0: 1 / sqrt(H), H being the size of a head */
  int32_t causal;     /**< 1: query t attends to keys 0 to t only */
  int32_t reserved;   /**< 0 */
  kiln_value mask;    /**< pred, true where a query attends to a key; broadcast to [B,N,T,S]; 0:
                           none */
  kiln_value bias;    /**< floats, added to the scaled logits; broadcast to [B,N,T,S]; 0: none */
} kiln_attention_options;

/** Makes default ::kiln_attention_options of a variable. */
#define KILN_ATTENTION_OPTIONS_INIT \
  { sizeof(kiln_attention_options), 0, 0, 0, 0, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_attention_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_attention_options_init(kiln_attention_options* options, size_t size);

/** Scaled dot product attention (Vaswani et al., arXiv:1706.03762), as
 *  jax.nn.dot_product_attention(): softmax(scale * query . key + bias) . value over the keys. For
 *  each head (n), logits and weights are computed in f32 or wider; weights are rounded to the type
 *  of `value` before the multiplication. Masked logits are -0.7 times the largest finite value, so
 *  a query without keys takes the mean of all values.
 *  @param query floats [B,T,N,H]: batches, queries, heads, and the size of a head; or [T,N,H]
 *  @param key [B,S,K,H], or [S,K,H]: K divides N, and N / K query heads share one key head (grouped
 *         and multi query attention, arXiv:2305.13245)
 *  @param value [B,S,K,H], or [S,K,H]
 *  @param options may be NULL: the defaults
 *  @return a value of the shape and type of `query` \since 0.1 */
KILN_API kiln_value kiln_nn_attention(kiln_graph* graph, kiln_value query, kiln_value key,
                                      kiln_value value, const kiln_attention_options* options);

#ifdef __cplusplus
}
#endif

#endif /* KILN_NN_H_ */
