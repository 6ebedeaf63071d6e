#include "session/session.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/trace.h"
#include "device/cpu/device.h"
#include "hlo_test_util.h"
#include "interp/interpreter.h"
#include "literal_test_util.h"

namespace kiln::session {
namespace {

// A graph with a loop, a dot, a reduction and a constant that is an array.
constexpr char kGraph[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
cond { s = (s32[], f32[16,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[16,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[16,8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[16,8] tanh(x)
  ROOT r = (s32[], f32[16,8]) tuple(j, t) }
ENTRY e { x = f32[16,32] parameter(0)
  w = f32[32,8] parameter(1)
  k = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  d = f32[16,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  kb = f32[16,8] broadcast(k), dimensions={1}
  h = f32[16,8] add(d, kb)
  zero = s32[] constant(0)
  s = (s32[], f32[16,8]) tuple(zero, h)
  l = (s32[], f32[16,8]) while(s), condition=cond, body=body
  y = f32[16,8] get-tuple-element(l), index=1
  z = f32[] constant(0)
  ROOT sum = f32[16] reduce(y, z), dimensions={1}, to_apply=add })";

class SessionTest : public ::testing::Test {
 protected:
  runtime::Allocator allocator_;
  runtime::ThreadPool pool_{2};
  device::CpuDevice device_{"CPU:0", allocator_, pool_};
};

TEST_F(SessionTest, FetchesAgreeWithTheEvaluator) {
  auto module = ir::ParseOrDie(kGraph);
  {
    auto session = Session::Create(*module, device_, allocator_);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    std::vector<std::string> fetches = {"sum", "h"};
    auto prepared = (*session)->Prepare(fetches);
    ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
    EXPECT_EQ((*session)->Prepare(fetches).value(), *prepared);
    // Every op is a kernel: dot, broadcast, add, reduce, and the loop's three.
    EXPECT_GE((*session)->InfoOf(*prepared).kernels, 7);

    std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok());
    std::byte* x = allocator_.Allocate(16 * 32 * 4).value();
    std::byte* w = allocator_.Allocate(32 * 8 * 4).value();
    std::byte* sum = allocator_.Allocate(16 * 4).value();
    std::byte* h = allocator_.Allocate(16 * 8 * 4).value();
    std::memcpy(x, arguments[0].data(), 16 * 32 * 4);
    std::memcpy(w, arguments[1].data(), 32 * 8 * 4);
    TraceSink trace;
    const void* feeds[] = {x, w};
    void* results[] = {sum, h};
    Status status = (*session)->Run(*prepared, feeds, results, {.trace = &trace});
    ASSERT_TRUE(status.ok()) << status.ToString();
    Literal actual(Shape(ElementType::kF32, {16}));
    std::memcpy(actual.data(), sum, 16 * 4);
    EXPECT_EQ(testing::Difference(*expected, actual, 1e-5, 1e-5), "");
    // One bar for each launch, loops' repeated ones included.
    EXPECT_GT(trace.size(), 10u);
    for (auto [memory, bytes] : {std::pair{x, 16 * 32 * 4}, {w, 32 * 8 * 4}, {sum, 64}, {h, 512}}) {
      allocator_.Deallocate(memory, bytes);
    }
  }
  EXPECT_EQ(allocator_.live_bytes(), 0);
}

TEST_F(SessionTest, UnknownFetchIsNotFound) {
  auto module = ir::ParseOrDie(kGraph);
  auto session = Session::Create(*module, device_, allocator_);
  std::vector<std::string> fetches = {"nothing"};
  auto prepared = (*session)->Prepare(fetches);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace kiln::session
