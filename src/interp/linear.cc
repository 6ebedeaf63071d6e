#include "interp/linear.h"

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <numbers>
#include <vector>

#include "base/strings.h"

namespace kiln::interp {
namespace {

using ir::Instruction;
using Wide = long double;
using Complex = std::complex<Wide>;
using Numbers = std::vector<Complex>;

// f(a number of the C++ type that holds `type`).
template <typename F>
Status VisitNumber(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kF16:
      f(Float16{});
      return OkStatus();
    case ElementType::kBF16:
      f(BFloat16{});
      return OkStatus();
    case ElementType::kF32:
      f(float{});
      return OkStatus();
    case ElementType::kF64:
      f(double{});
      return OkStatus();
    case ElementType::kC64:
      f(std::complex<float>{});
      return OkStatus();
    case ElementType::kC128:
      f(std::complex<double>{});
      return OkStatus();
    default:
      return Unimplemented("the evaluator has no code for elements of ", TypeName(type));
  }
}

Result<Numbers> NumbersOf(const Literal& literal) {
  Numbers numbers;
  KILN_RETURN_IF_ERROR(VisitNumber(literal.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    for (const T& x : literal.values<T>()) {
      if constexpr (requires { x.real(); }) {
        numbers.emplace_back(x.real(), x.imag());
      } else {
        numbers.emplace_back(static_cast<Wide>(static_cast<double>(x)));
      }
    }
  }));
  return numbers;
}

Result<Literal> Rounded(const Shape& shape, const Numbers& numbers) {
  Literal literal(Shape(shape.type(), shape.dims()));
  KILN_RETURN_IF_ERROR(VisitNumber(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    std::span<T> to = literal.values<T>();
    for (size_t k = 0; k < to.size(); ++k) {
      if constexpr (requires { zero.real(); }) {
        using Real = typename T::value_type;
        to[k] = T(static_cast<Real>(numbers[k].real()), static_cast<Real>(numbers[k].imag()));
      } else if constexpr (sizeof(T) == 2) {
        to[k] = static_cast<T>(static_cast<double>(numbers[k].real()));
      } else {
        to[k] = static_cast<T>(numbers[k].real());
      }
    }
  }));
  return literal;
}

// --- Fourier transforms

// exp(sign 2 pi i k / n)
Complex Root(int64_t k, int64_t n, int sign) {
  const Wide angle = 2 * std::numbers::pi_v<Wide> * static_cast<Wide>(k % n) / static_cast<Wide>(n);
  return {std::cos(angle), static_cast<Wide>(sign) * std::sin(angle)};
}

int64_t SmallestFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// y[k] = sum over j of x[j] exp(sign 2 pi i j k / n)
class Dft {
 public:
  Dft(int64_t n, int sign);
  Numbers operator()(const Numbers& x) const;

 private:
  // Shorter transforms cost less by definition, larger primes less by a convolution.
  static constexpr int64_t kShort = 8, kLong = 256;
  class Convolution;

  // The k-th of the n-th roots of 1, k < n, from the roots of the whole transform.
  const Complex& RootOf(int64_t k, int64_t n) const {
    return roots_[static_cast<size_t>(k * (n_ / n))];
  }
  Numbers ByDefinition(const Numbers& x) const;
  Numbers ByFactor(const Numbers& x, int64_t p) const;

  const int64_t n_;
  Numbers roots_;
  // Of the length without its factors up to kLong; null where that is 1.
  std::shared_ptr<const Convolution> convolution_;
};

Numbers Dft::ByDefinition(const Numbers& x) const {
  const int64_t n = std::ssize(x);
  Numbers y;
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    int64_t turned = 0;  // j k mod n
    for (int64_t j = 0; j < n; ++j) {
      sum += x[static_cast<size_t>(j)] * RootOf(turned, n);
      turned += turned < n - k ? k : k - n;
    }
    y.push_back(sum);
  }
  return y;
}

// From the transforms of every p-th number.
Numbers Dft::ByFactor(const Numbers& x, int64_t p) const {
  const int64_t n = std::ssize(x), m = n / p;
  std::vector<Numbers> parts;
  for (int64_t q = 0; q < p; ++q) {
    Numbers part;
    part.reserve(static_cast<size_t>(m));
    for (int64_t j = q; j < n; j += p) part.push_back(x[static_cast<size_t>(j)]);
    parts.push_back((*this)(part));
  }
  Numbers y;
  y.reserve(x.size());
  size_t at = 0;  // k mod m
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = parts[0][at];
    int64_t turned = k;  // q k mod n
    for (int64_t q = 1; q < p; ++q) {
      sum += parts[static_cast<size_t>(q)][at] * RootOf(turned, n);
      turned += turned < n - k ? k : k - n;
    }
    y.push_back(sum);
    at = at + 1 < parts[0].size() ? at + 1 : 0;
  }
  return y;
}

// As 2 j k = j^2 + k^2 - (k - j)^2, a convolution, whose transforms are of a power of 2.
class Dft::Convolution {
 public:
  Convolution(int64_t n, int sign)
      : m_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n)))),
        there_(m_, 1),
        back_(m_, -1) {
    Numbers b(static_cast<size_t>(m_));
    for (int64_t k = 0; k < n; ++k) {
      const auto square = static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n));
      chirp_.push_back(Root(square, 2 * n, sign));
      b[static_cast<size_t>(k)] = b[static_cast<size_t>((m_ - k) % m_)] = std::conj(chirp_.back());
    }
    factors_ = there_(b);
    for (Complex& factor : factors_) factor /= static_cast<Wide>(m_);
  }

  Numbers operator()(const Numbers& x) const {
    Numbers a(static_cast<size_t>(m_));
    for (size_t k = 0; k < x.size(); ++k) a[k] = x[k] * chirp_[k];
    Numbers c = there_(a);
    for (size_t k = 0; k < c.size(); ++k) c[k] *= factors_[k];
    Numbers y = back_(c);
    y.resize(x.size());
    for (size_t k = 0; k < y.size(); ++k) y[k] *= chirp_[k];
    return y;
  }

 private:
  const int64_t m_;
  const Dft there_, back_;
  Numbers chirp_, factors_;
};

Dft::Dft(int64_t n, int sign) : n_(n) {
  for (int64_t k = 0; k < n; ++k) roots_.push_back(Root(k, n, sign));
  int64_t rest = n;
  for (int64_t p = SmallestFactor(rest); rest > 1 && p <= kLong; p = SmallestFactor(rest))
    rest /= p;
  if (rest > 1) convolution_ = std::make_shared<const Convolution>(rest, sign);
}

Numbers Dft::operator()(const Numbers& x) const {
  const int64_t n = std::ssize(x), p = SmallestFactor(n);
  if (n > kShort && p < n && p <= kLong) return ByFactor(x, p);
  return n <= kLong ? ByDefinition(x) : (*convolution_)(x);
}

// Calls f with the numbers along one dimension, for each index of the others, and makes an array of
// the results, with another size there.
template <typename F>
Numbers AlongDimension(const Numbers& x, std::vector<int64_t>& dims, size_t dimension, int64_t size,
                       F&& f) {
  const int64_t n = dims[dimension];
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d != dimension) (d < dimension ? outer : inner) *= dims[d];
  }
  Numbers y(static_cast<size_t>(outer * size * inner));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      Numbers line;
      for (int64_t k = 0; k < n; ++k) {
        line.push_back(x[static_cast<size_t>((o * n + k) * inner + i)]);
      }
      line = f(line);
      for (int64_t k = 0; k < size; ++k) {
        y[static_cast<size_t>((o * size + k) * inner + i)] = line[static_cast<size_t>(k)];
      }
    }
  }
  dims[dimension] = size;
  return y;
}

struct InverseDft {
  explicit InverseDft(int64_t n) : dft(n, 1) {}
  Numbers operator()(const Numbers& x) const {
    Numbers y = dft(x);
    for (Complex& number : y) number /= static_cast<Wide>(y.size());
    return y;
  }
  const Dft dft;
};

// --- Matrices

// Matrix number `number` of those in the last two dimensions.
struct Matrix {
  Numbers& numbers;
  int64_t rows, columns, number;
  Complex& operator()(int64_t i, int64_t j) const {
    return numbers[static_cast<size_t>((number * rows + i) * columns + j)];
  }
};

int64_t CountMatrices(const Shape& shape) {
  int64_t count = 1;
  for (int64_t d = 0; d + 2 < shape.rank(); ++d) count *= shape.dim(d);
  return count;
}

// Real numbers have no imaginary parts that could become NaNs by infinities.
struct Arithmetic {
  bool is_complex;
  Complex Times(Complex a, Complex b) const {
    return is_complex ? a * b : Complex(a.real() * b.real());
  }
  Complex Over(Complex a, Complex b) const {
    return is_complex ? a / b : Complex(a.real() / b.real());
  }
};

// The lower triangle of `a` becomes that of L; false where a is not positive definite.
template <typename At>
bool Decompose(int64_t n, const Arithmetic& arithmetic, At a) {
  for (int64_t j = 0; j < n; ++j) {
    Wide rest = a(j, j).real();
    for (int64_t k = 0; k < j; ++k) rest -= std::norm(a(j, k));
    if (!(rest > 0)) return false;
    a(j, j) = std::sqrt(rest);
    for (int64_t i = j + 1; i < n; ++i) {
      for (int64_t k = 0; k < j; ++k) a(i, j) -= arithmetic.Times(a(i, k), std::conj(a(j, k)));
      a(i, j) /= a(j, j).real();
    }
  }
  return true;
}

}  // namespace

Result<Literal> EvaluateFft(const Instruction& i, std::span<const Literal* const> operands) {
  const std::string& type = i.attributes().Text(Attr::kFftType);
  const Ints& length = i.attributes().IntsOf(Attr::kFftLength);
  KILN_ASSIGN_OR_RETURN(Numbers x, NumbersOf(*operands[0]));
  if (i.shape().num_elements() == 0) return Rounded(i.shape(), x);
  std::vector<int64_t> dims = operands[0]->shape().dims();
  const size_t last = dims.size() - 1, first = dims.size() - length.size();
  const int64_t n = length.back();
  auto others = [&](auto transform_of) {
    for (size_t d = first; d < last; ++d) {
      x = AlongDimension(x, dims, d, dims[d], transform_of(dims[d]));
    }
  };
  if (type == "FFT" || type == "RFFT") {
    x = AlongDimension(x, dims, last, type == "FFT" ? n : n / 2 + 1, Dft(n, -1));
    others([](int64_t size) { return Dft(size, -1); });
  } else {
    others([](int64_t size) { return InverseDft(size); });
    const InverseDft inverse(n);
    x = AlongDimension(x, dims, last, n, [&](Numbers line) {
      if (type == "IRFFT") {
        // The first number, and the one in the middle, count as real.
        line.resize(static_cast<size_t>(n));
        line[0] = line[0].real();
        if (n % 2 == 0) line[static_cast<size_t>(n / 2)] = line[static_cast<size_t>(n / 2)].real();
        for (int64_t k = 1; k < n - k; ++k) {
          line[static_cast<size_t>(n - k)] = std::conj(line[static_cast<size_t>(k)]);
        }
      }
      return inverse(line);
    });
  }
  return Rounded(i.shape(), x);
}

Result<Literal> EvaluateCholesky(const Instruction& i, std::span<const Literal* const> operands) {
  const bool lower = i.attributes().Bool(Attr::kLower);
  KILN_ASSIGN_OR_RETURN(Numbers x, NumbersOf(*operands[0]));
  const int64_t n = i.shape().dim(i.shape().rank() - 1);
  for (int64_t number = 0; number < CountMatrices(i.shape()); ++number) {
    const Matrix a{x, n, n, number};
    // The upper triangle is the lower one of the conjugate.
    const bool is_definite =
        Decompose(n, {IsComplex(i.shape().type())},
                  [&](int64_t r, int64_t c) -> Complex& { return lower ? a(r, c) : a(c, r); });
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        constexpr Wide kNan = std::numeric_limits<Wide>::quiet_NaN();
        if (!is_definite) {
          a(r, c) = {kNan, kNan};
        } else if (lower ? c > r : c < r) {
          a(r, c) = 0;
        }
      }
    }
  }
  return Rounded(i.shape(), x);
}

Result<Literal> EvaluateTriangularSolve(const Instruction& i,
                                        std::span<const Literal* const> operands) {
  const Attributes& attributes = i.attributes();
  const std::string& op = attributes.Text(Attr::kTransposeA);
  const bool left = attributes.Bool(Attr::kLeftSide), transposed = op != "NO_TRANSPOSE";
  // Of op(a); from the right it is the transpose that is solved.
  const bool lower = (attributes.Bool(Attr::kLower) != transposed) == left;
  KILN_ASSIGN_OR_RETURN(Numbers as, NumbersOf(*operands[0]));
  KILN_ASSIGN_OR_RETURN(Numbers xs, NumbersOf(*operands[1]));
  const Shape& shape = i.shape();
  const Arithmetic arithmetic{IsComplex(shape.type())};
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  const int64_t n = left ? rows : columns, sides = left ? columns : rows;
  for (int64_t number = 0; number < CountMatrices(shape); ++number) {
    const Matrix matrix{as, n, n, number}, all{xs, rows, columns, number};
    auto a = [&](int64_t r, int64_t c) -> Complex {
      if (!left) std::swap(r, c);
      if (transposed) std::swap(r, c);
      return op == "ADJOINT" ? std::conj(matrix(r, c)) : matrix(r, c);
    };
    for (int64_t side = 0; side < sides; ++side) {
      auto x = [&](int64_t r) -> Complex& { return left ? all(r, side) : all(side, r); };
      for (int64_t step = 0; step < n; ++step) {
        const int64_t r = lower ? step : n - 1 - step;
        for (int64_t done = 0; done < step; ++done) {
          const int64_t c = lower ? done : n - 1 - done;
          x(r) -= arithmetic.Times(a(r, c), x(c));
        }
        if (!attributes.Bool(Attr::kUnitDiagonal)) x(r) = arithmetic.Over(x(r), a(r, r));
      }
    }
  }
  return Rounded(shape, xs);
}

}  // namespace kiln::interp
