// Numbers on a GPU whose results a machine could round, flush or lose in its own way: the emulated
// GPU computes by a CPU's instructions, so most of these tests tell more on a real one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "ops/op.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/literal.h"
#include "support/math.h"
#include "target/target.h"

namespace kiln {
namespace {

using testing::MathOp;

constexpr ElementType kFloats[] = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                   ElementType::kF64};

uint64_t BitsAt(const Literal& l, int64_t i) {
  const auto width = static_cast<size_t>(ByteWidth(l.shape().type()));
  uint64_t bits = 0;
  std::memcpy(&bits, l.data() + static_cast<size_t>(i) * width, width);
  return bits;
}

void SetBits(Literal& l, int64_t i, uint64_t bits) {
  const auto width = static_cast<size_t>(ByteWidth(l.shape().type()));
  std::memcpy(l.data() + static_cast<size_t>(i) * width, &bits, width);
}

// Zeros, the least and the largest subnormal and normal numbers, those next to 1 and between two
// integers, and infinities, of both signs; NaNs, if asked for, with payloads that are quiet.
std::vector<uint64_t> SpecialBits(ElementType type, bool with_nans) {
  const FloatFormat f = *FormatOf(type);
  const uint64_t normal = f.hidden(), infinity = f.infinity();
  const uint64_t one = static_cast<uint64_t>(f.bias) << f.mantissa;
  std::vector<uint64_t> bits = {0,
                                1,
                                3,
                                normal - 1,
                                normal,
                                one - 1,
                                one,
                                one + 1,
                                one + normal,
                                one + normal + 1,
                                infinity,
                                f.largest(),
                                f.largest() - 1,
                                one + normal / 2};
  if (with_nans) {
    const uint64_t quiet = infinity | normal / 2;
    bits.insert(bits.end(), {quiet, quiet + 1, quiet + normal / 4, f.magnitude_mask()});
  }
  const size_t positive = bits.size();
  for (size_t i = 0; i < positive; ++i) bits.push_back(bits[i] | f.sign_bit());
  return bits;
}

// Arguments x, y, z: all pairs, and for z a number that follows from both.
std::vector<Literal> SpecialTriples(ElementType type, bool with_nans) {
  const std::vector<uint64_t> bits = SpecialBits(type, with_nans);
  const size_t n = bits.size();
  std::vector<Literal> arguments(3, Literal(Shape(type, {static_cast<int64_t>(n * n)})));
  for (size_t i = 0; i < n * n; ++i) {
    const size_t x = i / n, y = i % n, z = (x * 7 + y * 3) % n;
    for (auto [k, at] : {std::pair(0, x), {1, y}, {2, z}}) {
      SetBits(arguments[static_cast<size_t>(k)], static_cast<int64_t>(i), bits[at]);
    }
  }
  return arguments;
}

struct Program {
  std::string text = "HloModule m\nENTRY e {\n", results;
  int count = 0;

  void Add(const std::string& line) {
    text += Cat("  r", count, " = ", line, "\n");
    results += Cat(count > 0 ? ", r" : "r", count);
    ++count;
  }
  std::unique_ptr<ir::Module> Parse() const {
    return ir::ParseOrDie(Cat(text, "  ROOT t = tuple(", results, ") }\n"));
  }
};

// Expects the evaluator's bits; where `any_nan`, of a NaN no more than that it is one.
void ExpectBits(const Program& program, const std::vector<Literal>& arguments, bool any_nan) {
  auto module = program.Parse();
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    auto loaded = testing::LoadOnGpu(*module, fuse);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    auto actual = testing::RunOnGpu(*loaded, arguments);
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    for (int k = 0; k < program.count; ++k) {
      const Literal& e = expected->elements()[static_cast<size_t>(k)];
      const Literal& a = actual->elements()[static_cast<size_t>(k)];
      const ElementType type = e.shape().type();
      for (int64_t i = 0; i < e.shape().num_elements(); ++i) {
        if (BitsAt(e, i) == BitsAt(a, i)) continue;
        const bool are_nans =
            IsFloat(type) && std::isnan(e.AsDouble(i)) && std::isnan(a.AsDouble(i));
        if (any_nan && are_nans) continue;
        std::string operands;
        for (const Literal& x : arguments) operands += Cat(" ", HexText(BitsAt(x, i)));
        ADD_FAILURE() << "r" << k << " of" << operands << " is " << HexText(BitsAt(a, i))
                      << ", expected " << HexText(BitsAt(e, i)) << (fuse ? "" : ", op by op")
                      << "\n"
                      << program.text;
        return;
      }
    }
  }
}

std::string Parameters(std::string_view shape) {
  std::string text;
  for (auto [name, number] : {std::pair("x", 0), {"y", 1}, {"z", 2}}) {
    text += Cat("  ", name, " = ", shape, " parameter(", number, ")\n");
  }
  return text;
}

// Ops of bits, beside arithmetic in the same kernels.
TEST(GpuNumbers, NansKeepTheirBitsWhereNothingIsComputed) {
  for (ElementType type : kFloats) {
    SCOPED_TRACE(TypeName(type));
    const std::vector<Literal> arguments = SpecialTriples(type, true);
    const int64_t n = arguments[0].shape().num_elements();
    const std::string shape = Cat(TypeName(type), "[", n, "]"), preds = Cat("pred[", n, "]");
    const std::string word = Cat("u", BitWidth(type), "[", n, "]");
    Program p;
    p.text += Cat(Parameters(shape), "  s = ", shape, " add(x, y)\n  p = ", preds,
                  " compare(s, z), direction=LT\n");
    p.Add(Cat(shape, " negate(x)"));
    p.Add(Cat(shape, " abs(x)"));
    p.Add(Cat(shape, " select(p, x, y)"));
    p.Add(Cat(word, " bitcast-convert(r0)"));
    p.Add(Cat(shape, " negate(r1)"));
    p.Add(Cat(shape, " reduce-precision(x), exponent_bits=4, mantissa_bits=3"));
    p.Add(Cat(shape, " reduce-precision(r0), exponent_bits=5, mantissa_bits=0"));
    for (std::string_view direction : {"EQ", "LT", "GE"}) {
      p.Add(Cat(preds, " compare(x, y), direction=", direction, ", type=TOTALORDER"));
      p.Add(Cat(preds, " compare(r0, r1), direction=", direction, ", type=TOTALORDER"));
    }
    ExpectBits(p, arguments, false);
  }
}

// Subnormals are kept, quotients and roots are the nearest numbers, and a product is rounded
// before it is added to.
TEST(GpuNumbers, ArithmeticIsThatOfIeee) {
  for (ElementType type : kFloats) {
    SCOPED_TRACE(TypeName(type));
    const std::vector<Literal> arguments = SpecialTriples(type, true);
    const int64_t n = arguments[0].shape().num_elements();
    const std::string shape = Cat(TypeName(type), "[", n, "]"), preds = Cat("pred[", n, "]");
    Program p;
    p.text += Parameters(shape);
    for (std::string_view op :
         {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"}) {
      p.Add(Cat(shape, " ", op, "(x, y)"));
    }
    for (std::string_view op : {"sqrt", "floor", "ceil", "round-nearest-even", "round-nearest-afz",
                                "sign", "negate", "abs"}) {
      p.Add(Cat(shape, " ", op, "(x)"));
    }
    p.Add(Cat(shape, " add(r2, z)"));
    p.Add(Cat(shape, " subtract(z, r2)"));
    p.Add(Cat(shape, " add(r3, z)"));
    p.Add(Cat(shape, " clamp(x, y, z)"));
    for (std::string_view direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
      p.Add(Cat(preds, " compare(x, y), direction=", direction));
    }
    p.Add(Cat(preds, " is-finite(x)"));
    for (std::string_view to : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16",
                                "f32", "f64", "pred"}) {
      if (to != TypeName(type)) p.Add(Cat(to, "[", n, "] convert(x)"));
    }
    ExpectBits(p, arguments, true);
  }
}

// Integers at the ends of their types, as operands of everything; counts of shifts beyond them.
TEST(GpuNumbers, IntegersWrap) {
  for (ElementType type :
       {ElementType::kS8, ElementType::kU8, ElementType::kS16, ElementType::kU16, ElementType::kS32,
        ElementType::kU32, ElementType::kS64, ElementType::kU64}) {
    SCOPED_TRACE(TypeName(type));
    const int bits = BitWidth(type);
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    std::vector<uint64_t> values = {
        0, 1, 2, 3, 4, 5, 7, 100, all, all - 1, all - 6, all >> 1, (all >> 1) + 1, all >> bits / 2};
    for (int count : {bits / 2, bits - 1, bits, bits + 1}) {
      values.push_back(static_cast<uint64_t>(count));
    }
    const size_t n = values.size();
    std::vector<Literal> arguments(2, Literal(Shape(type, {static_cast<int64_t>(n * n)})));
    for (size_t i = 0; i < n * n; ++i) {
      SetBits(arguments[0], static_cast<int64_t>(i), values[i / n]);
      SetBits(arguments[1], static_cast<int64_t>(i), values[i % n]);
    }
    const std::string shape = Cat(TypeName(type), "[", n * n, "]");
    Program p;
    p.text += Cat("  x = ", shape, " parameter(0)\n  y = ", shape, " parameter(1)\n");
    for (std::string_view op :
         {"power", "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum",
          "mulhi", "shift-left", "shift-right-arithmetic", "shift-right-logical", "and", "or",
          "xor"}) {
      p.Add(Cat(shape, " ", op, "(x, y)"));
    }
    const int magnitude = p.count;  // "abs", the first of those below
    for (std::string_view op : {"abs", "negate", "sign", "not", "popcnt", "count-leading-zeros"}) {
      p.Add(Cat(shape, " ", op, "(x)"));
    }
    for (std::string_view direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
      p.Add(Cat("pred[", n * n, "] compare(x, y), direction=", direction));
    }
    for (std::string_view to : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16",
                                "f32", "f64", "pred"}) {
      if (to != TypeName(type)) p.Add(Cat(to, "[", n * n, "] convert(x)"));
    }
    // Branches and selections by the larger or smaller of two.
    for (std::string_view extremum : {"r6", "r7"}) {
      for (std::string_view direction : {"EQ", "NE", "LT", "GT"}) {
        const std::string line = Cat("pred[", n * n, "] compare(", extremum, ", y), direction=");
        p.Add(Cat(line, direction));
        p.Add(Cat(shape, " select(r", p.count - 1, ", x, ", extremum, ")"));
      }
    }
    // What is computed of results of the op, without a rest in registers.
    for (int sign : {magnitude, magnitude + 1}) {
      p.Add(Cat("s64[", n * n, "] convert(r", sign, ")"));
      p.Add(Cat("f64[", n * n, "] convert(r", sign, ")"));
      p.Add(Cat(shape, " minimum(r", sign, ", y)"));
      p.Add(Cat(shape, " divide(r", sign, ", y)"));
      p.Add(Cat("pred[", n * n, "] compare(r", sign, ", y), direction=LT"));
    }
    p.Add(Cat("s64[", n * n, "] convert(r0)"));
    p.Add(Cat("s64[", n * n, "] convert(r1)"));
    p.Add(Cat("s64[", n * n, "] convert(r3)"));
    p.Add(Cat("f64[", n * n, "] convert(r9)"));
    p.Add(Cat(shape, " divide(r1, y)"));
    p.Add(Cat(shape, " shift-right-logical(r2, y)"));
    ExpectBits(p, arguments, false);
  }
}

// Products of subnormal factors, whose sums are exact, on the units for matrices.
TEST(GpuNumbers, MatrixUnitsKeepSubnormals) {
  for (ElementType type : {ElementType::kF16, ElementType::kBF16, ElementType::kF32}) {
    SCOPED_TRACE(TypeName(type));
    constexpr int64_t n = 64;
    Program p;
    const std::string shape = Cat(TypeName(type), "[", n, ",", n, "]");
    p.text += Cat("  x = ", shape, " parameter(0)\n  y = ", shape, " parameter(1)\n");
    p.Add(
        Cat("f32[", n, ",", n, "] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
    std::mt19937 random(11);
    std::vector<Literal> arguments(2, Literal(Shape(type, {n, n})));
    for (int64_t i = 0; i < n * n; ++i) {
      SetBits(arguments[0], i, random() % 16);
      const Literal y = Literal::ScalarOf(type, static_cast<double>(random() % 17) - 8);
      SetBits(arguments[1], i, BitsAt(y, 0));
    }
    ExpectBits(p, arguments, true);
    const FloatFormat f = *FormatOf(type);
    SetBits(arguments[0], 5, f.infinity());
    SetBits(arguments[0], 70, f.magnitude_mask());
    ExpectBits(p, arguments, true);
  }
}

// The PTX of a program for every architecture.
std::string PtxOf(const Program& program) {
  std::string ptx;
  for (int sm : {75, 80, 90}) {
    auto artefact = compiler::Compile(program.Parse(), target::NvidiaGpu(sm).value(), {});
    EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
    if (!artefact.ok()) continue;
    for (const std::string& code : artefact->code) ptx += code;
  }
  return ptx;
}

// What the emulated GPU cannot show: the assembler may fuse a product and a sum that do not say how
// they round, and signs of floats that are no bits are lost where those are NaNs.
TEST(GpuNumbers, PtxSaysHowItRounds) {
  for (ElementType type : kFloats) {
    SCOPED_TRACE(TypeName(type));
    const std::string shape = Cat(TypeName(type), "[100]");
    Program p;
    p.text += Parameters(shape);
    for (std::string_view op : {"add", "subtract", "multiply", "divide"}) {
      p.Add(Cat(shape, " ", op, "(x, y)"));
    }
    for (std::string_view op : {"sqrt", "rsqrt", "exponential", "log", "tanh", "logistic"}) {
      p.Add(Cat(shape, " ", op, "(z)"));
    }
    const std::string ptx = PtxOf(p);
    EXPECT_NE(ptx.find("div.rn.f"), std::string::npos);
    for (const char* part : {".ftz", ".approx", ".full", "add.f", "sub.f", "mul.f", "mad.f"}) {
      EXPECT_EQ(ptx.find(part), std::string::npos) << part << " in\n" << ptx;
    }
    Program signs;
    signs.text += Parameters(shape);
    signs.Add(Cat(shape, " negate(x)"));
    signs.Add(Cat(shape, " abs(y)"));
    const std::string bits = PtxOf(signs);
    for (const char* part : {"neg.f", "abs.f"}) {
      EXPECT_EQ(bits.find(part), std::string::npos) << part << " in\n" << bits;
    }
  }
}

// An assembler makes wrong code of such instructions and others behind them (see NarrowIntegers in
// codegen/gpu/primitives.cc).
TEST(GpuNumbers, PtxHasNoExtremaAndSignsOfSixteenBits) {
  for (std::string_view type : {"s8", "u8", "s16", "u16"}) {
    SCOPED_TRACE(type);
    const std::string shape = Cat(type, "[100]");
    Program p;
    p.text += Cat(Parameters(shape), "  less = pred[100] compare(x, y), direction=LT\n");
    for (std::string_view op : {"maximum", "minimum", "power"}) {
      p.Add(Cat(shape, " ", op, "(x, y)"));
    }
    p.Add(Cat(shape, " clamp(x, y, z)"));
    p.Add(Cat(shape, " select(less, x, y)"));
    p.Add(Cat(shape, " negate(x)"));
    p.Add(Cat(shape, " abs(x)"));
    p.Add(Cat("s32[100] convert(r", p.count - 2, ")"));
    p.Add(Cat("s32[100] convert(r", p.count - 2, ")"));
    const std::string ptx = PtxOf(p);
    EXPECT_NE(ptx.find("max."), std::string::npos);
    for (const char* part : {"max.s16", "max.u16", "min.s16", "min.u16", "neg.s16", "abs.s16"}) {
      EXPECT_EQ(ptx.find(part), std::string::npos) << part << " in\n" << ptx;
    }
  }
}

template <typename T>
void FillWithAnyBits(testing::MathBlock<T>& block, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < testing::kMathBlock; ++i) {
    // Half of them of everyday sizes.
    const uint64_t bits = random();
    const double number = std::ldexp(static_cast<double>(static_cast<int64_t>(bits)),
                                     static_cast<int>(bits % 40) - 80);
    T value = static_cast<T>(number);
    if (i % 2 == 0) std::memcpy(&value, &bits, sizeof(value));
    block.get()[i] = value;
  }
}

template <typename T>
void ExpectSameFunction(const MathOp& op, ElementType type) {
  auto on_cpu = CompileMath(op, type, testing::kWithoutAvx512);
  auto on_gpu = CompileMath(op, type, testing::kGpu);
  ASSERT_TRUE(on_cpu && on_gpu);
  testing::MathBlock<T> x, y, expected, actual;
  FillWithAnyBits(x, 1);
  FillWithAnyBits(y, 2);
  const std::vector<const void*> operands = {x.get(), y.get()};
  const std::span<const void* const> arguments(operands.data(), static_cast<size_t>(op.operands));
  void* cpu_result[] = {expected.get()};
  void* gpu_result[] = {actual.get()};
  ASSERT_TRUE(on_cpu->Run(arguments, cpu_result, {}).ok());
  const Status status = on_gpu->Run(arguments, gpu_result, {});
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (int64_t i = 0; i < testing::kMathBlock; ++i) {
    const T e = expected.get()[i], a = actual.get()[i];
    const bool are_nans = std::isnan(static_cast<double>(e)) && std::isnan(static_cast<double>(a));
    if (are_nans || std::memcmp(&e, &a, sizeof(T)) == 0) continue;
    ADD_FAILURE() << op.name() << " of " << TypeName(type) << " at "
                  << static_cast<double>(x.get()[i]) << ", " << static_cast<double>(y.get()[i])
                  << ": " << static_cast<double>(a) << ", on the CPU " << static_cast<double>(e);
    return;
  }
}

// A function is the same instructions everywhere, each of which is rounded as IEEE 754 says, but
// for those that a CPU with AVX-512 has. So what is measured of its accuracy on one machine holds
// for all.
TEST(GpuNumbers, FunctionsHaveTheBitsOfACpu) {
  if (!target::HostCpu().cpu.has_fma) GTEST_SKIP() << "no fused multiply-adds";
  for (int k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    if (!IsElementwise(opcode) || !IsTranscendental(opcode)) continue;
    const MathOp op{opcode, static_cast<int>(ArityOf(opcode).min)};
    ExpectSameFunction<float>(op, ElementType::kF32);
    ExpectSameFunction<double>(op, ElementType::kF64);
  }
}

}  // namespace
}  // namespace kiln
