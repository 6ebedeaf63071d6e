#include "tensor/polynomial.h"

#include <algorithm>

#include "base/characters.h"

namespace kiln {
namespace {

Status TooLarge() {
  return InvalidArgument("a size or one of its coefficients does not fit in an int64");
}

}  // namespace

Polynomial::Polynomial(int64_t constant) {
  if (constant != 0) terms_.push_back({{}, constant});
}

bool Polynomial::operator==(const Polynomial& other) const = default;

Result<Polynomial> Polynomial::Symbol(std::string_view name) {
  if (name.empty() || name.size() > kMaxSymbolLength || !IsLetter(name[0]) ||
      !std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); })) {
    return InvalidArgument("dimension symbol '", name, "' is not an identifier of 1 to ",
                           kMaxSymbolLength, " characters");
  }
  Polynomial result;
  result.terms_.push_back({{std::string(name)}, 1});
  return result;
}

int64_t Polynomial::constant() const {
  return !terms_.empty() && terms_.back().symbols.empty() ? terms_.back().times : 0;
}

// The terms in order, without zeros.
Result<Polynomial> Polynomial::Of(std::map<std::vector<std::string>, int64_t> terms) {
  Polynomial result;
  for (auto& [symbols, times] : terms) {
    if (times != 0) result.terms_.push_back({symbols, times});
  }
  std::stable_sort(result.terms_.begin(), result.terms_.end(), [](const Term& a, const Term& b) {
    return a.symbols.size() > b.symbols.size();
  });
  if (result.terms_.size() > kMaxTerms) {
    return InvalidArgument("a size of ", result.terms_.size(), " terms; at most ", kMaxTerms,
                           " are supported");
  }
  if (!result.terms_.empty() && result.terms_.front().symbols.size() > kMaxDegree) {
    return InvalidArgument("a size is a product of ", result.terms_.front().symbols.size(),
                           " symbols; at most ", kMaxDegree, " are supported");
  }
  return result;
}

Result<Polynomial> Polynomial::Sum(const Polynomial& a, const Polynomial& b) {
  std::map<std::vector<std::string>, int64_t> terms;
  for (const Polynomial* p : {&a, &b}) {
    for (const Term& term : p->terms_) {
      int64_t& times = terms[term.symbols];
      if (__builtin_add_overflow(times, term.times, &times)) return TooLarge();
    }
  }
  return Of(std::move(terms));
}

Result<Polynomial> Polynomial::Product(const Polynomial& a, const Polynomial& b) {
  std::map<std::vector<std::string>, int64_t> terms;
  for (const Term& x : a.terms_) {
    for (const Term& y : b.terms_) {
      std::vector<std::string> symbols = x.symbols;
      symbols.insert(symbols.end(), y.symbols.begin(), y.symbols.end());
      std::sort(symbols.begin(), symbols.end());
      int64_t product = 0;
      int64_t& times = terms[std::move(symbols)];
      if (__builtin_mul_overflow(x.times, y.times, &product) ||
          __builtin_add_overflow(times, product, &times)) {
        return TooLarge();
      }
    }
  }
  return Of(std::move(terms));
}

// floor((divisor * q + c) / divisor) = q + floor(c / divisor), for integers q and c.
Result<Polynomial> Polynomial::Quotient(const Polynomial& a, int64_t divisor) {
  Polynomial result;
  for (const Term& term : a.terms_) {
    int64_t quotient = term.times / divisor;
    if (term.times % divisor != 0) {
      if (!term.symbols.empty()) {
        return InvalidArgument(a.ToString(), " is no multiple of ", divisor,
                               ", which would have to divide all but the constant");
      }
      if (term.times < 0) --quotient;
    }
    if (quotient != 0) result.terms_.push_back({term.symbols, quotient});
  }
  return result;
}

Result<Polynomial> Polynomial::With(const SymbolSizes& sizes) const {
  Polynomial sum;
  for (const Term& term : terms_) {
    Polynomial product(term.times);
    for (const std::string& symbol : term.symbols) {
      auto size = sizes.find(symbol);
      Polynomial factor;
      if (size != sizes.end()) {
        factor = Polynomial(size->second);
      } else {
        factor.terms_.push_back({{symbol}, 1});
      }
      KILN_ASSIGN_OR_RETURN(product, Product(product, factor));
    }
    KILN_ASSIGN_OR_RETURN(sum, Sum(sum, product));
  }
  return sum;
}

std::string Polynomial::ToString() const {
  if (terms_.empty()) return "0";
  std::string text;
  for (const Term& term : terms_) {
    if (term.times >= 0 && !text.empty()) text += "+";
    if (term.symbols.empty()) {
      text += Cat(term.times);
      continue;
    }
    if (term.times == -1) {
      text += "-";
    } else if (term.times != 1) {
      text += Cat(term.times, "*");
    }
    text += Join(term.symbols, "*");
  }
  return text;
}

}  // namespace kiln
