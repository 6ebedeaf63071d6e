#include "interp/convolution.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "interp/lane_sums.h"
#include "interp/reducer.h"
#include "interp/sum_of_products.h"
#include "interp/window_positions.h"
#include "ir/reducer.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

size_t At(int64_t i) { return static_cast<size_t>(i); }

// The index of element k of a window at a position along a dimension of `size` elements; -1 for
// padding, or a hole between elements.
int64_t PositionOf(const WindowDimension& w, int64_t size, int64_t place, int64_t k) {
  if (w.reversed) k = w.size - 1 - k;
  int64_t at = place * w.stride + k * w.window_dilation - w.low;
  if (at < 0 || at % w.base_dilation != 0 || at / w.base_dilation >= size) return -1;
  return at / w.base_dilation;
}

// The numbers of a convolution, by dimension of the window.
struct Numbers {
  Numbers(const Instruction& i, const Shape& x, const Shape& y)
      : d(i.attributes().Convolution(Attr::kDimLabels)),
        window(i.attributes().Window(Attr::kWindow)),
        x_strides(RowMajorStrides(x.dims())),
        y_strides(RowMajorStrides(y.dims())),
        out_strides(RowMajorStrides(i.shape().dims())),
        features(y.dim(d.kernel_input_feature)),
        batch(i.shape().dim(d.output_batch)),
        out_features(i.shape().dim(d.output_feature)),
        feature_groups(i.attributes().Int(Attr::kFeatureGroupCount, 1)),
        batch_groups(i.attributes().Int(Attr::kBatchGroupCount, 1)) {
    for (size_t k = 0; k < window.size(); ++k) {
      sizes.push_back(x.dim(d.input_spatial[k]));
      places.push_back(i.shape().dim(d.output_spatial[k]));
      taps.push_back(window[k].size);
    }
  }

  const ConvolutionDimensions& d;
  const std::vector<WindowDimension>& window;
  std::vector<int64_t> x_strides, y_strides, out_strides;
  int64_t features, batch, out_features, feature_groups, batch_groups;
  std::vector<int64_t> sizes, places, taps;
};

// The offsets of the factors at one position of the window, relative to the first element of the
// batch and group; -1 for zeros of the left side.
struct Terms {
  std::vector<int64_t> x, y;
};

void FindTerms(const Numbers& n, std::span<const int64_t> place, Terms& terms) {
  terms.x.clear();
  terms.y.clear();
  std::vector<int64_t> tap(n.taps.size());
  do {
    int64_t x = 0, y = 0;
    for (size_t k = 0; k < tap.size(); ++k) {
      int64_t position = PositionOf(n.window[k], n.sizes[k], place[k], tap[k]);
      y += tap[k] * n.y_strides[At(n.d.kernel_spatial[k])];
      if (position < 0 || x < 0) {
        x = -1;
      } else {
        x += position * n.x_strides[At(n.d.input_spatial[k])];
      }
    }
    for (int64_t f = 0; f < n.features; ++f) {
      terms.x.push_back(x < 0 ? -1 : x + f * n.x_strides[At(n.d.input_feature)]);
      terms.y.push_back(y + f * n.y_strides[At(n.d.kernel_input_feature)]);
    }
  } while (NextIndex(n.taps, tap));
}

// The features of one group as lanes of sums, packed once for all positions of the window.
template <typename To, typename From>
class FilterLanes {
 public:
  using Compute = ComputeType<To>;

  FilterLanes(const Numbers& n, const From* y, const std::vector<int64_t>& terms)
      : terms_(terms.size()),
        features_(static_cast<size_t>(n.out_features / (n.feature_groups * n.batch_groups))),
        panels_((features_ + kLanes - 1) / kLanes),
        left_(terms_) {
    const int64_t step = n.y_strides[At(n.d.kernel_output_feature)];
    right_.resize(static_cast<size_t>(n.out_features) / features_ * panels_ * terms_ * kLanes);
    Compute* to = right_.data();
    std::vector<int64_t> lanes;
    for (int64_t first = 0; first < n.out_features; first += static_cast<int64_t>(features_)) {
      for (size_t panel = 0; panel < panels_; ++panel, to += terms_ * kLanes) {
        lanes.clear();
        for (size_t l = panel * kLanes; l < std::min(features_, (panel + 1) * kLanes); ++l) {
          lanes.push_back((first + static_cast<int64_t>(l)) * step);
        }
        PackLanes(y, lanes, terms, to);
      }
    }
  }

  // The results of a group for the left factors at `x`, `stride` apart.
  void Sum(size_t group, const From* x, const std::vector<int64_t>& terms, To* out,
           int64_t stride) {
    PackTerms(x, terms, left_.data());
    for (size_t panel = 0; panel < panels_; ++panel) {
      const size_t first = panel * kLanes;
      ForEachSum<To, /*fused=*/false>(std::span<const Compute>(left_),
                                      right_.data() + (group * panels_ + panel) * terms_ * kLanes,
                                      std::min(kLanes, features_ - first), [&](size_t l, To sum) {
                                        out[static_cast<int64_t>(first + l) * stride] = sum;
                                      });
    }
  }

 private:
  size_t terms_, features_, panels_;
  std::vector<Compute> left_, right_;
};

// Calls sum(x, place in the result, group) for the first feature of each group at each position of
// the window and of the batch; sum finds the terms of the position in `terms`.
template <typename F>
void ForEachPosition(const Numbers& n, Terms& terms, F&& sum) {
  const int64_t groups = n.feature_groups * n.batch_groups;
  std::vector<int64_t> place(n.places.size());
  do {
    FindTerms(n, place, terms);
    int64_t at = 0;
    for (size_t k = 0; k < place.size(); ++k) {
      at += place[k] * n.out_strides[At(n.d.output_spatial[k])];
    }
    for (int64_t b = 0; b < n.batch; ++b) {
      for (int64_t group = 0; group < groups; ++group) {
        int64_t first = b * n.x_strides[At(n.d.input_batch)];
        first += n.feature_groups > 1 ? group * n.features * n.x_strides[At(n.d.input_feature)]
                                      : group * n.batch * n.x_strides[At(n.d.input_batch)];
        sum(first,
            at + b * n.out_strides[At(n.d.output_batch)] +
                group * (n.out_features / groups) * n.out_strides[At(n.d.output_feature)],
            group);
      }
    }
  } while (NextIndex(n.places, place));
}

template <typename To, typename From>
void Convolve(const Numbers& n, const From* x, const From* y, To* out) {
  const int64_t features = n.out_features / (n.feature_groups * n.batch_groups);
  const int64_t stride = n.out_strides[At(n.d.output_feature)];
  Terms terms;
  if constexpr (FloatType<To>) {
    if (HasLanes(At(features))) {
      FindTerms(n, std::vector<int64_t>(n.places.size()), terms);
      FilterLanes<To, From> filter(n, y, terms.y);
      ForEachPosition(n, terms, [&](int64_t first, int64_t at, int64_t group) {
        filter.Sum(At(group), x + first, terms.x, out + at, stride);
      });
      return;
    }
  }
  ForEachPosition(n, terms, [&](int64_t first, int64_t at, int64_t group) {
    for (int64_t f = 0; f < features; ++f) {
      out[at + f * stride] = SumOfProducts<To, /*fused=*/false>(
          x + first, y + (group * features + f) * n.y_strides[At(n.d.kernel_output_feature)],
          terms.x, terms.y);
    }
  });
}

void CopyElement(const Literal& from, int64_t source, Literal& to, int64_t target) {
  const size_t width = At(ByteWidth(to.shape().type()));
  std::memcpy(to.data() + At(target) * width, from.data() + At(source) * width, width);
}

// A computation of two scalars, ready to be applied to elements.
class Function {
 public:
  Function(const ir::Computation& computation, const RegionContext& context)
      : computation_(computation), context_(context), reducer_(Reducer::Make(computation)) {}

  // Writes the result to `out`.
  Status Apply(const Literal& a, int64_t i, const Literal& b, int64_t j, std::byte* out) {
    const size_t width = At(ByteWidth(a.shape().type()));
    const std::byte *x = a.data() + At(i) * width, *y = b.data() + At(j) * width;
    const Shape& result = computation_.root()->shape();
    if (reducer_) {
      KILN_RETURN_IF_ERROR(context_.charge(reducer_->instruction_count()));
      std::memcpy(reducer_->parameter(0), x, width);
      std::memcpy(reducer_->parameter(1), y, width);
      KILN_RETURN_IF_ERROR(reducer_->Apply());
      std::memcpy(out, reducer_->result(0), At(ByteWidth(result.type())));
      return OkStatus();
    }
    std::vector<Literal> arguments(2, Literal(Shape::Scalar(a.shape().type())));
    std::memcpy(arguments[0].data(), x, width);
    std::memcpy(arguments[1].data(), y, width);
    KILN_ASSIGN_OR_RETURN(std::vector<Literal> results,
                          context_.call(computation_, std::move(arguments)));
    std::memcpy(out, results[0].data(), At(results[0].byte_size()));
    return OkStatus();
  }

 private:
  const ir::Computation& computation_;
  const RegionContext& context_;
  std::optional<Reducer> reducer_;
};

}  // namespace

Result<Literal> EvaluateConvolution(const Instruction& i,
                                    std::span<const Literal* const> operands) {
  const Literal &lhs = *operands[0], &rhs = *operands[1];
  if (i.shape().num_elements() == 0) return Literal(i.shape());
  Numbers numbers(i, lhs.shape(), rhs.shape());
  return Product(lhs, rhs, i.shape(), [&](const Literal& x, const Literal& y, const Shape& shape) {
    Literal result(shape);
    VisitProductTypes(shape.type(), x.shape().type(), [&](auto to, auto from) {
      using To = decltype(to);
      using From = decltype(from);
      Convolve<To>(numbers, x.values<From>().data(), y.values<From>().data(),
                   result.values<To>().data());
    });
    return result;
  });
}

Result<Literal> EvaluatePatches(const Instruction& i, std::span<const Literal* const> operands) {
  const Literal& x = *operands[0];
  Literal out(i.shape());
  if (out.shape().num_elements() == 0) return out;
  const auto& window = i.attributes().Window(Attr::kWindow);
  std::vector<int64_t> dims = out.shape().dims(), strides = RowMajorStrides(x.shape().dims());
  std::vector<int64_t> index(dims.size());
  int64_t next = 0;
  do {
    int64_t at = 0;
    for (size_t d = 0; d < window.size(); ++d) {
      int64_t position = PositionOf(window[d], x.shape().dim(static_cast<int64_t>(d)), index[d],
                                    index[window.size() + d]);
      at = position < 0 || at < 0 ? -1 : at + position * strides[d];
    }
    if (at >= 0) CopyElement(x, at, out, next);
    ++next;
  } while (NextIndex(dims, index));
  return out;
}

Result<Literal> EvaluateSelectAndScatter(const Instruction& i,
                                         std::span<const Literal* const> operands,
                                         const RegionContext& context) {
  const Literal &x = *operands[0], &source = *operands[1], &init = *operands[2];
  Literal out(i.shape());
  const int64_t elements = out.shape().num_elements();
  for (int64_t k = 0; k < elements; ++k) CopyElement(init, 0, out, k);
  // Sums of floats are rounded once, as in reduce.
  const bool sums = IsFloat(out.shape().type()) && ir::ReducerOf(*i.called(1)) == Opcode::kAdd;
  std::vector<double> totals;
  if (sums) totals.assign(At(elements), init.AsDouble(0));
  if (source.shape().num_elements() == 0) return out;
  Function select(*i.called(0), context), scatter(*i.called(1), context);
  const auto& window = i.attributes().Window(Attr::kWindow);
  std::vector<int64_t> places = source.shape().dims();
  std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
  std::vector<int64_t> place(places.size());
  int64_t number = 0;
  do {
    int64_t selected = -1;
    std::vector<std::vector<int64_t>> seen;
    std::vector<int64_t> sizes, k(window.size());
    for (size_t d = 0; d < window.size(); ++d) {
      seen.push_back(PositionsSeen(window[d], x.shape().dim(static_cast<int64_t>(d)), place[d]));
      sizes.push_back(std::ssize(seen[d]));
    }
    for (bool more = kiln::Product(sizes) > 0; more; more = NextIndex(sizes, k)) {
      int64_t at = 0;
      for (size_t d = 0; d < sizes.size(); ++d) at += seen[d][At(k[d])] * strides[d];
      auto keep = std::byte{0};
      if (selected >= 0) KILN_RETURN_IF_ERROR(select.Apply(x, selected, x, at, &keep));
      if (keep == std::byte{0}) selected = at;
    }
    if (selected >= 0 && sums) {
      totals[At(selected)] += source.AsDouble(number);
    } else if (selected >= 0) {
      const size_t width = At(ByteWidth(out.shape().type()));
      KILN_RETURN_IF_ERROR(
          scatter.Apply(out, selected, source, number, out.data() + At(selected) * width));
    }
    ++number;
  } while (NextIndex(places, place));
  if (!sums) return out;
  VisitType(out.shape().type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) {
      for (size_t k = 0; k < totals.size(); ++k) out.values<T>()[k] = RoundTo<T>(totals[k]);
    }
  });
  return out;
}

}  // namespace kiln::interp
