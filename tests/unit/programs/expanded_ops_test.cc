// Ops that compiled code makes of others: the evaluator's values against what others have
// published, and compiled code against the evaluator.
#include <gtest/gtest.h>

#include <cmath>

#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/interp.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Apply;
using testing::ValueOf;

// The same bits from the evaluator, and from code for the CPU and the GPU, fused and op by op.
void CheckBits(const std::string& text, const std::vector<Literal>& arguments) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  Result<Literal> expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    Result<Literal> actual = testing::RunCompiled(*module, arguments, fuse);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    EXPECT_EQ(testing::Difference(*expected, *actual, 0, 0), "");
    auto loaded = testing::LoadOnGpu(*module, fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    Result<Literal> on_gpu = testing::RunOnGpu(*loaded, arguments);
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.status().ToString();
    EXPECT_EQ(testing::Difference(*expected, *on_gpu, 0, 0), "");
  }
}

std::string Generator(std::string_view state, std::string_view bits, std::string_view algorithm) {
  return Cat("HloModule m\nENTRY e {\n  s = ", state, " parameter(0)\n  ROOT r = (", state, ", ",
             bits, ") rng-bit-generator(s), algorithm=", algorithm, "\n}\n");
}

Literal State(std::vector<uint64_t> words) {
  return Literal::Array<uint64_t>(Shape(ElementType::kU64, {static_cast<int64_t>(words.size())}),
                                  words);
}

// The known answers of Random123's kat_vectors.
TEST(Random, KnownAnswers) {
  auto bits = [](std::vector<uint64_t> state, std::string_view shape, std::string_view algorithm) {
    std::string type = Cat("u64[", state.size(), "]");
    auto module = ir::ParseOrDie(Generator(type, shape, algorithm));
    Result<Literal> result =
        interp::Evaluate(*module, std::vector<Literal>{State(std::move(state))});
    return result.ok() ? result->elements()[1].ToString() : result.status().ToString();
  };
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(bits({0, 0}, "u32[2]", "rng_three_fry"), "{1797259609, 2579123966}");
  EXPECT_EQ(bits({ones, ones}, "u32[2]", "rng_three_fry"), "{481924860, 3137350631}");
  EXPECT_EQ(bits({0x0370734413198a2e, 0x85a308d3243f6a88}, "u32[2]", "rng_three_fry"),
            "{3297917596, 1212020640}");
  EXPECT_EQ(bits({0, 0, 0}, "u32[4]", "rng_philox"),
            "{1713891541, 3781805453, 3159862348, 2600524760}");
  EXPECT_EQ(bits({ones, ones, ones}, "u32[4]", "rng_philox"),
            "{1083123565, 1103641358, 2718681030, 1834242557}");
  EXPECT_EQ(
      bits({0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e}, "u32[4]", "rng_philox"),
      "{3513581065, 2499661035, 1342301216, 605187745}");
}

TEST(Random, StateGoesOn) {
  auto next = [](std::vector<uint64_t> state, std::string_view shape, std::string_view algorithm) {
    std::string type = Cat("u64[", state.size(), "]");
    auto module = ir::ParseOrDie(Generator(type, shape, algorithm));
    Result<Literal> result =
        interp::Evaluate(*module, std::vector<Literal>{State(std::move(state))});
    return result.ok() ? result->elements()[0].ToString() : result.status().ToString();
  };
  EXPECT_EQ(next({7, 9}, "u32[5]", "rng_three_fry"), "{7, 12}");
  EXPECT_EQ(next({7, 9}, "u64[5]", "rng_three_fry"), "{7, 14}");
  EXPECT_EQ(next({7, 9}, "u32[]", "rng_three_fry"), "{7, 10}");
  EXPECT_EQ(next({7, 9}, "u32[5]", "rng_philox"), "{7, 11}");
  EXPECT_EQ(next({7, 9}, "u64[5]", "rng_default"), "{7, 12}");
  EXPECT_EQ(next({7, ~uint64_t{0}, 3}, "u32[5]", "rng_philox"), "{7, 1, 4}");
}

TEST(Random, CompiledBits) {
  const uint64_t large = ~uint64_t{0} - 3;
  for (std::string_view bits : {"u32[]", "u32[6]", "u32[3,5]", "s32[3,4,5]", "u64[7]", "u64[3,3]",
                                "u16[5]", "u8[2,3]", "s64[]", "u32[0]", "u32[1,1]"}) {
    CheckBits(Generator("u64[2]", bits, "rng_three_fry"), {State({12345678901234567, large})});
    CheckBits(Generator("u64[2]", bits, "rng_philox"), {State({12345678901234567, large})});
    CheckBits(Generator("u64[3]", bits, "rng_default"), {State({12345678901234567, large, 5})});
  }
}

TEST(BatchNorm, Values) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  x = f32[2,2] constant({{1, 2}, {3, 6}})
  s = f32[2] constant({2, 1})
  o = f32[2] constant({0, 10})
  ROOT r = (f32[2,2], f32[2], f32[2]) batch-norm-training(x, s, o), epsilon=0, feature_index=1
}
)"),
            "({ { -2, 9 }, { 2, 11 } }, {2, 4}, {1, 4})");
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  x = f32[2,2] constant({{1, 2}, {3, 6}})
  s = f32[2] constant({2, 1})
  o = f32[2] constant({0, 10})
  m = f32[2] constant({1, 0})
  v = f32[2] constant({3, 15})
  ROOT r = f32[2,2] batch-norm-inference(x, s, o, m, v), epsilon=1, feature_index=0
}
)"),
            "{ { 0, 1 }, { 10.75, 11.5 } }");
}

// The gradients are those of the difference quotient.
TEST(BatchNorm, Gradients) {
  const std::string forward =
      R"(HloModule m
ENTRY e {
  x = f64[3,2] parameter(0)
  s = f64[2] parameter(1)
  o = f64[2] parameter(2)
  t = (f64[3,2], f64[2], f64[2]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1
  ROOT r = f64[3,2] get-tuple-element(t), index=0
}
)";
  const std::string backward =
      R"(HloModule m
ENTRY e {
  x = f64[3,2] parameter(0)
  s = f64[2] parameter(1)
  o = f64[2] parameter(2)
  g = f64[3,2] parameter(3)
  t = (f64[3,2], f64[2], f64[2]) batch-norm-training(x, s, o), epsilon=0.5, feature_index=1
  m = f64[2] get-tuple-element(t), index=1
  v = f64[2] get-tuple-element(t), index=2
  ROOT r = (f64[3,2], f64[2], f64[2]) batch-norm-grad(x, s, m, v, g), epsilon=0.5, feature_index=1
}
)";
  auto f = ir::ParseOrDie(forward), df = ir::ParseOrDie(backward);
  std::vector<Literal> arguments = testing::RandomArguments(*df, 3);
  Result<Literal> gradients = interp::Evaluate(*df, arguments);
  ASSERT_TRUE(gradients.ok()) << gradients.status().ToString();
  // The sum of the result's elements, weighted by the gradient that is handed in.
  auto weighted = [&](const std::vector<Literal>& at) {
    Result<Literal> y = interp::Evaluate(*f, std::vector<Literal>{at[0], at[1], at[2]});
    EXPECT_TRUE(y.ok());
    double sum = 0;
    for (int64_t k = 0; k < 6; ++k) sum += y->AsDouble(k) * arguments[3].AsDouble(k);
    return sum;
  };
  const double step = 1e-6;
  for (size_t operand = 0; operand < 3; ++operand) {
    for (size_t k = 0; k < arguments[operand].values<double>().size(); ++k) {
      std::vector<Literal> above = arguments, below = arguments;
      above[operand].values<double>()[k] += step;
      below[operand].values<double>()[k] -= step;
      const double quotient = (weighted(above) - weighted(below)) / (2 * step);
      EXPECT_NEAR(gradients->elements()[operand].AsDouble(static_cast<int64_t>(k)), quotient, 1e-7)
          << "operand " << operand << ", element " << k;
    }
  }
}

TEST(BatchNorm, Compiled) {
  for (std::string_view type : {"f32", "f64", "bf16"}) {
    std::string x = Cat(type, "[5,3,7]"), v = Cat(type, "[3]");
    std::string head = Cat("HloModule m\nENTRY e {\n  x = ", x, " parameter(0)\n  s = ", v,
                           " parameter(1)\n  o = ", v, " parameter(2)\n");
    testing::Check(Cat(head, "  ROOT r = (", x, ", ", v, ", ", v,
                       ") batch-norm-training(x, s, o), epsilon=0.1, feature_index=1\n}\n"),
                   type == "bf16" ? 1e-2 : 1e-5);
    testing::Check(
        Cat("HloModule m\nENTRY e {\n  x = ", x, " parameter(0)\n  s = ", v,
            " parameter(1)\n  m = ", v, " parameter(2)\n  p = ", v, " parameter(3)\n  q = ", v,
            " multiply(p, p)\n  g = ", x, " parameter(4)\n  ROOT r = (", x, ", ", v, ", ", v,
            ") batch-norm-grad(x, s, m, q, g), epsilon=0.1, feature_index=1\n}\n"),
        type == "bf16" ? 2e-2 : 1e-4, type == "bf16" ? 2e-1 : 1e-4);
  }
  testing::CheckOnGpu(
      R"(HloModule m
ENTRY e {
  x = f32[6,3] parameter(0)
  s = f32[3] parameter(1)
  o = f32[3] parameter(2)
  ROOT r = (f32[6,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.1, feature_index=1
}
)",
      1e-5);
}

TEST(NextAfter, Values) {
  const std::string text =
      R"(HloModule m
ENTRY e {
  x = f32[N] parameter(0)
  y = f32[N] parameter(1)
  ROOT r = f32[N] kiln.next-after(x, y)
}
)";
  std::vector<float> numbers = {0,         -0.0f,         1,        -1,        1e-45f, -1e-45f,
                                1.18e-38f, 3.4028235e38f, INFINITY, -INFINITY, NAN,    2.5f};
  std::vector<float> x, y, expected;
  for (float a : numbers) {
    for (float b : numbers) {
      x.push_back(a);
      y.push_back(b);
      expected.push_back(std::nextafter(a, b));
    }
  }
  const Shape shape(ElementType::kF32, {static_cast<int64_t>(x.size())});
  std::string sized = text;
  for (size_t at; (at = sized.find("[N]")) != std::string::npos;) {
    sized.replace(at, 3, Cat("[", x.size(), "]"));
  }
  std::vector<Literal> arguments = {Literal::Array<float>(shape, x),
                                    Literal::Array<float>(shape, y)};
  Result<Literal> result = interp::Evaluate(*ir::ParseOrDie(sized), arguments);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(testing::Difference(Literal::Array<float>(shape, expected), *result, 0, 0), "");
  CheckBits(sized, arguments);
  for (std::string_view type : {"f16", "bf16", "f64"}) {
    std::string other = sized;
    for (size_t at; (at = other.find("f32")) != std::string::npos;) other.replace(at, 3, type);
    CheckBits(other, testing::RandomArguments(*ir::ParseOrDie(other), 5));
  }
}

// Nobody sends: the result is zero bits, which is no zero in a type without one.
TEST(OneProcess, NothingIsZeroBits) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f8e8m0fnu[2] parameter(0)
  ROOT r = f8e8m0fnu[2] collective-permute(x), source_target_pairs={}
}
)";
  CheckBits(text, testing::RandomArguments(*ir::ParseOrDie(text), 1));
}

TEST(OneProcess, IsItsOwnGroup) {
  const std::string add =
      R"(HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[4] parameter(0)
)";
  const std::vector<Literal> arguments = {
      Literal::Array<float>(Shape(ElementType::kF32, {4}), std::vector<float>{1, 2, 3, 4})};
  auto run = [&](std::string_view line) {
    Result<Literal> result = testing::RunCompiled(
        *ir::ParseOrDie(Cat(add, "  ROOT r = ", line, "\n}\n")), arguments, true);
    return result.ok() ? result->ToString() : result.status().ToString();
  };
  EXPECT_EQ(run("f32[4] all-reduce(x), replica_groups={{0}}, to_apply=add"), "{1, 2, 3, 4}");
  EXPECT_EQ(run("f32[4] all-reduce(x), to_apply=add"), "{1, 2, 3, 4}");
  EXPECT_EQ(run("f32[4] all-gather(x), dimensions={0}"), "{1, 2, 3, 4}");
  EXPECT_EQ(run("f32[4] reduce-scatter(x), dimensions={0}, to_apply=add"), "{1, 2, 3, 4}");
  EXPECT_EQ(run("(f32[4]) all-to-all(x), replica_groups={{0}}"), "({1, 2, 3, 4})");
  EXPECT_EQ(run("f32[4] collective-permute(x), source_target_pairs={{0,0}}"), "{1, 2, 3, 4}");
  EXPECT_EQ(run("f32[4] collective-permute(x), source_target_pairs={{0,1}}"), "{0, 0, 0, 0}");
  EXPECT_EQ(run("f32[4] collective-broadcast(x), replica_groups={{1,2}}"), "{0, 0, 0, 0}");
  EXPECT_EQ(run("u32[] replica-id()"), "0");
  for (std::string_view line : {"f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add",
                                "f32[8] all-gather(x), dimensions={0}",
                                "f32[4] collective-permute(x), source_target_pairs={{1,0}}",
                                "f32[4] collective-broadcast(x), replica_groups={{1,0}}"}) {
    EXPECT_NE(run(line).find("needs other processes"), std::string::npos) << run(line);
  }
}

TEST(Tokens, AreHandedThrough) {
  const std::string text =
      R"(HloModule m
body {
  p = (s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  t = token[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  u = token[] after-all(t, t)
  ROOT r = (s32[], token[]) tuple(n, u)
}
condition {
  p = (s32[], token[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT r = pred[] compare(i, ten), direction=LT
}
ENTRY e {
  i = s32[] parameter(0)
  t = token[] after-all()
  s = (s32[], token[]) tuple(i, t)
  w = (s32[], token[]) while(s), condition=condition, body=body
  ROOT r = s32[] get-tuple-element(w), index=0
}
)";
  CheckBits(text, {Literal::Scalar<int32_t>(ElementType::kS32, 3)});
}

}  // namespace
}  // namespace kiln
