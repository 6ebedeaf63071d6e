// LAPACK's functions in the custom calls that JAX writes for CPUs: programs of one call, run by
// compiled code and by the reference device, and matrices to judge their results by.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "device/reference/custom_calls.h"
#include "support/compiled.h"
#include "support/library_calls.h"
#include "support/stablehlo_import.h"

namespace kiln::stablehlo::lapack {

using Wide = std::complex<double>;
using Sizes = std::vector<int64_t>;

inline constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF64, ElementType::kC64,
                                         ElementType::kC128};

inline double Epsilon(ElementType type) {
  return BitWidth(PartOf(type)) == 32 ? std::numeric_limits<float>::epsilon()
                                      : std::numeric_limits<double>::epsilon();
}

// --- Matrices in double precision; vectors are matrices of one column, numbers of one element

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Wide> elements;

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  Wide& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(i * columns + j)]; }
  Wide operator()(int64_t i, int64_t j) const {
    return elements[static_cast<size_t>(i * columns + j)];
  }
};

template <typename F>
inline Matrix Make(int64_t m, int64_t n, F&& f) {
  Matrix x(m, n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) x(i, j) = f(i, j);
  }
  return x;
}
inline Matrix Identity(int64_t n) {
  return Make(n, n, [](int64_t i, int64_t j) { return i == j ? 1.0 : 0.0; });
}
inline Matrix Diagonal(const Matrix& x) {
  return Make(x.rows, x.rows, [&](int64_t i, int64_t j) { return i == j ? x(i, 0) : Wide(0); });
}
inline Matrix operator*(const Matrix& x, const Matrix& y) {
  EXPECT_EQ(x.columns, y.rows);
  return Make(x.rows, y.columns, [&](int64_t i, int64_t j) {
    Wide sum = 0;
    for (int64_t k = 0; k < x.columns; ++k) sum += x(i, k) * y(k, j);
    return sum;
  });
}
inline Matrix Adjoint(const Matrix& x) {
  return Make(x.columns, x.rows, [&](int64_t i, int64_t j) { return std::conj(x(j, i)); });
}
inline Matrix Columns(const Matrix& x, int64_t n) {
  return Make(x.rows, n, [&](int64_t i, int64_t j) { return x(i, j); });
}
inline double Norm(const Matrix& x) {
  double sum = 0;
  for (Wide e : x.elements) sum += std::norm(e);
  return std::sqrt(sum);
}
inline void ExpectClose(const Matrix& x, const Matrix& y, double bound) {
  ASSERT_EQ(x.rows, y.rows);
  ASSERT_EQ(x.columns, y.columns);
  double sum = 0;
  for (size_t i = 0; i < x.elements.size(); ++i) sum += std::norm(x.elements[i] - y.elements[i]);
  EXPECT_LE(std::sqrt(sum), bound);
}
// With orthonormal columns, as LAPACK's own tests judge it.
inline void ExpectUnitary(const Matrix& x, double epsilon) {
  ExpectClose(Adjoint(x) * x, Identity(x.columns), 30 * epsilon * static_cast<double>(x.rows));
}

// The matrices of an array with `rank` dimensions behind the batch.
inline std::vector<Matrix> MatricesOf(const Literal& literal, size_t rank) {
  const Sizes dims = literal.shape().dims();
  const Sizes own(dims.end() - static_cast<int64_t>(rank), dims.end());
  const int64_t m = rank > 0 ? own[0] : 1, n = rank > 1 ? own[1] : 1;
  int64_t count = 1;
  for (size_t d = 0; d + rank < dims.size(); ++d) count *= dims[d];
  std::vector<Matrix> matrices;
  int64_t next = 0;
  auto element = [&](int64_t at) -> Wide {
    const auto i = static_cast<size_t>(at);
    if (literal.shape().type() == ElementType::kC64) {
      return Wide(literal.values<std::complex<float>>()[i]);
    }
    if (literal.shape().type() == ElementType::kC128) return literal.values<Wide>()[i];
    return literal.AsDouble(at);
  };
  for (int64_t b = 0; b < count; ++b) {
    matrices.push_back(Make(m, n, [&](int64_t, int64_t) { return element(next++); }));
  }
  return matrices;
}

// --- Programs of one call

// An array, and how many of its dimensions are those of an item.
struct Array {
  ElementType type;
  Sizes batch, own;

  Shape shape() const {
    Sizes dims = batch;
    dims.insert(dims.end(), own.begin(), own.end());
    return Shape(type, std::span<const int64_t>(dims));
  }
};

inline std::string TypeText(const Array& array) {
  const Sizes dims = array.shape().dims();
  std::string element = BitWidth(PartOf(array.type)) == 32 ? "f32" : "f64";
  if (IsComplex(array.type)) element = Cat("complex<", element, ">");
  if (array.type == ElementType::kS32) element = "i32";
  return Cat("tensor<", Join(dims, "x"), dims.empty() ? "" : "x", element, ">");
}
inline std::string Types(const std::vector<Array>& arrays) {
  std::vector<std::string> types;
  for (const Array& array : arrays) types.push_back(TypeText(array));
  return Join(types, ", ");
}
inline std::string Layouts(const std::vector<Array>& arrays) {
  std::vector<std::string> layouts;
  for (const Array& array : arrays) {
    const int64_t rank = array.shape().rank();
    Sizes order;
    for (int64_t d = rank - 1; d >= 0; --d) order.push_back(d);
    if (array.own.size() == 2) std::swap(order[0], order[1]);
    const std::string text = rank == 0 ? "" : rank == 1 ? "0" : Cat("[", Join(order, ", "), "]");
    layouts.push_back(Cat("dense<", text, "> : tensor<", rank, "xindex>"));
  }
  return Cat("[", Join(layouts, ", "), "]");
}

struct Call {
  std::string name;  // without the type's letter
  std::string config;
  std::vector<Array> operands, results;

  ElementType type() const { return operands[0].type; }
  std::string text() const {
    std::vector<std::string> names, parameters, values;
    for (size_t i = 0; i < operands.size(); ++i) {
      names.push_back(Cat("%arg", i));
      parameters.push_back(Cat("%arg", i, ": ", TypeText(operands[i])));
    }
    const bool one = results.size() == 1;
    for (size_t i = 0; i < results.size(); ++i) values.push_back(one ? "%0" : Cat("%0#", i));
    const bool is_double = BitWidth(PartOf(type())) == 64;
    const char letter = IsComplex(type()) ? (is_double ? 'z' : 'c') : (is_double ? 'd' : 's');
    return Cat("func.func public @main(", Join(parameters, ", "), ") -> (", Types(results),
               ") {\n%0", one ? "" : Cat(":", results.size()), " = stablehlo.custom_call @lapack_",
               std::string(1, letter), name, "_ffi(", Join(names, ", "),
               ") {backend_config = \"\", mhlo.backend_config = {", config,
               "}, mhlo.frontend_attributes = {num_batch_dims = \"", operands[0].batch.size(),
               "\"}, operand_layouts = ", Layouts(operands),
               ", output_operand_aliases = "
               "[#stablehlo.output_operand_alias<output_tuple_indices = [",
               one ? "" : "0", "], operand_index = ", one ? "2" : "0",
               ", operand_tuple_indices = []>], "
               "result_layouts = ",
               Layouts(results), "} : (", Types(operands), ") -> (", Types(results), ")\nreturn ",
               Join(values, ", "), " : ", Types(results), "\n}\n");
  }
};

// One item's operands and results.
struct Item {
  std::vector<Matrix> in, out;
};

// The items of a run, by compiled code; the reference device gives the same bits.
inline void RunCall(const Call& call, const std::vector<Literal>& arguments,
                    std::vector<Item>& items) {
  SCOPED_TRACE(call.text());
  auto module = ImportText(call.text());
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  auto compiled = testing::RunCompiled(**module, arguments, /*fuse=*/true);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  auto evaluated = interp::Evaluate(**module, arguments, {.custom_call = device::CustomCallBy({})});
  ASSERT_TRUE(evaluated.ok()) << evaluated.status().ToString();
  const bool one = call.results.size() == 1;
  auto add = [&](const Literal& a, const Literal& b, size_t rank, bool is_result) {
    if (is_result) {
      ASSERT_EQ(a.byte_size(), b.byte_size());
      if (a.byte_size() > 0) {
        EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.byte_size())), 0);
      }
    }
    const std::vector<Matrix> matrices = MatricesOf(a, rank);
    items.resize(matrices.size());
    for (size_t i = 0; i < matrices.size(); ++i) {
      (is_result ? items[i].out : items[i].in).push_back(matrices[i]);
    }
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    add(arguments[i], arguments[i], call.operands[i].own.size(), false);
  }
  for (size_t i = 0; i < call.results.size(); ++i) {
    add(one ? *compiled : compiled->elements()[i], one ? *evaluated : evaluated->elements()[i],
        call.results[i].own.size(), true);
  }
}

// Runs with random numbers; f(item) checks each item.
template <typename F>
inline void Check(const Call& call, F&& f) {
  std::vector<Literal> arguments;
  for (const Array& array : call.operands) {
    arguments.push_back(array.type == ElementType::kS32
                            ? Literal(array.shape())
                            : testing::NormalLiteral(array.shape(), 3 + arguments.size()));
  }
  std::vector<Item> items;
  RunCall(call, arguments, items);
  SCOPED_TRACE(call.text());
  for (const Item& item : items) f(item);
}

// The results, of arguments in double precision.
inline std::string Results(const Call& call, const std::vector<std::vector<double>>& arguments) {
  std::vector<Literal> literals;
  for (size_t i = 0; i < arguments.size(); ++i) {
    literals.push_back(Literal::Array<double>(call.operands[i].shape(), arguments[i]));
  }
  auto module = ImportText(call.text());
  if (!module.ok()) return module.status().ToString();
  const auto value =
      interp::Evaluate(**module, literals, {.custom_call = device::CustomCallBy({})});
  return value.ok() ? value->ToString() : value.status().ToString();
}

// --- The functions

inline ElementType RealOf(ElementType type) { return PartOf(type); }
inline constexpr ElementType kInt = ElementType::kS32;

inline std::string Mode(char letter) { return Cat("mode = ", static_cast<int>(letter), " : ui8"); }
inline std::string Uplo(char letter) { return Cat("uplo = ", static_cast<int>(letter), " : ui8"); }

inline Call SelfAdjoint(ElementType t, Sizes b, int64_t n, char mode, char uplo) {
  return {IsComplex(t) ? "heevd" : "syevd",
          Cat(Mode(mode), ", ", Uplo(uplo)),
          {{t, b, {n, n}}},
          {{t, b, {n, n}}, {RealOf(t), b, {n}}, {kInt, b, {}}}};
}
inline Call Svd(std::string name, ElementType t, Sizes b, int64_t m, int64_t n, char mode) {
  const int64_t k = std::min(m, n);
  // Without vectors, JAX's results are of either size.
  const bool all = mode == 'A' || (mode == 'N' && name == "gesdd");
  return {std::move(name),
          Mode(mode),
          {{t, b, {m, n}}},
          {{t, b, {m, n}},
           {RealOf(t), b, {k}},
           {t, b, {m, all ? m : k}},
           {t, b, {all ? n : k, n}},
           {kInt, b, {}}}};
}
inline Call Eigen(ElementType t, Sizes b, int64_t n, char left = 'V', char right = 'V') {
  const ElementType c = ComplexOf(t);
  std::vector<Array> results = {{t, b, {n}}, {c, b, {n, n}}, {c, b, {n, n}}, {kInt, b, {}}};
  if (!IsComplex(t)) results.insert(results.begin(), results[0]);
  return {"geev",
          Cat("compute_left = ", static_cast<int>(left),
              " : ui8, compute_right = ", static_cast<int>(right), " : ui8"),
          {{t, b, {n, n}}},
          std::move(results)};
}
inline Call Schur(ElementType t, Sizes b, int64_t n, char mode) {
  std::vector<Array> results = {
      {t, b, {n, n}}, {t, b, {n, n}}, {t, b, {n}}, {kInt, b, {}}, {kInt, b, {}}};
  if (!IsComplex(t)) results.insert(results.begin() + 2, results[2]);
  return {"gees", Cat(Mode(mode), ", sort = 78 : ui8"), {{t, b, {n, n}}}, std::move(results)};
}
inline Call Hessenberg(ElementType t, Sizes b, int64_t n, int64_t low, int64_t high) {
  return {"gehrd",
          Cat("high = ", high, " : i32, low = ", low, " : i32"),
          {{t, b, {n, n}}},
          {{t, b, {n, n}}, {t, b, {n - 1}}, {kInt, b, {}}}};
}
inline Call ToTridiagonal(ElementType t, Sizes b, int64_t n, char uplo) {
  return {IsComplex(t) ? "hetrd" : "sytrd",
          Uplo(uplo),
          {{t, b, {n, n}}},
          {{t, b, {n, n}},
           {RealOf(t), b, {n}},
           {RealOf(t), b, {n - 1}},
           {t, b, {n - 1}},
           {kInt, b, {}}}};
}
inline Call PivotedQr(ElementType t, Sizes b, int64_t m, int64_t n) {
  return {"geqp3",
          "",
          {{t, b, {m, n}}, {kInt, b, {n}}},
          {{t, b, {m, n}}, {kInt, b, {n}}, {t, b, {std::min(m, n)}}}};
}
inline Call Tridiagonal(ElementType t, Sizes b, int64_t n, int64_t sides) {
  const Array diagonal = {t, b, {n}}, right = {t, b, {n, sides}};
  return {"gtsv",
          "",
          {diagonal, diagonal, diagonal, right},
          {diagonal, diagonal, diagonal, right, {kInt, b, {}}}};
}

// The matrix that one triangle stands for.
inline Matrix Whole(const Matrix& x, char uplo) {
  return Make(x.rows, x.rows, [&](int64_t i, int64_t j) -> Wide {
    if (i == j) return x(i, i).real();
    return (i > j) == (uplo == 'L') ? x(i, j) : std::conj(x(j, i));
  });
}

// I - tau v v^H for each column: v is 1 `below` rows under the diagonal, with the rest below.
inline Matrix Product(const Matrix& x, const Matrix& taus, int64_t below) {
  const int64_t m = x.rows;
  Matrix q = Identity(m);
  for (int64_t k = 0; k < taus.rows; ++k) {
    const Matrix v = Make(m, 1, [&](int64_t i, int64_t) -> Wide {
      return i < k + below ? 0.0 : i == k + below ? 1.0 : x(i, k);
    });
    const Matrix h = Make(m, m, [&](int64_t i, int64_t j) {
      return (i == j ? 1.0 : 0.0) - taus(k, 0) * v(i, 0) * std::conj(v(j, 0));
    });
    q = q * h;
  }
  return q;
}

// Batches, and the sizes of square matrices.
inline const std::pair<Sizes, int64_t> kSquares[] = {{{}, 1},  {{}, 2},  {{2, 3}, 4}, {{5}, 3},
                                                     {{}, 17}, {{}, 40}, {{0}, 3},    {{2}, 0}};

}  // namespace kiln::stablehlo::lapack
