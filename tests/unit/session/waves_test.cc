// Ops of one device at the same time, and units of several devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "base/trace.h"
#include "client/devices.h"
#include "client/transfer.h"
#include "interp/interpreter.h"
#include "ir/frontend_attributes.h"
#include "random/fodder.h"
#include "random/module.h"
#include "session/session.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::session {
namespace {

using client::Buffer;

// Under load a thread may come too late for its share: then it is tried again.
constexpr int kTrials = 500;

Ref<client::Client> MakeClient(int threads, int cpu_devices = 1) {
  auto client = MakeRef<client::Client>(
      client::ClientOptions{.threads = threads, .cpu_devices = cpu_devices});
  EXPECT_TRUE(client::AddDevices(*client, {.mode = client::GpuMode::kOff}).ok());
  return client;
}

// The elements of the root, from the parameters, op by op on the first device.
class Prepared {
 public:
  Prepared(client::Client& client, const ir::Module& module, uint64_t seed = 1) : client_(client) {
    client::Device& device = *client.devices().front();
    session_ = Session::Create(module, client, {.device = &device}).value();
    std::vector<std::string> feeds, fetches;
    for (const ir::Instruction* parameter : module.entry()->parameters()) {
      feeds.push_back(parameter->name());
    }
    for (const ir::Instruction* fetched : module.entry()->root()->operands()) {
      if (fetched->shape().is_array() &&
          std::ranges::find(fetches, fetched->name()) == fetches.end()) {
        fetches.push_back(fetched->name());
      }
    }
    plan_ = session_->Prepare(feeds, fetches).value();
    results_ = fetches.size();
    for (const Literal& argument : testing::RandomArguments(module, seed)) {
      arguments_.push_back(client::CopyFromHost(device, argument.shape(), argument.data()).value());
    }
  }

  const Plan& plan() const { return *plan_; }

  Result<Literal> Run(const client::ExecuteOptions& options = {}) const {
    std::vector<Buffer*> feeds;
    for (const Ref<Buffer>& argument : arguments_) feeds.push_back(argument.get());
    std::vector<Ref<Buffer>> fetches(results_);
    KILN_RETURN_IF_ERROR(plan_->Run(options, feeds, fetches));
    std::vector<Literal> results;
    for (const Ref<Buffer>& buffer : fetches) {
      results.emplace_back(buffer->shape());
      KILN_RETURN_IF_ERROR(client::CopyToHost(*buffer, results.back().data()));
    }
    return Literal::Tuple(std::move(results));
  }

  // A run's events of a category.
  std::vector<TraceEvent> Trace(std::string_view category) const {
    auto trace = std::make_shared<TraceSink>();
    EXPECT_TRUE(client_.StartTrace(trace).ok());
    EXPECT_TRUE(Run().ok());
    client_.StopTrace(trace.get());
    std::vector<TraceEvent> events;
    for (TraceEvent& event : trace->Events()) {
      if (event.category == category) events.push_back(std::move(event));
    }
    return events;
  }

  // Whether, in some run, kernels of one op each have run on several threads.
  bool RunsOnSeveralThreads() const {
    for (int trial = 0; trial < kTrials; ++trial) {
      std::set<int32_t> lanes;
      for (const TraceEvent& event : Trace("kernel")) lanes.insert(event.lane);
      if (lanes.size() > 1) return true;
      std::this_thread::yield();
    }
    return false;
  }

 private:
  client::Client& client_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Ref<Buffer>> arguments_;
  size_t results_ = 0;
};

// So many chains of an op, each 5 to 20 us long on one thread: too little for two threads.
std::string Chains(int chains, int steps) {
  std::string text = "HloModule m\nENTRY e { x = f32[16,1024] parameter(0)\n";
  std::string roots, shapes;
  for (int c = 0; c < chains; ++c) {
    std::string value = "x";
    for (int s = 0; s < steps; ++s) {
      const std::string next = Cat("v", c, "_", s);
      text +=
          Cat("  ", next, " = f32[16,1024] ", s % 2 == 0 ? "tanh" : "cosine", "(", value, ")\n");
      value = next;
    }
    roots += Cat(c == 0 ? "" : ", ", value);
    shapes += Cat(c == 0 ? "" : ", ", "f32[16,1024]");
  }
  return Cat(text, "  ROOT r = (", shapes, ") tuple(", roots, ") }");
}

TEST(SessionWaves, IndependentOpsRunOnSeveralThreads) {
  Ref<client::Client> client = MakeClient(2);
  auto module = ir::ParseOrDie(Chains(32, 1));
  const Prepared prepared(*client, *module);
  EXPECT_EQ(prepared.plan().info().kernels, 32);
  EXPECT_EQ(prepared.Trace("kernel").size(), 32u);
  EXPECT_TRUE(prepared.RunsOnSeveralThreads());
  const Literal expected = prepared.Run({.threads = 1}).value();
  for (int run = 0; run < 20; ++run) {
    EXPECT_EQ(testing::BitDifference(expected, prepared.Run().value()), "");
  }
}

TEST(SessionWaves, ChainsRunSideBySide) {
  Ref<client::Client> client = MakeClient(4);
  auto module = ir::ParseOrDie(Chains(6, 4));
  const Prepared prepared(*client, *module);
  EXPECT_TRUE(prepared.RunsOnSeveralThreads());
  const Literal expected = prepared.Run({.threads = 1}).value();
  for (int threads : {0, 2, 3, 4}) {
    for (int run = 0; run < 20; ++run) {
      EXPECT_EQ(testing::BitDifference(expected, prepared.Run({.threads = threads}).value()), "");
    }
  }
}

// A loop whose body has independent ops, between others, and a conditional on its result.
constexpr char kLoop[] = R"(HloModule m
cond { s = (s32[], f32[40,1024], f32[40,1024], f32[40,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[40,1024], f32[40,1024], f32[40,1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[40,1024] get-tuple-element(s), index=1
  b = f32[40,1024] get-tuple-element(s), index=2
  c = f32[40,1024] get-tuple-element(s), index=3
  ta = f32[40,1024] tanh(a)
  tb = f32[40,1024] cosine(b)
  tc = f32[40,1024] sine(c)
  ROOT r = (s32[], f32[40,1024], f32[40,1024], f32[40,1024]) tuple(j, tb, tc, ta) }
yes { v = (f32[40,1024], f32[40,1024]) parameter(0)
  a = f32[40,1024] get-tuple-element(v), index=0
  b = f32[40,1024] get-tuple-element(v), index=1
  ta = f32[40,1024] tanh(a)
  tb = f32[40,1024] tanh(b)
  ROOT s = f32[40,1024] subtract(ta, tb) }
no { v = (f32[40,1024], f32[40,1024]) parameter(0)
  ROOT a = f32[40,1024] get-tuple-element(v), index=0 }
ENTRY e { x = f32[40,1024] parameter(0)
  q = pred[] parameter(1)
  a = f32[40,1024] tanh(x)
  b = f32[40,1024] sine(x)
  c = f32[40,1024] cosine(x)
  zero = s32[] constant(0)
  init = (s32[], f32[40,1024], f32[40,1024], f32[40,1024]) tuple(zero, a, b, c)
  w = (s32[], f32[40,1024], f32[40,1024], f32[40,1024]) while(init), condition=cond, body=body
  wa = f32[40,1024] get-tuple-element(w), index=1
  wb = f32[40,1024] get-tuple-element(w), index=2
  ya = f32[40,1024] sine(wa)
  yb = f32[40,1024] cosine(wb)
  both = (f32[40,1024], f32[40,1024]) tuple(ya, yb)
  k = f32[40,1024] conditional(q, both, both), true_computation=yes, false_computation=no
  z = f32[40,1024] sine(k)
  ROOT r = (f32[40,1024], f32[40,1024], f32[40,1024]) tuple(ya, yb, z) })";

TEST(SessionWaves, LoopsAndConditionalsAreInOrder) {
  Ref<client::Client> client = MakeClient(4);
  auto module = ir::ParseOrDie(kLoop);
  auto expected = interp::Evaluate(*module, testing::RandomArguments(*module, 1));
  ASSERT_TRUE(expected.ok());
  const Prepared prepared(*client, *module);
  EXPECT_TRUE(prepared.RunsOnSeveralThreads());
  const Literal alone = prepared.Run({.threads = 1}).value();
  EXPECT_EQ(testing::DifferenceOf(*module, *expected, alone, 1e-4), "");
  for (int run = 0; run < 50; ++run) {
    EXPECT_EQ(testing::BitDifference(alone, prepared.Run().value()), "");
  }
}

// Ops on arrays of one shape, in place and not, whose values die at different times.
std::string RandomOps(uint64_t seed, int ops) {
  std::mt19937_64 random(seed);
  std::vector<std::string> values = {"x"};
  std::string text = "HloModule m\nENTRY e { x = f32[24,1024] parameter(0)\n", roots, shapes;
  auto any = [&] {
    const size_t recent = std::min<size_t>(values.size(), 6);
    return values[values.size() - 1 - random() % recent];
  };
  for (int i = 0; i < ops; ++i) {
    const std::string name = Cat("v", i);
    text += Cat("  ", name, " = f32[24,1024] ");
    switch (random() % 5) {
      case 0:
        text += Cat("tanh(", any(), ")\n");
        break;
      case 1:
        text += Cat("cosine(", any(), ")\n");
        break;
      case 2:
        text += Cat("reverse(", any(), "), dimensions={1}\n");
        break;
      case 3:
        text += Cat("add(", any(), ", ", any(), ")\n");
        break;
      default:
        text += Cat("multiply(", any(), ", ", any(), ")\n");
    }
    values.push_back(name);
    if (random() % 6 != 0 && i + 1 < ops) continue;
    roots += Cat(roots.empty() ? "" : ", ", name);
    shapes += Cat(shapes.empty() ? "" : ", ", "f32[24,1024]");
  }
  return Cat(text, "  ROOT r = (", shapes, ") tuple(", roots, ") }");
}

TEST(SessionWaves, RandomGraphsHaveTheSameBitsOnAnyNumberOfThreads) {
  Ref<client::Client> client = MakeClient(4);
  const testing::Seeds seeds = testing::RandomSeeds(16);
  int with_several_threads = 0;
  for (int seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    auto module = ir::ParseOrDie(RandomOps(static_cast<uint64_t>(seed), 60));
    const Prepared prepared(*client, *module);
    auto expected = prepared.Run({.threads = 1});
    ASSERT_TRUE(expected.ok()) << seed << ": " << expected.status().ToString();
    for (int run = 0; run < 10; ++run) {
      auto actual = prepared.Run({.threads = run % 3 == 0 ? 2 : 4});
      ASSERT_TRUE(actual.ok()) << seed << ": " << actual.status().ToString();
      EXPECT_EQ(testing::BitDifference(*expected, *actual), "") << seed;
    }
    if (with_several_threads == 0) with_several_threads += prepared.RunsOnSeveralThreads();
  }
  EXPECT_GT(with_several_threads, 0);
}

TEST(SessionWaves, CancelledOnesEnd) {
  Ref<client::Client> client = MakeClient(4);
  auto module = ir::ParseOrDie(Chains(64, 2));
  const Prepared prepared(*client, *module);
  int32_t cancel = 1;
  EXPECT_EQ(prepared.Run({.cancel = &cancel}).status().code(), Code::kCancelled);
  cancel = 0;
  int cancelled = 0;
  for (int run = 0; run < 30; ++run) {
    __atomic_store_n(&cancel, 0, __ATOMIC_RELAXED);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(10 * run));
      __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
    });
    const Status status = prepared.Run({.cancel = &cancel}).status();
    other.join();
    cancelled += !status.ok();
    if (!status.ok()) EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  }
  EXPECT_GT(cancelled, 0);
  EXPECT_TRUE(prepared.Run().ok());
}

// Two halves of a graph, on a device each: both run at the same time.
TEST(SessionWaves, UnitsOfTwoDevicesOverlap) {
  Ref<client::Client> client = MakeClient(2, 2);
  auto module = ir::ParseOrDie(Chains(2, 200));
  for (ir::Instruction* i : module->entry()->instructions()) {
    if (!i->name().starts_with("v")) continue;
    std::vector<ir::FrontendAttributes::Entry> device;
    device.emplace_back(ir::kDeviceAttribute, i->name().starts_with("v0_") ? "CPU:0" : "CPU:1");
    i->set_frontend_attributes(ir::MakeFrontendAttributes(std::move(device)));
  }
  const Prepared prepared(*client, *module);
  const auto ends = [](const TraceEvent& event) { return event.start_ns + event.duration_ns; };
  bool overlap = false;
  for (int trial = 0; trial < kTrials && !overlap; ++trial) {
    std::map<std::string, TraceEvent> units;  // by device
    for (TraceEvent& event : prepared.Trace("execute")) {
      units[event.device] = event;
    }
    ASSERT_EQ(units.size(), 2u);
    const TraceEvent &a = units.begin()->second, &b = units.rbegin()->second;
    EXPECT_NE(a.lane, b.lane);
    overlap = a.start_ns < ends(b) && b.start_ns < ends(a);
  }
  EXPECT_TRUE(overlap);
}

}  // namespace
}  // namespace kiln::session
