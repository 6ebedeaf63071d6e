#include "tensor/dimension.h"

namespace kiln {
namespace {

Result<Dimension> OfPolynomial(Result<Polynomial> size) {
  if (!size.ok()) return size.status();
  return Dimension(*std::move(size));
}

}  // namespace

Dimension::Dimension(Polynomial size) : size_(-1) {
  if (size.is_constant()) {
    size_ = size.constant();
  } else {
    form_ = std::make_shared<const Polynomial>(std::move(size));
  }
}

Polynomial Dimension::form() const { return form_ ? *form_ : Polynomial(size_); }

Dimension Dimension::Bounded(int64_t bound) {
  Dimension d(bound);
  d.bounded_ = true;
  return d;
}

Result<Dimension> Dimension::Symbol(std::string_view name) {
  return OfPolynomial(Polynomial::Symbol(name));
}

Result<Dimension> Dimension::With(const SymbolSizes& sizes) const {
  if (!form_) return *this;
  KILN_ASSIGN_OR_RETURN(Polynomial size, form_->With(sizes));
  if (!size.is_constant()) {
    const std::string& missing = size.terms().front().symbols.front();
    return InvalidArgument("symbol ", missing, " has no size");
  }
  return Dimension(std::move(size));
}

Result<Dimension> Dimension::Sum(const Dimension& a, const Dimension& b) {
  return OfPolynomial(Polynomial::Sum(a.form(), b.form()));
}

Result<Dimension> Dimension::Difference(const Dimension& a, const Dimension& b) {
  KILN_ASSIGN_OR_RETURN(Polynomial minus, Polynomial::Product(b.form(), Polynomial(-1)));
  return OfPolynomial(Polynomial::Sum(a.form(), minus));
}

Result<Dimension> Dimension::Product(const Dimension& a, const Dimension& b) {
  return OfPolynomial(Polynomial::Product(a.form(), b.form()));
}

Result<Dimension> Dimension::Quotient(const Dimension& a, int64_t divisor) {
  return OfPolynomial(Polynomial::Quotient(a.form(), divisor));
}

std::string Dimension::ToString() const {
  if (form_) return form_->ToString();
  return bounded_ ? Cat("<=", size_) : Cat(size_);
}

}  // namespace kiln
