#include "draw/stages.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::draw {
namespace {

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string TextOf(std::string_view entry) {
  return ir::ToHloText(
      *ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n", entry, "}\n")));
}

TEST(Stages, TellWhatAPassChanged) {
  Stages stages;
  EXPECT_TRUE(stages.empty());
  const std::string before = TextOf(
      "  a = f32[4] negate(x)\n  b = f32[4] negate(a)\n  ROOT t = (f32[4], f32[4]) tuple(b, x)\n");
  const std::string after =
      TextOf("  c = f32[4] exponential(x)\n  ROOT t = (f32[4], f32[4]) tuple(c, x)\n");
  stages.Add("pipeline-start", before);
  stages.Add("dce", before);
  stages.Add("simplify", after);
  const std::string json = stages.ToJson();
  EXPECT_TRUE(Has(json, R"({"pass": "dce", "instructions": 4})")) << json;
  EXPECT_TRUE(Has(json, R"("ops": [["exponential", 0, 1], ["negate", 2, 0]])")) << json;
  EXPECT_TRUE(Has(json, R"x("added": {"count": 1, "lines": ["%c = f32[4]{0} exponential(%x)"]})x"))
      << json;
  EXPECT_TRUE(Has(json, R"("removed": {"count": 2, "lines": ["%a = )")) << json;
  EXPECT_TRUE(Has(json, R"("changed": {"count": 1, "lines": [["ROOT %t = )")) << json;
  EXPECT_TRUE(Has(json, R"("instructions": 3})")) << json;
}

TEST(Stages, LongTextsAndListsAreCut) {
  Stages stages;
  std::string entry;
  for (int k = 0; k < 3000; ++k) entry += Cat("  a", k, " = f32[4] negate(x)\n");
  stages.Add("pipeline-start", TextOf("  ROOT r = f32[4] negate(x)\n"));
  stages.Add("grow", TextOf(entry + "  ROOT r = f32[4] exponential(a0)\n"));
  const std::string json = stages.ToJson();
  EXPECT_TRUE(Has(json, R"("added": {"count": 3000, )"));
  EXPECT_TRUE(Has(json, "%a199 = ") && !Has(json, "%a200 = "));
  // Of two texts, the short one.
  EXPECT_EQ(json.find("\"text\""), json.rfind("\"text\""));
}

KILN_LABEL(text, "Stages");

}  // namespace
}  // namespace kiln::draw
