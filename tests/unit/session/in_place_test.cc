#include "session/in_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "client/devices.h"
#include "client/transfer.h"
#include "session/placement.h"
#include "session/subgraph.h"
#include "support/hlo.h"

namespace kiln::session {
namespace {

using client::Buffer;

std::string Op(std::string_view name, std::string_view op, std::string_view operand,
               std::string_view variable) {
  return Cat("  ", name, " = f32[4] custom-call(", operand, "), custom_call_target=\"kiln.", op,
             "\", custom_call_has_side_effect=true, backend_config=\"", variable, "\"\n");
}

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() : client_(MakeRef<client::Client>(client::ClientOptions{.threads = 2})) {
    EXPECT_TRUE(client::AddDevices(*client_, {.mode = client::GpuMode::kOff}).ok());
    auto module = ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n", Op("v", "variable", "", "v"),
                                     Op("w", "variable", "", "w"),
                                     "  ROOT t = (f32[4], f32[4]) tuple(v, w) }"));
    variables_ = Variables::Create(*module).value();
    Set("v", MakeBuffer());
    Set("w", MakeBuffer());
  }
  client::Device& cpu() { return *client_->devices().front(); }
  client::Device& Named(std::string_view name) {
    return **std::ranges::find(client_->devices(), name, [](const auto& d) { return d->name(); });
  }
  Ref<Buffer> MakeBuffer() {
    const float values[4] = {1, 2, 3, 4};
    return client::CopyFromHost(cpu(), Shape(ElementType::kF32, {4}), values).value();
  }
  void Set(const std::string& name, Ref<Buffer> value) {
    std::pair set{name, std::move(value)};
    EXPECT_TRUE(variables_->Set({&set, 1}).ok());
  }
  Ref<Buffer> Value(const std::string& name) { return variables_->Value(name).value(); }
  // Whether the variable's value, of which the caller has no reference, is taken.
  bool IsTaken(const std::string& name) {
    Variables::Loan loan(*variables_);
    Ref<Buffer> snapshot = Value(name);
    const bool is_taken = loan.Take(name, snapshot);
    EXPECT_EQ(is_taken, !snapshot);
    EXPECT_EQ(is_taken, !loan.empty());
    return is_taken;
  }

  const Ref<client::Client> client_;
  std::unique_ptr<Variables> variables_;
};

TEST_F(InPlaceTest, TakesValuesThatNobodyElseHas) {
  const std::byte* data = Value("v")->data();
  EXPECT_TRUE(IsTaken("v"));
  // It is put back, read-only.
  Ref<Buffer> held = Value("v");
  EXPECT_EQ(held->data(), data);
  EXPECT_TRUE(held->storage().is_read_only());
  EXPECT_FALSE(IsTaken("v"));
  EXPECT_TRUE(IsTaken("w"));
  held = {};
  EXPECT_TRUE(IsTaken("v"));
}

TEST_F(InPlaceTest, LeavesMemoryOfOthers) {
  Ref<Buffer> buffer = MakeBuffer();
  Ref<Buffer> twin = Buffer::InMemoryOf(*buffer, buffer->shape());
  Set("v", std::move(buffer));
  EXPECT_FALSE(IsTaken("v"));
  twin = {};
  EXPECT_TRUE(IsTaken("v"));
  alignas(64) float memory[16] = {};
  Set("v", Buffer::Wrap(cpu(), Shape(ElementType::kF32, {4}), reinterpret_cast<std::byte*>(memory),
                        nullptr));
  EXPECT_FALSE(IsTaken("v"));
}

TEST_F(InPlaceTest, LeavesAValueSetSince) {
  Variables::Loan loan(*variables_);
  Ref<Buffer> snapshot = Value("v");
  Set("v", MakeBuffer());
  EXPECT_FALSE(loan.Take("v", snapshot));
  EXPECT_TRUE(snapshot);
  EXPECT_NE(Value("v")->data(), snapshot->data());
}

TEST_F(InPlaceTest, OthersWaitForTheEndOfALoan) {
  auto loan = std::make_unique<Variables::Loan>(*variables_);
  Ref<Buffer> snapshot = Value("v");
  const std::byte* old = snapshot->data();
  ASSERT_TRUE(loan->Take("v", snapshot));
  Ref<Buffer> result = MakeBuffer(), other = MakeBuffer();
  const std::byte *data = result->data(), *other_data = other->data();
  std::atomic<int> done = 0;
  const std::vector<std::string> names = {"v", "w"};
  std::thread reader([&] {
    // Of one moment: both are the new ones.
    auto values = variables_->Values(names).value();
    EXPECT_EQ(values[0]->data(), data);
    EXPECT_EQ(values[1]->data(), other_data);
    ++done;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(done, 0);
  EXPECT_NE(Value("w")->data(), other_data);  // which is not on loan
  std::pair<std::string, Ref<Buffer>> set[] = {{"v", result}, {"w", other}};
  ASSERT_TRUE(variables_->Set(set, loan.get()).ok());
  reader.join();
  EXPECT_EQ(done, 1);
  loan.reset();
  EXPECT_EQ(Value("v")->data(), data);
  EXPECT_NE(data, old);
}

TEST_F(InPlaceTest, AnAssignmentOfTheUserComesAfterTheLoan) {
  auto loan = std::make_unique<Variables::Loan>(*variables_);
  Ref<Buffer> snapshot = Value("v");
  ASSERT_TRUE(loan->Take("v", snapshot));
  Ref<Buffer> users = MakeBuffer();
  std::atomic<bool> is_done = false;
  std::thread user([&] {
    Set("v", users);
    is_done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(is_done);
  loan.reset();
  user.join();
  EXPECT_EQ(Value("v").get(), users.get());
}

TEST_F(InPlaceTest, AnOverwrittenValueIsNotPutBack) {
  {
    Variables::Loan loan(*variables_);
    Ref<Buffer> snapshot = Value("v");
    ASSERT_TRUE(loan.Take("v", snapshot));
    *loan.begun() = true;
  }
  EXPECT_EQ(variables_->Value("v").status().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(variables_->Value("w").ok());
  Set("v", MakeBuffer());
  EXPECT_TRUE(IsTaken("v"));
}

// The names of the variables that a run of the whole graph may update in their memory; all ops are
// on device 0, except those named b, which are on device 1.
std::string InPlace(const std::string& body, const std::string& results) {
  auto module =
      ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n", body, results));
  auto part = Subgraph(*module, std::vector<std::string>{"x"}, std::vector<std::string>{"y"});
  EXPECT_TRUE(part.ok()) << part.status().ToString();
  VariableUses uses = ReplaceVariables(**part).value();
  CopyResultsWithoutOp(**part);
  const ir::Computation& entry = *(*part)->entry();
  Placement placement(entry);
  placement.devices = {{"CPU:0", false, false}, {"XLA_CPU:0", true, false}};
  for (const ir::Instruction* i : entry.instructions()) {
    placement.device_of[i] = i->name().starts_with("b") ? 1 : 0;
  }
  const ClusterOptions options{.level = JitLevel::kOff};
  auto clustering = FindClusters({.entry = entry,
                                  .placement = placement,
                                  .options = options,
                                  .mark = {},
                                  .why_not_compilable = {},
                                  .control_edges = {}});
  EXPECT_TRUE(clustering.ok()) << clustering.status().ToString();
  auto units = SplitIntoUnits(**part, placement, *clustering);
  EXPECT_TRUE(units.ok()) << units.status().ToString();
  const std::vector<InPlaceUpdate> updates = FindInPlaceUpdates(*units, uses);
  const ir::Module& last = *units->units.back().module;
  EXPECT_EQ(last.aliases().size(), updates.size());
  std::string names;
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto argument = static_cast<int64_t>(updates[i].argument);
    // The graph has an op of this name, too.
    EXPECT_TRUE(last.entry()->parameter(argument)->name().starts_with(updates[i].name));
    EXPECT_EQ(last.aliases()[i].parameter, argument);
    EXPECT_EQ(last.aliases()[i].output_index,
              std::vector<int64_t>{static_cast<int64_t>(updates[i].result)});
    names += Cat(updates[i].name, " ");
  }
  return names;
}

TEST_F(InPlaceTest, UpdatesOfTheLastUnit) {
  const std::string results = "  ROOT t = (f32[4]) tuple(y) }";
  const std::string v = Op("v", "variable", "", "v"), w = Op("w", "variable", "", "w");
  const std::string add_v = Op("v1", "assign-add", "x", "v");
  const std::string after = ", control-predecessors={v1}\n";
  EXPECT_EQ(InPlace(add_v + "  y = f32[4] negate(x)" + after, results), "v ");
  EXPECT_EQ(InPlace(add_v + "  y = f32[4] negate(v1)\n", results), "v ");
  // Not read; read, and not assigned; of other origin.
  EXPECT_EQ(InPlace(Op("v1", "assign", "x", "v") + "  y = f32[4] negate(v1)\n", results), "");
  EXPECT_EQ(InPlace(v + "  y = f32[4] negate(v)\n", results), "");
  // Two of one unit.
  EXPECT_EQ(
      InPlace(add_v + Op("w1", "assign-add", "v1", "w") + "  y = f32[4] negate(w1)\n", results),
      "v w ");
  // The result of the assignment is an input of the last unit.
  EXPECT_EQ(InPlace(add_v + "  b = f32[4] negate(v1)\n  y = f32[4] negate(b)\n", results), "");
  // The variable is read by an earlier unit as well.
  EXPECT_EQ(InPlace(v + "  b = f32[4] negate(v)\n" + Op("v1", "assign-add", "b", "v") +
                        "  y = f32[4] negate(v1)\n",
                    results),
            "v ");
  // The assigned value is an earlier unit's.
  EXPECT_EQ(InPlace(v + "  b = f32[4] negate(v)\n" + Op("v1", "assign", "b", "v") +
                        "  c = f32[4] abs(v)\n  y = f32[4] add(c, v1)\n",
                    results),
            "");
}

std::unique_ptr<ir::Module> WithAlias(const std::string& text) {
  auto module = ir::ParseOrDie(text);
  module->aliases().push_back({.output_index = {0}, .parameter = 0, .parameter_index = {}});
  return module;
}

TEST_F(InPlaceTest, LongModulesHaveNoAliases) {
  auto chain = [](std::string_view shape, int ops) {
    std::string text = Cat("HloModule m\nENTRY e {\n  v0 = ", shape, " parameter(0)\n  x = ", shape,
                           " parameter(1)\n");
    for (int i = 0; i < ops; ++i) text += Cat("  v", i + 1, " = ", shape, " add(v", i, ", x)\n");
    return text + Cat("  ROOT t = (", shape, ") tuple(v", ops, ") }");
  };
  struct Case {
    std::string text, device;
    bool is_fused, stays;
  };
  const std::string loop = R"(HloModule m
cond { s = (f32[4]) parameter(0)
  ROOT p = pred[] constant(false) }
body { ROOT s = (f32[4]) parameter(0) }
ENTRY e { v = f32[4] parameter(0)
  s = (f32[4]) tuple(v)
  ROOT l = (f32[4]) while(s), condition=cond, body=body })";
  const std::string call = R"(HloModule m
ENTRY e { v = f32[4,4] parameter(0)
  c = f32[4,4] cholesky(v), lower=true
  ROOT t = (f32[4,4]) tuple(c) })";
  const std::string dot = R"(HloModule m
ENTRY e { v = f32[1000,1000] parameter(0)
  d = f32[1000,1000] dot(v, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[1000,1000]) tuple(d) })";
  const std::string called = R"(HloModule m
f { a = f32[9000000] parameter(0)
  b = f32[9000000] negate(a)
  ROOT c = f32[9000000] reverse(b), dimensions={0} }
ENTRY e { v = f32[9000000] parameter(0)
  c = f32[9000000] call(v), to_apply=f
  d = f32[9000000] call(c), to_apply=f
  ROOT t = (f32[9000000]) tuple(d) })";
  const Case cases[] = {
      {chain("f32[1000]", 3), "CPU:0", false, true},
      {chain("f32[1000]", 3), "XLA_CPU:0", true, true},
      {chain("f32[1000]", 3), "REFERENCE:0", true, false},
      {chain("f32[4000000]", 10), "CPU:0", true, true},
      {chain("f32[4000000]", 10), "CPU:0", false, false},
      {chain("f32[100000000]", 1), "CPU:0", true, false},
      {loop, "CPU:0", true, false},
      {call, "CPU:0", true, false},
      {dot, "CPU:0", true, false},
      {called, "CPU:0", true, false},
  };
  for (const Case& c : cases) {
    auto module = WithAlias(c.text);
    RemoveAliasesUnlessBrief(*module, Named(c.device), c.is_fused);
    EXPECT_EQ(module->aliases().size(), c.stays ? 1u : 0u) << c.device << "\n" << c.text;
  }
}

}  // namespace
}  // namespace kiln::session
