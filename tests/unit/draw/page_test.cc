#include "draw/page.h"

#include <gtest/gtest.h>

#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::draw {
namespace {

using ir::ParseOrDie;

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// What the page does in a browser is tested by tests/pictures.
TEST(Page, TextsOfUsersAreNoMarkup) {
  auto module = ParseOrDie(R"(HloModule step
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[20] parameter(0)
  zero = f32[] constant(0)
  d = f32[20] add(x, x), metadata={op_name="</script><b> & \"q\""}
  ROOT r = f32[] reduce(d, zero), dimensions={0}, to_apply=add })");
  const std::string page = ToHtml(*module);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_FALSE(Has(page, "</script><b>"));
  EXPECT_TRUE(Has(page, R"(\u003c/script>\u003cb> & \"q\")")) << page;
  EXPECT_FALSE(Has(page, "http"));  // complete in itself
  EXPECT_TRUE(Has(page, R"("passes":[])"));
}

TEST(Page, GraphsArePrintedWhenTheyAreAdded) {
  Page page("<title>");
  auto module =
      ParseOrDie("HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] negate(x) }");
  WorkByName work;
  work["y"] = {.count = 1, .nanoseconds = 2500, .bytes = 32, .flops = 4};
  page.AddGraph("before", *module);
  page.AddGraph("after", *module, {}, work);
  module.reset();
  const std::string html = page.ToHtml();
  EXPECT_TRUE(Has(html, "<title>&lt;title&gt;</title>"));
  EXPECT_TRUE(Has(html, R"({"name":"before","entry":0,)"));
  EXPECT_TRUE(Has(html, R"([1,2500,32,4]])"));
}

TEST(Page, LargeConstantsAreLeftOut) {
  auto module = ParseOrDie(
      "HloModule m\nENTRY e { ROOT c = f32[12] constant({1, 2, 3, 4.5, 5, 6, 7, 8, 9, 10, 11, 12}) "
      "}");
  EXPECT_TRUE(Has(ToHtml(*module), "4.5"));
  EXPECT_FALSE(Has(ToHtml(*module, {.max_literal_elements = 3}), "4.5"));
}

KILN_LABEL(text, "Page");

}  // namespace
}  // namespace kiln::draw
