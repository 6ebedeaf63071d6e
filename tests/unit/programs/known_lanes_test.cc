// Vectors over merged dimensions, whose lanes are quotients and remainders by the sizes of those.
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "support/compiled.h"

namespace kiln::testing {
namespace {

constexpr std::string_view kTypes[] = {"u8", "f16", "f32", "f64"};
constexpr int64_t kGroups[] = {2, 3, 4, 8, 16, 24, 64};

std::string Sizes(int64_t a, int64_t b) { return Cat("[", a, ",", b, "]"); }

// Each element several times, times factors of its repetitions and of its number among them.
TEST(KnownLanes, OfRepetitions) {
  for (std::string_view type : kTypes) {
    for (int64_t group : kGroups) {
      for (int64_t count : {5, 32}) {
        const std::string all = Cat(type, "[6,", count, ",", group, "]");
        const std::string merged = Cat(type, Sizes(6, count * group));
        Check(Cat("HloModule m\nENTRY e { x = ", type, Sizes(6, count),
                  " parameter(0)\n  w = ", type, "[", group, "] parameter(1)\n  a = ", all,
                  " broadcast(x), dimensions={0,1}\n  b = ", all,
                  " broadcast(w), dimensions={2}\n  i = ", all,
                  " iota(), iota_dimension=2\n  m = ", all, " multiply(a, b)\n  s = ", all,
                  " add(m, i)\n  ROOT r = ", merged, " reshape(s) }"));
      }
    }
  }
}

// Rows of groups in another order, beside what is side by side.
TEST(KnownLanes, OfHeads) {
  for (std::string_view type : kTypes) {
    for (int64_t group : kGroups) {
      const std::string merged = Cat(type, Sizes(7, 4 * group));
      Check(Cat("HloModule m\nENTRY e { x = ", type, "[4,7,", group,
                "] parameter(0)\n  y = ", merged, " parameter(1)\n  z = ", type, "[", 4 * group,
                "] parameter(2)\n  t = ", type, "[7,4,", group,
                "] transpose(x), dimensions={1,0,2}\n  r = ", merged, " reshape(t)\n  s = ", merged,
                " add(r, y)\n  b = ", merged, " broadcast(z), dimensions={1}\n  ROOT u = ", merged,
                " multiply(s, b) }"));
    }
  }
}

// Groups that begin within a vector, and that vectors do not end with.
TEST(KnownLanes, FromAnyPlace) {
  for (std::string_view type : kTypes) {
    for (int64_t first : {1, 8, 13}) {
      Check(Cat("HloModule m\nENTRY e { x = ", type, "[40] parameter(0)\n  a = ", type,
                "[40,8] broadcast(x), dimensions={0}\n  m = ", type, "[320] reshape(a)\n  s = ",
                type, "[300] slice(m), slice={[", first, ":", first + 300, "]}\n  y = ", type,
                "[300] parameter(1)\n  ROOT r = ", type, "[300] add(s, y) }"));
      Check(Cat("HloModule m\nENTRY e { x = ", type, "[40] parameter(0)\n  a = ", type,
                "[40,8] broadcast(x), dimensions={0}\n  m = ", type,
                "[320] reshape(a)\n  z = ", type, "[] constant(3)\n  ROOT p = ", type, "[",
                322 + first, "] pad(m, z), padding=", first, "_2 }"));
      Check(Cat("HloModule m\nENTRY e { x = ", type, "[40] parameter(0)\n  a = ", type,
                "[40,8] broadcast(x), dimensions={0}\n  m = ", type,
                "[320] reshape(a)\n  ROOT r = ", type, "[320] reverse(m), dimensions={0} }"));
    }
  }
}

}  // namespace
}  // namespace kiln::testing
