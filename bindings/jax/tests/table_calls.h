/** @file
 *  Calls of the PJRT C API for the tests of its table, and their checks. */
#ifndef KILN_JAX_TESTS_TABLE_CALLS_H_
#define KILN_JAX_TESTS_TABLE_CALLS_H_

#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/api/table.h"

namespace kiln_jax_test {

inline const PJRT_Api* api = nullptr;
inline int failed = 0;

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failed;                                                           \
    }                                                                     \
  } while (0)

/** Arguments with their size set. */
template <typename Args>
Args New() {
  Args args = {};
  args.struct_size = sizeof(Args);
  return args;
}

/** The code and text of an error, which is destroyed. */
inline std::string Text(PJRT_Error* error) {
  if (error == nullptr) return "";
  auto code = New<PJRT_Error_GetCode_Args>();
  code.error = error;
  CHECK(api->PJRT_Error_GetCode(&code) == nullptr);
  auto message = New<PJRT_Error_Message_Args>();
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text =
      std::to_string(code.code) + ": " + std::string(message.message, message.message_size);
  auto destroy = New<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  return text;
}

inline bool Ok(PJRT_Error* error) {
  const std::string text = Text(error);
  if (!text.empty()) std::printf("an error: %s\n", text.c_str());
  return text.empty();
}

inline bool Fails(PJRT_Error* error, PJRT_Error_Code code, const char* part) {
  const std::string text = Text(error);
  const bool right =
      text.starts_with(std::to_string(code) + ": ") && text.find(part) != std::string::npos;
  if (!right) std::printf("expected %d: ...%s..., got \"%s\"\n", code, part, text.c_str());
  return right;
}

inline PJRT_Error* Compile(PJRT_Client* client, std::string_view code, std::string_view format,
                           PJRT_LoadedExecutable** executable) {
  auto program = New<PJRT_Program>();
  program.code = code.data();
  program.code_size = code.size();
  program.format = format.data();
  program.format_size = format.size();
  auto args = New<PJRT_Client_Compile_Args>();
  args.client = client;
  args.program = &program;
  PJRT_Error* error = api->PJRT_Client_Compile(&args);
  *executable = args.executable;
  return error;
}

inline void DestroyEvent(PJRT_Event* event) {
  auto args = New<PJRT_Event_Destroy_Args>();
  args.event = event;
  CHECK(Ok(api->PJRT_Event_Destroy(&args)));
}

inline PJRT_Error* Await(PJRT_Event* event) {
  auto args = New<PJRT_Event_Await_Args>();
  args.event = event;
  PJRT_Error* error = api->PJRT_Event_Await(&args);
  DestroyEvent(event);
  return error;
}

inline void DestroyBuffer(PJRT_Buffer* buffer) {
  auto args = New<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_Destroy(&args)));
}

inline bool IsDeleted(PJRT_Buffer* buffer) {
  auto args = New<PJRT_Buffer_IsDeleted_Args>();
  args.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_IsDeleted(&args)));
  return args.is_deleted;
}

/** A buffer of f32. `done` receives the event; NULL: it is awaited. */
inline PJRT_Buffer* MakeBuffer(
    PJRT_Client* client, PJRT_Device* device, const float* data, std::vector<int64_t> dims,
    std::vector<int64_t> strides = {},
    PJRT_HostBufferSemantics semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
    PJRT_Event** done = nullptr) {
  auto args = New<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client;
  args.data = data;
  args.type = PJRT_Buffer_Type_F32;
  args.dims = dims.data();
  args.num_dims = dims.size();
  args.byte_strides = strides.data();
  args.num_byte_strides = strides.size();
  args.host_buffer_semantics = semantics;
  args.device = device;
  CHECK(Ok(api->PJRT_Client_BufferFromHostBuffer(&args)));
  if (done != nullptr) {
    *done = args.done_with_host_buffer;
  } else {
    CHECK(Ok(Await(args.done_with_host_buffer)));
  }
  return args.buffer;
}

inline std::vector<float> Read(PJRT_Buffer* buffer) {
  auto args = New<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer;
  CHECK(Ok(api->PJRT_Buffer_ToHostBuffer(&args)));
  std::vector<float> values(args.dst_size / sizeof(float));
  float place = 0;  // for an array without elements, too, `dst` is an address
  args.dst = values.empty() ? &place : values.data();
  if (Ok(api->PJRT_Buffer_ToHostBuffer(&args))) {
    CHECK(Ok(Await(args.event)));
  } else {
    ++failed;
  }
  return values;
}

/** Executes with one result. */
inline PJRT_Error* Execute(PJRT_LoadedExecutable* executable, std::vector<PJRT_Buffer*> arguments,
                           PJRT_Buffer** result, PJRT_Event** event,
                           std::vector<int64_t> kept = {}) {
  auto options = New<PJRT_ExecuteOptions>();
  options.launch_id = 7;
  options.non_donatable_input_indices = kept.data();
  options.num_non_donatable_input_indices = kept.size();
  auto args = New<PJRT_LoadedExecutable_Execute_Args>();
  PJRT_Buffer* const* list = arguments.data();
  args.executable = executable;
  args.options = &options;
  args.argument_lists = &list;
  args.num_devices = 1;
  args.num_args = arguments.size();
  args.output_lists = &result;
  args.device_complete_events = event;
  return api->PJRT_LoadedExecutable_Execute(&args);
}

inline void DestroyLoaded(PJRT_LoadedExecutable* executable) {
  auto args = New<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = executable;
  CHECK(Ok(api->PJRT_LoadedExecutable_Destroy(&args)));
}

/** Loads the table of a plugin; false, with a message, if that fails. */
inline bool Load(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return false;
  }
  auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get != nullptr) api = get();
  return api != nullptr;
}

}  // namespace kiln_jax_test

#endif  // KILN_JAX_TESTS_TABLE_CALLS_H_
