#include <cmath>
#include <limits>

#include "kiln/gradient.h"
#include "kiln/train.h"
#include "train/value.h"

namespace kiln::train {
namespace {

Status CheckReduction(kiln_reduction reduction) {
  if (reduction >= KILN_REDUCTION_MEAN && reduction <= KILN_REDUCTION_NONE) return OkStatus();
  return InvalidArgument("reduction ", reduction, " is none");
}

Value Reduced(const Value& losses, kiln_reduction reduction) {
  if (reduction == KILN_REDUCTION_MEAN) return Mean(losses);
  return reduction == KILN_REDUCTION_SUM ? Reduce(losses, KILN_REDUCER_SUM) : losses;
}

// Floats and what they should be, both in the type of the computation.
struct Compared {
  Value predictions, targets;
};

Result<Compared> GivenPair(kiln_graph* graph, std::string_view name, kiln_value predictions,
                           std::string_view target_name, kiln_value targets) {
  KILN_ASSIGN_OR_RETURN(const Value x, Given(graph, name, predictions, Kind::kFloat));
  KILN_ASSIGN_OR_RETURN(const Value y, Given(graph, target_name, targets, Kind::kFloat));
  if (!HasDimsOf(x, y)) {
    return InvalidArgument(name, " are ", Describe(x), " and ", target_name, " ", Describe(y),
                           "; expected equal sizes");
  }
  const kiln_dtype type = ComputedType(x.dtype);
  return Compared{Convert(x, type), Convert(y, type)};
}

// Labels as s32; those that it does not hold stay out of all classes.
Value LabelsOf(const Value& labels) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  const bool is_signed = *kiln_dtype_name(labels.dtype) == 's';
  const int bits = kiln_dtype_bits(labels.dtype);
  Value held = labels;
  if (bits > 32 || (bits == 32 && !is_signed)) held = Minimum(held, kMost);
  if (bits > 32 && is_signed) held = Maximum(held, -1);
  return Convert(held, KILN_S32);
}

Result<Value> SoftmaxCrossEntropy(const Value& logits, const Value& given, double smoothing,
                                  kiln_reduction reduction) {
  kiln_graph* graph = logits.graph;
  if (logits.dims.empty() ||
      !HasDimsOf(given, {graph, 0, 0, logits.dims.first(logits.dims.size() - 1)})) {
    return InvalidArgument("logits are ", Describe(logits), " and labels ", Describe(given),
                           "; expected [..., classes] and [...]");
  }
  const int64_t classes = static_cast<int64_t>(logits.dims.size()) - 1;
  const Value x = Convert(logits, ComputedType(logits.dtype)), labels = LabelsOf(given);
  auto sum = [&](const Value& terms) { return Reduce(terms, {&classes, 1}, KILN_REDUCER_SUM); };

  // The largest logit is subtracted from all, which changes no derivative.
  const Value most = Apply(kiln_op_stop_gradient, Reduce(x, {&classes, 1}, KILN_REDUCER_MAX));
  const Value shifted = x - Unfold(most, x, classes);
  const Value positions{graph, kiln_op_iota(graph, classes, KILN_S32, x.dims.data(), x.dims.size()),
                        KILN_S32, x.dims};
  const Value hit = Compare(positions, KILN_EQ, Unfold(labels, x, classes));
  const Value picked = sum(Select(hit, shifted, Scalar(graph, x.dtype, 0)));
  Value loss = Apply(kiln_op_log, sum(Apply(kiln_op_exponential, shifted)));
  if (smoothing == 0) {
    loss = loss - picked;
  } else {
    loss = loss - ((1 - smoothing) * picked + smoothing * Mean(shifted, {&classes, 1}));
  }
  const Value size{graph, kiln_op_get_dimension_size(graph, x.id, &classes, 1), KILN_S32};
  const Value beyond = Compare(labels, KILN_GE, size);
  loss = Select(beyond, Scalar(graph, x.dtype, std::nan("")), loss);
  const Value counts = Compare(labels, KILN_GE, 0);
  loss = Select(counts, loss, Scalar(graph, x.dtype, 0));
  if (reduction != KILN_REDUCTION_MEAN) return Reduced(loss, reduction);
  return Reduce(loss, KILN_REDUCER_SUM) / Reduce(Convert(counts, x.dtype), KILN_REDUCER_SUM);
}

}  // namespace
}  // namespace kiln::train

using namespace kiln;         // NOLINT: the functions below are the namespace's face
using namespace kiln::train;  // NOLINT

kiln_value kiln_train_softmax_cross_entropy(kiln_graph* graph, kiln_value logits, kiln_value labels,
                                            double label_smoothing, kiln_reduction reduction) {
  return Built(graph, "kiln_train_softmax_cross_entropy", [&]() -> Result<Value> {
    KILN_RETURN_IF_ERROR(CheckReduction(reduction));
    KILN_RETURN_IF_ERROR(CheckNumber("label_smoothing", label_smoothing, 0, 1));
    KILN_ASSIGN_OR_RETURN(const Value x, Given(graph, "logits", logits, Kind::kFloat));
    KILN_ASSIGN_OR_RETURN(const Value y, Given(graph, "labels", labels, Kind::kInteger));
    return SoftmaxCrossEntropy(x, y, label_smoothing, reduction);
  });
}

kiln_value kiln_train_sigmoid_cross_entropy(kiln_graph* graph, kiln_value logits, kiln_value labels,
                                            kiln_reduction reduction) {
  return Built(graph, "kiln_train_sigmoid_cross_entropy", [&]() -> Result<Value> {
    KILN_RETURN_IF_ERROR(CheckReduction(reduction));
    KILN_ASSIGN_OR_RETURN(const Compared c, GivenPair(graph, "logits", logits, "labels", labels));
    const Value& x = c.predictions;
    const Value small = Apply(kiln_op_exponential, Apply(kiln_op_negate, Apply(kiln_op_abs, x)));
    return Reduced(Maximum(x, 0) - x * c.targets + Apply(kiln_op_log_plus_one, small), reduction);
  });
}

kiln_value kiln_train_squared_error(kiln_graph* graph, kiln_value predictions, kiln_value targets,
                                    kiln_reduction reduction) {
  return Built(graph, "kiln_train_squared_error", [&]() -> Result<Value> {
    KILN_RETURN_IF_ERROR(CheckReduction(reduction));
    KILN_ASSIGN_OR_RETURN(const Compared c,
                          GivenPair(graph, "predictions", predictions, "targets", targets));
    return Reduced(Square(c.predictions - c.targets), reduction);
  });
}

kiln_value kiln_train_huber(kiln_graph* graph, kiln_value predictions, kiln_value targets,
                            double delta, kiln_reduction reduction) {
  return Built(graph, "kiln_train_huber", [&]() -> Result<Value> {
    KILN_RETURN_IF_ERROR(CheckReduction(reduction));
    KILN_RETURN_IF_ERROR(CheckPositive("delta", delta));
    KILN_ASSIGN_OR_RETURN(const Compared c,
                          GivenPair(graph, "predictions", predictions, "targets", targets));
    const Value far = Apply(kiln_op_abs, c.predictions - c.targets);
    const Value losses =
        Select(Compare(far, KILN_LE, delta), 0.5 * Square(far), delta * (far - delta / 2));
    return Reduced(losses, reduction);
  });
}
