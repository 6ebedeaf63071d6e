// Combiners that keep one of two elements.
#pragma once

#include <span>

#include "kernel/kernel.h"

namespace kiln::kernel {

// Whether a combiner of accumulators of these types finds the same results whatever the order in
// which elements are taken, and however often each is:
//
//   f(x, y) = f(y, x)     f(f(x, y), z) = f(x, f(y, z))     f(x, x) = x
//
// as those of argmin and argmax do. That is shown by trying: where accumulators are only compared
// with their like, and chosen by what comes out, nothing matters but the order of three elements,
// and all orders of three are there among three numbers and NaN. (Zeros are equal: of two that tie
// in all else either's sign may be kept.) False where it is not shown.
bool IsSelection(const Combiner& combiner, std::span<const ElementType> types);

}  // namespace kiln::kernel
