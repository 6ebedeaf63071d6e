// Quantised values as they come from StableHLO.
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

TEST(StablehloImport, QuantisedValuesAreIntegers) {
  // -0.75 / 0.5 - 3 is between two integers, of which -4 is even.
  const std::string type = "tensor<3x!quant.uniform<i8:f32, 0.5:-3>>";
  const std::string body =
      Constant("x", "[1.0, -0.75, 1000.0]", "tensor<3xf32>") +
      Cat("%q = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> ", type, "\n",
          "%b = stablehlo.bitcast_convert %q : (", type, ") -> tensor<3xi8>\n",
          "%d = stablehlo.uniform_dequantize %q : (", type, ") -> tensor<3xf32>\n",
          "%s = stablehlo.add %q, %q : ", type, "\n", "%t = stablehlo.bitcast_convert %s : (", type,
          ") -> tensor<3xi8>");
  EXPECT_EQ(BodyValue(body, "%b, %d, %t", "tensor<3xi8>, tensor<3xf32>, tensor<3xi8>"),
            "({-1, -4, 127}, {1, -0.5, 65}, {1, -5, 127})");
}

TEST(StablehloImport, QuantisedAlongAnAxis) {
  const std::string type = "tensor<2x2x!quant.uniform<i8:f32:1, {0.5:1,0.25:-1}>>";
  const std::string body =
      Constant("x", "[[1.0, 1.0], [2.0, -2.0]]", "tensor<2x2xf32>") +
      Cat("%q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> ", type, "\n",
          "%b = stablehlo.bitcast_convert %q : (", type, ") -> tensor<2x2xi8>");
  EXPECT_EQ(BodyValue(body, "%b", "tensor<2x2xi8>"), "{ { 3, 3 }, { 5, -9 } }");
}

TEST(StablehloImport, QuantisedProducts) {
  // (x - 1) * 0.5 and (y + 1) * 0.25 with x = {3, 5}, y = {1, -3}: 1 * 0.5 + 2 * -0.5.
  const std::string lhs = "tensor<2x!quant.uniform<i8:f32, 0.5:1>>";
  const std::string rhs = "tensor<2x!quant.uniform<i8:f32, 0.25:-1>>";
  const std::string head = Constant("a", "[3, 5]", "tensor<2xi8>") +
                           Constant("b", "[1, -3]", "tensor<2xi8>") +
                           Cat("%x = stablehlo.bitcast_convert %a : (tensor<2xi8>) -> ", lhs, "\n",
                               "%y = stablehlo.bitcast_convert %b : (tensor<2xi8>) -> ", rhs, "\n");
  auto dot = [&](std::string_view result) {
    return BodyValue(
        Cat(head, "%0 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (", lhs, ", ",
            rhs, ") -> tensor<!quant.uniform<i32:f32, ", result, ">>\n",
            "%1 = stablehlo.bitcast_convert %0 : (tensor<!quant.uniform<i32:f32, ", result,
            ">>) -> tensor<i32>"),
        "%1", "tensor<i32>");
  };
  EXPECT_EQ(dot("0.125"), "-4");
  EXPECT_EQ(dot("0.125:10"), "6");
  EXPECT_EQ(dot("0.3:10"), "8");
  // A factor that is not quantised makes the other one floats.
  EXPECT_EQ(BodyValue(Cat(head, "%f = stablehlo.constant dense<[1.0, 10.0]> : tensor<2xf32>\n",
                          "%0 = stablehlo.dot_general %f, %y, contracting_dims = [0] x [0] : "
                          "(tensor<2xf32>, ",
                          rhs, ") -> tensor<f32>"),
                      "%0", "tensor<f32>"),
            "-4.5");
}

// Zero points of the left factor are subtracted behind the sums, and surround it where it is
// padded.
TEST(StablehloImport, QuantisedProductsOfBytes) {
  const std::string x = "!quant.uniform<i8:f32, 0.5:1>", w = "!quant.uniform<i8:f32, 0.25>",
                    r = "!quant.uniform<i32:f32, 0.125>";
  const std::string factors =
      Constant("a", "[3, 5, 2]", "tensor<3xi8>") + Constant("b", "[1, -1, 2]", "tensor<3xi8>");
  auto with_factors = [&](std::string_view x_shape, std::string_view w_shape) {
    return Cat(factors, "%c = stablehlo.reshape %a : (tensor<3xi8>) -> tensor<", x_shape, "xi8>\n",
               "%d = stablehlo.reshape %b : (tensor<3xi8>) -> tensor<", w_shape, "xi8>\n",
               "%x = stablehlo.bitcast_convert %c : (tensor<", x_shape, "xi8>) -> tensor<", x_shape,
               "x", x, ">\n%w = stablehlo.bitcast_convert %d : (tensor<", w_shape,
               "xi8>) -> tensor<", w_shape, "x", w, ">\n");
  };
  auto integers = [&](std::string_view shape) {
    return Cat("%1 = stablehlo.bitcast_convert %0 : (tensor<", shape, r, ">) -> tensor<", shape,
               "i32>");
  };
  EXPECT_EQ(BodyValue(Cat(with_factors("3", "3"),
                          "%0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : "
                          "(tensor<3x",
                          x, ">, tensor<3x", w, ">) -> tensor<", r, ">\n", integers("")),
                      "%1", "tensor<i32>"),
            "0");
  // Sums of {2, 4, 1} and 0 around, times {1, -1, 2}; with holes those of {2, 0, 4, 0, 1}.
  auto convolved = [&](std::string_view size, int dilation) {
    return BodyValue(
        Cat(with_factors("1x3x1", "3x1x1"),
            "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
            "window = {pad = [[1, 1]], lhs_dilate = [",
            dilation,
            "]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            "(tensor<1x3x1x",
            x, ">, tensor<3x1x1x", w, ">) -> tensor<1x", size, "x1x", r, ">\n",
            integers(Cat("1x", size, "x1x"))),
        "%1", Cat("tensor<1x", size, "x1xi32>"));
  };
  EXPECT_EQ(convolved("3", 1), "{ { {6}, {0}, {3} } }");
  EXPECT_EQ(convolved("5", 2), "{ { {-2}, {10}, {-4}, {6}, {-1} } }");
}

TEST(StablehloImport, QuantisedByBlocksIsNotImplemented) {
  const std::string value = Value(
      R"(func.func @main(%x: tensor<2x2x!quant.uniform<i8:f32:{0:1,1:1}, {{1.0, 2.0}, {3.0, 4.0}}>>) {
return
})");
  EXPECT_NE(value.find("UNIMPLEMENTED"), std::string::npos) << value;
}

}  // namespace
}  // namespace kiln::stablehlo
