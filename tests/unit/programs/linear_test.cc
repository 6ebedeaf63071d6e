// The library's decompositions and solutions against the evaluator's.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "runtime/lib/function.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/library_calls.h"

namespace kiln {
namespace {

using testing::CallLibrary;
using testing::CallLibraryInPlace;
using testing::NormalLiteral;
using testing::RelativeError;

constexpr ElementType kTypes[] = {ElementType::kF16, ElementType::kBF16, ElementType::kF32,
                                  ElementType::kF64, ElementType::kC64,  ElementType::kC128};

double Epsilon(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return 0x1p-10;
    case ElementType::kBF16:
      return 0x1p-7;
    case ElementType::kF32:
    case ElementType::kC64:
      return std::numeric_limits<float>::epsilon();
    default:
      return std::numeric_limits<double>::epsilon();
  }
}

// f(i, j, real part, imaginary part of the element of a matrix) for all matrices, as doubles.
template <typename F>
void ForEachElement(Literal& literal, F&& f) {
  const Shape& shape = literal.shape();
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  auto visit = [&](auto zero, int64_t parts) {
    using T = decltype(zero);
    std::span<T> values = literal.values<T>();
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      double x[2] = {static_cast<double>(values[static_cast<size_t>(k * parts)]), 0};
      if (parts == 2) x[1] = static_cast<double>(values[static_cast<size_t>(2 * k + 1)]);
      f(k / columns % rows, k % columns, x[0], x[1]);
      for (int64_t p = 0; p < parts; ++p) {
        values[static_cast<size_t>(k * parts + p)] = static_cast<T>(x[p]);
      }
    }
  };
  switch (shape.type()) {
    case ElementType::kC64:
      return visit(float{}, 2);
    case ElementType::kC128:
      return visit(double{}, 2);
    default:
      VisitKernelType(shape.type(), [&](auto zero) { visit(zero, 1); });
  }
}

// Values whose diagonal makes them positive definite, and well-conditioned as triangles; what an op
// must not read is NaN.
Literal Diagonal(const Shape& shape, bool lower, uint64_t seed) {
  Literal a = NormalLiteral(shape, seed);
  const double n = static_cast<double>(shape.dim(shape.rank() - 1));
  ForEachElement(a, [&](int64_t i, int64_t j, double& re, double& im) {
    if (i == j) re = 2 * n + re;
    if (lower ? j > i : j < i) re = im = std::numeric_limits<double>::quiet_NaN();
  });
  return a;
}

std::string ShapeText(ElementType type, std::vector<int64_t> dims) {
  return Shape(type, std::span<const int64_t>(dims)).ToString();
}

void Compare(const ir::Module& module, const std::vector<Literal>& operands, size_t in_place,
             double bound) {
  const ir::Instruction& call = *module.entry()->root();
  SCOPED_TRACE(ir::ToHloText(module));
  auto expected = interp::Evaluate(module, operands);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  auto actual = CallLibrary(call, operands, testing::Pool());
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_LE(RelativeError(*expected, *actual), bound);
  auto same = CallLibraryInPlace(call, operands, in_place, testing::Pool());
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE(*same == *actual);
  runtime::ThreadPool alone(1);
  auto again = CallLibrary(call, operands, alone);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again == *actual);
}

void CompareCholesky(ElementType type, const std::vector<int64_t>& dims, bool lower) {
  auto module = ir::ParseOrDie(
      Cat("ENTRY e { a = ", ShapeText(type, dims),
          " parameter(0) ROOT l = cholesky(a), lower=", lower ? "true" : "false", " }"));
  std::vector<Literal> operands;
  operands.push_back(Diagonal(module->entry()->root()->shape(), lower, 5));
  Compare(*module, operands, 0, 4 * Epsilon(type));
}

TEST(Cholesky, AgreesWithTheEvaluator) {
  for (ElementType type : kTypes) {
    for (bool lower : {true, false}) {
      for (std::vector<int64_t> dims : {std::vector<int64_t>{1, 1},
                                        {2, 2},
                                        {3, 3},
                                        {23, 23},
                                        {24, 24},
                                        {65, 65},
                                        {150, 150},
                                        {0, 0},
                                        {5, 3, 3},
                                        {2, 3, 30, 30},
                                        {0, 4, 4},
                                        {19, 23, 23},
                                        {3000, 4, 4}}) {
        CompareCholesky(type, dims, lower);
      }
    }
  }
}

TEST(Cholesky, LargeOnesGoBlockByBlock) {
  for (ElementType type : {ElementType::kF32, ElementType::kF64, ElementType::kC64}) {
    for (bool lower : {true, false}) CompareCholesky(type, {601, 601}, lower);
  }
}

// Each matrix of a batch fails by itself.
TEST(Cholesky, WhatIsNotPositiveDefiniteIsNan) {
  for (int64_t n : {1, 2, 5, 40, 530}) {
    const int64_t count = n < 24 ? 19 : 6;
    auto module = ir::ParseOrDie(Cat("ENTRY e { a = f32[", count, ",", n, ",", n,
                                     "] parameter(0) ROOT l = cholesky(a), lower=true }"));
    std::vector<Literal> operands;
    operands.push_back(Diagonal(module->entry()->root()->shape(), true, 3));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::span<float> a = operands[0].values<float>();
    auto at = [&](int64_t matrix, int64_t i) -> float& {
      return a[static_cast<size_t>((matrix * n + i) * n + i)];
    };
    at(1, n - 1) = -1;
    at(2, 0) = 0;
    at(3, n / 2) = nan;
    at(4, 0) = std::numeric_limits<float>::infinity();  // as the arithmetic has it
    auto result = CallLibrary(*module->entry()->root(), operands, testing::Pool());
    ASSERT_TRUE(result.ok());
    auto count_nans = [&](int64_t matrix) {
      int64_t nans = 0;
      for (int64_t k = 0; k < n * n; ++k) {
        nans += std::isnan(result->values<float>()[static_cast<size_t>(matrix * n * n + k)]);
      }
      return nans;
    };
    EXPECT_EQ(count_nans(0), 0) << n;
    for (int64_t bad : {1, 2, 3}) EXPECT_EQ(count_nans(bad), n * n) << n << ", " << bad;
    for (int64_t good : {int64_t{5}, count - 1}) EXPECT_EQ(count_nans(good), 0) << n;
    auto expected = interp::Evaluate(*module, operands);
    ASSERT_TRUE(expected.ok());
    EXPECT_LT(RelativeError(*expected, *result), 1e-5) << n;
  }
}

struct TriangularCase {
  ElementType type;
  bool left, lower, unit;
  std::string_view op;
  int64_t n, m;  // of the triangle, and the right sides
  std::vector<int64_t> batch = {};
};

void CompareTriangularSolve(const TriangularCase& c) {
  std::vector<int64_t> a = c.batch, b = c.batch;
  a.insert(a.end(), {c.n, c.n});
  b.insert(b.end(), {c.left ? c.n : c.m, c.left ? c.m : c.n});
  auto module = ir::ParseOrDie(
      Cat("ENTRY e { a = ", ShapeText(c.type, a), " parameter(0) b = ", ShapeText(c.type, b),
          " parameter(1) ROOT x = triangular-solve(a, b), left_side=", c.left, ", lower=", c.lower,
          ", unit_diagonal=", c.unit, ", transpose_a=", c.op, " }"));
  std::vector<Literal> operands;
  operands.push_back(Diagonal(module->entry()->parameter(0)->shape(), c.lower, 5));
  if (c.unit) {
    // Small, as with ones on the diagonal solutions grow.
    ForEachElement(operands[0], [&](int64_t i, int64_t j, double& re, double& im) {
      re /= static_cast<double>(4 * c.n), im /= static_cast<double>(4 * c.n);
      if (i == j) re = im = std::numeric_limits<double>::quiet_NaN();
    });
  }
  operands.push_back(NormalLiteral(module->entry()->parameter(1)->shape(), 6));
  Compare(*module, operands, 1, 8 * Epsilon(c.type));
}

TEST(TriangularSolve, AgreesWithTheEvaluator) {
  for (ElementType type : kTypes) {
    for (bool left : {true, false}) {
      for (bool lower : {true, false}) {
        for (std::string_view op : {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}) {
          for (bool unit : {true, false}) {
            for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 1},
                                {3, 2},
                                {2, 0},
                                {0, 3},
                                {17, 5},
                                {30, 1},
                                {30, 7},
                                {70, 33}}) {
              for (std::vector<int64_t> batch : {std::vector<int64_t>{}, {3}, {2, 2}, {19}}) {
                if ((batch.size() == 2 && n > 3) || (batch == std::vector<int64_t>{19} && n > 17)) {
                  continue;
                }
                CompareTriangularSolve({type, left, lower, unit, op, n, m, batch});
              }
            }
          }
        }
      }
    }
  }
}

TEST(TriangularSolve, LargeOnesGoBlockByBlock) {
  for (ElementType type : {ElementType::kF32, ElementType::kC128}) {
    for (bool left : {true, false}) {
      for (bool lower : {true, false}) {
        CompareTriangularSolve({type, left, lower, false, "NO_TRANSPOSE", 601, 9});
        CompareTriangularSolve({type, left, lower, true, "ADJOINT", 40, 1100});
      }
    }
  }
}

// Divisions by zero and infinities come out as the evaluator's, whatever the size.
TEST(TriangularSolve, SingularMatricesDivide) {
  for (int64_t n : {2, 40}) {
    for (bool lower : {true, false}) {
      auto module = ir::ParseOrDie(
          Cat("ENTRY e { a = f64[", n, ",", n, "] parameter(0) b = f64[", n,
              ",3] parameter(1) ROOT x = triangular-solve(a, b), left_side=true, lower=", lower,
              ", transpose_a=NO_TRANSPOSE }"));
      std::vector<Literal> operands;
      operands.push_back(Diagonal(module->entry()->parameter(0)->shape(), lower, 5));
      operands.push_back(NormalLiteral(module->entry()->parameter(1)->shape(), 6));
      std::span<double> a = operands[0].values<double>(), b = operands[1].values<double>();
      // The last one that is solved: nothing else depends on it.
      const int64_t last = lower ? n - 1 : 0;
      a[static_cast<size_t>(last * n + last)] = 0;
      auto result = CallLibrary(*module->entry()->root(), operands, testing::Pool());
      auto expected = interp::Evaluate(*module, operands);
      ASSERT_TRUE(result.ok() && expected.ok());
      EXPECT_LT(RelativeError(*expected, *result), 1e-13) << n;
      EXPECT_TRUE(std::isinf(result->values<double>()[static_cast<size_t>(last * 3)]));
      // The first one: 0 / 0 there, which all others are made of.
      const int64_t first = n - 1 - last;
      a[static_cast<size_t>(first * n + first)] = 0;
      for (int64_t c = 0; c < 3; ++c) b[static_cast<size_t>(first * 3 + c)] = 0;
      result = CallLibrary(*module->entry()->root(), operands, testing::Pool());
      ASSERT_TRUE(result.ok());
      for (double x : result->values<double>()) EXPECT_TRUE(std::isnan(x));
    }
  }
}

TEST(TriangularSolve, RefusesWhatDoesNotFit) {
  auto make = [](std::string_view target, std::vector<Shape> operands, Shape result) {
    CallSignature signature{
        std::move(operands), {std::move(result)}, 0, "left_side=1 lower=1 transpose_a=TRANSPOSE"};
    auto made = runtime::lib::FindInLibrary(target)->make(signature);
    return made.ok() ? Code::kOk : made.status().code();
  };
  const Shape a(ElementType::kF32, {3, 3}), b(ElementType::kF32, {3, 2}),
      wide(ElementType::kF64, {3, 2}), whole(ElementType::kS32, {3, 3});
  EXPECT_EQ(make("kiln.triangular-solve", {a, b}, b), Code::kOk);
  EXPECT_EQ(make("kiln.triangular-solve", {a, b}, a), Code::kInvalidArgument);
  EXPECT_EQ(make("kiln.triangular-solve", {b, b}, b), Code::kInvalidArgument);
  EXPECT_EQ(make("kiln.triangular-solve", {a, wide}, wide), Code::kInvalidArgument);
  EXPECT_EQ(make("kiln.triangular-solve", {a}, a), Code::kInvalidArgument);
  EXPECT_EQ(make("kiln.cholesky", {a}, a), Code::kOk);
  EXPECT_EQ(make("kiln.cholesky", {b}, b), Code::kInvalidArgument);
  EXPECT_EQ(make("kiln.cholesky", {whole}, whole), Code::kUnimplemented);
}

}  // namespace
}  // namespace kiln
