#include "session/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/trace.h"
#include "device/cpu/device.h"
#include "interp/interpreter.h"
#include "support/hlo.h"
#include "support/literal.h"

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
  v = f32[16,8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  t = f32[16,8] tanh(v)
  ROOT r = (s32[], f32[16,8]) tuple(j, t) }
ENTRY e { x = f32[16,32] parameter(0)
  w = f32[32,8] parameter(1)
  k = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  d = f32[16,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  kb = f32[16,8] broadcast(k), dimensions={1}
  h = f32[16,8] add(d, kb)
  zero = s32[] constant(0)
  state = (s32[], f32[16,8]) tuple(zero, h)
  l = (s32[], f32[16,8]) while(state), condition=cond, body=body
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
    auto session = Session::Create(*module, device_);
    ASSERT_TRUE(session.ok()) << session.status().ToString();
    std::vector<std::string> inputs = {"x", "w"}, fetches = {"sum", "h"};
    auto prepared = (*session)->Prepare(inputs, fetches);
    ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
    EXPECT_EQ((*session)->Prepare(inputs, fetches).value(), *prepared);
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

TEST_F(SessionTest, AnythingCanBeFed) {
  auto module = ir::ParseOrDie(kGraph);
  {
    auto session = Session::Create(*module, device_);
    ASSERT_TRUE(session.ok());
    // With h fed, neither the parameters nor the product are needed.
    std::vector<std::string> inputs = {"h"}, fetches = {"y", "h"};
    auto prepared = (*session)->Prepare(inputs, fetches);
    ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
    alignas(64) float h[16 * 8], y[16 * 8], same[16 * 8];
    for (int i = 0; i < 16 * 8; ++i) h[i] = 0.01f * static_cast<float>(i);
    const void* feeds[] = {h};
    void* results[] = {y, same};
    ASSERT_TRUE((*session)->Run(*prepared, feeds, results).ok());
    for (int i = 0; i < 16 * 8; ++i) {
      EXPECT_NEAR(y[i], std::tanh(std::tanh(std::tanh(h[i]))), 1e-6);
      EXPECT_EQ(same[i], h[i]);
    }
  }
  EXPECT_EQ(allocator_.live_bytes(), 0);
}

struct BadRequest {
  std::vector<std::string> feeds, fetches;
  Code code;
  std::string_view message;
};

TEST_F(SessionTest, RefusesWhatItCannotCompute) {
  auto module = ir::ParseOrDie(kGraph);
  auto session = Session::Create(*module, device_);
  ASSERT_TRUE(session.ok());
  const BadRequest requests[] = {
      {{"x", "w"}, {"nothing"}, Code::kNotFound, "there is no value 'nothing' to be fetched"},
      {{"nothing"}, {"h"}, Code::kNotFound, "there is no value 'nothing' to be fed"},
      {{"x"}, {"h"}, Code::kInvalidArgument, "the parameter 'w', f32[32,8], is needed"},
      {{"x", "w"}, {"state"}, Code::kInvalidArgument, "only arrays can be fetched"},
      {{"x", "w", "x"}, {"h"}, Code::kInvalidArgument, "'x' is fed twice"},
      {{"x", "w"}, {"h", "h"}, Code::kInvalidArgument, "'h' is fetched twice"},
  };
  for (const BadRequest& request : requests) {
    auto prepared = (*session)->Prepare(request.feeds, request.fetches);
    ASSERT_FALSE(prepared.ok()) << request.message;
    EXPECT_EQ(prepared.status().code(), request.code);
    EXPECT_NE(prepared.status().message().find(request.message), std::string::npos)
        << prepared.status().ToString();
  }
}

}  // namespace
}  // namespace kiln::session
