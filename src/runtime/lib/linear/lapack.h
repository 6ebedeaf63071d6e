// LAPACK's functions for eigenvalues, singular values and the like, on batches.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "runtime/lib/function.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// Functions "lapack.NAME" of arrays of f32, f64, c64 or c128, computed in double precision.
// Matrices are row-major, and each result is an array of its own. NAME is LAPACK's without the
// letter of the type, for real and complex numbers alike; attributes are LAPACK's, by the names and
// letters of XLA's calls ("uplo=L mode=V"). A matrix with infinities or NaNs gives NaNs, and info
// as LAPACK does where that says so. A cancelled run skips the rest of the batch.
std::span<const Entry> LapackFunctions();

}  // namespace kiln::runtime::lib
