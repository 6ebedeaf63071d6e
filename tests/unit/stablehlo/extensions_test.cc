// Custom calls that stand for operations, sizes that are known inside of regions, and other things
// that exports of programs for several sizes have.
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

Literal Floats(std::vector<float> values) {
  const auto size = static_cast<int64_t>(values.size());
  return Literal::Array<float>(Shape(ElementType::kF32, {size}), values);
}

// The value of @main for arguments of their shapes.
std::string ValueFor(std::string_view text, const std::vector<Literal>& arguments) {
  ImportOptions options;
  for (const Literal& argument : arguments) options.arguments.push_back(argument.shape());
  return Value(text, arguments, options);
}

// What all have in common: the size of %x as %n, and as a list of one as %s.
constexpr std::string_view kSize =
    R"(%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
)";

TEST(StablehloExtensions, TopKOfAKnownNumber) {
  const std::string text =
      Cat("func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>) {\n", kSize,
          Constant("one", "1", "tensor<i32>"), "%k = stablehlo.subtract %n, %one : tensor<i32>\n",
          "%0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) : (tensor<?xf32>, "
          "tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)\n",
          "return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>\n}");
  EXPECT_EQ(ValueFor(text, {Floats({3, 1, 2})}), "({3, 2}, {0, 2})");
  EXPECT_EQ(ValueFor(text, {Floats({4, 1, 7, 5})}), "({7, 5, 4}, {2, 3, 0})");
}

// Two results of one window, with a reducer that ends as a region does.
TEST(StablehloExtensions, ReduceWindowBySizesThatAreOperands) {
  const std::string text =
      Cat("func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {\n", kSize,
          Constant("z", "0.0", "tensor<f32>"), Constant("m", "0.0", "tensor<f32>"),
          Constant("u", "1", "tensor<1xi32>"), Constant("p", "[[2, 0]]", "tensor<1x2xi32>"),
          "%0:2 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %x, %z, %m, %s, %u, "
          "%u, %u, %p) {called_computations = [@f]} : (tensor<?xf32>, tensor<?xf32>, tensor<f32>, "
          "tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, "
          "tensor<1x2xi32>) -> (tensor<?xf32>, tensor<?xf32>)\n"
          "return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>\n}\n"
          "func.func private @f(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: "
          "tensor<f32>) -> (tensor<f32>, tensor<f32>) {\n"
          "%0 = stablehlo.add %a, %c : tensor<f32>\n"
          "%1 = stablehlo.maximum %b, %d : tensor<f32>\n"
          "stablehlo.return %0, %1 : tensor<f32>, tensor<f32>\n}");
  EXPECT_EQ(ValueFor(text, {Floats({1, 5, 2})}), "({1, 6, 8}, {1, 5, 5})");
  EXPECT_EQ(ValueFor(text, {Floats({1, 5})}), "({0, 1, 6}, {0, 1, 5})");
  const std::string wrong =
      Constant("x", "[1.0]", "tensor<1xf32>") + Constant("z", "0.0", "tensor<f32>") +
      Constant("u", "[1, 1]", "tensor<2xi32>") +
      "%0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %z, %u, %u, %u, %u, %u) : "
      "(tensor<1xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, "
      "tensor<2xi32>) -> tensor<1xf32>";
  EXPECT_NE(BodyValue(wrong, "%0", "tensor<1xf32>")
                .find("operand 2, the sizes of windows, is s32[2]; expected 1 numbers"),
            std::string::npos)
      << BodyValue(wrong, "%0", "tensor<1xf32>");
}

TEST(StablehloExtensions, RandomBitsOfSizesThatAreOperands) {
  const std::string known =
      Constant("k", "[1, 2]", "tensor<2xui64>") + Constant("s", "[3]", "tensor<1xi32>") +
      "%0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%k, %s) {rng_algorithm = "
      "#stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>, tensor<1xi32>) -> "
      "(tensor<2xui64>, tensor<?xui32>)\n"
      "%1:2 = \"stablehlo.rng_bit_generator\"(%k) {rng_algorithm = #stablehlo<rng_algorithm "
      "THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)";
  const std::string both = BodyValue(known, "%0#1, %1#1", "tensor<?xui32>, tensor<3xui32>");
  const size_t comma = both.find("}, {");
  ASSERT_NE(comma, std::string::npos) << both;
  EXPECT_EQ(both.substr(1, comma), both.substr(comma + 3, comma));
}

// The largest ones, of which the least is dropped; sizes of results are operands, or in their
// types.
TEST(StablehloExtensions, ApproximationsAreExact) {
  const std::string function =
      "func.func private @gt(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) "
      "-> tensor<i1> {\n"
      "%0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
      "stablehlo.return %0 : tensor<i1>\n}\n";
  const std::string begin =
      Constant("x", "[3.0, 1.0, 2.0, 4.0]", "tensor<4xf32>") + Constant("m", "0.0", "tensor<f32>") +
      Constant("j", "-1", "tensor<i32>") + "%i = stablehlo.iota dim = 0 : tensor<4xi32>\n";
  auto value = [&](std::string_view call, std::string_view types) {
    return Value(Cat(function, "func.func @main() -> (", types, ") {\n", begin, call,
                     "return %0#0, %0#1 : ", types, "\n}"));
  };
  const std::string_view config =
      "called_computations = [@gt], mhlo.backend_config = {aggregate_to_topk = true, reduction_dim "
      "= -1 : i64, top_k = 3 : i64}}";
  EXPECT_EQ(value(Cat("%0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %m, %j) {", config,
                      " : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> "
                      "(tensor<3xf32>, tensor<3xi32>)\n"),
                  "tensor<3xf32>, tensor<3xi32>"),
            "({4, 3, 2}, {3, 0, 2})");
  EXPECT_EQ(
      value(Cat(Constant("k", "2", "tensor<i32>"), Constant("s", "2", "tensor<1xi32>"),
                "%0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %m, "
                "%j, %k, %s, %s) {indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>, ",
                config,
                " : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>, tensor<i32>, "
                "tensor<1xi32>, tensor<1xi32>) -> (tensor<?xf32>, tensor<?xi32>)\n"),
            "tensor<?xf32>, tensor<?xi32>"),
      "({4, 3}, {3, 0})");
  EXPECT_NE(value("%0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %m, %j) {called_computations "
                  "= [@gt]} : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> "
                  "(tensor<3xf32>, tensor<3xi32>)\n",
                  "tensor<3xf32>, tensor<3xi32>")
                .find("there is no reduction_dim"),
            std::string::npos);
}

TEST(StablehloExtensions, CallsWhoseResultsHaveSizesBesideThem) {
  const std::string text =
      "func.func @main(%x: tensor<2xf32>) -> tensor<?xf32> {\n" +
      Constant("s", "[5]", "tensor<1xi64>") +
      "%0 = stablehlo.custom_call @f(%x, %s) {indices_of_shape_operands = dense<[1]> : "
      "tensor<1xi64>} : (tensor<2xf32>, tensor<1xi64>) -> tensor<?xf32>\n"
      "return %0 : tensor<?xf32>\n}";
  EXPECT_NE(Imported(text).find("f32[5]{0} custom-call(%arg0), custom_call_target=\"f\""),
            std::string::npos)
      << Imported(text);
}

TEST(StablehloExtensions, SizesMustFit) {
  const std::string text =
      "func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {\n" +
      Constant("s", "[5]", "tensor<1xi64>") +
      "%0 = stablehlo.custom_call @f(%x, %s) {indices_of_shape_operands = dense<[1]> : "
      "tensor<1xi64>} : (tensor<2xf32>, tensor<1xi64>) -> tensor<4xf32>\n"
      "return %0 : tensor<4xf32>\n}";
  EXPECT_NE(Imported(text).find("operand 1 says f32[5] of a result that is tensor<4xf32>"),
            std::string::npos)
      << Imported(text);
}

TEST(StablehloExtensions, AssertionsTellTheNumbers) {
  const std::string body =
      Constant("no", "false", "tensor<i1>") + Constant("a", "3", "tensor<i32>") +
      Constant("b", "-4", "tensor<i64>") +
      "stablehlo.custom_call @shape_assertion(%no, %a, %b) {error_message = \"found {0} and {1}, "
      "not {2} or {x}\", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i64>) -> ()";
  const std::string error = BodyValue(body, "%a", "tensor<i32>");
  EXPECT_NE(error.find("found 3 and -4, not {2} or {x}"), std::string::npos) << error;
}

TEST(StablehloExtensions, ValuesMarkedAsUsed) {
  const std::string sink =
      "stablehlo.custom_call @dce_sink(%a) {has_side_effect = true} : (tensor<i32>) -> ()";
  EXPECT_EQ(BodyValue(Constant("a", "3", "tensor<i32>") + sink, "%a", "tensor<i32>"), "3");
}

// %n is a size inside of the branches and the loop, too, and so is what a loop carries as it is.
TEST(StablehloExtensions, SizesInRegions) {
  const std::string ones =
      "stablehlo.dynamic_broadcast_in_dim %one, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> "
      "tensor<?xf32>\n";
  const std::string branches =
      Cat("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n",
          "%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n",
          Constant("one", "1.0", "tensor<f32>"), Constant("c", "3", "tensor<i32>"),
          "%p = stablehlo.compare LT, %n, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\n",
          "%0 = \"stablehlo.if\"(%p) ({\n",
          "%s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n%1 = ", ones,
          "stablehlo.return %1 : tensor<?xf32>\n}, {\n",
          "stablehlo.return %x : tensor<?xf32>\n}) : (tensor<i1>) -> tensor<?xf32>\n",
          "return %0 : tensor<?xf32>\n}");
  EXPECT_EQ(ValueFor(branches, {Floats({5, 6})}), "{1, 1}");
  EXPECT_EQ(ValueFor(branches, {Floats({5, 6, 7})}), "{5, 6, 7}");
  const std::string loop = Cat(
      "func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<i32>) {\n",
      "%n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n",
      Constant("one", "1.0", "tensor<f32>"), Constant("z", "0", "tensor<i32>"),
      Constant("u", "1", "tensor<i32>"),
      R"(%0:3 = stablehlo.while(%i = %z, %k = %n, %a = %x) : tensor<i32>, tensor<i32>, tensor<?xf32>
cond {
)",
      "%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n",
      "stablehlo.return %p : tensor<i1>\n} do {\n",
      "%s = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>\n%1 = ", ones,
      "%2 = stablehlo.add %a, %1 : tensor<?xf32>\n", "%3 = stablehlo.add %i, %u : tensor<i32>\n",
      "stablehlo.return %3, %k, %2 : tensor<i32>, tensor<i32>, tensor<?xf32>\n}\n",
      "return %0#2, %0#0 : tensor<?xf32>, tensor<i32>\n}");
  EXPECT_EQ(ValueFor(loop, {Floats({5, 6})}), "({7, 8}, 2)");
  // One that changes is not known.
  std::string changes = loop;
  changes.replace(changes.find("return %3, %k, %2"), 17, "return %3, %i, %2");
  EXPECT_NE(ValueFor(changes, {Floats({5, 6})}).find("is not known when the program is imported"),
            std::string::npos);
}

// Its limits are its starts and sizes: of such a slice the starts need not be known.
TEST(StablehloExtensions, SlicesOfASizeThatIsComputed) {
  const std::string text =
      Cat("func.func @main(%x: tensor<?xf32>, %a: tensor<1xi32>) -> tensor<?xf32> {\n", kSize,
          Constant("u", "1", "tensor<1xi32>"),
          "%l = stablehlo.subtract %s, %u : tensor<1xi32>\n"
          "%b = stablehlo.add %l, %a : tensor<1xi32>\n"
          "%0 = stablehlo.real_dynamic_slice %x, %a, %b, %u : (tensor<?xf32>, tensor<1xi32>, "
          "tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>\n"
          "return %0 : tensor<?xf32>\n}");
  const std::vector<int32_t> one = {1};
  EXPECT_EQ(ValueFor(text, {Floats({1, 2, 3}),
                            Literal::Array<int32_t>(Shape(ElementType::kS32, {1}), one)}),
            "{2, 3}");
}

// --- LAPACK

// A call of operands that are matrices of such a size, column-major.
std::string Matrices(std::string_view target, std::string_view operands, std::string_view config,
                     std::string_view types) {
  return Cat("stablehlo.custom_call @", target, "(", operands, ") {mhlo.backend_config = {", config,
             "}, operand_layouts = [",
             operands.size() > 2 ? "dense<[0, 1]> : tensor<2xindex>, " : "",
             "dense<[0, 1]> : tensor<2xindex>]} : ", types, "\n");
}

TEST(StablehloExtensions, CholeskyByLapack) {
  const std::string types = "(tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>)";
  auto value = [&](std::string_view x, std::string_view config) {
    return BodyValue(Constant("x", x, "tensor<2x2xf64>") +
                         "%0:2 = " + Matrices("lapack_dpotrf_ffi", "%x", config, types),
                     "%0#0, %0#1", "tensor<2x2xf64>, tensor<i32>");
  };
  // What is on the other side of the diagonal stays as it was.
  EXPECT_EQ(value("[[4.0, 7.0], [2.0, 10.0]]", "uplo = 76 : ui8"), "({ { 2, 7 }, { 1, 3 } }, 0)");
  EXPECT_EQ(value("[[4.0, 2.0], [7.0, 10.0]]", "uplo = 85 : ui8"), "({ { 2, 1 }, { 7, 3 } }, 0)");
  const std::string none = value("[[-4.0, 2.0], [2.0, 10.0]]", "uplo = 76 : ui8");
  EXPECT_TRUE(none.ends_with(", 1)")) << none;
  // In programs for several sizes.
  const std::string sized =
      Constant("x", "[[9.0]]", "tensor<1x1xf32>") + Constant("s", "1", "tensor<2xi32>") +
      Constant("t", "[]", "tensor<0xi32>") +
      "%0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x, %s, %t) {indices_of_shape_operands = "
      "dense<[1, 2]> : tensor<2xi64>, backend_config = {uplo = 76 : ui8}, operand_layouts = "
      "[dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]} "
      ": (tensor<1x1xf32>, tensor<2xi32>, tensor<0xi32>) -> (tensor<?x?xf32>, tensor<i32>)";
  EXPECT_EQ(BodyValue(sized, "%0#0, %0#1", "tensor<?x?xf32>, tensor<i32>"), "({ {3} }, 0)");
  EXPECT_NE(value("[[4.0, 2.0], [2.0, 10.0]]", "uplo = 5 : ui8").find("must have uplo"),
            std::string::npos);
}

TEST(StablehloExtensions, TriangularSystemsByBlas) {
  auto value = [&](std::string_view config) {
    return BodyValue(Constant("a", "[[2.0, 99.0], [1.0, 4.0]]", "tensor<2x2xf32>") +
                         Constant("b", "[[2.0, 4.0], [5.0, 10.0]]", "tensor<2x2xf32>") + "%0 = " +
                         Matrices("lapack_strsm_ffi", "%a, %b", config,
                                  "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"),
                     "%0", "tensor<2x2xf32>");
  };
  const std::string lower = "uplo = 76 : ui8, diag = 78 : ui8, ";
  EXPECT_EQ(value(lower + "side = 76 : ui8, trans_x = 78 : ui8"), "{ { 1, 2 }, { 1, 2 } }");
  EXPECT_EQ(value(lower + "side = 82 : ui8, trans_x = 84 : ui8"),
            "{ { 1, 0.75 }, { 2.5, 1.875 } }");
  EXPECT_EQ(value("uplo = 76 : ui8, diag = 85 : ui8, side = 76 : ui8, trans_x = 67 : ui8"),
            "{ { -3, -6 }, { 5, 10 } }");
  const std::string row_major =
      Constant("a", "[[2.0]]", "tensor<1x1xf32>") +
      "%0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %a) {mhlo.backend_config = {}} : "
      "(tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>";
  EXPECT_NE(BodyValue(row_major, "%0", "tensor<1x1xf32>").find("not column-major"),
            std::string::npos);
}

// Products of integers that are to be floats do not overflow.
TEST(StablehloExtensions, ProductsOfIntegersAsFloats) {
  const std::string x = Constant("x", "[[100, 100]]", "tensor<1x2xi8>");
  EXPECT_EQ(BodyValue(x + "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : "
                          "(tensor<1x2xi8>, tensor<1x2xi8>) -> tensor<1x1xf32>",
                      "%0", "tensor<1x1xf32>"),
            "{ {20000} }");
}

}  // namespace
}  // namespace kiln::stablehlo
