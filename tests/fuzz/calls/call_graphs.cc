// Calls of graph.h: graphs from nothing and from text, sizes of symbols, and what graphs tell.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "calls/callers.h"
#include "calls/graphs.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

constexpr std::string_view kHloTexts[] = {
    "HloModule m\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT r = f32[4]{0} add(p, p)\n}\n",
    "HloModule sum\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] "
    "add(a, b)\n}\nENTRY e {\n  p = f32[3,5]{1,0} parameter(0)\n  z = f32[] constant(0)\n  ROOT r "
    "= "
    "f32[3]{0} reduce(p, z), dimensions={1}, to_apply=add\n}\n",
    "HloModule alias, input_output_alias={ {}: (0, {}, may-alias) }\nENTRY e {\n  p = s32[7]{0} "
    "parameter(0)\n  ROOT r = s32[7]{0} negate(p)\n}\n",
    "HloModule t\nENTRY e {\n  p = (f32[2]{0}, s32[]) parameter(0)\n  a = f32[2]{0} "
    "get-tuple-element(p), index=0\n  b = s32[] get-tuple-element(p), index=1\n  ROOT r = (s32[], "
    "f32[2]{0}) tuple(b, a)\n}\n",
    "HloModule d\nENTRY e {\n  a = f32[4,8]{1,0} parameter(0)\n  b = f32[8,6]{1,0} parameter(1)\n  "
    "ROOT d = f32[4,6]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"};

constexpr std::string_view kStablehloTexts[] = {
    "func.func @main(%a: tensor<4xf32> {jax.buffer_donor = true}, %b: tensor<4xf32>) -> "
    "(tensor<4xf32> {jax.buffer_donor = 1 : i32}) {\n  %0 = stablehlo.add %a, %b : tensor<4xf32>\n "
    " return %0 : tensor<4xf32>\n}\n",
    "func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {\n  %0 = stablehlo.negate %a : "
    "tensor<?x3xf32>\n  return %0 : tensor<?x3xf32>\n}\n",
    "module {\n  func.func public @f(%a: tensor<2xi32>) -> (tensor<2xi32>, tensor<i32>) {\n    %c "
    "= "
    "stablehlo.constant dense<3> : tensor<i32>\n    return %a, %c : tensor<2xi32>, tensor<i32>\n  "
    "}\n}\n",
    "ML\xef\x52\x01StableHLO_v1.0.0"};

// A text as it is, or with a piece of it gone, doubled or another.
std::string Mutated(World& w, std::string text) {
  if (w.Chance(60) || text.empty()) return text;
  for (size_t times = 1 + w.Below(3); times > 0 && !text.empty(); --times) {
    const size_t at = w.Below(text.size()), n = 1 + w.Below(std::min<size_t>(20, text.size() - at));
    switch (w.Below(4)) {
      case 0:
        text.erase(at, n);
        break;
      case 1:
        text.insert(at, text.substr(at, n));
        break;
      case 2:
        text[at] = static_cast<char>(w.Below(256));
        break;
      default:
        text.insert(at, w.Chance(50) ? std::to_string(w.WildNumber()) : w.WildText().substr(0, 40));
    }
  }
  return text;
}

// What is read may have loops without an end, and asks for any memory.
void Keep(World& w, kiln_graph* graph, const std::shared_ptr<ContextState>& context) {
  auto state = w.Add(w.graphs, graph);
  state->context = context;
  state->has_loops = true;
  w.Look(*state);
}

// A size of the graph's: a symbol, a number of one, or a size.
int64_t AnySize(World& w, const GraphState* graph) {
  if (graph && !graph->symbols.empty() && w.Chance(80)) return w.Pick(graph->symbols).second;
  return w.Chance(90) ? w.Between(0, 6) : w.WildNumber();
}

// What a function of sizes gives: a number, or 0 and a mistake (or the size 0).
void ExpectSize(World& w, const std::shared_ptr<GraphState>& graph, int64_t number) {
  if (!graph) return w.Expect(number == 0, "a size of no graph");
  if (number != 0) {
    w.Expect(!graph->is_broken, "a size after a mistake");
    w.Succeeded();
    if (number < 0 && graph->symbols.size() < 10) graph->symbols.emplace_back("", number);
    return;
  }
  kiln_error* error = kiln_graph_status(graph->handle);
  const bool was_broken = graph->is_broken;
  graph->is_broken = error != nullptr;
  w.Expect(graph->is_broken || !was_broken, "a mistake has gone");
  if (error) (void)w.Ok(error);
}

}  // namespace

void Call_kiln_graph_create(World& w) {
  if (w.Chance(90)) {
    w.MakeGraph(w.Context(), w.WildText());
    return;
  }
  auto context = w.Chance(50) ? nullptr : w.Context();
  const char* name = w.Chance(50) ? nullptr : "";
  const size_t length = name || !context ? 0 : 3;
  w.Begin("kiln_graph_create", World::Name("context", context), ", ", length);
  kiln_graph* made = World::Untouched<kiln_graph>();
  if (w.Gave(kiln_graph_create(context ? context->handle : nullptr, name, length, &made), made)) {
    w.Add(w.graphs, made)->context = context;
  }
}

void Call_kiln_graph_from_hlo_text(World& w) {
  auto context = w.Chance(2) ? nullptr : w.Context();
  std::string text(w.Pick(kHloTexts));
  if (!w.graphs.empty() && w.Chance(40)) {
    const auto& graph = w.Pick(w.graphs);
    if (graph->has_results && !graph->is_broken) text = w.HloText(*graph);
  }
  text = Mutated(w, std::move(text));
  const bool no_text = w.Chance(2);
  kiln_graph* made = World::Untouched<kiln_graph>();
  w.Begin("kiln_graph_from_hlo_text", World::Name("context", context), ", ",
          no_text ? "NULL" : text);
  if (w.Gave(kiln_graph_from_hlo_text(context ? context->handle : nullptr,
                                      no_text ? nullptr : text.data(), text.size(), &made),
             made)) {
    Keep(w, made, context);
  }
}

namespace {

// `read(context, text, options, graph)` reads a program.
template <typename Read>
void ReadStablehlo(World& w, const char* function, Read&& read) {
  auto context = w.Chance(2) ? nullptr : w.Context();
  const std::string text = Mutated(w, std::string(w.Pick(kStablehloTexts)));
  kiln_stablehlo_options options = KILN_STABLEHLO_OPTIONS_INIT;
  const std::string entry = w.Chance(50) ? "main" : w.Chance(50) ? "f" : w.WildText();
  if (w.Chance(30)) {
    options.entry = entry.data();
    options.entry_length = entry.size();
  }
  const int64_t dims[2] = {w.Chance(90) ? w.Between(0, 5) : w.WildNumber(), 3};
  kiln_shape shape = KILN_SHAPE_INIT;
  shape.dtype = w.Chance(90) ? KILN_F32 : w.AnyType();
  shape.rank = w.Chance(90) ? 2 : w.Below(3);
  shape.dims = dims;
  const kiln_shape* shapes[2] = {&shape, w.Chance(50) ? &shape : nullptr};
  if (w.Chance(60)) {
    options.arguments = shapes;
    options.argument_count = w.Chance(90) ? 1 : 1 + w.Below(2);
  }
  if (w.Chance(10)) options.cancel = w.CancelFlag(w.Between(-1, 1));
  if (w.Chance(10)) options.timeout_ns = w.Chance(70) ? w.Between(1, 100000) : w.WildNumber();
  const SizedCopy sized(w, options);
  kiln_graph* made = World::Untouched<kiln_graph>();
  w.Begin(function, World::Name("context", context), ", entry ", options.entry ? entry : "NULL",
          ", {", dims[0], ",3}, rank ", shape.rank, ", ", options.argument_count,
          " arguments, timeout ", options.timeout_ns, ", ", sized.ToString(), ", ", text);
  if (w.Gave(read(context ? context->handle : nullptr, text,
                  w.Chance(20) ? nullptr : sized.As<kiln_stablehlo_options>(), &made),
             made)) {
    Keep(w, made, context);
  }
}

}  // namespace

void Call_kiln_graph_from_stablehlo(World& w) {
  ReadStablehlo(w, "kiln_graph_from_stablehlo",
                [](kiln_context* context, const std::string& text,
                   const kiln_stablehlo_options* options, kiln_graph** graph) {
                  return kiln_graph_from_stablehlo(context, text.data(), text.size(), options,
                                                   graph);
                });
}

void Call_kiln_graph_from_stablehlo_file(World& w) {
  ReadStablehlo(w, "kiln_graph_from_stablehlo_file",
                [&w](kiln_context* context, const std::string& text,
                     const kiln_stablehlo_options* options, kiln_graph** graph) {
                  const std::string path = Cat(w.Folder(), "/program", w.Seed());
                  if (w.Chance(90)) std::ofstream(path, std::ios::binary) << text;
                  kiln_error* error = kiln_graph_from_stablehlo_file(context, path.data(),
                                                                     path.size(), options, graph);
                  std::remove(path.c_str());
                  return error;
                });
}

void Call_kiln_graph_status(World& w) {
  auto graph = AnyGraph(w);
  w.Begin("kiln_graph_status", World::Name("graph", graph));
  kiln_error* error = kiln_graph_status(HandleOf(graph));
  if (graph) w.Expect((error != nullptr) == graph->is_broken, "it has another status than before");
  (void)w.Ok(error);
}

void Call_kiln_graph_set_results(World& w) {
  auto graph = AnyGraph(w);
  if (graph && w.Chance(70)) {
    w.SetSomeResults(*graph);
    return;
  }
  std::vector<kiln_value> values;
  for (size_t i = w.Below(4); i > 0; --i) values.push_back(AnyValue(w, graph.get()));
  const bool no_list = w.Chance(5);
  w.Begin("kiln_graph_set_results", World::Name("graph", graph), ", {", Join(values, ","), "}",
          no_list ? " NULL" : "");
  const bool ok = w.Ok(
      kiln_graph_set_results(HandleOf(graph), no_list ? nullptr : values.data(), values.size()));
  if (ok) graph->has_results = true;
}

void Call_kiln_graph_symbol(World& w) {
  auto graph = AnyGraph(w);
  static constexpr const char* kNames[] = {"n", "m", "rows"};
  const std::string name = w.Chance(95) ? w.Pick(kNames) : w.WildText();
  w.Begin("kiln_graph_symbol", World::Name("graph", graph), ", ", name);
  const int64_t number = kiln_graph_symbol(HandleOf(graph), name.data(), name.size());
  ExpectSize(w, graph, number);
  if (number == 0) return;
  for (const auto& [other, of] : graph->symbols) {
    w.Expect(other != name || of == number, "another number for the same name");
  }
  graph->symbols.emplace_back(name, number);
}

void Call_kiln_graph_symbol_affine(World& w) {
  auto graph = AnyGraph(w);
  const int64_t size = AnySize(w, graph.get());
  const int64_t times = w.Chance(90) ? w.Between(1, 3) : w.WildNumber();
  const int64_t plus = w.Chance(90) ? w.Between(0, 3) : w.WildNumber();
  w.Begin("kiln_graph_symbol_affine", World::Name("graph", graph), ", ", size, ", ", times, ", ",
          plus);
  ExpectSize(w, graph, kiln_graph_symbol_affine(HandleOf(graph), size, times, plus));
}

void Call_kiln_graph_symbol_sum(World& w) {
  auto graph = AnyGraph(w);
  const int64_t a = AnySize(w, graph.get()), b = AnySize(w, graph.get());
  w.Begin("kiln_graph_symbol_sum", World::Name("graph", graph), ", ", a, ", ", b);
  const int64_t sum = kiln_graph_symbol_sum(HandleOf(graph), a, b);
  ExpectSize(w, graph, sum);
  if (sum == 0) return;
  w.Expect(kiln_graph_symbol_sum(graph->handle, b, a) == sum, "a + b is not b + a");
}

void Call_kiln_graph_symbol_product(World& w) {
  auto graph = AnyGraph(w);
  const int64_t a = AnySize(w, graph.get()), b = AnySize(w, graph.get());
  w.Begin("kiln_graph_symbol_product", World::Name("graph", graph), ", ", a, ", ", b);
  ExpectSize(w, graph, kiln_graph_symbol_product(HandleOf(graph), a, b));
}

void Call_kiln_graph_bounded_size(World& w) {
  auto graph = AnyGraph(w);
  const int64_t bound = AnySize(w, graph.get());
  w.Begin("kiln_graph_bounded_size", World::Name("graph", graph), ", ", bound);
  const int64_t number = kiln_graph_bounded_size(HandleOf(graph), bound);
  w.Expect(number <= 0, "a bound that is a size");
  // The number is no symbol to compute with.
  if (number == 0) return ExpectSize(w, graph, 0);
  w.Succeeded();
  w.Expect(kiln_graph_bounded_size(graph->handle, bound) == number, "another number for a bound");
}

void Call_kiln_graph_symbol_text(World& w) {
  auto graph = AnyGraph(w);
  const int64_t size = AnySize(w, graph.get());
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin("kiln_graph_symbol_text", World::Name("graph", graph), ", ", size);
  if (w.Gave(kiln_graph_symbol_text(HandleOf(graph), size, &text), text)) w.Add(w.texts, text);
}

void Call_kiln_graph_parameter_count(World& w) {
  auto graph = AnyGraph(w);
  w.Begin("kiln_graph_parameter_count", World::Name("graph", graph));
  const size_t count = kiln_graph_parameter_count(HandleOf(graph));
  w.Expect(graph ? count <= graph->values.size() : count == 0, "too many parameters");
  w.Succeeded();
}

void Call_kiln_graph_parameter(World& w) {
  auto graph = AnyGraph(w);
  const auto number = static_cast<size_t>(w.Chance(80) ? w.Between(0, 4) : w.WildNumber());
  w.Begin("kiln_graph_parameter", World::Name("graph", graph), ", ", number);
  const kiln_value value = kiln_graph_parameter(HandleOf(graph), number);
  w.Expect((value != 0) == (number < kiln_graph_parameter_count(HandleOf(graph))),
           "a parameter that there is not, or none that there is");
  if (value != 0) w.Succeeded();
}

void Call_kiln_graph_result(World& w) {
  auto graph = AnyGraph(w);
  w.Begin("kiln_graph_result", World::Name("graph", graph));
  const kiln_value value = kiln_graph_result(HandleOf(graph));
  w.Expect((value != 0) == (graph && graph->has_results), "a result where none is set, or none");
  if (value != 0) w.Succeeded();
}

void Call_kiln_graph_find_value(World& w) {
  auto graph = AnyGraph(w);
  std::string name = w.WildText();
  kiln_value wanted = 0;
  if (graph && !graph->values.empty() && w.Chance(80)) {
    wanted = w.Pick(graph->values).id;
    size_t length = 0;
    const char* text = kiln_graph_value_name(graph->handle, wanted, &length);
    name = std::string(text, length);
  }
  constexpr kiln_value kUntouched = 0x5a5a5a5a;
  kiln_value value = kUntouched;
  w.Begin("kiln_graph_find_value", World::Name("graph", graph), ", ", name);
  const bool ok = w.Ok(kiln_graph_find_value(HandleOf(graph), name.data(), name.size(), &value));
  w.Expect(ok ? wanted == 0 || value == wanted : wanted == 0 && value == kUntouched,
           "another value");
}

void Call_kiln_graph_value_shape(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const kiln_shape shape = KILN_SHAPE_INIT;
  const SizedCopy sized(w, shape);
  w.Begin("kiln_graph_value_shape", World::Name("graph", graph), ", ", value, ", ",
          sized.ToString());
  const bool ok = w.Ok(kiln_graph_value_shape(HandleOf(graph), value,
                                              w.Chance(2) ? nullptr : sized.As<kiln_shape>()));
  w.Expect(!ok || (graph && kiln_graph_value_name(graph->handle, value, nullptr)),
           "the shape of what is no value");
}

void Call_kiln_graph_value_name(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  w.Begin("kiln_graph_value_name", World::Name("graph", graph), ", ", value);
  size_t length = 0;
  const char* name = kiln_graph_value_name(HandleOf(graph), value, &length);
  if (IsOf(graph.get(), value)) w.Expect(name, "a value has no name");
  if (!name) return w.Expect(length == 0, "a length of nothing");
  w.Expect(name[length] == 0, "no 0 stands behind the name");
  w.Succeeded();
}

// An attribute of an argument or result of a program in StableHLO.
void AskAttribute(World& w, std::string_view function,
                  decltype(&kiln_graph_argument_attribute) call) {
  auto graph = AnyGraph(w);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  const std::string name = w.Chance(50) ? "jax.buffer_donor" : w.WildText();
  const bool no_name = w.Chance(5);
  w.Begin(function, World::Name("graph", graph), ", ", index, ", ", no_name ? "NULL" : name);
  size_t length = 77;
  const char* text =
      call(HandleOf(graph), index, no_name ? nullptr : name.data(), name.size(), &length);
  w.Expect(text ? graph && !no_name && text[length] == 0 : length == 0, "a wrong text");
  if (text) w.Succeeded();
}
void Call_kiln_graph_argument_attribute(World& w) {
  AskAttribute(w, "kiln_graph_argument_attribute", kiln_graph_argument_attribute);
}
void Call_kiln_graph_result_attribute(World& w) {
  AskAttribute(w, "kiln_graph_result_attribute", kiln_graph_result_attribute);
}

void Call_kiln_graph_set_op_name(World& w) {
  auto graph = AnyGraph(w);
  const kiln_value value = AnyValue(w, graph.get());
  const std::string name = w.WildText();
  const bool no_name = w.Chance(5);
  w.Begin("kiln_graph_set_op_name", World::Name("graph", graph), ", ", value, ", ",
          no_name ? "NULL" : name);
  (void)w.Ok(
      kiln_graph_set_op_name(HandleOf(graph), value, no_name ? nullptr : name.data(), name.size()));
}

void Call_kiln_graph_to_hlo_text(World& w) {
  auto graph = AnyGraph(w);
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin("kiln_graph_to_hlo_text", World::Name("graph", graph));
  if (w.Gave(kiln_graph_to_hlo_text(HandleOf(graph), &text), text)) w.Add(w.texts, text);
}

void Call_kiln_graph_to_dot(World& w) {
  auto graph = AnyGraph(w);
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin("kiln_graph_to_dot", World::Name("graph", graph));
  if (w.Gave(kiln_graph_to_dot(HandleOf(graph), &text), text)) w.Add(w.texts, text);
}

}  // namespace kiln::fuzz
