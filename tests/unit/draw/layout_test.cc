#include "draw/layout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <random>

#include "support/labels.h"

namespace kiln::draw {
namespace {

// Links lead down, bends are in the ranks between, and no two items of a rank overlap.
void ExpectSound(const Layout& layout, const std::vector<Box>& boxes,
                 const std::vector<Link>& links) {
  size_t items = 0;
  for (const std::vector<int>& rank : layout.ranks) items += rank.size();
  ASSERT_EQ(items, layout.x.size());
  ASSERT_EQ(layout.first_bend.size(), links.size() + 1);
  for (size_t k = 0; k < links.size(); ++k) {
    int rank = layout.rank[static_cast<size_t>(links[k].from)];
    const int last = layout.rank[static_cast<size_t>(links[k].to)];
    ASSERT_LT(rank, last);
    const int bends = layout.first_bend[k + 1] - layout.first_bend[k];
    if (bends > 0) {
      ASSERT_EQ(rank + bends + 1, last);
    }
    for (int b = layout.first_bend[k]; b < layout.first_bend[k + 1]; ++b) {
      ASSERT_EQ(layout.rank[static_cast<size_t>(b)], ++rank);
    }
  }
  const Placed placed = Place(layout, boxes);
  const auto width = [&](int item) {
    return static_cast<size_t>(item) < boxes.size() ? boxes[static_cast<size_t>(item)].width
                                                    : kBendWidth;
  };
  for (size_t r = 0; r < layout.ranks.size(); ++r) {
    const std::vector<int>& rank = layout.ranks[r];
    if (r > 0) {
      ASSERT_GE(placed.top[r], placed.bottom[r - 1] + kRankGap - 1e-6);
    }
    for (size_t k = 0; k < rank.size(); ++k) {
      const double x = placed.x[static_cast<size_t>(rank[k])];
      ASSERT_GE(x - width(rank[k]) / 2, -1e-6);
      ASSERT_LE(x + width(rank[k]) / 2, placed.width + 1e-6);
      if (static_cast<size_t>(rank[k]) < boxes.size()) {
        ASSERT_LE(boxes[static_cast<size_t>(rank[k])].height,
                  placed.bottom[r] - placed.top[r] + 1e-6);
      }
      if (k == 0) continue;
      const double before = placed.x[static_cast<size_t>(rank[k - 1])];
      ASSERT_GE(x - before, (width(rank[k]) + width(rank[k - 1])) / 2 + kBoxGap - 1e-6);
    }
  }
}

std::vector<Link> RandomLinks(int boxes, int reach, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Link> links;
  for (int to = 1; to < boxes; ++to) {
    for (int k = 0; k < 2; ++k) {
      const auto back = static_cast<int>(random() % static_cast<uint32_t>(std::min(to, reach)));
      links.push_back({to - 1 - back, to});
    }
  }
  return links;
}

std::vector<Box> BoxesOf(size_t count) {
  std::vector<Box> boxes;
  for (size_t k = 0; k < count; ++k) {
    boxes.push_back({40 + static_cast<double>(k * 37 % 90), 20 + static_cast<double>(k % 3) * 14});
  }
  return boxes;
}

TEST(Layout, IsSoundForSmallAndRandomGraphs) {
  ExpectSound(LayOut({}, {}), {}, {});
  EXPECT_EQ(Place(LayOut({}, {}), {}).height, 0);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const int count = 1 + static_cast<int>(seed) * 13;
    const std::vector<Box> boxes = BoxesOf(static_cast<size_t>(count));
    const std::vector<Link> links = RandomLinks(count, 1 + static_cast<int>(seed) * 3, seed);
    ExpectSound(LayOut(boxes, links), boxes, links);
  }
}

TEST(Layout, ChainsAreStraightAndSourcesAreNearTheirUsers) {
  // A source, 0, that the last box of a chain, 1 to 10, alone reads; and a link past the chain.
  const std::vector<Box> boxes(11, Box{50, 20});
  std::vector<Link> links = {{0, 10}};
  for (int k = 1; k < 10; ++k) links.push_back({k, k + 1});
  links.push_back({1, 10});
  const Layout layout = LayOut(boxes, links);
  ExpectSound(layout, boxes, links);
  EXPECT_EQ(layout.rank[0], 8);
  EXPECT_EQ(layout.rank[10], 9);
  // The link has a bend in each rank, one below the other.
  const size_t last = links.size() - 1;
  EXPECT_EQ(layout.first_bend[last + 1] - layout.first_bend[last], 8);
  const auto bend = static_cast<size_t>(layout.first_bend[last]);
  for (size_t b = 1; b < 8; ++b) EXPECT_NEAR(layout.x[bend + b], layout.x[bend], 30);
}

TEST(Layout, CrossingsAreAvoided) {
  // Two rows whose links cross in the order of the numbers, and need not.
  const std::vector<Box> boxes(8, Box{50, 20});
  const std::vector<Link> links = {{0, 7}, {1, 6}, {2, 5}, {3, 4}};
  const Layout layout = LayOut(boxes, links);
  ExpectSound(layout, boxes, links);
  for (const Link& a : links) {
    EXPECT_NEAR(layout.x[static_cast<size_t>(a.from)], layout.x[static_cast<size_t>(a.to)], 1e-6);
  }
}

TEST(Layout, BoxesThatOpenPushOthersAway) {
  std::vector<Box> boxes = BoxesOf(60);
  const std::vector<Link> links = RandomLinks(60, 9, 4);
  const Layout layout = LayOut(boxes, links);
  for (size_t k = 0; k < boxes.size(); k += 7) boxes[k] = {700, 400};
  ExpectSound(layout, boxes, links);
  // What is closed again is where it was.
  const std::vector<Box> closed = BoxesOf(60);
  const Placed placed = Place(layout, closed);
  for (size_t k = 1; k < layout.x.size(); ++k) {
    EXPECT_NEAR(placed.x[k] - placed.x[0], layout.x[k] - layout.x[0], 1e-6);
  }
}

TEST(Layout, LargeGraphsHaveBoundedBends) {
  constexpr int kCount = 10000;
  const std::vector<Box> boxes = BoxesOf(kCount);
  const std::vector<Link> links = RandomLinks(kCount, kCount, 1);
  const auto start = std::chrono::steady_clock::now();
  const Layout layout = LayOut(boxes, links);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  EXPECT_LT(layout.x.size(), 7u * kCount + 1);
  EXPECT_LT(time.count(), 20);  // a tenth of a second by itself
  ExpectSound(layout, boxes, links);
}

KILN_LABEL(text, "Layout");

}  // namespace
}  // namespace kiln::draw
