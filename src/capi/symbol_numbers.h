// The numbers by which users name sizes of symbols where sizes are 64-bit integers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dimension.h"

namespace kiln::capi {

// A number stands for a size of symbols. Numbers lie below -2^62, and such that arithmetic with
// them gives none: the sum and the difference of two, the negative and the multiples of one, and
// what is far from zero at all are refused as sizes.
class SymbolNumbers {
 public:
  // From here on, of either sign, an integer is no size beside symbols.
  static constexpr int64_t kLimit = int64_t{1} << 40;

  // A number for a size of symbols: equal sizes have the same one. Of a constant, the constant.
  Result<int64_t> NumberOf(const Dimension& size);
  // The size that a user means: a symbolic one, or what the integer says, which may be negative.
  Result<Dimension> SizeOf(int64_t number) const;
  // The symbols that were asked for, whether or not a shape has them.
  std::vector<std::string> Names() const;

 private:
  bool IsApart(int64_t number) const;

  std::map<int64_t, Dimension> sizes_;      // by number
  std::map<std::string, int64_t> numbers_;  // by text
  uint64_t next_ = 0;
};

}  // namespace kiln::capi
