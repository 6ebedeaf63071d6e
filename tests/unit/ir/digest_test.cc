// Digests of modules and forms of computations: what has a part in them, and what has none.

#include "ir/digest.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kText = R"(
HloModule first, input_output_alias={ {0}: (0, {}, may-alias) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
cond { i = s32[] parameter(0)
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT }
body { i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one) }
ENTRY main { x = f32[4,6] parameter(0)
  y = f32[4,6] parameter(1)
  zero = f32[] constant(0)
  k = s32[] parameter(2)
  w = f32[4,6] add(x, y), metadata={op_name="layer/add"}
  v = f32[4,6] subtract(w, y)
  u = f32[2,3] slice(v), slice={[0:4:2], [0:6:2]}
  r = f32[2] reduce(u, zero), dimensions={1}, to_apply=sum
  l = s32[] while(k), condition=cond, body=body
  f = f32[3] constant({1, 2, 3})
  c = f32[3] custom-call(f), custom_call_target="there", backend_config="a"
  e = f32[4,6] exponential(x), control-predecessors={w}
  ROOT t = (f32[4,6], f32[2], s32[], f32[3], f32[4,6]) tuple(v, r, l, c, e) }
)";

std::string With(std::string_view from, std::string_view to) {
  std::string text(kText);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return text;
}

Digest OfText(const std::string& text) { return DigestOf(*ParseOrDie(text)); }

TEST(Digest, NamesWithoutAMeaningHaveNoPart) {
  const Digest digest = OfText(std::string(kText));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"HloModule first", "HloModule first.7"},
           {"sum {", "other {\n"},
           {"ENTRY main", "ENTRY main.44"},
           {"one = s32[] constant(1)\n  ROOT j = s32[] add(i, one)",
            "one.7 = s32[] constant(1)\n  ROOT j.99 = s32[] add(i, one.7)"},
           {"v = f32[4,6] subtract(w, y)",
            "v = f32[4,6] subtract(w, y), "
            "frontend_attributes={a=\"b\"}"},
       }) {
    std::string text = With(from, to);
    if (to == "other {\n") text.replace(text.find("to_apply=sum"), 12, "to_apply=other");
    EXPECT_EQ(OfText(text), digest) << text;
  }
  const std::unique_ptr<Module> module = ParseOrDie(kText);
  EXPECT_EQ(DigestOf(*module->Clone()), digest);
  EXPECT_EQ(OfText(ToHloText(*module)), digest);
}

TEST(Digest, EverythingElseHasOne) {
  std::map<Digest, std::string> seen = {{OfText(std::string(kText)), ""}};
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"HloModule first", "HloModule second"},
           {"x = f32[4,6] parameter(0)", "x = f32[4,6]{0,1} parameter(0)"},
           {"ROOT s = f32[] add", "ROOT s = f32[] multiply"},
           {"constant(5)", "constant(6)"},
           {"direction=LT", "direction=LE"},
           {"constant({1, 2, 3})", "constant({1, 2, 4})"},
           {"constant({1, 2, 3})", "constant({1, -2, 3})"},
           {"zero = f32[] constant(0)", "zero = f32[] constant(-0)"},
           {"may-alias", "must-alias"},
           {"{0}: (0", "{4}: (1"},
           {"subtract(w, y)", "subtract(y, w)"},
           {"subtract(w, y)", "subtract(w, x)"},
           {"[0:4:2]", "[0:3:2]"},
           {"op_name=\"layer/add\"", "op_name=\"layer/sum\""},
           {", control-predecessors={w}", ""},
           {"control-predecessors={w}", "control-predecessors={y}"},
           {"custom_call_target=\"there\"", "custom_call_target=\"theme\""},
           {"backend_config=\"a\"", "backend_config=\"b\""},
           {", backend_config=\"a\"", ""},
           {"tuple(v, r, l, c, e)", "tuple(e, r, l, c, v)"},
           {"condition=cond, body=body", "condition=cond, body=body.2"},
       }) {
    std::string text = With(from, to);
    if (to.ends_with("body.2")) {
      text.insert(text.find("ENTRY"),
                  "body.2 { i = s32[] parameter(0)\n two = s32[] constant(2)\n"
                  " ROOT j = s32[] add(i, two) }\n");
    }
    const auto [old, is_new] = seen.emplace(OfText(text), text);
    EXPECT_TRUE(is_new) << text << "\nand\n" << old->second;
  }
  // A parameter's name is the argument's.
  std::string text(kText);
  for (size_t at; (at = text.find("k = s32[]")) != std::string::npos;) text.replace(at, 1, "q");
  text.replace(text.find("while(k)"), 8, "while(q)");
  EXPECT_TRUE(seen.emplace(OfText(text), text).second);
}

// Lists must not run into each other.
TEST(Digest, NeighboursAreApart) {
  const char* texts[] = {
      "HloModule m\nENTRY e { a = f32[2,3] parameter(0)\n ROOT t = (f32[2,3]) tuple(a) }",
      "HloModule m\nENTRY e { a = f32[2,3] parameter(0)\n ROOT t = ((f32[2,3])) tuple(a) }",
      "HloModule m\nENTRY e { a = f32[23] parameter(0)\n ROOT t = (f32[23]) tuple(a) }",
      "HloModule m\nENTRY e { a = f32[2,3,1] parameter(0)\n ROOT t = (f32[2,3,1]) tuple(a) }",
      "HloModule m\nENTRY e { a = f32[<=2,3] parameter(0)\n ROOT t = (f32[<=2,3]) tuple(a) }",
      "HloModule m\nENTRY e { a = s32[2,3] parameter(0)\n ROOT t = (s32[2,3]) tuple(a) }",
      "HloModule m\nENTRY e { aa = s32[2,3] parameter(0)\n ROOT t = (s32[2,3]) tuple(aa) }",
  };
  std::map<Digest, std::string_view> seen;
  for (const char* text : texts) {
    if (!ParseHloText(text).ok()) continue;
    EXPECT_TRUE(seen.emplace(OfText(text), text).second) << text;
  }
  EXPECT_GE(seen.size(), 5u);
}

std::string FormOfText(const std::string& text) { return FormOf(*ParseOrDie(text)->entry()); }

TEST(Form, NamesHaveNoPart) {
  const std::string form = FormOfText(std::string(kText));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"HloModule first", "HloModule second"},
           {"op_name=\"layer/add\"", "op_name=\"layer/sum\""},
           {"ROOT s = f32[] add(a, b)", "ROOT other = f32[] add(a, b)"},
           {"f = f32[3] constant({1, 2, 3})\n  c = f32[3] custom-call(f)",
            "g = f32[3] constant({1, 2, 3})\n  c = f32[3] custom-call(g)"},
           // Equal callees, of which another one is called.
           {"condition=cond, body=body", "condition=cond, body=body.2"},
       }) {
    std::string text = With(from, to);
    if (to.ends_with("body.2")) {
      text.insert(text.find("ENTRY"),
                  "body.2 { i = s32[] parameter(0)\n two = s32[] constant(1)\n"
                  " ROOT j = s32[] add(i, two) }\n");
    }
    EXPECT_EQ(FormOfText(text), form) << text;
  }
}

TEST(Form, EverythingElseHasOne) {
  std::map<std::string, std::string> seen = {{FormOfText(std::string(kText)), ""}};
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"x = f32[4,6] parameter(0)", "x = f32[4,6]{0,1} parameter(0)"},
           {"ROOT s = f32[] add", "ROOT s = f32[] multiply"},
           {"constant(5)", "constant(6)"},
           {"direction=LT", "direction=LE"},
           {"constant({1, 2, 3})", "constant({1, 2, 4})"},
           {"zero = f32[] constant(0)", "zero = f32[] constant(-0)"},
           {"subtract(w, y)", "subtract(y, w)"},
           {"subtract(w, y)", "subtract(w, x)"},
           {"[0:4:2]", "[0:3:2]"},
           {", control-predecessors={w}", ""},
           {"backend_config=\"a\"", "backend_config=\"b\""},
           {"tuple(v, r, l, c, e)", "tuple(e, r, l, c, v)"},
       }) {
    const std::string text = With(from, to);
    const auto [old, is_new] = seen.emplace(FormOfText(text), text);
    EXPECT_TRUE(is_new) << text << "\nand\n" << old->second;
  }
}

// Two calls of each of many computations, each by the one before.
TEST(Form, CalleesStandInItOnce) {
  std::string text = "HloModule m\nf0 { x = f32[] parameter(0)\n ROOT y = f32[] negate(x) }\n";
  constexpr int kDepth = 40;
  for (int k = 1; k <= kDepth; ++k) {
    text +=
        Cat(k == kDepth ? "ENTRY " : "", "f", k, " { x = f32[] parameter(0)\n a = f32[] call(x), ",
            "to_apply=f", k - 1, "\n ROOT b = f32[] call(a), to_apply=f", k - 1, " }\n");
  }
  const std::string form = FormOfText(text);
  EXPECT_LT(form.size(), 100u * kDepth);
  text.replace(text.find("negate"), 6, "cosine");
  EXPECT_NE(FormOfText(text), form);
}

std::string LargeConstant(int changed) {
  std::string values;
  for (int i = 0; i < 1000; ++i) values += Cat(i == 0 ? "" : ", ", i == changed ? 7777 : i);
  return Cat("HloModule m\nENTRY e { a = s32[1000] constant({", values,
             "})\n b = s32[1000] parameter(0)\n c = s32[1000] constant({", values,
             "})\n s = s32[1000] add(a, b)\n ROOT t = s32[1000] add(s, c) }");
}

TEST(Digest, EveryElementOfAConstantHasAPart) {
  std::map<Digest, int> seen;
  for (int changed : {-1, 0, 1, 500, 998, 999}) {
    EXPECT_TRUE(seen.emplace(OfText(LargeConstant(changed)), changed).second) << changed;
  }
  // Whether constants share memory has none.
  const std::unique_ptr<Module> module = ParseOrDie(LargeConstant(-1));
  Computation& entry = *module->entry();
  Instruction* first = FindInstruction(*module, "a");
  Instruction* second = FindInstruction(*module, "c");
  ASSERT_NE(first->shared_literal(), second->shared_literal());
  InstructionSpec spec = CopySpec(*first, {});
  spec.name = "c.1";
  Instruction* copy = entry.Create(std::move(spec), second);
  entry.ReplaceAllUses(second, copy);
  entry.Remove(second);
  EXPECT_EQ(DigestOf(*module), OfText(LargeConstant(-1)));
}

// Before the verifier has seen it.
TEST(Digest, AModuleWithoutARootHasOne) {
  Module module("empty");
  const Digest digest = DigestOf(module);
  Computation* c = module.AddComputation("c");
  EXPECT_NE(DigestOf(module), digest);
  module.set_entry(c);
  DigestOf(module);
}

}  // namespace
}  // namespace kiln::ir
