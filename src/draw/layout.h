// Layered layout (Sugiyama's): boxes in ranks from top to bottom, links downwards. Boxes may change
// their sizes, as fusions that open do, without a new layout.
#pragma once

#include <span>
#include <vector>

namespace kiln::draw {

struct Box {
  double width = 0, height = 0;
};

// Between boxes, by number; `from` is the smaller one.
struct Link {
  int from = 0, to = 0;
};

// The order of the boxes. An item is a box or, by numbers behind those of the boxes, a bend: a link
// that passes ranks has a bend in each of them. Links that pass very many have none.
struct Layout {
  std::vector<std::vector<int>> ranks;  // items, from left to right
  std::vector<int> rank;                // of items
  std::vector<double> x;                // of items: the middle, for the sizes that were given
  // Link k has the items from first_bend[k] to first_bend[k + 1], downwards.
  std::vector<int> first_bend;
};

// In time that grows with the boxes and links, but for sorting. The result depends on the arguments
// alone.
Layout LayOut(std::span<const Box> boxes, std::span<const Link> links);

// Positions of boxes for any sizes: each item as near as can be to its place in the layout.
struct Placed {
  std::vector<double> x;            // of items: the middle
  std::vector<double> top, bottom;  // of ranks; a box is in the middle of its rank
  double width = 0, height = 0;     // of all
};
Placed Place(const Layout& layout, std::span<const Box> boxes);

// Between neighbours in a rank, and between ranks, where the texts of links are.
inline constexpr double kBoxGap = 14, kRankGap = 34, kBendWidth = 6;

}  // namespace kiln::draw
