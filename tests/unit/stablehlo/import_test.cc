// Programs as they come from StableHLO: functions, types, shapes, errors, and operations that are
// more than one op of HLO.
#include "support/labels.h"
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

#define EXPECT_HAS(text, part)                                          \
  do {                                                                  \
    const std::string has_text = (text);                                \
    EXPECT_TRUE(Has(has_text, part)) << has_text << "\nlacks " << part; \
  } while (false)

// --- Functions

TEST(StablehloImport, ResultsAreAValueATupleOrNothing) {
  EXPECT_EQ(Value(R"(func.func @main() -> tensor<i32> {
%0 = stablehlo.constant dense<7> : tensor<i32>
return %0 : tensor<i32>
})"),
            "7");
  EXPECT_EQ(Value(R"(func.func @main() -> (tensor<i32>, tensor<f32>) {
%0 = stablehlo.constant dense<7> : tensor<i32>
%1 = stablehlo.constant dense<1.5> : tensor<f32>
return %0, %1 : tensor<i32>, tensor<f32>
})"),
            "(7, 1.5)");
  EXPECT_EQ(Value("func.func @main() {\nreturn\n}"), "()");
}

TEST(StablehloImport, CallsComeBeforeDefinitions) {
  EXPECT_EQ(Value(R"(func.func @main() -> tensor<i32> {
%0 = stablehlo.constant dense<3> : tensor<i32>
%1:2 = call @both(%0) : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
%2 = stablehlo.multiply %1#0, %1#1 : tensor<i32>
return %2 : tensor<i32>
}
func.func private @both(%x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
%y = call @twice(%x) : (tensor<i32>) -> tensor<i32>
return %x, %y : tensor<i32>, tensor<i32>
}
func.func private @twice(%x: tensor<i32>) -> tensor<i32> {
%y = stablehlo.add %x, %x : tensor<i32>
return %y : tensor<i32>
})"),
            "18");
}

TEST(StablehloImport, RecursionIsAnError) {
  EXPECT_HAS(Value(R"(func.func @main() {
call @a() : () -> ()
return
}
func.func private @a() {
call @b() : () -> ()
return
}
func.func private @b() {
call @a() : () -> ()
return
})"),
             "the function @a calls itself");
}

TEST(StablehloImport, TheEntryIsMainOrTheOnlyPublicOneOrNamed) {
  const std::string_view two =
      R"(func.func @one() -> tensor<i32> {
%0 = stablehlo.constant dense<1> : tensor<i32>
return %0 : tensor<i32>
}
func.func @two() -> tensor<i32> {
%0 = stablehlo.constant dense<2> : tensor<i32>
return %0 : tensor<i32>
}
)";
  EXPECT_HAS(Value(two), "several that are public");
  EXPECT_EQ(Value(two, {}, {.entry = "two"}), "2");
  EXPECT_HAS(Value(two, {}, {.entry = "three"}), "NOT_FOUND: the module has no function @three");
  EXPECT_EQ(Value(Cat(two,
                      R"(func.func @main() -> tensor<i32> {
%0 = stablehlo.constant dense<3> : tensor<i32>
return %0 : tensor<i32>
}
)")),
            "3");
}

TEST(StablehloImport, AliasesOfParameters) {
  EXPECT_HAS(Imported("func.func @main(%x: tensor<2xf32> {tf.aliasing_output = 1 : i32}, "
                      "%y: tensor<2xf32> {jax.buffer_donor = true}) "
                      "-> (tensor<2xf32>, tensor<2xf32>) {\n"
                      "return %y, %x : tensor<2xf32>, tensor<2xf32>\n}"),
             "input_output_alias={ {1}: (0, {}, may-alias) }");
}

TEST(StablehloImport, FrontendAttributes) {
  auto module = ImportText(
      R"(func.func @main(%x: tensor<f32> {mhlo.frontend_attributes = {of = "x"}}) -> tensor<f32> {
%y = stablehlo.negate %x {mhlo.frontend_attributes = {_XlaScope = "jit_scope_0", kiln.device = "GPU:0"}} : tensor<f32>
%z = stablehlo.negate %y {mhlo.frontend_attributes = {number = 1 : i32}} : tensor<f32>
return %z : tensor<f32>
})");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  const ir::Instruction* z = (*module)->entry()->root();
  EXPECT_FALSE(z->frontend_attributes());
  const ir::Instruction* y = z->operand(0);
  ASSERT_TRUE(y->frontend_attributes());
  ASSERT_EQ(y->frontend_attributes()->entries().size(), 2u);
  EXPECT_EQ(*y->FindFrontendAttribute("kiln.device"), "GPU:0");
  EXPECT_EQ(*y->FindFrontendAttribute("_XlaScope"), "jit_scope_0");
  ASSERT_TRUE(y->operand(0)->frontend_attributes());
  EXPECT_EQ(*y->operand(0)->FindFrontendAttribute("of"), "x");
}

TEST(StablehloImport, NamesOfSources) {
  auto module = ImportText(
      R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
%y = stablehlo.negate %x : tensor<f32> loc("jit(f)/neg")
return %y : tensor<f32>
})");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ((*module)->entry()->root()->op_name(), "jit(f)/neg");
}

TEST(StablehloImport, NamesOfArguments) {
  auto module = ImportText(R"(
#loc1 = loc("state.params['w']")
#loc2 = loc(#loc1)
func.func public @main(%arg0: tensor<f32> loc("p['layer00']['b1']"), %arg1: tensor<f32> loc(#loc2),
                       %arg2: tensor<f32> loc("a.py":3:4), %arg3: tensor<f32>,
                       %arg4: tensor<f32> {jax.arg_info = "batch.x", mhlo.sharding = "{}"},
                       %arg5: tensor<f32> loc(fused["x"("f.py":1:2), #loc1]),
                       %arg6: tensor<f32> loc(callsite("x" at #loc1))) -> tensor<f32> {
  %0 = call @inner(%arg0) : (tensor<f32>) -> tensor<f32> loc("jit(f)/inner")
  return %0 : tensor<f32>
}
func.func private @inner(%arg0: tensor<f32> loc("gain")) -> tensor<f32> {
  %0 = "stablehlo.negate"(%arg0) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
})");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  std::vector<std::string> names, whole;
  for (const ir::Instruction* p : (*module)->entry()->parameters()) {
    names.push_back(p->name());
    whole.push_back(p->op_name());
  }
  EXPECT_EQ(Join(names, " "), "p__layer00____b1__ state.params__w__ arg2 arg3 batch.x x x.1");
  EXPECT_EQ(Join(whole, " "), "p['layer00']['b1'] state.params['w']   batch.x x x");
  const std::string text = ir::ToHloText(**module);
  EXPECT_HAS(text,
             "%p__layer00____b1__ = f32[] parameter(0), "
             "metadata={op_name=\"p[\\'layer00\\'][\\'b1\\']\"}");
  EXPECT_HAS(text, "(gain: f32[]) -> f32[]");
  EXPECT_HAS(text, "metadata={op_name=\"jit(f)/inner\"}");
  auto again = ir::ParseHloText(text);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)->entry()->parameter(0)->op_name(), "p['layer00']['b1']");
}

// --- Types and errors

TEST(StablehloImport, ElementTypes) {
  const std::string text = Imported(
      "func.func @main(%a: tensor<i1>, %b: tensor<2xi4>, %c: tensor<ui16>, %d: tensor<bf16>, "
      "%e: tensor<3xf8E4M3FN>, %f: tensor<complex<f64>>, %g: tensor<?xi32, "
      "#stablehlo.bounds<5>>) {\nreturn\n}");
  EXPECT_HAS(text,
             "(arg0: pred[], arg1: s4[2], arg2: u16[], arg3: bf16[], arg4: f8e4m3fn[3], "
             "arg5: c128[], arg6: s32[<=5])");
}

TEST(StablehloImport, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(Value(R"(func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})"),
            "INVALID_ARGUMENT: line 2, column 8: 'stablehlo.add': add: operands have shapes f32[2] "
            "and f32[3]; they must be equal");
  EXPECT_EQ(Value(R"(func.func @main(%x: tensor<2xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.negate"(%x) : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
})"),
            "INVALID_ARGUMENT: line 2, column 8: 'stablehlo.negate': result 0 is declared as "
            "tensor<3xf32>; found f32[2]");
  EXPECT_EQ(Value(R"(func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.no_such"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})"),
            "UNIMPLEMENTED: line 2, column 8: 'stablehlo.no_such': the operation is not "
            "implemented");
  // The place is that of the operation inside, and told once.
  EXPECT_EQ(Value(R"(func.func @main(%x: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.no_such"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})"),
            "UNIMPLEMENTED: line 3, column 10: 'stablehlo.no_such': the operation is not "
            "implemented");
}

// With the place in the program that the input was made from, where the input tells it.
TEST(StablehloImport, ErrorsNameTheSource) {
  auto failure = [](std::string_view location) {
    return Value(Cat("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n",
                     "%0 = \"stablehlo.no_such\"(%x) : (tensor<2xf32>) -> tensor<2xf32> ", location,
                     "\nreturn %0 : tensor<2xf32>\n}"));
  };
  constexpr std::string_view kBegin = "UNIMPLEMENTED: line 2, column 6: 'stablehlo.no_such'";
  constexpr std::string_view kEnd = ": the operation is not implemented";
  EXPECT_EQ(failure(R"(loc("jit(f)/x"("a.py":3:7)))"), Cat(kBegin, " (jit(f)/x at a.py:3)", kEnd));
  EXPECT_EQ(failure(R"(loc("jit(f)/x"))"), Cat(kBegin, " (jit(f)/x)", kEnd));
  EXPECT_EQ(failure(R"(loc("a.py":3:7))"), Cat(kBegin, " (a.py:3)", kEnd));
  EXPECT_EQ(failure("loc(unknown)"), Cat(kBegin, kEnd));
}

// Calls can fail when the program runs: their names have it, too.
TEST(StablehloImport, CallsAreNamedWithTheirSource) {
  auto module = ImportText(R"(func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.custom_call @f(%x) : (tensor<2xf32>) -> tensor<2xf32> loc("jit(f)/y"("a.py":4:1))
  %1 = stablehlo.negate %0 : tensor<2xf32> loc("jit(f)/neg"("a.py":5:1))
  return %1 : tensor<2xf32>
})");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  std::string names;
  for (const auto* i : (*module)->entry()->instructions()) names += Cat(i->op_name(), ";");
  EXPECT_NE(names.find("jit(f)/y at a.py:4;"), std::string::npos) << names;
  EXPECT_NE(names.find("jit(f)/neg;"), std::string::npos) << names;
}

TEST(StablehloImport, WrongNumbersOfOperandsResultsAndRegions) {
  auto error = [](std::string_view operation) {
    return Value(Cat("func.func @main(%x: tensor<2xf32>) {\n", operation, "\nreturn\n}"));
  };
  EXPECT_HAS(error("%0 = \"stablehlo.pad\"(%x) : (tensor<2xf32>) -> tensor<2xf32>"),
             "found 1 operands; expected 2");
  EXPECT_HAS(error("%0:2 = \"stablehlo.negate\"(%x) : (tensor<2xf32>) -> (tensor<2xf32>, "
                   "tensor<2xf32>)"),
             "found 2 results; expected 1");
  EXPECT_HAS(error("%0 = \"stablehlo.map\"(%x) : (tensor<2xf32>) -> tensor<2xf32>"),
             "found 0 regions; expected 1");
  EXPECT_HAS(error("%0 = \"stablehlo.reverse\"(%x) : (tensor<2xf32>) -> tensor<2xf32>"),
             "the attribute dimensions is missing");
  EXPECT_HAS(error("%0 = \"stablehlo.reverse\"(%x) {dimensions = 1.5 : f32} : (tensor<2xf32>) -> "
                   "tensor<2xf32>"),
             "the attribute dimensions must be a list of at most 64 integers");
}

// --- Unknown sizes

constexpr std::string_view kDynamic =
    R"(func.func @main(%x: tensor<?x2xf32>) -> tensor<?xf32> {
%0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
%two = stablehlo.constant dense<2> : tensor<i32>
%1 = stablehlo.multiply %0, %two : tensor<i32>
%2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
%3 = call @flat(%x, %2) : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
return %3 : tensor<?xf32>
}
func.func private @flat(%x: tensor<?x2xf32>, %s: tensor<1xi32>) -> tensor<?xf32> {
%0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
return %0 : tensor<?xf32>
}
)";

TEST(StablehloImport, SizesComeFromTheArguments) {
  EXPECT_HAS(Value(kDynamic),
             "UNIMPLEMENTED: line 1, column 1: 'func.func': argument 0: the size of "
             "dimension 0 of tensor<?x2xf32> is not known");
  const Shape shape(ElementType::kF32, {3, 2});
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Value(kDynamic, {Literal::Array<float>(shape, values)}, {.arguments = {shape}}),
            "{1, 2, 3, 4, 5, 6}");
  EXPECT_HAS(Value(kDynamic, {}, {.arguments = {Shape(ElementType::kF32, {3, 3})}}),
             "argument 0 is of tensor<?x2xf32>; the shape f32[3,3] was given for it");
}

TEST(StablehloImport, WhatSaysShapesMustBeKnown) {
  EXPECT_EQ(Value(R"(func.func @main(%x: tensor<6xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
%0 = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
return %0 : tensor<?x?xf32>
})"),
            "UNIMPLEMENTED: line 2, column 6: 'stablehlo.dynamic_reshape': operand 1, the result's "
            "shape, is not known when the program is imported, which is not implemented");
}

TEST(StablehloImport, DynamicOperations) {
  const std::string x = Constant("x", "[1, 2, 3, 4, 5, 6]", "tensor<6xi32>");
  EXPECT_EQ(
      BodyValue(x + Constant("s", "[3, 2]", "tensor<2xi64>") +
                    "%0 = stablehlo.dynamic_reshape %x, %s : (tensor<6xi32>, tensor<2xi64>) -> "
                    "tensor<?x?xi32>",
                "%0", "tensor<?x?xi32>"),
      "{ { 1, 2 }, { 3, 4 }, { 5, 6 } }");
  EXPECT_EQ(BodyValue(Constant("s", "[2, 3]", "tensor<2xi32>") +
                          "%0 = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> "
                          "tensor<?x?xi64>",
                      "%0", "tensor<?x?xi64>"),
            "{ { 0, 1, 2 }, { 0, 1, 2 } }");
  EXPECT_EQ(BodyValue(x + Constant("s", "[2, 6]", "tensor<2xi32>") +
                          "%0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : "
                          "(tensor<6xi32>, tensor<2xi32>) -> tensor<?x?xi32>",
                      "%0", "tensor<?x?xi32>"),
            "{ { 1, 2, 3, 4, 5, 6 }, { 1, 2, 3, 4, 5, 6 } }");
  EXPECT_EQ(
      BodyValue(x + Constant("v", "0", "tensor<i32>") + Constant("a", "1", "tensor<1xi32>") +
                    Constant("b", "-1", "tensor<1xi32>") + Constant("c", "0", "tensor<1xi32>") +
                    "%0 = stablehlo.dynamic_pad %x, %v, %a, %b, %c : (tensor<6xi32>, "
                    "tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> "
                    "tensor<?xi32>",
                "%0", "tensor<?xi32>"),
      "{0, 1, 2, 3, 4, 5}");
  EXPECT_EQ(
      BodyValue(x + Constant("a", "1", "tensor<1xi32>") + Constant("b", "6", "tensor<1xi32>") +
                    Constant("c", "2", "tensor<1xi32>") +
                    "%0 = stablehlo.real_dynamic_slice %x, %a, %b, %c : (tensor<6xi32>, "
                    "tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>",
                "%0", "tensor<?xi32>"),
      "{2, 4, 6}");
  EXPECT_EQ(
      BodyValue(x + Constant("i", "[[4], [0]]", "tensor<2x1xi32>") +
                    Constant("s", "2", "tensor<1xi32>") +
                    "%0 = \"stablehlo.dynamic_gather\"(%x, %i, %s) {dimension_numbers = "
                    "#stablehlo.gather<offset_dims = [1], start_index_map = [0], "
                    "index_vector_dim = 1>} : (tensor<6xi32>, tensor<2x1xi32>, tensor<1xi32>) "
                    "-> tensor<2x?xi32>",
                "%0", "tensor<2x?xi32>"),
      "{ { 5, 6 }, { 1, 2 } }");
}

TEST(StablehloImport, ASliceOfKnownSizeMayBeginAnywhere) {
  const std::string text =
      "func.func @main(%x: tensor<6xi32>, %a: tensor<1xi32>, %b: tensor<1xi32>) -> tensor<2xi32> "
      "{\n"
      "%c = stablehlo.constant dense<1> : tensor<1xi32>\n"
      "%0 = stablehlo.real_dynamic_slice %x, %a, %b, %c : (tensor<6xi32>, tensor<1xi32>, "
      "tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>\n"
      "return %0 : tensor<2xi32>\n}";
  const std::vector<int32_t> x = {1, 2, 3, 4, 5, 6}, a = {3}, b = {5};
  EXPECT_EQ(Value(text, {Literal::Array<int32_t>(Shape(ElementType::kS32, {6}), x),
                         Literal::Array<int32_t>(Shape(ElementType::kS32, {1}), a),
                         Literal::Array<int32_t>(Shape(ElementType::kS32, {1}), b)}),
            "{4, 5}");
}

TEST(StablehloImport, BoundedSizesAreOpsOfHlo) {
  const std::string text = Imported(
      "func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<i32> {\n"
      "%0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> "
      "tensor<?xf32, #stablehlo.bounds<4>>\n"
      "%1 = stablehlo.negate %0 : tensor<?xf32, #stablehlo.bounds<4>>\n"
      "%2 = stablehlo.get_dimension_size %1, dim = 0 : (tensor<?xf32, #stablehlo.bounds<4>>) -> "
      "tensor<i32>\n"
      "return %2 : tensor<i32>\n}");
  EXPECT_HAS(text, "f32[<=4]{0} set-dimension-size(%arg0, %arg1), dimensions={0}");
  EXPECT_HAS(text, "f32[<=4]{0} negate(");
  EXPECT_HAS(text, "s32[] get-dimension-size(");
}

// A function of x = 4 numbers, of which there are n, to a tensor<TYPE>.
std::string OfBounded(int32_t n, const std::string& type, const std::string& lines) {
  return Value(
      "func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<" + type +
          "> {\n"
          "%b = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<4xf32>, tensor<i32>) -> "
          "tensor<?xf32, #stablehlo.bounds<4>>\n" +
          lines + "return %r : tensor<" + type + ">\n}",
      {Literal::Array<float>(Shape(ElementType::kF32, {4}), std::vector<float>{1, 2, 3, 4}),
       Literal::Scalar<int32_t>(ElementType::kS32, n)});
}

TEST(StablehloImport, SizesOfValuesMayBeThoseOfOthers) {
  const std::string sizes =
      R"(%d = stablehlo.get_dimension_size %b, dim = 0 : (tensor<?xf32, #stablehlo.bounds<4>>) -> tensor<i32>
%s = stablehlo.reshape %d : (tensor<i32>) -> tensor<1xi32>
)";
  EXPECT_EQ(
      OfBounded(3, "?xf32, #stablehlo.bounds<4>",
                sizes + "%one = stablehlo.constant dense<1.0> : tensor<f32>\n"
                        "%o = stablehlo.dynamic_broadcast_in_dim %one, %s, dims = [] : "
                        "(tensor<f32>, tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<4>>\n"
                        "%r = stablehlo.add %b, %o : tensor<?xf32, #stablehlo.bounds<4>>\n"),
      "{2, 3, 4}");
  EXPECT_EQ(
      OfBounded(
          2, "?xf32, #stablehlo.bounds<4>",
          sizes +
              R"(%i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32, #stablehlo.bounds<4>>
%r = stablehlo.multiply %b, %i : tensor<?xf32, #stablehlo.bounds<4>>
)"),
      "{0, 2}");
}

TEST(StablehloImport, AKnownSizeMakesADimensionAConstant) {
  EXPECT_EQ(OfBounded(3, "4xf32",
                      "%c = stablehlo.constant dense<4> : tensor<i32>\n"
                      "%r = stablehlo.set_dimension_size %b, %c, dim = 0 : (tensor<?xf32, "
                      "#stablehlo.bounds<4>>, tensor<i32>) -> tensor<4xf32>\n"),
            "{1, 2, 3, 0}");
  EXPECT_EQ(OfBounded(3, "2xf32",
                      R"(%c = stablehlo.constant dense<2> : tensor<i32>
%r = stablehlo.set_dimension_size %x, %c, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
)"),
            "{1, 2}");
  // What is said to be bounded stays it.
  EXPECT_EQ(OfBounded(4, "?xf32, #stablehlo.bounds<4>",
                      "%c = stablehlo.constant dense<4> : tensor<i32>\n"
                      "%w = stablehlo.set_dimension_size %x, %c, dim = 0 : (tensor<4xf32>, "
                      "tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>\n"
                      "%r = stablehlo.add %b, %w : tensor<?xf32, #stablehlo.bounds<4>>\n"),
            "{2, 4, 6, 8}");
}

// --- Regions

TEST(StablehloImport, BranchesAreGivenWhatTheyUse) {
  const std::string_view text =
      R"(func.func @main(%i: tensor<i32>, %x: tensor<i32>, %y: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
%one = stablehlo.constant dense<1> : tensor<i32>
%0:2 = "stablehlo.case"(%i) ({
  %1 = stablehlo.add %x, %one : tensor<i32>
  stablehlo.return %1, %x : tensor<i32>, tensor<i32>
}, {
  stablehlo.return %y, %y : tensor<i32>, tensor<i32>
}, {
  stablehlo.return %one, %one : tensor<i32>, tensor<i32>
}) : (tensor<i32>) -> (tensor<i32>, tensor<i32>)
return %0#0, %0#1 : tensor<i32>, tensor<i32>
})";
  auto run = [&](int32_t i) {
    std::vector<Literal> arguments;
    for (int32_t v : {i, 10, 20}) {
      arguments.push_back(Literal::Scalar<int32_t>(ElementType::kS32, v));
    }
    return Value(text, arguments);
  };
  EXPECT_EQ(run(0), "(11, 10)");
  EXPECT_EQ(run(1), "(20, 20)");
  EXPECT_EQ(run(2), "(1, 1)");
  EXPECT_EQ(run(9), "(1, 1)");
}

TEST(StablehloImport, LoopsCarryWhatTheyUse) {
  EXPECT_EQ(Value(R"(func.func @main(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {
%zero = stablehlo.constant dense<0> : tensor<i32>
%0 = stablehlo.while(%i = %zero) : tensor<i32> cond {
  %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %j = stablehlo.add %i, %step : tensor<i32>
  stablehlo.return %j : tensor<i32>
}
return %0 : tensor<i32>
})",
                  {Literal::Scalar<int32_t>(ElementType::kS32, 10),
                   Literal::Scalar<int32_t>(ElementType::kS32, 4)}),
            "12");
}

TEST(StablehloImport, ReducersHaveConstantsOfOutside) {
  const std::string body = Constant("x", "[1.0, 2.0, 3.0]", "tensor<3xf32>") +
                           Constant("z", "0.0", "tensor<f32>") +
                           Constant("half", "0.5", "tensor<f32>") +
                           R"(%two = stablehlo.add %half, %half : tensor<f32>
%0 = "stablehlo.reduce"(%x, %z) ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %1 = stablehlo.add %a, %b : tensor<f32>
  %2 = stablehlo.multiply %1, %two : tensor<f32>
  stablehlo.return %2 : tensor<f32>
}) {dimensions = array<i64: 0>} : (tensor<3xf32>, tensor<f32>) -> tensor<f32>)";
  EXPECT_EQ(BodyValue(body, "%0", "tensor<f32>"), "6");
  EXPECT_HAS(Value(R"(func.func @main(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<3xf32> {
%0 = "stablehlo.map"(%x) ({
^bb0(%a: tensor<f32>):
  %1 = stablehlo.multiply %a, %s : tensor<f32>
  stablehlo.return %1 : tensor<f32>
}) {dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3xf32>
return %0 : tensor<3xf32>
})"),
             "UNIMPLEMENTED: line 4, column 8: 'stablehlo.multiply': the region uses the value of "
             "an argument of a function or region, which is not known");
}

TEST(StablehloImport, ReductionsMayBeOfAWiderType) {
  const std::string body = Constant("x", "[100, 100, 100]", "tensor<3xi8>") +
                           Constant("z", "0", "tensor<i8>") +
                           R"(%0 = "stablehlo.reduce"(%x, %z) ({
^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %1 = stablehlo.add %a, %b : tensor<i32>
  stablehlo.return %1 : tensor<i32>
}) {dimensions = array<i64: 0>} : (tensor<3xi8>, tensor<i8>) -> tensor<i32>)";
  EXPECT_EQ(BodyValue(body, "%0", "tensor<i32>"), "300");
}

TEST(StablehloImport, FuturesAreThereAtOnce) {
  const std::string body = Constant("x", "[1, 2]", "tensor<2xi32>") +
                           R"(%0 = "stablehlo.async_start"(%x) ({
^bb0(%a: tensor<2xi32>):
  %1 = stablehlo.negate %a : tensor<2xi32>
  stablehlo.return %1 : tensor<2xi32>
}) : (tensor<2xi32>) -> !stablehlo.future<tensor<2xi32>>
%2 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>)";
  EXPECT_EQ(BodyValue(body, "%2", "tensor<2xi32>"), "{-1, -2}");
}

TEST(StablehloImport, ScansAreLoops) {
  const std::string body = Constant("x", "[[1, 2], [3, 4], [5, 6]]", "tensor<3x2xi32>") +
                           Constant("i", "[0, 10]", "tensor<2xi32>") +
                           R"(%0:2 = chlo.scan(%x) inits (%i) dimension = 0 {
^bb0(%a: tensor<2xi32>, %c: tensor<2xi32>):
  %s = stablehlo.add %a, %c : tensor<2xi32>
  stablehlo.return %s, %s : tensor<2xi32>, tensor<2xi32>
} : (tensor<3x2xi32>, tensor<2xi32>) -> (tensor<3x2xi32>, tensor<2xi32>))";
  EXPECT_EQ(BodyValue(body, "%0#0, %0#1", "tensor<3x2xi32>, tensor<2xi32>"),
            "({ { 1, 12 }, { 4, 16 }, { 9, 22 } }, {9, 22})");
}

TEST(StablehloImport, Composites) {
  EXPECT_EQ(
      Value("func.func @main() -> tensor<i32> {\n"
            "%0 = stablehlo.constant dense<3> : tensor<i32>\n"
            "%1 = stablehlo.composite \"my.op\" %0 {decomposition = @impl, version = 1 : i32} : "
            "(tensor<i32>) -> tensor<i32>\n"
            "return %1 : tensor<i32>\n}\n"
            "func.func private @impl(%x: tensor<i32>) -> tensor<i32> {\n"
            "%y = stablehlo.multiply %x, %x : tensor<i32>\n"
            "return %y : tensor<i32>\n}"),
      "9");
}

// --- Arrays

TEST(StablehloImport, BroadcastsRepeatDimensionsOfSizeOne) {
  const std::string body =
      Constant("x", "[[1], [2]]", "tensor<2x1xi32>") +
      "%0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<2x1xi32>) -> tensor<2x3xi32>";
  EXPECT_EQ(BodyValue(body, "%0", "tensor<2x3xi32>"), "{ { 1, 1, 1 }, { 2, 2, 2 } }");
}

TEST(StablehloImport, ImplicitBroadcasts) {
  const std::string x = Constant("x", "[[1, 2], [3, 4]]", "tensor<2x2xi32>");
  const std::string y = Constant("y", "[10, 20]", "tensor<2xi32>");
  const std::string types = " : (tensor<2x2xi32>, tensor<2xi32>) -> tensor<2x2xi32>";
  EXPECT_EQ(BodyValue(x + y + "%0 = chlo.broadcast_add %x, %y" + types, "%0", "tensor<2x2xi32>"),
            "{ { 11, 22 }, { 13, 24 } }");
  EXPECT_EQ(
      BodyValue(
          x + y + "%0 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 0>}" + types,
          "%0", "tensor<2x2xi32>"),
      "{ { 11, 12 }, { 23, 24 } }");
  EXPECT_EQ(BodyValue(x + y +
                          "%0 = chlo.broadcast_compare %x, %y {comparison_direction = "
                          "#chlo<comparison_direction LT>} : (tensor<2x2xi32>, tensor<2xi32>) -> "
                          "tensor<2x2xi1>",
                      "%0", "tensor<2x2xi1>"),
            "{ { 1, 1 }, { 1, 1 } }");
}

TEST(StablehloImport, Einsum) {
  const std::string x = Constant("x", "[[1.0, 2.0], [3.0, 4.0]]", "tensor<2x2xf32>");
  const std::string y = Constant("y", "[[1.0, 10.0], [100.0, 1000.0]]", "tensor<2x2xf32>");
  auto binary = [&](std::string_view config, std::string_view type) {
    return BodyValue(Cat(x, y, "%0 = stablehlo.einsum %x, %y, config = \"", config,
                         "\" : (tensor<2x2xf32>, tensor<2x2xf32>) -> ", type),
                     "%0", type);
  };
  EXPECT_EQ(binary("ab,bc->ac", "tensor<2x2xf32>"), "{ { 201, 2010 }, { 403, 4030 } }");
  EXPECT_EQ(binary("ab,bc->ca", "tensor<2x2xf32>"), "{ { 201, 403 }, { 2010, 4030 } }");
  EXPECT_EQ(binary("ab,ab->a", "tensor<2xf32>"), "{21, 4300}");
  EXPECT_EQ(binary("ab,cc->a", "tensor<2xf32>"), "{3003, 7007}");
  EXPECT_EQ(binary("...b,b...->...", "tensor<2x2xf32>").substr(0, 5), "INVAL");
  auto unary = [&](std::string_view config, std::string_view type) {
    return BodyValue(Cat(x, "%0 = stablehlo.unary_einsum %x, config = \"", config,
                         "\" : (tensor<2x2xf32>) -> ", type),
                     "%0", type);
  };
  EXPECT_EQ(unary("ab->a", "tensor<2xf32>"), "{3, 7}");
  EXPECT_EQ(unary("ab->ba", "tensor<2x2xf32>"), "{ { 1, 3 }, { 2, 4 } }");
  EXPECT_EQ(unary("aa->", "tensor<f32>"), "5");
  EXPECT_EQ(unary("aa->a", "tensor<2xf32>"), "{1, 4}");
}

TEST(StablehloImport, ProductsOfOtherTypes) {
  EXPECT_EQ(BodyValue(Constant("x", "[100, 100]", "tensor<2xi8>") +
                          "%0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : "
                          "(tensor<2xi8>, tensor<2xi8>) -> tensor<i32>",
                      "%0", "tensor<i32>"),
            "20000");
  EXPECT_EQ(BodyValue(Constant("x", "[1.5, 2.0]", "tensor<2xbf16>") +
                          Constant("y", "[2.0, 0.25]", "tensor<2xf32>") +
                          "%0 = stablehlo.dot %x, %y : (tensor<2xbf16>, tensor<2xf32>) -> "
                          "tensor<f32>",
                      "%0", "tensor<f32>"),
            "3.5");
}

TEST(StablehloImport, RaggedDots) {
  const std::string head = Constant("x", "[[1.0], [2.0], [3.0]]", "tensor<3x1xf32>") +
                           Constant("g", "[1, 2]", "tensor<2xi32>");
  const std::string rows =
      head + Constant("y", "[[[10.0]], [[100.0]]]", "tensor<2x1x1xf32>") +
      "%0 = \"chlo.ragged_dot\"(%x, %y, %g) {ragged_dot_dimension_numbers = "
      "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
      "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = "
      "[0], rhs_group_dimensions = [0]>} : (tensor<3x1xf32>, tensor<2x1x1xf32>, tensor<2xi32>) -> "
      "tensor<3x1xf32>";
  EXPECT_EQ(BodyValue(rows, "%0", "tensor<3x1xf32>"), "{ {10}, {200}, {300} }");
  const std::string sums =
      head + Constant("y", "[[10.0], [100.0], [1000.0]]", "tensor<3x1xf32>") +
      "%0 = \"chlo.ragged_dot\"(%x, %y, %g) {ragged_dot_dimension_numbers = "
      "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
      "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = "
      "[0], rhs_group_dimensions = []>} : (tensor<3x1xf32>, tensor<3x1xf32>, tensor<2xi32>) -> "
      "tensor<2x1x1xf32>";
  EXPECT_EQ(BodyValue(sums, "%0", "tensor<2x1x1xf32>"), "{ { {10} }, { {3200} } }");
}

TEST(StablehloImport, TorchIndexSelect) {
  const std::string body =
      Constant("x", "[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]", "tensor<2x2x2xi32>") +
      Constant("i", "[[1, 0], [0, 0]]", "tensor<2x2xi32>") +
      "%0 = \"stablehlo.torch_index_select\"(%x, %i) {dim = 1 : i64, batch_dims = 1 : i64} : "
      "(tensor<2x2x2xi32>, tensor<2x2xi32>) -> tensor<2x2x2xi32>\n"
      "%1 = \"stablehlo.torch_index_select\"(%x, %i) {dim = 2 : i64, batch_dims = 0 : i64} : "
      "(tensor<2x2x2xi32>, tensor<2x2xi32>) -> tensor<2x2x2x2xi32>";
  EXPECT_EQ(BodyValue(body, "%0", "tensor<2x2x2xi32>"),
            "{ { { 3, 4 }, { 1, 2 } }, { { 5, 6 }, { 5, 6 } } }");
  EXPECT_EQ(BodyValue(body, "%1", "tensor<2x2x2x2xi32>"),
            "{ { { { 2, 1 }, { 1, 1 } }, { { 4, 3 }, { 3, 3 } } }, { { { 6, 5 }, { 5, 5 } }, { { "
            "8, 7 }, { 7, 7 } } } }");
}

TEST(StablehloImport, LaterOperationsByCustomCalls) {
  const std::string body =
      Constant("x", "[3.0, 1.0, 2.0]", "tensor<3xf32>") +
      "%0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = "
      "true}, mhlo.version = 1 : i64} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi32>)\n"
      "%1:2 = chlo.top_k(%x, k = 1) : tensor<3xf32> -> (tensor<1xf32>, tensor<1xi32>)";
  EXPECT_EQ(BodyValue(body, "%0#0, %0#1, %1#1", "tensor<2xf32>, tensor<2xi32>, tensor<1xi32>"),
            "({3, 2}, {0, 2}, {0})");
}

// --- Checks

TEST(StablehloImport, ChecksFailTheRun) {
  const std::string head = Constant("x", "[1.0, 2.0]", "tensor<2xf32>");
  auto check = [&](std::string_view line) {
    return BodyValue(Cat(head, line), "%x", "tensor<2xf32>");
  };
  EXPECT_EQ(check("check.expect_eq_const %x, dense<[1.0, 2.0]> : tensor<2xf32>"), "{1, 2}");
  EXPECT_HAS(check("check.expect_eq_const %x, dense<[1.0, 2.5]> : tensor<2xf32>"),
             "FAILED_PRECONDITION: check.expect_eq 'custom-call': element {1} is 2 and should be "
             "2.5: they must be equal");
  EXPECT_EQ(check("check.expect_almost_eq_const %x, dense<[1.0, 2.00005]> : tensor<2xf32>"),
            "{1, 2}");
  EXPECT_HAS(check("check.expect_almost_eq_const %x, dense<[1.0, 2.0005]> : tensor<2xf32>"),
             "they may be 1e-04 apart");
  EXPECT_HAS(check("stablehlo.custom_call @check.expect_close(%x, %x) {has_side_effect = true} : "
                   "(tensor<2xf32>, tensor<2xf32>) -> ()"),
             "{1, 2}");
  const std::string y = "%y = stablehlo.constant dense<[1.0, 2.000001]> : tensor<2xf32>\n";
  EXPECT_HAS(check(y + "check.expect_close %x, %y, max_ulp_difference = 3 : tensor<2xf32>, "
                       "tensor<2xf32>"),
             "they are 4 ULP apart; expected at most 3");
  EXPECT_EQ(check(y + "check.expect_close %x, %y, max_ulp_difference = 4 : tensor<2xf32>, "
                      "tensor<2xf32>"),
            "{1, 2}");
}

TEST(StablehloImport, ProbesAreKeptPerTurn) {
  EXPECT_EQ(
      Value(R"(func.func @main() {
%zero = stablehlo.constant dense<0> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%two = stablehlo.constant dense<2> : tensor<i32>
%0 = stablehlo.while(%i = %zero) : tensor<i32> cond {
  %c = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %j = stablehlo.add %i, %one : tensor<i32>
  %k = interpreter.probe %j, probe_id = "a/b c" : tensor<i32>
  stablehlo.return %k : tensor<i32>
}
check.expect_serialized_eq %two, probe_id = "a/b c", iter = 1 : tensor<i32>
check.expect_serialized_eq %two, probe_id = "a/b c", iter = 0 : tensor<i32>
return
})"),
      "FAILED_PRECONDITION: check.expect_serialized_eq 'custom-call.2': the probe 'a/b c' had "
      "another value: 1, not 2");
}

KILN_LABEL(text, "StablehloImport");

}  // namespace
}  // namespace kiln::stablehlo
