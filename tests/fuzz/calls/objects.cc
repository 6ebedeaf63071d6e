// Contexts, graphs and buffers as the callers want them.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "calls/world.h"
#include "tensor/shape.h"

namespace kiln::fuzz {
namespace {

void* Allocate(void* user_data, size_t bytes, size_t alignment) {
  auto& context = *static_cast<ContextState*>(user_data);
  const int64_t n = ++context.allocations;
  if (context.fail_each > 0 && n % context.fail_each == 0) return nullptr;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory) context.hook_bytes += static_cast<int64_t>(bytes);
  return memory;
}

void Deallocate(void* user_data, void* memory, size_t bytes, size_t) {
  static_cast<ContextState*>(user_data)->hook_bytes -= static_cast<int64_t>(bytes);
  std::free(memory);
}

// A pool of the caller's thread, which takes the tasks in the reverse order.
void RunTasks(void*, int64_t tasks, void (*task)(void* context, int64_t number), void* context) {
  for (int64_t i = tasks - 1; i >= 0; --i) task(context, i);
}

void AllocatorEnds(void* user_data) { ++static_cast<ContextState*>(user_data)->allocator_ends; }
void LogEnds(void* user_data) { ++static_cast<ContextState*>(user_data)->log_ends; }

void OnLog(void* user_data, kiln_log_level, const char* message, size_t length) {
  auto& context = *static_cast<ContextState*>(user_data);
  // One at a time.
  if (context.in_log.fetch_add(1) != 0 || std::strlen(message) > length) std::abort();
  context.in_log.fetch_sub(1);
}

}  // namespace

std::shared_ptr<ContextState> World::MakeContext() {
  auto state = std::make_shared<ContextState>();
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = static_cast<int32_t>(Below(4));
  options.callbacks_from_any_thread = Chance(50);
  if (Chance(15)) {
    options.allocate = Allocate;
    options.deallocate = Deallocate;
    state->has_hooks = true;
    if (Chance(40)) state->fail_each = Between(3, 60);
  }
  if (Chance(15)) options.run_tasks = RunTasks;
  options.allocator_user_data = options.log_user_data = state.get();
  options.allocator_destroy = AllocatorEnds;
  options.log = OnLog;
  options.log_destroy = LogEnds;
  options.log_level = static_cast<kiln_log_level>(Below(5));
  options.gpu = Chance(30) ? KILN_GPU_EMULATED : KILN_GPU_OFF;
  if (Chance(10)) options.gpu_memory_bytes = Between(0, 1 << 20);
  if (Chance(15)) options.cpu_devices = static_cast<int32_t>(Between(2, 3));
  state->from_any_thread = options.callbacks_from_any_thread != 0;
  Begin("kiln_context_create", "threads ", options.threads, ", callbacks_from_any_thread ",
        options.callbacks_from_any_thread, ", cpu_devices ", options.cpu_devices, ", gpu ",
        options.gpu, ", hooks ", state->has_hooks, " that fail each ", state->fail_each);
  kiln_context* made = Untouched<kiln_context>();
  if (!Gave(kiln_context_create(&options, &made), made)) {
    // With hooks that fail.
    Expect(state->fail_each > 0, "no context");
    Expect(state->log_ends == 0 && state->allocator_ends == 0, "a destroy function was called");
    Expect(state->hook_bytes == 0, "memory has not been given back to the allocator");
    return MakeContext();
  }
  state->handle = made;
  state->number = next_number_++;
  Begin("kiln_context_device_count", Name("context", state));
  const size_t count = kiln_context_device_count(made);
  Expect(count >= 3, "too few devices");
  Succeeded();
  for (size_t i = 0; i < count; ++i) {
    kiln_device* device = kiln_context_device(made, i);
    Expect(device, "a device is NULL");
    state->devices.push_back(device);
    state->names.emplace_back(kiln_device_name(device, nullptr));
    state->has_gpu |= state->names.back().find("GPU") != std::string::npos;
  }
  own_contexts.push_back(state);
  return state;
}

std::shared_ptr<ContextState> World::Context() {
  if (own_contexts.empty() && contexts.empty()) return MakeContext();
  const size_t i = Below(own_contexts.size() + contexts.size());
  return i < own_contexts.size() ? own_contexts[i] : contexts[i - own_contexts.size()];
}

size_t World::Device(const ContextState& context) {
  return Chance(50) ? 0 : Below(context.devices.size());
}

// --- Graphs

std::shared_ptr<GraphState> World::MakeGraph(const std::shared_ptr<ContextState>& context,
                                             std::string_view name) {
  Begin("kiln_graph_create", Name("context", context), ", ", name);
  kiln_graph* made = Untouched<kiln_graph>();
  Expect(Gave(kiln_graph_create(context->handle, name.data(), name.size(), &made), made),
         "no graph");
  auto state = Add(graphs, made);
  state->context = context;
  return state;
}

void World::AddSymbol(GraphState& graph, const std::string& name) {
  Begin("kiln_graph_symbol", "graph #", graph.number, ", ", name);
  const int64_t number = kiln_graph_symbol(graph.handle, name.data(), name.size());
  Expect(number < 0, "no symbol");
  Succeeded();
  graph.symbols.emplace_back(name, number);
}

std::shared_ptr<GraphState> World::Graph() {
  // Mostly the newest one, so that graphs grow; a broken one now and then.
  for (size_t i = graphs.size(); i-- > 0;) {
    const auto& graph = graphs[i];
    if (graph->values.size() > 60 || (graph->is_region && !Chance(1))) continue;
    if (graph->is_broken ? Chance(2) : Chance(80)) return graph;
  }
  auto made = MakeGraph(Context(), Chance(90) ? "g" : WildText());
  made->is_odd = Chance(6);
  if (Chance(12)) AddSymbol(*made, "n");
  return made;
}

void World::Look(GraphState& graph) {
  auto add = [&](kiln_value id) {
    Value value;
    value.id = id;
    kiln_shape shape = KILN_SHAPE_INIT;
    Begin("kiln_graph_value_shape", "graph #", graph.number, ", ", id);
    kiln_error* error = kiln_graph_value_shape(graph.handle, id, &shape);
    if (error && kiln_error_code(error) == KILN_UNIMPLEMENTED) {
      (void)Ok(error);  // bounded dimensions
    } else {
      Expect(Ok(error), "a value has no shape");
      value.has_shape = true;
      value.dtype = shape.dtype;
      value.is_static = shape.byte_size >= 0;
      value.is_token = shape.dtype == KILN_TOKEN;
      if (shape.dtype == KILN_TUPLE) {
        value.elements = shape.rank;
      } else {
        value.dims.assign(shape.dims, shape.dims + shape.rank);
      }
    }
    graph.values.push_back(std::move(value));
  };
  Begin("kiln_graph_parameter_count", "graph #", graph.number);
  const size_t count = kiln_graph_parameter_count(graph.handle);
  Succeeded();
  for (size_t i = 0; i < count; ++i) {
    Begin("kiln_graph_parameter", "graph #", graph.number, ", ", i);
    const kiln_value id = kiln_graph_parameter(graph.handle, i);
    Expect(id != 0, "a parameter is 0");
    Succeeded();
    add(id);
  }
  Begin("kiln_graph_result", "graph #", graph.number);
  if (const kiln_value id = kiln_graph_result(graph.handle)) {
    Succeeded();
    graph.has_results = true;
    const bool is_known = std::any_of(graph.values.begin(), graph.values.end(),
                                      [&](const Value& value) { return value.id == id; });
    if (!is_known) add(id);
  }
}

std::string World::HloText(const GraphState& graph) {
  Begin("kiln_graph_to_hlo_text", "graph #", graph.number);
  kiln_text* text = Untouched<kiln_text>();
  if (!Gave(kiln_graph_to_hlo_text(graph.handle, &text), text)) return "";
  size_t length = 0;
  const char* data = kiln_text_data(text, &length);
  std::string copy(data, length);
  kiln_text_release(text);
  return copy;
}

bool World::SetSomeResults(GraphState& graph) {
  std::vector<kiln_value> results;
  const size_t count = 1 + Below(3);
  for (size_t i = 0; i < 8 * count && results.size() < count; ++i) {
    if (graph.values.empty()) break;
    const Value& value =
        graph.values[graph.values.size() - 1 - Below(std::min<size_t>(graph.values.size(), 8))];
    if (value.is_array() && (value.is_static || Chance(50))) results.push_back(value.id);
  }
  if (results.empty()) return false;
  Begin("kiln_graph_set_results", "graph #", graph.number, ", {", Join(results, ", "), "}");
  const bool ok = Ok(kiln_graph_set_results(graph.handle, results.data(), results.size()));
  Expect(ok || graph.is_broken, "values of the graph cannot be its results");
  graph.has_results |= ok;
  return ok;
}

// --- Buffers

void World::Keep(kiln_buffer* buffer, const std::shared_ptr<ContextState>& context, size_t device) {
  Begin("kiln_buffer_shape");
  kiln_shape shape = KILN_SHAPE_INIT;
  Expect(Ok(kiln_buffer_shape(buffer, &shape)), "a buffer has no shape");
  Expect(shape.dtype == KILN_TOKEN || kiln_dtype_bits(shape.dtype) > 0, "a buffer is no array");
  if (buffers.size() > 60) {
    kiln_buffer_release(buffer);
    return;
  }
  auto state = Add(buffers, buffer);
  state->context = context;
  state->device = device;
  state->dtype = shape.dtype;
  state->dims.assign(shape.dims, shape.dims + shape.rank);
}

std::shared_ptr<BufferState> World::Buffer(const std::shared_ptr<ContextState>& context,
                                           size_t device, kiln_dtype dtype,
                                           const std::vector<int64_t>& dims) {
  for (size_t i = 0; i < 2 * buffers.size() && Chance(80); ++i) {
    const auto& buffer = Pick(buffers);
    if (buffer->context == context && buffer->device == device && buffer->dtype == dtype &&
        buffer->dims == dims && (!buffer->is_donated || Chance(2))) {
      return buffer;
    }
  }
  const Shape shape(static_cast<ElementType>(dtype), std::span<const int64_t>(dims));
  kiln_buffer* made = Untouched<kiln_buffer>();
  if (dtype == KILN_TOKEN) {
    Begin("kiln_buffer_create", context->names[device], ", a token");
    if (!Gave(kiln_buffer_create(context->devices[device], dtype, nullptr, 0, &made), made)) {
      return nullptr;
    }
    Keep(made, context, device);
    return buffers.back();
  }
  const Memory& memory = Lend(dtype, dims, 0);
  Begin("kiln_buffer_copy_host", context->names[device], ", ", shape);
  const bool ok =
      Gave(kiln_buffer_copy_host(context->devices[device], dtype, dims.data(), dims.size(),
                                 memory.data, static_cast<size_t>(shape.byte_size()), &made),
           made);
  if (!ok) return nullptr;
  auto state = Add(buffers, made);
  state->context = context;
  state->device = device;
  state->dtype = dtype;
  state->dims = dims;
  return state;
}

}  // namespace kiln::fuzz
