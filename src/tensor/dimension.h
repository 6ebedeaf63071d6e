// One dimension of an array: a constant, a bounded size, or a symbolic size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/polynomial.h"

namespace kiln {

// A dimension is
//   constant  n         a known size;
//   bounded   <=n       a size known at run time, at most n;
//   symbolic  2*N+1     a size known after `specialise` replaces the symbols by numbers, each at
//                       least 0.
class Dimension {
 public:
  Dimension() = default;
  Dimension(int64_t size) : size_(size) {}  // NOLINT: a number is a dimension
  // A constant where the polynomial has no symbols.
  explicit Dimension(Polynomial size);
  static Dimension Bounded(int64_t bound);
  // Fails unless the name is an identifier of at most Polynomial::kMaxSymbolLength characters.
  static Result<Dimension> Symbol(std::string_view name);

  bool is_symbolic() const { return form_ != nullptr; }
  bool is_bounded() const { return bounded_; }
  bool is_constant() const { return form_ == nullptr && !bounded_; }
  // The size of a constant or the bound of a bounded one; -1 for a symbolic one.
  int64_t size() const { return size_; }
  // The size of one that is not bounded.
  Polynomial form() const;
  // With all its symbols substituted. Fails for a symbol without a number.
  Result<Dimension> With(const SymbolSizes& sizes) const;

  // Arithmetic on sizes that are not bounded; intermediate results may be negative. Failures are
  // those of polynomials.
  static Result<Dimension> Sum(const Dimension& a, const Dimension& b);
  static Result<Dimension> Difference(const Dimension& a, const Dimension& b);
  static Result<Dimension> Product(const Dimension& a, const Dimension& b);
  static Result<Dimension> Quotient(const Dimension& a, int64_t divisor);

  bool operator==(const Dimension& other) const {
    return size_ == other.size_ && bounded_ == other.bounded_ &&
           (form_ == other.form_ || (form_ && other.form_ && *form_ == *other.form_));
  }
  std::string ToString() const;  // "8", "<=8", "2*N+1"

 private:
  int64_t size_ = 0;
  bool bounded_ = false;
  std::shared_ptr<const Polynomial> form_;  // null but for symbolic ones
};

}  // namespace kiln
