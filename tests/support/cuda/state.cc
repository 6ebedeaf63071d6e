// The stand-in's settings, counts and failures; devices and contexts.
#include "state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "control.h"

namespace kiln::device::cuda {

State::State() {
  if (const char* settings_text = std::getenv("KILN_TEST_CUDA")) Configure(*this, settings_text);
}

State& TheState() {
  static State* state = new State;
  return *state;
}

std::vector<ContextObject*>& ContextStack() {
  thread_local std::vector<ContextObject*> stack;
  return stack;
}

bool Configure(State& state, const std::string& text) {
  std::map<std::string, int64_t*> names = {{"driver_version", &state.settings.driver_version},
                                           {"devices", &state.settings.devices},
                                           {"sm", &state.settings.sm},
                                           {"memory_bytes", &state.settings.memory_bytes},
                                           {"pools", &state.settings.pools},
                                           {"multiprocessors", &state.settings.multiprocessors},
                                           {"init_error", &state.settings.init_error},
                                           {"deferred", &state.settings.deferred},
                                           {"real_time", &state.settings.real_time},
                                           {"drop_records", &state.settings.drop_records},
                                           {"launch_time", &state.settings.launch_time},
                                           {"body_updates", &state.settings.body_updates},
                                           {"fail", &state.fail_first}};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string setting = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) return false;
    const std::string name = setting.substr(0, equals);
    const int64_t value = std::strtoll(setting.c_str() + equals + 1, nullptr, 10);
    if (name == "fail_with") {
      state.fail_error = static_cast<Error>(value);
    } else if (names.count(name) != 0) {
      *names[name] = value;
    } else {
      return false;
    }
    if (name == "fail") {
      state.fail_times = 1;
      if (state.fail_error == Error::kSuccess) state.fail_error = Error::kInvalidValue;
    }
  }
  return true;
}

Call::Call(const char* symbol, Needs needs) : state(TheState()), lock_(state.mutex) {
  ++state.calls[symbol];
  ++state.all_calls;
  ++state.last_call;
  if (state.fail_times > 0 && (state.fail_symbol.empty() || state.fail_symbol == symbol)) {
    const int64_t number = ++state.failing_calls;
    if (number >= state.fail_first && number - state.fail_first < state.fail_times) {
      error = state.fail_error;
      return;
    }
  }
  if (needs == kNothing) return;
  if (!state.initialised) {
    error = Error::kNotInitialized;
    return;
  }
  if (needs == kDriver) return;
  if (ContextStack().empty()) {
    error = Error::kInvalidContext;
    ++state.misuses;
    return;
  }
  context = ContextStack().back();
  if (state.live.count(context) == 0) {
    error = Error::kContextIsDestroyed;
    ++state.misuses;
  } else if (needs == kContext) {
    error = context->lost;
  }
}

ContextObject* State::MakePrimary(DeviceHandle device) {
  ContextObject*& primary = primaries[device];
  if (primary == nullptr) primary = Make<ContextObject>(device);
  ++primary->retained;
  return primary;
}

void State::EndContext(ContextObject* context) {
  if (context->lost == Error::kSuccess) {
    RunAll();
  } else {
    // What has no context of its own goes with the process; here it goes with the context.
    for (const char* kind : {"memory", "pools", "execs", "bodies", "graphs"}) {
      for (Object* object : std::vector<Object*>(live.begin(), live.end())) {
        if (object->context == nullptr && std::string(kind) == object->kind) Delete(object);
      }
    }
    queue.clear();
    conditionals.clear();
  }
  for (Object* object : std::vector<Object*>(live.begin(), live.end())) {
    if (object->context != context) continue;
    if (context->lost == Error::kSuccess) ++leaked;
    Delete(object);
  }
  Delete(context);
}

void State::DeleteGraph(GraphObject* graph) {
  for (const auto& node : graph->nodes) {
    for (GraphObject* body : node->bodies) DeleteGraph(body);
  }
  std::erase_if(conditionals, [&](const auto& c) { return c.second.graph == graph; });
  Delete(graph);
}

int64_t State::CountLive(const std::string& kind) const {
  return std::count_if(live.begin(), live.end(), [&](Object* o) { return kind == o->kind; });
}

void State::Enqueue(StreamObject* stream, std::function<Error()> run, Activity activity) {
  activity.correlation = last_call;
  queue.push_back(Work{stream, ContextStack().back(), std::move(run), std::move(activity)});
  if (stream != nullptr) ++stream->work;
  if (settings.deferred == 0) RunAll();
}

bool State::RunOne() {
  if (queue.empty()) return false;
  Work work = std::move(queue.front());
  queue.pop_front();
  ++time;
  if (work.context->lost != Error::kSuccess) return true;
  const int64_t start = Time();
  work.context->lost = work.run();
  if (work.activity.bytes > 0) {
    // It takes a while, so that times can be told apart.
    while (settings.real_time != 0 && Time() - start < 2000) {
    }
    Tell(work, start, Time());
  }
  return true;
}

void State::RunAll() {
  while (RunOne()) {
  }
}

void State::RunStream(StreamObject* stream, ContextObject* context) {
  auto is_left = [&] {
    return std::any_of(queue.begin(), queue.end(), [&](const Work& work) {
      return work.stream == stream && work.context == context;
    });
  };
  while (is_left()) RunOne();
}

bool CheckStream(State& state, StreamHandle& stream) {
  // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD.
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number == 1 || number == 2) stream = nullptr;
  return stream == nullptr || state.Check(stream) != nullptr;
}

}  // namespace kiln::device::cuda

using namespace kiln::device::cuda;

#define KILN_STANDIN_CONTROL extern "C" __attribute__((visibility("default")))

KILN_STANDIN_CONTROL int kiln_test_cuda_configure(const char* settings) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  return Configure(state, settings) ? 0 : 1;
}

KILN_STANDIN_CONTROL void kiln_test_cuda_reset(void) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.settings = Settings();
  state.fail_symbol.clear();
  state.fail_first = state.fail_times = 0;
  state.fail_error = state.fail_work = Error::kSuccess;
  state.calls.clear();
  state.all_calls = state.failing_calls = 0;
  state.launches = state.copies = state.misuses = state.leaked = 0;
  state.profiler.records = 0;
}

KILN_STANDIN_CONTROL void kiln_test_cuda_fail(const char* symbol, long long first, long long times,
                                              int error) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.fail_symbol = symbol != nullptr ? symbol : "";
  state.fail_first = first;
  state.fail_times = times;
  state.fail_error = static_cast<Error>(error);
  state.failing_calls = 0;
  state.all_calls = 0;
}

KILN_STANDIN_CONTROL void kiln_test_cuda_fail_work(int error) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.fail_work = static_cast<Error>(error);
}

KILN_STANDIN_CONTROL void kiln_test_cuda_forget(void) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.queue.clear();
  state.conditionals.clear();
  state.primaries.clear();
  // Memory before its pools.
  for (const char* kind : {"memory", ""}) {
    for (Object* object : std::vector<Object*>(state.live.begin(), state.live.end())) {
      if (*kind == '\0' || std::string(kind) == object->kind) state.Delete(object);
    }
  }
  state.depth -= static_cast<int64_t>(ContextStack().size());
  ContextStack().clear();
}

KILN_STANDIN_CONTROL long long kiln_test_cuda_count(const char* what) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  const std::string name = what;
  if (name == "calls") return state.all_calls;
  if (name == "launches") return state.launches;
  if (name == "copies") return state.copies;
  if (name == "misuse") return state.misuses;
  if (name == "leaked") return state.leaked;
  if (name == "depth") return state.depth;
  if (name == "records") return state.profiler.records;
  if (name == "buffers") return state.profiler.buffer != nullptr ? 1 : 0;
  if (name == "live") return static_cast<long long>(state.live.size());
  for (const char* kind : {"contexts", "streams", "events", "modules", "links", "pools", "memory",
                           "pinned", "graphs", "execs"}) {
    if (name == kind) return state.CountLive(name);
  }
#define KILN_STANDIN_COUNT(member, symbol, ...) \
  if (name == #symbol) return state.calls[name];
  KILN_CUDA_FUNCTIONS(KILN_STANDIN_COUNT)
  KILN_CUPTI_FUNCTIONS(KILN_STANDIN_COUNT)
  KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_STANDIN_COUNT)
#undef KILN_STANDIN_COUNT
  return -1;
}

KILN_STANDIN_CONTROL void* kiln_test_cuda_make_context(int device) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  return state.Make<ContextObject>(device);
}

KILN_STANDIN_CONTROL void kiln_test_cuda_destroy_context(void* context) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  state.EndContext(static_cast<ContextObject*>(context));
}

KILN_STANDIN_CONTROL void* kiln_test_cuda_make_stream(void* context, int device) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto* owner = static_cast<ContextObject*>(context);
  return state.Make<StreamObject>(owner != nullptr ? owner : state.MakePrimary(device));
}

KILN_STANDIN_CONTROL long long kiln_test_cuda_stream_work(void* stream, int waits) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto* object = static_cast<StreamObject*>(stream);
  return waits != 0 ? object->waits : object->work;
}

KILN_STANDIN_CONTROL void kiln_test_cuda_destroy_stream(void* stream) {
  State& state = TheState();
  std::lock_guard lock(state.mutex);
  auto* object = static_cast<StreamObject*>(stream);
  state.RunAll();
  ContextObject* context = object->context;
  state.Delete(object);
  if (context->retained > 0 && --context->retained == 0) {
    state.primaries.erase(context->device);
    state.EndContext(context);
  }
}
