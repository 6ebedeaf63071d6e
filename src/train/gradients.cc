// What is done with gradients between their computation and an update, and averages after it.
#include "base/sized_struct.h"
#include "kiln/train.h"
#include "train/value.h"

namespace kiln::train {
namespace {

Value Norm(kiln_graph* graph, const Values& values) {
  kiln_dtype type = KILN_F32;
  for (const Value& value : values) {
    if (value.dtype == KILN_F64) type = KILN_F64;
  }
  Value sum = Scalar(graph, type, 0);
  for (const Value& value : values) {
    const Value x = Convert(value, ComputedType(value.dtype));
    sum = sum + Convert(Reduce(Square(x), KILN_REDUCER_SUM), type);
  }
  return Sqrt(sum);
}

Value Computed(const Value& value) { return Convert(value, ComputedType(value.dtype)); }

// change(Value) of each in the type of the computation, converted back.
template <typename Change>
void StoreChanged(const Values& values, kiln_value* out, Change&& change) {
  for (const Value& value : values) *out++ = Convert(change(Computed(value)), value.dtype).id;
}

Status NotNull(std::string_view name, const void* pointer, size_t count) {
  if (pointer || count == 0) return OkStatus();
  return InvalidArgument(name, " is NULL");
}

// The share of a new value in its average, at a step if that has an id.
Value ShareOf(double decay, const Value& step, kiln_dtype type) {
  if (step.id == 0) return Scalar(step.graph, type, 1 - decay);
  // 1 - (1 + step) / (10 + step)
  return Maximum(9 / (Convert(step, type) + 10), 1 - decay);
}

// Where the condition is true; everywhere if it has no id.
Value Where(const Value& condition, const Value& on_true, const Value& on_false) {
  return condition.id == 0 ? on_true : Select(condition, on_true, on_false);
}

Result<kiln_loss_scale_options> ReadLossScale(const kiln_loss_scale_options* options) {
  KILN_ASSIGN_OR_RETURN(kiln_loss_scale_options o, ReadOptions("kiln_loss_scale_options", options));
  if (o.initial == 0) o.initial = 65536;
  if (o.growth == 0) o.growth = 2;
  if (o.backoff == 0) o.backoff = 0.5;
  if (o.interval == 0) o.interval = 2000;
  KILN_RETURN_IF_ERROR(CheckNumber("initial", o.initial, 1e-30, 1e30));
  KILN_RETURN_IF_ERROR(CheckNumber("growth", o.growth, 1, 1e30));
  KILN_RETURN_IF_ERROR(CheckNumber("backoff", o.backoff, 1e-30, 1));
  if (o.interval < 1 || o.interval > INT32_MAX) {
    return InvalidArgument("interval is ", o.interval);
  }
  return o;
}

// The next scale, and the next number of steps without a change.
Values NextScale(const kiln_loss_scale_options& o, const Value& scale, const Value& steps,
                 const Value& finite) {
  const Value next = steps + 1;
  const Value grown = o.growth * scale;
  const Value grows = And(Compare(next, KILN_GE, static_cast<double>(o.interval)),
                          {scale.graph, kiln_op_is_finite(scale.graph, grown.id), KILN_PRED});
  const Value none = Scalar(scale.graph, steps.dtype, 0);
  return {Select(finite, Select(grows, grown, scale), o.backoff * scale),
          Select(finite, Select(grows, none, next), none)};
}

Status Accumulate(int64_t every, const Value& include, const Values& gradients,
                  const kiln_value* state, kiln_value* means, kiln_value* ready,
                  kiln_value* next_state) {
  kiln_graph* graph = include.graph;
  KILN_ASSIGN_OR_RETURN(const Value so_far,
                        GivenScalar(graph, "state[0]", state[0], Kind::kInteger));
  KILN_ASSIGN_OR_RETURN(const Values sums, GivenFloats(graph, "sums", state + 1, gradients.size()));
  const Value count = Where(include, so_far + 1, so_far);
  const Value is_ready = Compare(count, KILN_GE, static_cast<double>(every));
  *next_state++ = Select(is_ready, Scalar(graph, count.dtype, 0), count).id;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Value g = Computed(gradients[i]);
    if (sums[i].dtype != g.dtype || !HasDimsOf(sums[i], g)) {
      return InvalidArgument("state[", i + 1, "] is ", Describe(sums[i]), "; expected ",
                             Describe(g));
    }
    const Value sum = Where(include, sums[i] + g, sums[i]);
    *means++ = ((1 / static_cast<double>(every)) * sum).id;
    *next_state++ = Select(is_ready, Scalar(graph, sum.dtype, 0), sum).id;
  }
  *ready = is_ready.id;
  return OkStatus();
}

}  // namespace
}  // namespace kiln::train

using namespace kiln;         // NOLINT: the functions below are the namespace's face
using namespace kiln::train;  // NOLINT

kiln_value kiln_train_norm(kiln_graph* graph, const kiln_value* values, size_t count) {
  return Built(graph, "kiln_train_norm", [&]() -> Result<Value> {
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "values", values, count));
    return Norm(graph, given);
  });
}

kiln_error* kiln_train_clip_by_norm(kiln_graph* graph, double norm, const kiln_value* gradients,
                                    size_t count, kiln_value* clipped, kiln_value* norm_before) {
  return Extended(graph, "kiln_train_clip_by_norm", [&]() -> Status {
    KILN_RETURN_IF_ERROR(CheckPositive("norm", norm));
    KILN_RETURN_IF_ERROR(NotNull("clipped", clipped, count));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "gradients", gradients, count));
    const Value before = Norm(graph, given);
    const Value factor = norm / Maximum(before, norm);
    StoreChanged(given, clipped, [&](const Value& x) { return x * Convert(factor, x.dtype); });
    if (norm_before) *norm_before = before.id;
    return OkStatus();
  });
}

kiln_error* kiln_train_clip_by_value(kiln_graph* graph, double limit, const kiln_value* gradients,
                                     size_t count, kiln_value* clipped) {
  return Extended(graph, "kiln_train_clip_by_value", [&]() -> Status {
    KILN_RETURN_IF_ERROR(CheckNumber("limit", limit, 0, 1e300));
    KILN_RETURN_IF_ERROR(NotNull("clipped", clipped, count));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "gradients", gradients, count));
    StoreChanged(given, clipped,
                 [&](const Value& x) { return Minimum(Maximum(x, -limit), limit); });
    return OkStatus();
  });
}

kiln_error* kiln_train_accumulator(kiln_graph* graph, const kiln_value* parameters, size_t count,
                                   kiln_value* state) {
  return Extended(graph, "kiln_train_accumulator", [&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("state", state, 1));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "parameters", parameters, count));
    Values made = {Scalar(graph, KILN_S32, 0)};
    KILN_RETURN_IF_ERROR(SetName(made[0], "accumulated"));
    for (const Value& p : given) {
      made.push_back(Fill(graph, ComputedType(p.dtype), p.dims, 0));
      KILN_RETURN_IF_ERROR(SetName(made.back(), Cat(NameOf(p), ".gradients")));
    }
    Store(made, state);
    return OkStatus();
  });
}

kiln_error* kiln_train_accumulate(kiln_graph* graph, int64_t every, kiln_value include,
                                  const kiln_value* gradients, size_t count,
                                  const kiln_value* state, kiln_value* means, kiln_value* ready,
                                  kiln_value* next_state) {
  return Extended(graph, "kiln_train_accumulate", [&]() -> Status {
    if (every < 1 || every > INT32_MAX) return InvalidArgument("every is ", every);
    KILN_RETURN_IF_ERROR(NotNull("means", means, count));
    KILN_RETURN_IF_ERROR(NotNull("state", state, 1));
    KILN_RETURN_IF_ERROR(NotNull("next_state", next_state, 1));
    KILN_RETURN_IF_ERROR(NotNull("ready", ready, 1));
    KILN_ASSIGN_OR_RETURN(const Value condition, GivenCondition(graph, "include", include));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "gradients", gradients, count));
    return Accumulate(every, condition, given, state, means, ready, next_state);
  });
}

void kiln_loss_scale_options_init(kiln_loss_scale_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_error* kiln_train_loss_scale(kiln_graph* graph, const kiln_loss_scale_options* options,
                                  kiln_value* state) {
  return Extended(graph, "kiln_train_loss_scale", [&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("state", state, 1));
    KILN_ASSIGN_OR_RETURN(const kiln_loss_scale_options o, ReadLossScale(options));
    const Values made = {Scalar(graph, KILN_F32, o.initial), Scalar(graph, KILN_S32, 0)};
    KILN_RETURN_IF_ERROR(SetName(made[0], "loss_scale"));
    KILN_RETURN_IF_ERROR(SetName(made[1], "loss_scale.steps"));
    Store(made, state);
    return OkStatus();
  });
}

kiln_error* kiln_train_unscale(kiln_graph* graph, const kiln_loss_scale_options* options,
                               const kiln_value* state, const kiln_value* gradients, size_t count,
                               kiln_value* unscaled, kiln_value* finite, kiln_value* next_state) {
  return Extended(graph, "kiln_train_unscale", [&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("state", state, 1));
    KILN_RETURN_IF_ERROR(NotNull("unscaled", unscaled, count));
    KILN_RETURN_IF_ERROR(NotNull("finite", finite, 1));
    KILN_RETURN_IF_ERROR(NotNull("next_state", next_state, 1));
    KILN_ASSIGN_OR_RETURN(const kiln_loss_scale_options o, ReadLossScale(options));
    KILN_ASSIGN_OR_RETURN(const Value scale,
                          GivenScalar(graph, "state[0]", state[0], Kind::kFloat));
    KILN_ASSIGN_OR_RETURN(const Value steps,
                          GivenScalar(graph, "state[1]", state[1], Kind::kInteger));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "gradients", gradients, count));
    const Value inverse = 1 / scale;
    Value all = Scalar(graph, KILN_PRED, 1);
    for (const Value& gradient : given) {
      const Value g = Computed(gradient);
      const Value x = g * Convert(inverse, g.dtype);
      const Value is_finite{graph, kiln_op_is_finite(graph, x.id), KILN_PRED, x.dims};
      all = And(all, Reduce(is_finite, KILN_REDUCER_AND));
      *unscaled++ = x.id;
    }
    *finite = all.id;
    Store(NextScale(o, scale, steps, all), next_state);
    return OkStatus();
  });
}

kiln_error* kiln_train_average(kiln_graph* graph, double decay, kiln_value step,
                               const kiln_value* averages, const kiln_value* values, size_t count,
                               kiln_value* next) {
  return Extended(graph, "kiln_train_average", [&]() -> Status {
    KILN_RETURN_IF_ERROR(CheckNumber("decay", decay, 0, 1));
    KILN_RETURN_IF_ERROR(NotNull("next", next, count));
    KILN_ASSIGN_OR_RETURN(const Values old, GivenFloats(graph, "averages", averages, count));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "values", values, count));
    Value t{graph};
    if (step != 0) {
      KILN_ASSIGN_OR_RETURN(t, GivenScalar(graph, "step", step, Kind::kNumber));
    }
    for (size_t i = 0; i < count; ++i) {
      if (!HasDimsOf(old[i], given[i])) {
        return InvalidArgument("averages[", i, "] is ", Describe(old[i]), "; its value is ",
                               Describe(given[i]));
      }
      const Value average = Computed(old[i]);
      const Value share = ShareOf(decay, t, average.dtype);
      const Value x = Convert(given[i], average.dtype);
      next[i] = Convert(average + share * (x - average), old[i].dtype).id;
    }
    return OkStatus();
  });
}
