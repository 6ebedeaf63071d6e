// Calls of executable.h and session.h: compiling, what programs tell of themselves, and running
// them.
#include <algorithm>
#include <cstring>
#include <map>

#include "calls/callers.h"
#include "calls/compare_devices.h"
#include "calls/world.h"
#include "tensor/shape.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kMaxBytes = 64 << 20;  // of a program's memory
constexpr int64_t kMaxFlops = 50'000'000, kMaxSlowFlops = 200'000;

kiln_executable* HandleOf(const std::shared_ptr<ExecutableState>& executable) {
  return executable ? executable->handle : nullptr;
}

// Options that are right, or mostly so.
struct CompileOptions {
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  std::vector<kiln_symbol_size> symbols;
  std::vector<kiln_alias> aliases;
  std::vector<size_t> frozen;
  std::string passes, folder, text, frozen_names;
};

void Fill(World& w, const GraphState* graph, CompileOptions& c) {
  kiln_compile_options& o = c.options;
  if (graph) {
    for (const auto& [name, number] : graph->symbols) {
      if (name.empty() || w.Chance(2)) continue;
      c.symbols.push_back(
          {name.data(), name.size(), w.Chance(97) ? w.Between(0, 6) : w.WildNumber()});
    }
  }
  if (w.Chance(2)) c.symbols.push_back({"other", 5, 3});
  o.symbols = c.symbols.data();
  o.symbol_count = c.symbols.size();
  if (w.Chance(3)) o.replicas = static_cast<int32_t>(w.Between(-1, 2));
  if (w.Chance(3)) o.partitions = static_cast<int32_t>(w.Between(-1, 2));
  if (w.Chance(8)) c.passes = w.Chance(70) ? "dce,cse" : w.WildText();
  o.disabled_passes = c.passes.data();
  o.disabled_passes_length = c.passes.size();
  o.verify = w.Chance(30);
  if (w.Chance(3)) {
    c.folder = w.Chance(80) ? w.Folder() : w.WildText();
    // A name of letters alone, or one where nothing can be made.
    if (c.folder.find('/') != 0) c.folder = Cat("/dev/null/", c.folder);
    o.dump_ptx_sm = w.Chance(50) ? 80 : static_cast<int32_t>(w.Between(0, 100));
    o.dump_large_constants = w.Chance(50);
    o.dump_forms = static_cast<int32_t>(w.Chance(95) ? w.Between(0, 15) : w.WildNumber());
  }
  o.dump_folder = c.folder.data();
  o.dump_folder_length = c.folder.size();
  if (w.Chance(15)) {
    for (size_t i = 1 + w.Below(2); i > 0; --i) {
      c.aliases.push_back({w.Below(3), w.Below(3), w.Chance(30), w.Chance(2)});
    }
  }
  o.aliases = c.aliases.data();
  o.alias_count = c.aliases.size();
  if (w.Chance(15)) c.frozen.push_back(w.Below(w.Chance(5) ? 9 : 2));
  o.frozen = c.frozen.data();
  o.frozen_count = c.frozen.size();
  if (w.Chance(8)) c.frozen_names = w.Chance(80) ? "*" : w.WildText();
  o.frozen_names = c.frozen_names.data();
  o.frozen_names_length = c.frozen_names.size();
  o.optimization = static_cast<int32_t>(w.Chance(97) ? w.Between(0, 2) : w.WildNumber());
  o.allow_tf32 = w.Chance(20);
  o.allow_bf16 = w.Chance(20);
  o.keep_subnormals = w.Chance(20);
  if (w.Chance(10)) o.memory_limit_bytes = w.Chance(80) ? w.Between(1, 1 << 12) : w.WildNumber();
  if (w.Chance(5)) o.cancel = w.CancelFlag(w.Between(0, 3));
  // All that is compiled here is small.
  o.timeout_ns = int64_t{20'000'000'000};
  if (w.Chance(5)) o.timeout_ns = w.Chance(70) ? w.Between(1, 3'000'000) : w.Between(-3, 0);
  c.text =
      Cat(c.symbols.size(), " symbols, passes ", c.passes.size(), ", replicas ", o.replicas,
          ", partitions ", o.partitions, ", folder ", c.folder, ", forms ", o.dump_forms, ", ",
          c.aliases.size(), " aliases, optimization ", o.optimization, ", verify ", o.verify,
          o.cancel ? ", cancel" : "", ", timeout ", o.timeout_ns, ", frozen {", Join(c.frozen, ","),
          "} '", c.frozen_names, "', memory limit ", o.memory_limit_bytes);
  for (const kiln_symbol_size& symbol : c.symbols)
    c.text += Cat(", ", symbol.name, "=", symbol.size);
  for (const kiln_alias& a : c.aliases) {
    c.text += Cat(", result ", a.result, " in ", a.argument, a.must ? " must" : "");
  }
}

// Whether a run is no more than the sequence has time and memory for.
bool IsLarge(World& w, const ExecutableState& executable) {
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  kiln_program_cost cost = KILN_PROGRAM_COST_INIT;
  if (!w.Ok(kiln_executable_memory(executable.handle, &memory)) ||
      !w.Ok(kiln_executable_cost(executable.handle, &cost))) {
    return true;
  }
  w.Expect(memory.peak_bytes >= 0 && memory.temporary_bytes >= 0 && cost.flops >= 0,
           "a negative cost");
  const bool is_slow =
      executable.context->names[executable.device].find("CPU") == std::string::npos;
  return memory.peak_bytes > kMaxBytes ||
         cost.flops + cost.transcendentals > (is_slow ? kMaxSlowFlops : kMaxFlops);
}

// What a run is given.
struct Run {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  std::vector<size_t> donated, kept;
  std::vector<size_t> numbers;  // of the arguments; empty: in their order
  std::vector<std::shared_ptr<BufferState>> arguments, results;
  std::vector<kiln_buffer*> argument_handles, result_handles;
  std::string text;

  bool Donates(size_t argument) const {
    auto has = [&](const std::vector<size_t>& list) {
      return std::find(list.begin(), list.end(), argument) != list.end();
    };
    return has(donated) && !has(kept);
  }
};

void FillOptions(World& w, Run& run, size_t arguments, bool has_loops) {
  kiln_execute_options& o = run.options;
  if (w.Chance(30))
    o.threads = static_cast<int32_t>(w.Chance(90) ? w.Between(0, 4) : w.Between(-2, 2000));
  if (has_loops) {
    o.cancel = w.CancelFlag(1500);
  } else if (w.Chance(10)) {
    o.cancel = w.CancelFlag(w.Between(-1, 2));
  }
  if (w.is_alone && w.Chance(15)) {
    o.donate_aliased = w.Chance(95) ? 1 : 2;
  }
  if (w.is_alone && w.Chance(10) && arguments > 0) {
    run.donated.push_back(w.Below(arguments + (w.Chance(5) ? 3 : 0)));
  }
  if (w.Chance(5) && arguments > 0) run.kept.push_back(w.Below(arguments));
  o.donated = run.donated.data();
  o.donated_count = run.donated.size();
  o.kept = run.kept.data();
  o.kept_count = run.kept.size();
  if (w.Chance(1)) o.stream = &o;
  if (w.Chance(10)) {
    if (auto trace = w.PickOrNull(w.traces)) o.trace = trace->handle;
  }
  if (w.Chance(5)) o.timeout_ns = w.Chance(90) ? w.Between(1, 2'000'000) : w.Between(-3, 0);
  run.text += Cat(", threads ", o.threads, o.cancel ? ", cancel" : "", ", donate_aliased ",
                  o.donate_aliased, ", donated {", Join(run.donated, ","), "}, kept {",
                  Join(run.kept, ","), "}");
  if (o.timeout_ns != 0) run.text += Cat(", timeout ", o.timeout_ns);
}

// A buffer of the wanted shape, or another one; a result's may be none.
void AddBuffer(World& w, Run& run, bool is_result, const std::shared_ptr<ContextState>& context,
               size_t device, const kiln_shape& shape) {
  std::shared_ptr<BufferState> buffer;
  const std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
  if (is_result && w.Chance(80)) {
    // Made by the library.
  } else if (w.Chance(97)) {
    buffer = w.Buffer(context, device, shape.dtype, dims);
  } else {
    buffer = w.PickOrNull(w.buffers);
  }
  // Results in what threads have together would be written by several.
  if (is_result && buffer && buffer->is_shared) buffer = nullptr;
  (is_result ? run.results : run.arguments).push_back(buffer);
  (is_result ? run.result_handles : run.argument_handles)
      .push_back(buffer ? buffer->handle : nullptr);
  run.text += Cat(is_result ? ", result " : ", argument ", World::Name("buffer", buffer));
}

bool FillExecution(World& w, const ExecutableState& executable, Run& run) {
  const size_t arguments = kiln_executable_argument_count(executable.handle);
  const size_t results = kiln_executable_result_count(executable.handle);
  for (size_t i = 0; i < arguments + results; ++i) {
    const bool is_result = i >= arguments;
    kiln_shape shape = KILN_SHAPE_INIT;
    kiln_error* error = is_result
                            ? kiln_executable_result_shape(executable.handle, i - arguments, &shape)
                            : kiln_executable_argument_shape(executable.handle, i, &shape);
    if (!w.Ok(error)) return false;
    if (!is_result && kiln_executable_argument_is_frozen(executable.handle, i) != 0) continue;
    if (!is_result) run.numbers.push_back(i);
    AddBuffer(w, run, is_result, executable.context, executable.device, shape);
  }
  FillOptions(w, run, arguments, executable.has_loops);
  return true;
}

// Results of sessions are on the devices of their ops.
size_t DeviceOf(const ContextState& context, const kiln_buffer* buffer, size_t usual) {
  const kiln_device* device = buffer ? kiln_buffer_device(buffer) : nullptr;
  for (size_t i = 0; i < context.devices.size(); ++i) {
    if (context.devices[i] == device) return i;
  }
  return usual;
}

// What a run that was accepted, or was not, has left.
void Finish(World& w, const std::shared_ptr<ContextState>& context, size_t device, bool ok,
            const Run& run) {
  for (size_t i = 0; i < run.results.size(); ++i) {
    kiln_buffer* handle = run.result_handles[i];
    if (run.results[i]) {
      w.Expect(handle == run.results[i]->handle, "a buffer that was given is another one");
    } else if (ok) {
      w.Expect(handle, "a result is NULL");
      w.Keep(handle, context, DeviceOf(*context, handle, device));
    } else {
      w.Expect(!handle, "failure, and a result");
    }
  }
  for (size_t i = 0; i < run.arguments.size() && ok; ++i) {
    if (!run.arguments[i] || !w.is_alone) continue;
    const size_t number = run.numbers.empty() ? i : run.numbers[i];
    run.arguments[i]->is_donated |= run.Donates(number) || run.options.donate_aliased != 0;
  }
}

kiln_execute_options* OptionsOf(World& w, const SizedCopy& sized) {
  return w.Chance(1) ? nullptr : sized.As<kiln_execute_options>();
}

template <typename T>
void Tell(World& w, const char* function, const T& empty,
          kiln_error* (*ask)(const kiln_executable*, T*)) {
  auto executable = w.PickOrNull(w.executables);
  const SizedCopy sized(w, empty);
  w.Begin(function, World::Name("executable", executable), ", ", sized.ToString());
  (void)w.Ok(ask(HandleOf(executable), w.Chance(2) ? nullptr : sized.As<T>()));
}

void TellShape(World& w, const char* function, size_t (*count)(const kiln_executable*),
               kiln_error* (*ask)(const kiln_executable*, size_t, kiln_shape*)) {
  auto executable = w.PickOrNull(w.executables);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  const kiln_shape empty = KILN_SHAPE_INIT;
  const SizedCopy sized(w, empty);
  const auto* shape = sized.As<kiln_shape>();
  w.Begin(function, World::Name("executable", executable), ", ", index, ", ", sized.ToString());
  const bool ok = w.Ok(ask(HandleOf(executable), index, sized.As<kiln_shape>()));
  w.Expect(!ok || index < count(HandleOf(executable)), "the shape of what is not there");
  w.Expect(!ok || shape->struct_size < sizeof(empty) || shape->dtype == KILN_TOKEN ||
               kiln_dtype_bits(shape->dtype) > 0,
           "the shape of no array");
  w.Expect(!ok || shape->struct_size < sizeof(empty) || shape->byte_size >= 0,
           "a shape of no size");
}

}  // namespace

void Call_kiln_graph_compile(World& w) {
  std::shared_ptr<GraphState> graph;
  if (!w.Chance(1)) graph = w.Chance(85) || w.graphs.empty() ? w.Graph() : w.Pick(w.graphs);
  if (graph && !graph->has_results && w.Chance(95)) w.SetSomeResults(*graph);
  if (graph && w.Chance(30)) {
    CompareDevices(w, *graph);
    return;
  }
  auto context = graph ? graph->context : w.Context();
  CompileOptions c;
  Fill(w, graph.get(), c);
  size_t device = w.Device(*context);
  const bool is_gpu = context->names[device].find("GPU") != std::string::npos;
  if (is_gpu && w.Chance(60)) device = 0;
  const auto other = w.Chance(1) ? w.Context() : context;
  const bool is_default = device == 0 && w.Chance(50);
  if (!is_default) c.options.device = other->devices[std::min(device, other->devices.size() - 1)];
  const SizedCopy sized(w, c.options);
  kiln_executable* made = World::Untouched<kiln_executable>();
  w.Begin("kiln_graph_compile", World::Name("graph", graph), ", ", context->names[device], ", ",
          c.text, ", ", sized.ToString());
  const bool is_right = sized.As<kiln_compile_options>()->struct_size == sizeof(c.options);
  if (!w.Gave(kiln_graph_compile(graph ? graph->handle : nullptr, sized.As<kiln_compile_options>(),
                                 &made),
              made)) {
    return;
  }
  w.Expect(graph && graph->has_results && !graph->is_broken, "an executable of no good graph");
  ++shared_log->compiled;
  if (!is_right) device = 0;
  auto state = w.Add(w.executables, made);
  state->context = context;
  state->device = device;
  state->has_loops = graph->has_loops;
  if (!is_right) {
    kiln_device* of = kiln_executable_device(made);
    while (context->devices[state->device] != of) ++state->device;
  }
  state->is_large = IsLarge(w, *state);
}

void Call_kiln_executable_device(World& w) {
  auto executable = w.PickOrNull(w.executables);
  w.Begin("kiln_executable_device", World::Name("executable", executable));
  w.Expect(kiln_executable_device(HandleOf(executable)) ==
               (executable ? executable->context->devices[executable->device] : nullptr),
           "another device");
  w.Succeeded();
}

void Call_kiln_executable_argument_count(World& w) {
  auto executable = w.PickOrNull(w.executables);
  w.Begin("kiln_executable_argument_count", World::Name("executable", executable));
  const size_t count = kiln_executable_argument_count(HandleOf(executable));
  w.Expect(executable || count == 0, "arguments of NULL");
  w.Succeeded();
}

void Call_kiln_executable_result_count(World& w) {
  auto executable = w.PickOrNull(w.executables);
  w.Begin("kiln_executable_result_count", World::Name("executable", executable));
  const size_t count = kiln_executable_result_count(HandleOf(executable));
  w.Expect(executable || count == 0, "results of NULL");
  w.Succeeded();
}

void Call_kiln_executable_argument_shape(World& w) {
  TellShape(w, "kiln_executable_argument_shape", kiln_executable_argument_count,
            kiln_executable_argument_shape);
}
void Call_kiln_executable_result_shape(World& w) {
  TellShape(w, "kiln_executable_result_shape", kiln_executable_result_count,
            kiln_executable_result_shape);
}

void Call_kiln_executable_argument_name(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  w.Begin("kiln_executable_argument_name", World::Name("executable", executable), ", ", index);
  size_t length = 77;
  const char* name = kiln_executable_argument_name(HandleOf(executable), index, &length);
  const bool is_there = index < kiln_executable_argument_count(HandleOf(executable));
  w.Expect((name != nullptr) == is_there, "a name of nothing, or none");
  w.Expect(name ? name[length] == 0 : length == 0, "a wrong length");
  if (name) w.Succeeded();
}

void Call_kiln_executable_result_alias(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 2) : w.WildNumber());
  int64_t argument = 77777;
  w.Begin("kiln_executable_result_alias", World::Name("executable", executable), ", ", index);
  const bool ok = w.Ok(kiln_executable_result_alias(HandleOf(executable), index, &argument));
  const auto arguments = static_cast<int64_t>(kiln_executable_argument_count(HandleOf(executable)));
  w.Expect(ok ? argument >= -1 && argument < arguments : argument == 77777, "a strange alias");
}

void Call_kiln_executable_argument_is_donatable(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  w.Begin("kiln_executable_argument_is_donatable", World::Name("executable", executable), ", ",
          index);
  const int32_t donatable = kiln_executable_argument_is_donatable(HandleOf(executable), index);
  const bool is_there = index < kiln_executable_argument_count(HandleOf(executable));
  w.Expect(donatable == 0 || (donatable == 1 && is_there), "a strange answer");
  if (is_there) w.Succeeded();
}

void Call_kiln_executable_memory(World& w) {
  const kiln_program_memory empty = KILN_PROGRAM_MEMORY_INIT;
  Tell(w, "kiln_executable_memory", empty, kiln_executable_memory);
}
void Call_kiln_executable_cost(World& w) {
  const kiln_program_cost empty = KILN_PROGRAM_COST_INIT;
  Tell(w, "kiln_executable_cost", empty, kiln_executable_cost);
}
void Call_kiln_executable_info(World& w) {
  const kiln_program_info empty = KILN_PROGRAM_INFO_INIT;
  Tell(w, "kiln_executable_info", empty, kiln_executable_info);
}

void Call_kiln_executable_run(World& w) {
  auto executable = w.PickOrNull(w.executables);
  Run run;
  if (executable && (executable->is_large || !FillExecution(w, *executable, run))) return;
  if (!executable) FillOptions(w, run, 0, false);
  const SizedCopy sized(w, run.options);
  const size_t fewer = w.Chance(2) && !run.argument_handles.empty() ? 1 : 0;
  w.Begin("kiln_executable_run", World::Name("executable", executable), run.text, ", ",
          sized.ToString());
  // Loops need the flag, which older options may lack.
  const bool may_hang = executable && executable->has_loops;
  const bool ok =
      w.Ok(kiln_executable_run(HandleOf(executable), may_hang ? &run.options : OptionsOf(w, sized),
                               run.argument_handles.data(), run.argument_handles.size() - fewer,
                               run.result_handles.data(), run.result_handles.size()));
  if (ok) ++shared_log->executed;
  if (executable) Finish(w, executable->context, executable->device, ok, run);
}

void Call_kiln_executable_execute(World& w) {
  auto executable = w.PickOrNull(w.executables);
  Run run;
  if (executable && (executable->is_large || !FillExecution(w, *executable, run))) return;
  if (!executable) FillOptions(w, run, 0, false);
  const SizedCopy sized(w, run.options);
  kiln_event* event = World::Untouched<kiln_event>();
  kiln_buffer* const* arguments[2] = {run.argument_handles.data(), nullptr};
  kiln_buffer** results[2] = {run.result_handles.data(), nullptr};
  const bool wants_event = w.Chance(80);
  const size_t device_count = w.Chance(98) ? 1 : w.Below(3) * 2;
  w.Begin("kiln_executable_execute", World::Name("executable", executable), run.text, ", ",
          sized.ToString(), wants_event ? ", with an event" : "", ", ", device_count, " devices");
  const bool may_hang = executable && executable->has_loops;
  const bool ok = w.Ok(kiln_executable_execute(
      HandleOf(executable), may_hang ? &run.options : OptionsOf(w, sized), arguments,
      run.argument_handles.size(), results, run.result_handles.size(), device_count,
      wants_event ? &event : nullptr));
  if (ok) ++shared_log->executed;
  const bool has_event = event != World::Untouched<kiln_event>();
  w.Expect(has_event == (ok && wants_event), "an event of nothing, or none");
  if (has_event) w.Add(w.events, event)->context = executable->context;
  if (executable) Finish(w, executable->context, executable->device, ok, run);
}

// --- session.h

void Call_kiln_session_create(World& w) {
  auto graph = w.Chance(2) ? nullptr : w.Graph();
  auto context = graph ? graph->context : w.Context();
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  size_t device = w.Chance(80) ? 0 : w.Device(*context);
  if (device > 0 || w.Chance(50)) options.device = context->devices[device];
  options.jit = static_cast<int32_t>(w.Chance(97) ? w.Between(0, 2) : w.WildNumber());
  options.soft_placement = w.Chance(80);
  if (w.Chance(30)) options.min_cluster_size = w.Between(w.Chance(3) ? -1 : 1, 6);
  if (w.Chance(20)) options.max_cluster_size = w.Between(1, 6);
  if (w.Chance(10)) options.cluster_fuel = w.Between(0, 9);
  const std::string allowed = w.Chance(90) ? "" : w.Chance(80) ? "add,FUSIBLE,PW" : w.WildText();
  options.ops_to_cluster = allowed.data();
  options.ops_to_cluster_length = allowed.size();
  options.no_cpu_clustering = w.Chance(10);
  options.lazy = w.Chance(20);
  options.asynchronous_compilation = w.Chance(20);
  options.strict = w.Chance(options.lazy || options.asynchronous_compilation ? 3 : 20);
  if (w.Chance(10)) options.memory_limit_bytes = w.Between(w.Chance(3) ? -1 : 1, 1 << 12);
  const SizedCopy sized(w, options);
  kiln_session* made = World::Untouched<kiln_session>();
  w.Begin("kiln_session_create", World::Name("graph", graph), ", ", context->names[device], ", ",
          sized.ToString());
  if (!w.Gave(kiln_session_create(graph ? graph->handle : nullptr, sized.As<kiln_session_options>(),
                                  &made),
              made)) {
    return;
  }
  if (sized.As<kiln_session_options>()->struct_size < sizeof(options)) device = 0;
  auto state = w.Add(w.sessions, made);
  state->context = context;
  state->device = device;
  state->values = graph->values;
  state->has_loops = graph->has_loops;
  for (size_t i = 0; i < kiln_graph_parameter_count(graph->handle); ++i) {
    state->parameters.push_back(kiln_graph_parameter(graph->handle, i));
  }
}

namespace {

// Feeds, fetches and targets: all parameters that are arrays, and some other values.
struct SessionRun {
  std::vector<kiln_value> feeds, fetches, targets;
  std::vector<const Value*> fed, fetched;
  std::string text;
};

void Choose(World& w, const SessionState& session, SessionRun& run) {
  for (const Value& value : session.values) {
    const bool is_parameter = std::find(session.parameters.begin(), session.parameters.end(),
                                        value.id) != session.parameters.end();
    const bool is_fed = is_parameter ? w.Chance(99) : w.Chance(5);
    if (is_fed && value.is_array()) {
      run.feeds.push_back(value.id);
      run.fed.push_back(&value);
    } else if (w.Chance(10) && run.fetches.size() < 4 && (value.is_array() || w.Chance(5))) {
      run.fetches.push_back(value.id);
      run.fetched.push_back(&value);
    } else if (w.Chance(3)) {
      run.targets.push_back(value.id);
    }
  }
  if (w.Chance(1)) run.targets.push_back(static_cast<kiln_value>(w.WildNumber()));
  if (w.Chance(3)) run.fetches.push_back(static_cast<kiln_value>(w.WildNumber()));
  if (w.Chance(3) && !run.feeds.empty()) run.fetches.push_back(w.Pick(run.feeds));
  run.text = Cat(", feeds {", Join(run.feeds, ","), "}, fetches {", Join(run.fetches, ","),
                 "}, targets {", Join(run.targets, ","), "}");
}

bool IsSmall(const Value& value) {
  int64_t count = 16;
  for (int64_t d : value.dims) {
    if (d < 0 || (d > 0 && count > kMaxBytes / d)) return false;
    count *= d;
  }
  return true;
}

}  // namespace

void Call_kiln_session_find_value(World& w) {
  auto session = w.PickOrNull(w.sessions);
  const std::string name = w.Chance(50) ? w.WildText() : "x";
  constexpr kiln_value kUntouched = 0x5a5a5a5a;
  kiln_value value = kUntouched;
  w.Begin("kiln_session_find_value", World::Name("session", session), ", ", name);
  const bool ok = w.Ok(kiln_session_find_value(session ? session->handle : nullptr, name.data(),
                                               name.size(), &value));
  w.Expect(ok == (value != kUntouched), "a value without success, or none");
}

void Call_kiln_session_prepare(World& w) {
  auto session = w.PickOrNull(w.sessions);
  SessionRun run;
  if (session) Choose(w, *session, run);
  const kiln_program_info empty = KILN_PROGRAM_INFO_INIT;
  const SizedCopy sized(w, empty);
  const bool no_list = w.Chance(2);
  w.Begin("kiln_session_prepare", World::Name("session", session), run.text, ", ", sized.ToString(),
          no_list ? ", NULL" : "");
  (void)w.Ok(kiln_session_prepare(
      session ? session->handle : nullptr, no_list ? nullptr : run.feeds.data(), run.feeds.size(),
      run.fetches.data(), run.fetches.size(), run.targets.data(), run.targets.size(),
      w.Chance(20) ? nullptr : sized.As<kiln_program_info>()));
}

namespace {

void Describe(World& w, const char* name,
              kiln_error* (*describe)(kiln_session*, const kiln_value*, size_t, const kiln_value*,
                                      size_t, const kiln_value*, size_t, kiln_text**)) {
  auto session = w.PickOrNull(w.sessions);
  SessionRun run;
  if (session) Choose(w, *session, run);
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin(name, World::Name("session", session), run.text);
  if (w.Gave(describe(session ? session->handle : nullptr, run.feeds.data(), run.feeds.size(),
                      run.fetches.data(), run.fetches.size(), run.targets.data(),
                      run.targets.size(), &text),
             text)) {
    w.Add(w.texts, text);
  }
}

// Mostly one of the session's.
std::string VariableName(World& w, const std::shared_ptr<SessionState>& session) {
  const size_t count = session ? kiln_session_variable_count(session->handle) : 0;
  if (count == 0 || w.Chance(10)) return w.WildText();
  return kiln_session_variable_name(session->handle, w.Below(count), nullptr);
}

}  // namespace

void Call_kiln_session_explain(World& w) {
  Describe(w, "kiln_session_explain", kiln_session_explain);
}
void Call_kiln_session_to_dot(World& w) { Describe(w, "kiln_session_to_dot", kiln_session_to_dot); }

void Call_kiln_session_variable_count(World& w) {
  auto session = w.PickOrNull(w.sessions);
  w.Begin("kiln_session_variable_count", World::Name("session", session));
  const size_t count = kiln_session_variable_count(session ? session->handle : nullptr);
  w.Expect(session || count == 0, "variables of NULL");
  w.Succeeded();
}

void Call_kiln_session_variable_name(World& w) {
  auto session = w.PickOrNull(w.sessions);
  const size_t index = w.Below(3);
  size_t length = 77;
  w.Begin("kiln_session_variable_name", World::Name("session", session), ", ", index);
  kiln_session* handle = session ? session->handle : nullptr;
  const char* name = kiln_session_variable_name(handle, index, &length);
  w.Expect((name != nullptr) == (index < kiln_session_variable_count(handle)),
           "a name of nothing, or none");
  w.Expect(name ? name[length] == 0 : length == 0, "a wrong length");
  w.Succeeded();
}

void Call_kiln_session_set_variable(World& w) {
  auto session = w.PickOrNull(w.sessions);
  auto buffer = w.PickOrNull(w.buffers);
  const std::string name = VariableName(w, session);
  w.Begin("kiln_session_set_variable", World::Name("session", session), ", ", name, ", ",
          World::Name("buffer", buffer));
  (void)w.Ok(kiln_session_set_variable(session ? session->handle : nullptr, name.data(),
                                       name.size(), buffer ? buffer->handle : nullptr));
}

void Call_kiln_session_variable(World& w) {
  auto session = w.PickOrNull(w.sessions);
  const std::string name = VariableName(w, session);
  kiln_buffer* value = World::Untouched<kiln_buffer>();
  w.Begin("kiln_session_variable", World::Name("session", session), ", ", name);
  if (w.Gave(kiln_session_variable(session ? session->handle : nullptr, name.data(), name.size(),
                                   &value),
             value)) {
    w.Succeeded();
    kiln_buffer_release(value);
  }
}

void Call_kiln_session_save(World& w) {
  auto session = w.PickOrNull(w.sessions);
  const std::string path = w.Folder() + "/variables";
  w.Begin("kiln_session_save", World::Name("session", session), ", ", path);
  (void)w.Ok(kiln_session_save(session ? session->handle : nullptr, path.data(), path.size()));
}

void Call_kiln_session_restore(World& w) {
  auto session = w.PickOrNull(w.sessions);
  const std::string path = w.Folder() + "/variables";
  w.Begin("kiln_session_restore", World::Name("session", session), ", ", path);
  (void)w.Ok(kiln_session_restore(session ? session->handle : nullptr, path.data(), path.size()));
}

void Call_kiln_session_run(World& w) {
  auto session = w.PickOrNull(w.sessions);
  SessionRun chosen;
  Run run;
  if (session) {
    Choose(w, *session, chosen);
    for (const auto* list : {&chosen.fed, &chosen.fetched}) {
      for (const Value* value : *list) {
        // Ops in between may be as large as they like; sizes are small where these are.
        if (!IsSmall(*value)) return;
        kiln_shape shape = KILN_SHAPE_INIT;
        shape.dtype = value->is_array() ? value->dtype : KILN_F32;
        shape.rank = value->dims.size();
        shape.dims = value->dims.data();
        AddBuffer(w, run, list == &chosen.fetched, session->context, session->device, shape);
      }
    }
    for (const Value& value : session->values) {
      if (!IsSmall(value)) return;
    }
    run.result_handles.resize(chosen.fetches.size());
    run.results.resize(chosen.fetches.size());
  }
  FillOptions(w, run, chosen.feeds.size(), session && session->has_loops);
  const SizedCopy sized(w, run.options);
  w.Begin("kiln_session_run", World::Name("session", session), chosen.text, run.text, ", ",
          sized.ToString());
  const bool may_hang = session && session->has_loops;
  const bool ok = w.Ok(kiln_session_run(
      session ? session->handle : nullptr, may_hang ? &run.options : OptionsOf(w, sized),
      chosen.feeds.data(), run.argument_handles.data(), chosen.feeds.size(), chosen.fetches.data(),
      run.result_handles.data(), chosen.fetches.size(), chosen.targets.data(),
      chosen.targets.size()));
  if (ok) ++shared_log->executed;
  if (session) Finish(w, session->context, session->device, ok, run);
}

// --- function.h

void Call_kiln_function_create(World& w) {
  auto graph = w.Chance(2) ? nullptr : w.Graph();
  auto context = graph ? graph->context : w.Context();
  kiln_function_options options = KILN_FUNCTION_OPTIONS_INIT;
  size_t device = w.Chance(80) ? 0 : w.Device(*context);
  options.device = context->devices[device];
  options.must_compile = w.Chance(30);
  options.lazy = w.Chance(30);
  options.asynchronous_compilation = w.Chance(30);
  options.max_programs = w.Chance(90) ? w.Between(0, 3) : w.WildNumber();
  const SizedCopy sized(w, options);
  kiln_function* made = World::Untouched<kiln_function>();
  w.Begin("kiln_function_create", World::Name("graph", graph), ", ", context->names[device], ", ",
          sized.ToString());
  if (!w.Gave(kiln_function_create(graph ? graph->handle : nullptr,
                                   sized.As<kiln_function_options>(), &made),
              made)) {
    return;
  }
  if (sized.As<kiln_function_options>()->struct_size < sizeof(options)) device = 0;
  auto state = w.Add(w.functions, made);
  state->context = context;
  state->device = device;
  state->has_loops = graph->has_loops;
  for (size_t i = 0; i < kiln_graph_parameter_count(graph->handle); ++i) {
    const kiln_value id = kiln_graph_parameter(graph->handle, i);
    for (const Value& value : graph->values) {
      if (value.id == id) state->parameters.push_back(value);
    }
  }
  for (const Value& value : graph->values) state->is_large |= value.is_static && !IsSmall(value);
}

void Call_kiln_function_call(World& w) {
  auto function = w.PickOrNull(w.functions);
  Run run;
  if (function) {
    if (function->is_large) return;
    std::map<int64_t, int64_t> symbols;
    for (Value value : function->parameters) {
      for (int64_t& d : value.dims) {
        if (d < 0) d = symbols.emplace(d, w.Between(0, 5)).first->second;
      }
      kiln_shape shape = KILN_SHAPE_INIT;
      shape.dtype = value.dtype;
      shape.rank = value.dims.size();
      shape.dims = value.dims.data();
      AddBuffer(w, run, false, function->context, function->device, shape);
    }
    run.result_handles.resize(kiln_function_result_count(function->handle));
    run.results.resize(run.result_handles.size());
  }
  FillOptions(w, run, run.argument_handles.size(), function && function->has_loops);
  const SizedCopy sized(w, run.options);
  w.Begin("kiln_function_call", World::Name("function", function), run.text, ", ",
          sized.ToString());
  const bool may_hang = function && function->has_loops;
  const bool ok = w.Ok(kiln_function_call(function ? function->handle : nullptr,
                                          may_hang ? &run.options : OptionsOf(w, sized),
                                          run.argument_handles.data(), run.argument_handles.size(),
                                          run.result_handles.data(), run.result_handles.size()));
  if (ok) ++shared_log->executed;
  if (function) Finish(w, function->context, function->device, ok, run);
}

void Call_kiln_function_result_count(World& w) {
  auto function = w.PickOrNull(w.functions);
  w.Begin("kiln_function_result_count", World::Name("function", function));
  const size_t count = kiln_function_result_count(function ? function->handle : nullptr);
  w.Expect(function || count == 0, "results of NULL");
  w.Succeeded();
}

void Call_kiln_function_statistics(World& w) {
  auto function = w.PickOrNull(w.functions);
  const kiln_function_info empty = KILN_FUNCTION_INFO_INIT;
  const SizedCopy sized(w, empty);
  w.Begin("kiln_function_statistics", World::Name("function", function), ", ", sized.ToString());
  (void)w.Ok(kiln_function_statistics(function ? function->handle : nullptr,
                                      w.Chance(2) ? nullptr : sized.As<kiln_function_info>()));
}

}  // namespace kiln::fuzz
