#include "row_programs.h"

#include <string_view>

#include "base/strings.h"

namespace kiln::bench {
namespace {

// Lines of HLO over arrays of some rows of 1024, which are reduced along dimension `along`.
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

}  // namespace

std::string Module(std::string_view body) {
  return Cat("HloModule m\n",
             "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n",
             "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n",
             "ENTRY e {\n", body, "}\n");
}

std::string Softmax(int64_t rows, int along, bool transposed) {
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

std::string Normalised(int64_t rows, int along) {
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

std::string Transpose(int64_t rows, int64_t columns) {
  return Module(Cat("x = f32[", rows, ",", columns, "] parameter(0)\nROOT t = f32[", columns, ",",
                    rows, "] transpose(x), dimensions={1,0}\n"));
}

}  // namespace kiln::bench
