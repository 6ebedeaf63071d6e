#include "ops/window.h"

namespace kiln {

std::optional<int64_t> WindowPlaces(const WindowDimension& w, int64_t size) {
  if (w.size < 1 || w.stride < 1 || w.base_dilation < 1 || w.window_dilation < 1) {
    return std::nullopt;
  }
  // The places between the first and the last of the base, and of the window.
  int64_t base = 0, window = 0;
  if (size > 0 && (__builtin_mul_overflow(size - 1, w.base_dilation, &base) ||
                   __builtin_add_overflow(base, 1, &base))) {
    return std::nullopt;
  }
  if (__builtin_mul_overflow(w.size - 1, w.window_dilation, &window) ||
      __builtin_add_overflow(window, 1, &window) || __builtin_add_overflow(base, w.low, &base) ||
      __builtin_add_overflow(base, w.high, &base)) {
    return std::nullopt;
  }
  if (base < window) return 0;
  return (base - window) / w.stride + 1;
}

// ((size - 1) * base_dilation + 1 + low + high - extent) / stride + 1, where `extent` is the extent
// of the window.
Result<Dimension> SymbolicWindowPlaces(const WindowDimension& w, const Dimension& size) {
  int64_t extent = 0, offset = 0;
  bool fits = w.size >= 1 && w.stride >= 1 && w.base_dilation >= 1 && w.window_dilation >= 1 &&
              !__builtin_mul_overflow(w.size - 1, w.window_dilation, &extent) &&
              !__builtin_add_overflow(w.low, w.high, &offset) &&
              !__builtin_sub_overflow(offset, extent, &offset) &&
              !__builtin_sub_overflow(offset, w.base_dilation, &offset);
  if (!fits) {
    return InvalidArgument(
        "sizes, strides and dilations of the window must be at least 1, and all "
        "of it must fit into 64 bits");
  }
  KILN_ASSIGN_OR_RETURN(Dimension base, Dimension::Product(size, w.base_dilation));
  KILN_ASSIGN_OR_RETURN(base, Dimension::Sum(base, offset));
  KILN_ASSIGN_OR_RETURN(base, Dimension::Quotient(base, w.stride));
  return Dimension::Sum(base, 1);
}

bool IsTrivial(const WindowDimension& w) {
  return w.size == 1 && w.stride == 1 && w.low == 0 && w.high == 0 && w.base_dilation == 1;
}

}  // namespace kiln
