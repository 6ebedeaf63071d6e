#include "interp/dot.h"

#include <algorithm>

#include "interp/complex.h"
#include "interp/narrow.h"
#include "interp/scalar.h"
#include "interp/strided.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Where one operand's elements lie, by batch, free and contracting index.
struct Side {
  std::vector<int64_t> batch, free, contracting;
};

Side SideOf(const Shape& shape, const Ints& batch, const Ints& contracting) {
  std::vector<int64_t> dims = shape.dims(), strides = RowMajorStrides(dims);
  Ints free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  }
  auto offsets = [&](const Ints& chosen) {
    std::vector<int64_t> sizes, steps;
    for (int64_t d : chosen) {
      sizes.push_back(dims[d]);
      steps.push_back(strides[d]);
    }
    return OffsetsOf(sizes, steps);
  };
  return {offsets(batch), offsets(free), offsets(contracting)};
}

template <typename T>
auto Computed(T x) {
  return static_cast<ComputeType<T>>(x);
}

// One element: the sum of x[xk] * y[yk]. Floats and complex numbers are summed in a wider type,
// where there is one, and rounded once.
template <typename To, typename From>
To Sum(const From* x, const From* y, const std::vector<int64_t>& xk,
       const std::vector<int64_t>& yk) {
  if constexpr (std::same_as<To, bool>) {
    bool any = false;
    for (size_t k = 0; k < xk.size(); ++k) any |= x[xk[k]] && y[yk[k]];
    return any;
  } else if constexpr (Int<To>) {
    Wide<To> sum = 0;
    for (size_t k = 0; k < xk.size(); ++k) {
      sum += static_cast<Wide<To>>(static_cast<To>(x[xk[k]])) *
             static_cast<Wide<To>>(static_cast<To>(y[yk[k]]));
    }
    return Wrap<To>(sum);
  } else if constexpr (ComplexType<To>) {
    using W = WiderComplex<To>;
    W sum;
    for (size_t k = 0; k < xk.size(); ++k) sum += ComplexProduct(W(x[xk[k]]), W(y[yk[k]]));
    return RoundTo<To>(sum);
  } else {
    Wider<To> sum = 0;
    for (size_t k = 0; k < xk.size(); ++k) {
      // Products of floats and what is smaller are exact in double.
      sum += Wider<To>{Computed(x[xk[k]])} * Wider<To>{Computed(y[yk[k]])};
    }
    return RoundTo<To>(sum);
  }
}

// What dots are computed with: kernels' types, and complex numbers.
template <typename F>
void VisitDotType(ElementType type, F&& f) {
  if (type == ElementType::kC64) {
    f(std::complex<float>{});
  } else if (type == ElementType::kC128) {
    f(std::complex<double>{});
  } else {
    VisitKernelType(type, f);
  }
}

Literal Dot(const Literal& lhs, const Side& x, const Literal& rhs, const Side& y,
            const Shape& shape) {
  Literal out(shape);
  VisitDotType(shape.type(), [&](auto to) {
    VisitDotType(lhs.shape().type(), [&](auto from) {
      using To = decltype(to);
      using From = decltype(from);
      // Inference lets the result be of the operands' type or a wider one of its kind.
      if constexpr (FloatType<To> == FloatType<From> && Int<To> == Int<From> &&
                    ComplexType<To> == ComplexType<From>) {
        auto u = lhs.values<From>(), v = rhs.values<From>();
        To* next = out.values<To>().data();
        for (size_t b = 0; b < x.batch.size(); ++b) {
          for (int64_t m : x.free) {
            for (int64_t n : y.free) {
              *next++ = Sum<To>(u.data() + x.batch[b] + m, v.data() + y.batch[b] + n, x.contracting,
                                y.contracting);
            }
          }
        }
      }
    });
  });
  return out;
}

}  // namespace

Result<Literal> EvaluateDot(const Instruction& i, std::span<const Literal* const> operands) {
  const Literal &lhs = *operands[0], &rhs = *operands[1];
  const Attributes& a = i.attributes();
  Side x = SideOf(lhs.shape(), a.IntsOf(Attr::kLhsBatchDims), a.IntsOf(Attr::kLhsContractingDims));
  Side y = SideOf(rhs.shape(), a.IntsOf(Attr::kRhsBatchDims), a.IntsOf(Attr::kRhsContractingDims));
  if (!IsNarrow(lhs.shape().type())) return Dot(lhs, x, rhs, y, i.shape());
  // Small floats as doubles where they are the result, which is rounded once.
  const ElementType type = i.shape().type();
  const bool is_small_float = IsNarrow(type) && IsFloat(type);
  Shape shape = i.shape();
  shape.set_type(is_small_float ? ElementType::kF64 : WideOf(type));
  Literal wide = Dot(Widened(lhs), x, Widened(rhs), y, shape);
  if (!IsNarrow(type)) return wide;
  if (is_small_float) return Rounded(type, wide);
  Literal out(i.shape());
  Narrow(type, wide.data(), shape.num_elements(), out.data());
  return out;
}

}  // namespace kiln::interp
