// Combiners that keep one of two elements.
#pragma once

#include <optional>
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
//
// With `by`, f is called with x and y in the order of their accumulators of that number, which are
// integers: the first of several NaNs is kept, say, whichever comes first.
bool IsSelection(const Combiner& combiner, std::span<const ElementType> types,
                 std::optional<size_t> by = {});

// Whether some reduction of a stage is neither a sum nor another fold by one op.
bool AnyGeneral(const Stage& stage);

// A way to fold a reduction's elements as several sequences, each of which begins with the initial
// values and takes its elements in order, and to combine what they keep.
struct Sequences {
  // Two are combined in the order of their accumulators of this number, if it is there.
  std::optional<size_t> by;
};
// Of a general reduction: none where its elements have to be one sequence.
std::optional<Sequences> SequencesOf(const Kernel& kernel, const Stage& stage,
                                     const Reduction& reduction);

}  // namespace kiln::kernel
