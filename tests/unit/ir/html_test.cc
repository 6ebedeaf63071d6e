#include "ir/html.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

std::set<std::string> AllOf(const std::string& text, const char* expression) {
  std::set<std::string> found;
  const std::regex regex(expression);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1].str());
  }
  return found;
}

TEST(Html, LinksLeadToDefinitions) {
  auto module = ParseOrDie(R"(HloModule step
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[20] parameter(0)
  zero = f32[] constant(0)
  first = f32[] constant(1)
  unused = f32[] negate(zero), control-predecessors={first}
  add = f32[20] add(x, x), metadata={op_name="a \"%x\" <b> & c"}
  ROOT r = f32[] reduce(add, zero), dimensions={0}, to_apply=add })");
  const std::string page = ToHtml(*module);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  const std::set<std::string> links = AllOf(page, R"x(href="#(\w+)")x");
  const std::set<std::string> ids = AllOf(page, R"x(id="(\w+)")x");
  // a, b, x, zero, first, the instruction add and the computation add; not unused, c and r.
  EXPECT_EQ(links.size(), 7);
  for (const std::string& link : links) EXPECT_TRUE(ids.contains(link)) << link;
  EXPECT_EQ(ids.size(), 9 + 2);
  // Texts of users are no markup, and no links.
  EXPECT_NE(page.find(R"(op_name=&quot;a \&quot;%x\&quot; &lt;b&gt; &amp; c&quot;)"),
            std::string::npos);
  EXPECT_LT(page.find("ENTRY "), page.find("ROOT "));
  EXPECT_EQ(page.find("http"), std::string::npos);  // complete in itself
}

TEST(Html, LargeConstantsAreLeftOut) {
  auto module = ParseOrDie("HloModule m\nENTRY e { ROOT c = f32[4] constant({1, 2, 3, 4.5}) }");
  EXPECT_NE(ToHtml(*module).find("4.5"), std::string::npos);
  EXPECT_EQ(ToHtml(*module, {.max_literal_elements = 3}).find("4.5"), std::string::npos);
}

KILN_LABEL(text, "Html");

}  // namespace
}  // namespace kiln::ir
