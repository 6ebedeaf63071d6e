// Calls of gradient.h.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "base/strings.h"
#include "calls/callers.h"
#include "calls/graphs.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

// Derivatives of derivatives grow fast.
constexpr size_t kMostValues = 120;

kiln_gradient_options AnyOptions(World& w) {
  kiln_gradient_options options = KILN_GRADIENT_OPTIONS_INIT;
  options.recompute_loops = static_cast<int32_t>(w.Chance(95) ? w.Below(2) : w.WildNumber());
  if (w.Chance(2)) options.reserved = 1;
  return options;
}

bool IsFloating(const Value& value) {
  return value.is_array() && kiln_dtype_bits(value.dtype) >= 16 &&
         std::strchr("fbc", *kiln_dtype_name(value.dtype)) != nullptr;
}

// Some values of the graph, mostly floats.
std::vector<kiln_value> SomeValues(World& w, const GraphState* graph) {
  std::vector<kiln_value> values;
  for (size_t i = w.Below(3) + 1; i > 0; --i) {
    kiln_value value = AnyValue(w, graph);
    for (int attempt = 0; attempt < 8 && graph && !graph->values.empty(); ++attempt) {
      const Value& picked = w.Pick(graph->values);
      if (!IsFloating(picked) || !w.Chance(97)) continue;
      value = picked.id;
      break;
    }
    values.push_back(value);
  }
  return values;
}

// One for each value, mostly of its shape: the value itself.
std::vector<kiln_value> Alike(World& w, const GraphState* graph,
                              const std::vector<kiln_value>& values) {
  std::vector<kiln_value> alike = values;
  for (kiln_value& value : alike) {
    if (w.Chance(5)) value = AnyValue(w, graph);
  }
  return alike;
}

// New values of the shapes of others.
void Added(World& w, const std::shared_ptr<GraphState>& graph, kiln_error* error,
           const std::vector<kiln_value>& like, const std::vector<kiln_value>& added) {
  if (!w.Ok(error)) return;
  w.Expect(graph && !graph->is_broken, "derivatives of no graph, or after a mistake");
  if (!graph) return;
  for (size_t i = 0; i < like.size(); ++i) {
    w.Expect(kiln_graph_value_name(graph->handle, added[i], nullptr), "a derivative is no value");
    auto same = std::ranges::find(graph->values, like[i], &Value::id);
    if (same == graph->values.end()) continue;
    Value value = *same;
    value.id = added[i];
    graph->values.push_back(std::move(value));
  }
}

std::shared_ptr<GraphState> SmallGraph(World& w) {
  auto graph = AnyGraph(w);
  return graph && graph->values.size() > kMostValues ? w.Graph() : graph;
}

// The derivative of a call: its cotangents where operands and results have one shape.
kiln_error* PassOn(void*, kiln_graph*, const kiln_gradient_call* call) {
  for (size_t i = 0; i < call->operand_count && i < call->result_count; ++i) {
    call->gradients[i] = call->cotangents[i];
  }
  return nullptr;
}

kiln_error* FailToBuild(void*, kiln_graph*, const kiln_gradient_call*) {
  return kiln_error_create(KILN_ABORTED, "the function fails", 18);
}

void CountEnd(void* user_data) { ++*static_cast<std::atomic<int>*>(user_data); }

}  // namespace

void Call_kiln_graph_gradient(World& w) {
  auto graph = SmallGraph(w);
  const std::vector<kiln_value> of = SomeValues(w, graph.get()), by = SomeValues(w, graph.get());
  const kiln_gradient_options options = AnyOptions(w);
  std::vector<kiln_value> gradients(by.size());
  w.Begin("kiln_graph_gradient", World::Name("graph", graph), ", ", of[0], ", ", by.size());
  Added(w, graph,
        kiln_graph_gradient(HandleOf(graph), of[0], w.Chance(1) ? nullptr : by.data(), by.size(),
                            w.Chance(50) ? nullptr : &options, gradients.data()),
        by, gradients);
}

void Call_kiln_graph_vjp(World& w) {
  auto graph = SmallGraph(w);
  const std::vector<kiln_value> of = SomeValues(w, graph.get()), by = SomeValues(w, graph.get()),
                                given = Alike(w, graph.get(), of);
  const kiln_gradient_options options = AnyOptions(w);
  std::vector<kiln_value> gradients(by.size());
  w.Begin("kiln_graph_vjp", World::Name("graph", graph), ", ", of.size(), ", ", by.size());
  Added(w, graph,
        kiln_graph_vjp(HandleOf(graph), of.data(), w.Chance(1) ? nullptr : given.data(), of.size(),
                       by.data(), by.size(), w.Chance(50) ? nullptr : &options, gradients.data()),
        by, gradients);
}

void Call_kiln_graph_jvp(World& w) {
  auto graph = SmallGraph(w);
  const std::vector<kiln_value> of = SomeValues(w, graph.get()), by = SomeValues(w, graph.get()),
                                given = Alike(w, graph.get(), by);
  const kiln_gradient_options options = AnyOptions(w);
  std::vector<kiln_value> derivatives(of.size());
  w.Begin("kiln_graph_jvp", World::Name("graph", graph), ", ", of.size(), ", ", by.size());
  Added(
      w, graph,
      kiln_graph_jvp(HandleOf(graph), of.data(), of.size(), by.data(), given.data(), by.size(),
                     w.Chance(50) ? nullptr : &options, w.Chance(1) ? nullptr : derivatives.data()),
      of, derivatives);
}

void Call_kiln_graph_set_checkpoint(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const auto on = static_cast<int32_t>(w.Chance(97) ? w.Below(2) : w.WildNumber());
  w.Begin("kiln_graph_set_checkpoint", World::Name("graph", graph), ", ", value, ", ", on);
  (void)w.Ok(kiln_graph_set_checkpoint(HandleOf(graph), value, on));
}

void Call_kiln_graph_set_gradient(World& w) {
  auto function = AnyGraph(w), backward = w.Chance(20) ? nullptr : AnyGraph(w);
  w.Begin("kiln_graph_set_gradient", World::Name("graph", function), ", ",
          World::Name("graph", backward));
  (void)w.Ok(kiln_graph_set_gradient(HandleOf(function), HandleOf(backward)));
}

void Call_kiln_context_register_gradient(World& w) {
  auto context = w.Chance(2) ? nullptr : w.Context();
  const std::string target = w.Chance(80) ? Cat("target", w.Below(4)) : w.WildText();
  const bool has_destroy = w.Chance(70);
  std::atomic<int>* counter = w.Counter(0);
  w.Begin("kiln_context_register_gradient", World::Name("context", context), ", ", target.size());
  const bool ok = w.Ok(kiln_context_register_gradient(
      context ? context->handle : nullptr, target.data(), target.size(),
      w.Chance(2) ? nullptr : (w.Chance(75) ? PassOn : FailToBuild), counter,
      has_destroy ? CountEnd : nullptr));
  if (ok && has_destroy) w.ExpectCount(counter, 1);
}

}  // namespace kiln::fuzz
