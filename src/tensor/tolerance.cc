#include "tensor/tolerance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "tensor/float_format.h"

namespace kiln {
namespace {

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();

uint64_t BitsOf(const std::byte* from, int64_t bytes, int64_t k) {
  uint64_t bits = 0;
  std::memcpy(&bits, from + k * bytes, static_cast<size_t>(bytes));
  return bits;
}

double NumberOf(const FloatFormat& format, uint64_t bits) {
  return DecodeFloat<double>(format, bits);
}

// Counts up with the numbers; the zeros are 0.
int64_t OrderOf(const FloatFormat& format, uint64_t bits) {
  const auto magnitude = static_cast<int64_t>(bits & format.magnitude_mask());
  return (bits & format.sign_bit()) != 0 ? -magnitude : magnitude;
}

uint64_t UlpsBetween(const FloatFormat& format, uint64_t x, uint64_t y) {
  const double a = NumberOf(format, x), b = NumberOf(format, y);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kFar;
  if (std::isinf(a) || std::isinf(b)) return a == b ? 0 : kFar;
  const int64_t i = OrderOf(format, x), j = OrderOf(format, y);
  return i < j ? static_cast<uint64_t>(j) - static_cast<uint64_t>(i)
               : static_cast<uint64_t>(i) - static_cast<uint64_t>(j);
}

bool Within(double x, double y, double tolerance) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y || std::fabs(x - y) <= tolerance;
}

bool Agree(const FloatFormat& format, uint64_t x, uint64_t y, const Tolerance& tolerance) {
  const double a = NumberOf(format, x), b = NumberOf(format, y);
  switch (tolerance.kind) {
    case Tolerance::Kind::kEqual:
      return a == b;
    case Tolerance::Kind::kWithin:
      return Within(a, b, tolerance.absolute);
    case Tolerance::Kind::kUlps:
      break;
  }
  const uint64_t ulps = UlpsBetween(format, x, y);
  return ulps >= tolerance.min_ulps && ulps <= tolerance.max_ulps;
}

// Calls f(float format of a part, bytes of a part, parts of an element).
template <typename F>
auto OnParts(ElementType type, F&& f) {
  const ElementType part = PartOf(type);
  return f(*FormatOf(part), ByteWidth(part), int64_t{IsComplex(type) ? 2 : 1});
}

bool ElementsAgree(ElementType type, const std::byte* x, const std::byte* y, int64_t k,
                   const Tolerance& tolerance) {
  if (!IsFloat(type) && !IsComplex(type)) {
    const int64_t bytes = ByteWidth(type);
    return std::memcmp(x + k * bytes, y + k * bytes, static_cast<size_t>(bytes)) == 0;
  }
  return OnParts(type, [&](const FloatFormat& format, int64_t bytes, int64_t parts) {
    // The distance of complex numbers is the larger distance of their parts.
    if (tolerance.kind == Tolerance::Kind::kUlps) {
      const uint64_t ulps = UlpDifference(type, x, y, k);
      return ulps >= tolerance.min_ulps && ulps <= tolerance.max_ulps;
    }
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t at = k * parts + p;
      if (!Agree(format, BitsOf(x, bytes, at), BitsOf(y, bytes, at), tolerance)) return false;
    }
    return true;
  });
}

// An element as in HLO text.
std::string ElementText(ElementType type, const std::byte* from, int64_t k) {
  Literal element(Shape::Scalar(type));
  const auto bytes = static_cast<size_t>(ByteWidth(type));
  std::memcpy(element.data(), from + k * ByteWidth(type), bytes);
  return element.ToString();
}

std::string IndexText(std::span<const int64_t> dims, int64_t k) {
  std::vector<int64_t> index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = k % dims[d];
    k /= dims[d];
  }
  return Cat("{", Join(index, ","), "}");
}

std::string Difference(ElementType type, const std::byte* x, const std::byte* y, int64_t k,
                       const Tolerance& tolerance) {
  switch (tolerance.kind) {
    case Tolerance::Kind::kEqual:
      return "they must be equal";
    case Tolerance::Kind::kWithin:
      return Cat("they may be ", tolerance.absolute, " apart");
    case Tolerance::Kind::kUlps:
      break;
  }
  if (!IsFloat(type) && !IsComplex(type)) return "they must be equal";
  const uint64_t ulps = UlpDifference(type, x, y, k);
  return Cat("they are ", ulps == kFar ? "infinitely many" : Cat(ulps), " ULP apart; expected ",
             tolerance.min_ulps > 0 ? Cat(tolerance.min_ulps, " to ") : "at most ",
             tolerance.max_ulps);
}

Result<uint64_t> Steps(std::string_view config, std::string_view name, uint64_t absent) {
  const std::string_view word = ConfigWord(config, name);
  if (word.empty()) return absent;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  return InvalidArgument(name, " is '", word, "'; expected a number of steps");
}

}  // namespace

uint64_t UlpDifference(ElementType type, const std::byte* x, const std::byte* y, int64_t k) {
  return OnParts(type, [&](const FloatFormat& format, int64_t bytes, int64_t parts) {
    uint64_t most = 0;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t at = k * parts + p;
      most = std::max(most, UlpsBetween(format, BitsOf(x, bytes, at), BitsOf(y, bytes, at)));
    }
    return most;
  });
}

std::string_view ConfigWord(std::string_view config, std::string_view name) {
  for (std::string_view word : Split(config, ' ')) {
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
  }
  return "";
}

Result<std::optional<Tolerance>> ToleranceOfCheck(std::string_view target,
                                                  std::string_view config) {
  Tolerance tolerance;
  if (target == "check.expect_eq") return std::optional(tolerance);
  if (target == "check.expect_close") {
    constexpr uint64_t kUsual = 3;
    tolerance.kind = Tolerance::Kind::kUlps;
    KILN_ASSIGN_OR_RETURN(tolerance.max_ulps, Steps(config, "max_ulp_difference", kUsual));
    KILN_ASSIGN_OR_RETURN(tolerance.min_ulps, Steps(config, "min_ulp_difference", 0));
    return std::optional(tolerance);
  }
  if (target != "check.expect_almost_eq" && target != "check.eq") {
    return std::optional<Tolerance>();
  }
  tolerance.kind = Tolerance::Kind::kWithin;
  tolerance.absolute = target == "check.eq" ? 1e-4 : 1e-3;
  const std::string_view word = ConfigWord(config, "tolerance");
  if (!word.empty()) {
    const std::optional<double> absolute = ParseDouble(word);
    if (!absolute || !(*absolute >= 0)) {
      return InvalidArgument("tolerance is '", word, "'; expected a number of at least 0");
    }
    tolerance.absolute = *absolute;
  }
  return std::optional(tolerance);
}

Status CheckClose(ElementType type, std::span<const int64_t> dims, const std::byte* actual,
                  const std::byte* expected, const Tolerance& tolerance) {
  const int64_t count = Product(dims);
  int64_t first = -1, wrong = 0;
  for (int64_t k = 0; k < count; ++k) {
    if (ElementsAgree(type, actual, expected, k, tolerance)) continue;
    if (wrong++ == 0) first = k;
  }
  if (wrong == 0) return OkStatus();
  return FailedPrecondition("element ", IndexText(dims, first), " is ",
                            ElementText(type, actual, first), " and should be ",
                            ElementText(type, expected, first), ": ",
                            Difference(type, actual, expected, first, tolerance),
                            wrong > 1 ? Cat(" (", wrong, " of ", count, " elements)") : "");
}

Status CheckClose(const Literal& actual, const Literal& expected, const Tolerance& tolerance) {
  const Shape &x = actual.shape(), &y = expected.shape();
  if (!x.is_array() || !x.SameTypeAndDimensions(y)) {
    return InvalidArgument("the value has the shape ", x, ", and what is expected ", y);
  }
  return CheckClose(x.type(), x.dims(), actual.data(), expected.data(), tolerance);
}

}  // namespace kiln
