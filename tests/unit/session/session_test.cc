#include "session/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/trace.h"
#include "client/devices.h"
#include "client/transfer.h"
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
  SessionTest() : client_(MakeRef<client::Client>(client::ClientOptions{.threads = 2})) {
    EXPECT_TRUE(client::AddDevices(*client_, {.mode = client::GpuMode::kOff}).ok());
  }
  client::Device& cpu() { return *client_->devices().front(); }
  std::unique_ptr<Session> Make(const ir::Module& module) {
    auto session = Session::Create(module, *client_, {.device = &cpu()});
    EXPECT_TRUE(session.ok()) << session.status().ToString();
    return *std::move(session);
  }
  Ref<client::Buffer> BufferOf(const Literal& literal) {
    return client::CopyFromHost(cpu(), literal.shape(), literal.data()).value();
  }
  static Literal LiteralOf(client::Buffer& buffer) {
    Literal literal(buffer.shape());
    EXPECT_TRUE(client::CopyToHost(buffer, literal.data()).ok());
    return literal;
  }

  const Ref<client::Client> client_;
};

TEST_F(SessionTest, FetchesAgreeWithTheEvaluator) {
  auto module = ir::ParseOrDie(kGraph);
  {
    auto session = Make(*module);
    std::vector<std::string> inputs = {"x", "w"}, fetches = {"sum", "h"};
    auto plan = session->Prepare(inputs, fetches);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(session->Prepare(inputs, fetches).value(), *plan);
    // Every op is a kernel: dot, broadcast, add, reduce, and the loop's three.
    EXPECT_GE((*plan)->info().kernels, 7);
    EXPECT_NE((*plan)->single(), nullptr);

    std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok());
    auto trace = std::make_shared<TraceSink>();
    ASSERT_TRUE(client_->StartTrace(trace).ok());
    Ref<client::Buffer> x = BufferOf(arguments[0]), w = BufferOf(arguments[1]);
    client::Buffer* feeds[] = {x.get(), w.get()};
    std::vector<Ref<client::Buffer>> results(2);
    Status status = (*plan)->Run({}, feeds, results);
    client_->StopTrace(trace.get());
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(testing::Difference(*expected, LiteralOf(*results[0]), 1e-5, 1e-5), "");
    // One bar for each launch, loops' repeated ones included.
    EXPECT_GT(trace->size(), 10u);
  }
  EXPECT_EQ(client_->allocator().live_bytes(), 0);
}

TEST_F(SessionTest, AnythingCanBeFed) {
  auto module = ir::ParseOrDie(kGraph);
  {
    auto session = Make(*module);
    // With h fed, neither the parameters nor the product are needed.
    std::vector<std::string> inputs = {"h"}, fetches = {"y", "h"};
    auto plan = session->Prepare(inputs, fetches);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    const Literal h = SampleLiteral(Shape(ElementType::kF32, {16, 8}), 3);
    Ref<client::Buffer> fed = BufferOf(h);
    client::Buffer* feeds[] = {fed.get()};
    std::vector<Ref<client::Buffer>> results(2);
    ASSERT_TRUE((*plan)->Run({}, feeds, results).ok());
    const Literal y = LiteralOf(*results[0]), same = LiteralOf(*results[1]);
    for (int64_t i = 0; i < 16 * 8; ++i) {
      const float value = h.values<float>()[i];
      EXPECT_NEAR(y.values<float>()[i], std::tanh(std::tanh(std::tanh(value))), 1e-6);
      EXPECT_EQ(same.values<float>()[i], value);
    }
    EXPECT_NE(results[1]->data(), fed->data());
  }
  EXPECT_EQ(client_->allocator().live_bytes(), 0);
}

TEST_F(SessionTest, KernelsAreCompiledOnceWithinABound) {
  OpCache cache(2);
  auto op = std::make_shared<const CompiledOp>();
  for (const char* text : {"a", "b"}) cache.Insert(text, op);
  EXPECT_NE(cache.Find("a"), nullptr);
  cache.Insert("c", op);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.Find("b"), nullptr);  // used before a
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_NE(cache.Find("c"), nullptr);
}

struct BadRequest {
  std::vector<std::string> feeds, fetches;
  Code code;
  std::string_view message;
};

TEST_F(SessionTest, RefusesWhatItCannotCompute) {
  auto module = ir::ParseOrDie(kGraph);
  auto session = Make(*module);
  const BadRequest requests[] = {
      {{"x", "w"}, {"nothing"}, Code::kNotFound, "there is no value 'nothing' to be fetched"},
      {{"nothing"}, {"h"}, Code::kNotFound, "there is no value 'nothing' to be fed"},
      {{"x"}, {"h"}, Code::kInvalidArgument, "the parameter 'w', f32[32,8], is needed"},
      {{"x", "w"}, {"state"}, Code::kInvalidArgument, "only arrays can be fetched"},
      {{"x", "w", "x"}, {"h"}, Code::kInvalidArgument, "'x' is fed twice"},
      {{"x", "w"}, {"h", "h"}, Code::kInvalidArgument, "'h' is fetched twice"},
  };
  for (const BadRequest& request : requests) {
    auto prepared = session->Prepare(request.feeds, request.fetches);
    ASSERT_FALSE(prepared.ok()) << request.message;
    EXPECT_EQ(prepared.status().code(), request.code);
    EXPECT_NE(prepared.status().message().find(request.message), std::string::npos)
        << prepared.status().ToString();
  }
}

}  // namespace
}  // namespace kiln::session
