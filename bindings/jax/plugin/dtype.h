/** @file
 *  Element types of PJRT and of the library. */
#ifndef KILN_JAX_PLUGIN_DTYPE_H_
#define KILN_JAX_PLUGIN_DTYPE_H_

#include "kiln/types.h"
#include "plugin/api/types.h"

namespace kiln_jax {

/** The library's type; 0 for types without elements, and for unknown numbers. */
kiln_dtype DtypeOf(PJRT_Buffer_Type type);

/** PJRT's type; PJRT_Buffer_Type_INVALID for types that PJRT lacks. */
PJRT_Buffer_Type TypeOf(kiln_dtype dtype);

/** Bytes of an element, in buffers and in the caller's memory alike. */
inline int64_t ElementBytes(kiln_dtype dtype) { return (kiln_dtype_bits(dtype) + 7) / 8; }

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_DTYPE_H_
