// What users attach to instructions: frontend attributes and control dependencies.
#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "draw/dot.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

std::string InEntry(std::string_view body) {
  return Cat("HloModule m\n\nENTRY %e {\n", body, "\n}\n");
}

std::vector<std::string> NamesOf(std::span<Instruction* const> instructions) {
  std::vector<std::string> names;
  for (const Instruction* i : instructions) names.push_back(i->name());
  return names;
}

std::vector<std::string> NamesOf(const Computation& computation) {
  std::vector<std::string> names;
  for (const Instruction* i : computation.instructions()) names.push_back(i->name());
  return names;
}

using Strings = std::vector<std::string>;

TEST(FrontendAttributes, PrintAndParse) {
  for (std::string_view attributes :
       {R"({kiln.device="GPU:0"})", R"({_XlaCompile="true",_XlaScope="jit_scope_0"})",
        R"({a="",b="\"}{,\n\303\251\\"})", R"({"two words"="1","{"="2","\n"="3",a-b.c_1="4"})"}) {
    const std::string text = Cat("ROOT %c = f32[] constant(1), frontend_attributes=", attributes);
    auto module = ParseOrDie(InEntry(text));
    const std::string printed = ToHloText(*module->entry()->root());
    auto again = ParseOrDie(InEntry(Cat("ROOT ", printed)));
    EXPECT_EQ(ToHloText(*again->entry()->root()), printed);
    auto entries = module->entry()->root()->frontend_attributes()->entries();
    auto same = again->entry()->root()->frontend_attributes()->entries();
    EXPECT_TRUE(std::ranges::equal(entries, same)) << printed;
    EXPECT_EQ(printed.size(), text.size() - 5) << printed;
  }
  auto module = ParseOrDie(InEntry(
      R"(ROOT c = f32[] constant(1), metadata={op_name="n"}, frontend_attributes={z="1", dict={mesh = <["a"=2]>, b = "}"} , a="2", z="3"})"));
  EXPECT_EQ(
      ToHloText(*module->entry()->root()),
      R"(%c = f32[] constant(1), frontend_attributes={a="2",dict="{mesh = <[\"a\"=2]>, b = \"}\"}",z="3"}, metadata={op_name="n"})");
  module = ParseOrDie(InEntry("ROOT c = f32[] constant(1), frontend_attributes={}"));
  EXPECT_FALSE(module->entry()->root()->frontend_attributes());
}

TEST(FrontendAttributes, ErrorsSayWhere) {
  auto error = [](std::string_view attributes) {
    return ParseError(InEntry(Cat("ROOT c = f32[] constant(1), frontend_attributes=", attributes)));
  };
  EXPECT_NE(error("a").find("line 4, column 49: found 'a'; expected '{'"), std::string::npos)
      << error("a");
  EXPECT_NE(error("{1=2}").find("expected a key or '}'"), std::string::npos) << error("{1=2}");
  EXPECT_NE(error("{a}").find("expected '='"), std::string::npos) << error("{a}");
  EXPECT_NE(error("{a=\"\\q\"}").find("expected an escape"), std::string::npos);
  EXPECT_NE(error("{a=\"b\" c=\"d\"}").find("expected ','"), std::string::npos);
}

TEST(FrontendAttributes, EqualOnesAreShared) {
  auto module = ParseOrDie(InEntry(R"(p = f32[] parameter(0), frontend_attributes={a="1"}
    n = f32[] negate(p), frontend_attributes={a="1"}
    ROOT q = f32[] negate(n), frontend_attributes={a="2"})"));
  const Instruction* n = FindInstruction(*module, "n");
  EXPECT_EQ(FindInstruction(*module, "p")->frontend_attributes(), n->frontend_attributes());
  EXPECT_NE(FindInstruction(*module, "q")->frontend_attributes(), n->frontend_attributes());
  auto clone = module->Clone();
  EXPECT_EQ(FindInstruction(*clone, "n")->frontend_attributes(), n->frontend_attributes());
  EXPECT_EQ(*FindInstruction(*clone, "q")->FindFrontendAttribute("a"), "2");
}

TEST(FrontendAttributes, OneIsSetAndRemoved) {
  FrontendAttributesRef none;
  FrontendAttributesRef one = WithFrontendAttribute(none, "b", "1");
  FrontendAttributesRef two = WithFrontendAttribute(one, "a", "2");
  EXPECT_EQ(two->entries().size(), 2u);
  EXPECT_EQ(two->entries()[0].first, "a");
  EXPECT_EQ(*WithFrontendAttribute(two, "b", "3")->Find("b"), "3");
  EXPECT_EQ(*two->Find("b"), "1");
  EXPECT_EQ(WithFrontendAttribute(two, "a", std::nullopt)->Find("a"), nullptr);
  EXPECT_FALSE(WithFrontendAttribute(one, "b", std::nullopt));
  EXPECT_FALSE(WithFrontendAttribute(none, "b", std::nullopt));
}

TEST(FrontendAttributes, MovedInstructionsKeepThem) {
  auto module = ParseOrDie(R"(HloModule m
inner {
  q = f32[] parameter(0)
  ROOT r = f32[] negate(q), frontend_attributes={kiln.device="GPU:0"}
}
ENTRY main {
  p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=inner
})");
  Computation* main = module->entry();
  Computation* inner = main->root()->called(0);
  Instruction* r = inner->root();
  inner->set_root(inner->parameter(0));
  main->TakeInstruction(r, std::vector<Instruction*>{main->parameter(0)}, main->root());
  EXPECT_EQ(*r->FindFrontendAttribute(kDeviceAttribute), "GPU:0");
}

// Transposes around a bitcast in other layouts belong to it.
TEST(FrontendAttributes, BitcastsInOtherLayouts) {
  auto module = ParseOrDie(InEntry(R"(p = f32[2,3]{0,1} parameter(0)
    ROOT b = f32[3,2]{0,1} bitcast(p), frontend_attributes={a="1"}, control-predecessors={p})"));
  EXPECT_EQ(module->entry()->instruction_count(), 4);
  for (Instruction* i : module->entry()->instructions()) {
    EXPECT_EQ(i->FindFrontendAttribute("a") != nullptr, i->opcode() != Opcode::kParameter);
  }
  EXPECT_EQ(NamesOf(FindInstruction(*module, "b")->control_predecessors()), Strings{"p"});
}

TEST(FrontendAttributes, DotShowsDevicesAndCompilation) {
  auto module =
      ParseOrDie(InEntry(R"(p = f32[] parameter(0), frontend_attributes={kiln.device="GPU:1"}
    a = f32[] negate(p), frontend_attributes={_XlaCompile="true",_XlaScope="jit_scope_3"}
    b = f32[] negate(a), frontend_attributes={_XlaCompile="false"}
    ROOT c = f32[] negate(b), frontend_attributes={other="x"}, control-predecessors={p})"));
  const std::string dot = draw::ToDot(*module);
  for (std::string_view part :
       {"\\ndevice GPU:1\"", "\\njit jit_scope_3\"", "\\nno jit\"", "n0 -> n3 [style=dotted];"}) {
    EXPECT_NE(dot.find(part), std::string::npos) << part << " in " << dot;
  }
  EXPECT_EQ(dot.find("other"), std::string::npos);
}

class Control : public ::testing::Test {
 protected:
  Instruction* Get(std::string_view name) { return FindInstruction(*module_, name); }
  Status Add(std::string_view before, std::string_view after) {
    return entry_->AddControlDependency(Get(before), Get(after));
  }
  std::unique_ptr<Module> module_ = ParseOrDie(InEntry(R"(
    p = f32[] parameter(0)
    a = f32[] negate(p)
    b = f32[] exponential(p)
    c = f32[] tanh(b)
    d = f32[] sine(c)
    ROOT r = f32[] add(a, d))"));
  Computation* entry_ = module_->entry();
};

TEST_F(Control, PrintAndParse) {
  constexpr std::string_view kLine =
      "%c = f32[] add(%a, %a), frontend_attributes={k=\"v\"}, control-predecessors={%b, %a}, "
      "metadata={op_name=\"n\"}";
  auto module = ParseOrDie(
      InEntry(Cat("%a = f32[] parameter(0)\n%b = f32[] negate(%a)\n%d = f32[] negate(%a), ",
                  "control-predecessors={}\nROOT ", kLine)));
  EXPECT_EQ(ToHloText(*module->entry()->root()), kLine);
  EXPECT_EQ(ToHloText(*module->Clone()), ToHloText(*module));
  EXPECT_EQ(ToHloText(*ParseOrDie(ToHloText(*module))), ToHloText(*module));
  EXPECT_EQ(NamesOf(FindInstruction(*module, "b")->control_successors()), Strings{"c"});
  EXPECT_TRUE(FindInstruction(*module, "d")->control_predecessors().empty());
}

TEST_F(Control, TextNamesInstructionsAbove) {
  for (std::string_view name : {"b", "c", "nothing"}) {
    const std::string error = ParseError(
        InEntry(Cat("a = f32[] parameter(0)\nb = f32[] negate(a), control-predecessors={", name,
                    "}\nc = f32[] negate(b)")));
    EXPECT_NE(error.find("line 5, column 44: found"), std::string::npos) << error;
    EXPECT_NE(error.find("expected the name of an instruction above in this computation"),
              std::string::npos);
  }
}

TEST_F(Control, OfInstructionsInOrder) {
  EXPECT_FALSE(entry_->HasControlDependencies());
  const int64_t version = entry_->version();
  EXPECT_TRUE(Add("a", "d").ok());
  EXPECT_NE(entry_->version(), version);
  EXPECT_TRUE(Add("b", "d").ok());
  EXPECT_TRUE(Add("a", "d").ok());
  EXPECT_EQ(NamesOf(Get("d")->control_predecessors()), (Strings{"a", "b"}));
  EXPECT_EQ(NamesOf(Get("a")->control_successors()), Strings{"d"});
  EXPECT_EQ(NamesOf(*entry_), (Strings{"p", "a", "b", "c", "d", "r"}));
  entry_->DropControlDependencies();
  EXPECT_FALSE(entry_->HasControlDependencies());
  EXPECT_TRUE(Get("d")->control_predecessors().empty());
}

TEST_F(Control, WhatMustBeFirstIsMoved) {
  EXPECT_TRUE(Add("c", "a").ok());
  EXPECT_EQ(NamesOf(*entry_), (Strings{"p", "b", "c", "a", "d", "r"}));
  EXPECT_TRUE(Verify(*module_).ok());
  EXPECT_TRUE(Add("a", "d").ok());
  EXPECT_EQ(NamesOf(*entry_), (Strings{"p", "b", "c", "a", "d", "r"}));
}

TEST_F(Control, CyclesAreErrors) {
  EXPECT_EQ(Add("a", "a").message(), "'a' cannot wait for itself");
  EXPECT_EQ(Add("d", "b").message(), "'b' cannot wait for 'd', which needs it");
  EXPECT_EQ(Add("r", "p").code(), Code::kInvalidArgument);
  EXPECT_FALSE(entry_->HasControlDependencies());
}

TEST_F(Control, CyclesOverControlDependencies) {
  EXPECT_TRUE(Add("a", "c").ok());
  EXPECT_EQ(Add("d", "a").code(), Code::kInvalidArgument);
  EXPECT_EQ(NamesOf(*entry_), (Strings{"p", "a", "b", "c", "d", "r"}));
}

TEST_F(Control, OtherComputations) {
  auto other = module_->Clone();
  EXPECT_EQ(entry_->AddControlDependency(FindInstruction(*other, "a"), Get("d")).code(),
            Code::kInvalidArgument);
}

TEST_F(Control, PostOrder) {
  EXPECT_EQ(NamesOf(entry_->PostOrder()), (Strings{"p", "a", "b", "c", "d", "r"}));
  ASSERT_TRUE(Add("d", "a").ok());
  EXPECT_EQ(NamesOf(entry_->PostOrder()), (Strings{"p", "b", "c", "d", "a", "r"}));
}

TEST_F(Control, ReplacementsTakeThem) {
  ASSERT_TRUE(Add("a", "c").ok());
  ASSERT_TRUE(Add("c", "r").ok());
  Instruction* made = entry_->Replace(
      Get("c"), {.opcode = Opcode::kLog, .operands = {Get("b")}, .shape = Get("b")->shape()});
  EXPECT_EQ(NamesOf(made->control_predecessors()), Strings{"a"});
  EXPECT_EQ(NamesOf(Get("r")->control_predecessors()), Strings{made->name()});
  EXPECT_EQ(NamesOf(Get("a")->control_successors()), Strings{made->name()});
}

TEST_F(Control, RemovedInstructionsAreBypassed) {
  Instruction* x = entry_->Create(
      {.opcode = Opcode::kCosine, .operands = {Get("p")}, .shape = Get("p")->shape()}, Get("d"));
  ASSERT_TRUE(entry_->AddControlDependency(Get("a"), x).ok());
  ASSERT_TRUE(entry_->AddControlDependency(Get("b"), x).ok());
  ASSERT_TRUE(entry_->AddControlDependency(x, Get("d")).ok());
  ASSERT_TRUE(Add("a", "d").ok());
  entry_->Remove(x);
  EXPECT_EQ(NamesOf(Get("d")->control_predecessors()), (Strings{"a", "b"}));
  EXPECT_EQ(NamesOf(Get("a")->control_successors()), Strings{"d"});
  EXPECT_TRUE(Verify(*module_).ok());
}

TEST_F(Control, TheVerifierChecksTheOrder) {
  ASSERT_TRUE(Add("a", "b").ok());
  entry_->Move(Get("a"), Get("r"));
  EXPECT_NE(Verify(*module_).message().find(
                "instruction 'b' waits for 'a', which does not come before it"),
            std::string::npos);
}

TEST(ControlOfCallees, InliningKeepsThem) {
  auto module = ParseOrDie(R"(HloModule m
inner {
  q = f32[] parameter(0)
  x = f32[] negate(q)
  y = f32[] exponential(q), control-predecessors={x, q}
  ROOT z = f32[] add(x, y)
}
ENTRY main {
  p = f32[] parameter(0)
  before = f32[] tanh(p)
  c = f32[] call(p), to_apply=inner, control-predecessors={before}
  ROOT after = f32[] sine(c), control-predecessors={c}
})");
  Computation* main = module->entry();
  Instruction* call = FindInstruction(*module, "c");
  Computation* inner = call->called(0);
  Instruction* result = main->TakeInstructions(inner, call->operands(), call);
  main->ReplaceAllUses(call, result);
  main->Remove(call);
  module->RemoveUnusedComputations();
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module).ToString();
  EXPECT_EQ(NamesOf(FindInstruction(*module, "y")->control_predecessors()), Strings{"x"});
  EXPECT_EQ(NamesOf(FindInstruction(*module, "after")->control_predecessors()), Strings{"before"});
}

// Side effects are in the demanded order, and the others in their own.
TEST(ControlOfEffects, TheirOrderIsTheDemandedOne) {
  auto module = ParseOrDie(InEntry(R"(
    p = f32[] parameter(0)
    e1 = () custom-call(p), custom_call_target="f", custom_call_has_side_effect=true
    n = f32[] negate(p)
    e2 = () custom-call(n), custom_call_target="f", custom_call_has_side_effect=true
    e3 = () custom-call(p), custom_call_target="f", custom_call_has_side_effect=true
    ROOT r = f32[] sine(p))"));
  Computation* entry = module->entry();
  ASSERT_TRUE(
      entry->AddControlDependency(FindInstruction(*module, "e2"), FindInstruction(*module, "e1"))
          .ok());
  EXPECT_EQ(NamesOf(*entry), (Strings{"p", "n", "e2", "e1", "e3", "r"}));
  Strings effects = NamesOf(entry->PostOrder());
  std::erase_if(effects, [](const std::string& name) { return name[0] != 'e'; });
  EXPECT_EQ(effects, (Strings{"e2", "e1", "e3"}));
}

// Whether `from` is needed by `to`, by a search over all.
bool Needs(const Instruction* to, const Instruction* from) {
  std::set<const Instruction*> seen;
  std::vector<const Instruction*> left = {to};
  while (!left.empty()) {
    const Instruction* i = left.back();
    left.pop_back();
    if (i == from) return true;
    if (!seen.insert(i).second) continue;
    left.insert(left.end(), i->operands().begin(), i->operands().end());
    left.insert(left.end(), i->control_predecessors().begin(), i->control_predecessors().end());
  }
  return false;
}

TEST(ControlAtRandom, RefusesCyclesAndNothingElse) {
  std::mt19937 random(7);
  int64_t refused = 0, taken = 0;
  for (int round = 0; round < 100; ++round) {
    Module module("random");
    Computation* entry = module.AddComputation("entry");
    module.set_entry(entry);
    const Shape shape = Shape::Scalar(ElementType::kF32);
    std::vector<Instruction*> all = {entry->Create({.opcode = Opcode::kParameter,
                                                    .attributes = {{Attr::kParameterNumber, 0}},
                                                    .shape = shape})};
    auto any = [&] { return all[random() % all.size()]; };
    for (int i = 0; i < 20; ++i) {
      all.push_back(
          entry->Create({.opcode = Opcode::kAdd, .operands = {any(), any()}, .shape = shape}));
    }
    entry->set_root(all.back());
    for (int i = 0; i < 30; ++i) {
      Instruction *before = any(), *after = any();
      const bool is_cycle = Needs(before, after);
      EXPECT_EQ(entry->AddControlDependency(before, after).ok(), !is_cycle);
      (is_cycle ? refused : taken) += 1;
    }
    ASSERT_TRUE(Verify(module).ok()) << Verify(module).ToString();
    entry->Reorder(entry->PostOrder());
    ASSERT_TRUE(Verify(module).ok()) << Verify(module).ToString();
    ASSERT_EQ(ToHloText(*ParseOrDie(ToHloText(module))), ToHloText(module));
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace kiln::ir
