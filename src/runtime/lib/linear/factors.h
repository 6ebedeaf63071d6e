// LU and QR of real matrices, f32 or f64, and products of QR's reflections. In the places of
// results may be those of operands of their size.
#pragma once

#include "runtime/lib/linear/lapack_call.h"

namespace kiln::runtime::lib::linear {

Kernels RealLu();                    // getrf
Kernels RealQr();                    // geqrf
Kernels RealProductOfReflections();  // orgqr
Kernel RealByReflections();          // ormqr

}  // namespace kiln::runtime::lib::linear
