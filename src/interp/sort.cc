#include "interp/sort.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "interp/narrow.h"
#include "interp/reducer.h"
#include "interp/strided.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

size_t WidthOf(const Literal& l) { return static_cast<size_t>(ByteWidth(l.shape().type())); }

// Lines of elements along one dimension: their offsets and stride.
struct Lines {
  std::vector<int64_t> begins;
  int64_t stride = 1, size = 0;
};

Lines LinesOf(const Shape& shape, int64_t dimension) {
  std::vector<int64_t> strides = RowMajorStrides(shape.dims()), dims = shape.dims();
  Lines lines;
  lines.stride = strides[static_cast<size_t>(dimension)];
  lines.size = shape.dim(dimension);
  dims.erase(dims.begin() + dimension);
  strides.erase(strides.begin() + dimension);
  if (shape.num_elements() > 0) lines.begins = OffsetsOf(dims, strides);
  return lines;
}

class Comparator {
 public:
  Comparator(const ir::Computation& function, std::span<const Literal* const> operands,
             const RegionContext& context)
      : function_(function),
        operands_(operands),
        context_(context),
        reducer_(Reducer::Make(function)) {}

  // Whether the elements at offset a come before those at b.
  Result<bool> operator()(int64_t a, int64_t b) {
    if (reducer_) {
      KILN_RETURN_IF_ERROR(context_.charge(reducer_->instruction_count()));
      for (size_t k = 0; k < operands_.size(); ++k) {
        size_t width = WidthOf(*operands_[k]);
        std::memcpy(reducer_->parameter(static_cast<int64_t>(2 * k)), At(k, a), width);
        std::memcpy(reducer_->parameter(static_cast<int64_t>(2 * k + 1)), At(k, b), width);
      }
      KILN_RETURN_IF_ERROR(reducer_->Apply());
      return *reducer_->result(0) != std::byte{0};
    }
    std::vector<Literal> arguments;
    for (size_t k = 0; k < operands_.size(); ++k) {
      for (int64_t at : {a, b}) {
        arguments.emplace_back(Shape::Scalar(operands_[k]->shape().type()));
        std::memcpy(arguments.back().data(), At(k, at), WidthOf(*operands_[k]));
      }
    }
    KILN_ASSIGN_OR_RETURN(std::vector<Literal> results,
                          context_.call(function_, std::move(arguments)));
    return results[0].values<bool>()[0];
  }

 private:
  const std::byte* At(size_t k, int64_t offset) const {
    return operands_[k]->data() + static_cast<size_t>(offset) * WidthOf(*operands_[k]);
  }

  const ir::Computation& function_;
  std::span<const Literal* const> operands_;
  const RegionContext& context_;
  std::optional<Reducer> reducer_;
};

// Merges neighbouring runs, shortest first: stable, and safe with any comparator, because it never
// combines two of its answers.
Status MergeSort(std::vector<int64_t>& offsets, Comparator& before) {
  size_t n = offsets.size();
  std::vector<int64_t> next(n);
  for (size_t run = 1; run < n; run *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * run) {
      size_t middle = std::min(begin + run, n), end = std::min(begin + 2 * run, n);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        bool take_right = left == middle;
        if (!take_right && right < end) {
          KILN_ASSIGN_OR_RETURN(take_right, before(offsets[right], offsets[left]));
        }
        next[at] = offsets[take_right ? right++ : left++];
      }
    }
    offsets.swap(next);
  }
  return OkStatus();
}

// A number with the order of the element: for a float, its bits in IEEE 754's total order.
uint64_t OrderKey(const std::byte* element, ElementType type) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(ByteWidth(type)));
  if (!IsFloat(type) && !IsSigned(type)) return bits;
  int width = static_cast<int>(8 * ByteWidth(type));
  uint64_t sign = uint64_t{1} << (width - 1);
  if (IsFloat(type) && (bits & sign))
    bits = ~bits & (sign | (sign - 1));
  else
    bits ^= sign;
  return bits;
}

}  // namespace

Result<Literal> EvaluateSort(const Instruction& i, std::span<const Literal* const> operands,
                             const RegionContext& context) {
  Lines lines = LinesOf(operands[0]->shape(), i.attributes().IntsOf(Attr::kDimensions)[0]);
  std::vector<Literal> results;
  for (const Literal* operand : operands) results.emplace_back(operand->shape());
  Comparator before(*i.called(0), operands, context);
  std::vector<int64_t> order(static_cast<size_t>(lines.size));
  for (int64_t begin : lines.begins) {
    for (size_t k = 0; k < order.size(); ++k) {
      order[k] = begin + static_cast<int64_t>(k) * lines.stride;
    }
    KILN_RETURN_IF_ERROR(MergeSort(order, before));
    for (size_t o = 0; o < operands.size(); ++o) {
      size_t width = WidthOf(*operands[o]);
      for (size_t k = 0; k < order.size(); ++k) {
        size_t to = static_cast<size_t>(begin + static_cast<int64_t>(k) * lines.stride);
        std::memcpy(results[o].data() + to * width,
                    operands[o]->data() + static_cast<size_t>(order[k]) * width, width);
      }
    }
  }
  if (results.size() == 1) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

Result<Literal> EvaluateTopK(const Instruction& i, std::span<const Literal* const> operands) {
  const Literal& operand = *operands[0];
  ElementType type = operand.shape().type();
  const AttrValue* flag = i.attributes().Find(Attr::kLargest);
  bool largest = flag && std::get<bool>(*flag);
  size_t k = static_cast<size_t>(i.attributes().Int(Attr::kK)), width = WidthOf(operand);
  // Small floats are ordered as f32.
  const bool is_narrow = IsNarrow(type);
  const Literal wide = is_narrow ? Widened(operand) : Literal();
  const Literal& ordered = is_narrow ? wide : operand;
  const ElementType ordered_type = WideOf(type);
  std::vector<Literal> results;
  for (const Shape& shape : i.shape().elements())
    results.emplace_back(Shape(shape.type(), shape.dims()));
  Lines lines = LinesOf(operand.shape(), operand.shape().rank() - 1);
  std::vector<uint64_t> keys(static_cast<size_t>(lines.size));
  std::vector<int32_t> order(keys.size());
  size_t line = 0;
  for (int64_t begin : lines.begins) {
    const std::byte* elements = operand.data() + static_cast<size_t>(begin) * width;
    const std::byte* in_order = ordered.data() + static_cast<size_t>(begin) * WidthOf(ordered);
    for (size_t e = 0; e < keys.size(); ++e) {
      uint64_t key = OrderKey(in_order + e * WidthOf(ordered), ordered_type);
      keys[e] = largest ? ~key : key;
    }
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
    });
    for (size_t e = 0; e < k; ++e) {
      size_t at = line * k + e, from = static_cast<size_t>(order[e]);
      std::memcpy(results[0].data() + at * width, elements + from * width, width);
      results[1].values<int32_t>()[at] = order[e];
    }
    ++line;
  }
  return Literal::Tuple(std::move(results));
}

}  // namespace kiln::interp
