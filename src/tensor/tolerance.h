// Comparison of arrays within tolerances: the checks of programs, for the evaluator and for
// compiled code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/literal.h"

namespace kiln {

// The criterion of equality for elements. For complex numbers it holds for both parts.
struct Tolerance {
  enum class Kind : uint8_t {
    kEqual,   // as `compare` says with EQ: no NaN equals anything, and the zeros are equal
    kWithin,  // floats of which the difference is at most `absolute`, equal infinities, and any
              // NaN with any other; integers that are equal
    kUlps,    // floats that have from `min_ulps` to `max_ulps` steps between them; integers that
              // are equal
  };
  Kind kind = Kind::kEqual;
  double absolute = 0;
  uint64_t max_ulps = 0, min_ulps = 0;
};

// The number of steps between two floats in their own type; for complex numbers the larger one of
// both parts. Both zeros are one number, and so are all NaNs. UINT64_MAX between a NaN and a
// number, between an infinity and a finite number, and between the two infinities. Element `k` of
// arrays of floats or complex numbers.
uint64_t UlpDifference(ElementType type, const std::byte* x, const std::byte* y, int64_t k);

// The tolerance of a check, by its custom call's target and config, words "name=value":
//   check.expect_eq         kEqual
//   check.expect_almost_eq  kWithin, `tolerance` or 1e-3
//   check.eq                kWithin, `tolerance` or 1e-4
//   check.expect_close      kUlps max_ulp_difference, or 3, and min_ulp_difference, or 0
// Nothing for other targets; an error for an invalid config.
Result<std::optional<Tolerance>> ToleranceOfCheck(std::string_view target, std::string_view config);
// The value of a word "name=value"; "" if missing.
std::string_view ConfigWord(std::string_view config, std::string_view name);

// FAILED_PRECONDITION if elements differ, with the first of them, and their number. The arrays have
// these sizes, row-major.
Status CheckClose(ElementType type, std::span<const int64_t> dims, const std::byte* actual,
                  const std::byte* expected, const Tolerance& tolerance);
// The same for two literals of equal shape.
Status CheckClose(const Literal& actual, const Literal& expected, const Tolerance& tolerance);

}  // namespace kiln
