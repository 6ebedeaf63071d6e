// Polynomials of symbols with integer coefficients: sizes that become known when symbols are
// substituted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln {

// Sizes by the names of symbols.
using SymbolSizes = std::map<std::string, int64_t>;

// A sum of products of symbols, in a normal form: equal polynomials have equal terms.
class Polynomial {
 public:
  static constexpr size_t kMaxSymbolLength = 15;
  // Limits sufficient for shapes; larger polynomials are refused, to bound the work of untrusted
  // text.
  static constexpr size_t kMaxTerms = 32;
  static constexpr size_t kMaxDegree = 8;

  struct Term {
    std::vector<std::string> symbols;  // sorted; a square has its symbol twice; none: the constant
    int64_t times = 0;                 // not 0
    bool operator==(const Term&) const = default;
  };

  Polynomial() = default;  // 0
  explicit Polynomial(int64_t constant);
  // Fails unless the name is an identifier of at most kMaxSymbolLength characters.
  static Result<Polynomial> Symbol(std::string_view name);

  // Fail if a coefficient does not fit an int64, or if the result has too many terms.
  static Result<Polynomial> Sum(const Polynomial& a, const Polynomial& b);
  static Result<Polynomial> Product(const Polynomial& a, const Polynomial& b);
  // floor(a / divisor), for a divisor of at least 1. Fails unless it divides all coefficients but
  // the constant.
  static Result<Polynomial> Quotient(const Polynomial& a, int64_t divisor);

  // The higher degrees first; the constant is the last.
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty() || terms_.front().symbols.empty(); }
  int64_t constant() const;  // the term without symbols

  // With the symbols that have numbers substituted; the others stay.
  Result<Polynomial> With(const SymbolSizes& sizes) const;

  bool operator==(const Polynomial& other) const;
  std::string ToString() const;  // "2*n+1", "n*m-n", "-n+8"

 private:
  static Result<Polynomial> Of(std::map<std::vector<std::string>, int64_t> terms);

  std::vector<Term> terms_;
};

}  // namespace kiln
