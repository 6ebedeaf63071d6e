// Complex numbers and narrow types in compiled code, against the evaluator.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

// The evaluator's values from code for the CPU, and the GPU unless `on_gpu` is false, fused and op
// by op; floats as near as `bound`.
void Check(const std::string& text, double bound = 1e-5, bool on_gpu = true) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = testing::RandomArguments(*module, 11);
  Result<Literal> expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    Result<Literal> actual = testing::RunCompiled(*module, arguments, fuse);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    EXPECT_EQ(testing::Difference(*expected, *actual, bound, bound), "");
    if (!on_gpu) continue;
    auto loaded = testing::LoadOnGpu(*module, fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    Result<Literal> from_gpu = testing::RunOnGpu(*loaded, arguments);
    ASSERT_TRUE(from_gpu.ok()) << from_gpu.status().ToString();
    EXPECT_EQ(testing::Difference(*expected, *from_gpu, bound, bound), "");
  }
}

// An entry of parameters "x = c64[2]; ..." and one result.
std::string Entry(std::string_view parameters, std::string_view lines,
                  std::string_view computations = "") {
  std::string text = Cat("HloModule m\n", computations, "\nENTRY e {\n");
  int number = 0;
  for (std::string_view p : Split(parameters, ';')) {
    text += Cat("  ", Trim(p), " parameter(", number++, ")\n");
  }
  return Cat(text, lines, "\n}\n");
}

TEST(ComplexCode, Arithmetic) {
  for (std::string_view type : {"c64", "c128"}) {
    const std::string x = Cat(type, "[3,5]");
    const std::string two = Cat("x = ", x, "; y = ", x);
    for (std::string_view op : {"add", "subtract", "multiply", "divide"}) {
      Check(Entry(two, Cat("  ROOT r = ", x, " ", op, "(x, y)")));
    }
    Check(Entry(two, Cat("  ROOT r = ", x, " negate(x)")));
    const std::string real = Cat(type == "c64" ? "f32" : "f64", "[3,5]");
    for (std::string_view op : {"abs", "real", "imag"}) {
      Check(Entry(two, Cat("  ROOT r = ", real, " ", op, "(x)")));
    }
    for (std::string_view direction : {"EQ", "NE"}) {
      Check(Entry(two, Cat("  ROOT r = pred[3,5] compare(x, y), direction=", direction)));
    }
    Check(Entry(Cat("x = ", real, "; y = ", real), Cat("  ROOT r = ", x, " complex(x, y)")));
    Check(Entry(Cat("x = ", real), Cat("  ROOT r = ", x, " convert(x)")));
    Check(Entry(Cat("x = ", x), "  ROOT r = c64[3,5] convert(x)"));
    Check(Entry(Cat("x = ", x), "  ROOT r = c128[3,5] convert(x)"));
    Check(Entry(Cat("x = ", x),
                Cat("  c = ", type, "[] constant((1.5, -2))\n  b = ", x,
                    " broadcast(c), dimensions={}\n  ROOT r = ", x, " multiply(x, b)")));
  }
}

TEST(ComplexCode, Moves) {
  const std::string_view x = "x = c64[3,5]";
  Check(Entry(x, "  ROOT r = c64[5,3] transpose(x), dimensions={1,0}"));
  Check(Entry(x, "  ROOT r = c64[15] reshape(x)"));
  Check(Entry(x, "  ROOT r = c64[2,2] slice(x), slice={[1:3], [0:5:3]}"));
  Check(Entry(x, "  ROOT r = c64[3,5] reverse(x), dimensions={1}"));
  Check(Entry(x, "  ROOT r = c64[6,5] concatenate(x, x), dimensions={0}"));
  Check(Entry("x = c64[3,5]; p = c64[]", "  ROOT r = c64[5,6] pad(x, p), padding=1_1x0_1"));
  Check(Entry("x = c64[3,5]; y = c64[3,5]; p = pred[3,5]", "  ROOT r = c64[3,5] select(p, x, y)"));
  Check(Entry("x = c64[3,5]; i = s32[4,1]",
              "  ROOT r = c64[4,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
              "start_index_map={0}, index_vector_dim=1, slice_sizes={1,5}"));
  Check(Entry(x, "  ROOT r = f32[3,5,2] bitcast-convert(x)"));
  Check(Entry(x, "  ROOT r = u64[3,5] bitcast-convert(x)"));
  Check(Entry("x = s16[3,4]", "  ROOT r = c64[3] bitcast-convert(x)"));
  Check(Entry("x = c64[3,2]", "  ROOT r = c128[3] bitcast-convert(x)"));
}

TEST(ComplexCode, Folds) {
  const std::string_view add =
      R"(add {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT r = c64[] add(a, b)
}
mul {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT r = c64[] multiply(a, b)
}
)";
  Check(Entry("x = c64[30,5]; z = c64[]",
              "  ROOT r = c64[5] reduce(x, z), dimensions={0}, to_apply=add", add),
        1e-4);
  Check(Entry("x = c64[3,5]; z = c64[]",
              "  ROOT r = c64[3] reduce(x, z), dimensions={1}, to_apply=mul", add),
        1e-3);
  Check(Entry("x = c64[8]; z = c64[]",
              "  ROOT r = c64[6] reduce-window(x, z), window={size=3}, to_apply=add", add),
        1e-4);
  Check(Entry("x = c64[8]; i = s32[4,1]; u = c64[4]",
              "  ROOT r = c64[8] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},"
              " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
              add),
        1e-4);
  Check(Entry("x = c64[4,6]; y = c64[6,3]",
              "  ROOT r = c64[4,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        1e-4);
  Check(Entry("x = f32[9]; y = c64[9]",
              R"(  s = (f32[9], c64[9]) sort(x, y), dimensions={0}, to_apply=less
  ROOT r = c64[9] get-tuple-element(s), index=1)",
              R"(less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = c64[] parameter(2)
  d = c64[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
)"));
}

TEST(ComplexCode, LoopsAndTuples) {
  Check(Entry("x = (c64[3], s32[])",
              R"(  i = s32[] constant(0)
  z = c64[3] get-tuple-element(x), index=0
  t = (c64[3], s32[]) tuple(z, i)
  w = (c64[3], s32[]) while(t), condition=condition, body=body
  v = c64[3] get-tuple-element(w), index=0
  u = (c64[3]) tuple(v)
  ROOT r = (c64[3], (c64[3])) tuple(z, u))",
              R"(body {
  p = (c64[3], s32[]) parameter(0)
  z = c64[3] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  o = s32[] constant(1)
  n = s32[] add(i, o)
  q = c64[3] add(z, z)
  ROOT r = (c64[3], s32[]) tuple(q, n)
}
condition {
  p = (c64[3], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=1
  m = s32[] constant(4)
  ROOT r = pred[] compare(i, m), direction=LT
}
)"));
}

// Every value of a narrow type, and all pairs of those with few bits.
Literal AllValues(ElementType type, bool rows) {
  const int64_t n = int64_t{1} << BitWidth(type);
  Literal literal(Shape(type, {n, n}));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      uint64_t bits = static_cast<uint64_t>(rows ? i : j);
      if (IsSigned(type) && bits >> (BitWidth(type) - 1) != 0)
        bits |= ~uint64_t{0} << BitWidth(type);
      literal.data()[i * n + j] = static_cast<std::byte>(bits);
    }
  }
  return literal;
}

void CheckAll(const std::string& text, const std::vector<Literal>& arguments) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  Result<Literal> expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  Result<Literal> actual = testing::RunCompiled(*module, arguments, true);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_EQ(testing::Difference(*expected, *actual, 0, 0), "");
}

constexpr ElementType kSmallInts[] = {ElementType::kS4, ElementType::kU4, ElementType::kS2,
                                      ElementType::kU2};

TEST(NarrowCode, IntegersOfAllPairs) {
  for (ElementType type : kSmallInts) {
    const int64_t n = int64_t{1} << BitWidth(type);
    const std::string x = Cat(TypeName(type), "[", n, ",", n, "]");
    const std::vector<Literal> arguments = {AllValues(type, true), AllValues(type, false)};
    const std::string two = Cat("x = ", x, "; y = ", x);
    for (std::string_view op :
         {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or",
          "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic", "power"}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", x, " ", op, "(x, y)")), arguments);
    }
    for (std::string_view op : {"negate", "abs", "sign", "not", "popcnt", "count-leading-zeros"}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", x, " ", op, "(x)")), arguments);
    }
    for (std::string_view direction : {"LT", "EQ", "GE"}) {
      CheckAll(
          Entry(two, Cat("  ROOT r = pred[", n, ",", n, "] compare(x, y), direction=", direction)),
          arguments);
    }
    for (std::string_view to :
         {"s8", "u8", "s32", "u64", "f32", "bf16", "pred", "s4", "u4", "s2", "u2"}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", to, "[", n, ",", n, "] convert(x)")), arguments);
    }
  }
}

constexpr ElementType kSmallFloats[] = {
    ElementType::kF8E5M2,     ElementType::kF8E4M3,        ElementType::kF8E3M4,
    ElementType::kF8E4M3FN,   ElementType::kF8E4M3B11FNUZ, ElementType::kF8E5M2FNUZ,
    ElementType::kF8E4M3FNUZ, ElementType::kF8E8M0FNU,     ElementType::kF6E2M3FN,
    ElementType::kF6E3M2FN,   ElementType::kF4E2M1FN};

TEST(NarrowCode, FloatsOfAllValues) {
  for (ElementType type : kSmallFloats) {
    const int64_t n = int64_t{1} << BitWidth(type);
    const std::string dims = Cat("[", n, ",", n, "]");
    const std::string x = Cat(TypeName(type), dims);
    const std::vector<Literal> arguments = {AllValues(type, true), AllValues(type, false)};
    const std::string two = Cat("x = ", x, "; y = ", x);
    for (std::string_view to : {"f32", "f64", "bf16", "f16", "s32", "u4", "pred", "f8e5m2"}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", to, dims, " convert(x)")), arguments);
    }
    for (std::string_view op : {"add", "multiply", "subtract", "maximum"}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", x, " ", op, "(x, y)")), arguments);
    }
    CheckAll(Entry(two, Cat("  ROOT r = pred", dims, " compare(x, y), direction=LT")), arguments);
  }
}

// Numbers at and around all midpoints of the formats, and beyond their ends.
TEST(NarrowCode, FloatsAreRoundedOnce) {
  std::mt19937_64 random(3);
  std::vector<float> numbers = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3.4e38f};
  for (int k = 0; k < 20000; ++k) {
    uint32_t bits = static_cast<uint32_t>(random());
    // Few bits of mantissa, or such with one more or less: ties, and what is beside them.
    if (k % 3 == 0) bits &= 0xfff00000;
    if (k % 3 == 1) bits = (bits & 0xfff80000) + static_cast<uint32_t>(random() % 3) - 1;
    if (k % 2 == 0) bits = (bits & 0x87ffffff) | 0x38000000;
    numbers.push_back(std::bit_cast<float>(bits));
  }
  const int64_t n = static_cast<int64_t>(numbers.size());
  std::vector<double> doubles(numbers.begin(), numbers.end());
  for (size_t k = 0; k < doubles.size(); k += 3) doubles[k] = std::nextafter(doubles[k], 1e300);
  const Literal singles =
      Literal::Array<float>(Shape(ElementType::kF32, {n}), std::span<const float>(numbers));
  const Literal wide =
      Literal::Array<double>(Shape(ElementType::kF64, {n}), std::span<const double>(doubles));
  for (ElementType type : kSmallFloats) {
    const std::string result = Cat("  ROOT r = ", TypeName(type), "[", n, "] convert(x)");
    CheckAll(Entry(Cat("x = f32[", n, "]"), result), {singles});
    CheckAll(Entry(Cat("x = f64[", n, "]"), result), {wide});
  }
}

TEST(NarrowCode, MovesFoldsAndProducts) {
  Check(Entry("x = s4[3,6]", "  ROOT r = s4[6,3] transpose(x), dimensions={1,0}"));
  Check(Entry("x = f8e4m3fn[3,6]", "  ROOT r = f8e4m3fn[18] reshape(x)"));
  Check(Entry("x = u8[3]", "  ROOT r = u4[3,2] bitcast-convert(x)"));
  Check(Entry("x = s32[3]", "  ROOT r = s2[3,16] bitcast-convert(x)"));
  Check(Entry("x = u4[3,4]", "  ROOT r = u16[3] bitcast-convert(x)"));
  Check(Entry("x = s2[3,2]", "  ROOT r = s4[3] bitcast-convert(x)"));
  Check(Entry("x = f8e5m2[3]", "  ROOT r = u8[3] bitcast-convert(x)"));
  Check(Entry("x = u4[3]", "  ROOT r = f4e2m1fn[3] bitcast-convert(x)"));
  Check(Entry("x = s4[4,6]; y = s4[6,3]",
              "  ROOT r = s32[4,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
  Check(Entry("x = f8e4m3fn[4,6]; y = f8e4m3fn[6,3]",
              "  ROOT r = f32[4,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        1e-6);
  Check(Entry("x = s4[30]; z = s4[]", "  ROOT r = s4[] reduce(x, z), dimensions={0}, to_apply=add",
              R"(add {
  a = s4[] parameter(0)
  b = s4[] parameter(1)
  ROOT r = s4[] add(a, b)
}
)"));
  Check(Entry("x = f8e5m2[30]; z = f8e5m2[]",
              "  ROOT r = f8e5m2[] reduce(x, z), dimensions={0}, to_apply=max",
              R"(max {
  a = f8e5m2[] parameter(0)
  b = f8e5m2[] parameter(1)
  ROOT r = f8e5m2[] maximum(a, b)
}
)"));
  Check(Entry("x = s4[5]",
              R"(  c = s4[] constant(3)
  b = s4[5] broadcast(c), dimensions={}
  ROOT r = s4[5] add(x, b))"));
  Check(Entry("x = f32[5]",
              R"(  i = u4[5] iota(), iota_dimension=0
  j = f32[5] convert(i)
  ROOT r = f32[5] add(x, j))"));
}

// Arrays that are not row-major, given, made and handed on.
TEST(NarrowCode, Layouts) {
  Check(Entry("x = s4[3,6]{0,1}; y = s4[3,6]", "  ROOT r = s4[3,6]{0,1} add(x, y)"));
  Check(Entry("x = f8e5m2[3,6]{0,1}",
              R"(  s = f8e5m2[3,4]{0,1} slice(x), slice={[0:3], [1:5]}
  ROOT r = f32[3,4]{0,1} convert(s))"));
  Check(Entry("x = c64[3,6]{0,1}; y = c64[3,6]",
              R"(  m = c64[3,6]{0,1} multiply(x, y)
  i = f32[3,6]{0,1} imag(m)
  p = pred[3,6]{0,1} compare(m, y), direction=NE
  ROOT r = (c64[3,6]{0,1}, f32[3,6]{0,1}, pred[3,6]{0,1}) tuple(m, i, p))"));
}

TEST(NarrowCode, Convolutions) {
  const std::string_view same = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f";
  auto convolution = [&](std::string_view type, std::string_view result) {
    return Entry(Cat("x = ", type, "[2,9,4]; w = ", type, "[3,4,5]"),
                 Cat("  ROOT r = ", result, "[2,9,5] convolution(x, w), ", same));
  };
  for (std::string_view result : {"s4", "s8", "s32"}) Check(convolution("s4", result));
  Check(convolution("u2", "u2"));
  Check(convolution("f8e4m3fn", "f32"), 1e-6);
  Check(convolution("f4e2m1fn", "bf16"), 1e-6);
  Check(convolution("f8e8m0fnu", "f64"), 1e-6);
  Check(convolution("c64", "c64"), 1e-5);
  Check(convolution("c64", "c128"), 1e-5);
  // The largest of windows and sums of few, which no rounding touches.
  const std::string_view functions =
      R"(ge {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}
max {
  a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  ROOT r = TYPE[] maximum(a, b)
}
)";
  for (std::string_view type : {"f8e4m3fn", "f8e5m2", "s4", "u4"}) {
    std::string text = Entry(Cat("x = ", type, "[12]; y = ", type, "[5]; z = ", type, "[]"),
                             Cat("  ROOT r = ", type,
                                 "[12] select-and-scatter(x, y, z), "
                                 "window={size=3 stride=2}, select=ge, scatter=max"),
                             functions);
    for (size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
    Check(text);
  }
}

// What an op by itself becomes is few kernels.
TEST(NarrowCode, OneOpIsFewKernels) {
  auto kernels = [](const std::string& text) {
    auto loaded = testing::Load(*ir::ParseOrDie(text), /*fuse=*/false);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? program::CountKernels(loaded->artefact->program.steps) : 0;
  };
  if (testing::IsTestOfGpu()) GTEST_SKIP() << "a CPU's";
  EXPECT_EQ(kernels(Entry("x = s4[64]; y = s4[64]", "  ROOT r = s4[64] multiply(x, y)")), 1);
  EXPECT_EQ(kernels(Entry("x = f8e5m2[64]", "  ROOT r = f8e5m2[64] tanh(x)")), 1);
  EXPECT_EQ(kernels(Entry("x = f32[64,8]; s = f32[8]; o = f32[8]",
                          "  ROOT r = (f32[64,8], f32[8], f32[8]) batch-norm-training(x, s, o), "
                          "epsilon=0.1, feature_index=1")),
            1);
  // Padding and the product.
  EXPECT_EQ(kernels(Entry("x = f32[2,32,32,8]; w = f32[3,3,8,16]",
                          "  ROOT r = f32[2,32,32,16] convolution(x, w), "
                          "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f")),
            2);
  // The parts of x and y, of their product, and this.
  EXPECT_LE(kernels(Entry("x = c64[64]; y = c64[64]", "  ROOT r = c64[64] multiply(x, y)")), 6);
  EXPECT_LE(kernels(Entry("s = u64[2]",
                          "  ROOT r = (u64[2], u32[64]) rng-bit-generator(s), "
                          "algorithm=rng_three_fry")),
            8);
}

// What each op makes of all values, and of all pairs where it has two operands.
TEST(NarrowCode, FunctionsOfBits) {
  for (ElementType type : kSmallFloats) {
    const int64_t n = int64_t{1} << BitWidth(type);
    const std::string x = Cat(TypeName(type), "[", n, ",", n, "]");
    const std::vector<Literal> arguments = {AllValues(type, true), AllValues(type, false)};
    const std::string two = Cat("x = ", x, "; y = ", x);
    CheckAll(Entry(two, Cat("  ROOT r = ", x, " real(x)")), arguments);
    CheckAll(Entry(two, Cat("  ROOT r = ", x,
                            " custom-call(x, y), custom_call_target=\"kiln.next-after\"")),
             arguments);
    for (auto [exponent, mantissa] :
         {std::pair{8, 0}, {8, 1}, {8, 2}, {8, 10}, {2, 1}, {2, 0}, {3, 1}, {4, 2}, {1, 3}}) {
      CheckAll(Entry(two, Cat("  ROOT r = ", x, " reduce-precision(x), exponent_bits=", exponent,
                              ", mantissa_bits=", mantissa)),
               arguments);
    }
    if (BitWidth(type) == 6) continue;
    // Every random number with every value.
    const ElementType random = BitWidth(type) == 8 ? ElementType::kU8 : ElementType::kU4;
    const std::string with_random = Cat("x = ", x, "; y = ", TypeName(random), "[", n, ",", n, "]");
    for (std::string_view to : {"s8", "s4", "s2", "s32"}) {
      CheckAll(
          Entry(with_random, Cat("  ROOT r = ", to, "[", n, ",", n, "] stochastic-convert(x, y)")),
          {arguments[0], AllValues(random, false)});
    }
  }
  Check(Entry("x = f32[40]; y = u32[40]", "  ROOT r = s4[40] stochastic-convert(x, y)"));
}

TEST(NarrowCode, BitsOfPred) {
  Check(Entry("x = u4[3,5]", "  ROOT r = pred[3,5,4] bitcast-convert(x)"));
  Check(Entry("x = pred[3,5,2]", "  ROOT r = s2[3,5] bitcast-convert(x)"));
  Check(Entry("x = pred[3,5,8]", "  ROOT r = f8e5m2[3,5] bitcast-convert(x)"));
  Check(Entry("x = pred[5,64]", "  ROOT r = c64[5] bitcast-convert(x)"));
  Check(Entry("x = c64[5]", "  ROOT r = pred[5,64] bitcast-convert(x)"));
}

// The byte that stands for an element is a value of its own beside.
TEST(NarrowCode, BytesThatAreReadAsBoth) {
  Check(Entry("x = u8[7]; y = u8[7]",
              R"(  a = u8[7] add(x, y)
  b = f8e4m3fnuz[7] bitcast-convert(a)
  c = u8[7] multiply(a, y)
  ROOT r = (u8[7], f8e4m3fnuz[7]) tuple(c, b))"));
}

TEST(NarrowCode, FromComplexNumbers) {
  for (std::string_view type : {"c64", "c128"}) {
    // Also beyond what there is of small integers.
    const std::string lines =
        Cat("  c = ", type, "[] constant((9, 0))\n  b = ", type,
            "[50] broadcast(c), dimensions={}\n  y = ", type, "[50] multiply(x, b)\n");
    for (std::string_view to : {"s2", "u4", "s4", "f8e5m2", "f4e2m1fn", "f8e8m0fnu"}) {
      Check(Entry(Cat("x = ", type, "[50]"), Cat(lines, "  ROOT r = ", to, "[50] convert(y)")), 0);
    }
  }
}

constexpr std::string_view kMinusOfBytes =
    R"(minus {
  a = f8e4m3fn[] parameter(0)
  b = f8e4m3fn[] parameter(1)
  ROOT r = f8e4m3fn[] subtract(a, b)
}
)";

// A sum is rounded once, what else rounds does so step by step; in every computation there is.
TEST(NarrowCode, FoldsThatRound) {
  Check(Entry("x = f8e4m3fn[40,9]; z = f8e4m3fn[]",
              "  ROOT r = f8e4m3fn[9] reduce(x, z), dimensions={0}, to_apply=minus", kMinusOfBytes),
        0);
  std::string loops = std::string(kMinusOfBytes) +
                      R"(plus {
  a = f8e4m3fn[] parameter(0)
  b = f8e4m3fn[] parameter(1)
  ROOT r = f8e4m3fn[] add(a, b)
}
)";
  for (int k = 0; k < 6; ++k) {
    loops += Cat("f", k,
                 R"( {
  x = f8e4m3fn[4,9] parameter(0)
  z = f8e4m3fn[] constant(0)
  s = f8e4m3fn[9] reduce(x, z), dimensions={0}, to_apply=plus
  ROOT r = f8e4m3fn[9] reduce-window(s, z), window={size=2}, to_apply=plus
}
)");
    const size_t at = loops.rfind("f8e4m3fn[9] reduce-window");
    loops.replace(at, 11, "f8e4m3fn[8]");
  }
  Check(Entry("x = f8e4m3fn[4,9]; i = s32[]",
              "  ROOT r = f8e4m3fn[8] conditional(i, x, x, x, x, x, x), "
              "branch_computations={f0, f1, f2, f3, f4, f5}",
              loops),
        0);
}

// As f32, and rounded at the end: nothing is a step of each op off.
TEST(NarrowCode, BatchNorm) {
  for (std::string_view type : {"f8e4m3fn", "f8e3m4", "f6e2m3fn"}) {
    const std::string x = Cat(type, "[5,3]"), f = Cat(type, "[3]");
    Check(Entry(Cat("x = ", x, "; s = ", f, "; o = ", f),
                Cat("  ROOT r = (", x, ", ", f, ", ", f,
                    ") batch-norm-training(x, s, o), epsilon=0.5, feature_index=1")),
          0);
  }
}

TEST(NarrowCode, SelectAndScatter) {
  for (std::string_view type : {"f8e4m3fn", "f8e8m0fnu", "f4e2m1fn", "s4"}) {
    for (std::string_view op : {"add", "subtract", "maximum"}) {
      const std::string scalar = Cat(type, "[]");
      const std::string computations = Cat(
          "ge {\n  a = ", scalar, " parameter(0)\n  b = ", scalar,
          " parameter(1)\n  ROOT r = pred[] compare(a, b), direction=GE\n}\nput {\n  a = ", scalar,
          " parameter(0)\n  b = ", scalar, " parameter(1)\n  ROOT r = ", scalar, " ", op,
          "(a, b)\n}\n");
      Check(Entry(Cat("x = ", type, "[20,9]; y = ", type, "[18,7]; z = ", scalar),
                  Cat("  ROOT r = ", type,
                      "[20,9] select-and-scatter(x, y, z), "
                      "window={size=3x3}, select=ge, scatter=put"),
                  computations),
            0);
    }
  }
}

TEST(NarrowCode, FoldsInLayouts) {
  const std::string_view plus =
      R"(plus {
  a = f8e5m2[] parameter(0)
  b = f8e5m2[] parameter(1)
  ROOT r = f8e5m2[] add(a, b)
}
)";
  Check(Entry("x = f8e5m2[4,3,5]{0,2,1}; z = f8e5m2[]",
              "  ROOT r = f8e5m2[4,5]{0,1} reduce(x, z), dimensions={1}, to_apply=plus", plus));
  Check(Entry("x = s4[4,3]{0,1}; y = s4[4,3]", "  ROOT r = s4[4,3]{0,1} add(x, y)"));
  Check(Entry("x = c64[4,3]{0,1}; y = c64[4,3]", "  ROOT r = c64[4,3]{0,1} multiply(x, y)"));
}

TEST(ComplexCode, Maps) {
  Check(Entry("x = c64[4,3]; y = c64[4,3]",
              "  ROOT r = c64[4,3] map(x, y), dimensions={0,1}, to_apply=f",
              R"(f {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  m = c64[] multiply(a, b)
  c = c64[] constant((1, -2))
  ROOT r = c64[] add(m, c)
}
)"));
}

}  // namespace
}  // namespace kiln
