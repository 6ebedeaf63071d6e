// The dimensions that a reshape merges, splits, adds and removes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes::simplify {

// Dimensions [from_begin, from_end) hold the same elements as [to_begin, to_end) of the other
// shape, independently of the other dimensions.
struct DimensionGroup {
  int64_t from_begin, from_end, to_begin, to_end;
};

// The smallest such groups, in order. Dimensions of size 1 may be groups by themselves. The numbers
// of elements must be equal, and not 0.
std::vector<DimensionGroup> GroupsOf(std::span<const int64_t> from, std::span<const int64_t> to);

// The dimension with all the group's elements, of either shape; nothing if one shape has no such
// dimension.
std::optional<std::pair<int64_t, int64_t>> SinglesOf(const DimensionGroup& group,
                                                     std::span<const int64_t> from,
                                                     std::span<const int64_t> to);

// The places of the dimensions, none of size 1, after the reshape, if it keeps them whole.
std::optional<Ints> PlacesOf(const Ints& dimensions, std::span<const int64_t> from,
                             std::span<const int64_t> to);

// reshape(transpose(x, permutation)) as transpose(reshape(x)), if the reshape merges and splits
// only dimensions that are neighbours in x, too.
struct TransposeOfReshape {
  std::vector<int64_t> dims;  // of the reshape
  Ints permutation;           // of the transpose
};
std::optional<TransposeOfReshape> ReshapedFirst(std::span<const int64_t> x, const Ints& permutation,
                                                std::span<const int64_t> to);

}  // namespace kiln::passes::simplify
