/** @file
 *  Element types, shapes and texts: the plain data of the other headers. */
#ifndef KILN_TYPES_H_
#define KILN_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The type of an array's elements. The numbers are XLA's PrimitiveType, and from 64 on Kiln's own.
 *  \since 0.1 */
typedef int32_t kiln_dtype;
/** @name Element types
 *  An element type unsupported by an operation is an UNIMPLEMENTED or INVALID_ARGUMENT error.
 *
 *  An element of less than a byte occupies a whole byte: an integer as the byte of the same value,
 *  a float in the low bits, with zeros above. Other bytes are invalid, and results computed from
 *  them are undefined. A complex number is its real part, followed by the imaginary part. */
/** @{ */
#define KILN_PRED                                                                              \
  1                           /**< truth value, one byte: 0 or 1. In buffers and in results of \
                                   custom calls any byte but 0 is true; other results are 0 or 1 */
#define KILN_S8 2             /**< signed integer of 8 bits */
#define KILN_S16 3            /**< signed integer of 16 bits */
#define KILN_S32 4            /**< signed integer of 32 bits */
#define KILN_S64 5            /**< signed integer of 64 bits */
#define KILN_U8 6             /**< unsigned integer of 8 bits */
#define KILN_U16 7            /**< unsigned integer of 16 bits */
#define KILN_U32 8            /**< unsigned integer of 32 bits */
#define KILN_U64 9            /**< unsigned integer of 64 bits */
#define KILN_F16 10           /**< IEEE 754 half precision */
#define KILN_F32 11           /**< IEEE 754 single precision */
#define KILN_F64 12           /**< IEEE 754 double precision */
#define KILN_TUPLE 13         /**< several values as one; has no elements of its own */
#define KILN_C64 15           /**< complex of two KILN_F32 */
#define KILN_BF16 16          /**< the upper half of a KILN_F32 */
#define KILN_TOKEN 17         /**< the order of side effects, as a value; has no elements */
#define KILN_C128 18          /**< complex of two KILN_F64 */
#define KILN_F8E5M2 19        /**< 8 bits, 5 of exponent, 2 of mantissa */
#define KILN_F8E4M3FN 20      /**< 8 bits, no infinities */
#define KILN_S4 21            /**< signed integer of 4 bits */
#define KILN_U4 22            /**< unsigned integer of 4 bits */
#define KILN_F8E4M3B11FNUZ 23 /**< 8 bits, exponent bias 11, no infinities, no negative zero */
#define KILN_F8E5M2FNUZ 24    /**< 8 bits, no infinities, no negative zero */
#define KILN_F8E4M3FNUZ 25    /**< 8 bits, no infinities, no negative zero */
#define KILN_S2 26            /**< signed integer of 2 bits */
#define KILN_U2 27            /**< unsigned integer of 2 bits */
#define KILN_F8E4M3 28        /**< 8 bits, with infinities as in IEEE 754 */
#define KILN_F8E3M4 29        /**< 8 bits, 3 of exponent, 4 of mantissa */
#define KILN_F4E2M1FN 32      /**< 4 bits, no infinities, no NaN */
#define KILN_F8E8M0FNU 33     /**< 8 bits of exponent only */
#define KILN_F6E2M3FN 64      /**< 6 bits, 2 of exponent, 3 of mantissa, no infinities, no NaN */
#define KILN_F6E3M2FN 65      /**< 6 bits, 3 of exponent, 2 of mantissa, no infinities, no NaN */
/** @} */

/** The shape of an array, token or tuple. Filled in by the library; `dims` belongs to the queried
 * object and lives as long as it does. \since 0.1 */
typedef struct kiln_shape {
  size_t struct_size;  /**< set by the caller: sizeof(kiln_shape) */
  kiln_dtype dtype;    /**< KILN_TUPLE for a tuple, KILN_TOKEN for a token */
  int32_t reserved;    /**< 0 */
  size_t rank;         /**< number of dimensions; for a tuple the number of its elements; 0 for a
                            token */
  const int64_t* dims; /**< `rank` sizes; a negative one is a symbol (kiln_graph_symbol()). NULL for
                            a tuple */
  int64_t byte_size;   /**< of the elements in row-major order; -1 if a size is unknown */
} kiln_shape;

/** Makes an empty ::kiln_shape of a variable, with its struct_size set. */
#define KILN_SHAPE_INIT \
  { sizeof(kiln_shape), 0, 0, 0, NULL, 0 }

/** The HLO name of an element type, "f32"; "invalid" for an unknown number. Static. Any thread.
 *  \since 0.1 */
KILN_API const char* kiln_dtype_name(kiln_dtype dtype);

/** Bits of one element in memory; 0 for a tuple, a token or an unknown number. Any thread. \since
 * 0.1 */
KILN_API int32_t kiln_dtype_bits(kiln_dtype dtype);

/** A text made by the library, such as HLO or JSON, or bytes, such as a saved program. Immutable,
 *  reference counted. \since 0.1 */
typedef struct kiln_text kiln_text;

/** The characters, null-terminated; they live as long as the text. `length`, unless NULL, receives
 *  their number, without the terminator. NULL for a NULL text. Any thread. \since 0.1 */
KILN_API const char* kiln_text_data(const kiln_text* text, size_t* length);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_text_retain(kiln_text* text);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_text_release(kiln_text* text);

#ifdef __cplusplus
}
#endif

#endif /* KILN_TYPES_H_ */
