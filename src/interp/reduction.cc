#include "interp/reduction.h"

#include <algorithm>

#include "base/strings.h"
#include "interp/scalar.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// The reduced and the kept dimensions of a reduce's operands, with strides.
struct Split {
  std::vector<int64_t> kept_dims, kept_strides, reduced_dims, reduced_strides;
};

Split SplitDimensions(const Shape& shape, const Ints& reduced) {
  Split s;
  std::vector<int64_t> strides = RowMajorStrides(shape.dims());
  for (int64_t d = 0; d < shape.rank(); ++d) {
    bool is_reduced = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    (is_reduced ? s.reduced_dims : s.kept_dims).push_back(shape.dim(d));
    (is_reduced ? s.reduced_strides : s.kept_strides).push_back(strides[d]);
  }
  return s;
}

// Calls f(offset) for every index of dims in row-major order.
template <typename F>
void ForEachOffset(std::span<const int64_t> dims, std::span<const int64_t> strides, F&& f) {
  if (Product(dims) == 0) return;
  std::vector<int64_t> index(dims.size());
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * strides[d];
    f(offset);
  } while (NextIndex(dims, index));
}

// Whether the computation is the sum of its two parameters.
bool IsSum(const ir::Computation& c) {
  const Instruction* root = c.root();
  return root->opcode() == Opcode::kAdd && c.parameters().size() == 2 &&
         root->operand(0)->opcode() == Opcode::kParameter &&
         root->operand(1)->opcode() == Opcode::kParameter && root->operand(0) != root->operand(1);
}

// A sum of floats in double (long double for f64), rounded once.
template <typename T>
Literal Sum(const Instruction& i, const Literal& x, const Literal& init, const Split& s) {
  using Acc = std::conditional_t<std::same_as<T, float>, double, long double>;
  Literal out(i.shape());
  auto o = out.values<T>();
  auto v = x.values<T>();
  size_t next = 0;
  ForEachOffset(s.kept_dims, s.kept_strides, [&](int64_t base) {
    Acc sum = init.values<T>()[0];
    ForEachOffset(s.reduced_dims, s.reduced_strides, [&](int64_t at) { sum += v[base + at]; });
    o[next++] = static_cast<T>(sum);
  });
  return out;
}

Literal ElementOf(const Literal& x, int64_t offset) {
  Literal scalar(Shape::Scalar(x.shape().type()));
  size_t width = static_cast<size_t>(ByteWidth(x.shape().type()));
  std::memcpy(scalar.data(), x.data() + static_cast<size_t>(offset) * width, width);
  return scalar;
}

// The computation by the letter, folded in row-major order from the init values.
Result<Literal> Fold(const Instruction& i, std::span<const Literal* const> operands, const Split& s,
                     const Options& options) {
  size_t count = operands.size() / 2;
  std::vector<Literal> results;
  for (size_t k = 0; k < count; ++k) {
    results.emplace_back(i.shape().is_tuple() ? i.shape().elements()[k] : i.shape());
  }
  Status status;
  int64_t next = 0;
  ForEachOffset(s.kept_dims, s.kept_strides, [&](int64_t base) {
    std::vector<Literal> state;
    for (size_t k = 0; k < count; ++k) state.push_back(*operands[count + k]);
    ForEachOffset(s.reduced_dims, s.reduced_strides, [&](int64_t at) {
      if (!status.ok()) return;
      std::vector<Literal> arguments = std::move(state);
      for (size_t k = 0; k < count; ++k) arguments.push_back(ElementOf(*operands[k], base + at));
      auto value = Evaluate(*i.called(0), arguments, options);
      state.clear();
      if (!value.ok()) {
        status = value.status();
      } else if (value->shape().is_tuple()) {
        state = std::move(value->elements());
      } else {
        state.push_back(*std::move(value));
      }
    });
    if (!status.ok()) return;
    for (size_t k = 0; k < count; ++k) {
      size_t width = static_cast<size_t>(state[k].byte_size());
      std::memcpy(results[k].data() + static_cast<size_t>(next) * width, state[k].data(), width);
    }
    ++next;
  });
  if (!status.ok()) return status;
  if (!i.shape().is_tuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace

Result<Literal> EvaluateReduce(const Instruction& i, std::span<const Literal* const> operands,
                               const Options& options) {
  Split s = SplitDimensions(operands[0]->shape(), i.dimensions());
  if (operands.size() == 2 && IsSum(*i.called(0))) {
    if (i.shape().type() == ElementType::kF32) return Sum<float>(i, *operands[0], *operands[1], s);
    if (i.shape().type() == ElementType::kF64) return Sum<double>(i, *operands[0], *operands[1], s);
  }
  return Fold(i, operands, s, options);
}

Result<Literal> EvaluateDot(const Instruction& i, std::span<const Literal* const> operands) {
  const Literal &x = *operands[0], &y = *operands[1];
  const Attributes& a = i.attributes();
  std::vector<int64_t> xs = RowMajorStrides(x.shape().dims()),
                       ys = RowMajorStrides(y.shape().dims());
  // The result's dimensions in order, with both operands' strides; then the contracting ones.
  std::vector<int64_t> dims, x_strides, y_strides, k_dims, xk_strides, yk_strides;
  std::vector<bool> x_used(xs.size()), y_used(ys.size());
  auto add_pairs = [&](Attr left, Attr right, std::vector<int64_t>& to, std::vector<int64_t>& sx,
                       std::vector<int64_t>& sy) {
    const Ints &l = a.IntsOf(left), &r = a.IntsOf(right);
    for (size_t d = 0; d < l.size(); ++d) {
      to.push_back(x.shape().dim(l[d]));
      sx.push_back(xs[l[d]]);
      sy.push_back(ys[r[d]]);
      x_used[l[d]] = true;
      y_used[r[d]] = true;
    }
  };
  add_pairs(Attr::kLhsBatchDims, Attr::kRhsBatchDims, dims, x_strides, y_strides);
  add_pairs(Attr::kLhsContractingDims, Attr::kRhsContractingDims, k_dims, xk_strides, yk_strides);
  for (size_t d = 0; d < xs.size(); ++d) {
    if (x_used[d]) continue;
    dims.push_back(x.shape().dim(d));
    x_strides.push_back(xs[d]);
    y_strides.push_back(0);
  }
  for (size_t d = 0; d < ys.size(); ++d) {
    if (y_used[d]) continue;
    dims.push_back(y.shape().dim(d));
    x_strides.push_back(0);
    y_strides.push_back(ys[d]);
  }
  std::vector<int64_t> xk, yk;
  ForEachOffset(k_dims, xk_strides, [&](int64_t o) { xk.push_back(o); });
  ForEachOffset(k_dims, yk_strides, [&](int64_t o) { yk.push_back(o); });
  std::vector<int64_t> x_offsets, y_offsets;
  ForEachOffset(dims, x_strides, [&](int64_t o) { x_offsets.push_back(o); });
  ForEachOffset(dims, y_strides, [&](int64_t o) { y_offsets.push_back(o); });
  Literal out(i.shape());
  VisitType(i.shape().type(), [&](auto to) {
    using To = decltype(to);
    VisitType(x.shape().type(), [&](auto from) {
      using From = decltype(from);
      auto o = out.values<To>();
      auto u = x.values<From>();
      auto v = y.values<From>();
      for (size_t e = 0; e < o.size(); ++e) {
        if constexpr (Float<To>) {
          // In double, rounded once; for f64 in long double.
          std::conditional_t<std::same_as<To, float>, double, long double> sum = 0;
          for (size_t k = 0; k < xk.size(); ++k) {
            sum += static_cast<decltype(sum)>(u[x_offsets[e] + xk[k]]) * v[y_offsets[e] + yk[k]];
          }
          o[e] = static_cast<To>(sum);
        } else if constexpr (Int<To>) {
          Wide<To> sum = 0;
          for (size_t k = 0; k < xk.size(); ++k) {
            sum += static_cast<Wide<To>>(Convert<To>(u[x_offsets[e] + xk[k]])) *
                   static_cast<Wide<To>>(Convert<To>(v[y_offsets[e] + yk[k]]));
          }
          o[e] = Wrap<To>(sum);
        } else {
          bool any = false;
          for (size_t k = 0; k < xk.size(); ++k) {
            any |= u[x_offsets[e] + xk[k]] != From{0} && v[y_offsets[e] + yk[k]] != From{0};
          }
          o[e] = any;
        }
      }
    });
  });
  return out;
}

}  // namespace kiln::interp
