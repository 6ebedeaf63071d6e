// Inference of the ops on bits and positions, through HLO text.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace kiln {
namespace {

// The shape that inference gives an expression of parameters "x = ..., y = ...", or the error.
std::string ShapeOf(std::string_view parameters, std::string_view expression,
                    std::string_view computations = "") {
  std::string text = Cat("HloModule m\n", computations, "\nENTRY e {\n");
  int number = 0;
  for (std::string_view p : Split(parameters, ';')) {
    text += Cat("  ", p, " parameter(", number++, ")\n");
  }
  auto module = ir::ParseHloText(Cat(text, "  ROOT r = ", expression, "\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  return (*module)->entry()->root()->shape().ToString();
}

void ExpectError(std::string_view part, std::string_view parameters, std::string_view expression,
                 std::string_view computations = "") {
  std::string text = ShapeOf(parameters, expression, computations);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(InferenceBits, Reverse) {
  EXPECT_EQ(ShapeOf("x = f32[2,3]", "reverse(x), dimensions={1}"), "f32[2,3]");
  EXPECT_EQ(ShapeOf("x = f32[N,3]", "reverse(x), dimensions={0}"), "f32[N,3]");
  ExpectError("dimensions has 2", "x = f32[2,3]", "reverse(x), dimensions={2}");
  ExpectError("dimensions has 0 twice", "x = f32[2,3]", "reverse(x), dimensions={0,0}");
}

TEST(InferenceBits, BitcastConvert) {
  EXPECT_EQ(ShapeOf("x = f32[2,3]", "s32[2,3] bitcast-convert(x)"), "s32[2,3]");
  EXPECT_EQ(ShapeOf("x = f64[N]", "s32[N,2] bitcast-convert(x)"), "s32[N,2]");
  EXPECT_EQ(ShapeOf("x = u8[2,4]", "f32[2] bitcast-convert(x)"), "f32[2]");
  EXPECT_EQ(ShapeOf("x = pred[8]", "u8[] bitcast-convert(x)"), "u8[]");
  ExpectError("the last dimension must be of size 4", "x = u8[4,2]", "f32[4] bitcast-convert(x)");
  ExpectError("the last dimension must be of size 4", "x = u8[]", "f32[] bitcast-convert(x)");
  ExpectError("inference says s32[2,2]", "x = f64[2]", "s32[4] bitcast-convert(x)");
}

TEST(InferenceBits, ReducePrecision) {
  EXPECT_EQ(ShapeOf("x = f32[2]", "reduce-precision(x), exponent_bits=5, mantissa_bits=0"),
            "f32[2]");
  ExpectError("exponent_bits is 0", "x = f32[2]",
              "reduce-precision(x), exponent_bits=0, mantissa_bits=3");
  ExpectError("mantissa_bits is -1", "x = f32[2]",
              "reduce-precision(x), exponent_bits=5, mantissa_bits=-1");
  ExpectError("must be a float type", "x = s32[2]",
              "reduce-precision(x), exponent_bits=5, mantissa_bits=3");
}

TEST(InferenceBits, GetDimensionSize) {
  EXPECT_EQ(ShapeOf("x = f32[2,N]", "get-dimension-size(x), dimensions={1}"), "s32[]");
  ExpectError("dimensions has 2", "x = f32[2,3]", "get-dimension-size(x), dimensions={2}");
  ExpectError("dimensions has 0 entries", "x = f32[2]", "get-dimension-size(x), dimensions={}");
  ExpectError("does not fit in an s32", "x = u8[3000000000,0]",
              "get-dimension-size(x), dimensions={0}");
}

TEST(InferenceBits, Map) {
  constexpr char kFunction[] = R"(
f { a = f32[] parameter(0)
  b = s32[] parameter(1)
  ROOT p = pred[] constant(true) }
pair { a = f32[] parameter(0)
  ROOT t = (f32[]) tuple(a) })";
  EXPECT_EQ(
      ShapeOf("x = f32[2,3];y = s32[2,3]", "map(x, y), dimensions={0,1}, to_apply=f", kFunction),
      "pred[2,3]");
  ExpectError("dimensions must be all of the operand's 2, in order", "x = f32[2,3];y = s32[2,3]",
              "map(x, y), dimensions={1,0}, to_apply=f", kFunction);
  ExpectError("dimensions must be all", "x = f32[2,3];y = s32[2,3]",
              "map(x, y), dimensions={0}, to_apply=f", kFunction);
  ExpectError("the operands' dimensions must be equal", "x = f32[2,3];y = s32[3,2]",
              "map(x, y), dimensions={0,1}, to_apply=f", kFunction);
  ExpectError("expected (s32[], f32[])", "x = f32[2];y = s32[2]",
              "map(y, x), dimensions={0}, to_apply=f", kFunction);
  ExpectError("expected a scalar", "x = f32[2]", "map(x), dimensions={0}, to_apply=pair",
              kFunction);
}

TEST(InferenceBits, OptBarrier) {
  EXPECT_EQ(ShapeOf("x = (f32[2], (s32[N]))", "opt-barrier(x)"), "(f32[2], (s32[N]))");
  ExpectError("expected 1", "x = f32[2];y = f32[2]", "opt-barrier(x, y)");
}

TEST(InferenceIndexedOps, DynamicSlice) {
  EXPECT_EQ(ShapeOf("x = f32[5,N];i = s32[]", "dynamic-slice(x, i, i), dynamic_slice_sizes={2,-1}"),
            "f32[2,N]");
  EXPECT_EQ(ShapeOf("x = f32[5,N];i = s32[]", "dynamic-slice(x, i, i), dynamic_slice_sizes={5,3}"),
            "f32[5,3]");
  ExpectError("dynamic_slice_sizes has 1 entries", "x = f32[5,6];i = s32[]",
              "dynamic-slice(x, i, i), dynamic_slice_sizes={2}");
  ExpectError("there are 1 start indices; expected 2", "x = f32[5,6];i = s32[]",
              "dynamic-slice(x, i), dynamic_slice_sizes={2,2}");
  ExpectError("integer scalars of one type", "x = f32[5,6];i = s32[];j = s64[]",
              "dynamic-slice(x, i, j), dynamic_slice_sizes={2,2}");
  ExpectError("integer scalars of one type", "x = f32[5];i = f32[]",
              "dynamic-slice(x, i), dynamic_slice_sizes={2}");
  ExpectError("the slice of dimension 0 is 6; expected 0 to 5", "x = f32[5];i = s32[]",
              "dynamic-slice(x, i), dynamic_slice_sizes={6}");
  ExpectError("the slice of dimension 0 is -1", "x = f32[5];i = s32[]",
              "dynamic-slice(x, i), dynamic_slice_sizes={-1}");
}

TEST(InferenceIndexedOps, DynamicUpdateSlice) {
  EXPECT_EQ(ShapeOf("x = f32[5,N];u = f32[2,N];i = s32[]", "dynamic-update-slice(x, u, i, i)"),
            "f32[5,N]");
  ExpectError("one element type and rank", "x = f32[5];u = s32[2];i = s32[]",
              "dynamic-update-slice(x, u, i)");
  ExpectError("one element type and rank", "x = f32[5,5];u = f32[2];i = s32[]",
              "dynamic-update-slice(x, u, i, i)");
  ExpectError("the update of dimension 0 is 6", "x = f32[5];u = f32[6];i = s32[]",
              "dynamic-update-slice(x, u, i)");
  // Whether it fits is seen when the symbols get numbers.
  EXPECT_EQ(ShapeOf("x = f32[N];u = f32[M];i = s32[]", "dynamic-update-slice(x, u, i)"), "f32[N]");
}

constexpr char kRows[] =
    "gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,4}";

TEST(InferenceIndexedOps, Gather) {
  EXPECT_EQ(ShapeOf("x = f32[V,4];i = s32[N]", kRows), "f32[N,4]");
  EXPECT_EQ(ShapeOf("x = f32[3,D];i = s64[2,5,1]",
                    "gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
                    "index_vector_dim=2, slice_sizes={1,-1}"),
            "f32[D,2,5]");
  EXPECT_EQ(ShapeOf("x = f32[3,4,5];i = s64[3,7,2]",
                    "gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, "
                    "start_index_map={2,1}, operand_batching_dims={0}, "
                    "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,2}"),
            "f32[3,7,2]");
  auto expect = [](std::string_view part, std::string_view operands, std::string_view attributes) {
    ExpectError(part, operands, Cat("gather(x, i), ", attributes));
  };
  constexpr char kOperands[] = "x = f32[3,4];i = s32[5]";
  ExpectError("the indices must be integers", "x = f32[3,4];i = f32[5]", kRows);
  ExpectError("the slice of dimension 1 is 4; expected 0 to 3", "x = f32[3,3];i = s32[5]", kRows);
  expect("index_vector_dim is 2; expected 0 to 1", kOperands,
         "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
         "slice_sizes={1,4}");
  expect("start_index_map has 1 entries; expected 5", kOperands,
         "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, "
         "slice_sizes={1,4}");
  expect("offset_dims has 2; expected a dimension from 0 to below 2", kOperands,
         "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1,4}");
  expect("offset_dims has 2 entries; expected 1", kOperands,
         "offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1,4}");
  expect("offset_dims must be in ascending order", "x = f32[3,4,5];i = s32[5]",
         "offset_dims={2,1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1,4,5}");
  expect("slice_sizes of dimension 0 is 2; the slices do not keep it", kOperands,
         "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={2,4}");
  expect("slice_sizes has 1 entries; expected 2", kOperands,
         "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1}");
  expect("start_index_map with operand_batching_dims has 0 twice", kOperands,
         "offset_dims={}, collapsed_slice_dims={1}, start_index_map={0}, "
         "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
         "slice_sizes={1,1}");
  expect("dimension 0 of the operand goes with dimension 0 of the indices", kOperands,
         "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
         "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, "
         "slice_sizes={1,1}");
}

TEST(InferenceIndexedOps, Scatter) {
  constexpr char kAdd[] = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
pair { a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = (f32[], s32[]) tuple(a, d) })";
  constexpr char kOf[] =
      "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
      "index_vector_dim=1, to_apply=";
  std::string of_one = Cat("scatter(x, i, u), ", kOf, "add");
  EXPECT_EQ(ShapeOf("x = f32[V,D];i = s32[N];u = f32[N,D]", of_one, kAdd), "f32[V,D]");
  EXPECT_EQ(ShapeOf("x = f32[3,4];y = s32[3,4];i = s32[5];u = f32[5,2];v = s32[5,2]",
                    Cat("scatter(x, y, i, u, v), ", kOf, "pair"), kAdd),
            "(f32[3,4], s32[3,4])");
  ExpectError("as many updates as operands", "x = f32[3,4];i = s32[5];u = f32[5,4]",
              Cat("scatter(x, x, i, u), ", kOf, "add"), kAdd);
  ExpectError("each update must have its operand's element type",
              "x = f32[3,4];i = s32[5];u = s32[5,4]", of_one, kAdd);
  ExpectError("the slice of dimension 1 is 5; expected 0 to 4",
              "x = f32[3,4];i = s32[5];u = f32[5,5]", of_one, kAdd);
  ExpectError("dimension 0 of the updates must be dimension 0 of the indices, of size 6",
              "x = f32[3,4];i = s32[6];u = f32[5,4]", of_one, kAdd);
  ExpectError("the updates have 3 dimensions; expected 2", "x = f32[3,4];i = s32[5];u = f32[5,4,1]",
              of_one, kAdd);
  ExpectError("the computation takes", "x = f32[3,4];i = s32[5];u = f32[5,4]",
              Cat("scatter(x, i, u), ", kOf, "pair"), kAdd);
}

}  // namespace
}  // namespace kiln
