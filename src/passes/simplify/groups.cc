#include "passes/simplify/groups.h"

#include <algorithm>

namespace kiln::passes::simplify {

std::vector<DimensionGroup> GroupsOf(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<DimensionGroup> groups;
  size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    const size_t first_f = f, first_t = t;
    if (t < to.size() && to[t] == 1) {
      ++t;
    } else if (f < from.size() && from[f] == 1) {
      ++f;
    } else {
      int64_t of_f = from[f++], of_t = to[t++];
      while (of_f != of_t) {
        if (of_f < of_t) {
          of_f *= from[f++];
        } else {
          of_t *= to[t++];
        }
      }
    }
    groups.push_back({static_cast<int64_t>(first_f), static_cast<int64_t>(f),
                      static_cast<int64_t>(first_t), static_cast<int64_t>(t)});
  }
  return groups;
}

std::optional<std::pair<int64_t, int64_t>> SinglesOf(const DimensionGroup& group,
                                                     std::span<const int64_t> from,
                                                     std::span<const int64_t> to) {
  auto single = [](std::span<const int64_t> dims, int64_t begin, int64_t end) {
    int64_t found = -1;
    for (int64_t d = begin; d < end; ++d) {
      if (dims[static_cast<size_t>(d)] == 1) continue;
      if (found >= 0) return int64_t{-1};
      found = d;
    }
    return found;
  };
  int64_t f = single(from, group.from_begin, group.from_end);
  int64_t t = single(to, group.to_begin, group.to_end);
  if (f < 0 || t < 0) return std::nullopt;
  return std::pair(f, t);
}

std::optional<Ints> PlacesOf(const Ints& dimensions, std::span<const int64_t> from,
                             std::span<const int64_t> to) {
  Ints places(dimensions.size(), -1);
  for (const DimensionGroup& group : GroupsOf(from, to)) {
    for (size_t k = 0; k < dimensions.size(); ++k) {
      if (dimensions[k] < group.from_begin || dimensions[k] >= group.from_end) continue;
      auto singles = SinglesOf(group, from, to);
      if (!singles || singles->first != dimensions[k]) return std::nullopt;
      places[k] = singles->second;
    }
  }
  if (std::ranges::find(places, -1) != places.end()) return std::nullopt;
  return places;
}

std::optional<TransposeOfReshape> ReshapedFirst(std::span<const int64_t> x, const Ints& permutation,
                                                std::span<const int64_t> to) {
  // Runs of the transposed dimensions that stand next to each other in x, too.
  struct Run {
    int64_t first, last;  // dimensions of x
    int64_t elements;
    std::vector<int64_t> dims;  // what the reshape makes of it
  };
  std::vector<Run> runs;
  auto next_of = [&](int64_t d) {
    do {
      ++d;
    } while (d < static_cast<int64_t>(x.size()) && x[static_cast<size_t>(d)] == 1);
    return d;
  };
  for (int64_t d : permutation) {
    int64_t size = x[static_cast<size_t>(d)];
    if (size == 1) continue;
    if (!runs.empty() && next_of(runs.back().last) == d) {
      runs.back().last = d;
      runs.back().elements *= size;
    } else {
      runs.push_back({d, d, size, {}});
    }
  }
  if (runs.empty()) return std::nullopt;
  size_t at = 0;
  int64_t done = 1;
  for (int64_t size : to) {
    if (size != 1 && done == runs[at].elements) {
      if (++at == runs.size()) return std::nullopt;
      done = 1;
    }
    done *= size;
    if (runs[at].elements % done != 0) return std::nullopt;
    runs[at].dims.push_back(size);
  }
  if (at + 1 != runs.size() || done != runs[at].elements) return std::nullopt;
  // In the order of x.
  std::vector<size_t> order(runs.size());
  for (size_t k = 0; k < runs.size(); ++k) order[k] = k;
  std::ranges::sort(order, {}, [&](size_t k) { return runs[k].first; });
  TransposeOfReshape result;
  std::vector<int64_t> begin(runs.size());
  for (size_t k : order) {
    begin[k] = static_cast<int64_t>(result.dims.size());
    result.dims.insert(result.dims.end(), runs[k].dims.begin(), runs[k].dims.end());
  }
  for (size_t k = 0; k < runs.size(); ++k) {
    for (size_t d = 0; d < runs[k].dims.size(); ++d) {
      result.permutation.push_back(begin[k] + static_cast<int64_t>(d));
    }
  }
  return result;
}

}  // namespace kiln::passes::simplify
