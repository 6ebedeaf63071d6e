// Calls of train.h that are no builder functions.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "calls/callers.h"
#include "calls/graphs.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

using Values = std::vector<kiln_value>;

bool IsFloat(const Value& value) {
  return value.is_array() && std::strchr("fb", *kiln_dtype_name(value.dtype)) != nullptr;
}

// Some floats of the graph; now and then a value that is none, which is a mistake.
Values SomeFloats(World& w, const GraphState* graph) {
  Values values;
  for (size_t i = graph ? w.Below(4) : 0; i > 0; --i) {
    for (int attempt = 0; attempt < 8 && !graph->values.empty(); ++attempt) {
      const Value& picked = w.Pick(graph->values);
      if (!IsFloat(picked)) continue;
      values.push_back(w.Chance(99) ? picked.id : AnyValue(w, graph));
      break;
    }
  }
  return values;
}

// A mistake is the graph's error.
void See(const std::shared_ptr<GraphState>& graph) {
  if (!graph) return;
  kiln_error* error = kiln_graph_status(graph->handle);
  graph->is_broken = error != nullptr;
  kiln_error_release(error);
}

// The value becomes one of the fuzzer's, with its shape.
void Register(World& w, GraphState& graph, kiln_value id) {
  kiln_shape shape = KILN_SHAPE_INIT;
  kiln_error* error = kiln_graph_value_shape(graph.handle, id, &shape);
  w.Expect(!error, "a result is no value");
  if (shape.byte_size < 0) return;
  Value value;
  value.id = id;
  value.has_shape = value.is_static = true;
  value.dtype = shape.dtype;
  value.dims.assign(shape.dims, shape.dims + shape.rank);
  graph.values.push_back(std::move(value));
}

// What a successful call has made.
void Added(World& w, const std::shared_ptr<GraphState>& graph, kiln_error* error,
           std::initializer_list<const Values*> made) {
  const bool ok = w.Ok(error);
  w.Expect(!ok || (graph && !graph->is_broken), "values of no graph, or after a mistake");
  See(graph);
  if (!ok) return;
  for (const Values* values : made) {
    for (kiln_value value : *values) Register(w, *graph, value);
  }
}

kiln_optimizer_options AnyOptimizer(World& w, size_t count, std::vector<int32_t>& decayed) {
  const auto kind = static_cast<kiln_optimizer>(w.Chance(97) ? w.Between(1, 7) : w.WildNumber());
  kiln_optimizer_options o;
  kiln_optimizer_options_init(&o, sizeof(o), kind);
  if (w.Chance(40)) o.momentum = 0.9;
  if (w.Chance(40)) o.weight_decay = 0.1;
  o.nesterov = w.Chance(20);
  o.centered = w.Chance(20);
  o.master_weights = w.Chance(30);
  if (w.Chance(2)) o.epsilon = -1;
  if (w.Chance(20)) {
    decayed.assign(count, 1);
    o.decayed = decayed.data();
    o.decayed_count = decayed.size() + w.Chance(3);
  }
  return o;
}

kiln_value AnyCondition(World& w, const std::shared_ptr<GraphState>& graph) {
  return w.Chance(80) || !graph ? 0 : kiln_op_scalar(graph->handle, KILN_PRED, 1);
}

kiln_loss_scale_options AnyLossScale(World& w) {
  kiln_loss_scale_options o = KILN_LOSS_SCALE_OPTIONS_INIT;
  if (w.Chance(30)) o.initial = 1024;
  if (w.Chance(30)) o.interval = w.Chance(90) ? 3 : w.WildNumber();
  return o;
}

}  // namespace

void Call_kiln_optimizer_options_init(World& w) {
  const auto kind = static_cast<kiln_optimizer>(w.Between(-1, 9));
  const size_t size =
      w.Chance(60) ? sizeof(kiln_optimizer_options) : w.Below(2 * sizeof(kiln_optimizer_options));
  std::vector<std::byte> bytes(size + 8, std::byte{0x5a});
  w.Begin("kiln_optimizer_options_init", size, ", ", kind);
  kiln_optimizer_options_init(reinterpret_cast<kiln_optimizer_options*>(bytes.data()), size, kind);
  w.Succeeded();
  w.Expect(std::ranges::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                               [](std::byte b) { return b == std::byte{0x5a}; }),
           "options beyond their size are written");
}

void Call_kiln_train_state(World& w) {
  auto graph = AnyGraph(w);
  const Values parameters = SomeFloats(w, graph.get());
  std::vector<int32_t> decayed;
  const kiln_optimizer_options o = AnyOptimizer(w, parameters.size(), decayed);
  Values state(w.Chance(90) ? KILN_OPTIMIZER_STATE_MAX(parameters.size()) : w.Below(3));
  size_t count = 0;
  w.Begin("kiln_train_state", World::Name("graph", graph), ", ", o.kind, ", ", parameters.size(),
          ", ", state.size());
  kiln_error* error = kiln_train_state(HandleOf(graph), w.Chance(1) ? nullptr : &o,
                                       parameters.data(), parameters.size(), state.data(),
                                       state.size(), w.Chance(1) ? nullptr : &count);
  if (!error) state.resize(std::min(count, state.size()));
  Added(w, graph, error, {&state});
}

void Call_kiln_train_update(World& w) {
  auto graph = AnyGraph(w);
  const Values parameters = SomeFloats(w, graph.get());
  std::vector<int32_t> decayed;
  const kiln_optimizer_options o = AnyOptimizer(w, parameters.size(), decayed);
  Values state(KILN_OPTIMIZER_STATE_MAX(parameters.size())), next(parameters.size());
  size_t count = 0;
  kiln_value rate = 0;
  if (graph && !graph->is_broken && w.Chance(97)) {
    kiln_error_release(kiln_train_state(graph->handle, &o, parameters.data(), parameters.size(),
                                        state.data(), state.size(), &count));
    See(graph);
    rate = kiln_op_scalar(graph->handle, KILN_F32, 0.1);
  }
  state.resize(count);
  Values next_state(count);
  const kiln_value apply = AnyCondition(w, graph);
  w.Begin("kiln_train_update", World::Name("graph", graph), ", ", o.kind, ", ", parameters.size(),
          ", ", count);
  Added(w, graph,
        kiln_train_update(HandleOf(graph), &o, rate, apply, parameters.data(), parameters.data(),
                          parameters.size(), state.data(), count, next.data(), next_state.data()),
        {&next, &next_state});
}

void Call_kiln_train_parameters(World& w) {
  auto graph = AnyGraph(w), initial = AnyGraph(w);
  Values values = SomeFloats(w, initial.get()), made(values.size());
  w.Begin("kiln_train_parameters", World::Name("graph", graph), ", ", World::Name("graph", initial),
          ", ", values.size());
  Added(w, graph,
        kiln_train_parameters(HandleOf(graph), HandleOf(initial), values.data(), values.size(),
                              w.Chance(1) ? nullptr : made.data()),
        {&made});
}

void Call_kiln_train_clip_by_norm(World& w) {
  auto graph = AnyGraph(w);
  const Values gradients = SomeFloats(w, graph.get());
  Values clipped(gradients.size()), norm(1);
  const bool has_norm = w.Chance(60);
  w.Begin("kiln_train_clip_by_norm", World::Name("graph", graph), ", ", gradients.size());
  kiln_error* error =
      kiln_train_clip_by_norm(HandleOf(graph), w.Chance(97) ? 1 : -1, gradients.data(),
                              gradients.size(), clipped.data(), has_norm ? norm.data() : nullptr);
  if (!has_norm) norm.clear();
  Added(w, graph, error, {&clipped, &norm});
}

void Call_kiln_train_clip_by_value(World& w) {
  auto graph = AnyGraph(w);
  const Values gradients = SomeFloats(w, graph.get());
  Values clipped(gradients.size());
  w.Begin("kiln_train_clip_by_value", World::Name("graph", graph), ", ", gradients.size());
  Added(w, graph,
        kiln_train_clip_by_value(HandleOf(graph), w.Chance(97) ? 1 : -1, gradients.data(),
                                 gradients.size(), clipped.data()),
        {&clipped});
}

void Call_kiln_train_accumulator(World& w) {
  auto graph = AnyGraph(w);
  const Values parameters = SomeFloats(w, graph.get());
  Values state(parameters.size() + 1);
  w.Begin("kiln_train_accumulator", World::Name("graph", graph), ", ", parameters.size());
  Added(w, graph,
        kiln_train_accumulator(HandleOf(graph), parameters.data(), parameters.size(),
                               w.Chance(1) ? nullptr : state.data()),
        {&state});
}

void Call_kiln_train_accumulate(World& w) {
  auto graph = AnyGraph(w);
  const Values gradients = SomeFloats(w, graph.get());
  const size_t count = gradients.size();
  Values state(count + 1), means(count), ready(1), next(count + 1);
  if (graph && !graph->is_broken) {
    kiln_error_release(
        kiln_train_accumulator(graph->handle, gradients.data(), count, state.data()));
    See(graph);
  }
  const kiln_value include = AnyCondition(w, graph);
  const int64_t every = w.Chance(95) ? w.Between(1, 4) : w.WildNumber();
  w.Begin("kiln_train_accumulate", World::Name("graph", graph), ", ", every, ", ", count);
  Added(w, graph,
        kiln_train_accumulate(HandleOf(graph), every, include, gradients.data(), count,
                              state.data(), means.data(), ready.data(), next.data()),
        {&means, &ready, &next});
}

void Call_kiln_train_loss_scale(World& w) {
  auto graph = AnyGraph(w);
  const kiln_loss_scale_options o = AnyLossScale(w);
  Values state(2);
  w.Begin("kiln_train_loss_scale", World::Name("graph", graph), ", ", o.interval);
  Added(w, graph,
        kiln_train_loss_scale(HandleOf(graph), w.Chance(20) ? nullptr : &o,
                              w.Chance(1) ? nullptr : state.data()),
        {&state});
}

void Call_kiln_train_unscale(World& w) {
  auto graph = AnyGraph(w);
  const kiln_loss_scale_options o = AnyLossScale(w);
  const Values gradients = SomeFloats(w, graph.get());
  Values state(2), unscaled(gradients.size()), finite(1), next(2);
  if (graph && !graph->is_broken) {
    kiln_error_release(kiln_train_loss_scale(graph->handle, nullptr, state.data()));
  }
  w.Begin("kiln_train_unscale", World::Name("graph", graph), ", ", gradients.size());
  Added(w, graph,
        kiln_train_unscale(HandleOf(graph), &o, state.data(), gradients.data(), gradients.size(),
                           unscaled.data(), finite.data(), next.data()),
        {&unscaled, &finite, &next});
}

void Call_kiln_train_average(World& w) {
  auto graph = AnyGraph(w);
  const Values values = SomeFloats(w, graph.get());
  Values next(values.size());
  const kiln_value step = w.Chance(50) || !graph ? 0 : kiln_op_scalar(graph->handle, KILN_S32, 3);
  w.Begin("kiln_train_average", World::Name("graph", graph), ", ", values.size());
  Added(w, graph,
        kiln_train_average(HandleOf(graph), w.Chance(97) ? 0.9 : 2, step, values.data(),
                           values.data(), values.size(), next.data()),
        {&next});
}

void Call_kiln_graph_fail(World& w) {
  // A broken graph is of no more use: mostly there is no code, which breaks nothing. INTERNAL would
  // be a mistake of the library's.
  auto graph = AnyGraph(w);
  const auto code = static_cast<kiln_code>(w.Chance(90) ? 0 : w.Between(1, KILN_INTERNAL - 1));
  const std::string message = w.WildText();
  w.Begin("kiln_graph_fail", World::Name("graph", graph), ", ", code, ", ", message.size());
  kiln_error* error = kiln_graph_fail(HandleOf(graph), code, message.data(), message.size());
  w.Expect(error, "no error");
  (void)w.Ok(error);
  See(graph);
}

}  // namespace kiln::fuzz
