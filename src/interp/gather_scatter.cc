#include "interp/gather_scatter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "interp/reducer.h"
#include "interp/strided.h"
#include "ops/gather_scatter.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// Element k of an array of integers, saturated to an int64.
int64_t IndexAt(const Literal& indices, int64_t k) {
  return VisitType(indices.shape().type(), [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (IntType<T>) {
      const auto& element = indices.values<T>()[static_cast<size_t>(k)];
      const auto value = static_cast<std::conditional_t<SmallIntType<T>, int, T>>(element);
      if (std::cmp_greater(value, std::numeric_limits<int64_t>::max())) {
        return std::numeric_limits<int64_t>::max();
      }
      return static_cast<int64_t>(value);
    } else {
      return 0;
    }
  });
}

// clamp(0, start, most); 0 if the slice cannot fit at all.
int64_t Clamped(int64_t start, int64_t most) { return std::max<int64_t>(std::min(start, most), 0); }

void CopyElements(const Literal& from, int64_t source, Literal& to, int64_t target, int64_t count) {
  const auto width = static_cast<size_t>(ByteWidth(to.shape().type()));
  std::memcpy(to.data() + static_cast<size_t>(target) * width,
              from.data() + static_cast<size_t>(source) * width,
              static_cast<size_t>(count) * width);
}
void CopyElement(const Literal& from, int64_t source, Literal& to, int64_t target) {
  CopyElements(from, source, to, target, 1);
}

// Calls f(offset, number of elements) for each line of a slice of `sizes` in an array of `dims`,
// from offset 0 on.
template <typename F>
void ForEachLine(std::vector<int64_t> sizes, std::span<const int64_t> dims, F&& f) {
  std::vector<int64_t> strides = RowMajorStrides(dims);
  int64_t line = 1;
  if (!sizes.empty()) {
    line = sizes.back();
    sizes.back() = std::min<int64_t>(line, 1);
  }
  ForEachOffset(sizes, strides, [&](int64_t at) { f(at, line); });
}

// The offset of a slice of `sizes` in an array, by scalars.
int64_t StartOf(const Shape& shape, std::span<const Literal* const> starts,
                std::span<const int64_t> sizes) {
  std::vector<int64_t> strides = RowMajorStrides(shape.dims());
  int64_t offset = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t most = shape.dim(static_cast<int64_t>(d)) - sizes[d];
    offset += Clamped(IndexAt(*starts[d], 0), most) * strides[d];
  }
  return offset;
}

Literal DynamicSlice(const Instruction& i, std::span<const Literal* const> operands) {
  Literal out(i.shape());
  const std::vector<int64_t> sizes = out.shape().dims();
  int64_t start = StartOf(operands[0]->shape(), operands.subspan(1), sizes), next = 0;
  ForEachLine(sizes, operands[0]->shape().dims(), [&](int64_t at, int64_t count) {
    CopyElements(*operands[0], start + at, out, next, count);
    next += count;
  });
  return out;
}

// The index vector that belongs to an element of the slices' array.
class IndexVector {
 public:
  IndexVector(const SliceMap& map, const Literal& indices)
      : map_(map), indices_(indices), strides_(RowMajorStrides(indices.shape().dims())) {}

  int64_t Component(std::span<const int64_t> index, int64_t component) const {
    int64_t at = 0;
    for (size_t d = 0; d < strides_.size(); ++d) {
      int64_t of_vector = static_cast<int64_t>(d) == map_.index_vector_dim;
      at += strides_[d] * (of_vector ? component : index[static_cast<size_t>(map_.outside[d])]);
    }
    return IndexAt(indices_, at);
  }

 private:
  const SliceMap& map_;
  const Literal& indices_;
  std::vector<int64_t> strides_;
};

Literal Gather(const Instruction& i, const Literal& x, const Literal& indices) {
  Literal out(i.shape());
  // Dropped slices of size 0 leave undefined elements.
  if (out.shape().num_elements() == 0 || x.shape().num_elements() == 0) return out;
  SliceMap map = SliceMapOf(i.opcode(), i.attributes(), x.shape().rank(), indices.shape().rank());
  IndexVector vector(map, indices);
  const Ints& sizes = i.attributes().IntsOf(Attr::kSliceSizes);
  std::vector<int64_t> dims = out.shape().dims(), strides = RowMajorStrides(x.shape().dims());
  std::vector<int64_t> index(dims.size());
  int64_t next = 0;
  do {
    int64_t at = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t position = 0;
      if (map.component[d] >= 0) {
        position = Clamped(vector.Component(index, map.component[d]),
                           x.shape().dim(static_cast<int64_t>(d)) - sizes[d]);
      }
      if (map.slice[d] >= 0) position += index[static_cast<size_t>(map.slice[d])];
      if (map.batch[d] >= 0) {
        position += index[static_cast<size_t>(map.outside[static_cast<size_t>(map.batch[d])])];
      }
      at += position * strides[d];
    }
    CopyElement(x, at, out, next++);
  } while (NextIndex(dims, index));
  return out;
}

class Scatter {
 public:
  Scatter(const Instruction& i, std::span<const Literal* const> operands,
          const RegionContext& context)
      : function_(*i.called(0)),
        context_(context),
        count_(operands.size() / 2),
        indices_(*operands[count_]),
        updates_(operands.subspan(count_ + 1)),
        map_(SliceMapOf(i.opcode(), i.attributes(), operands[0]->shape().rank(),
                        indices_.shape().rank())),
        reducer_(Reducer::Make(function_)) {
    for (size_t k = 0; k < count_; ++k) results_.push_back(*operands[k]);
  }

  Result<Literal> Run() {
    const Shape& shape = updates_[0]->shape();
    if (shape.num_elements() > 0) {
      // The updates' dimensions outside the slices, and within.
      std::vector<size_t> outside, within;
      for (int64_t d : map_.outside) {
        if (d >= 0) outside.push_back(static_cast<size_t>(d));
      }
      for (int64_t d : map_.slice) {
        if (d >= 0) within.push_back(static_cast<size_t>(d));
      }
      std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
      KILN_RETURN_IF_ERROR(ForEach(outside, index, [&] {
        if (!FindSlice(index)) return OkStatus();
        return ForEach(within, index, [&] { return Update(index); });
      }));
    }
    if (count_ == 1) return std::move(results_[0]);
    return Literal::Tuple(std::move(results_));
  }

 private:
  // Calls f for all values of some of the dimensions of an index into the updates.
  template <typename F>
  Status ForEach(const std::vector<size_t>& chosen, std::vector<int64_t>& index, F&& f) {
    std::vector<int64_t> dims, part(chosen.size());
    for (size_t d : chosen) dims.push_back(updates_[0]->shape().dim(static_cast<int64_t>(d)));
    do {
      for (size_t k = 0; k < chosen.size(); ++k) index[chosen[k]] = part[k];
      KILN_RETURN_IF_ERROR(f());
    } while (NextIndex(dims, part));
    return OkStatus();
  }

  // The start of the slice of an index into the updates; false if it is not completely inside the
  // operand.
  bool FindSlice(std::span<const int64_t> index) {
    IndexVector vector(map_, indices_);
    const Shape& shape = results_[0].shape();
    std::vector<int64_t> strides = RowMajorStrides(shape.dims());
    start_ = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t dim = map_.slice[d];
      int64_t size = dim >= 0 ? updates_[0]->shape().dim(dim) : 1;
      int64_t start = 0;
      if (map_.component[d] >= 0) start = vector.Component(index, map_.component[d]);
      if (map_.batch[d] >= 0) {
        start = index[static_cast<size_t>(map_.outside[static_cast<size_t>(map_.batch[d])])];
      }
      if (start < 0 || start > shape.dim(static_cast<int64_t>(d)) - size) return false;
      start_ += start * strides[d];
    }
    return true;
  }

  Status Update(std::span<const int64_t> index) {
    std::vector<int64_t> strides = RowMajorStrides(results_[0].shape().dims());
    std::vector<int64_t> update_strides = RowMajorStrides(updates_[0]->shape().dims());
    int64_t target = start_, source = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (map_.slice[d] >= 0) target += strides[d] * index[static_cast<size_t>(map_.slice[d])];
    }
    for (size_t d = 0; d < update_strides.size(); ++d) source += update_strides[d] * index[d];
    auto element = [](const Literal& l, int64_t at) {
      return l.data() + at * ByteWidth(l.shape().type());
    };
    auto width = [&](size_t k) {
      return static_cast<size_t>(ByteWidth(results_[k].shape().type()));
    };
    auto put = [&](size_t k, const std::byte* value) {
      std::memcpy(results_[k].data() + static_cast<size_t>(target) * width(k), value, width(k));
    };
    if (reducer_) {
      KILN_RETURN_IF_ERROR(context_.charge(reducer_->instruction_count()));
      for (size_t k = 0; k < count_; ++k) {
        std::memcpy(reducer_->parameter(static_cast<int64_t>(k)), element(results_[k], target),
                    width(k));
        std::memcpy(reducer_->parameter(static_cast<int64_t>(count_ + k)),
                    element(*updates_[k], source), width(k));
      }
      KILN_RETURN_IF_ERROR(reducer_->Apply());
      for (size_t k = 0; k < count_; ++k) put(k, reducer_->result(static_cast<int64_t>(k)));
      return OkStatus();
    }
    std::vector<Literal> arguments;
    for (size_t k = 0; k < 2 * count_; ++k) {
      size_t of = k % count_;
      arguments.emplace_back(Shape::Scalar(results_[of].shape().type()));
      const std::byte* from =
          k < count_ ? element(results_[of], target) : element(*updates_[of], source);
      std::memcpy(arguments.back().data(), from, width(of));
    }
    KILN_ASSIGN_OR_RETURN(std::vector<Literal> next,
                          context_.call(function_, std::move(arguments)));
    for (size_t k = 0; k < count_; ++k) put(k, next[k].data());
    return OkStatus();
  }

  const ir::Computation& function_;
  const RegionContext& context_;
  size_t count_;
  const Literal& indices_;
  std::span<const Literal* const> updates_;
  SliceMap map_;
  std::optional<Reducer> reducer_;
  std::vector<Literal> results_;
  int64_t start_ = 0;
};

}  // namespace

void UpdateSlice(Literal& x, std::span<const Literal* const> update_then_starts) {
  const Literal& update = *update_then_starts[0];
  const std::vector<int64_t> sizes = update.shape().dims();
  int64_t start = StartOf(x.shape(), update_then_starts.subspan(1), sizes), next = 0;
  ForEachLine(sizes, x.shape().dims(), [&](int64_t at, int64_t count) {
    CopyElements(update, next, x, start + at, count);
    next += count;
  });
}

Result<Literal> EvaluateIndexedOp(const Instruction& i, std::span<const Literal* const> operands) {
  switch (i.opcode()) {
    case Opcode::kDynamicSlice:
      return DynamicSlice(i, operands);
    case Opcode::kDynamicUpdateSlice: {
      Literal out = *operands[0];
      UpdateSlice(out, operands.subspan(1));
      return out;
    }
    case Opcode::kGather:
      return Gather(i, *operands[0], *operands[1]);
    default:
      return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for it");
  }
}

Result<Literal> EvaluateScatter(const Instruction& i, std::span<const Literal* const> operands,
                                const RegionContext& context) {
  return Scatter(i, operands, context).Run();
}

}  // namespace kiln::interp
