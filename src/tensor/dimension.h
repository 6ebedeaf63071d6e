// One dimension of an array: a constant, a bounded size, or a symbol.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// A dimension is
//   constant  n         a known size;
//   bounded   <=n       a size known at run time, at most n;
//   symbol    N         a size that `specialise` will put in; equal symbols are equal sizes.
// The symbol's name is held inside, so that dimensions are plain values without a table behind.
class Dimension {
 public:
  static constexpr size_t kMaxSymbolLength = 15;

  Dimension() = default;
  Dimension(int64_t size) : size_(size) {}  // NOLINT: a number is a dimension
  static Dimension Bounded(int64_t bound);
  // Fails unless the name is an identifier of at most kMaxSymbolLength characters.
  static Result<Dimension> Symbol(std::string_view name);

  bool is_symbol() const { return symbol_[0] != 0; }
  bool is_bounded() const { return bounded_; }
  bool is_constant() const { return !is_symbol() && !bounded_; }
  // The size of a constant or the bound of a bounded one; -1 for a symbol.
  int64_t size() const { return size_; }
  std::string_view symbol() const { return std::string_view(symbol_.data()); }

  bool operator==(const Dimension&) const = default;
  std::string ToString() const;  // "8", "<=8", "N"

 private:
  int64_t size_ = 0;
  bool bounded_ = false;
  std::array<char, kMaxSymbolLength + 1> symbol_{};
};

}  // namespace kiln
