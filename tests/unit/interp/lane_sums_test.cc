// Sums of products, many at once: the same bits as one by one.
#include "interp/lane_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/hlo.h"
#include "tensor/sample.h"

namespace kiln::interp {
namespace {

Literal ValueOf(const std::string& instruction, const std::vector<Literal>& operands) {
  auto module = ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n  x = ", operands[0].shape(),
                                   " parameter(0)\n  y = ", operands[1].shape(),
                                   " parameter(1)\n  ROOT r = ", instruction, "\n}\n"));
  auto result = Evaluate(*module, operands);
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  return *std::move(result);
}

// The elements of the last dimension from `begin` to `end`.
Literal Columns(const Literal& from, int64_t begin, int64_t end) {
  Shape shape = from.shape();
  const int64_t last = shape.rank() - 1, columns = shape.dim(last);
  shape.set_dimension(last, Dimension(end - begin));
  Literal out(shape);
  const int64_t width = ByteWidth(shape.type());
  for (int64_t k = 0; k < shape.num_elements(); ++k) {
    const int64_t row = k / (end - begin), column = begin + k % (end - begin);
    std::memcpy(out.data() + k * width, from.data() + (row * columns + column) * width,
                static_cast<size_t>(width));
  }
  return out;
}

// With numbers that are not finite, zeros of both signs, and sums that cancel.
Literal Sample(ElementType type, std::initializer_list<int64_t> dims, uint64_t seed) {
  Literal value = SampleLiteral(Shape(type, dims), seed);
  if (type == ElementType::kF32) {
    auto v = value.values<float>();
    v[0] = -0.0f;
    if (seed % 2 == 0) v[v.size() / 2] = std::numeric_limits<float>::infinity();
    if (seed % 3 == 0) v[v.size() - 1] = std::nanf("");
  }
  return value;
}

// The element type of operands and of the result, as in text.
struct Types {
  ElementType operands;
  const char* result;
};
constexpr Types kTypes[] = {{ElementType::kF32, "f32"},     {ElementType::kF64, "f64"},
                            {ElementType::kF16, "f16"},     {ElementType::kBF16, "bf16"},
                            {ElementType::kBF16, "f32"},    {ElementType::kF32, "f64"},
                            {ElementType::kF8E4M3FN, "f32"}};

TEST(LaneSums, DotsHaveTheBitsOfSingleSums) {
  uint64_t seed = 0;
  for (const auto& [type, result] : kTypes) {
    for (int64_t terms : {1, 31, 32, 33, 64, 100}) {
      const int64_t rows = 3, columns = 41;
      const Literal x = Sample(type, {rows, terms}, ++seed),
                    y = Sample(type, {terms, columns}, ++seed);
      const Literal all = ValueOf(Cat(result,
                                      "[3,41] dot(x, y), lhs_contracting_dims={1}, "
                                      "rhs_contracting_dims={0}"),
                                  {x, y});
      const Literal other = ValueOf(Cat(result,
                                        "[41,3] dot(x, y), lhs_contracting_dims={0}, "
                                        "rhs_contracting_dims={1}"),
                                    {y, x});
      for (int64_t n = 0; n < columns; ++n) {
        // Too few sums for lanes.
        const Literal one = ValueOf(Cat(result,
                                        "[3,1] dot(x, y), lhs_contracting_dims={1}, "
                                        "rhs_contracting_dims={0}"),
                                    {x, Columns(y, n, n + 1)});
        const int64_t width = one.byte_size() / rows;
        for (int64_t m = 0; m < rows; ++m) {
          ASSERT_FALSE(HasLanes(rows));
          const auto* expected = one.data() + m * width;
          const bool nan = std::isnan(one.AsDouble(m));
          for (const auto& [actual, k] :
               {std::pair(&all, m * columns + n), {&other, n * rows + m}}) {
            if (nan) {
              EXPECT_TRUE(std::isnan(actual->AsDouble(k)));
            } else {
              EXPECT_EQ(
                  std::memcmp(actual->data() + k * width, expected, static_cast<size_t>(width)), 0)
                  << result << " " << terms << " terms, row " << m << ", column " << n << ": "
                  << actual->AsDouble(k) << ", not " << one.AsDouble(m);
            }
          }
        }
      }
    }
  }
}

TEST(LaneSums, ConvolutionsHaveTheBitsOfSingleSums) {
  uint64_t seed = 0;
  for (const auto& [type, result] : kTypes) {
    for (const char* window : {"size=3x3 pad=1_1x1_1", "size=3x3 stride=2x2 lhs_dilate=2x1",
                               "size=2x3 rhs_dilate=1x2 rhs_reversal=1x1"}) {
      for (int64_t features : {1, 7}) {
        const bool short_window = std::string_view(window).starts_with("size=2");
        const Literal x = Sample(type, {2, 9, 8, features}, ++seed);
        const Literal y = Sample(type, {short_window ? 2 : 3, 3, features, 37}, ++seed);
        // The shape of the result is inferred: as many features as the filter has.
        const auto convolve = [&](const Literal& filter) {
          auto module = ir::ParseOrDie(Cat("HloModule m\nENTRY e {\n  x = ", x.shape(),
                                           " parameter(0)\n  ROOT y = ", filter.shape(),
                                           " parameter(1)\n}\n"));
          ir::Computation* entry = module->entry();
          ir::InstructionSpec spec{.opcode = Opcode::kConvolution,
                                   .operands = {entry->parameter(0), entry->parameter(1)}};
          auto text = ir::ParseOrDie(
              Cat("HloModule m\nENTRY e {\n  x = f32[2,9,8,1] parameter(0)\n  y = f32[",
                  short_window ? 2 : 3, ",3,1,4] parameter(1)\n  ROOT r = f32[",
                  short_window       ? "2,8,4,4"
                  : window[9] == 's' ? "2,8,3,4"
                                     : "2,9,8,4",
                  "] convolution(x, y), window={", window, "}, dim_labels=b01f_01io->b01f\n}\n"));
          spec.attributes = text->entry()->root()->attributes();
          Shape shape = text->entry()->root()->shape();
          shape.set_type(*TypeByName(result));
          shape.set_dimension(3, filter.shape().dimension(3));
          spec.shape = shape;
          entry->set_root(entry->Create(std::move(spec)));
          auto value = Evaluate(*module, std::vector<Literal>{x, filter});
          EXPECT_TRUE(value.ok()) << value.status().ToString();
          return *std::move(value);
        };
        const Literal all = convolve(y);
        for (int64_t n = 0; n < 37; n += 3) {
          const Literal one = convolve(Columns(y, n, n + 1)), same = Columns(all, n, n + 1);
          for (int64_t k = 0; k < one.shape().num_elements(); ++k) {
            const int64_t width = ByteWidth(one.shape().type());
            if (std::isnan(one.AsDouble(k))) {
              ASSERT_TRUE(std::isnan(same.AsDouble(k)));
            } else {
              ASSERT_EQ(std::memcmp(one.data() + k * width, same.data() + k * width,
                                    static_cast<size_t>(width)),
                        0)
                  << result << " " << window << " feature " << n << " element " << k;
            }
          }
        }
      }
    }
  }
}

TEST(LaneSums, GroupsOfFeatures) {
  // Two groups of 8 features, as two convolutions.
  const Literal x = Sample(ElementType::kF32, {1, 6, 6, 4}, 1),
                y = Sample(ElementType::kF32, {3, 3, 2, 16}, 5);
  const Literal all = ValueOf(
      "f32[1,4,4,16] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f, "
      "feature_group_count=2",
      {x, y});
  for (int64_t group : {0, 1}) {
    const Literal one =
        ValueOf("f32[1,4,4,8] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f",
                {Columns(x, 2 * group, 2 * group + 2), Columns(y, 8 * group, 8 * group + 8)});
    EXPECT_EQ(one, Columns(all, 8 * group, 8 * group + 8));
  }
}

}  // namespace
}  // namespace kiln::interp
