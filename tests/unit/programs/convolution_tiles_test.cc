// Convolutions by transformed tiles (passes/expand/convolution_tiles.cc), within the bound that
// docs/numerics.md states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Loaded;

// So many that transforms pay for vectors of all sizes.
constexpr int64_t kInputs = 64, kOutputs = 64;

struct Case {
  int64_t batch, rows, columns;
  int64_t low = 1, high = 1;  // padding of the rows; columns have 1
  std::string filter = "01io";

  int64_t places() const { return rows + low + high - 2; }
};

// A filter's elements, of magnitudes that differ.
float FilterAt(int64_t number) {
  return static_cast<float>((number * 7919 % 1013 - 506) / 64.0 * (number % 5 == 0 ? 8 : 1));
}

std::string Text(const Case& c) {
  std::string numbers, dims;
  auto size = [](char label) { return label == 'i' ? kInputs : label == 'o' ? kOutputs : 3; };
  for (char label : c.filter) dims += Cat(dims.empty() ? "" : ",", size(label));
  int64_t number = 0;
  std::function<std::string(size_t)> array = [&](size_t d) {
    if (d == c.filter.size()) return Cat(FilterAt(number++));
    std::string text = "{";
    for (int64_t k = 0; k < size(c.filter[d]); ++k) text += Cat(k > 0 ? ", " : "", array(d + 1));
    return text + "}";
  };
  return Cat("HloModule m\nENTRY e {\n  x = f32[", c.batch, ",", c.rows, ",", c.columns, ",",
             kInputs, "] parameter(0)\n  b = f32[", kOutputs, "] parameter(1)\n  w = f32[", dims,
             "] constant(", array(0), ")\n  y = f32[", c.batch, ",", c.places(), ",", c.columns,
             ",", kOutputs, "] convolution(x, w), window={size=3x3 pad=", c.low, "_", c.high,
             "x1_1}, dim_labels=b01f_", c.filter, "->b01f\n  offsets = f32[", c.batch, ",",
             c.places(), ",", c.columns, ",", kOutputs,
             "] broadcast(b), dimensions={3}\n  ROOT r = f32[", c.batch, ",", c.places(), ",",
             c.columns, ",", kOutputs, "] add(y, offsets)\n}\n");
}

// A program compiled for vectors of so many bytes.
class Program {
 public:
  Program(const ir::Module& module, int bytes) : loaded_(testing::Load(module, true, bytes)) {
    EXPECT_TRUE(loaded_.ok()) << loaded_.status().ToString();
  }

  Literal operator()(const std::vector<Literal>& arguments) const {
    if (!loaded_.ok()) return {};
    testing::Execution run(*loaded_->artefact);
    run.SetArguments(arguments);
    const Status status = loaded_->executable->Run(run.arguments(), run.results());
    EXPECT_TRUE(status.ok()) << status.ToString();
    return run.Result();
  }

 private:
  Result<Loaded> loaded_;
};

// The transforms and products on magnitudes, subtractions being additions.
std::vector<double> Magnitudes(const Case& c, const Literal& x) {
  const double g[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, .5, .5}, {0, 0, 1}};
  const int b[4][4] = {{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}};
  const int a[2][4] = {{1, 1, 1, 0}, {0, 1, 1, 1}};
  std::vector<int64_t> strides(128, 0);
  int64_t stride = 1;
  for (size_t d = c.filter.size(); d-- > 0;) {
    strides[static_cast<size_t>(c.filter[d])] = stride;
    stride *= c.filter[d] == 'i' ? kInputs : c.filter[d] == 'o' ? kOutputs : 3;
  }
  auto image = [&](int64_t n, int64_t row, int64_t column, int64_t in) {
    row -= c.low, column -= 1;
    if (row < 0 || row >= c.rows || column < 0 || column >= c.columns) return 0.0;
    return std::abs(x.AsDouble(((n * c.rows + row) * c.columns + column) * kInputs + in));
  };
  std::vector<double> made(static_cast<size_t>(c.batch * c.places() * c.columns * kOutputs));
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t row = 0; row < c.places(); row += 2) {
      for (int64_t column = 0; column < c.columns; column += 2) {
        for (int64_t out = 0; out < kOutputs; ++out) {
          double m[4][4] = {};
          for (int64_t in = 0; in < kInputs; ++in) {
            for (int r = 0; r < 4; ++r) {
              for (int s = 0; s < 4; ++s) {
                double v = 0, u = 0;
                for (int k = 0; k < 4; ++k) {
                  for (int l = 0; l < 4; ++l) {
                    if (b[r][k] * b[s][l] != 0) v += image(n, row + k, column + l, in);
                  }
                }
                for (int k = 0; k < 3; ++k) {
                  for (int l = 0; l < 3; ++l) {
                    u += g[r][k] * g[s][l] *
                         std::abs(FilterAt(k * strides['0'] + l * strides['1'] + in * strides['i'] +
                                           out * strides['o']));
                  }
                }
                m[r][s] += v * u;
              }
            }
          }
          for (int r = 0; r < 2 && row + r < c.places(); ++r) {
            for (int s = 0; s < 2 && column + s < c.columns; ++s) {
              double sum = 0;
              for (int k = 0; k < 4; ++k) {
                for (int l = 0; l < 4; ++l) sum += a[r][k] * a[s][l] * m[k][l];
              }
              made[static_cast<size_t>(
                  ((n * c.places() + row + r) * c.columns + column + s) * kOutputs + out)] = sum;
            }
          }
        }
      }
    }
  }
  return made;
}

TEST(ConvolutionTiles, AreWithinTheBound) {
  const Case cases[] = {
      {1, 16, 16}, {2, 18, 8, 0, 0},  {2, 11, 10, 2, 1, "oi01"}, {16, 4, 4, 1, 1, "i1o0"},
      {2, 15, 13}, {3, 11, 12, 0, 2}, {2, 14, 9, 0, 2, "o01i"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(Text(c).substr(0, 100));
    auto module = ir::ParseOrDie(Text(c));
    const std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const std::vector<double> magnitudes = Magnitudes(c, arguments[0]);
    for (int bytes : {64, 32, 16}) {
      const Literal actual = Program(*module, bytes)(arguments);
      double largest = 0;
      for (size_t k = 0; k < magnitudes.size(); ++k) {
        const auto at = static_cast<int64_t>(k);
        const double error = std::abs(actual.AsDouble(at) - expected->AsDouble(at));
        // And the evaluator's rounding, and the addition of the offset.
        const double bound = std::ldexp(static_cast<double>(kInputs + 7) * magnitudes[k], -24) +
                             std::ldexp(std::abs(expected->AsDouble(at)) + 1, -22);
        EXPECT_LE(error, bound) << k;
        largest = std::max(largest, error);
      }
      // Sums of products of these have the evaluator's bits only by chance.
      EXPECT_GT(largest, 0);
    }
  }
}

// What is no number goes to the places whose windows have it, and no others.
TEST(ConvolutionTiles, SpreadNoNans) {
  const Case c{1, 16, 17};
  auto module = ir::ParseOrDie(Text(c));
  const std::vector<Literal> arguments = testing::RandomArguments(*module, 2);
  const Program program(*module, 32);
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t column : {8, 9, 10, 11, 15, 16}) {
      std::vector<Literal> changed = arguments;
      changed[0].values<float>()[static_cast<size_t>((row * c.columns + column) * kInputs + 3)] =
          std::numeric_limits<float>::quiet_NaN();
      const Literal made = program(changed);
      int64_t wrong = 0;
      for (int64_t k = 0; k < c.places() * c.columns * kOutputs; ++k) {
        const int64_t to_row = k / kOutputs / c.columns, to_column = k / kOutputs % c.columns;
        const bool sees = std::abs(to_row - row) <= 1 && std::abs(to_column - column) <= 1;
        wrong += std::isnan(made.AsDouble(k)) != sees;
      }
      EXPECT_EQ(wrong, 0) << row << " " << column;
    }
  }
}

}  // namespace
}  // namespace kiln
