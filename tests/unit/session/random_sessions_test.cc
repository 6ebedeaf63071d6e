// Random graphs with random marks, devices and options, run by sessions and held against the
// evaluator, whatever was clustered.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "client/devices.h"
#include "client/transfer.h"
#include "interp/interpreter.h"
#include "ir/frontend_attributes.h"
#include "ir/text.h"
#include "random/calls.h"
#include "random/fodder.h"
#include "random/module.h"
#include "random/rows.h"
#include "session/session.h"
#include "session/subgraph.h"
#include "support/literal.h"

namespace kiln::session {
namespace {

using client::Buffer;
using ir::Instruction;

constexpr std::array kDevices = {"CPU:0", "CPU:1", "XLA_CPU:0", "XLA_CPU:1", "REFERENCE:0"};

Ref<client::Client> MakeClient() {
  auto client = MakeRef<client::Client>(
      client::ClientOptions{.threads = 3, .cpu_devices = 2, .log_level = client::LogLevel::kOff});
  EXPECT_TRUE(client::AddDevices(*client, {.mode = client::GpuMode::kOff}).ok());
  return client;
}

bool HasArraysOnly(const Instruction& i) {
  return i.shape().is_array() && std::ranges::all_of(i.operands(), [](const Instruction* operand) {
           return operand->shape().is_array();
         });
}

// Scopes of devices and of compilation, and marks of single ops. Ops that exchange tuples would
// have to agree, and get none; calls do not, because only arrays enter and leave them.
void AddMarks(ir::Computation& computation, std::mt19937_64& random) {
  std::string device, scope;
  for (Instruction* i : computation.instructions()) {
    if (random() % 7 == 0) device = random() % 3 == 0 ? "" : kDevices[random() % kDevices.size()];
    if (random() % 9 == 0) scope = random() % 2 == 0 ? "" : Cat("jit_scope_", random() % 3);
    const bool is_call = i->opcode() == Opcode::kCall;
    if (!is_call && !HasArraysOnly(*i)) continue;
    std::vector<ir::FrontendAttributes::Entry> marks;
    if (!device.empty()) marks.emplace_back(ir::kDeviceAttribute, device);
    if (!scope.empty()) {
      marks.emplace_back(ir::kCompileAttribute, random() % 10 == 0 ? "false" : "true");
      marks.emplace_back(ir::kScopeAttribute, scope);
    }
    if (is_call && random() % 5 == 0) marks.emplace_back(ir::kMustCompileAttribute, "true");
    i->set_frontend_attributes(ir::MakeFrontendAttributes(std::move(marks)));
  }
}

// In the order of the computation, so that side effects keep theirs.
void AddControlDependencies(ir::Computation& computation, std::mt19937_64& random) {
  const std::vector<Instruction*> all(computation.instructions().begin(),
                                      computation.instructions().end());
  for (int k = 0; k < 3; ++k) {
    size_t first = random() % all.size(), second = random() % all.size();
    if (first > second) std::swap(first, second);
    if (first == second || all[second]->opcode() == Opcode::kParameter) continue;
    if (all[second]->IsRoot() || all[second]->IsConstant()) continue;
    EXPECT_TRUE(computation.AddControlDependency(all[first], all[second]).ok());
  }
}

SessionOptions RandomOptions(client::Client& client, std::mt19937_64& random) {
  SessionOptions options;
  options.device = client.devices()[random() % 2].get();
  constexpr JitLevel kLevels[] = {JitLevel::kOff, JitLevel::kExplicit, JitLevel::kOn};
  options.clustering.level = kLevels[random() % 3];
  options.clustering.cpu_global_jit = random() % 4 != 0;
  options.clustering.min_cluster_size = 1 + static_cast<int64_t>(random() % 5);
  if (random() % 2) options.clustering.max_cluster_size = 1 + static_cast<int64_t>(random() % 9);
  if (random() % 5 == 0) options.clustering.fuel = static_cast<int64_t>(random() % 20);
  return options;
}

struct Names {
  std::vector<std::string> feeds, fetches;
};

// The parameters are fed, and sometimes other values instead of being computed.
Names RandomNames(const ir::Module& module, std::mt19937_64& random) {
  Names names;
  for (const Instruction* i : module.entry()->instructions()) {
    if (!i->shape().is_array()) continue;
    const bool is_parameter = i->opcode() == Opcode::kParameter;
    if (is_parameter || random() % 40 == 0) names.feeds.push_back(i->name());
    if (random() % 4 == 0 || i->IsRoot()) names.fetches.push_back(i->name());
  }
  return names;
}

// The fetches of a run, as a tuple.
Result<Literal> RunSession(Session& session, client::Client& client, const Names& names,
                           const std::vector<Literal>& arguments, std::mt19937_64& random) {
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan,
                        session.Prepare(names.feeds, names.fetches));
  std::vector<Ref<Buffer>> fed;
  for (const Literal& argument : arguments) {
    client::Device& device = *client.devices()[random() % client.devices().size()];
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> buffer,
                          client::CopyFromHost(device, argument.shape(), argument.data()));
    fed.push_back(std::move(buffer));
  }
  std::vector<Buffer*> feeds;
  for (const Ref<Buffer>& buffer : fed) feeds.push_back(buffer.get());
  std::vector<Ref<Buffer>> fetches(names.fetches.size());
  KILN_RETURN_IF_ERROR(plan->Run({}, feeds, fetches));
  std::vector<Literal> results;
  for (const Ref<Buffer>& buffer : fetches) {
    results.emplace_back(buffer->shape());
    KILN_RETURN_IF_ERROR(client::CopyToHost(*buffer, results.back().data()));
  }
  return Literal::Tuple(std::move(results));
}

TEST(RandomSessions, AgreeWithTheEvaluator) {
  auto client = MakeClient();
  const testing::Seeds seeds = testing::RandomSeeds(120);
  int several_units = 0, calls = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    constexpr std::array kMakers = {
        +[](uint64_t s) { return testing::RandomModule(s, {.ops = 20, .max_elements = 500}); },
        +[](uint64_t s) { return testing::ControlFodder(s); },
        +[](uint64_t s) { return testing::RandomRowsModule(s); }};
    auto module = kMakers[static_cast<size_t>(seed) % kMakers.size()](random());
    if (random() % 3 != 0) testing::MakeCalls(*module, 6, random);
    for (ir::Computation* c : testing::CalledByEntry(*module)) {
      calls += c != module->entry();
      AddMarks(*c, random);
      if (random() % 3 == 0) AddControlDependencies(*c, random);
    }
    const Names names = RandomNames(*module, random);
    auto part = Subgraph(*module, names.feeds, names.fetches);
    ASSERT_TRUE(part.ok()) << seed << ": " << part.status().ToString();
    const std::vector<Literal> arguments = testing::RandomArguments(**part, random());
    auto expected = interp::Evaluate(**part, arguments, {.max_work = 640'000'000});
    if (!expected.ok()) continue;
    auto session = Session::Create(*module, *client, RandomOptions(*client, random));
    ASSERT_TRUE(session.ok()) << seed << ": " << session.status().ToString();
    auto actual = RunSession(**session, *client, names, arguments, random);
    ASSERT_TRUE(actual.ok()) << seed << ": " << actual.status().ToString() << "\n"
                             << ir::ToHloText(**part);
    EXPECT_EQ(testing::DifferenceOf(**part, *expected, *actual, 1e-3), "") << seed << "\n"
                                                                           << ir::ToHloText(**part);
    several_units += (*session)->Prepare(names.feeds, names.fetches).value()->single() == nullptr;
  }
  EXPECT_GT(several_units, seeds.count / 2);
  EXPECT_GT(calls, seeds.count / 2);
}

}  // namespace
}  // namespace kiln::session
