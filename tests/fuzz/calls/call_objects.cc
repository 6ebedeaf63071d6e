// Calls of what is no graph, buffer or program: versions, errors, texts, contexts, devices, events,
// traces, and the functions that options are made with.
#include <cstdlib>
#include <cstring>

#include "base/utf8.h"
#include "calls/callers.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

constexpr const char* kPlain = "";

// The functions that add and give back references. A reference that is given back is one that the
// world holds.
template <typename S, typename T>
void Retain(World& w, const char* function, Pool<S>& pool, void (*retain)(T*)) {
  auto state = w.PickOrNull(pool);
  w.Begin(function, World::Name("", state));
  retain(state ? state->handle : nullptr);
  w.Succeeded();
  if (state) pool.push_back(state);
}

template <typename S, typename T>
void Release(World& w, const char* function, Pool<S>& pool, void (*release)(T*)) {
  if (pool.empty() || w.Chance(3)) {
    w.Begin(function, "NULL");
    release(nullptr);
    w.Succeeded();
    return;
  }
  const size_t i = w.Below(pool.size());
  w.Begin(function, World::Name("", pool[i]));
  release(pool[i]->handle);
  w.Succeeded();
  pool.erase(pool.begin() + static_cast<int64_t>(i));
}

// Options of any size are zeros, but for their size.
template <typename T>
void Init(World& w, const char* function, void (*init)(T*, size_t)) {
  const size_t size = w.Chance(60) ? sizeof(T) : w.Below(2 * sizeof(T));
  w.Begin(function, size);
  if (w.Chance(3)) {
    init(nullptr, size);
    w.Succeeded();
    return;
  }
  std::vector<std::byte> bytes(std::max(size, sizeof(T)) + 8, std::byte{0x5a});
  init(reinterpret_cast<T*>(bytes.data()), size);
  w.Succeeded();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::byte expected{0x5a};
    if (size >= sizeof(size_t) && i < size) {
      expected = i < sizeof(size) ? reinterpret_cast<const std::byte*>(&size)[i] : std::byte{0};
    }
    w.Expect(bytes[i] == expected, Cat("byte ", i, " of options is not what it should be"));
  }
}

// A text that the library lends: with a 0 behind it, of the length that it tells.
void ExpectText(World& w, const char* text, size_t length) {
  w.Expect(text && text[length] == 0, "no text, or no 0 behind it");
  w.Succeeded();
}

}  // namespace

#define KILN_FUZZ_COUNTED(kind, pool)                                    \
  void Call_kiln_##kind##_retain(World& w) {                             \
    Retain(w, "kiln_" #kind "_retain", w.pool, kiln_##kind##_retain);    \
  }                                                                      \
  void Call_kiln_##kind##_release(World& w) {                            \
    Release(w, "kiln_" #kind "_release", w.pool, kiln_##kind##_release); \
  }
KILN_FUZZ_COUNTED(error, errors)
KILN_FUZZ_COUNTED(text, texts)
KILN_FUZZ_COUNTED(graph, graphs)
KILN_FUZZ_COUNTED(event, events)
KILN_FUZZ_COUNTED(buffer, buffers)
KILN_FUZZ_COUNTED(executable, executables)
KILN_FUZZ_COUNTED(session, sessions)
KILN_FUZZ_COUNTED(function, functions)
KILN_FUZZ_COUNTED(trace, traces)
KILN_FUZZ_COUNTED(run_metadata, metadata)
KILN_FUZZ_COUNTED(safetensors, files)

#define KILN_FUZZ_INIT(kind)                                            \
  void Call_kiln_##kind##_options_init(World& w) {                      \
    Init(w, "kiln_" #kind "_options_init", kiln_##kind##_options_init); \
  }
KILN_FUZZ_INIT(context)
KILN_FUZZ_INIT(custom_call)
KILN_FUZZ_INIT(stablehlo)
KILN_FUZZ_INIT(attention)
KILN_FUZZ_INIT(compile)
KILN_FUZZ_INIT(execute)
KILN_FUZZ_INIT(session)
KILN_FUZZ_INIT(function)
KILN_FUZZ_INIT(safetensors)
KILN_FUZZ_INIT(gradient)
KILN_FUZZ_INIT(schedule)
KILN_FUZZ_INIT(loss_scale)
KILN_FUZZ_INIT(initializer)
void Call_kiln_call_handler_init(World& w) {
  Init(w, "kiln_call_handler_init", kiln_call_handler_init);
}

// --- version.h, error.h, types.h

void Call_kiln_version(World& w) {
  w.Begin("kiln_version", kPlain);
  w.Expect(kiln_version() == KILN_VERSION, "another version");
  w.Succeeded();
}

void Call_kiln_version_string(World& w) {
  w.Begin("kiln_version_string", kPlain);
  const char* text = kiln_version_string();
  ExpectText(w, text, std::strlen(text));
}

void Call_kiln_build_id(World& w) {
  w.Begin("kiln_build_id", kPlain);
  const char* text = kiln_build_id();
  ExpectText(w, text, std::strlen(text));
}

void Call_kiln_error_create(World& w) {
  const auto code = static_cast<kiln_code>(w.Chance(70) ? w.Between(-1, 17) : w.WildNumber());
  const std::string message = w.WildText();
  const bool no_text = w.Chance(10);
  const size_t length = no_text && w.Chance(50) ? 0 : message.size();
  w.Begin("kiln_error_create", code, ", ", no_text ? "NULL" : "a text", ", ", length);
  kiln_error* error = kiln_error_create(code, no_text ? nullptr : message.data(), length);
  if (code == KILN_OK && !(no_text && length > 0)) {
    w.Expect(!error, "an error of code OK");
  } else {
    w.Expect(error, "no error");
    const kiln_code got = kiln_error_code(error);
    w.Expect(got > KILN_OK && got <= KILN_DATA_LOSS, "a code that is none");
    size_t told = 0;
    const char* text = kiln_error_message(error, &told);
    w.Expect(IsUtf8(std::string_view(text, told)), "the message is not UTF-8");
    w.Expect(no_text || !IsUtf8(message) ||
                 (told == length && std::memcmp(text, message.data(), length) == 0),
             "another message");
    w.Add(w.errors, error);
  }
  w.Succeeded();
}

void Call_kiln_error_code(World& w) {
  auto error = w.PickOrNull(w.errors);
  w.Begin("kiln_error_code", World::Name("error", error));
  const kiln_code code = kiln_error_code(error ? error->handle : nullptr);
  w.Expect((code == KILN_OK) == !error, "a wrong code");
  w.Succeeded();
}

void Call_kiln_error_message(World& w) {
  auto error = w.PickOrNull(w.errors);
  w.Begin("kiln_error_message", World::Name("error", error));
  size_t length = 0;
  const char* text =
      kiln_error_message(error ? error->handle : nullptr, w.Chance(80) ? &length : nullptr);
  ExpectText(w, text, length == 0 && error ? std::strlen(text) : length);
}

void Call_kiln_code_name(World& w) {
  const auto code = static_cast<kiln_code>(w.Chance(50) ? w.Between(0, 15) : w.WildNumber());
  w.Begin("kiln_code_name", code);
  const char* name = kiln_code_name(code);
  ExpectText(w, name, std::strlen(name));
}

void Call_kiln_dtype_name(World& w) {
  const kiln_dtype dtype = w.AnyType();
  w.Begin("kiln_dtype_name", dtype);
  const char* name = kiln_dtype_name(dtype);
  ExpectText(w, name, std::strlen(name));
}

void Call_kiln_dtype_bits(World& w) {
  const auto dtype = static_cast<kiln_dtype>(w.Chance(50) ? w.AnyType() : w.WildNumber());
  w.Begin("kiln_dtype_bits", dtype);
  const int32_t bits = kiln_dtype_bits(dtype);
  w.Expect(bits >= 0 && bits <= 128 && bits % 8 == 0, "a strange number of bits");
  w.Succeeded();
}

void Call_kiln_text_data(World& w) {
  auto text = w.PickOrNull(w.texts);
  w.Begin("kiln_text_data", World::Name("text", text));
  size_t length = 1;
  const char* data = kiln_text_data(text ? text->handle : nullptr, &length);
  if (text) return ExpectText(w, data, length);
  w.Expect(!data && length == 0, "a text of NULL");
}

// --- context.h, device.h, custom_call.h

void Call_kiln_context_create(World& w) {
  if (w.own_contexts.size() < 2 && w.Chance(20)) {
    w.MakeContext();
    return;
  }
  // One that cannot be, or NULL for where it goes.
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.gpu = KILN_GPU_OFF;
  options.threads = 1;
  const size_t wrong = w.Below(10);
  static constexpr auto kAllocate = [](void*, size_t, size_t) -> void* { return nullptr; };
  if (wrong == 0) options.threads = static_cast<int32_t>(w.Chance(50) ? -1 : 1025);
  if (wrong == 1) options.allocate = kAllocate;
  if (wrong == 2) options.log_level = static_cast<int32_t>(w.WildNumber());
  if (wrong == 3) options.gpu = static_cast<int32_t>(w.Between(3, 100));
  if (wrong == 4) options.gpu_memory_bytes = w.Between(-5, -1);
  if (wrong == 5) options.cache_folder_length = 1 + w.Below(9);
  if (wrong == 6) options.gpu_library = static_cast<int32_t>(w.Between(4, 100));
  if (wrong == 7) options.cpu_devices = static_cast<int32_t>(w.Chance(50) ? -1 : 1025);
  if (wrong == 8) options.cache_bytes = w.Between(-100, -2);
  const bool no_place = w.Chance(10);
  const SizedCopy sized(w, options);
  w.Begin("kiln_context_create", "wrong ", wrong, ", ", sized.ToString());
  kiln_context* made = World::Untouched<kiln_context>();
  kiln_error* error =
      kiln_context_create(sized.As<kiln_context_options>(), no_place ? nullptr : &made);
  if (no_place) {
    w.Expect(!w.Ok(error), "NULL is taken");
  } else if (w.Gave(error, made)) {
    kiln_context_release(made);
  }
}

void Call_kiln_context_retain(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  w.Begin("kiln_context_retain", World::Name("context", context));
  kiln_context_retain(context ? context->handle : nullptr);
  w.Succeeded();
  if (context) w.contexts.push_back(context);
}

void Call_kiln_context_release(World& w) {
  // Threads' own contexts are not among these, but those of others are, which must stay.
  if (!w.is_alone && w.contexts.size() < 2) return;
  Release(w, "kiln_context_release", w.contexts, kiln_context_release);
}

void Call_kiln_context_threads(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  w.Begin("kiln_context_threads", World::Name("context", context));
  w.Expect((kiln_context_threads(context ? context->handle : nullptr) > 0) == !!context,
           "a strange number of threads");
  w.Succeeded();
}

namespace {

template <typename T>
void TellMemory(World& w, const char* function, const T* object,
                kiln_error* (*ask)(const T*, kiln_memory_info*)) {
  kiln_memory_info info = KILN_MEMORY_INFO_INIT;
  info.live_bytes = info.peak_bytes = -1;
  const SizedCopy sized(w, info);
  kiln_memory_info* place = w.Chance(2) ? nullptr : sized.As<kiln_memory_info>();
  w.Begin(function, object ? "" : "NULL", sized.ToString());
  const bool ok = w.Ok(ask(object, place));
  w.Expect(ok || !object || !place || place->struct_size < sizeof(size_t), "no memory info");
  w.Expect(!ok || place->struct_size != sizeof(info) ||
               (place->live_bytes >= 0 && place->peak_bytes >= place->live_bytes),
           "strange numbers of bytes");
}

}  // namespace

void Call_kiln_context_memory(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  TellMemory<kiln_context>(w, "kiln_context_memory", context ? context->handle : nullptr,
                           kiln_context_memory);
}

void Call_kiln_context_cache(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  kiln_cache_info info = KILN_CACHE_INFO_INIT;
  info.hits = info.limit_bytes = -1;
  const SizedCopy sized(w, info);
  kiln_cache_info* place = w.Chance(2) ? nullptr : sized.As<kiln_cache_info>();
  w.Begin("kiln_context_cache", World::Name("context", context), sized.ToString());
  const bool ok = w.Ok(kiln_context_cache(context ? context->handle : nullptr, place));
  w.Expect(ok || !context || !place || place->struct_size < sizeof(size_t), "no cache info");
  w.Expect(!ok || place->struct_size != sizeof(info) ||
               (place->hits == 0 && place->misses == 0 && place->limit_bytes == 0),
           "strange uses of no cache");
}

void Call_kiln_device_memory(World& w) {
  auto context = w.Context();
  TellMemory<kiln_device>(w, "kiln_device_memory",
                          w.Chance(5) ? nullptr : context->devices[w.Device(*context)],
                          kiln_device_memory);
}

void Call_kiln_device_threads(World& w) {
  auto context = w.Context();
  kiln_device* device = w.Chance(5) ? nullptr : context->devices[w.Device(*context)];
  w.Begin("kiln_device_threads", World::Name("context", context), device ? "" : ", NULL");
  const int32_t threads = kiln_device_threads(device);
  w.Expect((threads > 0) == !!device && threads <= kiln_context_threads(context->handle),
           "a strange number of threads");
  w.Succeeded();
}

void Call_kiln_context_device_count(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  w.Begin("kiln_context_device_count", World::Name("context", context));
  w.Expect(kiln_context_device_count(context ? context->handle : nullptr) ==
               (context ? context->devices.size() : 0),
           "another number of devices");
  w.Succeeded();
}

void Call_kiln_context_device(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 5) : w.WildNumber());
  w.Begin("kiln_context_device", World::Name("context", context), ", ", index);
  kiln_device* device = kiln_context_device(context ? context->handle : nullptr, index);
  const bool is_there = context && index < context->devices.size();
  w.Expect(device == (is_there ? context->devices[index] : nullptr), "another device");
  w.Succeeded();
}

void Call_kiln_context_device_notes(World& w) {
  auto context = w.Chance(5) ? nullptr : w.Context();
  w.Begin("kiln_context_device_notes", World::Name("context", context));
  size_t length = 0;
  const char* notes = kiln_context_device_notes(context ? context->handle : nullptr, &length);
  if (context) return ExpectText(w, notes, length);
  w.Expect(!notes, "notes of NULL");
}

void Call_kiln_context_find_device(World& w) {
  auto context = w.Chance(3) ? nullptr : w.Context();
  const std::string name = context && w.Chance(70) ? w.Pick(context->names)
                           : w.Chance(50)          ? "CPU:1"
                                                   : w.WildText();
  const char* data = w.Chance(3) ? nullptr : name.data();
  w.Begin("kiln_context_find_device", World::Name("context", context), ", ", name.size(),
          data ? "" : ", NULL");
  kiln_device* device = World::Untouched<kiln_device>();
  w.Gave(kiln_context_find_device(context ? context->handle : nullptr, data, name.size(), &device),
         device);
}

void Call_kiln_device_name(World& w) {
  auto context = w.Context();
  const size_t index = w.Device(*context);
  w.Begin("kiln_device_name", context->names[index]);
  size_t length = 0;
  const char* name = kiln_device_name(context->devices[index], &length);
  w.Expect(context->names[index] == std::string_view(name, length), "another name");
  ExpectText(w, name, length);
}

void Call_kiln_device_description(World& w) {
  auto context = w.Context();
  const size_t index = w.Device(*context);
  w.Begin("kiln_device_description", context->names[index]);
  size_t length = 0;
  const char* text = kiln_device_description(context->devices[index], &length);
  w.Expect(length > 0, "no description");
  ExpectText(w, text, length);
}

void Call_kiln_device_retain(World& w) {
  auto context = w.Context();
  auto state = std::make_shared<DeviceState>();
  const size_t index = w.Device(*context);
  state->context = context;
  state->handle = w.Chance(5) ? nullptr : context->devices[index];
  w.Begin("kiln_device_retain", state->handle ? context->names[index] : "NULL");
  kiln_device_retain(state->handle);
  w.Succeeded();
  if (state->handle) w.devices.push_back(state);
}

void Call_kiln_device_release(World& w) {
  Release(w, "kiln_device_release", w.devices, kiln_device_release);
}

namespace {

// A result like the first operand is a copy of it; others are zeros.
kiln_error* Fill(void*, const kiln_custom_call* call) {
  for (size_t i = 0; i < call->result_count; ++i) {
    const kiln_call_array& result = *call->results[i];
    if (result.byte_size == 0) continue;
    const kiln_call_array* first = call->operand_count > 0 ? call->operands[0] : nullptr;
    if (first && first->dtype == result.dtype && first->byte_size == result.byte_size) {
      std::memmove(result.data, first->data, static_cast<size_t>(result.byte_size));
    } else {
      std::memset(result.data, 0, static_cast<size_t>(result.byte_size));
    }
  }
  return nullptr;
}

kiln_error* Fail(void*, const kiln_custom_call*) {
  return kiln_error_create(KILN_ABORTED, "the function fails", 18);
}

void Count(void* user_data) { ++*static_cast<std::atomic<int>*>(user_data); }

kiln_error* MakeState(void*, const kiln_custom_call*, void** state) {
  *state = std::malloc(1);
  return nullptr;
}

void FreeState(void*, void* state) { std::free(state); }

// Registers functions, as a handler or without one.
void RegisterCall(World& w, bool as_handler) {
  auto context = w.Chance(2) ? nullptr : w.Context();
  const std::string target = w.Chance(80)   ? Cat("target", w.Below(4))
                             : w.Chance(50) ? "kiln.mine"
                                            : w.WildText();
  const bool has_destroy = w.Chance(70), no_function = w.Chance(2);
  std::atomic<int>* counter = w.Counter(0);
  kiln_call_handler handler = KILN_CALL_HANDLER_INIT;
  handler.execute = no_function ? nullptr : w.Chance(75) ? Fill : Fail;
  handler.user_data = counter;
  handler.destroy = has_destroy ? Count : nullptr;
  if (as_handler && w.Chance(50)) {
    handler.instantiate = MakeState;
    handler.destroy_state = FreeState;
  }
  kiln_context* to = context ? context->handle : nullptr;
  w.Begin(as_handler ? "kiln_context_register_call_handler" : "kiln_context_register_call",
          World::Name("context", context), ", ", target.size());
  const bool ok = w.Ok(
      as_handler ? kiln_context_register_call_handler(to, target.data(), target.size(), &handler)
                 : kiln_context_register_call(to, target.data(), target.size(), handler.execute,
                                              counter, handler.destroy));
  if (!ok) return;
  w.Expect(context && !no_function, "NULL is taken");
  if (has_destroy) w.ExpectCount(counter, 1);
  const std::lock_guard lock(context->mutex);
  w.Expect(context->targets.insert(target).second, "a target has two functions");
}

}  // namespace

void Call_kiln_context_register_call(World& w) { RegisterCall(w, false); }

void Call_kiln_context_register_call_handler(World& w) { RegisterCall(w, true); }

// --- event.h, trace.h

namespace {

struct OnReady {
  std::atomic<int>* called;
  std::atomic<int>* destroyed;
};

void Ready(void* user_data, const kiln_error* error) {
  auto& on_ready = *static_cast<OnReady*>(user_data);
  if (error && kiln_error_code(error) == KILN_OK) std::abort();
  ++*on_ready.called;
}

void Destroyed(void* user_data) {
  std::unique_ptr<OnReady> on_ready(static_cast<OnReady*>(user_data));
  ++*on_ready->destroyed;
}

}  // namespace

void Call_kiln_event_create(World& w) {
  auto context = w.PickOrNull(w.contexts);
  kiln_event* made = World::Untouched<kiln_event>();
  w.Begin("kiln_event_create", World::Name("context", context));
  if (!w.Gave(kiln_event_create(context ? context->handle : nullptr, &made), made)) return;
  w.Expect(kiln_event_is_ready(made) == 0, "an event is ready that nobody has set");
  kiln_error* failure = w.Chance(30) ? kiln_error_create(KILN_ABORTED, "set", 3) : nullptr;
  w.Begin("kiln_event_set", failure ? "a failure" : "NULL");
  (void)w.Ok(kiln_event_set(made, failure));
  kiln_error_release(failure);
  w.Expect(kiln_event_is_ready(made) == 1, "an event that has been set is not ready");
  w.Add(w.events, made)->context = context;
}

void Call_kiln_event_set(World& w) {
  auto event = w.PickOrNull(w.events);
  w.Begin("kiln_event_set", World::Name("event", event));
  const bool ok = w.Ok(kiln_event_set(event ? event->handle : nullptr, nullptr));
  w.Expect(!ok, "an event is set that is the library's, or has been set");
}

void Call_kiln_event_wait(World& w) {
  auto event = w.PickOrNull(w.events);
  int64_t timeout = w.Chance(50) ? 0 : w.Between(1, 3'000'000);
  // Executions end; the memory that this thread's buffers are in does not come back while it waits.
  if (event && !event->is_of_memory && w.Chance(40)) timeout = w.Chance(50) ? -1 : w.WildNumber();
  if (timeout > 10'000'000 && event && event->is_of_memory) timeout = 0;
  w.Begin("kiln_event_wait", World::Name("event", event), ", ", timeout);
  kiln_error* error = kiln_event_wait(event ? event->handle : nullptr, timeout);
  const bool is_late = error && kiln_error_code(error) == KILN_DEADLINE_EXCEEDED;
  // An execution that had a time limit can itself have failed so.
  w.Expect(!is_late || timeout >= 0 || kiln_event_is_ready(event->handle) == 1,
           "a wait without an end has ended");
  w.Expect(event || error, "NULL is waited for");
  if (event && !is_late) w.Expect(kiln_event_is_ready(event->handle) == 1, "it is not ready");
  (void)w.Ok(error);
}

void Call_kiln_event_is_ready(World& w) {
  auto event = w.PickOrNull(w.events);
  w.Begin("kiln_event_is_ready", World::Name("event", event));
  const int32_t ready = kiln_event_is_ready(event ? event->handle : nullptr);
  w.Expect(ready == 0 || (ready == 1 && event), "neither 0 nor 1");
  w.Succeeded();
}

void Call_kiln_event_on_ready(World& w) {
  auto event = w.PickOrNull(w.events);
  const bool has_destroy = w.Chance(90);
  auto on_ready = std::make_unique<OnReady>(OnReady{w.Counter(0), w.Counter(0)});
  const OnReady counters = *on_ready;
  w.Begin("kiln_event_on_ready", World::Name("event", event));
  // What is called without a function that destroys it stays, in a list of the world's.
  OnReady* given = has_destroy ? on_ready.release() : w.KeepForever(std::move(on_ready));
  kiln_error* error =
      kiln_event_on_ready(event ? event->handle : nullptr, w.Chance(3) ? nullptr : Ready, given,
                          has_destroy ? Destroyed : nullptr);
  if (w.Ok(error)) {
    w.Expect(event && event->context->from_any_thread, "a callback is taken");
    w.ExpectCount(counters.called, 1);
    if (has_destroy) w.ExpectCount(counters.destroyed, 1);
  } else if (has_destroy) {
    delete given;
  }
}

void Call_kiln_trace_start(World& w) {
  auto context = w.Chance(3) ? nullptr : w.Context();
  kiln_trace* trace = World::Untouched<kiln_trace>();
  w.Begin("kiln_trace_start", World::Name("context", context));
  if (!w.Gave(kiln_trace_start(context ? context->handle : nullptr, &trace), trace)) return;
  w.Add(w.traces, trace)->context = context;
}

void Call_kiln_trace_create(World& w) {
  auto context = w.Chance(3) ? nullptr : w.Context();
  kiln_trace* trace = World::Untouched<kiln_trace>();
  w.Begin("kiln_trace_create", World::Name("context", context));
  if (!w.Gave(kiln_trace_create(context ? context->handle : nullptr, &trace), trace)) return;
  w.Add(w.traces, trace)->context = context;
}

void Call_kiln_trace_metadata(World& w) {
  auto trace = w.PickOrNull(w.traces);
  kiln_run_metadata* metadata = World::Untouched<kiln_run_metadata>();
  w.Begin("kiln_trace_metadata", World::Name("trace", trace));
  if (!w.Gave(kiln_trace_metadata(trace ? trace->handle : nullptr, &metadata), metadata)) return;
  w.Add(w.metadata, metadata)->context = trace->context;
}

void Call_kiln_run_metadata_count(World& w) {
  auto metadata = w.PickOrNull(w.metadata);
  w.Begin("kiln_run_metadata_count", World::Name("metadata", metadata));
  const size_t count = kiln_run_metadata_count(metadata ? metadata->handle : nullptr);
  w.Expect(metadata || count == 0, "rows of NULL");
  w.Succeeded();
}

void Call_kiln_run_metadata_get(World& w) {
  auto metadata = w.PickOrNull(w.metadata);
  kiln_run_metadata* handle = metadata ? metadata->handle : nullptr;
  const auto index = static_cast<size_t>(w.Chance(80) ? w.Between(0, 3) : w.WildNumber());
  const kiln_op_metadata empty = KILN_OP_METADATA_INIT;
  const SizedCopy sized(w, empty);
  const auto* row = sized.As<kiln_op_metadata>();
  w.Begin("kiln_run_metadata_get", World::Name("metadata", metadata), ", ", index, ", ",
          sized.ToString());
  const bool ok = w.Ok(kiln_run_metadata_get(handle, index, sized.As<kiln_op_metadata>()));
  w.Expect(!ok || index < kiln_run_metadata_count(handle), "a row beyond the last");
  w.Expect(!ok || row->struct_size < sizeof(empty) ||
               (row->op && row->op[row->op_length] == 0 && row->device && row->kind &&
                row->count > 0 && row->nanoseconds >= 0),
           "a row without contents");
}

void Call_kiln_trace_stop(World& w) {
  auto trace = w.PickOrNull(w.traces);
  w.Begin("kiln_trace_stop", World::Name("trace", trace));
  w.Expect(w.Ok(kiln_trace_stop(trace ? trace->handle : nullptr)) || !trace, "it does not end");
}

void Call_kiln_trace_to_json(World& w) {
  auto trace = w.PickOrNull(w.traces);
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin("kiln_trace_to_json", World::Name("trace", trace));
  if (!w.Gave(kiln_trace_to_json(trace ? trace->handle : nullptr, &text), text)) return;
  size_t length = 0;
  const char* json = kiln_text_data(text, &length);
  w.Expect(length > 0 && json[0] == '{', "no JSON");
  w.Expect(IsUtf8(std::string_view(json, length)), "JSON that is not UTF-8");
  w.Add(w.texts, text);
}

void Call_kiln_trace_to_xspace(World& w) {
  auto trace = w.PickOrNull(w.traces);
  kiln_text* bytes = World::Untouched<kiln_text>();
  w.Begin("kiln_trace_to_xspace", World::Name("trace", trace));
  if (!w.Gave(kiln_trace_to_xspace(trace ? trace->handle : nullptr, &bytes), bytes)) return;
  w.Add(w.texts, bytes);
}

}  // namespace kiln::fuzz
