// Factors by LAPACK's and XLA's custom calls, judged by what they are for: P A = L U, A = Q R.
#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numeric>

#include "device/reference/custom_calls.h"
#include "support/compiled.h"
#include "support/literal.h"
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

using Wide = std::complex<double>;

template <typename T>
double Epsilon() {
  return std::numeric_limits<decltype(std::abs(T()))>::epsilon();
}

std::string TypeText(const std::vector<int64_t>& sizes, std::string_view element) {
  return Cat("tensor<", Join(sizes, "x"), sizes.empty() ? "" : "x", element, ">");
}

std::string ElementText(ElementType type) {
  const std::string part = BitWidth(PartOf(type)) == 32 ? "f32" : "f64";
  return IsComplex(type) ? Cat("complex<", part, ">") : part;
}

// What says that a matrix is column-major, and an array of such rank behind it row-major.
std::string Layouts(int64_t rank, int64_t second_rank = 0) {
  std::vector<int64_t> matrix = {rank - 2, rank - 1}, second;
  for (int64_t d = rank - 3; d >= 0; --d) matrix.push_back(d);
  for (int64_t d = second_rank - 1; d >= 0; --d) second.push_back(d);
  auto text = [](const std::vector<int64_t>& order) {
    return Cat("dense<[", Join(order, ", "), "]> : tensor<", order.size(), "xindex>");
  };
  return Cat(" {operand_layouts = [", text(matrix), second_rank ? ", " : "",
             second_rank ? text(second) : "", "]}");
}

// A program for arrays of such sizes, and what it takes.
struct Program {
  std::string text;
  Shape shape;
};
Program LuOf(std::string_view target, ElementType type, std::vector<int64_t> sizes) {
  const bool is_lapack = target.starts_with("lapack");
  const int64_t m = sizes[sizes.size() - 2], n = sizes.back();
  std::vector<int64_t> pivots(sizes.begin(), sizes.end() - 2), last = pivots;
  pivots.push_back(std::min(m, n));
  if (!is_lapack) last.push_back(m);
  const std::string x = TypeText(sizes, ElementText(type));
  const std::string results = Cat(x, ", ", TypeText(pivots, "i32"), ", ", TypeText(last, "i32"));
  return {Cat("func.func @main(%x: ", x, ") -> (", results, ") {\n%0:3 = stablehlo.custom_call @",
              target, "(%x)", is_lapack ? Layouts(std::ssize(sizes)) : "", " : (", x, ") -> (",
              results, ")\nreturn %0#0, %0#1, %0#2 : ", results, "\n}\n"),
          Shape(type, sizes)};
}
// The factors, the taus, and as many columns of Q as there are taus.
Program QrOf(bool is_lapack, ElementType type, std::vector<int64_t> sizes) {
  const auto rank = std::ssize(sizes);
  const int64_t m = sizes[rank - 2], n = sizes.back(), k = std::min(m, n);
  std::vector<int64_t> taus(sizes.begin(), sizes.end() - 1), narrow = sizes;
  taus.back() = narrow.back() = k;
  const std::string element = ElementText(type), x = TypeText(sizes, element),
                    tau = TypeText(taus, element), q = TypeText(narrow, element);
  const char letter =
      IsComplex(type) ? (element == "complex<f32>" ? 'c' : 'z') : (element == "f32" ? 's' : 'd');
  const std::string lapack = Cat("lapack_", std::string(1, letter));
  const std::string factor = is_lapack ? lapack + "geqrf_ffi" : "Qr";
  const std::string product = !is_lapack        ? "ProductOfElementaryHouseholderReflectors"
                              : IsComplex(type) ? lapack + "ungqr_ffi"
                                                : lapack + "orgqr_ffi";
  std::vector<std::string> ranges;
  for (int64_t size : narrow) ranges.push_back(Cat("0:", size));
  return {Cat("func.func @main(%x: ", x, ") -> (", x, ", ", tau, ", ", q, ") {\n",
              "%0:2 = stablehlo.custom_call @", factor, "(%x)", is_lapack ? Layouts(rank) : "",
              " : (", x, ") -> (", x, ", ", tau, ")\n%s = stablehlo.slice %0#0 [",
              Join(ranges, ", "), "] : (", x, ") -> ", q, "\n%q = stablehlo.custom_call @", product,
              "(%s, %0#1)", is_lapack ? Layouts(rank, rank - 1) : "", " : (", q, ", ", tau, ") -> ",
              q, "\nreturn %0#0, %0#1, %q : ", x, ", ", tau, ", ", q, "\n}\n"),
          Shape(type, sizes)};
}

// What the evaluator gives for random elements, and for those with 0 all down a column, and what
// compiled code does.
template <typename T>
void ForResults(const Program& program,
                const std::function<void(const Literal& given, const Literal& found)>& check) {
  auto module = ImportText(program.text);
  ASSERT_TRUE(module.ok()) << module.status().ToString() << program.text;
  const auto columns = static_cast<size_t>(program.shape.dimensions().back().size());
  for (bool singular : {false, true}) {
    Literal given = SampleLiteral(program.shape, 7);
    const std::span<T> values = given.values<T>();
    for (size_t i = columns / 2; singular && i < values.size(); i += columns) values[i] = 0;
    auto evaluated = interp::Evaluate(**module, std::vector<Literal>{given},
                                      {.custom_call = device::CustomCallBy({})});
    ASSERT_TRUE(evaluated.ok()) << evaluated.status().ToString();
    check(given, *evaluated);
    if (singular) continue;
    auto compiled = testing::RunCompiled(**module, {given}, /*fuse=*/true);
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    check(given, *compiled);
  }
}

template <typename T>
void ExpectFactors(const Program& program, const Literal& given, const Literal& found) {
  const bool is_lapack = program.text.find("lapack") != std::string::npos;
  const int64_t rank = given.shape().rank(), m = given.shape().dim(rank - 2),
                n = given.shape().dim(rank - 1), k = std::min(m, n);
  const std::vector<Literal>& parts = found.elements();
  const std::span<const T> a = given.values<T>(), lu = parts[0].template values<T>();
  const std::span<const int32_t> pivots = parts[1].template values<int32_t>(),
                                 last = parts[2].template values<int32_t>();
  const double bound = 50 * static_cast<double>(k) * Epsilon<T>();
  for (int64_t at = 0; at * m * n < std::ssize(a); ++at) {
    std::vector<int32_t> order(static_cast<size_t>(m));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < k; ++i) {
      const int64_t row = pivots[at * k + i] - (is_lapack ? 1 : 0);
      ASSERT_TRUE(row >= i && row < m) << row;
      std::swap(order[i], order[row]);
    }
    if (!is_lapack) EXPECT_TRUE(std::equal(order.begin(), order.end(), &last[at * m]));
    int32_t singular = 0;
    auto element = [&](int64_t i, int64_t j) { return Wide(lu[at * m * n + i * n + j]); };
    for (int64_t i = 0; i < k && singular == 0; ++i) {
      if (element(i, i) == 0.0) singular = static_cast<int32_t>(i) + 1;
    }
    if (is_lapack) EXPECT_EQ(last[at], singular);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Wide sum = i <= j ? element(i, j) : 0.0;
        for (int64_t t = 0; t < std::min({i, j + 1, k}); ++t) sum += element(i, t) * element(t, j);
        const Wide wanted(a[at * m * n + order[i] * n + j]);
        // Elements grow little with random ones.
        EXPECT_LE(std::abs(sum - wanted), bound) << i << ", " << j << " of " << program.text;
        // With the largest one as the pivot, by |re| + |im|.
        if (j < i) EXPECT_LE(std::abs(element(i, j)), 1.5);
      }
    }
  }
}

template <typename T>
void ExpectReflections(const Literal& given, const Literal& found) {
  const int64_t rank = given.shape().rank(), m = given.shape().dim(rank - 2),
                n = given.shape().dim(rank - 1), k = std::min(m, n);
  const std::vector<Literal>& parts = found.elements();
  const std::span<const T> a = given.values<T>(), r = parts[0].values<T>(),
                           taus = parts[1].values<T>(), q = parts[2].values<T>();
  const double bound = 20 * static_cast<double>(m) * Epsilon<T>();
  for (int64_t at = 0; at * m * n < std::ssize(a); ++at) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        Wide sum = 0;
        for (int64_t t = 0; t < m; ++t) {
          sum += std::conj(Wide(q[at * m * k + t * k + i])) * Wide(q[at * m * k + t * k + j]);
        }
        EXPECT_LE(std::abs(sum - (i == j ? 1.0 : 0.0)), bound);
      }
      // What is on R's diagonal is real, and |I - tau v v'| is 1: |1 - tau| is 1 without a v.
      EXPECT_EQ(Wide(r[at * m * n + i * n + i]).imag(), 0.0);
      EXPECT_LE(std::abs(1.0 - Wide(taus[at * k + i])), 1 + bound);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Wide sum = 0;
        for (int64_t t = 0; t < std::min(k, j + 1); ++t) {
          sum += Wide(q[at * m * k + i * k + t]) * Wide(r[at * m * n + t * n + j]);
        }
        EXPECT_LE(std::abs(sum - Wide(a[at * m * n + i * n + j])), 2 * bound) << i << ", " << j;
      }
    }
  }
}

template <typename T>
void CheckAll(ElementType type, std::string_view lapack_lu) {
  using Sizes = std::vector<int64_t>;
  bool is_lapack = false;
  for (const Sizes& sizes : {Sizes{1, 1}, Sizes{6, 6}, Sizes{5, 9}, Sizes{9, 5}, Sizes{2, 3, 4, 4},
                             Sizes{40, 70}, Sizes{2, 70, 41}, Sizes{0, 3, 3}, Sizes{3, 0},
                             Sizes{19, 3, 3}, Sizes{9, 7, 4}, Sizes{70, 3, 5}, Sizes{8, 23, 23}}) {
    is_lapack = !is_lapack;
    const Program lu = LuOf(is_lapack ? lapack_lu : "LuDecomposition", type, sizes);
    ForResults<T>(lu, [&](const Literal& given, const Literal& found) {
      ExpectFactors<T>(lu, given, found);
    });
    ForResults<T>(QrOf(!is_lapack, type, sizes), ExpectReflections<T>);
  }
}

TEST(StablehloLinearAlgebra, F32) { CheckAll<float>(ElementType::kF32, "lapack_sgetrf_ffi"); }
TEST(StablehloLinearAlgebra, F64) { CheckAll<double>(ElementType::kF64, "lapack_dgetrf_ffi"); }
TEST(StablehloLinearAlgebra, C64) {
  CheckAll<std::complex<float>>(ElementType::kC64, "lapack_cgetrf_ffi");
}
TEST(StablehloLinearAlgebra, C128) {
  CheckAll<std::complex<double>>(ElementType::kC128, "lapack_zgetrf_ffi");
}

// The value by the reference device, as text.
std::string ValueOf(const Program& program, std::vector<float> x) {
  auto module = ImportText(program.text);
  if (!module.ok()) return module.status().ToString();
  const std::vector<Literal> arguments = {Literal::Array<float>(program.shape, x)};
  auto value = interp::Evaluate(**module, arguments, {.custom_call = device::CustomCallBy({})});
  return value.ok() ? value->ToString() : value.status().ToString();
}

// The first of equal sizes is the pivot.
TEST(StablehloLinearAlgebra, Values) {
  const Program program = LuOf("lapack_sgetrf_ffi", ElementType::kF32, {2, 2});
  const auto value = [&](std::vector<float> x) { return ValueOf(program, std::move(x)); };
  EXPECT_EQ(value({1, 2, 4, 8}), "({ { 4, 8 }, { 0.25, 0 } }, {2, 2}, 2)");
  EXPECT_EQ(value({-3, 1, 3, 5}), "({ { -3, 1 }, { -1, 6 } }, {1, 2}, 0)");
  EXPECT_EQ(value({0, 2, 0, 8}), "({ { 0, 2 }, { 0, 8 } }, {1, 2}, 1)");
}

// The signs and the scale of LAPACK's.
TEST(StablehloLinearAlgebra, ValuesOfReflections) {
  const Program program = QrOf(/*is_lapack=*/true, ElementType::kF32, {2, 1});
  const auto value = [&](std::vector<float> x) { return ValueOf(program, std::move(x)); };
  EXPECT_EQ(value({3, 4}), "({ {-5}, {0.5} }, {1.6}, { {-0.6}, {-0.8} })");
  EXPECT_EQ(value({-3, 4}), "({ {5}, {-0.5} }, {1.6}, { {-0.6}, {0.8} })");
  EXPECT_EQ(value({2, 0}), "({ {2}, {0} }, {0}, { {1}, {0} })");
  EXPECT_EQ(value({0, 0}), "({ {0}, {0} }, {0}, { {1}, {0} })");
  // Their squares are out of range.
  EXPECT_EQ(value({3e30f, 4e30f}), "({ {-5e+30}, {0.5} }, {1.6}, { {-0.6}, {-0.8} })");
  EXPECT_EQ(value({3e-30f, 4e-30f}), "({ {-5e-30}, {0.5} }, {1.6}, { {-0.6}, {-0.8} })");
}

TEST(StablehloLinearAlgebra, Errors) {
  Program program = LuOf("LuDecomposition", ElementType::kF32, {2, 2});
  std::string text = program.text;
  for (size_t at; (at = text.find("f32")) != text.npos;) text.replace(at, 3, "i16");
  EXPECT_NE(Imported(text).find("expected matrices of floats or complex"), std::string::npos)
      << Imported(text);
  EXPECT_NE(BodyValue(Constant("x", "1.0", "tensor<2xf32>") +
                          "%0:3 = stablehlo.custom_call @LuDecomposition(%x) : (tensor<2xf32>) -> "
                          "(tensor<2xf32>, tensor<2xi32>, tensor<2xi32>)",
                      "%0#0", "tensor<2xf32>")
                .find("expected matrices"),
            std::string::npos);
  const std::string wide = BodyValue(
      Constant("x", "[[1.0, 2.0]]", "tensor<1x2xf32>") + Constant("t", "[1.0]", "tensor<1xf32>") +
          "%0 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%x, %t) : "
          "(tensor<1x2xf32>, tensor<1xf32>) -> tensor<1x2xf32>",
      "%0", "tensor<1x2xf32>");
  EXPECT_NE(wide.find("at least as many rows as columns"), std::string::npos) << wide;
}

}  // namespace
}  // namespace kiln::stablehlo
