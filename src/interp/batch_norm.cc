#include "interp/batch_norm.h"

#include <cmath>

#include "base/strings.h"
#include "interp/scalar.h"

namespace kiln::interp {
namespace {

// An operand's elements in the type of computation.
std::vector<double> Numbers(const Literal& literal) {
  std::vector<double> numbers(static_cast<size_t>(literal.shape().num_elements()));
  for (size_t k = 0; k < numbers.size(); ++k) {
    numbers[k] = literal.AsDouble(static_cast<int64_t>(k));
  }
  return numbers;
}

Literal Rounded(const Shape& shape, const std::vector<double>& numbers) {
  Literal literal(shape);
  VisitType(shape.type(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) {
      for (size_t k = 0; k < numbers.size(); ++k) literal.values<T>()[k] = RoundTo<T>(numbers[k]);
    }
  });
  return literal;
}

}  // namespace

Result<Literal> EvaluateBatchNorm(const ir::Instruction& i,
                                  std::span<const Literal* const> operands) {
  const Shape& shape = operands[0]->shape();
  const int64_t index = i.attributes().Int(Attr::kFeatureIndex);
  const double epsilon = i.attributes().Float(Attr::kEpsilon);
  const size_t features = static_cast<size_t>(shape.dim(index));
  const size_t stride =
      static_cast<size_t>(RowMajorStrides(shape.dims())[static_cast<size_t>(index)]);
  const std::vector<double> x = Numbers(*operands[0]);
  const double count = features == 0 ? 0 : static_cast<double>(x.size() / features);
  auto feature = [&](size_t k) { return k / stride % features; };
  // For each feature the sum of term(k) over its elements.
  auto sums = [&](auto&& term) {
    std::vector<double> all(features);
    for (size_t k = 0; k < x.size(); ++k) all[feature(k)] += term(k);
    return all;
  };
  const std::vector<double> scale = Numbers(*operands[1]);

  if (i.opcode() == Opcode::kBatchNormGrad) {
    const std::vector<double> mean = Numbers(*operands[2]), variance = Numbers(*operands[3]),
                              gradient = Numbers(*operands[4]);
    auto centred = [&](size_t k) { return x[k] - mean[feature(k)]; };
    const std::vector<double> sum = sums([&](size_t k) { return gradient[k]; });
    const std::vector<double> product = sums([&](size_t k) { return gradient[k] * centred(k); });
    std::vector<double> of_operand(x.size()), of_scale(features);
    for (size_t k = 0; k < x.size(); ++k) {
      const size_t f = feature(k);
      const double v = variance[f] + epsilon;
      of_operand[k] = scale[f] / std::sqrt(v) / count *
                      (count * gradient[k] - sum[f] - product[f] / v * centred(k));
    }
    for (size_t f = 0; f < features; ++f) {
      of_scale[f] = product[f] / std::sqrt(variance[f] + epsilon);
    }
    const std::vector<Shape>& results = i.shape().elements();
    std::vector<Literal> all;
    all.push_back(Rounded(results[0], of_operand));
    all.push_back(Rounded(results[1], of_scale));
    all.push_back(Rounded(results[2], sum));
    return Literal::Tuple(std::move(all));
  }

  const bool training = i.opcode() == Opcode::kBatchNormTraining;
  std::vector<double> mean, variance;
  if (training) {
    mean = sums([&](size_t k) { return x[k]; });
    for (double& m : mean) m /= count;
    variance =
        sums([&](size_t k) { return (x[k] - mean[feature(k)]) * (x[k] - mean[feature(k)]); });
    for (double& v : variance) v /= count;
  } else {
    mean = Numbers(*operands[3]);
    variance = Numbers(*operands[4]);
  }
  const std::vector<double> offset = Numbers(*operands[2]);
  std::vector<double> normal(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    const size_t f = feature(k);
    normal[k] = (x[k] - mean[f]) / std::sqrt(variance[f] + epsilon) * scale[f] + offset[f];
  }
  if (!training) return Rounded(i.shape(), normal);
  const std::vector<Shape>& results = i.shape().elements();
  std::vector<Literal> all;
  all.push_back(Rounded(results[0], normal));
  all.push_back(Rounded(results[1], mean));
  all.push_back(Rounded(results[2], variance));
  return Literal::Tuple(std::move(all));
}

}  // namespace kiln::interp
