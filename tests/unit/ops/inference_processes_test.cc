// Inference of convolutions, statistics, random numbers and processes, through HLO text.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "ir/text.h"
#include "ops/convolution.h"
#include "support/labels.h"

namespace kiln {
namespace {

constexpr std::string_view kAdd =
    R"(add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] add(a, b) }
ge { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=GE }
)";

// The shape of an expression of parameters "x = ...;y = ...", read, printed and read again, or the
// error.
std::string ShapeOf(std::string_view parameters, std::string_view expression) {
  std::string text = Cat("HloModule m\n", kAdd, "\nENTRY e {\n");
  int number = 0;
  for (std::string_view p : Split(parameters, ';')) {
    text += Cat("  ", p, " parameter(", number++, ")\n");
  }
  auto module = ir::ParseHloText(Cat(text, "  ROOT r = ", expression, "\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  std::string printed = ir::ToHloText(**module);
  auto again = ir::ParseHloText(printed);
  if (!again.ok()) return Cat("printed: ", again.status().message(), "\n", printed);
  EXPECT_EQ(ir::ToHloText(**again), printed);
  return (*again)->entry()->root()->shape().ToString();
}

void ExpectError(std::string_view part, std::string_view parameters, std::string_view expression) {
  std::string text = ShapeOf(parameters, expression);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(ConvolutionDimensions, Text) {
  for (std::string_view text :
       {"b01f_01io->b01f", "bf01_oi01->bf01", "b0f_0io->b0f", "bf_io->bf", "01bf_i0o1->f1b0"}) {
    auto dimensions = ParseConvolutionDimensions(text);
    ASSERT_TRUE(dimensions.ok()) << text;
    EXPECT_EQ(dimensions->ToString(), text);
  }
  for (std::string_view text : {"", "bf_io", "b0f_0io->b1f", "b0f_01io->b0f", "b00f_01io->b01f",
                                "bb_io->bf", "b0_0io->b0f", "b0f0io->b0f", "bf->bf_io"}) {
    EXPECT_FALSE(ParseConvolutionDimensions(text).ok()) << text;
  }
}

TEST(InferenceConvolution, Shapes) {
  EXPECT_EQ(ShapeOf("x = f32[2,9,9,4];k = f32[3,3,4,8]",
                    "convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f"),
            "f32[2,7,7,8]");
  EXPECT_EQ(ShapeOf("x = f32[2,4,9,9];k = f32[8,4,3,2]",
                    "convolution(x, k), window={size=3x2 stride=2x1 pad=1_1x0_2 lhs_dilate=1x2 "
                    "rhs_dilate=2x1 rhs_reversal=1x0}, dim_labels=bf01_oi01->bf01"),
            "f32[2,8,4,18]");
  EXPECT_EQ(ShapeOf("x = bf16[6,5,4];k = bf16[2,2,8]",
                    "f32[6,4,8] convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, "
                    "feature_group_count=2"),
            "f32[6,4,8]");
  EXPECT_EQ(ShapeOf("x = f32[6,5,4];k = f32[2,4,8]",
                    "convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f, "
                    "batch_group_count=2"),
            "f32[3,4,8]");
  EXPECT_EQ(
      ShapeOf("x = s32[3,4];k = s32[4,5]", "convolution(x, k), window={}, dim_labels=bf_io->bf"),
      "s32[3,5]");
}

TEST(InferenceConvolution, Errors) {
  const std::string_view x = "x = f32[2,9,4];k = f32[3,4,8]";
  ExpectError("they must have 4 dimensions", x,
              "convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f");
  ExpectError("its sizes must be those of rhs", x,
              "convolution(x, k), window={size=2}, dim_labels=b0f_0io->b0f");
  ExpectError("the window has 2 dimensions; expected 1", x,
              "convolution(x, k), window={size=3x3}, dim_labels=b0f_0io->b0f");
  ExpectError("lhs has 4 features and rhs takes 4", x,
              "convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, "
              "feature_group_count=2");
  ExpectError("which does not divide 4", x,
              "convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, "
              "feature_group_count=3");
  ExpectError("one of them must be 1", x,
              "convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, "
              "feature_group_count=2, batch_group_count=2");
  ExpectError("dimension labels are 'b0f_0io'", x,
              "convolution(x, k), window={size=3}, dim_labels=b0f_0io");
  ExpectError("attribute 'dim_labels' is missing", x, "convolution(x, k), window={size=3}");
  ExpectError("their element types must be equal", "x = f32[2,9,4];k = f16[3,4,8]",
              "convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f");
}

TEST(InferenceConvolution, SelectAndScatter) {
  EXPECT_EQ(ShapeOf("x = f32[4,6];s = f32[2,2];i = f32[]",
                    "select-and-scatter(x, s, i), window={size=2x3 stride=2x3}, select=ge, "
                    "scatter=add"),
            "f32[4,6]");
  ExpectError("the source must be f32[2,2]", "x = f32[4,6];s = f32[2,3];i = f32[]",
              "select-and-scatter(x, s, i), window={size=2x3 stride=2x3}, select=ge, scatter=add");
  ExpectError("expected two f32[] to pred[]", "x = f32[4,6];s = f32[2,2];i = f32[]",
              "select-and-scatter(x, s, i), window={size=2x3 stride=2x3}, select=add, "
              "scatter=add");
}

TEST(InferenceStatistics, BatchNorm) {
  const std::string_view training = "x = f32[2,3,4];s = f32[3];o = f32[3]";
  EXPECT_EQ(ShapeOf(training, "batch-norm-training(x, s, o), epsilon=0.001, feature_index=1"),
            "(f32[2,3,4], f32[3], f32[3])");
  ExpectError("operand 1 must be f32[4]", training,
              "batch-norm-training(x, s, o), epsilon=0.001, feature_index=2");
  ExpectError("feature_index is 3", training,
              "batch-norm-training(x, s, o), epsilon=0.001, feature_index=3");
  ExpectError("attribute 'epsilon' is missing", training,
              "batch-norm-training(x, s, o), feature_index=1");
  const std::string_view inference = "x = f32[2,3];s = f32[3];o = f32[3];m = f32[3];v = f32[3]";
  EXPECT_EQ(
      ShapeOf(inference, "batch-norm-inference(x, s, o, m, v), epsilon=1e-05, feature_index=1"),
      "f32[2,3]");
  EXPECT_EQ(ShapeOf("x = f32[2,3];s = f32[3];m = f32[3];v = f32[3];g = f32[2,3]",
                    "batch-norm-grad(x, s, m, v, g), epsilon=0, feature_index=1"),
            "(f32[2,3], f32[3], f32[3])");
}

TEST(InferenceStatistics, Random) {
  EXPECT_EQ(ShapeOf("a = f32[];b = f32[]", "f32[2,3] rng(a, b), distribution=rng_uniform"),
            "f32[2,3]");
  ExpectError("expected rng_uniform", "a = f32[];b = f32[]",
              "f32[2,3] rng(a, b), distribution=rng_other");
  ExpectError("rng_normal gives floats", "a = s32[];b = s32[]",
              "s32[2,3] rng(a, b), distribution=rng_normal");
  EXPECT_EQ(ShapeOf("s = u64[2]", "(u64[2], u32[5]) rng-bit-generator(s), algorithm=rng_three_fry"),
            "(u64[2], u32[5])");
  EXPECT_EQ(ShapeOf("s = u64[3]", "(u64[3], u64[5]) rng-bit-generator(s), algorithm=rng_philox"),
            "(u64[3], u64[5])");
  ExpectError("is u64[2]", "s = u64[3]",
              "(u64[3], u64[5]) rng-bit-generator(s), algorithm=rng_three_fry");
}

TEST(InferenceProcesses, Collectives) {
  EXPECT_EQ(ShapeOf("x = f32[2,3]",
                    "f32[2,6] all-gather(x), dimensions={1}, "
                    "replica_groups={{0,1}}, channel_id=1"),
            "f32[2,6]");
  ExpectError("by a whole factor", "x = f32[2,3]", "f32[2,7] all-gather(x), dimensions={1}");
  ExpectError("in dimension 1 alone", "x = f32[2,3]", "f32[4,6] all-gather(x), dimensions={1}");
  EXPECT_EQ(ShapeOf("x = f32[2,3]", "all-reduce(x), replica_groups={{0},{1,2}}, to_apply=add"),
            "f32[2,3]");
  EXPECT_EQ(ShapeOf("x = f32[2];y = f32[]", "all-reduce(x, y), to_apply=add"), "(f32[2], f32[])");
  ExpectError("replica_groups has 1 twice", "x = f32[2,3]",
              "all-reduce(x), replica_groups={{0,1},{1,2}}, to_apply=add");
  EXPECT_EQ(ShapeOf("x = f32[2,6]", "f32[2,3] reduce-scatter(x), dimensions={1}, to_apply=add"),
            "f32[2,3]");
  EXPECT_EQ(ShapeOf("x = f32[2];y = f32[2]", "all-to-all(x, y), replica_groups={{0,1}}"),
            "(f32[2], f32[2])");
  EXPECT_EQ(ShapeOf("x = f32[2]", "collective-permute(x), source_target_pairs={{0,1},{1,0}}"),
            "f32[2]");
  ExpectError("expected two numbers", "x = f32[2]",
              "collective-permute(x), source_target_pairs={{0,1,2}}");
  EXPECT_EQ(ShapeOf("x = f32[2]", "collective-broadcast(x), replica_groups={{0,1}}"), "f32[2]");
  EXPECT_EQ(ShapeOf("", "replica-id()"), "u32[]");
  EXPECT_EQ(ShapeOf("", "partition-id()"), "u32[]");
}

TEST(InferenceProcesses, TokensAndQueues) {
  EXPECT_EQ(ShapeOf("a = token[];b = token[]", "after-all(a, b)"), "token[]");
  ExpectError("operand 1 must be a token", "a = token[];b = f32[]", "after-all(a, b)");
  EXPECT_EQ(ShapeOf("t = token[]", "((f32[3], pred[]), token[]) infeed(t), infeed_config=\"a\""),
            "((f32[3], pred[]), token[])");
  ExpectError("expected a value and a token", "t = token[]", "(f32[3], pred[]) infeed(t)");
  EXPECT_EQ(ShapeOf("x = f32[3];t = token[]", "outfeed(x, t)"), "token[]");
  EXPECT_EQ(ShapeOf("x = f32[3];t = token[]", "send(x, t), channel_id=2"),
            "(f32[3], u32[], token[])");
  EXPECT_EQ(ShapeOf("t = token[]", "(f32[3], u32[], token[]) recv(t), channel_id=2"),
            "(f32[3], u32[], token[])");
  EXPECT_EQ(ShapeOf("v = (f32[3], u32[], token[])", "recv-done(v), channel_id=2"),
            "(f32[3], token[])");
  EXPECT_EQ(ShapeOf("v = (f32[3], u32[], token[])", "send-done(v), channel_id=2"), "token[]");
  ExpectError("it must be a tuple of a value", "v = (f32[3], token[])",
              "send-done(v), channel_id=2");
}

TEST(InferenceProcesses, SetDimensionSize) {
  EXPECT_EQ(ShapeOf("x = f32[3,4];n = s32[]", "set-dimension-size(x, n), dimensions={1}"),
            "f32[3,<=4]");
  ExpectError("must be s32[]", "x = f32[3,4];n = s64[]",
              "set-dimension-size(x, n), dimensions={1}");
}

KILN_LABEL(text, "ConvolutionDimensions");

}  // namespace
}  // namespace kiln
