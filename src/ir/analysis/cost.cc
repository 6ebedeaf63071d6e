#include "ir/analysis/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/integers.h"

namespace kiln::ir {
namespace {

// How often an element of a window, over all its places along a dimension of `size` elements, is
// one of these, and neither padding nor a hole.
int64_t CountInside(const WindowDimension& w, int64_t size, int64_t places) {
  if (size == 0) return 0;
  const int64_t last = (size - 1) * w.base_dilation;
  // Every so many places the window meets elements between which there are holes.
  const int64_t period = w.base_dilation / std::gcd(w.base_dilation, w.stride);
  // Where counting would take long, so many at the most.
  if (SaturatingMultiply(w.size, period) > 1 << 24) {
    return SaturatingMultiply(std::min(w.size, size), places);
  }
  int64_t count = 0;
  for (int64_t k = 0; k < w.size; ++k) {
    const int64_t offset = k * w.window_dilation - w.low;
    int64_t first = offset < 0 ? CeilDiv(-offset, w.stride) : 0;
    if (offset > last) break;
    const int64_t end = std::min(places, (last - offset) / w.stride + 1);
    for (int64_t p = 0; p < period && first < end; ++p, ++first) {
      if ((first * w.stride + offset) % w.base_dilation == 0) {
        count += (end - 1 - first) / period + 1;
        break;
      }
    }
  }
  return count;
}

int64_t ProductsOf(const Instruction& convolution) {
  const Attributes& a = convolution.attributes();
  const ConvolutionDimensions& d = a.Convolution(Attr::kDimLabels);
  const Shape &lhs = convolution.operand(0)->shape(), &result = convolution.shape();
  int64_t products = SaturatingMultiply(
      convolution.operand(1)->shape().dim(d.kernel_input_feature),
      SaturatingMultiply(result.dim(d.output_feature), result.dim(d.output_batch)));
  const auto& window = a.Window(Attr::kWindow);
  for (size_t k = 0; k < window.size(); ++k) {
    products = SaturatingMultiply(products, CountInside(window[k], lhs.dim(d.input_spatial[k]),
                                                        result.dim(d.output_spatial[k])));
  }
  return products;
}

class Counter {
 public:
  Operations Of(const Computation& c) {
    auto [it, fresh] = known_.try_emplace(&c);
    if (!fresh) return it->second;
    Operations sum;
    for (Instruction* i : c.instructions()) Add(sum, Of(*i), 1);
    return known_[&c] = sum;
  }

 private:
  static void Add(Operations& sum, const Operations& more, int64_t times) {
    sum.flops = SaturatingAdd(sum.flops, SaturatingMultiply(more.flops, times));
    sum.transcendentals =
        SaturatingAdd(sum.transcendentals, SaturatingMultiply(more.transcendentals, times));
  }

  static int64_t ElementsOf(const Shape& shape) {
    const Shape* array = &shape;
    while (array->is_tuple() && !array->elements().empty()) array = &array->elements()[0];
    return array->is_array() && array->is_static() ? array->num_elements() : 0;
  }

  // Of so many points, real or complex: real ones are transformed as half as many complex ones.
  static int64_t TransformFlops(const Instruction& i, int64_t points) {
    double sum = 0;
    for (int64_t n : i.attributes().IntsOf(Attr::kFftLength)) {
      if (n > 1) sum += std::log2(static_cast<double>(n));
    }
    const bool is_real = i.attributes().Text(Attr::kFftType).find("RFFT") != std::string::npos;
    return std::llround((is_real ? 2.5 : 5) * static_cast<double>(points) * sum);
  }

 public:
  Operations Of(const Instruction& i) {
    int64_t elements = ElementsOf(i.shape());
    auto applied = [&](int64_t times) {
      Operations result;
      Add(result, Of(*i.called(0)), std::max<int64_t>(times, 0));
      return result;
    };
    if (i.opcode() == Opcode::kCopy) return {};
    if (IsElementwise(i.opcode())) {
      return IsTranscendental(i.opcode()) ? Operations{0, elements} : Operations{elements, 0};
    }
    if (i.opcode() == Opcode::kDot) {
      int64_t products = elements;
      for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
        products = SaturatingMultiply(products, i.operand(0)->shape().dim(d));
      }
      return {SaturatingMultiply(2, products), 0};
    }
    if (i.opcode() == Opcode::kConvolution) return {SaturatingMultiply(2, ProductsOf(i)), 0};
    if (i.opcode() == Opcode::kSelectAndScatter) {
      const int64_t places = ElementsOf(i.operand(1)->shape());
      int64_t window = 1;
      for (const WindowDimension& w : i.attributes().Window(Attr::kWindow)) {
        window = SaturatingMultiply(window, w.size);
      }
      Operations result;
      Add(result, Of(*i.called(0)), SaturatingMultiply(places, window - 1));
      Add(result, Of(*i.called(1)), places);
      return result;
    }
    int64_t in = i.operand_count() > 0 ? ElementsOf(i.operand(0)->shape()) : 0;
    if (i.opcode() == Opcode::kReduce) return applied(in - elements);
    if (i.opcode() == Opcode::kMap) return applied(elements);
    if (i.opcode() == Opcode::kScatter) {
      return applied(ElementsOf(i.operand(i.operand_count() - 1)->shape()));
    }
    if (i.opcode() == Opcode::kSort || i.opcode() == Opcode::kTopK) {
      const auto levels = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(in - 1)));
      return {in > 1 ? SaturatingMultiply(in, levels) : 0, 0};
    }
    if (i.opcode() == Opcode::kFft) return {TransformFlops(i, std::max(in, elements)), 0};
    if (i.opcode() == Opcode::kCholesky || i.opcode() == Opcode::kTriangularSolve) {
      const Shape& a = i.operand(0)->shape();
      const int64_t products =
          SaturatingMultiply(elements, a.is_static() ? a.dim(a.rank() - 1) : 0);
      return {i.opcode() == Opcode::kCholesky ? products / 3 : SaturatingMultiply(2, products), 0};
    }
    Operations result;
    // The use of its computations is unknown.
    if (i.opcode() == Opcode::kCustomCall) return result;
    if (i.opcode() == Opcode::kConditional) {
      for (const Computation* branch : i.called()) {
        Operations of = Of(*branch);
        result.flops = std::max(result.flops, of.flops);
        result.transcendentals = std::max(result.transcendentals, of.transcendentals);
      }
      return result;
    }
    // Calls, fusions and loops.
    for (const Computation* callee : i.called()) Add(result, Of(*callee), 1);
    return result;
  }

 private:
  std::unordered_map<const Computation*, Operations> known_;
};

}  // namespace

Operations OperationsOf(const Module& module) { return Counter().Of(*module.entry()); }

Operations OperationsOf(const Instruction& instruction) { return Counter().Of(instruction); }

int64_t ConstantBytes(const Module& module) {
  std::unordered_set<const Literal*> counted;
  int64_t bytes = 0;
  for (const auto& computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (!i->IsConstant() || !i->shared_literal()) continue;
      if (counted.insert(i->shared_literal().get()).second) bytes += i->shape().byte_size();
    }
  }
  return bytes;
}

}  // namespace kiln::ir
