// Updates of parameters, and the state that they read and write.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kiln/train.h"
#include "train/optimizer.h"
#include "train/value.h"

namespace kiln::train {
namespace {

// The scalars of an update in one type of computation.
struct Scalars {
  Value rate;           // the learning rate
  Value step;           // the number of this update, from 1
  Value first, second;  // 1 - beta^step, for Adam
};

// 1 - beta^step; the difference is not rounded twice.
Value Unbias(const Value& step, double beta) {
  if (beta == 0) return Scalar(step.graph, step.dtype, 1);
  return Apply(kiln_op_negate, Apply(kiln_op_exponential_minus_one, std::log(beta) * step));
}

bool IsAdam(const kiln_optimizer_options& o) {
  return o.kind == KILN_OPTIMIZER_ADAM || o.kind == KILN_OPTIMIZER_ADAMW;
}

Scalars ScalarsOf(const kiln_optimizer_options& o, const Value& rate, const Value& step,
                  kiln_dtype type) {
  Scalars s{Convert(rate, type), Convert(step, type), {}, {}};
  if (IsAdam(o)) {
    s.first = Unbias(s.step, o.beta1);
    s.second = Unbias(s.step, o.beta2);
  }
  return s;
}

Value Blend(double beta, const Value& mean, const Value& x) { return beta * mean + (1 - beta) * x; }

// An update of one parameter in the type of the computation. State is replaced by the next.
struct Rule {
  const kiln_optimizer_options& o;
  const Scalars& s;
  const Value& p;
  const Value& g;
  std::span<Value> state;

  Value Sgd() const {
    if (o.momentum == 0) return p - s.rate * g;
    Value& m = state[0];
    m = o.momentum * m + g;
    return p - s.rate * (o.nesterov != 0 ? g + o.momentum * m : m);
  }

  Value Adam() const {
    Value &m = state[0], &v = state[1];
    m = Blend(o.beta1, m, g);
    v = Blend(o.beta2, v, Square(g));
    const Value root = Sqrt(v) * (1 / Sqrt(s.second));
    return p - (s.rate / s.first) * (m / (root + o.epsilon));
  }

  Value Adagrad() const {
    Value& sum = state[0];
    sum = sum + Square(g);
    return p - s.rate * (g / (Sqrt(sum) + o.epsilon));
  }

  Value RmsProp() const {
    Value& square = state[0];
    square = Blend(o.beta2, square, Square(g));
    Value deviation = square;
    if (o.centered != 0) {
      Value& mean = state[1];
      mean = Blend(o.beta2, mean, g);
      deviation = Maximum(square - Square(mean), 0);  // below it by rounding only
    }
    const Value d = g / (Sqrt(deviation) + o.epsilon);
    if (o.momentum == 0) return p - s.rate * d;
    Value& m = state.back();
    m = o.momentum * m + d;
    return p - s.rate * m;
  }

  Value Lion() const {
    Value& m = state[0];
    const Value direction = Apply(kiln_op_sign, Blend(o.beta1, m, g));
    m = Blend(o.beta2, m, g);
    return p - s.rate * direction;
  }

  // `before` is the parameter before its decay.
  Value Adafactor(const Value& before) const {
    const double tiny = p.dtype == KILN_F64 ? std::numeric_limits<double>::epsilon()
                                            : std::numeric_limits<float>::epsilon();
    const Value blend = Apply(kiln_op_exponential, -0.8 * Apply(kiln_op_log, s.step));  // step^-0.8
    const Value square = Square(g);
    Value estimate;
    if (p.dims.size() > 1) {
      const auto last = static_cast<int64_t>(p.dims.size()) - 1, other = last - 1;
      Value &rows = state[0], &columns = state[1];
      rows = rows + blend * (Mean(square, {&last, 1}) - rows);
      columns = columns + blend * (Mean(square, {&other, 1}) - columns);
      const Value scale = Maximum(Mean(rows, {&other, 1}), tiny);
      estimate = Unfold(rows / Unfold(scale, rows, other), p, last) * Unfold(columns, p, other);
    } else {
      Value& mean = state[0];
      mean = mean + blend * (square - mean);
      estimate = mean;
    }
    const Value u = g / Sqrt(Maximum(estimate, tiny * tiny));
    const Value rate =
        Minimum(s.rate, 1 / Sqrt(s.step)) * Maximum(Sqrt(Mean(Square(before))), o.epsilon);
    return p - (rate / Maximum((1 / o.clip_threshold) * Sqrt(Mean(Square(u))), 1)) * u;
  }
};

bool IsCoupled(const kiln_optimizer_options& o) {
  return o.kind != KILN_OPTIMIZER_ADAMW && o.kind != KILN_OPTIMIZER_LION &&
         o.kind != KILN_OPTIMIZER_ADAFACTOR;
}

Value Updated(const kiln_optimizer_options& o, const Scalars& s, const Value& before, Value g,
              bool is_decayed, std::span<Value> state) {
  Value p = before;
  if (is_decayed && IsCoupled(o)) g = g + o.weight_decay * p;
  if (is_decayed && !IsCoupled(o)) p = p - (o.weight_decay * s.rate) * p;
  const Rule rule{o, s, p, g, state};
  switch (o.kind) {
    case KILN_OPTIMIZER_SGD:
      return rule.Sgd();
    case KILN_OPTIMIZER_ADAGRAD:
      return rule.Adagrad();
    case KILN_OPTIMIZER_RMSPROP:
      return rule.RmsProp();
    case KILN_OPTIMIZER_LION:
      return rule.Lion();
    case KILN_OPTIMIZER_ADAFACTOR:
      return rule.Adafactor(before);
    default:
      return rule.Adam();
  }
}

// The caller's lists of an update.
struct Lists {
  Values parameters, gradients;
  Value step;
  std::vector<Values> state;  // of each parameter
};

Result<Values> GivenState(const kiln_optimizer_options& o, const Value& parameter,
                          const kiln_value* ids, size_t first) {
  Values state;
  for (const Slot& slot : SlotsOf(o, parameter)) {
    const std::string name = Cat("state[", first, "]");
    KILN_ASSIGN_OR_RETURN(const Value value,
                          Given(parameter.graph, name, ids[first++], Kind::kFloat));
    const std::vector<int64_t> dims = DimsOf(slot, parameter);
    const Value expected{parameter.graph, 0, ComputedType(parameter.dtype), dims};
    if (value.dtype != expected.dtype || !HasDimsOf(value, expected)) {
      return InvalidArgument(name, " is ", Describe(value), "; expected ", slot.name, ", ",
                             Describe(expected));
    }
    state.push_back(value);
  }
  return state;
}

Result<Lists> GivenLists(kiln_graph* graph, const kiln_optimizer_options& o,
                         const kiln_value* parameters, const kiln_value* gradients, size_t count,
                         const kiln_value* state, size_t state_count) {
  Lists lists;
  KILN_ASSIGN_OR_RETURN(lists.parameters, GivenFloats(graph, "parameters", parameters, count));
  KILN_ASSIGN_OR_RETURN(lists.gradients, GivenFloats(graph, "gradients", gradients, count));
  size_t expected = 1;
  for (size_t i = 0; i < count; ++i) {
    const Value &p = lists.parameters[i], &g = lists.gradients[i];
    if (!HasDimsOf(p, g)) {
      return InvalidArgument("gradients[", i, "] is ", Describe(g), "; its parameter is ",
                             Describe(p));
    }
    expected += SlotsOf(o, p).size();
  }
  if (!state || state_count != expected) {
    return InvalidArgument("the state has ", state ? state_count : 0, " values; expected ",
                           expected);
  }
  KILN_ASSIGN_OR_RETURN(lists.step, GivenScalar(graph, "state[0]", state[0], Kind::kInteger));
  size_t first = 1;
  for (const Value& p : lists.parameters) {
    KILN_ASSIGN_OR_RETURN(Values of, GivenState(o, p, state, first));
    first += of.size();
    lists.state.push_back(std::move(of));
  }
  return lists;
}

// A parameter and its state after the update. The state's first value is the parameter's master,
// if it has one.
Value UpdatedAll(const kiln_optimizer_options& o, const Scalars& s, const Value& parameter,
                 const Value& gradient, bool is_decayed, Values& state) {
  const kiln_dtype type = ComputedType(parameter.dtype);
  const std::vector<Slot> slots = SlotsOf(o, parameter);
  const bool has_master = !slots.empty() && slots[0].of == Slot::Of::kMaster;
  const Value before = has_master ? state[0] : Convert(parameter, type);
  const Value after = Updated(o, s, before, Convert(gradient, type), is_decayed,
                              std::span(state).subspan(has_master ? 1 : 0));
  if (has_master) state[0] = after;
  return Convert(after, parameter.dtype);
}

Status Update(const kiln_optimizer_options& o, const Value& rate, const Value& apply,
              const Lists& lists, kiln_value* next_parameters, kiln_value* next_state) {
  auto chosen = [&](const Value& after, const Value& before) {
    return apply.id == 0 ? after : Select(apply, after, before);
  };
  const Value step = lists.step + 1;
  std::map<kiln_dtype, Scalars> scalars;
  *next_state++ = chosen(step, lists.step).id;
  for (size_t i = 0; i < lists.parameters.size(); ++i) {
    const Value& before = lists.parameters[i];
    const kiln_dtype type = ComputedType(before.dtype);
    if (!scalars.contains(type)) scalars[type] = ScalarsOf(o, rate, step, type);
    Values state = lists.state[i];
    const Value after =
        UpdatedAll(o, scalars[type], before, lists.gradients[i], IsDecayed(o, i), state);
    *next_parameters++ = chosen(after, before).id;
    for (size_t k = 0; k < state.size(); ++k) {
      *next_state++ = chosen(state[k], lists.state[i][k]).id;
    }
  }
  return OkStatus();
}

Value FirstState(const kiln_optimizer_options& o, const Slot& slot, const Value& parameter) {
  const kiln_dtype type = ComputedType(parameter.dtype);
  if (slot.of == Slot::Of::kMaster) return Convert(parameter, type);
  const double first = o.kind == KILN_OPTIMIZER_ADAGRAD ? o.initial_sum : 0;
  return Fill(parameter.graph, type, DimsOf(slot, parameter), first);
}

Status AddState(const kiln_optimizer_options& o, const Values& parameters, kiln_graph* graph,
                kiln_value* state) {
  const Value step = Scalar(graph, KILN_S32, 0);
  KILN_RETURN_IF_ERROR(SetName(step, "step"));
  *state++ = step.id;
  for (const Value& p : parameters) {
    const std::string name = NameOf(p);
    for (const Slot& slot : SlotsOf(o, p)) {
      const Value first = FirstState(o, slot, p);
      KILN_RETURN_IF_ERROR(SetName(first, Cat(name, ".", slot.name)));
      *state++ = first.id;
    }
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln::train

using namespace kiln;         // NOLINT: the functions below are the namespace's face
using namespace kiln::train;  // NOLINT

kiln_error* kiln_train_state(kiln_graph* graph, const kiln_optimizer_options* options,
                             const kiln_value* parameters, size_t count, kiln_value* state,
                             size_t state_size, size_t* state_count) {
  return Extended(graph, "kiln_train_state", [&]() -> Status {
    if (!state_count) return InvalidArgument("state_count is NULL");
    KILN_ASSIGN_OR_RETURN(const kiln_optimizer_options o, ReadOptimizer(options, count));
    KILN_ASSIGN_OR_RETURN(const Values given, GivenFloats(graph, "parameters", parameters, count));
    size_t needed = 1;
    for (const Value& p : given) needed += SlotsOf(o, p).size();
    if (state_size != 0 && (!state || state_size < needed)) {
      return InvalidArgument("there is room for ", state ? state_size : 0, " values of a state of ",
                             needed);
    }
    *state_count = needed;
    return state_size == 0 ? OkStatus() : AddState(o, given, graph, state);
  });
}

kiln_error* kiln_train_update(kiln_graph* graph, const kiln_optimizer_options* options,
                              kiln_value learning_rate, kiln_value apply,
                              const kiln_value* parameters, const kiln_value* gradients,
                              size_t count, const kiln_value* state, size_t state_count,
                              kiln_value* next_parameters, kiln_value* next_state) {
  return Extended(graph, "kiln_train_update", [&]() -> Status {
    if ((!next_parameters && count > 0) || !next_state) {
      return InvalidArgument("next_parameters or next_state is NULL");
    }
    KILN_ASSIGN_OR_RETURN(const kiln_optimizer_options o, ReadOptimizer(options, count));
    KILN_ASSIGN_OR_RETURN(const Value rate,
                          GivenScalar(graph, "learning_rate", learning_rate, Kind::kFloat));
    KILN_ASSIGN_OR_RETURN(const Value condition, GivenCondition(graph, "apply", apply));
    KILN_ASSIGN_OR_RETURN(const Lists lists,
                          GivenLists(graph, o, parameters, gradients, count, state, state_count));
    return Update(o, rate, condition, lists, next_parameters, next_state);
  });
}

kiln_error* kiln_train_parameters(kiln_graph* graph, kiln_graph* initial, const kiln_value* values,
                                  size_t count, kiln_value* parameters) {
  return Extended(graph, "kiln_train_parameters", [&]() -> Status {
    KILN_RETURN_IF_ERROR(TakeStatus(kiln_graph_status(initial)));
    if (count > 0 && (!values || !parameters)) {
      return InvalidArgument("values or parameters is NULL");
    }
    for (size_t i = 0; i < count; ++i) {
      size_t length = 0;
      const char* text = kiln_graph_value_op_name(initial, values[i], &length);
      if (!text) return InvalidArgument("values[", i, "] is none of the initial graph");
      const std::string name(text, length);
      parameters[i] = kiln_op_parameter_like(graph, initial, values[i], name.data(), name.size());
      KILN_RETURN_IF_ERROR(SetName({graph, parameters[i]}, name));
    }
    return OkStatus();
  });
}
