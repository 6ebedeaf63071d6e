#include <numbers>

#include "base/sized_struct.h"
#include "kiln/train.h"
#include "train/value.h"

namespace kiln::train {
namespace {

Status Check(const kiln_schedule_options& o) {
  if (o.reserved != 0) return InvalidArgument("reserved is not 0");
  if (o.kind < KILN_SCHEDULE_CONSTANT || o.kind > KILN_SCHEDULE_COSINE) {
    return InvalidArgument("kind ", o.kind, " is none");
  }
  for (double number : {o.start, o.peak, o.end}) {
    KILN_RETURN_IF_ERROR(CheckNumber("a value", number, -1e30, 1e30));
  }
  if (o.warmup_steps < 0) return InvalidArgument("warmup_steps is ", o.warmup_steps);
  if (o.kind != KILN_SCHEDULE_CONSTANT && o.steps <= o.warmup_steps) {
    return InvalidArgument("steps is ", o.steps, "; expected more than the ", o.warmup_steps,
                           " of the warm-up");
  }
  return OkStatus();
}

// After the warm-up.
Value Course(const Value& step, const kiln_schedule_options& o) {
  if (o.kind == KILN_SCHEDULE_CONSTANT) return Scalar(step.graph, step.dtype, o.peak);
  const auto warmup = static_cast<double>(o.warmup_steps), steps = static_cast<double>(o.steps);
  const Value part = Minimum(Maximum((1 / (steps - warmup)) * (step - warmup), 0), 1);
  if (o.kind == KILN_SCHEDULE_LINEAR) return (o.end - o.peak) * part + o.peak;
  const Value wave = Apply(kiln_op_cosine, std::numbers::pi * part);
  return ((o.peak - o.end) / 2) * (wave + 1) + o.end;
}

}  // namespace
}  // namespace kiln::train

using namespace kiln;         // NOLINT: the functions below are the namespace's face
using namespace kiln::train;  // NOLINT

void kiln_schedule_options_init(kiln_schedule_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_value kiln_train_schedule(kiln_graph* graph, const kiln_schedule_options* options,
                               kiln_value step) {
  return Built(graph, "kiln_train_schedule", [&]() -> Result<Value> {
    if (!options) return InvalidArgument("options is NULL");
    KILN_ASSIGN_OR_RETURN(const kiln_schedule_options o,
                          ReadOptions("kiln_schedule_options", options));
    KILN_RETURN_IF_ERROR(Check(o));
    KILN_ASSIGN_OR_RETURN(const Value given, GivenScalar(graph, "step", step, Kind::kNumber));
    const Value s = Convert(given, ComputedType(given.dtype));
    const Value course = Course(s, o);
    if (o.warmup_steps == 0) return course;
    const auto steps = static_cast<double>(o.warmup_steps);
    const Value warmup = ((o.peak - o.start) / steps) * s + o.start;
    return Select(Compare(s, KILN_LT, steps), warmup, course);
  });
}
