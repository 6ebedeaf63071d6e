#include "kernel/index.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/strings.h"
#include "tensor/shape.h"

namespace kiln::kernel {
namespace {

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t FloorMod(int64_t a, int64_t b) { return a - b * FloorDivide(a, b); }

// A fixed order of atoms, so that equal indices have equal terms.
bool Before(const Atom& a, const Atom& b) {
  if (a.kind != b.kind) return a.kind < b.kind;
  if (a.variable != b.variable) return a.variable < b.variable;
  if (a.node != b.node) return a.node < b.node;
  if (a.divisor != b.divisor) return a.divisor < b.divisor;
  if (a.kind == Atom::Kind::kValue) return false;
  if (a.inner == b.inner || a.inner == nullptr || b.inner == nullptr) return false;
  return a.inner->ToString() < b.inner->ToString();
}

// The dividend of an atom: `inner`, or for a quotient of a quotient the innermost with both
// divisors.
struct Quotient {
  const Index* inner;
  int64_t divisor;
};
Quotient AsQuotient(const Index& index) {
  if (index.constant() == 0 && index.terms().size() == 1 && index.terms()[0].coefficient == 1 &&
      index.terms()[0].atom.kind == Atom::Kind::kDiv) {
    const Atom& atom = index.terms()[0].atom;
    return {atom.inner.get(), atom.divisor};
  }
  return {&index, 1};
}

// An index as  unit * large + small  with 0 <= small < unit, unit > 1 dividing `divisor`.
struct Cut {
  int64_t unit;
  Index large, small;
};
std::optional<Cut> FindCut(const Index& index, int64_t divisor) {
  for (const Index::Term& candidate : index.terms()) {
    int64_t unit = std::abs(candidate.coefficient);
    if (unit <= 1 || unit >= divisor || divisor % unit != 0) continue;
    Index large = FloorDivide(index.constant(), unit), small = FloorMod(index.constant(), unit);
    for (const Index::Term& term : index.terms()) {
      bool whole = term.coefficient % unit == 0;
      Index part = Index::OfTerm(whole ? term.coefficient / unit : term.coefficient, term.atom);
      (whole ? large : small) = (whole ? large : small) + part;
    }
    if (small.low() >= 0 && small.high() < unit) return Cut{unit, large, small};
  }
  return std::nullopt;
}

// An index as divisor * whole + rest, the rest being the terms that are no multiples of the
// divisor.
struct Parts {
  Index whole, rest;
};
Parts SplitBy(const Index& index, int64_t divisor) {
  Parts parts{FloorDivide(index.constant(), divisor), FloorMod(index.constant(), divisor)};
  for (const Index::Term& term : index.terms()) {
    if (term.coefficient % divisor == 0) {
      parts.whole = parts.whole + Index::OfTerm(term.coefficient / divisor, term.atom);
    } else {
      parts.rest = parts.rest + Index::OfTerm(term.coefficient, term.atom);
    }
  }
  return parts;
}

}  // namespace

bool Atom::operator==(const Atom& other) const {
  if (kind != other.kind || variable != other.variable || node != other.node) return false;
  if (divisor != other.divisor) return false;
  if (kind == Kind::kValue) return true;
  if (inner == other.inner) return true;
  return inner && other.inner && *inner == *other.inner;
}

Index Index::OfTerm(int64_t coefficient, Atom atom) {
  Index index;
  if (coefficient != 0) index.terms_.push_back({coefficient, std::move(atom)});
  return index;
}

Index Index::Variable(VariableId id, int64_t extent) {
  if (extent == 1) return 0;
  Atom atom{.kind = Atom::Kind::kVariable, .variable = id};
  atom.high = std::max<int64_t>(extent - 1, 0);
  return OfTerm(1, std::move(atom));
}

Index Index::Value(NodeId id, int64_t low, int64_t high, Index depends) {
  if (low == high) return low;
  Atom atom{.kind = Atom::Kind::kValue, .node = id, .low = low, .high = high};
  atom.inner = std::make_shared<const Index>(std::move(depends));
  return OfTerm(1, std::move(atom));
}

int64_t Index::low() const {
  int64_t value = constant_;
  for (const Term& t : terms_) {
    value += t.coefficient * (t.coefficient > 0 ? t.atom.low : t.atom.high);
  }
  return value;
}

int64_t Index::high() const {
  int64_t value = constant_;
  for (const Term& t : terms_) {
    value += t.coefficient * (t.coefficient > 0 ? t.atom.high : t.atom.low);
  }
  return value;
}

void Index::Add(int64_t coefficient, const Atom& atom) {
  auto at = std::lower_bound(terms_.begin(), terms_.end(), atom,
                             [](const Term& t, const Atom& a) { return Before(t.atom, a); });
  if (at != terms_.end() && at->atom == atom) {
    at->coefficient += coefficient;
    if (at->coefficient == 0) terms_.erase(at);
  } else if (coefficient != 0) {
    terms_.insert(at, {coefficient, atom});
  }
}

// q*c*(e div c) + q*(e mod c) => q*e,  where e may itself be a quotient: (e div a) mod c goes with
// e div (a*c).
void Index::Recombine() {
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].atom.kind != Atom::Kind::kMod) continue;
    const Term mod = terms_[i];
    Quotient e = AsQuotient(*mod.atom.inner);
    for (size_t j = 0; j < terms_.size(); ++j) {
      const Term div = terms_[j];
      if (div.atom.kind != Atom::Kind::kDiv ||
          div.coefficient != mod.coefficient * mod.atom.divisor ||
          div.atom.divisor != mod.atom.divisor * e.divisor || !(*div.atom.inner == *e.inner)) {
        continue;
      }
      terms_.erase(terms_.begin() + std::max(i, j));
      terms_.erase(terms_.begin() + std::min(i, j));
      *this = *this + *mod.atom.inner * mod.coefficient;
      return;
    }
  }
}

void Index::AddMultiple(const Index& other, int64_t factor) {
  if (factor == 0) return;
  constant_ += other.constant_ * factor;
  for (const Term& t : other.terms_) Add(t.coefficient * factor, t.atom);
  Recombine();
}

Index operator+(const Index& a, const Index& b) {
  Index sum = a;
  sum.AddMultiple(b, 1);
  return sum;
}

Index operator*(const Index& a, int64_t factor) {
  if (factor == 0) return 0;
  Index product = a;
  product.constant_ *= factor;
  for (Index::Term& t : product.terms_) t.coefficient *= factor;
  return product;
}

Index Index::FloorDiv(int64_t divisor) const {
  if (divisor == 1) return *this;
  auto [whole, rest] = SplitBy(*this, divisor);
  if (rest.low() >= 0 && rest.high() < divisor) return whole;
  if (auto cut = FindCut(rest, divisor)) return whole + cut->large.FloorDiv(divisor / cut->unit);
  Quotient inner = AsQuotient(rest);
  Atom atom{.kind = Atom::Kind::kDiv, .divisor = divisor * inner.divisor};
  atom.low = FloorDivide(rest.low(), divisor);
  atom.high = FloorDivide(rest.high(), divisor);
  atom.inner = std::make_shared<const Index>(*inner.inner);
  return whole + OfTerm(1, std::move(atom));
}

Index Index::Mod(int64_t divisor) const {
  if (divisor == 1) return 0;
  Index rest = SplitBy(*this, divisor).rest;
  if (rest.low() >= 0 && rest.high() < divisor) return rest;
  if (auto cut = FindCut(rest, divisor)) {
    return cut->large.Mod(divisor / cut->unit) * cut->unit + cut->small;
  }
  // (e mod a) mod c => e mod c  where c divides a.
  if (rest.constant() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1) {
    const Atom& atom = rest.terms()[0].atom;
    if (atom.kind == Atom::Kind::kMod && atom.divisor % divisor == 0) {
      return atom.inner->Mod(divisor);
    }
  }
  Atom atom{.kind = Atom::Kind::kMod, .divisor = divisor, .high = divisor - 1};
  atom.inner = std::make_shared<const Index>(std::move(rest));
  return OfTerm(1, std::move(atom));
}

std::optional<int64_t> Index::StrideOf(VariableId variable) const {
  int64_t stride = 0;
  for (const Term& t : terms_) {
    switch (t.atom.kind) {
      case Atom::Kind::kVariable:
        if (t.atom.variable == variable) stride += t.coefficient;
        break;
      case Atom::Kind::kDiv:
      case Atom::Kind::kMod:
      case Atom::Kind::kValue:
        if (t.atom.inner->DependsOn(variable)) return std::nullopt;
        break;
    }
  }
  return stride;
}

bool Index::DependsOn(VariableId variable) const {
  for (const Term& t : terms_) {
    switch (t.atom.kind) {
      case Atom::Kind::kVariable:
        if (t.atom.variable == variable) return true;
        break;
      case Atom::Kind::kDiv:
      case Atom::Kind::kMod:
      case Atom::Kind::kValue:
        if (t.atom.inner->DependsOn(variable)) return true;
        break;
    }
  }
  return false;
}

Index Index::Substitute(const IdVector<VariableId, Index>& replacements) const {
  Index result = constant_;
  for (const Term& t : terms_) {
    Index value;
    switch (t.atom.kind) {
      case Atom::Kind::kVariable:
        result.AddMultiple(replacements[t.atom.variable], t.coefficient);
        continue;
      case Atom::Kind::kDiv:
        value = t.atom.inner->Substitute(replacements).FloorDiv(t.atom.divisor);
        break;
      case Atom::Kind::kMod:
        value = t.atom.inner->Substitute(replacements).Mod(t.atom.divisor);
        break;
      case Atom::Kind::kValue:
        value = Value(t.atom.node, t.atom.low, t.atom.high, t.atom.inner->Substitute(replacements));
        break;
    }
    result.AddMultiple(value, t.coefficient);
  }
  return result;
}

int64_t Index::Evaluate(const IdVector<VariableId, int64_t>& variables) const {
  int64_t value = constant_;
  for (const Term& t : terms_) {
    int64_t atom = 0;
    switch (t.atom.kind) {
      case Atom::Kind::kVariable:
        atom = variables[t.atom.variable];
        break;
      case Atom::Kind::kDiv:
        atom = FloorDivide(t.atom.inner->Evaluate(variables), t.atom.divisor);
        break;
      case Atom::Kind::kMod:
        atom = FloorMod(t.atom.inner->Evaluate(variables), t.atom.divisor);
        break;
      case Atom::Kind::kValue:
        break;
    }
    value += t.coefficient * atom;
  }
  return value;
}

std::string Index::ToString() const {
  std::string out;
  if (constant_ != 0 || terms_.empty()) out = Cat(constant_);
  for (const Term& t : terms_) {
    if (!out.empty()) out += " + ";
    if (t.coefficient != 1) out += Cat(t.coefficient, "*");
    switch (t.atom.kind) {
      case Atom::Kind::kVariable:
        out += Cat("d", t.atom.variable);
        break;
      case Atom::Kind::kDiv:
        out += Cat("((", *t.atom.inner, ") div ", t.atom.divisor, ")");
        break;
      case Atom::Kind::kMod:
        out += Cat("((", *t.atom.inner, ") mod ", t.atom.divisor, ")");
        break;
      case Atom::Kind::kValue:
        out += Cat("v", t.atom.node);
        break;
    }
  }
  return out;
}

Index Linearise(std::span<const Index> indices, std::span<const int64_t> strides) {
  Index offset;
  for (size_t i = 0; i < indices.size(); ++i) offset.AddMultiple(indices[i], strides[i]);
  return offset;
}

std::vector<Index> Delinearise(const Index& offset, std::span<const int64_t> dims) {
  std::vector<Index> indices(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    Index quotient = offset.FloorDiv(stride);
    // The first dimension needs no remainder: the offset lies inside the array.
    indices[i] = dims[i] <= 1 ? Index(0) : i == 0 ? quotient : quotient.Mod(dims[i]);
    // An array with a size of 0 has no element to find; its index only must not divide by 0.
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return indices;
}

std::vector<Index> Reshaped(std::span<const Index> indices, std::span<const int64_t> from,
                            std::span<const int64_t> to) {
  std::vector<Index> result;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    const size_t first_from = i, first_to = j;
    int64_t size = from[i++], to_size = to[j++];
    while (size != to_size) {
      if (size < to_size ? i == from.size() : j == to.size()) break;
      if (size < to_size) {
        size *= from[i++];
      } else {
        to_size *= to[j++];
      }
    }
    // What is left has one element, or there is none at all.
    if (i == from.size()) j = to.size();
    if (j == to.size()) i = from.size();
    const auto group = indices.subspan(first_from, i - first_from);
    const auto dims = to.subspan(first_to, j - first_to);
    if (group.size() == 1 && dims.size() == 1) {
      result.push_back(dims[0] <= 1 ? Index(0) : group[0]);
      continue;
    }
    const std::vector<int64_t> strides = RowMajorStrides(from.subspan(first_from, group.size()));
    for (Index& index : Delinearise(Linearise(group, strides), dims)) {
      result.push_back(std::move(index));
    }
  }
  result.resize(to.size());
  return result;
}

}  // namespace kiln::kernel
