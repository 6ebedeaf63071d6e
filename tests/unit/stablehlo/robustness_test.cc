// Wrong or damaged StableHLO text gives an error or a tree, and never a crash or much memory.
#include <algorithm>
#include <random>

#include "support/stablehlo.h"

namespace kiln::stablehlo {
namespace {

std::string ErrorOf(std::string_view text) {
  auto module = ReadText(text);
  return module.ok() ? "none" : module.status().ToString();
}

std::string Repeated(std::string_view piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(StablehloErrors, WhatAndWhere) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.add %a, %b : tensor<f32>\n}",
       "line 2, column 26: found '%b'; expected a value that is defined before"},
      {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.add %a, %a : tensor<i32>\n}",
       "line 2, column 31: found the type tensor<i32> for operand 0 of 'stablehlo.add'; expected "
       "tensor<f32>"},
      {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.ad %a, %a : tensor<f32>\n}",
       "UNIMPLEMENTED: line 2, column 8: the operation 'stablehlo.ad' is not implemented in this "
       "form"},
      {"func.func @f(%a: tensor<f32>) {\n  %0 = stablehlo.sort %a : tensor<f32>\n}",
       "the operation 'stablehlo.sort' is not implemented in this form"},
      {"%0 = \"x.x\"() : () -> ()",
       "line 1, column 1: found '%0'; expected no more than 0 results"},
      {"%0:2 = \"x.x\"() : () -> (i32, i32, i32)",
       "line 1, column 8: found '\"x.x'; expected names for the 3 results of 'x.x'"},
      {"%0 = \"x.x\"() : () -> i32\n%0 = \"x.x\"() : () -> i32",
       "line 2, column 1: found '%0'; expected a name that no value here has yet"},
      {"%0 = \"x.x\"() : () -> i32\n\"x.x\"(%0#1) : (i32) -> ()",
       "line 2, column 7: found '%0'; expected one of the 1 results of '%0'"},
      {"%0 = \"x.x\"() : () -> i32\n\"x.x\"(%0) : () -> ()",
       "expected types for the 1 operands of 'x.x'"},
      {"\"x.x\"() [^bb1] : () -> ()", "branches between blocks are not implemented"},
      {"\"noname\"() : () -> ()", "expected the name of an operation with its dialect"},
      {"\"x.x\"() {a = 1, a = 2} : () -> ()", "column 17: found 'a'; expected each attribute once"},
      {"\"x.x\"() <{a = 1}> {a = 2} : () -> ()", "expected each attribute once"},
      {"\"x.x\"() {a = } : () -> ()", "column 14: found '}'; expected an attribute"},
      {"\"x.x\"() {a = \"b} : () -> ()", "expected a string that ends on its line"},
      {"\"x.x\"() {a = \"\\q\"} : () -> ()", "expected 'n', 't', a quote"},
      {"\"x.x\"() {a = #none} : () -> ()", "found '#none'; expected an alias that is defined"},
      {"\"x.x\"() {a = !none} : () -> ()", "found '!none'; expected an alias that is defined"},
      {"#a = [#b]\n#b = [#a]", "expected an alias that does not contain itself"},
      {"#a = 1 #b = 2", "expected an alias at the beginning of a line"},
      {"\"x.x\"() : () -> () loc(#a)\n#a = 1", "expected the alias of a location"},
      {"\"x.x\"() {a = tensor<2xf33>} : () -> ()", "found 'f33'; expected a type"},
      {"\"x.x\"() {a = tensor<-2xf32>} : () -> ()", "found '-2xf32'; expected a type"},
      {"\"x.x\"() {a = i65} : () -> ()", "an integer of 65 bits is not implemented"},
      {"\"x.x\"() {a = complex<i32>} : () -> ()", "a complex type is not of floats"},
      {"\"x.x\"() {a = tensor<2xtensor<f32>>} : () -> ()",
       "a tensor has elements of a type that no element has"},
      {"\"x.x\"() {a = tensor<99999999999x99999999999xf32>} : () -> ()",
       "a tensor has more elements than an int64 counts"},
      {"\"x.x\"() {a = tensor<2xf32, #stablehlo.bounds<3>>} : () -> ()",
       "dimension 0 cannot have the bound 3"},
      {"\"x.x\"() {a = tensor<?xf32, #stablehlo.bounds<3, 4>>} : () -> ()",
       "a tensor of 1 dimensions has 2 bounds"},
      {"\"x.x\"() {a = !quant.uniform<i8:f32, -1.0>} : () -> ()", "cannot have the scale -1"},
      {"\"x.x\"() {a = !quant.uniform<i8<-200:1>:f32, 1.0>} : () -> ()",
       "cannot have the range -200:1"},
      {"\"x.x\"() {a = !quant.uniform<i8:f32:0, 1.0>} : () -> ()", "found '1.0'; expected '{'"},
      {"\"x.x\"() {a = !quant.uniform<i8:f32:0, {1.0, {2.0}}>} : () -> ()", "expected a scale"},
      {"\"x.x\"() {a = #stablehlo.gather<offsets = [1]>} : () -> ()",
       "found 'offsets'; expected a field of #stablehlo.gather, or '>'"},
      {"\"x.x\"() {a = #stablehlo.dot_algorithm<>} : () -> ()",
       "found #stablehlo.dot_algorithm without lhs_precision_type; expected all its fields"},
      {"\"x.x\"() {a = #stablehlo.conv<[b, 1, f]x[0, i, o]->[b, 0, f]>} : () -> ()",
       "expected spatial dimensions from 0 on, each once"},
      {"\"x.x\"() {a = #sdy.x<[}>} : () -> ()", "found '}'; expected ']'"},
      {"module { module {} }", "modules inside modules are not implemented"},
      {"func.func @f(tensor<f32>) { return }",
       "expected names for the parameters of a function that has a body"},
      {"func.func secret @f()", "found 'secret'; expected public, private, nested"},
      {"func.func @f() {", "line 1, column 17: found the end of the text; expected '}'"},
      {"func.func @f(%a: i32, %a: i32) { return }", "expected a name that no value here has yet"},
      {"func.func @f(%a: i32) { func.func @g() { \"x.x\"(%a) : (i32) -> () } }",
       "found '%a'; expected a value that is defined before"},
      {"stablehlo", "line 1, column 1: found 'stablehlo'; expected an operation"},
      {"\x01", "found byte 0x01; expected an operation"},
      {"{-# x", "expected ':'"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(ErrorOf(text).find(expected), std::string::npos) << text << "\n" << ErrorOf(text);
  }
}

TEST(StablehloErrors, Depth) {
  constexpr int kDeep = 100000;
  const std::string attribute = "\"x.x\"() {a = ";
  EXPECT_NE(ErrorOf(attribute + Repeated("[", kDeep)).find("levels inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(attribute + Repeated("{a=", kDeep)).find("levels inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(attribute + Repeated("tuple<", kDeep)).find("levels inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(attribute + Repeated("(", kDeep)).find("levels inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(attribute + "!quant.uniform<i8:f32:0, " + Repeated("{", kDeep))
                .find("levels inside each other"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Repeated("\"x.x\"() ({", kDeep)).find("regions nested at most 100 deep"),
            std::string::npos);
  EXPECT_NE(ErrorOf(attribute + "#a.b" + Repeated("<", kDeep)).find("brackets that are closed"),
            std::string::npos);
  std::string chain;
  for (int i = 0; i < 1000; ++i) chain += Cat("#a", i, " = [#a", i + 1, "]\n");
  EXPECT_NE(ErrorOf(chain + "#a1000 = 1").find("levels inside each other"), std::string::npos);
  // Deep ones that are allowed.
  const std::string regions = Repeated("\"x.x\"() ({", 90) + Repeated("}) : () -> ()", 90);
  EXPECT_EQ(ErrorOf(regions), "none");
}

// Aliases that are used several times each stand for more parts than the text has letters.
TEST(StablehloErrors, SharedParts) {
  std::string attributes = "#a0 = [1]\n", types = "!t0 = tuple<i32>\n", locations;
  for (int i = 1; i < 90; ++i) {
    attributes += Cat("#a", i, " = [#a", i - 1, ", #a", i - 1, "]\n");
    types += Cat("!t", i, " = tuple<!t", i - 1, ", !t", i - 1, ">\n");
    locations += Cat("#l", i, " = loc(fused[#l", i - 1, ", #l", i - 1, "])\n");
  }
  EXPECT_NE(ErrorOf(attributes).find("an attribute has more than"), std::string::npos);
  EXPECT_NE(ErrorOf(types).find("a type has more than"), std::string::npos);
  EXPECT_EQ(ErrorOf("#l0 = loc(unknown)\n" + locations), "none");
}

// A few letters may name much; nothing of that is made.
TEST(StablehloErrors, Memory) {
  EXPECT_EQ(ErrorOf("\"x.x\"() {a = dense<1> : tensor<1000000x1000000xi64>} : () -> ()"), "none");
  EXPECT_EQ(ErrorOf("\"x.x\"() {a = dense<\"0x01\"> : tensor<1000000x1000000xi8>} : () -> ()"),
            "none");
  EXPECT_NE(ErrorOf("\"x.x\"() {a = dense<[1]> : tensor<1000000x1000000xi64>} : () -> ()"), "none");
  EXPECT_NE(
      ErrorOf("\"x.x\"() {a = dense<\"0xFF00\"> : tensor<9223372036854775807xi1>} : () -> ()"),
      "none");
  EXPECT_NE(ErrorOf("%0:9223372036854775807 = \"x.x\"() : () -> i32"), "none");
}

constexpr std::string_view kSample =
    R"(#map = affine_map<(d0) -> (d0)>
module @m attributes {mhlo.num_replicas = 1 : i32, x = #map, y = #loc1} {
  func.func public @main(%arg0: tensor<2x3xf32> {a.b = "c"} loc("p"), %t: !stablehlo.token) -> (tensor<f32> {r}, tensor<?x3xi32, #stablehlo.bounds<4, ?>>) {
    %c = stablehlo.constant dense<[[1, -2, 3], [4, 5, 0x7F]]> : tensor<2x3xi32> loc(#loc1)
    %cst, %x:2 = "x.y"(%c) <{p = array<i64: 1, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
    }, {}) {q = dense<"0x0000803F000000C0"> : tensor<2xf32>} : (tensor<2x3xi32>) -> (tensor<f32>, i32, tuple<i1>)
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %1:2 = stablehlo.while(%i = %cst, %j = %x#1) : tensor<f32>, tuple<i1> cond {
      %p = stablehlo.compare LT, %i, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      stablehlo.return %i, %j : tensor<f32>, tuple<i1>
    }
    %2 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1], precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    %3 = stablehlo.slice %arg0 [0:1, 0:3:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>
    %4 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32:1, {0.1:-30, 0.5, 1.0e-3:7}>>
    %5 = "stablehlo.gather"(%arg0, %c) {dimension_numbers = #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>, slice_sizes = dense<1> : tensor<2xi64>} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x2xf32>
    %6 = stablehlo.convolution(%arg0, %arg0) dim_numbers = [b, f]x[o, i]->[b, f], window = {stride = [], pad = [[0, 1]], reverse = [1]} {batch_group_count = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    %7 = stablehlo.custom_call @"a b"(%0) {d = dense_resource<blob> : tensor<2xi32>, e = [1.5 : f32, unit, @f::@g]} : (tensor<f32>) -> tensor<?x3xi32, #stablehlo.bounds<4, ?>>
    %8 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<2x3xf32>
    check.expect_almost_eq_const %0, dense<(1.0)> : tensor<f32>
    return %0, %7 : tensor<f32>, tensor<?x3xi32, #stablehlo.bounds<4, ?>> loc("f.py":1:2)
  } loc(callsite("f"(#loc1) at #loc2))
}
#loc1 = loc("a\22"("f.py":3:4))
#loc2 = loc(fused<{}>["x", #loc1])
{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000100000002000000"
    }
  }
#-}
)";

// The sample has one mistake, so that nothing behind it was missed: without it, it is read.
std::string Sample() {
  std::string text(kSample);
  text.replace(text.find("dense<(1.0)>"), 12, "dense<1.0>");
  return text;
}

void Use(const mlir::Module& module) {
  const mlir::PrintOptions options{.sources = true};
  const std::string printed = mlir::ToText(module, options);
  EXPECT_EQ(Generic(printed, options), printed);
}

// Whether the text was taken; where it was not, the error says where.
bool Try(std::string_view text) {
  auto module = ReadText(text);
  if (module.ok()) {
    Use(**module);
    return true;
  }
  EXPECT_TRUE(StartsWith(module.status().message(), "line ")) << module.status().ToString();
  return false;
}

std::string Damaged(std::string text, std::mt19937_64& random) {
  constexpr std::string_view kCharacters = "%{}()[]<>=,.:#!@^?-/\"\\ \nx09aNf\x80";
  for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t at = random() % text.size();
    switch (random() % 5) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ 1 << random() % 8);
        break;
      case 2:
        text[at] = kCharacters[random() % kCharacters.size()];
        break;
      case 3:
        text.erase(at, 1 + random() % 8);
        break;
      case 4:
        text.insert(at, text.substr(random() % text.size(), random() % 12));
        break;
    }
    if (text.empty()) text = " ";
  }
  return text;
}

TEST(StablehloRobustness, Whole) {
  EXPECT_NE(ErrorOf(kSample).find("found '('; expected a number that f32 holds"),
            std::string::npos);
  EXPECT_EQ(ErrorOf(Sample()), "none");
  EXPECT_TRUE(Try(Sample()));
}

TEST(StablehloRobustness, CutOff) {
  const std::string sample = Sample();
  int taken = 0;
  for (size_t size = 0; size < sample.size(); ++size) taken += Try(sample.substr(0, size));
  // Nothing but the first line, and the end behind what was used, can be missed.
  EXPECT_LT(taken, 30);
}

TEST(StablehloRobustness, BytesChanged) {
  std::mt19937_64 random(7);
  const std::string sample = Sample();
  int taken = 0;
  for (int run = 0; run < 6000; ++run) taken += Try(Damaged(sample, random));
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 6000);
}

// Numbers are where sizes overflow.
TEST(StablehloRobustness, NumbersChanged) {
  std::mt19937_64 random(11);
  const std::string sample = Sample();
  constexpr std::string_view kNumbers[] = {"-1",
                                           "0",
                                           "1",
                                           "2",
                                           "65",
                                           "4294967296",
                                           "2147483648",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "18446744073709551615",
                                           "99999999999999999999",
                                           "0x1",
                                           "1.0e999",
                                           "0.5"};
  for (int run = 0; run < 4000; ++run) {
    std::string text = sample;
    const size_t at = text.find_first_of("0123456789", random() % text.size());
    if (at == std::string::npos) continue;
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    text.replace(at, end - at, kNumbers[random() % std::size(kNumbers)]);
    Try(text);
  }
}

}  // namespace
}  // namespace kiln::stablehlo
