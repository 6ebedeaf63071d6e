// Every element type in compiled code, for three vector widths, against the evaluator: bit by bit
// but for elementary functions and reductions of half types, which may be one step off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln {
namespace {

constexpr ElementType kTypes[] = {
    ElementType::kPred, ElementType::kS8,  ElementType::kS16, ElementType::kS32, ElementType::kS64,
    ElementType::kU8,   ElementType::kU16, ElementType::kU32, ElementType::kU64, ElementType::kF16,
    ElementType::kBF16, ElementType::kF32, ElementType::kF64};
constexpr ElementType kHalves[] = {ElementType::kF16, ElementType::kBF16};

// Values of a type: all where there are few, else small, large and random ones, and those around
// powers of two.
Literal Values(ElementType type, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Literal l(Shape(type, {count}));
  int64_t width = ByteWidth(type), bits = 8 * width;
  bool all = bits <= 16 && count == int64_t{1} << bits;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t value = static_cast<uint64_t>(i);
    if (!all) {
      value = random();
      switch (random() % 4) {
        case 0:
          value >>= random() % static_cast<uint64_t>(bits);
          break;
        case 1:
          value = (uint64_t{1} << random() % static_cast<uint64_t>(bits)) + random() % 5 - 2;
          // Near halfway between two numbers of few digits.
          if (random() % 2 == 0) value += value >> (random() % 2 == 0 ? 8 : 11);
          break;
        case 2:
          value = ~uint64_t{0} - value % 5;
          break;
        default:
          break;
      }
    }
    if (IsPred(type)) value &= 1;
    if (IsFloat(type) && random() % 4 == 0 && !all) {
      // Numbers that integers of all sizes have near them.
      double number =
          std::ldexp(static_cast<double>(random() % 8192) - 4096, static_cast<int>(random() % 60));
      if (random() % 2 == 0) number *= 1 + 0x1p-40;
      Literal scalar = Literal::ScalarOf(type, number / 16);
      std::memcpy(&value, scalar.data(), static_cast<size_t>(width));
    }
    std::memcpy(l.data() + i * width, &value, static_cast<size_t>(width));
  }
  return l;
}

// How many numbers of a half type lie between two, or 1000 where one is a NaN.
int64_t Steps(const Literal& a, const Literal& b, int64_t i) {
  double x = a.AsDouble(i), y = b.AsDouble(i);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0 : 1000;
  auto place = [&](const Literal& l) {
    int bits = l.values<uint16_t>()[static_cast<size_t>(i)];
    return bits & 0x8000 ? -(bits & 0x7fff) : bits;
  };
  return std::abs(place(a) - place(b));
}

bool Same(const Literal& a, const Literal& b, int64_t i) {
  ElementType type = a.shape().type();
  if (IsFloat(type) && std::isnan(a.AsDouble(i)) && std::isnan(b.AsDouble(i))) return true;
  auto width = static_cast<size_t>(ByteWidth(type));
  return std::memcmp(a.data() + static_cast<size_t>(i) * width,
                     b.data() + static_cast<size_t>(i) * width, width) == 0;
}

struct Module {
  std::vector<Shape> parameters;
  // Lines of text that define a value each, and how many steps it may be off.
  struct Line {
    std::string text;
    int64_t steps = 0;
  };
  std::vector<Line> lines;
  std::string computations;

  std::string Text() const {
    std::string text = Cat("HloModule m\n", computations, "ENTRY e {\n");
    for (size_t i = 0; i < parameters.size(); ++i) {
      text += Cat("  p", i, " = ", parameters[i], " parameter(", i, ")\n");
    }
    std::string results;
    for (size_t i = 0; i < lines.size(); ++i) {
      text += Cat("  r", i, " = ", lines[i].text, "\n");
      results += Cat(i > 0 ? ", r" : "r", i);
    }
    return Cat(text, "  ROOT t = tuple(", results, ")\n}\n");
  }
};

void Check(const Module& m, const std::vector<Literal>& arguments) {
  auto module = ir::ParseOrDie(m.Text());
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (int bytes : {64, 32, 16}) {
    for (bool fuse : {true, false}) {
      if (!fuse && bytes != 64) continue;
      auto actual = testing::RunCompiled(*module, arguments, fuse, bytes);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      for (size_t k = 0; k < m.lines.size(); ++k) {
        const Literal &e = expected->elements()[k], &a = actual->elements()[k];
        for (int64_t i = 0; i < e.shape().num_elements(); ++i) {
          if (Same(e, a, i)) continue;
          if (m.lines[k].steps > 0 && Steps(e, a, i) <= m.lines[k].steps) continue;
          std::string operands;
          for (const Literal& x : arguments) {
            if (x.shape().num_elements() == e.shape().num_elements())
              operands += Cat(" ", x.AsDouble(i));
          }
          ADD_FAILURE() << m.lines[k].text << " [" << i << "] of" << operands << " is "
                        << a.AsDouble(i) << ", expected " << e.AsDouble(i) << "; " << bytes
                        << "-byte vectors" << (fuse ? "" : ", op by op");
          return;
        }
      }
    }
  }
}

std::string ArrayText(ElementType type, int64_t count) {
  return Cat(TypeName(type), "[", count, "]");
}

TEST(CompiledHalves, UnaryOpsAtEveryValue) {
  for (ElementType type : kHalves) {
    std::string shape = ArrayText(type, 65536);
    Module m{{Shape(type, {65536})}, {}, ""};
    for (std::string_view op : {"abs", "ceil", "copy", "floor", "negate", "round-nearest-afz",
                                "round-nearest-even", "sign", "sqrt", "real", "imag"}) {
      m.lines.push_back({Cat(shape, " ", op, "(p0)")});
    }
    m.lines.push_back({"pred[65536] is-finite(p0)"});
    for (std::string_view op :
         {"acos", "acosh", "asin", "asinh", "atanh", "cbrt", "cosh", "cosine", "erf", "exponential",
          "exponential-minus-one", "log", "log-plus-one", "logistic", "rsqrt", "sine", "sinh",
          "tan", "tanh"}) {
      m.lines.push_back({Cat(shape, " ", op, "(p0)"), 1});
    }
    Check(m, {Values(type, 65536, 0)});
  }
}

TEST(CompiledHalves, BinaryOps) {
  for (ElementType type : kHalves) {
    constexpr int64_t n = 100003;
    std::string shape = ArrayText(type, n);
    Module m{{Shape(type, {n}), Shape(type, {n}), Shape(type, {n})}, {}, ""};
    for (std::string_view op :
         {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"}) {
      m.lines.push_back({Cat(shape, " ", op, "(p0, p1)")});
    }
    for (std::string_view direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
      m.lines.push_back({Cat("pred[", n, "] compare(p0, p1), direction=", direction)});
    }
    m.lines.push_back({Cat(shape, " clamp(p0, p1, p2)")});
    m.lines.push_back({Cat(shape, " power(p0, p1)"), 1});
    m.lines.push_back({Cat(shape, " atan2(p0, p1)"), 1});
    std::vector<Literal> arguments = {Values(type, n, 1), Values(type, n, 2), Values(type, n, 3)};
    // Half of the pairs near each other.
    for (int64_t i = 0; i < n; i += 2) {
      arguments[1].values<uint16_t>()[i] =
          static_cast<uint16_t>(arguments[0].values<uint16_t>()[i] + (i * 7919) % 3001);
    }
    Check(m, arguments);
  }
}

// Ops in one kernel round one by one.
TEST(CompiledHalves, FusedOpsRoundEach) {
  for (ElementType type : kHalves) {
    constexpr int64_t n = 50021;
    std::string shape = ArrayText(type, n);
    Module m{{Shape(type, {n}), Shape(type, {n}), Shape(type, {n})}, {}, ""};
    m.lines = {{Cat(shape, " multiply(p0, p1)")}, {Cat(shape, " add(r0, p2)")},
               {Cat(shape, " divide(r1, p0)")},   {Cat(shape, " subtract(r2, r0)")},
               {Cat(shape, " sqrt(r3)")},         {Cat("f32[", n, "] convert(r3)")},
               {Cat("s32[", n, "] convert(r2)")}, {Cat(shape, " convert(r6)")}};
    Check(m, {Values(type, n, 4), Values(type, n, 5), Values(type, n, 6)});
  }
}

TEST(CompiledConvert, EveryTypeToEveryType) {
  for (ElementType from : kTypes) {
    int64_t n = BitWidth(from) <= 16 && !IsPred(from) ? int64_t{1} << BitWidth(from) : 70001;
    Module m{{Shape(from, {n})}, {}, ""};
    for (ElementType to : kTypes) m.lines.push_back({Cat(ArrayText(to, n), " convert(p0)")});
    Check(m, {Values(from, n, 7)});
  }
}

TEST(CompiledInts, BinaryOps) {
  for (ElementType type : kTypes) {
    if (!IsInteger(type)) continue;
    int64_t n = 65536;
    std::string shape = ArrayText(type, n);
    Module m{{Shape(type, {n}), Shape(type, {n})}, {}, ""};
    for (std::string_view op : {"add", "and", "divide", "maximum", "minimum", "mulhi", "multiply",
                                "or", "power", "remainder", "shift-left", "shift-right-arithmetic",
                                "shift-right-logical", "subtract", "xor"}) {
      m.lines.push_back({Cat(shape, " ", op, "(p0, p1)")});
    }
    for (std::string_view direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
      m.lines.push_back({Cat("pred[", n, "] compare(p0, p1), direction=", direction)});
    }
    for (std::string_view op : {"abs", "count-leading-zeros", "negate", "not", "popcnt", "sign"}) {
      m.lines.push_back({Cat(shape, " ", op, "(p0)")});
    }
    m.lines.push_back({Cat(shape, " clamp(p1, p0, r0)")});
    Literal x = Values(type, n, 8), y = Values(type, n, 9);
    if (BitWidth(type) == 8) {
      for (int64_t i = 0; i < n; ++i) {
        x.values<uint8_t>()[i] = static_cast<uint8_t>(i >> 8);
        y.values<uint8_t>()[i] = static_cast<uint8_t>(i);
      }
    }
    Check(m, {x, y});
  }
}

// IEEE 754's total order, and the bits of numbers beside it.
TEST(CompiledFloats, TotalOrder) {
  for (ElementType type :
       {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64}) {
    constexpr int64_t n = 40007;
    Module m{{Shape(type, {n}), Shape(type, {n})}, {}, ""};
    for (std::string_view direction : {"EQ", "NE", "GE", "GT", "LE", "LT"}) {
      m.lines.push_back(
          {Cat("pred[", n, "] compare(p0, p1), direction=", direction, ", type=TOTALORDER")});
    }
    std::vector<Literal> arguments = {Values(type, n, 14), Values(type, n, 15)};
    // Signs of what is equal; and no NaN of f16 that signals, which registers do not hold.
    auto width = static_cast<size_t>(ByteWidth(type));
    for (size_t i = 0; i < n; ++i) {
      if (i % 3 == 0) {
        std::memcpy(arguments[1].data() + i * width, arguments[0].data() + i * width, width);
      }
      if (i % 6 == 0) arguments[1].data()[(i + 1) * width - 1] ^= std::byte{0x80};
      for (Literal& l : arguments) {
        if (type == ElementType::kF16 && std::isnan(l.AsDouble(static_cast<int64_t>(i)))) {
          l.values<uint16_t>()[i] |= 0x200;
        }
      }
    }
    Check(m, arguments);
  }
}

TEST(CompiledFloats, StochasticConvert) {
  for (auto [from, random] : {std::pair{ElementType::kF16, ElementType::kU16},
                              {ElementType::kBF16, ElementType::kU16},
                              {ElementType::kF32, ElementType::kU32},
                              {ElementType::kF64, ElementType::kU64}}) {
    constexpr int64_t n = 70001;
    Module m{{Shape(from, {n}), Shape(random, {n})}, {}, ""};
    for (std::string_view to : {"s8", "s16", "s32", "s64"}) {
      m.lines.push_back({Cat(to, "[", n, "] stochastic-convert(p0, p1)")});
    }
    Check(m, {Values(from, n, 16), Values(random, n, 17)});
  }
}

// Moves keep every bit, whatever the layout: NaNs that signal, too.
TEST(CompiledMoves, KeepBits) {
  for (ElementType type : kTypes) {
    std::string name(TypeName(type));
    for (auto [rows, columns] : {std::pair{37, 67}, {64, 128}}) {
      Module m{{Shape(type, {rows, columns}), Shape(type, {rows, columns}), Shape::Scalar(type),
                Shape(ElementType::kPred, {rows, columns})},
               {},
               ""};
      std::string shape = Cat(name, "[", rows, ",", columns, "]");
      m.lines = {{Cat(name, "[", columns, ",", rows, "] transpose(p0), dimensions={1,0}")},
                 {Cat(shape, " select(p3, p0, p1)")},
                 {Cat(name, "[", rows + 3, ",", 2 * columns, "] pad(p0, p2), padding=1_2x1_0_1")},
                 {Cat(name, "[", rows, ",", 2 * columns, "] concatenate(p0, p1), dimensions={1}")},
                 {Cat(name, "[", rows - 1, ",", (columns + 1) / 2, "] slice(p1), slice={[1:", rows,
                      "], [0:", columns, ":2]}")},
                 {Cat(name, "[", columns * rows, "] reshape(r0)")},
                 {Cat(name, "[", columns, ",", rows, "] bitcast(p0)")},
                 {Cat(name, "[", rows, ",3,", columns, "] broadcast(p1), dimensions={0,2}")}};
      std::vector<Literal> arguments;
      for (const Shape& s : m.parameters) {
        Literal flat = Values(s.type(), s.num_elements(), 10 + arguments.size());
        Literal l(s);
        std::memcpy(l.data(), flat.data(), static_cast<size_t>(l.byte_size()));
        arguments.push_back(std::move(l));
      }
      auto module = ir::ParseOrDie(m.Text());
      auto expected = interp::Evaluate(*module, arguments);
      ASSERT_TRUE(expected.ok()) << expected.status().ToString();
      for (int bytes : {64, 32, 16}) {
        for (bool fuse : {true, false}) {
          if (!fuse && bytes != 64) continue;
          auto actual = testing::RunCompiled(*module, arguments, fuse, bytes);
          ASSERT_TRUE(actual.ok()) << actual.status().ToString();
          for (size_t k = 0; k < m.lines.size(); ++k) {
            EXPECT_TRUE(actual->elements()[k] == expected->elements()[k])
                << m.lines[k].text << ", " << bytes << "-byte vectors";
          }
        }
      }
    }
  }
}

// Small numbers, whose sums and products are exact however they are associated.
Literal SmallNumbers(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  Literal l(shape);
  VisitKernelType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    for (T& value : l.values<T>()) {
      int number = static_cast<int>(random() % 9) - 4;
      if constexpr (std::same_as<T, bool>) {
        value = number & 1;
      } else {
        value = static_cast<T>(number);
      }
    }
  });
  return l;
}

std::string Reducer(std::string_view op, std::string_view type) {
  return Cat(op, " {\n  a = ", type, "[] parameter(0)\n  b = ", type,
             "[] parameter(1)\n  ROOT r = ", type, "[] ", op, "(a, b)\n}\n");
}

TEST(CompiledReduce, EveryTypeAlongEveryDimension) {
  for (ElementType type : kTypes) {
    std::string name(TypeName(type));
    for (auto [rows, columns] : {std::pair{37, 67}, {300, 703}}) {
      Module m{{Shape(type, {rows, columns})}, {}, ""};
      std::vector<std::string_view> ops = {"add", "maximum", "minimum", "multiply"};
      if (!IsFloat(type)) ops.insert(ops.end(), {"and", "or", "xor"});
      if (IsFloat(type)) ops.pop_back();
      m.lines.push_back({Cat(name, "[] constant(", IsPred(type) ? "true" : "1", ")")});
      for (std::string_view op : ops) {
        m.computations += Reducer(op, name);
        m.lines.push_back(
            {Cat(name, "[", rows, "] reduce(p0, r0), dimensions={1}, to_apply=", op)});
        m.lines.push_back(
            {Cat(name, "[", columns, "] reduce(p0, r0), dimensions={0}, to_apply=", op)});
        m.lines.push_back({Cat(name, "[] reduce(p0, r0), dimensions={0,1}, to_apply=", op)});
      }
      Check(m, {SmallNumbers(m.parameters[0], 11)});
    }
  }
}

// What is reduced is rounded first, the sum once at last; by the letter otherwise.
TEST(CompiledReduce, OfHalvesRoundsOnce) {
  for (ElementType type : kHalves) {
    std::string name(TypeName(type));
    Module m{{Shape(type, {40, 1000})}, {}, Cat(Reducer("add", name), Reducer("multiply", name))};
    m.computations += Cat("general {\n  a = ", name, "[] parameter(0)\n  b = ", name,
                          "[] parameter(1)\n  h = ", name, "[] constant(0.75)\n  c = ", name,
                          "[] multiply(a, h)\n  ROOT r = ", name, "[] add(c, b)\n}\n");
    m.lines = {{Cat(name, "[] constant(1)")},
               {Cat(name, "[40,1000] multiply(p0, p0)")},
               {Cat(name, "[40] reduce(r1, r0), dimensions={1}, to_apply=add"), 1},
               {Cat(name, "[1000] reduce(r1, r0), dimensions={0}, to_apply=add"), 1},
               {Cat(name, "[1000] reduce(p0, r0), dimensions={0}, to_apply=multiply"), 1},
               {Cat(name, "[40] reduce(p0, r0), dimensions={1}, to_apply=general")},
               {Cat(name, "[1000] reduce(p0, r0), dimensions={0}, to_apply=general")}};
    Literal x(m.parameters[0]);
    std::mt19937_64 random(12);
    for (auto& bits : x.values<uint16_t>()) {
      double value = 0.5 + static_cast<double>(random() % 10000) / 10000;
      std::memcpy(&bits, Literal::ScalarOf(type, value).data(), 2);
    }
    Check(m, {x});
  }
}

TEST(CompiledDot, EveryType) {
  for (ElementType type : kTypes) {
    std::string name(TypeName(type));
    struct Sizes {
      int64_t m, n, k;
    };
    for (auto [rows, columns, k] : {Sizes{5, 7, 9}, {33, 65, 40}, {1, 130, 64}, {2, 3, 0}}) {
      Module m{{Shape(type, {rows, k}), Shape(type, {k, columns}), Shape(type, {columns, k}),
                Shape(type, {k, rows})},
               {},
               ""};
      std::vector<ElementType> results = {type};
      if (IsHalf(type)) results.push_back(ElementType::kF32);
      if (BitWidth(type) < 32 && IsSigned(type)) results.push_back(ElementType::kS32);
      if (BitWidth(type) < 32 && IsUnsigned(type)) results.push_back(ElementType::kU32);
      for (ElementType result : results) {
        std::string shape = Cat(TypeName(result), "[", rows, ",", columns, "]");
        m.lines.push_back(
            {Cat(shape, " dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}")});
        m.lines.push_back(
            {Cat(shape, " dot(p0, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}")});
        m.lines.push_back(
            {Cat(shape, " dot(p3, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}")});
      }
      std::vector<Literal> arguments;
      for (const Shape& s : m.parameters)
        arguments.push_back(SmallNumbers(s, 13 + arguments.size()));
      Check(m, arguments);
      // An operand that is known when the code is made.
      auto constant = [&](const Literal& l) {
        return Cat(l.shape(), " constant(", l.ToString(), ")");
      };
      if (rows != 33 && rows != 1) continue;
      Module c{{m.parameters[0]}, {}, ""};
      c.lines = {{constant(arguments[1])},
                 {Cat(name, "[", rows, ",", columns,
                      "] dot(p0, r0), lhs_contracting_dims={1}, rhs_contracting_dims={0}")}};
      Check(c, {arguments[0]});
    }
  }
}

}  // namespace
}  // namespace kiln
