#include "draw/svg.h"

#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::draw {
namespace {

using ir::ParseOrDie;

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Elements end in the order in which they began, and no text has characters of markup.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at)) {
    const size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    ASSERT_EQ(Count(tag, "\"") % 2, 0u) << tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
  static const std::regex kEntity("&(?!(amp|lt|gt|quot);)");
  EXPECT_FALSE(std::regex_search(svg, kEntity));
}

constexpr std::string_view kModule = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
inner { q = f32[8] parameter(0)
  ROOT e = f32[8] exponential(q), metadata={op_name="f \"<quoted>\" & \303\251"} }
outer { p = f32[8] parameter(0)
  ROOT i = f32[8] fusion(p), kind=kLoop, calls=inner }
ENTRY main { x = f32[8] parameter(0)
  f = f32[8] fusion(x), kind=kLoop, calls=outer
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(f, zero), dimensions={0}, to_apply=add, control-predecessors={x} })";

TEST(Svg, FusionsAreOpen) {
  const std::string svg = ToSvg(*ParseOrDie(kModule));
  ExpectWellFormed(svg);
  // Of the entry 4, of the fusions 2 and 2; what reduce applies is not shown.
  EXPECT_EQ(Count(svg, "<g>"), 8u);
  EXPECT_EQ(Count(svg, ">fusion kLoop</text>"), 2u);
  EXPECT_EQ(Count(svg, "class=\"control\""), 1u);
  EXPECT_EQ(Count(svg, ">f32[8]</text>"), 6u);
  EXPECT_EQ(Count(svg, "f &quot;&lt;quoted&gt;&quot; &amp; "), 1u) << svg;
}

TEST(Svg, TimesAreOnTheBoxes) {
  WorkByName work;
  work["f"] = {.count = 2, .nanoseconds = 12300, .bytes = 4'000'000, .flops = 8};
  const std::string svg = ToSvg(*ParseOrDie(kModule), work);
  EXPECT_EQ(Count(svg, ">12.3 us  4 MB</text>"), 1u) << svg;
}

TEST(Svg, NestedCallsDoNotMultiply) {
  std::string text = "HloModule m\nc0 { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }\n";
  for (int k = 1; k < 40; ++k) {
    text += Cat("c", k, " { x = f32[] parameter(0)\n a = f32[] call(x), to_apply=c", k - 1,
                "\n ROOT b = f32[] call(a), to_apply=c", k - 1, " }\n");
  }
  const std::string svg = ToSvg(*ParseOrDie(
      text + "ENTRY e { x = f32[] parameter(0)\n ROOT r = f32[] call(x), to_apply=c39 }"));
  ExpectWellFormed(svg);
  EXPECT_LE(Count(svg, "<g>"), 20000u);
}

TEST(Svg, TuplesOfManyOperandsTakeLinearTime) {
  std::string text = "HloModule m\nENTRY e { x = f32[] parameter(0)\n ROOT t = (f32[]";
  constexpr int kCount = 50000;
  for (int k = 1; k < kCount; ++k) text += ", f32[]";
  text += ") tuple(x";
  for (int k = 1; k < kCount; ++k) text += ", x";
  EXPECT_EQ(Count(ToSvg(*ParseOrDie(text + ") }")), "<path d"), 2u);
}

KILN_LABEL(text, "Svg");

}  // namespace
}  // namespace kiln::draw
