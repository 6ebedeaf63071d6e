#include "interp/dot.h"

#include <algorithm>

#include "interp/lane_sums.h"
#include "interp/strided.h"
#include "interp/sum_of_products.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

bool Contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The offsets of one operand's elements, by batch, free and contracting index.
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

// The sums of one batch index, as many at once as there are lanes. `rows` are the left operand's
// free indices unless it has fewer of them: then the two are exchanged, and `out` has these
// strides.
template <typename To, typename From>
void DotByLanes(const From* x, const Side& rows, const From* y, const Side& columns, To* out,
                size_t row_stride, size_t column_stride) {
  using Compute = ComputeType<To>;
  const size_t terms = rows.contracting.size();
  std::vector<Compute> left(rows.free.size() * terms), right(terms * kLanes);
  for (size_t m = 0; m < rows.free.size(); ++m) {
    PackTerms(x + rows.free[m], rows.contracting, left.data() + m * terms);
  }
  for (size_t begin = 0; begin < columns.free.size(); begin += kLanes) {
    const size_t lanes = std::min(kLanes, columns.free.size() - begin);
    PackLanes(y, std::span(columns.free).subspan(begin, lanes), columns.contracting, right.data());
    for (size_t m = 0; m < rows.free.size(); ++m) {
      ForEachSum<To, /*fused=*/true>(
          std::span(left).subspan(m * terms, terms), right.data(), lanes,
          [&](size_t l, To sum) { out[m * row_stride + (begin + l) * column_stride] = sum; });
    }
  }
}

Literal Dot(const Literal& lhs, const Side& x, const Literal& rhs, const Side& y,
            const Shape& shape) {
  Literal out(shape);
  VisitProductTypes(shape.type(), lhs.shape().type(), [&](auto to, auto from) {
    using To = decltype(to);
    using From = decltype(from);
    auto u = lhs.values<From>(), v = rhs.values<From>();
    To* next = out.values<To>().data();
    const size_t rows = x.free.size(), columns = y.free.size();
    for (size_t b = 0; b < x.batch.size(); ++b) {
      if constexpr (FloatType<To>) {
        const From *left = u.data() + x.batch[b], *right = v.data() + y.batch[b];
        if (HasLanes(std::max(rows, columns))) {
          if (columns >= rows) {
            DotByLanes(left, x, right, y, next, columns, 1);
          } else {
            DotByLanes(right, y, left, x, next, 1, columns);
          }
          next += rows * columns;
          continue;
        }
      }
      for (int64_t m : x.free) {
        for (int64_t n : y.free) {
          *next++ = SumOfProducts<To, /*fused=*/true>(
              u.data() + x.batch[b] + m, v.data() + y.batch[b] + n, x.contracting, y.contracting);
        }
      }
    }
  });
  return out;
}

}  // namespace

Result<Literal> EvaluateDot(const Instruction& i, std::span<const Literal* const> operands) {
  const Literal &lhs = *operands[0], &rhs = *operands[1];
  const Attributes& a = i.attributes();
  Side x = SideOf(lhs.shape(), a.IntsOf(Attr::kLhsBatchDims), a.IntsOf(Attr::kLhsContractingDims));
  Side y = SideOf(rhs.shape(), a.IntsOf(Attr::kRhsBatchDims), a.IntsOf(Attr::kRhsContractingDims));
  return Product(lhs, rhs, i.shape(), [&](const Literal& l, const Literal& r, const Shape& shape) {
    return Dot(l, x, r, y, shape);
  });
}

}  // namespace kiln::interp
