// The numbers that represent symbolic and bounded sizes among 64-bit sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dimension.h"

namespace kiln::capi {

// A number represents a symbolic or a bounded size. Numbers are below -2^62, chosen such that
// arithmetic never gives a valid size. Sums and differences of two, negatives and multiples of one,
// and all large integers are refused as sizes.
class SymbolNumbers {
 public:
  // In graphs with symbols or bounds, integers from this magnitude on are not sizes.
  static constexpr int64_t kLimit = int64_t{1} << 40;

  // The number of a symbolic or bounded size: equal sizes have the same one. For a constant, the
  // constant itself.
  Result<int64_t> NumberOf(const Dimension& size);
  // The size of a user's number: a symbolic or bounded one, or the integer itself, which may be
  // negative.
  Result<Dimension> SizeOf(int64_t number) const;
  // All created symbols, used in a shape or not.
  std::vector<std::string> Names() const;

 private:
  bool IsApart(int64_t number) const;

  std::map<int64_t, Dimension> sizes_;      // by number
  std::map<std::string, int64_t> numbers_;  // by text
  uint64_t next_ = 0;
};

}  // namespace kiln::capi
