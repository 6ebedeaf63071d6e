// Calls of graph.h on scopes, and on what ops are marked with.
#include <cstring>

#include "calls/callers.h"
#include "calls/graphs.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

constexpr std::string_view kDevices[] = {"",
                                         "CPU:0",
                                         "gpu",
                                         "XLA_GPU:1",
                                         "/job:localhost/replica:0/task:0/device:CPU:0",
                                         "/job:worker/task:3/device:GPU:7"};
constexpr std::string_view kNames[] = {"", "layer", "Layer", "layer/inner", "layer/", "a.b-c_1"};
constexpr std::string_view kKeys[] = {"kiln.device", "_XlaCompile", "_XlaScope", "key",
                                      "two words"};

// Scopes whose mistakes are the graph's, which would soon be of no use: few are wrong.
template <size_t kCount>
std::string Mostly(World& w, const std::string_view (&right)[kCount]) {
  return w.Chance(98) ? std::string(w.Pick(right)) : w.WildText();
}

int32_t Flag(World& w) { return static_cast<int32_t>(w.Chance(97) ? w.Below(2) : w.WildNumber()); }

// A change of scopes: a graph that was wrong stays wrong, and a mistake is the graph's.
void Scoped(World& w, const std::shared_ptr<GraphState>& graph, kiln_error* error) {
  const bool ok = w.Ok(error);
  if (!graph) return w.Expect(!ok, "a scope of no graph");
  w.Expect(!ok || !graph->is_broken, "a scope after a mistake");
  kiln_error* status = kiln_graph_status(graph->handle);
  w.Expect(ok == !status, "a mistake that is not the graph's");
  graph->is_broken = !ok;
  kiln_error_release(status);
}

// Changes of values are refused without an effect on the graph.
void Changed(World& w, const std::shared_ptr<GraphState>& graph, kiln_value value,
             kiln_error* error) {
  const bool ok = w.Ok(error);
  w.Expect(!ok || (graph && kiln_graph_value_name(graph->handle, value, nullptr)),
           "a mark of what is no value");
}

void ExpectTextOf(World& w, const std::shared_ptr<GraphState>& graph, kiln_value value,
                  const char* text, size_t length) {
  if (!text) return w.Expect(length == 0, "a length of nothing");
  w.Expect(graph && kiln_graph_value_name(graph->handle, value, nullptr), "a text of no value");
  w.Expect(text[length] == 0, "no 0 stands behind the text");
  w.Succeeded();
}

// push() -> kiln_error* is called before, mostly: a pop without it would be a mistake of the
// graph's.
template <typename Push, typename Pop>
void PopOf(World& w, const char* name, Push push, Pop pop) {
  auto graph = AnyGraph(w);
  if (graph && w.Chance(95)) {
    w.Begin(name, World::Name("graph", graph), ", after its push");
    Scoped(w, graph, push(graph->handle));
  }
  w.Begin(name, World::Name("graph", graph));
  Scoped(w, graph, pop(HandleOf(graph)));
}

template <typename F>
void NamedPush(World& w, const char* function_name, const std::string& name, F function) {
  auto graph = AnyGraph(w);
  const char* data = w.Chance(1) ? nullptr : name.data();
  w.Begin(function_name, World::Name("graph", graph), ", ", data ? name : "NULL");
  Scoped(w, graph, function(HandleOf(graph), data, name.size()));
}

}  // namespace

void Call_kiln_graph_push_device(World& w) {
  NamedPush(w, "kiln_graph_push_device", Mostly(w, kDevices), kiln_graph_push_device);
}

void Call_kiln_graph_pop_device(World& w) {
  PopOf(
      w, "kiln_graph_pop_device",
      [](kiln_graph* graph) { return kiln_graph_push_device(graph, "GPU", 3); },
      kiln_graph_pop_device);
}

void Call_kiln_graph_push_jit_scope(World& w) {
  auto graph = AnyGraph(w);
  const int32_t compile = Flag(w);
  w.Begin("kiln_graph_push_jit_scope", World::Name("graph", graph), ", ", compile);
  Scoped(w, graph, kiln_graph_push_jit_scope(HandleOf(graph), compile));
}

void Call_kiln_graph_pop_jit_scope(World& w) {
  PopOf(
      w, "kiln_graph_pop_jit_scope",
      [](kiln_graph* graph) { return kiln_graph_push_jit_scope(graph, 1); },
      kiln_graph_pop_jit_scope);
}

void Call_kiln_graph_push_name_scope(World& w) {
  NamedPush(w, "kiln_graph_push_name_scope", Mostly(w, kNames), kiln_graph_push_name_scope);
}

void Call_kiln_graph_pop_name_scope(World& w) {
  PopOf(
      w, "kiln_graph_pop_name_scope",
      [](kiln_graph* graph) { return kiln_graph_push_name_scope(graph, "s", 1); },
      kiln_graph_pop_name_scope);
}

void Call_kiln_graph_push_control_dependencies(World& w) {
  auto graph = AnyGraph(w);
  std::vector<kiln_value> values;
  for (size_t i = w.Below(4); graph && !graph->values.empty() && i > 0; --i) {
    values.push_back(w.Chance(99) ? w.Pick(graph->values).id : AnyValue(w, graph.get()));
  }
  const bool no_list = w.Chance(1);
  w.Begin("kiln_graph_push_control_dependencies", World::Name("graph", graph), ", ", values.size(),
          no_list ? ", NULL" : "");
  Scoped(w, graph,
         kiln_graph_push_control_dependencies(HandleOf(graph), no_list ? nullptr : values.data(),
                                              values.size()));
}

void Call_kiln_graph_pop_control_dependencies(World& w) {
  PopOf(
      w, "kiln_graph_pop_control_dependencies",
      [](kiln_graph* graph) { return kiln_graph_push_control_dependencies(graph, nullptr, 0); },
      kiln_graph_pop_control_dependencies);
}

void Call_kiln_graph_set_device(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const std::string name = w.Chance(80) ? std::string(w.Pick(kDevices)) : w.WildText();
  w.Begin("kiln_graph_set_device", World::Name("graph", graph), ", ", value, ", ", name);
  Changed(w, graph, value, kiln_graph_set_device(HandleOf(graph), value, name.data(), name.size()));
}

void Call_kiln_graph_set_jit(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const auto mode = static_cast<kiln_jit>(w.Chance(90) ? w.Between(0, 3) : w.WildNumber());
  w.Begin("kiln_graph_set_jit", World::Name("graph", graph), ", ", value, ", ", mode);
  Changed(w, graph, value, kiln_graph_set_jit(HandleOf(graph), value, mode));
}

void Call_kiln_graph_set_must_compile(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const int32_t must_compile = Flag(w);
  w.Begin("kiln_graph_set_must_compile", World::Name("graph", graph), ", ", value, ", ",
          must_compile);
  Changed(w, graph, value, kiln_graph_set_must_compile(HandleOf(graph), value, must_compile));
}

void Call_kiln_graph_add_control_dependency(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value before = AnyValue(w, graph.get()), after = AnyValue(w, graph.get());
  w.Begin("kiln_graph_add_control_dependency", World::Name("graph", graph), ", ", before, ", ",
          after);
  kiln_error* error = kiln_graph_add_control_dependency(HandleOf(graph), before, after);
  w.Expect(error || before != after, "a value that waits for itself");
  Changed(w, graph, after, error);
}

void Call_kiln_graph_set_frontend_attribute(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const std::string key = w.Chance(80) ? std::string(w.Pick(kKeys)) : w.WildText();
  const std::string text = w.Chance(50) ? std::string(w.Pick(kDevices)) : w.WildText();
  const bool no_text = w.Chance(10);
  w.Begin("kiln_graph_set_frontend_attribute", World::Name("graph", graph), ", ", value, ", ", key,
          ", ", no_text ? "NULL" : text);
  Changed(w, graph, value,
          kiln_graph_set_frontend_attribute(HandleOf(graph), value, key.data(), key.size(),
                                            no_text ? nullptr : text.data(),
                                            no_text ? 0 : text.size()));
}

void Call_kiln_graph_value_frontend_attribute(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const std::string key = w.Chance(80) ? std::string(w.Pick(kKeys)) : w.WildText();
  w.Begin("kiln_graph_value_frontend_attribute", World::Name("graph", graph), ", ", value, ", ",
          key);
  size_t length = 0;
  const char* text =
      kiln_graph_value_frontend_attribute(HandleOf(graph), value, key.data(), key.size(), &length);
  ExpectTextOf(w, graph, value, text, length);
}

void Call_kiln_graph_value_device(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  w.Begin("kiln_graph_value_device", World::Name("graph", graph), ", ", value);
  size_t length = 0;
  const char* text = kiln_graph_value_device(HandleOf(graph), value, &length);
  w.Expect(!text || length > 0, "an empty device");
  ExpectTextOf(w, graph, value, text, length);
}

void Call_kiln_graph_value_op_name(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  w.Begin("kiln_graph_value_op_name", World::Name("graph", graph), ", ", value);
  size_t length = 0;
  const char* text = kiln_graph_value_op_name(HandleOf(graph), value, &length);
  if (IsOf(graph.get(), value)) w.Expect(text, "a value has no origin");
  ExpectTextOf(w, graph, value, text, length);
}

}  // namespace kiln::fuzz
