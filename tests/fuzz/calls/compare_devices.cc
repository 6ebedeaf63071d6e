#include "calls/compare_devices.h"

#include <algorithm>
#include <optional>

#include "compare.h"
#include "interp/interpreter.h"
#include "ir/specialise.h"
#include "ir/text.h"
#include "support/literal.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kMaxDeviceWork = 200'000;

// The arrays of a value, tuples taken apart in order. Empty where one is none, or is too large.
bool Leaves(const Shape& shape, std::vector<Shape>& leaves) {
  bool good = true;
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
    good &= leaf.is_array() && leaf.is_static();
    if (good) good &= leaf.byte_size() < 1 << 20;
    if (good) leaves.push_back(leaf);
  });
  return good;
}

void Flatten(const Literal& literal, std::vector<const Literal*>& arrays) {
  if (literal.shape().is_array()) arrays.push_back(&literal);
  for (const Literal& element : literal.elements()) Flatten(element, arrays);
}

Literal Unflatten(const Shape& shape, std::vector<Literal>& arrays, size_t& next) {
  if (shape.is_array()) return std::move(arrays[next++]);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) {
    elements.push_back(Unflatten(element, arrays, next));
  }
  return Literal::Tuple(std::move(elements));
}

class Comparison {
 public:
  // The module has the sizes in the place of the graph's symbols.
  Comparison(World& world, GraphState& graph, const ir::Module& module, const SymbolSizes& sizes)
      : w(world), g(graph), module_(module) {
    for (const auto& [name, size] : sizes) symbols_.push_back({name.data(), name.size(), size});
  }

  // The result on a device; none where the device may refuse it.
  std::optional<Literal> ResultOn(size_t device, const std::vector<Literal>& arguments) {
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.device = g.context->devices[device];
    options.timeout_ns = int64_t{60'000'000'000};
    options.optimization = static_cast<kiln_optimization>(w.Below(3));
    const std::string& name = g.context->names[device];
    // Some results in the memory of arguments, which are donated then.
    const std::vector<kiln_alias> aliases = Aliases(arguments);
    options.aliases = aliases.data();
    options.alias_count = aliases.size();
    options.symbols = symbols_.data();
    options.symbol_count = symbols_.size();
    kiln_executable* executable = World::Untouched<kiln_executable>();
    w.Begin("kiln_graph_compile", "graph #", g.number, ", ", name, ", optimization ",
            options.optimization, ", ", aliases.size(), " aliases, ", symbols_.size(), " symbols");
    if (!w.Gave(kiln_graph_compile(g.handle, &options, &executable), executable)) return {};
    ++shared_log->compiled;
    std::vector<Literal> results;
    const bool ran = Run(executable, device, arguments, results);
    w.Begin("kiln_executable_release", "");
    kiln_executable_release(executable);
    if (!ran) return {};
    size_t next = 0;
    return Unflatten(module_.entry()->root()->shape(), results, next);
  }

  // The result op by op, where it is an array and parameters are; none where that may be refused.
  std::optional<Literal> ResultOfSession(const std::vector<Literal>& arguments) {
    std::vector<kiln_value> feeds;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].shape().is_array()) return {};
      feeds.push_back(kiln_graph_parameter(g.handle, i));
    }
    const kiln_value fetch = kiln_graph_result(g.handle);
    if (!module_.entry()->root()->shape().is_array() ||
        std::find(feeds.begin(), feeds.end(), fetch) != feeds.end()) {
      return {};
    }
    kiln_session* session = World::Untouched<kiln_session>();
    w.Begin("kiln_session_create", "graph #", g.number);
    if (!w.Gave(kiln_session_create(g.handle, nullptr, &session), session)) return {};
    std::vector<kiln_buffer*> given(arguments.size());
    kiln_buffer* made = nullptr;
    Literal result(module_.entry()->root()->shape());
    kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
    options.cancel = w.CancelFlag(20000);
    bool ok = CopyArguments(0, arguments, given);
    w.Begin("kiln_session_run", "feeds {", Join(feeds, ","), "}, fetches ", fetch);
    ok = ok && w.Ok(kiln_session_run(session, &options, feeds.data(), given.data(), feeds.size(),
                                     &fetch, &made, 1, nullptr, 0));
    ok = ok && w.Ok(kiln_buffer_copy_to_host(made, result.data(),
                                             static_cast<size_t>(result.byte_size())));
    for (kiln_buffer* buffer : given) kiln_buffer_release(buffer);
    kiln_buffer_release(made);
    kiln_session_release(session);
    if (!ok) return {};
    ++shared_log->executed;
    return result;
  }

 private:
  std::vector<kiln_alias> Aliases(const std::vector<Literal>& arguments) {
    std::vector<kiln_alias> aliases;
    std::vector<const Literal*> arrays;
    for (const Literal& argument : arguments) Flatten(argument, arrays);
    std::vector<Shape> leaves;
    Leaves(module_.entry()->root()->shape(), leaves);
    std::vector<bool> taken(arrays.size());
    // Those that the text tells may be in the way of others.
    for (size_t r = 0; r < leaves.size() && module_.aliases().empty(); ++r) {
      for (size_t a = 0; a < arrays.size(); ++a) {
        if (taken[a] || !leaves[r].SameTypeAndDimensions(arrays[a]->shape()) || w.Chance(60)) {
          continue;
        }
        taken[a] = true;
        aliases.push_back({r, a, w.Chance(20), 0});
        break;
      }
    }
    return aliases;
  }

  bool CopyArguments(size_t device, const std::vector<Literal>& arguments,
                     std::vector<kiln_buffer*>& given) {
    std::vector<const Literal*> arrays;
    for (const Literal& argument : arguments) Flatten(argument, arrays);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::vector<int64_t> dims = arrays[i]->shape().dims();
      w.Begin("kiln_buffer_copy_host", g.context->names[device], ", ", arrays[i]->shape());
      if (!w.Ok(kiln_buffer_copy_host(g.context->devices[device],
                                      static_cast<kiln_dtype>(arrays[i]->shape().type()),
                                      dims.data(), dims.size(), arrays[i]->data(),
                                      static_cast<size_t>(arrays[i]->byte_size()), &given[i]))) {
        return false;
      }
    }
    return true;
  }

  bool Run(kiln_executable* executable, size_t device, const std::vector<Literal>& arguments,
           std::vector<Literal>& results) {
    std::vector<const Literal*> arrays;
    for (const Literal& argument : arguments) Flatten(argument, arrays);
    std::vector<Shape> leaves;
    Leaves(module_.entry()->root()->shape(), leaves);
    w.Expect(kiln_executable_argument_count(executable) == arrays.size() &&
                 kiln_executable_result_count(executable) == leaves.size(),
             "another number of arguments or results");
    std::vector<kiln_buffer*> given(arrays.size()), made(leaves.size());
    bool ok = CopyArguments(device, arguments, given);
    kiln_event* event = nullptr;
    if (ok) {
      kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
      options.cancel = w.CancelFlag(20000);
      options.threads = static_cast<int32_t>(w.Below(4));
      options.donate_aliased = 1;
      const bool queued = w.Chance(50);
      w.Begin(queued ? "kiln_executable_execute" : "kiln_executable_run", "threads ",
              options.threads);
      if (queued) {
        kiln_buffer* const* argument_list = given.data();
        kiln_buffer** result_list = made.data();
        ok = w.Ok(kiln_executable_execute(executable, &options, &argument_list, given.size(),
                                          &result_list, made.size(), 1, &event));
      } else {
        ok = w.Ok(kiln_executable_run(executable, &options, given.data(), given.size(), made.data(),
                                      made.size()));
      }
    }
    for (size_t i = 0; i < leaves.size() && ok; ++i) {
      Literal& result = results.emplace_back(leaves[i]);
      w.Begin("kiln_buffer_copy_to_host", leaves[i]);
      ok = w.Ok(kiln_buffer_copy_to_host(made[i], result.data(),
                                         static_cast<size_t>(result.byte_size())));
    }
    if (ok) ++shared_log->executed;
    kiln_event_release(event);
    for (kiln_buffer* buffer : given) kiln_buffer_release(buffer);
    for (kiln_buffer* buffer : made) kiln_buffer_release(buffer);
    return ok;
  }

  World& w;
  GraphState& g;
  const ir::Module& module_;
  std::vector<kiln_symbol_size> symbols_;
};

}  // namespace

void CompareDevices(World& w, GraphState& graph) {
  if (!graph.has_results || graph.is_broken) return;
  std::string text = w.HloText(graph);
  auto module = ir::ParseHloText(text);
  // Names in text that text cannot say.
  if (!module.ok()) return;
  SymbolSizes sizes;
  for (const auto& [name, number] : graph.symbols) {
    if (!name.empty()) sizes.emplace(name, w.Between(0, 5));
  }
  if (!sizes.empty()) {
    module = ir::Specialise(**module, sizes);
    if (!module.ok()) return;  // a size below 0
    for (const auto& [name, size] : sizes) text += Cat("// ", name, " = ", size, "\n");
  }
  std::vector<Shape> leaves;
  for (const ir::Instruction* p : (*module)->entry()->parameters()) {
    if (!Leaves(p->shape(), leaves)) return;
  }
  if (!Leaves((*module)->entry()->root()->shape(), leaves) || !IsDetermined(**module)) return;
  const std::vector<Literal> arguments = testing::RandomArguments(**module, w.Seed());
  // It is evaluated here first, which tells how much work it is.
  int64_t work = 0;
  const Interrupt late(nullptr, Interrupt::Clock::now() + std::chrono::seconds(20));
  auto expected = interp::Evaluate(**module, arguments,
                                   {.max_work = kMaxWork, .work_done = &work, .interrupt = late});
  if (!expected.ok() && expected.status().code() != Code::kNotFound) return;
  Comparison comparison(w, graph, **module, sizes);
  auto reference = comparison.ResultOn(2, arguments);
  if (!reference) return;
  const bool slow = work > kMaxDeviceWork || !expected.ok();
  const size_t other = slow || w.Chance(75) ? 0 : w.Below(graph.context->devices.size());
  auto hold = [&](const std::string& what, const std::optional<Literal>& result) {
    if (!result) return;
    ++shared_log->compared;
    bool ill_conditioned = false;
    const std::string difference =
        Compare(**module, arguments, *reference, *result, &ill_conditioned);
    shared_log->ill_conditioned += ill_conditioned;
    if (!difference.empty()) {
      w.Found(Cat(what, " and REFERENCE:0 differ: ", difference, "\n", text));
    }
  };
  hold("CPU:0", comparison.ResultOn(0, arguments));
  if (other != 0) hold(graph.context->names[other], comparison.ResultOn(other, arguments));
  if (w.Chance(20)) hold("a session", comparison.ResultOfSession(arguments));
}

}  // namespace kiln::fuzz
