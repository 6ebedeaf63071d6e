// Narrow types, computed in a wider one op by op: integers of less than a byte in bytes, floats of
// 8 bits and fewer in f32.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tensor/literal.h"

namespace kiln::interp {

inline bool IsNarrow(ElementType type) { return WideOf(type) != type; }

// `count` elements converted to WideOf(type), without loss.
void Widen(ElementType type, const std::byte* from, int64_t count, std::byte* to);
Literal Widened(const Literal& narrow);
// Back again: integers wrap, floats round to nearest even.
void Narrow(ElementType type, const std::byte* from, int64_t count, std::byte* to);
// To a narrow float type, once.
Literal Rounded(ElementType type, const Literal& doubles);
// Normalises assembled bits to the form of elements: a pred becomes 0 or 1.
void Normalise(ElementType type, std::byte* elements, int64_t count);

// See ops.def: an element repeated, or `count` of them.
void Convert(ElementType from, const std::byte* elements, bool repeats, ElementType to,
             std::byte* out, int64_t count);

}  // namespace kiln::interp
