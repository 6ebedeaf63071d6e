// Calls replaced by bodies of functions: names, marks, control dependencies, what is left out.
#include "session/inline_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "client/devices.h"
#include "client/transfer.h"
#include "interp/interpreter.h"
#include "ir/frontend_attributes.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "random/calls.h"
#include "random/fodder.h"
#include "random/module.h"
#include "session/session.h"
#include "session/subgraph.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::session {
namespace {

using ir::Instruction;
using Texts = std::vector<std::string>;

// The part of the graph from feeds to fetches and targets, with calls inlined.
std::unique_ptr<ir::Module> Inlined(const ir::Module& module, const Texts& feeds,
                                    const Texts& fetches, bool reads_marks = true,
                                    const Texts& targets = {}) {
  auto part = Subgraph(module, feeds, fetches, targets);
  EXPECT_TRUE(part.ok()) << part.status().ToString();
  auto inlined = InlineCalls(
      *std::move(part),
      {.kept_parameters = feeds.size(), .targets = targets, .reads_marks = reads_marks});
  EXPECT_TRUE(inlined.ok()) << inlined.status().ToString();
  EXPECT_TRUE(ir::Verify(**inlined).ok()) << ir::Verify(**inlined).ToString();
  return *std::move(inlined);
}

std::unique_ptr<ir::Module> Inlined(std::string_view text, const Texts& feeds, const Texts& fetches,
                                    bool reads_marks = true, const Texts& targets = {}) {
  return Inlined(*ir::ParseOrDie(text), feeds, fetches, reads_marks, targets);
}

// The entry's instructions by name, without parameters and the tuple of results.
Texts OpsOf(const ir::Module& module) {
  Texts names;
  for (const Instruction* i : module.entry()->instructions()) {
    if (i->opcode() != Opcode::kParameter && !i->IsRoot()) names.push_back(i->name());
  }
  return names;
}

const Instruction& Op(const ir::Module& module, std::string_view name) {
  const Instruction* found = ir::FindInstruction(*module.entry(), name);
  if (!found) {
    ADD_FAILURE() << "no " << name << " in\n" << ir::ToHloText(module);
    std::abort();
  }
  return *found;
}

Texts PredecessorsOf(const ir::Module& module, std::string_view name) {
  Texts names;
  for (const Instruction* i : Op(module, name).control_predecessors()) names.push_back(i->name());
  return names;
}

// "device compile scope", "-" for none.
std::string MarksOf(const ir::Module& module, std::string_view name) {
  std::string text;
  for (std::string_view key : {ir::kDeviceAttribute, ir::kCompileAttribute, ir::kScopeAttribute}) {
    const std::string* mark = Op(module, name).FindFrontendAttribute(key);
    text += (text.empty() ? "" : " ") + (mark ? *mark : "-");
  }
  return text;
}

constexpr char kNested[] = R"(HloModule m
inner { p = f32[4] parameter(0)
  s = f32[4] sine(p), metadata={op_name="wave/sine"}
  ROOT n = f32[4] negate(s), frontend_attributes={kiln.device="CPU:2",key="kept"} }
outer { p = f32[4] parameter(0)
  k = f32[4] constant({1, 2, 3, 4})
  a = f32[4] add(p, k)
  c = f32[4] call(a), to_apply=inner, frontend_attributes={_XlaCompile="true",_XlaScope="in"}
  e = f32[4] exponential(c), frontend_attributes={_XlaCompile="false"}
  ROOT t = (f32[4], f32[4]) tuple(c, e) }
ENTRY e { x = f32[4] parameter(0)
  f = (f32[4], f32[4]) call(x), to_apply=outer, metadata={op_name="layer"},
    frontend_attributes={kiln.device="CPU:1",_XlaScope="out",other="not given"}
  f_a = f32[4] tanh(x), metadata={op_name="layer/a"}
  first = f32[4] get-tuple-element(f), index=0
  g = f32[4] call(first), to_apply=inner
  second = f32[4] get-tuple-element(f), index=1
  ROOT r = f32[4] add(g, second) })";

TEST(InlineCalls, OpsHaveTheNamesOfTheirCalls) {
  auto module = Inlined(kNested, {"x"}, {"r", "f_a"});
  EXPECT_EQ(OpsOf(*module),
            (Texts{"f_k", "f_a_", "f_c_s", "f_c_n", "f_e", "f_a", "g_s", "g_n", "r"}));
  EXPECT_EQ(Op(*module, "f_e").op_name(), "layer/e");
  EXPECT_EQ(Op(*module, "f_a").op_name(), "layer/a");
  EXPECT_EQ(Op(*module, "f_a_").op_name(), "layer/a_1");
  EXPECT_EQ(Op(*module, "f_c_s").op_name(), "layer/c/wave/sine");
  EXPECT_EQ(Op(*module, "g_s").op_name(), "g/wave/sine");
  EXPECT_EQ(Op(*module, "r").op_name(), "");
}

TEST(InlineCalls, MarksOfOpsWinOverThoseOfCalls) {
  auto module = Inlined(kNested, {"x"}, {"r", "f_a"});
  EXPECT_EQ(MarksOf(*module, "f_a_"), "CPU:1 - out");
  EXPECT_EQ(MarksOf(*module, "f_k"), "CPU:1 - out");
  EXPECT_EQ(MarksOf(*module, "f_c_s"), "CPU:1 true in");
  EXPECT_EQ(MarksOf(*module, "f_c_n"), "CPU:2 true in");
  EXPECT_EQ(MarksOf(*module, "f_e"), "CPU:1 false out");
  EXPECT_EQ(MarksOf(*module, "g_s"), "- - -");
  EXPECT_EQ(MarksOf(*module, "g_n"), "CPU:2 - -");
  EXPECT_EQ(*Op(*module, "f_c_n").FindFrontendAttribute("key"), "kept");
  EXPECT_EQ(Op(*module, "f_e").FindFrontendAttribute("other"), nullptr);
  // In a graph that must be compiled those of calls alone count.
  module = Inlined(kNested, {"x"}, {"r", "f_a"}, false);
  EXPECT_EQ(MarksOf(*module, "f_c_n"), "CPU:1 - out");
  EXPECT_EQ(MarksOf(*module, "f_e"), "CPU:1 - out");
  EXPECT_EQ(MarksOf(*module, "g_n"), "- - -");
  EXPECT_EQ(*Op(*module, "f_c_n").FindFrontendAttribute("key"), "kept");
}

TEST(InlineCalls, CallsThatMustBeCompiledStay) {
  auto module = Inlined(R"(HloModule m
inner { p = f32[] parameter(0)
  ROOT n = f32[] negate(p) }
strict { p = f32[] parameter(0)
  ROOT d = f32[] call(p), to_apply=inner, frontend_attributes={kiln.device="CPU:7"} }
outer { p = f32[] parameter(0)
  s = f32[] call(p), to_apply=strict, frontend_attributes={_XlaMustCompile="true"}
  ROOT c = f32[] call(s), to_apply=inner }
body { p = (s32[], f32[]) parameter(0)
  v = f32[] get-tuple-element(p), index=1
  in_body = f32[] call(v), to_apply=inner
  j = s32[] get-tuple-element(p), index=0
  ROOT r = (s32[], f32[]) tuple(j, in_body) }
cond { p = (s32[], f32[]) parameter(0)
  ROOT never = pred[] constant(false) }
ENTRY e { x = f32[] parameter(0)
  f = f32[] call(x), to_apply=outer, frontend_attributes={kiln.device="CPU:1"}
  i = s32[] constant(0)
  t = (s32[], f32[]) tuple(i, f)
  w = (s32[], f32[]) while(t), condition=cond, body=body
  ROOT y = f32[] get-tuple-element(w), index=1 })",
                        {"x"}, {"y"});
  EXPECT_EQ(OpsOf(*module), (Texts{"f_s", "f_c_n", "i", "t", "w", "y"}));
  const Instruction& strict = Op(*module, "f_s");
  EXPECT_EQ(strict.opcode(), Opcode::kCall);
  EXPECT_EQ(*strict.FindFrontendAttribute(ir::kMustCompileAttribute), "true");
  EXPECT_EQ(MarksOf(*module, "f_s"), "CPU:1 - -");
  EXPECT_EQ(strict.called(0)->root()->opcode(), Opcode::kCall);
  EXPECT_NE(ir::FindOp(*module, Opcode::kWhile), nullptr);
}

constexpr char kControl[] = R"(HloModule m
inner { p = f32[] parameter(0)
  q = f32[] parameter(1)
  one = f32[] constant(1)
  a = f32[] add(p, one)
  b = f32[] multiply(a, q)
  c = f32[] negate(q), control-predecessors={b}
  d = f32[] custom-call(q), custom_call_target="note", custom_call_has_side_effect=true
  ROOT t = (f32[], f32[]) tuple(b, p) }
outer { p = f32[] parameter(0)
  s = f32[] sine(p)
  z = f32[] cosine(p)
  ROOT i = (f32[], f32[]) call(s, p), to_apply=inner, control-predecessors={z} }
ENTRY e { x = f32[] parameter(0)
  before = f32[] tanh(x)
  f = (f32[], f32[]) call(x, x), to_apply=inner, control-predecessors={before}
  g = (f32[], f32[]) call(x), to_apply=outer, control-predecessors={f}
  after = f32[] log(x), control-predecessors={g}
  y = f32[] get-tuple-element(g), index=0
  ROOT r = (f32[], f32[]) tuple(y, after) })";

TEST(InlineCalls, ControlDependenciesAreThoseOfTheCalls) {
  auto module = Inlined(kControl, {"x"}, {"after"});
  EXPECT_EQ(PredecessorsOf(*module, "f_a"), (Texts{"before"}));
  EXPECT_EQ(PredecessorsOf(*module, "f_b"), (Texts{}));  // it waits by its operand
  EXPECT_EQ(PredecessorsOf(*module, "f_d"), (Texts{"before"}));
  EXPECT_EQ(ir::FindInstruction(*module->entry(), "f_c"), nullptr);  // nobody needs it
  EXPECT_EQ(ir::FindInstruction(*module->entry(), "f_one")->control_predecessors().size(), 0u);
  EXPECT_EQ(PredecessorsOf(*module, "g_s"), (Texts{"f_b", "f_d"}));
  EXPECT_EQ(PredecessorsOf(*module, "g_z"), (Texts{"f_b", "f_d"}));
  // The inner call's, after which comes what the outer one waits for.
  EXPECT_EQ(PredecessorsOf(*module, "g_i_a"), (Texts{"g_z"}));
  EXPECT_EQ(PredecessorsOf(*module, "g_i_d"), (Texts{"g_z"}));
  EXPECT_EQ(PredecessorsOf(*module, "after"), (Texts{"g_s", "g_i_b", "g_i_d"}));
}

TEST(InlineCalls, WhatIsHandedThroughWaitsToo) {
  auto module = Inlined(R"(HloModule m
same { ROOT p = f32[] parameter(0) }
ENTRY e { x = f32[] parameter(0)
  a = f32[] tanh(x)
  b = f32[] sine(x)
  f = f32[] call(a), to_apply=same, control-predecessors={b}
  g = f32[] call(x), to_apply=same, control-predecessors={f}
  ROOT after = f32[] log(x), control-predecessors={g} })",
                        {"x"}, {"after", "g", "f"});
  EXPECT_EQ(PredecessorsOf(*module, "after"), (Texts{"a", "b"}));
  EXPECT_EQ(OpsOf(*module), (Texts{"a", "b", "after"}));
}

// Calls with 20 results, one after the other, and the last one after 20 ops, too.
std::unique_ptr<ir::Module> Many() {
  std::string body = "HloModule m\nbody { p = f32[] parameter(0)\n", ops, elements, types, before;
  for (int k = 0; k < 20; ++k) {
    body += Cat("o", k, " = f32[] negate(p)\n");
    ops += Cat("q", k, " = f32[] tanh(x)\n");
    elements += Cat(k ? ", o" : "o", k);
    before += Cat(k ? ", q" : "q", k);
    types += k ? ", f32[]" : "f32[]";
  }
  return ir::ParseOrDie(Cat(body, "ROOT t = (", types, ") tuple(", elements,
                            ") }\nENTRY e { x = f32[] parameter(0)\n", ops, "f = (", types,
                            ") call(x), to_apply=body\ng = (", types,
                            ") call(x), to_apply=body, control-predecessors={f}\nh = (", types,
                            ") call(x), to_apply=body, control-predecessors={g, ", before,
                            "}\nROOT y = f32[] get-tuple-element(h), index=3 }"));
}

TEST(InlineCalls, ManyPredecessorsAreGathered) {
  auto module = Inlined(*Many(), {"x"}, {"y"});
  EXPECT_EQ(PredecessorsOf(*module, "g_o3"), (Texts{"f_end"}));
  EXPECT_EQ(PredecessorsOf(*module, "f_end").size(), 20u);
  EXPECT_EQ(PredecessorsOf(*module, "h_o3"), (Texts{"h_begin"}));
  EXPECT_EQ(PredecessorsOf(*module, "h_begin").size(), 21u);
  EXPECT_EQ(Op(*module, "h_begin").opcode(), Opcode::kAfterAll);
  EXPECT_EQ(OpsOf(*module).size(), 3 * 20 + 3 + 1u);
}

TEST(InlineCalls, OnlyWhatIsNeededIsThere) {
  const char* text = R"(HloModule m
print { p = f32[2] parameter(0)
  ROOT o = f32[2] custom-call(p), custom_call_target="kiln.print", custom_call_has_side_effect=true }
two { p = f32[2] parameter(0)
  q = f32[2] parameter(1)
  a = f32[2] sine(p)
  b = f32[2] cosine(q)
  shown = f32[2] call(a), to_apply=print
  n = f32[2] negate(shown)
  ROOT t = (f32[2], f32[2]) tuple(p, b) }
ENTRY e { x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  z = f32[2] exponential(y)
  f = (f32[2], f32[2]) call(x, z), to_apply=two
  first = f32[2] get-tuple-element(f), index=0
  second = f32[2] get-tuple-element(f), index=1
  ROOT r = f32[2] add(first, second) })";
  // The effect runs though nobody reads what it gives; y need not be fed.
  auto module = Inlined(text, {"x"}, {"first"});
  EXPECT_EQ(OpsOf(*module), (Texts{"f_a", "f_shown_o"}));
  EXPECT_EQ(module->entry()->parameters().size(), 1u);
  EXPECT_TRUE(CheckAllFed(*module, 1).ok());
  module = Inlined(text, {"x"}, {"second"});
  EXPECT_EQ(OpsOf(*module), (Texts{"z", "f_a", "f_b", "f_shown_o"}));
  EXPECT_EQ(CheckAllFed(*module, 1).message(),
            "the parameter 'y', f32[2], is needed by what is fetched, and is not fed");
  // A fed call is not run.
  module = Inlined(text, {"first", "second"}, {"r"});
  EXPECT_EQ(OpsOf(*module), (Texts{"r"}));
  // Targets run, too: of a call its results.
  module = Inlined(text, {"x", "y"}, {"first"}, true, {"z"});
  EXPECT_EQ(OpsOf(*module), (Texts{"z", "f_a", "f_shown_o"}));
  module = Inlined(text, {"x", "y"}, {}, true, {"f"});
  EXPECT_EQ(OpsOf(*module), (Texts{"z", "f_a", "f_b", "f_shown_o"}));
  module = Inlined(text, {"first"}, {"second"});
  EXPECT_EQ(module->entry()->parameter(0)->name(), "first");
}

TEST(InlineCalls, EqualResultsAreCopies) {
  auto module = Inlined(R"(HloModule m
twice { p = f32[] parameter(0)
  n = f32[] negate(p)
  ROOT t = (f32[], f32[], f32[]) tuple(n, n, p) }
ENTRY e { x = f32[] parameter(0)
  f = (f32[], f32[], f32[]) call(x), to_apply=twice
  a = f32[] get-tuple-element(f), index=0
  b = f32[] get-tuple-element(f), index=1
  c = f32[] get-tuple-element(f), index=2
  ROOT r = f32[] add(a, b) })",
                        {"x"}, {"a", "b", "c", "x"});
  const Instruction* root = module->entry()->root();
  EXPECT_EQ(root->operand(0)->name(), "f_n");
  EXPECT_EQ(root->operand(1)->opcode(), Opcode::kCopy);
  EXPECT_EQ(root->operand(2)->opcode(), Opcode::kParameter);
  EXPECT_EQ(root->operand(3)->opcode(), Opcode::kCopy);
}

TEST(InlineCalls, ValuesAreThoseOfTheCalls) {
  const testing::Seeds seeds = testing::RandomSeeds(150);
  int calls = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto module = seed % 3 == 0 ? testing::ControlFodder(random())
                                : testing::RandomModule(random(), {.max_elements = 300});
    testing::MakeCalls(*module, 8, random);
    ASSERT_TRUE(ir::Verify(*module).ok()) << ir::Verify(*module).ToString();
    Texts feeds, fetches;
    for (const Instruction* i : module->entry()->instructions()) {
      if (!i->shape().is_array()) continue;
      if (i->opcode() == Opcode::kParameter || random() % 20 == 0) feeds.push_back(i->name());
      if (random() % 3 == 0) fetches.push_back(i->name());
    }
    auto part = Subgraph(*module, feeds, fetches);
    ASSERT_TRUE(part.ok());
    const std::vector<Literal> arguments = testing::RandomArguments(**part, random());
    // Values fed to loops may make them long.
    auto expected = interp::Evaluate(**part, arguments, {.max_work = 10'000'000});
    if (!expected.ok()) continue;
    calls += ir::FindOp(**part, Opcode::kCall) != nullptr;
    auto inlined = Inlined(*module, feeds, fetches);
    EXPECT_EQ(ir::FindOp(*inlined, Opcode::kCall), nullptr);
    auto actual = interp::Evaluate(*inlined, arguments);
    ASSERT_TRUE(actual.ok()) << seed << actual.status().ToString();
    EXPECT_EQ(testing::BitDifference(*expected, *actual), "") << seed << ir::ToHloText(**part);
  }
  EXPECT_GT(calls, seeds.count / 3);
}

// Sessions.

class InlinedSessions : public ::testing::Test {
 protected:
  InlinedSessions()
      : client_(MakeRef<client::Client>(client::ClientOptions{.threads = 2, .cpu_devices = 2})) {
    EXPECT_TRUE(client::AddDevices(*client_, {.mode = client::GpuMode::kOff}).ok());
  }
  std::unique_ptr<Session> Make(const ir::Module& module, bool must_compile = false) {
    auto session =
        Session::Create(module, *client_,
                        {.device = client_->devices().front().get(), .must_compile = must_compile});
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return *std::move(session);
  }
  std::unique_ptr<Session> Make(std::string_view text, bool must_compile = false) {
    return Make(*ir::ParseOrDie(text), must_compile);
  }
  // The error of a run, or "".
  static std::string Error(Session& session, const Texts& feeds, const Texts& fetches) {
    auto plan = session.Prepare(feeds, fetches);
    if (plan.ok()) return "";
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument) << plan.status().ToString();
    return std::string(plan.status().message());
  }

  const Ref<client::Client> client_;
};

TEST_F(InlinedSessions, ReadMarksInBodies) {
  auto session = Make(R"(HloModule m
body { p = f32[4] parameter(0)
  a = f32[4] sine(p), frontend_attributes={kiln.device="CPU:1"}
  b = f32[4] negate(a), frontend_attributes={_XlaCompile="true",_XlaScope="s"}
  ROOT c = f32[4] cosine(b), frontend_attributes={_XlaCompile="true",_XlaScope="s"} }
ENTRY e { x = f32[4] parameter(0)
  ROOT f = f32[4] call(x), to_apply=body })");
  auto text = session->Explain(Texts{"x"}, Texts{"f"});
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(*text,
            "'x' (parameter) outside clusters: it is an input\n"
            "'f_a' (sine) outside clusters: not marked to compile, and the JIT compiles marked ops "
            "only\n"
            "'f_b' (negate) in cluster_0 on CPU:0\n"
            "'f_c' (cosine) in cluster_0 on CPU:0\n");
  auto dot = session->ToDot(Texts{"x"}, Texts{"f"});
  ASSERT_TRUE(dot.ok());
  EXPECT_NE(dot->find("CPU:1"), std::string::npos);
  EXPECT_NE(dot->find("f_a"), std::string::npos);
}

TEST_F(InlinedSessions, RunAfterManyPredecessors) {
  auto module = Many();
  for (const auto& device : client_->devices()) {
    for (JitLevel level : {JitLevel::kOff, JitLevel::kOn}) {
      SessionOptions options = {.device = device.get()};
      options.clustering.level = level;
      options.clustering.cpu_global_jit = true;
      auto session = Session::Create(*module, *client_, options);
      ASSERT_TRUE(session.ok());
      auto plan = (*session)->Prepare(Texts{"x"}, Texts{"y"});
      ASSERT_TRUE(plan.ok()) << device->name() << plan.status().ToString();
      const float x = 3;
      float y = 0;
      const Shape scalar = Shape::Scalar(ElementType::kF32);
      Ref<client::Buffer> fed = client::CopyFromHost(*device, scalar, &x).value();
      client::Buffer* feeds[] = {fed.get()};
      std::vector<Ref<client::Buffer>> results(1);
      ASSERT_TRUE((*plan)->Run({}, feeds, results).ok());
      ASSERT_TRUE(client::CopyToHost(*results[0], &y).ok());
      EXPECT_EQ(y, -3) << device->name();
    }
  }
}

constexpr char kUnique[] = R"(HloModule m
distinct { p = f32[4] parameter(0)
  u = (f32[<=4], s32[4], s32[<=4]) custom-call(p), custom_call_target="kiln.unique"
  ROOT v = f32[<=4] get-tuple-element(u), index=0 }
around { p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT c = f32[<=4] call(n), to_apply=distinct $ }
ENTRY e { x = f32[4] parameter(0)
  f = f32[<=4] call(x), to_apply=around #
  ROOT y = f32[<=4] negate(f) })";

std::string Unique(std::string_view inner, std::string_view outer) {
  std::string text = kUnique;
  text.replace(text.find('$'), 1, inner);
  return text.replace(text.find('#'), 1, outer);
}

TEST_F(InlinedSessions, CompileWhatIsCalledFromWhatMustBeCompiled) {
  constexpr std::string_view kMust = ", frontend_attributes={_XlaMustCompile=\"true\"}";
  EXPECT_EQ(Error(*Make(Unique("", "")), {"x"}, {"y"}), "");
  EXPECT_EQ(Error(*Make(Unique(kMust, "")), {"x"}, {"y"}),
            "cluster_0 must be compiled: 'f_c' (call): 'u' in the computation 'distinct': the size "
            "of its result depends on the values");
  EXPECT_EQ(Error(*Make(Unique("", kMust)), {"x"}, {"y"}),
            "cluster_0 must be compiled: 'f' (call): 'u' in the computation 'distinct': the size "
            "of its result depends on the values");
  EXPECT_EQ(Error(*Make(Unique("", ""), true), {"x"}, {"y"}),
            "'f_c_u' (kiln.unique) cannot be compiled: the size of its result depends on the "
            "values; run it in a session");
  EXPECT_EQ(
      Error(*Make(Unique("", ", frontend_attributes={kiln.device=\"XLA_CPU:0\"}")), {"x"}, {"y"}),
      "'f_c_u' (kiln.unique) is placed on XLA_CPU:0, where all ops are compiled; 'f_c_u' "
      "(kiln.unique) cannot be: the size of its result depends on the values");
  // Marks in what must be compiled do not count.
  const std::string_view nowhere = ", frontend_attributes={kiln.device=\"GPU:9\"}";
  const char* text = R"(HloModule m
inner { p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p) $ }
ENTRY e { x = f32[4] parameter(0)
  ROOT f = f32[4] call(x), to_apply=inner # })";
  auto with = [&](std::string_view must) {
    std::string made = text;
    made.replace(made.find('$'), 1, nowhere);
    return made.replace(made.find('#'), 1, must);
  };
  EXPECT_EQ(Error(*Make(with(kMust)), {"x"}, {"f"}), "");
  EXPECT_EQ(Error(*Make(with(""), true), {"x"}, {"f"}), "");
  EXPECT_NE(Error(*Make(with("")), {"x"}, {"f"}).find("'f_n' (negate) is placed on GPU:9"),
            std::string::npos);
}

constexpr char kVariable[] = R"(HloModule m
count { one = f32[] parameter(0)
  ROOT a = f32[] custom-call(one), custom_call_target="kiln.assign-add", custom_call_has_side_effect=true, backend_config="steps" }
ENTRY e { x = f32[] parameter(0)
  f = f32[] call(x), to_apply=count $
  v = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="steps"
  ROOT r = f32[] add(f, v) })";

TEST_F(InlinedSessions, HaveTheVariablesOfFunctions) {
  auto with = [&](std::string_view mark) {
    std::string text = kVariable;
    return text.replace(text.find('$'), 1, mark);
  };
  auto session = Make(with(""));
  EXPECT_EQ(session->variables().declared().count("steps"), 1u);
  EXPECT_EQ(Error(*session, {"x"}, {"r"}), "");
  EXPECT_EQ(Error(*Make(with(", frontend_attributes={_XlaMustCompile=\"true\"}")), {"x"}, {"r"}),
            "cluster_0 must be compiled: 'f' (call): 'a' in the computation 'count': variables "
            "belong to a session");
  auto in_branch = Session::Create(*ir::ParseOrDie(R"(HloModule m
count { one = f32[] parameter(0)
  ROOT a = f32[] custom-call(one), custom_call_target="kiln.assign-add", custom_call_has_side_effect=true, backend_config="steps" }
branch { p = f32[] parameter(0)
  ROOT c = f32[] call(p), to_apply=count }
ENTRY e { x = f32[] parameter(0)
  i = s32[] constant(0)
  f = f32[] call(x), to_apply=count
  ROOT r = f32[] conditional(i, x, f), branch_computations={branch, branch} })"),
                                   *client_, {.device = client_->devices().front().get()});
  EXPECT_EQ(in_branch.status().code(), Code::kUnimplemented);
  EXPECT_NE(in_branch.status().message().find("'steps' in the computation 'count' ('a')"),
            std::string::npos);
}

// Sizes.

double SecondsOf(auto f) {
  const clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(InlineCalls, TakeLinearTime) {
  auto seconds = [](int calls, int64_t expected) {
    std::string text = "HloModule m\nbody { o0 = f32[] parameter(0)\n";
    for (int k = 1; k <= 100; ++k) text += Cat("o", k, " = f32[] negate(o", k - 1, ")\n");
    text += "ROOT o = f32[] add(o100, o50) }\nENTRY e { c0 = f32[] parameter(0)\n";
    for (int k = 1; k <= calls; ++k) {
      text += Cat(k == calls ? "ROOT " : "", "c", k, " = f32[] call(c", k - 1,
                  "), to_apply=body, frontend_attributes={kiln.device=\"CPU:0\"}\n");
    }
    auto part = Subgraph(*ir::ParseOrDie(text + "}"), Texts{"c0"}, Texts{Cat("c", calls)});
    EXPECT_TRUE(part.ok());
    return SecondsOf([&] {
      auto inlined = InlineCalls(*std::move(part), {.kept_parameters = 1});
      ASSERT_TRUE(inlined.ok());
      EXPECT_EQ((*inlined)->entry()->instruction_count(), expected);
    });
  };
  const double of_1000 = seconds(1000, 101'002), of_4000 = seconds(4000, 404'002);
  std::cout << "1,000 calls of 101 ops: " << of_1000 * 1000 << " ms\n";
  EXPECT_LT(of_1000, 2);
  EXPECT_LT(of_4000, 16 * of_1000 + 0.5);
}

// Function k calls function k - 1 so many times, one call after the other, all after a sine; the
// entry's call is 'r'.
std::unique_ptr<ir::Module> Chain(int depth, int calls_each) {
  auto module = std::make_unique<ir::Module>("chain");
  const Shape scalar = Shape::Scalar(ElementType::kF32);
  auto begin = [&](std::string_view name) {
    ir::Computation* c = module->AddComputation(name);
    c->set_root(c->Create({.opcode = Opcode::kParameter,
                           .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                           .shape = scalar,
                           .name = "x"}));
    return c;
  };
  auto add = [&](ir::Computation* c, Opcode opcode, std::vector<ir::Computation*> called,
                 std::string name) {
    c->set_root(c->Create({.opcode = opcode,
                           .operands = {c->root()},
                           .called = std::move(called),
                           .shape = scalar,
                           .name = std::move(name)}));
  };
  ir::Computation* function = begin("f");
  add(function, Opcode::kNegate, {}, "n");
  for (int k = 1; k <= depth; ++k) {
    ir::Computation* caller = begin("f");
    Instruction* sine = caller->Create(
        {.opcode = Opcode::kSine, .operands = {caller->root()}, .shape = scalar, .name = "s"});
    for (int c = 0; c < calls_each; ++c) {
      add(caller, Opcode::kCall, {function}, "c");
      EXPECT_TRUE(caller->AddControlDependency(sine, caller->root()).ok());
    }
    function = caller;
  }
  module->set_entry(begin("e"));
  add(module->entry(), Opcode::kCall, {function}, "r");
  return module;
}

TEST(InlineCalls, MayBeDeep) {
  auto module = Chain(3000, 1);
  const std::string x = module->entry()->parameter(0)->name();
  auto part = Subgraph(*module, Texts{x}, Texts{"r"});
  ASSERT_TRUE(part.ok());
  std::unique_ptr<ir::Module> inlined;
  const double seconds =
      SecondsOf([&] { inlined = InlineCalls(*std::move(part), {.kept_parameters = 1}).value(); });
  EXPECT_EQ(inlined->entry()->instruction_count(), 3003);
  size_t longest = 0, edges = 0;
  for (const Instruction* i : inlined->entry()->instructions()) {
    longest = std::max(longest, i->name().size() + i->op_name().size());
    edges += i->control_predecessors().size();
  }
  EXPECT_LT(longest, 700u);
  EXPECT_EQ(edges, 3000u);
  EXPECT_LT(seconds, 2);
}

TEST(InlineCalls, MayBeTooMany) {
  auto few = Chain(10, 2), many = Chain(40, 2);
  const std::string x = few->entry()->parameter(0)->name();
  EXPECT_EQ(Inlined(*few, {x}, {"r"})->entry()->instruction_count(), 2 + 1024 + 1023);
  auto part = Subgraph(*many, Texts{many->entry()->parameter(0)->name()}, Texts{"r"});
  ASSERT_TRUE(part.ok());
  auto inlined = InlineCalls(*std::move(part), {.kept_parameters = 1});
  EXPECT_EQ(inlined.status().code(), Code::kResourceExhausted);
}

TEST_F(InlinedSessions, LookAtEachFunctionOnce) {
  auto module = Chain(40, 2);
  module->entry()->root()->set_frontend_attributes(
      ir::MakeFrontendAttributes({{std::string(ir::kMustCompileAttribute), "true"}}));
  auto explained = Make(*module)->Explain(Texts{module->entry()->parameter(0)->name()}, Texts{"r"});
  ASSERT_TRUE(explained.ok()) << explained.status().ToString();
  EXPECT_NE(explained->find("'r' (call) in cluster_0 on CPU:0, which must be compiled"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln::session
