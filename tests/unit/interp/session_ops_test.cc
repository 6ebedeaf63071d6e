// Ops that run in sessions only, in the evaluator.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Eval;
using testing::ValueOf;

std::string Unique(std::string_view shape, std::string_view value) {
  return ValueOf(Cat("ENTRY e { x = ", shape, " constant(", value,
                     ")\n ROOT u = custom-call(x), custom_call_target=\"kiln.unique\" }"));
}
std::string Nonzero(std::string_view shape, std::string_view value) {
  return ValueOf(Cat("ENTRY e { x = ", shape, " constant(", value,
                     ")\n ROOT u = custom-call(x), custom_call_target=\"kiln.nonzero\" }"));
}

TEST(InterpSessionOps, UniqueInTheOrderOfFirstOccurrences) {
  EXPECT_EQ(Unique("s32[6]", "{7, 3, 7, -1, 3, 7}"), "({7, 3, -1}, {0, 1, 0, 2, 1, 0}, {3, 2, 1})");
  EXPECT_EQ(Unique("f32[0]", "{}"), "({}, {}, {})");
  EXPECT_EQ(Unique("u64[1]", "{18446744073709551615}"), "({18446744073709551615}, {0}, {1})");
  EXPECT_EQ(Unique("pred[3]", "{true, false, true}"), "({1, 0}, {0, 1, 0}, {2, 1})");
}

TEST(InterpSessionOps, UniqueOfZerosAndNaNs) {
  EXPECT_EQ(Unique("f32[5]", "{-0, 0, 1, -0, inf}"), "({-0, 1, inf}, {0, 0, 1, 0, 2}, {3, 1, 1})");
  EXPECT_EQ(Unique("f64[4]", "{0, nan, -0, nan}"), "({0, nan, nan}, {0, 1, 0, 2}, {2, 1, 1})");
  EXPECT_EQ(Unique("c64[5]", "{(0, 1), (-0, 1), (1, 0), (nan, 0), (nan, 0)}"),
            "({(0, 1), (1, 0), (nan, 0), (nan, 0)}, {0, 0, 1, 2, 3}, {2, 1, 1, 1})");
  EXPECT_EQ(Unique("c128[2]", "{(0, -0), (-0, 0)}"), "({(0, -0)}, {0, 0}, {2})");
}

// All element types have the number 1, and most a 0 and two NaNs.
TEST(InterpSessionOps, EveryType) {
#define KILN_ELEMENT_TYPE(Name, text, number, bits, category) ElementType::k##Name,
  constexpr ElementType kTypes[] = {
#include "tensor/element_types.def"
  };
#undef KILN_ELEMENT_TYPE
  for (ElementType type : kTypes) {
    const Literal one = Literal::ScalarOf(type, 1);
    Literal x(Shape(type, {3}));
    const int64_t width = ByteWidth(type);
    for (int64_t k : {0, 2}) std::copy_n(one.data(), width, x.data() + k * width);
    auto unique =
        ir::ParseOrDie(Cat("ENTRY e { x = ", x.shape(), " parameter(0)\n",
                           "ROOT u = custom-call(x), ", "custom_call_target=\"kiln.unique\" }"));
    Result<Literal> values = interp::Evaluate(*unique, std::array{x});
    ASSERT_TRUE(values.ok()) << values.status().ToString();
    EXPECT_EQ(values->elements()[0].shape(), Shape(type, {2})) << TypeName(type);
    EXPECT_EQ(values->elements()[1].ToString(), "{0, 1, 0}") << TypeName(type);
    EXPECT_EQ(values->elements()[2].ToString(), "{2, 1}") << TypeName(type);
    auto nonzero =
        ir::ParseOrDie(Cat("ENTRY e { x = ", x.shape(), " parameter(0)\n",
                           "ROOT u = custom-call(x), ", "custom_call_target=\"kiln.nonzero\" }"));
    Result<Literal> rows = interp::Evaluate(*nonzero, std::array{x});
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    // f8e8m0fnu has no zero.
    EXPECT_EQ(rows->ToString(),
              type == ElementType::kF8E8M0FNU ? "{ {0}, {1}, {2} }" : "{ {0}, {2} }")
        << TypeName(type);
  }
}

// Every value of a small float is one, but for zeros, which are equal, and NaNs, which are not.
TEST(InterpSessionOps, UniqueOfAllSmallFloats) {
  for (ElementType type : {ElementType::kF8E5M2, ElementType::kF8E4M3FN, ElementType::kF16,
                           ElementType::kBF16, ElementType::kF4E2M1FN}) {
    const Literal all = testing::AllValues(type);
    auto unique =
        ir::ParseOrDie(Cat("ENTRY e { x = ", all.shape(), " parameter(0)\n",
                           "ROOT u = custom-call(x), ", "custom_call_target=\"kiln.unique\" }"));
    Result<Literal> values = interp::Evaluate(*unique, std::array{all});
    ASSERT_TRUE(values.ok()) << values.status().ToString();
    EXPECT_EQ(values->elements()[0].shape().dim(0), all.shape().dim(0) - 1) << TypeName(type);
  }
}

TEST(InterpSessionOps, Nonzero) {
  EXPECT_EQ(Nonzero("f32[2,3]", "{{1, 0, -0}, {nan, 0, 2}}"), "{ { 0, 0 }, { 1, 0 }, { 1, 2 } }");
  EXPECT_EQ(Nonzero("pred[4]", "{false, true, true, false}"), "{ {1}, {2} }");
  EXPECT_EQ(Nonzero("c64[4]", "{(0, 0), (-0, 0), (0, 1), (nan, 0)}"), "{ {2}, {3} }");
  EXPECT_EQ(Nonzero("s8[2,1,2]", "{{{0, -1}}, {{5, 0}}}"), "{ { 0, 0, 1 }, { 1, 0, 0 } }");
  auto shape = [](std::string_view type, std::string_view value) {
    auto module = ir::ParseOrDie(Cat("ENTRY e { x = ", type, " constant(", value,
                                     ")\n ROOT u = custom-call(x), "
                                     "custom_call_target=\"kiln.nonzero\" }"));
    return interp::Evaluate(*module, {})->shape().ToString();
  };
  EXPECT_EQ(shape("f32[]", "3"), "s64[1,0]");
  EXPECT_EQ(shape("f32[]", "-0"), "s64[0,0]");
  EXPECT_EQ(shape("s32[3]", "{0, 0, 0}"), "s64[0,1]");
  EXPECT_EQ(shape("f32[2,0]", "{{}, {}}"), "s64[0,2]");
}

std::string Mask(std::string_view data, std::string_view mask) {
  return ValueOf(Cat("ENTRY e { x = ", data, "\n m = ", mask,
                     "\n ROOT r = custom-call(x, m), custom_call_target=\"kiln.boolean-mask\" }"));
}

TEST(InterpSessionOps, BooleanMask) {
  const std::string_view x = "s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})";
  EXPECT_EQ(Mask(x, "pred[3] constant({true, false, true})"), "{ { 1, 2 }, { 5, 6 } }");
  EXPECT_EQ(Mask(x, "pred[3] constant({false, false, false})"), "{  }");
  EXPECT_EQ(Mask(x, "pred[3,2] constant({{false, true}, {true, false}, {false, true}})"),
            "{2, 3, 6}");
  EXPECT_EQ(Mask("c64[2] constant({(1, 2), (3, 4)})", "pred[2] constant({false, true})"),
            "{(3, 4)}");
  EXPECT_EQ(Mask("f32[0] constant({})", "pred[0] constant({})"), "{}");
}

// x = {1, 2, 3, 4, 5} cut to n.
std::string Cut(int n, std::string_view lines) {
  return ValueOf(Cat("ENTRY e {\n  whole = f32[5] constant({1, 2, 3, 4, 5})\n  n = s32[] constant(",
                     n, ")\n  x = f32[<=5] set-dimension-size(whole, n), dimensions={0}\n", lines,
                     "\n}\n"));
}

TEST(InterpSessionOps, OfSizesThatDependOnValues) {
  EXPECT_EQ(Cut(3, R"(ROOT u = custom-call(x), custom_call_target="kiln.unique")"),
            "({1, 2, 3}, {0, 1, 2}, {1, 1, 1})");
  EXPECT_EQ(Cut(2, R"(ROOT u = custom-call(x), custom_call_target="kiln.nonzero")"),
            "{ {0}, {1} }");
  const std::string_view masked = R"(  three = f32[] constant(3)
  threes = f32[5] broadcast(three), dimensions={}
  m = pred[5] compare(whole, threes), direction=GE
  k = s32[] constant(4)
  b = pred[<=5] set-dimension-size(m, k), dimensions={0}
  ROOT r = custom-call(x, b), custom_call_target="kiln.boolean-mask")";
  EXPECT_EQ(Cut(4, masked), "{3, 4}");
  EXPECT_EQ(Cut(3, masked),
            "INVALID_ARGUMENT: 'r' of shape f32[<=5]: the mask pred[4] does not have the first "
            "dimensions of f32[3]");
  // What comes behind.
  EXPECT_EQ(ValueOf(R"(HloModule m
add { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
ENTRY e {
  x = s32[6] constant({7, 3, 7, -1, 3, 7})
  u = (s32[<=6], s32[6], s32[<=6]) custom-call(x), custom_call_target="kiln.unique"
  v = s32[<=6] get-tuple-element(u), index=0
  i = s32[6] get-tuple-element(u), index=1
  c = s32[<=6] get-tuple-element(u), index=2
  product = s32[<=6] multiply(v, c)
  zero = s32[] constant(0)
  sum = s32[] reduce(product, zero), dimensions={0}, to_apply=add
  n = s32[] get-dimension-size(v), dimensions={0}
  back = s32[6] gather(v, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT r = tuple(product, sum, n, back)
})"),
            "({21, 6, -1}, 26, 3, {7, 3, 7, -1, 3, 7})");
}

TEST(InterpSessionOps, PrintsInTheOrderOfTheGraph) {
  std::string printed;
  const interp::Options options{.print = [&](std::string_view text) { printed += Cat(text, "|"); }};
  EXPECT_EQ(ValueOf(R"(ENTRY e {
  x = f32[2] parameter(0)
  y = s32[] constant(7)
  unused = s32[] custom-call(y), custom_call_target="kiln.print", backend_config="y = "
  p = f32[2] custom-call(x), custom_call_target="kiln.print"
  ROOT q = f32[2] custom-call(p, y, x), custom_call_target="kiln.print", backend_config="both: "
})",
                    {Literal::Array<float>(Shape(ElementType::kF32, {2}), std::array{1.5f, -2.f})},
                    options),
            "{1.5, -2}");
  EXPECT_EQ(printed, "y = 7|{1.5, -2}|both: 7 {1.5, -2}|");
  // Large arrays are not; without a function nothing is.
  printed.clear();
  const std::string_view large = R"(ENTRY e { i = s32[1001] iota(), iota_dimension=0
  p = s32[1001] custom-call(i), custom_call_target="kiln.print"
  z = s32[] constant(0)
  ROOT d = s32[1] dynamic-slice(p, z), dynamic_slice_sizes={1} })";
  EXPECT_EQ(ValueOf(large, {}, options), "{0}");
  EXPECT_EQ(printed, "{...}|");
  EXPECT_EQ(ValueOf(large), "{0}");
}

TEST(InterpSessionOps, Assert) {
  auto run = [](std::string_view holds, std::string_view rest) {
    return ValueOf(
        Cat("ENTRY e { x = f32[2] constant({1, 2})\n n = s32[] constant(3)\n p = pred[] ",
            "constant(", holds, ")\n ROOT a = f32[2] custom-call(p, x", rest, " }"));
  };
  const std::string_view plain = "), custom_call_target=\"kiln.assert\"",
                         full =
                             ", n, x), custom_call_target=\"kiln.assert\", "
                             "backend_config=\"too many:\"";
  EXPECT_EQ(run("true", plain), "{1, 2}");
  EXPECT_EQ(run("true", full), "{1, 2}");
  EXPECT_EQ(run("false", plain), "INVALID_ARGUMENT: assertion 'a' failed");
  EXPECT_EQ(run("false", full), "INVALID_ARGUMENT: assertion 'a' failed: too many: 3 {1, 2}");
  EXPECT_EQ(run("false", ", n), custom_call_target=\"kiln.assert\""),
            "INVALID_ARGUMENT: assertion 'a' failed: 3");
  // Unused ones fail, too.
  EXPECT_EQ(ValueOf(R"(ENTRY e { p = pred[] constant(false)
  a = pred[] custom-call(p, p), custom_call_target="kiln.assert", backend_config="so"
  ROOT x = f32[] constant(1) })"),
            "INVALID_ARGUMENT: assertion 'a' failed: so");
}

constexpr std::string_view kCallback = R"(ENTRY e {
  x = s32[3] constant({1, 2, 3})
  two = s32[] constant(2)
  cut = s32[<=3] set-dimension-size(x, two), dimensions={0}
  c = (s32[<=8], s32[]) custom-call(cut, two), custom_call_target="kiln.host-callback", backend_config="repeat"
  y = s32[<=8] get-tuple-element(c), index=0
  ROOT r = s32[<=8] add(y, y)
})";

TEST(InterpSessionOps, HostCallbacks) {
  interp::Options options;
  EXPECT_EQ(ValueOf(kCallback),
            "NOT_FOUND: host-callback 'c': no function is registered under the name 'repeat'");
  std::string seen;
  int64_t size = 4;
  options.custom_call =
      [&](const interp::CalledFunction& called,
          std::span<const Literal* const> operands) -> Result<std::vector<Literal>> {
    seen = Cat(called.name, " ", called.target, " ", called.signature.ToString(), " ",
               operands[0]->ToString());
    std::vector<Literal> results;
    Literal repeated(Shape(ElementType::kS32, {size}));
    for (int64_t k = 0; k < size; ++k) {
      repeated.values<int32_t>()[static_cast<size_t>(k)] =
          operands[0]->values<int32_t>()[static_cast<size_t>(k) % 2];
    }
    results.push_back(std::move(repeated));
    if (size != 5) results.push_back(Literal(Shape::Scalar(ElementType::kS32)));
    return results;
  };
  EXPECT_EQ(ValueOf(kCallback, {}, options), "{2, 4, 2, 4}");
  EXPECT_EQ(seen, "c repeat (s32[2], s32[]) -> (s32[<=8], s32[]) {1, 2}");
  size = 9;
  EXPECT_EQ(ValueOf(kCallback, {}, options),
            "INVALID_ARGUMENT: host-callback 'c': the function 'repeat' gives s32[9] as result 0; "
            "expected s32[<=8]");
  size = 5;
  EXPECT_EQ(ValueOf(kCallback, {}, options),
            "INVALID_ARGUMENT: host-callback 'c': the function 'repeat' gives 1 results; expected "
            "2");
}

// Unused callbacks are run only for their side effects.
TEST(InterpSessionOps, UnusedHostCallbacks) {
  std::string called_names;
  interp::Options options;
  options.custom_call = [&](const interp::CalledFunction& called,
                            std::span<const Literal* const>) -> Result<std::vector<Literal>> {
    called_names += Cat(called.target, " ");
    return std::vector<Literal>();
  };
  EXPECT_EQ(ValueOf(R"(ENTRY e {
  a = () custom-call(), custom_call_target="kiln.host-callback", backend_config="pure"
  b = () custom-call(), custom_call_target="kiln.host-callback", custom_call_has_side_effect=true, backend_config="first"
  c = () custom-call(), custom_call_target="kiln.host-callback", custom_call_has_side_effect=true, backend_config="second"
  ROOT x = f32[] constant(1)
})",
                    {}, options),
            "1");
  EXPECT_EQ(called_names, "first second ");
}

constexpr std::string_view kVariables = R"(ENTRY e {
  x = f32[2] parameter(0)
  before = f32[2] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  a = f32[2] custom-call(x), custom_call_target="kiln.assign", backend_config="w"
  s = f32[2] custom-call(x), custom_call_target="kiln.assign-add", backend_config="w"
  after = f32[2] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  ROOT r = tuple(before, a, s, after)
})";

TEST(InterpSessionOps, Variables) {
  const Shape pair(ElementType::kF32, {2});
  std::map<std::string, Literal> variables;
  const interp::Options options{.variables = &variables};
  const std::vector<Literal> x = {Literal::Array<float>(pair, std::array{1.f, 2.f})};
  EXPECT_EQ(ValueOf(kVariables, x, options), "NOT_FOUND: 'before': the variable 'w' has no value");
  variables["w"] = Literal::Array<float>(pair, std::array{10.f, 20.f});
  EXPECT_EQ(ValueOf(kVariables, x, options), "({10, 20}, {1, 2}, {2, 4}, {2, 4})");
  EXPECT_EQ(variables["w"].ToString(), "{2, 4}");
  EXPECT_EQ(ValueOf(kVariables, x, options), "({2, 4}, {1, 2}, {2, 4}, {2, 4})");
  variables["w"] = Literal(Shape(ElementType::kS32, {2}));
  EXPECT_EQ(ValueOf(kVariables, x, options),
            "INVALID_ARGUMENT: 'before': the variable 'w' is s32[2]; expected f32[2]");
}

TEST(InterpSessionOps, AssignmentsKeepTheType) {
  std::map<std::string, Literal> variables;
  const interp::Options options{.variables = &variables};
  auto run = [&](std::string_view op, std::string_view value) {
    return ValueOf(Cat("ENTRY e { x = ", value, "\n ROOT a = custom-call(x), custom_call_target=\"",
                       op, "\", backend_config=\"v\" }"),
                   {}, options);
  };
  EXPECT_EQ(run("kiln.assign-add", "s32[2] constant({1, 2})"),
            "NOT_FOUND: 'a': the variable 'v' has no value");
  EXPECT_EQ(run("kiln.assign", "s8[2] constant({100, 2})"), "{100, 2}");
  EXPECT_EQ(run("kiln.assign-add", "s8[2] constant({100, 2})"), "{-56, 4}");
  EXPECT_EQ(run("kiln.assign", "s8[3] constant({1, 2, 3})"), "{1, 2, 3}");
  EXPECT_EQ(run("kiln.assign-add", "s8[2] constant({1, 2})"),
            "INVALID_ARGUMENT: 'a': the variable 'v' is s8[3]; expected s8[2]");
  EXPECT_EQ(run("kiln.assign", "s8[] constant(1)"),
            "INVALID_ARGUMENT: 'a': the variable 'v' is s8[3]; expected s8[]");
  EXPECT_EQ(run("kiln.assign", "s16[3] constant({1, 2, 3})"),
            "INVALID_ARGUMENT: 'a': the variable 'v' is s8[3]; expected s16[3]");
  EXPECT_EQ(variables["v"].ToString(), "{1, 2, 3}");
}

// Each iteration reads what the preceding one has assigned.
TEST(InterpSessionOps, VariablesInLoops) {
  std::map<std::string, Literal> variables;
  const interp::Options options{.variables = &variables};
  variables["n"] = Literal::Scalar<int32_t>(ElementType::kS32, 5);
  EXPECT_EQ(ValueOf(R"(HloModule m
condition { s = s32[] parameter(0)
  n = s32[] custom-call(), custom_call_target="kiln.variable", backend_config="n"
  zero = s32[] constant(0)
  ROOT c = pred[] compare(n, zero), direction=GT }
body { s = s32[] parameter(0)
  less = s32[] constant(-1)
  n = s32[] custom-call(less), custom_call_target="kiln.assign-add", backend_config="n"
  ROOT r = s32[] add(s, n) }
ENTRY e { zero = s32[] constant(0)
  ROOT w = s32[] while(zero), condition=condition, body=body })",
                    {}, options),
            "10");
  EXPECT_EQ(variables["n"].ToString(), "0");
}

// One op on its own, as a session runs it.
TEST(InterpSessionOps, OneInstruction) {
  auto module = ir::ParseOrDie(R"(ENTRY e { x = f32[<=4] parameter(0)
  ROOT u = custom-call(x), custom_call_target="kiln.unique" })");
  const Literal x = Literal::Array<float>(Shape(ElementType::kF32, {3}), std::array{1.f, 2.f, 1.f});
  Result<Literal> result =
      interp::EvaluateInstruction(*module->entry()->root(), std::array{&x}, {});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->ToString(), "({1, 2}, {0, 1, 0}, {2, 1})");
}

TEST(InterpSessionOps, WorkIsLimited) {
  EXPECT_EQ(ValueOf(R"(ENTRY e { x = f32[1000,1000] parameter(0)
  ROOT u = custom-call(x), custom_call_target="kiln.nonzero" })",
                    {Literal(Shape(ElementType::kF32, {1000, 1000}))}, {.max_work = 1000000}),
            "DEADLINE_EXCEEDED: evaluation takes more work than 1000000");
}

}  // namespace
}  // namespace kiln
