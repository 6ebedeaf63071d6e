#include "draw/dot.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::draw {
namespace {

using ir::Computation;
using ir::FindInstruction;
using ir::Instruction;
using ir::Module;
using ir::ParseError;
using ir::ParseOrDie;

constexpr std::string_view kModule = R"(HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y)
}
fused {
  q = f32[8] parameter(0)
  e = f32[8] exponential(q), metadata={op_name="f \"quoted\" \\n \303\251"}
}
twice {
  z = f32[8] parameter(0)
  n = f32[8] negate(z)
}
ENTRY main {
  p = f32[8] parameter(0)
  f = f32[8] fusion(p), kind=kLoop, calls=fused
  g = f32[8] fusion(f), kind=kLoop, calls=twice
  h = f32[8] fusion(g), kind=kLoop, calls=twice
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(h, zero), dimensions={0}, to_apply=add
})";

int64_t Count(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// What Graphviz says of the text, or nothing where it is not installed.
void ExpectDrawable(const std::string& dot) {
  if (std::system("dot -V >/dev/null 2>&1") != 0) return;
  auto path = std::filesystem::temp_directory_path() / Cat("kiln-dot-test-", std::rand(), ".dot");
  std::ofstream(path) << dot;
  EXPECT_EQ(std::system(Cat("dot -Tsvg -o /dev/null ", path.string()).c_str()), 0) << dot;
  std::filesystem::remove(path);
}

TEST(Dot, ComputationsAndFusionsAreClusters) {
  std::string dot = ToDot(*ParseOrDie(kModule));
  EXPECT_EQ(Count(dot, "subgraph cluster_"), 4);
  EXPECT_EQ(Count(dot, "label=\"fusion f\\nkLoop\""), 1);
  EXPECT_EQ(Count(dot, "label=\"ENTRY main\""), 1);
  // The parameter feeds the fused computation, whose root feeds the second fusion.
  auto module = ParseOrDie(kModule);
  auto edge = [&](std::string_view from, std::string_view to) {
    return Cat("n", FindInstruction(*module, from)->id(), " -> n",
               FindInstruction(*module, to)->id());
  };
  EXPECT_EQ(Count(dot, edge("p", "q")), 1);
  EXPECT_EQ(Count(dot, edge("e", "g")), 1);
  EXPECT_EQ(Count(dot, edge("s", "r") + " [style=dashed"), 1);
  EXPECT_EQ(Count(dot, "style=dashed"), 3);
  ExpectDrawable(dot);
}

TEST(Dot, OpNamesAreShown) {
  const std::string dot = ToDot(*ParseOrDie(R"(
fused { a = f32[2] parameter(0)
  b = f32[2] negate(a), metadata={op_name="jit(f)/neg"} }
ENTRY main { p = f32[2] parameter(0), metadata={op_name="w['a\"b']"}
  f = f32[2] fusion(p), kind=kLoop, calls=fused, metadata={op_name="jit(f)/fused"}
  ROOT r = f32[2] exponential(f), metadata={op_name="begin/a/very/long/path/of/names/of/modules/in/modules/of/modules/end"} })"));
  EXPECT_EQ(Count(dot, "\\nf32[2]\\njit(f)/neg\""), 1) << dot;
  EXPECT_EQ(Count(dot, "\\nf32[2]\\nw['a\\\"b']\""), 1) << dot;
  EXPECT_EQ(Count(dot, "label=\"fusion f\\nkLoop\\njit(f)/fused\""), 1) << dot;
  EXPECT_EQ(Count(dot, "\\n...y/long/path/of/names/of/modules/in/modules/of/modules/end\""), 1)
      << dot;
  ExpectDrawable(dot);
}

TEST(Dot, HugeGraphsStaySane) {
  std::string text = "ENTRY e {\n a0 = f32[] parameter(0)\n";
  for (int i = 1; i < 20000; ++i) text += Cat("a", i, " = f32[] negate(a", i - 1, ")\n");
  std::string dot = ToDot(*ParseOrDie(text + "}"));
  EXPECT_NE(dot.find("... and 18000 more"), std::string::npos);
  EXPECT_LT(dot.size(), 1u << 20);
}

TEST(Dot, NamesCannotBreakTheFile) {
  Module module("a\"b\\");
  Computation* c = module.AddComputation("e\"; }");
  Instruction* p = *c->Add({.opcode = Opcode::kParameter,
                            .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                            .shape = Shape(ElementType::kF32, {2}),
                            .name = "x\"]",
                            .op_name = std::string(200, '\\')});
  c->set_root(p);
  module.set_entry(c);
  ExpectDrawable(ToDot(module));
  // Names are what HLO's text can hold.
  EXPECT_EQ(p->name(), "x__");
  EXPECT_EQ(ParseError(ir::ToHloText(module)), "OK");
}

KILN_LABEL(text, "Dot");

}  // namespace
}  // namespace kiln::draw
