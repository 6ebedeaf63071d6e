#include "tensor/dimension.h"

#include <algorithm>

namespace kiln {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Dimension Dimension::Bounded(int64_t bound) {
  Dimension d(bound);
  d.bounded_ = true;
  return d;
}

Result<Dimension> Dimension::Symbol(std::string_view name) {
  if (name.empty() || name.size() > kMaxSymbolLength || !IsLetter(name[0]) ||
      !std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c); })) {
    return InvalidArgument("dimension symbol '", name, "' is not an identifier of 1 to ",
                           kMaxSymbolLength, " characters");
  }
  Dimension d(-1);
  std::copy(name.begin(), name.end(), d.symbol_.begin());
  return d;
}

std::string Dimension::ToString() const {
  if (is_symbol()) return std::string(symbol());
  return bounded_ ? Cat("<=", size_) : Cat(size_);
}

}  // namespace kiln
