// Compiled sorts and top-k against the evaluator, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Execution;
using testing::Load;

constexpr std::string_view kTypes[] = {"pred", "s8",  "s16", "s32", "s64",  "u8", "u16",
                                       "u32",  "u64", "f16", "f32", "bf16", "f64"};

// Expects the evaluator's bits of every way to compile the module.
void CheckBits(const ir::Module& module, const std::vector<Literal>& arguments) {
  auto expected = interp::Evaluate(module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (auto [fuse, bytes] : {std::pair(true, 64), {false, 32}, {true, 16}}) {
    auto loaded = Load(module, fuse, bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    Status status = loaded->executable->Run(run.arguments(), run.results());
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_TRUE(*expected == run.Result())
        << testing::Difference(*expected, run.Result(), 0, 0) << "\n"
        << (fuse ? "fused, " : "op by op, ") << bytes << "-byte vectors\n"
        << loaded->artefact->program.ToString();
  }
}

void CheckBits(const std::string& text, uint64_t seed = 3) {
  auto module = ir::ParseOrDie(text);
  CheckBits(*module, testing::RandomArguments(*module, seed));
}

std::string Comparator(std::string_view type, std::string_view direction) {
  return Cat("compare { a = ", type, "[] parameter(0)\n  b = ", type,
             "[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=", direction, " }\n");
}

std::string SortOf(std::string_view type, std::string_view dims, int dimension,
                   std::string_view direction) {
  std::string shape = Cat(type, "[", dims, "]");
  return Cat("HloModule m\n", Comparator(type, direction), "ENTRY e { x = ", shape,
             " parameter(0)\n  ROOT s = ", shape, " sort(x), dimensions={", dimension,
             "}, to_apply=compare }");
}

TEST(SortOps, EveryTypeInBothDirections) {
  for (std::string_view type : kTypes) {
    for (std::string_view direction : {"LT", "GT"}) {
      CheckBits(SortOf(type, "3,150", 1, direction));
      CheckBits(SortOf(type, "17", 0, direction));
    }
  }
}

TEST(SortOps, EveryDimension) {
  for (int d : {0, 1, 2}) CheckBits(SortOf("f32", "50,7,45", d, "LT"));
  for (std::string_view dims : {"0", "1", "2", "39", "40", "41", "0,5", "5,0"}) {
    CheckBits(SortOf("s32", dims, 0, "LT"));
  }
  CheckBits(R"(HloModule m
compare { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GT }
ENTRY e { x = f32[60,50]{0,1} parameter(0)
  ROOT s = f32[60,50]{1,0} sort(x), dimensions={0}, to_apply=compare })");
}

// Orders that make the same of several operands; where they call equal what differs, the order of
// the operands shows.
constexpr char kComparators[] = R"(
first { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
second { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(d, c), direction=LT }
both { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = pred[] compare(a, b), direction=EQ
  f = pred[] compare(c, d), direction=GT
  g = pred[] compare(a, b), direction=LT
  ROOT r = pred[] select(e, f, g) }
formula { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  two = s32[] constant(2)
  x = s32[] divide(c, two)
  y = s32[] divide(d, two)
  ROOT r = pred[] compare(x, y), direction=LT }
)";

std::string PairSort(std::string type, std::string_view comparator, std::string_view dims) {
  std::string text = kComparators;
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
  std::string x = Cat(type, "[", dims, "]"), y = Cat("s32[", dims, "]");
  return Cat("HloModule m\n", text, "ENTRY e { x = ", x, " parameter(0)\n  y = ", y,
             " parameter(1)\n  ROOT s = (", x, ", ", y, ") sort(x, y), dimensions={",
             dims.find(',') == std::string_view::npos ? 0 : 1,
             "}, is_stable=true, to_apply=", comparator, " }");
}

TEST(SortOps, SeveralOperands) {
  for (std::string_view type : kTypes) {
    for (std::string_view comparator : {"first", "second", "both", "formula"}) {
      CheckBits(PairSort(std::string(type), comparator, "2,70"));
    }
  }
  CheckBits(PairSort("f64", "first", "11"));
  CheckBits(PairSort("f32", "both", "11"));
}

// Rows that are cut into chunks, with every kind of record.
TEST(SortOps, LongRows) {
  CheckBits(SortOf("f32", "70000", 0, "LT"));
  CheckBits(SortOf("u8", "2,20001", 1, "GT"));
  CheckBits(SortOf("s64", "40001", 0, "GT"));
  CheckBits(PairSort("f32", "first", "33000"));
  CheckBits(PairSort("f64", "first", "17000"));
  CheckBits(PairSort("f32", "both", "33333"));
  CheckBits(PairSort("s16", "both", "2,16384"));
}

// Keys alone: as many as networks hold and as parts are cut into, random, of few values, in order,
// and with a few that are far from the others.
TEST(SortOps, KeysAlone) {
  std::mt19937_64 random(17);
  for (int64_t size : {1,   7,   8,   9,   16,  17,  32,   33,   64,    65,
                       127, 128, 129, 130, 255, 300, 1000, 5000, 16384, 40000}) {
    auto words = ir::ParseOrDie(SortOf("u32", Cat(size), 0, "LT"));
    auto longs = ir::ParseOrDie(SortOf("s64", Cat(size), 0, "GT"));
    auto compiled_words = Load(*words, true), compiled_longs = Load(*longs, true);
    ASSERT_TRUE(compiled_words.ok() && compiled_longs.ok());
    for (int kind = 0; kind < 8; ++kind) {
      std::vector<uint32_t> x(static_cast<size_t>(size));
      for (size_t i = 0; i < x.size(); ++i) {
        auto any = static_cast<uint32_t>(random());
        auto place = static_cast<uint32_t>(i);
        const uint32_t kinds[] = {any,
                                  any % 2 - 1,
                                  any % 5 * 1000,
                                  place,
                                  ~place,
                                  uint32_t{1} << any % 32,
                                  UINT32_MAX,
                                  place * 16 % 4096 + any % 2};
        x[i] = kinds[kind];
      }
      std::vector<int64_t> y;
      for (uint32_t v : x) y.push_back((int64_t{v} << 31) * (v % 3 == 0 ? -1 : 1));
      Execution run(*compiled_words->artefact), other(*compiled_longs->artefact);
      run.SetArguments({Literal::Array<uint32_t>(Shape(ElementType::kU32, {size}), x)});
      other.SetArguments({Literal::Array<int64_t>(Shape(ElementType::kS64, {size}), y)});
      ASSERT_TRUE(compiled_words->executable->Run(run.arguments(), run.results()).ok());
      ASSERT_TRUE(compiled_longs->executable->Run(other.arguments(), other.results()).ok());
      std::sort(x.begin(), x.end());
      std::sort(y.begin(), y.end(), std::greater<>());
      Literal first = Literal::Array<uint32_t>(Shape(ElementType::kU32, {size}), x);
      Literal second = Literal::Array<int64_t>(Shape(ElementType::kS64, {size}), y);
      EXPECT_TRUE(first == run.Result()) << size << " words of kind " << kind;
      EXPECT_TRUE(second == other.Result()) << size << " longs of kind " << kind;
    }
  }
}

// Values of which many are equal, or in order, or special.
TEST(SortOps, SpecialFloats) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (int64_t size : {30, 500, 20000}) {
    auto module = ir::ParseOrDie(SortOf("f32", Cat(size), 0, "LT"));
    std::vector<float> values(static_cast<size_t>(size));
    std::mt19937 random(5);
    for (float& v : values) {
      constexpr float kSome[] = {0.f, -0.f, 1.f, -1.f, kInf, -kInf, 1e-42f, -1e-42f, 3e38f};
      v = kSome[random() % 9];
    }
    Literal x = Literal::Array<float>(Shape(ElementType::kF32, {size}), values);
    CheckBits(*module, {x});
    CheckBits(*ir::ParseOrDie(SortOf("f32", Cat(size), 0, "GT")), {x});
    std::fill(values.begin(), values.end(), -0.f);
    CheckBits(*module, {Literal::Array<float>(x.shape(), values)});
  }
}

// What JAX sorts floats by: zeros are one, and so are NaNs, which come last.
constexpr char kCanonical[] = R"(HloModule m
compare { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  zero = TYPE[] constant(0)
  nan = TYPE[] constant(nan)
  az = pred[] compare(a, zero), direction=EQ
  an = pred[] compare(a, a), direction=NE
  bz = pred[] compare(b, zero), direction=EQ
  bn = pred[] compare(b, b), direction=NE
  a1 = TYPE[] select(az, zero, a)
  a2 = TYPE[] select(an, nan, a1)
  b1 = TYPE[] select(bz, zero, b)
  b2 = TYPE[] select(bn, nan, b1)
  ROOT c = pred[] compare(a2, b2), direction=LT, type=TOTALORDER }
ENTRY e { x = TYPE[SIZE] parameter(0)
  ROOT s = TYPE[SIZE] sort(x), dimensions={0}, is_stable=true, to_apply=compare })";
// By IEEE 754's total order, with the places.
constexpr char kTotal[] = R"(HloModule m
compare { a = TYPE[] parameter(0)
  b = TYPE[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=GT, type=TOTALORDER }
ENTRY e { x = TYPE[SIZE] parameter(0)
  y = s32[SIZE] iota(), iota_dimension=0
  ROOT s = (TYPE[SIZE], s32[SIZE]) sort(x, y), dimensions={0}, is_stable=true, to_apply=compare })";

std::string WithTypeAndSize(std::string text, std::string_view type, int64_t size) {
  for (auto [name, value] : {std::pair("TYPE", std::string(type)), {"SIZE", Cat(size)}}) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, 4, value);
  }
  return text;
}

Literal WithNans(ElementType type, int64_t size) {
  Literal x(Shape(type, {size}));
  std::mt19937 random(9);
  for (int64_t i = 0; i < size; ++i) {
    const double kSome[] = {0.,
                            -0.,
                            std::nan(""),
                            -std::nan(""),
                            1. / 0.,
                            -1. / 0.,
                            1.5,
                            -2.,
                            static_cast<double>(random() % 64)};
    Literal one = Literal::ScalarOf(type, kSome[random() % 9]);
    std::memcpy(x.data() + i * ByteWidth(type), one.data(), static_cast<size_t>(one.byte_size()));
  }
  return x;
}

TEST(SortOps, CanonicalAndTotalOrderOfNans) {
  for (auto [name, type] : {std::pair("f32", ElementType::kF32),
                            {"f64", ElementType::kF64},
                            {"f16", ElementType::kF16},
                            {"bf16", ElementType::kBF16}}) {
    for (int64_t size : {20, 333, 17000}) {
      for (const char* text : {kCanonical, kTotal}) {
        CheckBits(*ir::ParseOrDie(WithTypeAndSize(text, name, size)), {WithNans(type, size)});
      }
    }
  }
}

// The comparators that are no order of one number are merged, the others sorted by digits.
TEST(SortOps, KeysAreRecognised) {
  auto plan = [](const std::string& text) {
    auto loaded = Load(*ir::ParseOrDie(text), true);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return loaded.ok() ? loaded->lowered->ToString() : "";
  };
  for (std::string_view type : kTypes) {
    EXPECT_NE(plan(SortOf(type, "999", 0, "LT")).find("themselves"), std::string::npos) << type;
    EXPECT_NE(plan(PairSort(std::string(type), "first", "999")).find("by "), std::string::npos);
  }
  std::string canonical = plan(WithTypeAndSize(kCanonical, "f32", 999));
  EXPECT_NE(canonical.find("by numbers themselves"), std::string::npos) << canonical;
  std::string total = plan(WithTypeAndSize(kTotal, "f32", 999));
  EXPECT_NE(total.find("by total order descending"), std::string::npos) << total;
  // Its second operand is made in the kernel.
  EXPECT_EQ(total.find("iota"), std::string::npos) << total;
  EXPECT_EQ(plan(SortOf("f32", "999", 0, "LE")).find("by numbers"), std::string::npos);
  EXPECT_EQ(plan(PairSort("f32", "both", "999")).find("by numbers"), std::string::npos);
}

// Comparators that are no order at all: what comes out has the elements that went in.
TEST(SortOps, ComparatorsThatAreNoOrder) {
  for (const char* body :
       {"ROOT c = pred[] constant(true)", "ROOT c = pred[] compare(a, b), direction=LE",
        "ROOT c = pred[] compare(a, b), direction=NE",
        R"(p = u32[] bitcast-convert(a)
 q = u32[] bitcast-convert(b)
 x = u32[] multiply(p, q)
 k = u32[] constant(40503)
 y = u32[] multiply(x, k)
 z = u32[] add(y, p)
 h = u32[] constant(2147483648)
 ROOT c = pred[] compare(z, h), direction=GT)"}) {
    for (int64_t size : {7, 100, 50000}) {
      auto module = ir::ParseOrDie(Cat("HloModule m\nn { a = f32[] parameter(0)\n",
                                       "b = f32[] parameter(1)\n", body, " }\nENTRY e { x = f32[",
                                       size, "] parameter(0)\n ROOT s = f32[", size,
                                       "] sort(x), dimensions={0}, to_apply=n }"));
      std::vector<float> values(static_cast<size_t>(size));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>((i * 7919) % values.size());
      }
      Literal x = Literal::Array<float>(Shape(ElementType::kF32, {size}), values);
      auto result = testing::RunCompiled(*module, {x}, true);
      ASSERT_TRUE(result.ok()) << result.status().ToString();
      auto span = result->values<float>();
      std::vector<float> sorted(span.begin(), span.end());
      std::sort(sorted.begin(), sorted.end());
      std::sort(values.begin(), values.end());
      EXPECT_EQ(sorted, values) << body;
    }
  }
  // No rows, of an order that is found by trying.
  CheckBits(
      R"(HloModule m
n { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=NE }
ENTRY e { x = f32[0,70] parameter(0)
 ROOT s = f32[0,70] sort(x), dimensions={1}, to_apply=n })");
  // A plain comparison of floats among NaNs.
  for (int64_t size : {20, 333, 17000}) {
    Literal x = WithNans(ElementType::kF32, size);
    auto module = ir::ParseOrDie(SortOf("f32", Cat(size), 0, "LT"));
    auto result = testing::RunCompiled(*module, {x}, true);
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    auto bits = [](const Literal& l) {
      auto words = l.values<uint32_t>();
      std::vector<uint32_t> sorted(words.begin(), words.end());
      std::sort(sorted.begin(), sorted.end());
      return sorted;
    };
    EXPECT_EQ(bits(*result), bits(x));
  }
}

TEST(SortOps, ThreadsChangeNothing) {
  for (const std::string& text :
       {PairSort("f32", "both", "50000"), PairSort("f32", "first", "50000"),
        SortOf("f32", "300000", 0, "LT"), SortOf("s16", "500,100", 1, "LT")}) {
    auto module = ir::ParseOrDie(text);
    auto arguments = testing::RandomArguments(*module, 11);
    auto loaded = Load(*module, true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    Execution first(*loaded->artefact);
    first.SetArguments(arguments);
    ASSERT_TRUE(loaded->executable->Run(first.arguments(), first.results()).ok());
    for (int threads : {1, 3, 5}) {
      runtime::ThreadPool pool(threads);
      auto again = testing::LoadOnPool(loaded->artefact, pool);
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      Execution run(*loaded->artefact);
      run.SetArguments(arguments);
      ASSERT_TRUE((*again)->Run(run.arguments(), run.results()).ok());
      EXPECT_TRUE(run.SameBits(first)) << text;
    }
  }
}

std::string TopK(std::string_view type, std::string_view rows, int64_t size, int64_t k,
                 bool largest) {
  auto shape = [&](std::string_view t, int64_t last) { return Cat(t, "[", rows, last, "]"); };
  return Cat("HloModule m\nENTRY e { x = ", shape(type, size), " parameter(0)\n  ROOT t = (",
             shape(type, k), ", ", shape("s32", k), ") topk(x), k=", k,
             ", largest=", largest ? "true" : "false", " }");
}

TEST(SortOps, TopK) {
  for (std::string_view type : kTypes) {
    for (bool largest : {true, false}) {
      CheckBits(TopK(type, "3,", 150, 7, largest));
      CheckBits(TopK(type, "", 30, 30, largest));
    }
  }
  for (int64_t k : {0, 1, 5, 50, 2000, 40000}) CheckBits(TopK("f32", "", 40000, k, true));
  CheckBits(TopK("f32", "2,3,", 1, 1, true));
  CheckBits(TopK("f32", "9,", 3000, 10, false));
  CheckBits(*ir::ParseOrDie(TopK("f32", "", 5000, 900, true)), {WithNans(ElementType::kF32, 5000)});
}

// All elements enter the candidates, or all are equal.
TEST(SortOps, TopKOfOrderedElements) {
  auto module = ir::ParseOrDie(TopK("f32", "", 30000, 40, true));
  std::vector<float> values(30000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Shape shape(ElementType::kF32, {30000});
  CheckBits(*module, {Literal::Array<float>(shape, values)});
  std::reverse(values.begin(), values.end());
  CheckBits(*module, {Literal::Array<float>(shape, values)});
  CheckBits(*module, {Literal(shape)});
}

// Few are inserted one by one: among equal ones, NaNs, and keys that are the greatest of their
// type, as are those of the last place that is kept.
TEST(SortOps, TopKOfFew) {
  for (auto [name, type] : {std::pair("f32", ElementType::kF32),
                            {"f64", ElementType::kF64},
                            {"bf16", ElementType::kBF16},
                            {"s8", ElementType::kS8},
                            {"u64", ElementType::kU64}}) {
    for (int64_t k : {1, 2, 31, 32, 33}) {
      for (bool largest : {true, false}) {
        auto module = ir::ParseOrDie(TopK(name, "", 16 * k + 5, k, largest));
        if (IsFloat(type)) CheckBits(*module, {WithNans(type, 16 * k + 5)});
        CheckBits(*module, testing::RandomArguments(*module, 3));
        Literal all(Shape(type, {16 * k + 5}));
        CheckBits(*module, {all});
        std::memset(all.data(), 0xFF, static_cast<size_t>(all.byte_size()));
        CheckBits(*module, {all});
        if (type == ElementType::kF64) continue;
        // Two that are no NaNs at the end.
        std::memset(all.data() + all.byte_size() - 9, 0, 9);
        CheckBits(*module, {all});
      }
    }
  }
  // Rows, and chunks of one.
  CheckBits(TopK("f32", "37,", 1000, 8, true));
  CheckBits(TopK("f64", "", 60000, 8, true));
}

TEST(SortOps, OperandsThatAreComputed) {
  CheckBits(R"(HloModule m
compare { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s64[] parameter(2)
  j = s64[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[40,60] parameter(0)
  y = s32[40,60] parameter(1)
  n = f32[40,60] negate(x)
  t = f32[60,40] transpose(n), dimensions={1,0}
  w = s64[40,60] convert(y)
  v = s64[60,40] reshape(w)
  s = (f32[60,40], s64[60,40]) sort(t, v), dimensions={1}, to_apply=compare
  a = f32[60,40] get-tuple-element(s), index=0
  b = s64[60,40] get-tuple-element(s), index=1
  c = f32[60,40] convert(b)
  ROOT r = f32[60,40] multiply(a, c) })");
}

// A comparator that is no kernel's: it loops.
TEST(SortOps, UnsupportedComparatorIsNamed) {
  auto module = ir::ParseOrDie(R"(HloModule m
more { s = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(a, b), direction=LT }
next { s = (s32[], s32[]) parameter(0)
  a = s32[] get-tuple-element(s), index=0
  b = s32[] get-tuple-element(s), index=1
  one = s32[] constant(1)
  c = s32[] add(a, one)
  ROOT t = (s32[], s32[]) tuple(c, b) }
compare { a = s32[] parameter(0)
  b = s32[] parameter(1)
  t = (s32[], s32[]) tuple(a, b)
  w = (s32[], s32[]) while(t), condition=more, body=next
  c = s32[] get-tuple-element(w), index=0
  ROOT r = pred[] compare(a, c), direction=LT }
ENTRY e { x = s32[9] parameter(0)
  ROOT s = s32[9] sort(x), dimensions={0}, to_apply=compare })");
  auto loaded = Load(*module, true);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::kUnimplemented);
  EXPECT_NE(loaded.status().ToString().find("sort"), std::string::npos);
}

KILN_LABEL(gpu_sample, "SortOps.CanonicalAndTotalOrderOfNans", "SortOps.ComparatorsThatAreNoOrder",
           "SortOps.SeveralOperands", "SortOps.SpecialFloats");

}  // namespace
}  // namespace kiln
