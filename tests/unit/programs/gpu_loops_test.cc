// Loops and choices of programs on GPUs: in graphs on the device, and driven from the host.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Difference;
using testing::LoadOnGpu;

device::GpuDevice& Gpu(bool loops_on_device) {
  device::GpuDevice& device = testing::SharedGpu(80, loops_on_device);
  // That a graph was refused, and nothing else.
  device.set_on_note([](std::string_view note) { ADD_FAILURE() << note; });
  return device;
}

// A run that is put into the emulated GPU's stream: whether something had been done when it
// returned.
bool IsDoneAhead(const testing::Loaded& loaded, device::GpuDevice& device) {
  auto executable = device.Load(*loaded.artefact).value();
  const program::Signature& signature = executable->program().signature;
  std::vector<std::pair<std::byte*, int64_t>> memory;
  auto allocate = [&](const Shape& shape) {
    memory.push_back({device.Allocate(shape.byte_size()).value(), shape.byte_size()});
    return memory.back().first;
  };
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Shape& shape : signature.parameters) {
    in.push_back(allocate(shape));
    EXPECT_EQ(device.FillZero(memory.back().first, shape.byte_size()).ToString(), "OK");
  }
  for (const Shape& shape : signature.results) out.push_back(allocate(shape));
  EXPECT_EQ(device.Synchronise().ToString(), "OK");
  auto bytes_of = [](const void* data, int64_t bytes) {
    return std::string(static_cast<const char*>(data), static_cast<size_t>(bytes));
  };
  // Memory of the emulated GPU is the host's.
  std::string before, after;
  const program::Program& program = executable->program();
  for (size_t i = 0; i < out.size(); ++i) {
    before += bytes_of(out[i], program.signature.results[i].byte_size());
  }
  auto completion = executable->Start(in, out, {});
  EXPECT_TRUE(completion.ok()) << completion.status().ToString();
  for (size_t i = 0; i < out.size(); ++i) {
    after += bytes_of(out[i], program.signature.results[i].byte_size());
  }
  EXPECT_EQ((*completion)->Wait().ToString(), "OK");
  for (auto [address, bytes] : memory) device.Deallocate(address, bytes);
  return before != after;
}

// What the evaluator gives, on the device and from the host, three times each, with arguments and
// results elsewhere each time.
void CheckLoops(const std::string& text, const std::vector<std::vector<Literal>>& cases) {
  auto module = ir::ParseOrDie(text);
  for (bool on_device : {true, false}) {
    for (bool fuse : {true, false}) {
      auto loaded = LoadOnGpu(*module, fuse, Gpu(on_device));
      ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
      for (int run = 0; run < 3; ++run) {
        for (const std::vector<Literal>& arguments : cases) {
          auto expected = interp::Evaluate(*module, arguments);
          ASSERT_TRUE(expected.ok()) << expected.status().ToString();
          auto actual = testing::RunOnGpu(*loaded, arguments);
          ASSERT_TRUE(actual.ok()) << actual.status().ToString();
          EXPECT_EQ(Difference(*expected, *actual, 1e-5, 1e-5), "")
              << (on_device ? "on the device, run " : "from the host, run ") << run << "\n"
              << loaded->artefact->program.ToString();
        }
      }
    }
  }
}

Literal Number(int32_t value) { return Literal::Scalar(ElementType::kS32, value); }
Literal Flag(bool value) { return Literal::Scalar(ElementType::kPred, value); }

constexpr char kUntil[] = R"(HloModule m
body { t = (s32[], s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] get-tuple-element(t), index=1
  x = f32[5] get-tuple-element(t), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  half = f32[] constant(0.5)
  h = f32[5] broadcast(half), dimensions={}
  y = f32[5] multiply(x, h)
  z = f32[5] add(y, h)
  ROOT r = (s32[], s32[], f32[5]) tuple(n, end, z) }
condition { t = (s32[], s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] get-tuple-element(t), index=1
  ROOT p = pred[] compare(i, end), direction=LT }
ENTRY e { end = s32[] parameter(0)
  x = f32[5] parameter(1)
  i = s32[] constant(0)
  init = (s32[], s32[], f32[5]) tuple(i, end, x)
  ROOT w = (s32[], s32[], f32[5]) while(init), condition=condition, body=body })";

Literal Five() { return SampleLiteral(Shape(ElementType::kF32, {5}), 3); }

TEST(GpuLoops, AsOftenAsTheConditionHolds) {
  CheckLoops(kUntil, {{Number(0), Five()},
                      {Number(1), Five()},
                      {Number(2), Five()},
                      {Number(17), Five()},
                      {Number(-3), Five()}});
}

TEST(GpuLoops, NothingIsWaitedForOnTheDevice) {
  if (testing::IsTestOfCuda()) GTEST_SKIP() << "the emulated GPU tells";
  auto module = ir::ParseOrDie(kUntil);
  for (bool on_device : {true, false}) {
    auto loaded = LoadOnGpu(*module, true, Gpu(on_device));
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(IsDoneAhead(*loaded, Gpu(on_device)), !on_device);
  }
}

// Whose number of turns is known takes no look at the condition.
TEST(GpuLoops, KnownTrips) {
  constexpr char kCounted[] = R"(HloModule m
body { t = (s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[5] get-tuple-element(t), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[5] sine(x)
  ROOT r = (s32[], f32[5]) tuple(n, y) }
condition { t = (s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] constant(9)
  ROOT p = pred[] compare(i, end), direction=LT }
ENTRY e { x = f32[5] parameter(0)
  i = s32[] constant(2)
  init = (s32[], f32[5]) tuple(i, x)
  ROOT w = (s32[], f32[5]) while(init), condition=condition, body=body })";
  CheckLoops(kCounted, {{Five()}});
  auto module = ir::ParseOrDie(kCounted);
  for (bool fuse : {true, false}) {
    auto loaded = LoadOnGpu(*module, fuse, Gpu(false));
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    const std::string plan = loaded->artefact->program.ToString();
    EXPECT_NE(plan.find("while, 7 times"), std::string::npos) << plan;
    // So that from the host, too, all of it is asked for ahead.
    if (!testing::IsTestOfCuda()) EXPECT_FALSE(IsDoneAhead(*loaded, Gpu(false))) << plan;
  }
}

// A loop in a branch in a loop, whose condition is a loop of its own.
constexpr char kNested[] = R"(HloModule m
double { t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = s32[] get-tuple-element(t), index=1
  m = s32[] constant(-1)
  n = s32[] add(i, m)
  w = s32[] add(v, v)
  ROOT r = (s32[], s32[]) tuple(n, w) }
left { t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  z = s32[] constant(0)
  ROOT p = pred[] compare(i, z), direction=GT }
shift { t = (s32[], s32[]) parameter(0)
  ROOT w = (s32[], s32[]) while(t), condition=left, body=double }
keep { t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = s32[] get-tuple-element(t), index=1
  three = s32[] constant(3)
  n = s32[] add(v, three)
  ROOT r = (s32[], s32[]) tuple(i, n) }
odd { v = s32[] parameter(0)
  one = s32[] constant(1)
  b = s32[] and(v, one)
  ROOT p = pred[] compare(b, one), direction=EQ }
body { t = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  v = s32[] get-tuple-element(t), index=1
  end = s32[] get-tuple-element(t), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  p = pred[] call(i), to_apply=odd
  pair = (s32[], s32[]) tuple(i, v)
  c = (s32[], s32[]) conditional(p, pair, pair), true_computation=shift, false_computation=keep
  w = s32[] get-tuple-element(c), index=1
  ROOT r = (s32[], s32[], s32[]) tuple(n, w, end) }
condition { t = (s32[], s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] get-tuple-element(t), index=2
  two = s32[] constant(2)
  init = (s32[], s32[]) tuple(two, i)
  four = (s32[], s32[]) while(init), condition=left, body=double
  x = s32[] get-tuple-element(four), index=1
  ROOT p = pred[] compare(x, end), direction=LT }
ENTRY e { v = s32[] parameter(0)
  end = s32[] parameter(1)
  i = s32[] constant(0)
  init = (s32[], s32[], s32[]) tuple(i, v, end)
  ROOT w = (s32[], s32[], s32[]) while(init), condition=condition, body=body })";

TEST(GpuLoops, InEachOther) {
  CheckLoops(kNested, {{Number(1), Number(0)}, {Number(1), Number(3)}, {Number(2), Number(33)}});
}

TEST(GpuLoops, ChoicesByAPredicate) {
  constexpr char kChoice[] = R"(HloModule m
yes { x = f32[5] parameter(0)
  ROOT y = f32[5] sine(x) }
no { x = f32[5] parameter(0)
  ROOT y = f32[5] negate(x) }
ENTRY e { p = pred[] parameter(0)
  x = f32[5] parameter(1)
  c = f32[5] conditional(p, x, x), true_computation=yes, false_computation=no
  ROOT y = f32[5] add(c, x) })";
  CheckLoops(kChoice, {{Flag(true), Five()}, {Flag(false), Five()}});
}

TEST(GpuLoops, ChoicesOutOfMany) {
  std::string text = "HloModule m\n", names, operands;
  for (int i = 0; i < 12; ++i) {
    // The seventh does nothing.
    text += i == 7 ? Cat("b", i, " { ROOT x = f32[5] parameter(0) }\n")
                   : Cat("b", i, " { x = f32[5] parameter(0)\n  c = f32[] constant(", i,
                         R"(.5)
  d = f32[5] broadcast(c), dimensions={}
  ROOT y = f32[5] multiply(x, d) }
)");
    names += Cat(i > 0 ? ", b" : "b", i);
    operands += ", x";
  }
  text += Cat("ENTRY e { i = s32[] parameter(0)\n  x = f32[5] parameter(1)\n",
              "  c = f32[5] conditional(i", operands, "), branch_computations={", names,
              "}\n  ROOT y = f32[5] cosine(c) }");
  std::vector<std::vector<Literal>> cases;
  for (int i : {0, 1, 6, 7, 11, 12, 100, -1, -2147483647 - 1, 2147483647}) {
    cases.push_back({Number(i), Five()});
  }
  CheckLoops(text, cases);
}

// Some of the state is a donated argument's, some is not.
TEST(GpuLoops, DonatedState) {
  std::string text = kUntil;
  text.replace(0, sizeof("HloModule m") - 1,
               "HloModule m, input_output_alias={ {1}: (0, {}, may-alias), "
               "{2}: (1, {}, may-alias) }");
  CheckLoops(text, {{Number(3), Five()}, {Number(0), Five()}});
}

// What is to be cancelled is driven from the host, where somebody looks at it.
TEST(GpuLoops, AreCancelled) {
  constexpr char kForever[] = R"(HloModule m
body { t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  s = s32[] get-tuple-element(t), index=1
  n = s32[] add(i, s)
  ROOT r = (s32[], s32[]) tuple(n, s) }
condition { t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  end = s32[] constant(5)
  ROOT p = pred[] compare(i, end), direction=NE }
ENTRY e { i = s32[] parameter(0)
  s = s32[] parameter(1)
  init = (s32[], s32[]) tuple(i, s)
  ROOT w = (s32[], s32[]) while(init), condition=condition, body=body })";
  auto module = ir::ParseOrDie(kForever);
  for (bool on_device : {true, false}) {
    auto loaded = LoadOnGpu(*module, true, Gpu(on_device));
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    testing::Execution run(*loaded->artefact);
    run.SetArguments({Number(0), Number(0)});
    int32_t cancel = 0;
    runtime::RunOptions options;
    options.cancel = &cancel;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED);
    });
    Status status = loaded->executable->Run(run.arguments(), run.results(), options);
    canceller.join();
    EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
    auto expected = interp::Evaluate(*module, std::vector{Number(0), Number(1)});
    auto actual = testing::RunOnGpu(*loaded, {Number(0), Number(1)});
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    EXPECT_EQ(Difference(*expected, *actual, 0, 0), "");
  }
}

// Long loops take no more memory than short ones.
TEST(GpuLoops, LongOnes) {
  auto module = ir::ParseOrDie(kUntil);
  auto loaded = LoadOnGpu(*module, true, Gpu(true));
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  device::GpuMachine& machine = Gpu(true).machine();
  ASSERT_TRUE(testing::RunOnGpu(*loaded, {Number(10), Five()}).ok());
  ASSERT_TRUE(Gpu(true).Synchronise().ok());
  const int64_t free_bytes = machine.Memory()->free_bytes;
  auto actual = testing::RunOnGpu(*loaded, {Number(100000), Five()});
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  ASSERT_TRUE(Gpu(true).Synchronise().ok());
  // A driver's memory is others', too.
  if (!testing::IsTestOfCuda()) EXPECT_EQ(machine.Memory()->free_bytes, free_bytes);
  EXPECT_EQ(Difference(Number(100000), actual->elements()[0], 0, 0), "");
}

}  // namespace
}  // namespace kiln
