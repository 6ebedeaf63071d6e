// Kernels that are bound by memory: what goes over rows, and transposes. Each is held against a
// copy of as many bytes by the same number of threads, in turn with it: the rate that its bytes,
// read once and written once, can reach.
#include <algorithm>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int64_t kRows = 4096, kFewRows = 64, kColumns = 1024;

std::string Module(std::string_view body) {
  return Cat("HloModule m\n",
             "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n",
             "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n",
             "ENTRY e {\n", body, "}\n");
}

// Lines of HLO over arrays of some rows, which are reduced along dimension `along`.
class Body {
 public:
  explicit Body(int64_t count, int along = 1)
      : all(Cat("f32[", count, ",", kColumns, "]")),
        across(Cat("f32[", kColumns, ",", count, "]")),
        reduced(Cat("f32[", along == 1 ? count : kColumns, "]")),
        along_(along) {}

  const std::string all, across, reduced;
  const std::string columns = Cat("f32[", kColumns, "]");

  void Add(std::string_view name, std::string_view shape, std::string_view op) {
    text_ += Cat(name, " = ", shape, " ", op, "\n");
  }
  // A constant of every element.
  void Constant(std::string_view name, double value) {
    Add(Cat(name, "_0"), "f32[]", Cat("constant(", value, ")"));
    Add(name, all, Cat("broadcast(", name, "_0), dimensions={}"));
  }
  // A reduction, spread over what is reduced.
  void Reduced(std::string_view name, std::string_view operands, std::string_view by) {
    Add(Cat(name, "_one"), reduced,
        Cat("reduce(", operands, "), dimensions={", along_, "}, to_apply=", by));
    Add(name, all, Cat("broadcast(", name, "_one), dimensions={", 1 - along_, "}"));
  }
  void OfColumns(std::string_view name, int parameter) {
    Add(Cat(name, "_column"), columns, Cat("parameter(", parameter, ")"));
    Add(name, all, Cat("broadcast(", name, "_column), dimensions={1}"));
  }
  std::string Program(std::string_view root, bool transposed = false) const {
    if (!transposed) return Module(Cat(text_, "ROOT result = ", all, " ", root, "\n"));
    return Module(Cat(text_, "made = ", all, " ", root, "\nROOT result = ", across,
                      " transpose(made), dimensions={1,0}\n"));
  }

 private:
  const int along_;
  std::string text_;
};

std::string Softmax(int64_t rows, int along = 1, bool transposed = false) {
  Body b(rows, along);
  b.Add("x", b.all, "parameter(0)");
  b.Add("low", "f32[]", "constant(-inf)");
  b.Add("zero", "f32[]", "constant(0)");
  b.Reduced("largest", "x, low", "max");
  b.Add("below", b.all, "subtract(x, largest)");
  b.Add("power", b.all, "exponential(below)");
  b.Reduced("sum", "power, zero", "add");
  return b.Program("divide(power, sum)", transposed);
}

// Along 0 as in batch normalisation.
std::string Normalised(int64_t rows, int along = 1) {
  Body b(rows, along);
  b.Add("x", b.all, "parameter(0)");
  b.OfColumns("scale", 1);
  b.OfColumns("offset", 2);
  b.Add("zero", "f32[]", "constant(0)");
  b.Constant("count", static_cast<double>(along == 1 ? kColumns : rows));
  b.Constant("epsilon", 1e-5);
  b.Reduced("sum", "x, zero", "add");
  b.Add("mean", b.all, "divide(sum, count)");
  b.Add("centred", b.all, "subtract(x, mean)");
  b.Add("square", b.all, "multiply(centred, centred)");
  b.Reduced("squares", "square, zero", "add");
  b.Add("variance", b.all, "divide(squares, count)");
  b.Add("above_zero", b.all, "add(variance, epsilon)");
  b.Add("deviation", b.all, "rsqrt(above_zero)");
  b.Add("normal", b.all, "multiply(centred, deviation)");
  b.Add("scaled", b.all, "multiply(normal, scale)");
  return b.Program("add(scaled, offset)");
}

std::string BiasGeluScale(int64_t rows) {
  Body b(rows);
  b.Add("x", b.all, "parameter(0)");
  b.OfColumns("bias", 1);
  b.OfColumns("scale", 2);
  b.Constant("half", 0.5);
  b.Constant("root_half", 0.70710678118654752);
  b.Constant("one", 1);
  b.Add("biased", b.all, "add(x, bias)");
  b.Add("narrowed", b.all, "multiply(biased, root_half)");
  b.Add("erf", b.all, "erf(narrowed)");
  b.Add("above_zero", b.all, "add(erf, one)");
  b.Add("halved", b.all, "multiply(biased, half)");
  b.Add("gelu", b.all, "multiply(halved, above_zero)");
  return b.Program("multiply(gelu, scale)");
}

// The program over rows that stay in the second cache: the time that its arithmetic takes.
void AddInCache(Report& report, std::string_view name, const std::string& program) {
  Compiled c(program, 1);
  if (!c.ok()) return report.Note(name, c.error());
  c.Fill(0, -2, 2);
  double seconds = Measure([&] { c.Run(); }).median;
  report.Add(Cat(name, ".", kFewRows, "x", kColumns, ".threads1"),
             8.0 * static_cast<double>(kFewRows * kColumns) / seconds / 1e9, "GB/s");
}

// The program beside copies of its n elements, in the same memory.
void AddOfCopy(Report& report, std::string_view name, const std::string& program, int64_t n,
               double bound) {
  for (int threads : {1, Cpus()}) {
    Compiled c(program, threads);
    if (!c.ok()) return report.Note(name, c.error());
    c.Fill(0, -2, 2);
    auto size = static_cast<size_t>(n);
    std::span<const float> from(c.argument(0), size);
    std::span<float> to(c.result(0), size);
    auto copy = [&](Stores stores) { Copy(from, to, stores, c.pool()); };
    std::array<std::function<void()>, 3> calls = {
        [&] { c.Run(); }, [&] { copy(Stores::kOrdinary); }, [&] { copy(Stores::kNonTemporal); }};
    std::vector<double> seconds = MediansInTurn(calls, 41);
    double best = std::min(seconds[1], seconds[2]), bytes = 8.0 * static_cast<double>(n);
    std::string prefix = Cat(name, ".threads", threads);
    report.Add(prefix, bytes / seconds[0] / 1e9, "GB/s");
    report.Add(Cat(prefix, ".copy"), bytes / best / 1e9, "GB/s");
    report.Add(Cat(prefix, ".of_copy"), best / seconds[0], "",
               threads > 1 ? AtLeast(bound) : Bound{});
    if (threads == 1) {
      report.Add(Cat(name, ".kernels"), static_cast<double>(plan::CountKernels(c.program().steps)),
                 "", AtMost(1));
    }
  }
}

}  // namespace

KILN_BENCH(rows_softmax) {
  AddOfCopy(report, "rows_softmax.4096x1024", Softmax(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_softmax", Softmax(kFewRows));
}
KILN_BENCH(rows_layer_norm) {
  AddOfCopy(report, "rows_layer_norm.4096x1024", Normalised(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_layer_norm", Normalised(kFewRows));
}
KILN_BENCH(rows_bias_gelu_scale) {
  AddOfCopy(report, "rows_bias_gelu_scale.4096x1024", BiasGeluScale(kRows), kRows * kColumns, 0.8);
  AddInCache(report, "rows_bias_gelu_scale", BiasGeluScale(kFewRows));
}
// Strips of columns read memory in pieces, and what is kept of them goes through the second cache.
KILN_BENCH(rows_columns) {
  constexpr int64_t n = kRows * kColumns;
  AddOfCopy(report, "columns_softmax.4096x1024", Softmax(kRows, 0), n, 0.25);
  AddOfCopy(report, "columns_normalised.4096x1024", Normalised(kRows, 0), n, 0.3);
}
KILN_BENCH(rows_transposed) {
  constexpr int64_t n = kRows * kColumns;
  AddOfCopy(report, "rows_softmax_transposed.4096x1024", Softmax(kRows, 1, true), n, 0.3);
  AddOfCopy(report, "columns_softmax_transposed.4096x1024", Softmax(kRows, 0, true), n, 0.2);
}
KILN_BENCH(rows_transpose) {
  constexpr int64_t n = 4096;
  std::string shape = Cat("f32[", n, ",", n, "]");
  AddOfCopy(report, "rows_transpose.4096x4096",
            Module(Cat("x = ", shape, " parameter(0) ROOT t = ", shape,
                       " transpose(x), dimensions={1,0}\n")),
            n * n, 0.7);
}

}  // namespace kiln::bench
