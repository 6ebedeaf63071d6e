// What a reshape does to dimensions: which of them it merges, splits, adds and removes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// Dimensions [from_begin, from_end) hold the same elements as [to_begin, to_end) of the other
// shape, whatever the other dimensions are.
struct DimensionGroup {
  int64_t from_begin, from_end, to_begin, to_end;
};

// The smallest such groups, in order. Dimensions of size 1 may be groups by themselves. The numbers
// of elements must be equal, and not 0.
std::vector<DimensionGroup> GroupsOf(std::span<const int64_t> from, std::span<const int64_t> to);

// Whether one dimension of each side has all the group's elements: which ones.
std::optional<std::pair<int64_t, int64_t>> SinglesOf(const DimensionGroup& group,
                                                     std::span<const int64_t> from,
                                                     std::span<const int64_t> to);

// Where each of the dimensions, none of size 1, is after the reshape, if it is there as a whole.
std::optional<Ints> PlacesOf(const Ints& dimensions, std::span<const int64_t> from,
                             std::span<const int64_t> to);

// reshape(transpose(x, permutation)) as transpose(reshape(x)), where the reshape merges and splits
// dimensions only among those that stay together.
struct TransposeOfReshape {
  std::vector<int64_t> dims;  // of the reshape
  Ints permutation;           // of the transpose
};
std::optional<TransposeOfReshape> ReshapedFirst(std::span<const int64_t> x, const Ints& permutation,
                                                std::span<const int64_t> to);

}  // namespace kiln::passes::simplify
