// The math library: every function by itself, and programs that are made of such functions.
#include <cmath>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {
namespace {

std::string Program(std::string_view body) { return Cat("HloModule m\nENTRY e {\n", body, "}\n"); }

// tanh and sigmoid by turns, eight in all, each of the last one's value plus the operand.
std::string Chain(int64_t n) {
  std::string shape = Cat("f32[", n, "]");
  std::string text = Cat("x = ", shape, " parameter(0)\n");
  std::string last = "x";
  for (int i = 0; i < 8; ++i) {
    text += Cat("f", i, " = ", shape, i % 2 ? " logistic(" : " tanh(", last, ")\n");
    last = Cat("s", i);
    text += Cat(i == 7 ? "ROOT " : "", last, " = ", shape, " add(f", i, ", x)\n");
  }
  return Program(text);
}

// Call and put of n options: spot, strike and time are arrays, rate and volatility are constants.
std::string BlackScholes(int64_t n) {
  std::string shape = Cat("f32[", n, "]");
  std::string text;
  for (auto [name, number] : {std::pair{"spot", 0}, {"strike", 1}, {"time", 2}}) {
    text += Cat(name, " = ", shape, " parameter(", number, ")\n");
  }
  auto constant = [&](std::string_view name, double value) {
    text += Cat(name, "_0 = f32[] constant(", value, ")\n", name, " = ", shape, " broadcast(", name,
                "_0), dimensions={}\n");
  };
  auto op = [&](std::string_view name, std::string_view op, std::string_view operands) {
    text += Cat(name, " = ", shape, " ", op, "(", operands, ")\n");
  };
  constexpr double kRate = 0.02, kVolatility = 0.3;
  constant("drift", kRate + kVolatility * kVolatility / 2);
  constant("minus_rate", -kRate);
  constant("volatility", kVolatility);
  constant("half", 0.5);
  constant("root_half", std::sqrt(0.5));
  constant("one", 1);
  op("root", "sqrt", "time");
  op("spread", "multiply", "volatility, root");
  op("ratio", "divide", "spot, strike");
  op("log_ratio", "log", "ratio");
  op("growth", "multiply", "drift, time");
  op("sum", "add", "log_ratio, growth");
  op("d1", "divide", "sum, spread");
  op("d2", "subtract", "d1, spread");
  for (std::string_view d : {"d1", "d2"}) {
    op(Cat(d, "_scaled"), "multiply", Cat(d, ", root_half"));
    op(Cat(d, "_erf"), "erf", Cat(d, "_scaled"));
    op(Cat(d, "_plus"), "add", Cat(d, "_erf, one"));
    op(Cat("n_", d), "multiply", Cat(d, "_plus, half"));
    op(Cat("m_", d), "subtract", Cat("one, n_", d));
  }
  op("decay", "multiply", "minus_rate, time");
  op("discount", "exponential", "decay");
  op("present", "multiply", "strike, discount");
  op("call_gain", "multiply", "spot, n_d1");
  op("call_cost", "multiply", "present, n_d2");
  op("call", "subtract", "call_gain, call_cost");
  op("put_gain", "multiply", "present, m_d2");
  op("put_cost", "multiply", "spot, m_d1");
  op("put", "subtract", "put_gain, put_cost");
  text += Cat("ROOT r = (", shape, ", ", shape, ") tuple(call, put)\n");
  return Program(text);
}

struct Range {
  float low, high;
};

void Time(Report& report, std::string_view name, const std::string& program,
          std::initializer_list<Range> operands, double bound_ms) {
  for (int threads : {1, Cpus()}) {
    Compiled c(program, threads);
    if (!c.ok()) return report.Note(name, c.error());
    size_t number = 0;
    for (Range r : operands) c.Fill(number++, r.low, r.high);
    report.Add(Cat(name, ".threads", threads), c.Seconds() * 1e3, "ms",
               threads > 1 ? AtMost(bound_ms) : Bound{});
  }
}

}  // namespace

KILN_BENCH(math_functions) {
  constexpr int64_t n = 4096;
  for (const char* type : {"f32", "f64"}) {
    std::string shape = Cat(type, "[", n, "]");
    for (const char* op : {"acos",
                           "acosh",
                           "asin",
                           "asinh",
                           "atanh",
                           "cbrt",
                           "cosh",
                           "cosine",
                           "erf",
                           "exponential",
                           "exponential-minus-one",
                           "log",
                           "log-plus-one",
                           "logistic",
                           "rsqrt",
                           "sine",
                           "sinh",
                           "sqrt",
                           "tan",
                           "tanh"}) {
      Compiled c(Program(Cat("x = ", shape, " parameter(0) ROOT y = ", shape, " ", op, "(x)\n")),
                 1);
      if (!c.ok()) return report.Note("math_functions", c.error());
      // Of a range that most have; 1 and more for acosh.
      if (shape[1] == '3')
        c.Fill(0, op == std::string_view("acosh") ? 1 : 0.01f,
               op == std::string_view("acosh") ? 5 : 0.99f);
      report.Add(Cat("math.", op, ".", type), c.Seconds() / n * 1e9, "ns");
    }
  }
}

// What PyTorch's Inductor with SLEEF needs for the same on a quiet machine of the class, with two
// threads: 39.9 ms and 1.72 ms.
KILN_BENCH(math_chain) { Time(report, "math_chain.16M", Chain(16 << 20), {{-2, 2}}, 39.9); }
KILN_BENCH(math_black_scholes) {
  Time(report, "math_black_scholes.1M", BlackScholes(1 << 20), {{50, 150}, {60, 140}, {0.1f, 2}},
       1.72);
}

}  // namespace kiln::bench
