// The plugin without JAX: what a caller of the PJRT C API does, from dlopen() on.
//   table_test libkiln_pjrt.so
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "plugin/api/layouts.h"
#include "plugin/api/table.h"
#include "tests/table_calls.h"

namespace kiln_jax_test {
namespace {

/** The functions that are not done. */
const std::set<std::string_view> kMissing = {
    "PJRT_CopyToDeviceStream_Destroy",
    "PJRT_CopyToDeviceStream_AddChunk",
    "PJRT_CopyToDeviceStream_TotalBytes",
    "PJRT_CopyToDeviceStream_GranuleSize",
    "PJRT_CopyToDeviceStream_CurrentBytes",
    "PJRT_ExecuteContext_Create",
    "PJRT_ExecuteContext_Destroy",
    "PJRT_Client_DmaMap",
    "PJRT_Client_DmaUnmap",
    "PJRT_Client_UpdateGlobalProcessInfo",
    "PJRT_Device_PoisonExecution",
    "PJRT_Client_Load",
    "PJRT_Buffer_Bitcast",
    "PJRT_Device_ClearMemoryStats",
    "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace",
    "PJRT_TopologyDescription_GetMemorySpaceKindIds",
};

/** Every function refuses arguments that are too small, and those not done tell their names. */
void TestTable() {
  CHECK(api->struct_size == sizeof(PJRT_Api));
  CHECK(api->pjrt_api_version.major_version == 0);
  CHECK(api->pjrt_api_version.minor_version == 112);
  size_t missing = 0;
  auto check = [&](const char* name, PJRT_Error* (*function)(void*)) {
    size_t block[64] = {sizeof(block)};
    if (kMissing.count(name) != 0) {
      ++missing;
      CHECK(Fails(function(block), PJRT_Error_Code_UNIMPLEMENTED, name));
      return;
    }
    block[0] = 8;
    CHECK(Fails(function(block), PJRT_Error_Code_INVALID_ARGUMENT, "struct_size is 8"));
    CHECK(Fails(function(nullptr), PJRT_Error_Code_INVALID_ARGUMENT, "NULL"));
  };
#define KILN_TEST_FUNCTION(name) \
  CHECK(api->name != nullptr);   \
  check(#name, reinterpret_cast<PJRT_Error* (*)(void*)>(api->name));
  KILN_JAX_PJRT_FUNCTIONS(KILN_TEST_FUNCTION)
#undef KILN_TEST_FUNCTION
  CHECK(missing == kMissing.size());
}

void TestAttributes() {
  auto initialize = New<PJRT_Plugin_Initialize_Args>();
  CHECK(Ok(api->PJRT_Plugin_Initialize(&initialize)));
  auto attributes = New<PJRT_Plugin_Attributes_Args>();
  CHECK(Ok(api->PJRT_Plugin_Attributes(&attributes)));
  CHECK(attributes.num_attributes >= 1);
  CHECK(std::string_view(attributes.attributes[0].name) == "stablehlo_current_version");
  CHECK(attributes.attributes[0].int64_array_value[0] == 1);
}

PJRT_Client* MakeClient() {
  auto args = New<PJRT_Client_Create_Args>();
  args.struct_size = offsetof(PJRT_Client_Create_Args, kv_try_get_callback);  // an older caller
  PJRT_NamedValue option = {};
  option.name = "no_such_option";
  option.name_size = 14;
  args.create_options = &option;
  args.num_options = 1;
  CHECK(Fails(api->PJRT_Client_Create(&args), PJRT_Error_Code_INVALID_ARGUMENT, "no_such_option"));
  args.num_options = 0;
  CHECK(Ok(api->PJRT_Client_Create(&args)));
  return args.client;
}

/** What jaxlib asks before the first program. */
PJRT_Device* TestStart(PJRT_Client* client) {
  auto name = New<PJRT_Client_PlatformName_Args>();
  name.client = client;
  CHECK(Ok(api->PJRT_Client_PlatformName(&name)));
  CHECK(std::string_view(name.platform_name, name.platform_name_size) == "kiln");
  auto devices = New<PJRT_Client_Devices_Args>();
  devices.client = client;
  CHECK(Ok(api->PJRT_Client_Devices(&devices)) && devices.num_devices == 1);
  PJRT_Device* device = devices.devices[0];
  auto look = New<PJRT_Client_LookupDevice_Args>();
  look.client = client;
  CHECK(Ok(api->PJRT_Client_LookupDevice(&look)) && look.device == device);
  look.id = 1;
  CHECK(Fails(api->PJRT_Client_LookupDevice(&look), PJRT_Error_Code_INVALID_ARGUMENT, "id 1"));
  auto description = New<PJRT_Device_GetDescription_Args>();
  description.device = device;
  CHECK(Ok(api->PJRT_Device_GetDescription(&description)));
  auto kind = New<PJRT_DeviceDescription_Kind_Args>();
  kind.device_description = description.device_description;
  CHECK(Ok(api->PJRT_DeviceDescription_Kind(&kind)));
  CHECK(std::string_view(kind.device_kind) == "Kiln CPU");
  auto memory = New<PJRT_Device_DefaultMemory_Args>();
  memory.device = device;
  CHECK(Ok(api->PJRT_Device_DefaultMemory(&memory)));
  auto memory_kind = New<PJRT_Memory_Kind_Args>();
  memory_kind.memory = memory.memory;
  CHECK(Ok(api->PJRT_Memory_Kind(&memory_kind)));
  CHECK(std::string_view(memory_kind.kind) == "device");
  auto topology = New<PJRT_Client_TopologyDescription_Args>();
  topology.client = client;
  CHECK(Ok(api->PJRT_Client_TopologyDescription(&topology)) && topology.topology != nullptr);
  auto stats = New<PJRT_Device_MemoryStats_Args>();
  stats.device = device;
  CHECK(Ok(api->PJRT_Device_MemoryStats(&stats)));
  return device;
}

constexpr std::string_view kAdd = R"(
module @add {
  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                         %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
})";

/** What a caller gets of an executable as bytes, and what it makes of them. */
void TestSaved(PJRT_Client* client, PJRT_Device* device) {
  PJRT_LoadedExecutable* compiled = nullptr;
  CHECK(Ok(Compile(client, kAdd, "mlir", &compiled)));
  auto get = New<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = compiled;
  CHECK(Ok(api->PJRT_LoadedExecutable_GetExecutable(&get)));
  auto serialize = New<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_Serialize(&serialize)));
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  auto program = New<PJRT_Program>();
  auto optimized = New<PJRT_Executable_OptimizedProgram_Args>();
  optimized.executable = get.executable;
  optimized.program = &program;
  CHECK(Ok(api->PJRT_Executable_OptimizedProgram(&optimized)));
  CHECK(std::string_view(program.format, program.format_size) == "mlir");
  std::string code(program.code_size, 0);
  program.code = code.data();
  CHECK(Ok(api->PJRT_Executable_OptimizedProgram(&optimized)) && code == kAdd);
  program.code_size = 3;
  CHECK(Fails(api->PJRT_Executable_OptimizedProgram(&optimized), PJRT_Error_Code_INVALID_ARGUMENT,
              "3 of"));
  auto destroy = New<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_Destroy(&destroy)));
  DestroyLoaded(compiled);

  auto load = New<PJRT_Executable_DeserializeAndLoad_Args>();
  load.struct_size = offsetof(PJRT_Executable_DeserializeAndLoad_Args,
                              overridden_serialized_compile_options);  // an older caller
  load.client = client;
  load.serialized_executable = bytes.data();
  for (size_t size : {size_t{0}, size_t{9}, bytes.size() - 1}) {
    load.serialized_executable_size = size;
    CHECK(Fails(api->PJRT_Executable_DeserializeAndLoad(&load), PJRT_Error_Code_INVALID_ARGUMENT,
                "serialised executable"));
  }
  load.serialized_executable_size = bytes.size();
  CHECK(Ok(api->PJRT_Executable_DeserializeAndLoad(&load)));
  const float ones[4] = {1, 2, 3, 4};
  PJRT_Buffer* a = MakeBuffer(client, device, ones, {4});
  PJRT_Buffer* b = MakeBuffer(client, device, ones, {4});
  PJRT_Buffer* sum = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(Execute(load.loaded_executable, {a, b}, &sum, &event)) && Ok(Await(event)));
  CHECK(Read(sum) == std::vector<float>({2, 4, 6, 8}));
  CHECK(IsDeleted(a) && !IsDeleted(b));
  for (PJRT_Buffer* buffer : {a, b, sum}) DestroyBuffer(buffer);
  DestroyLoaded(load.loaded_executable);
}

void TestTopology() {
  auto create = New<PJRT_TopologyDescription_Create_Args>();
  create.topology_name = "far:2x2";
  create.topology_name_size = 7;
  CHECK(Fails(api->PJRT_TopologyDescription_Create(&create), PJRT_Error_Code_UNIMPLEMENTED,
              "topology not implemented"));
  create.topology_name_size = 0;
  CHECK(Ok(api->PJRT_TopologyDescription_Create(&create)));
  auto serialize = New<PJRT_TopologyDescription_Serialize_Args>();
  serialize.topology = create.topology;
  CHECK(Ok(api->PJRT_TopologyDescription_Serialize(&serialize)));
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  auto restore = New<PJRT_TopologyDescription_Deserialize_Args>();
  restore.serialized_topology = bytes.data();
  restore.serialized_topology_size = bytes.size();
  CHECK(Ok(api->PJRT_TopologyDescription_Deserialize(&restore)));
  bytes.back() ^= 1;
  auto other = New<PJRT_TopologyDescription_Deserialize_Args>();
  other.serialized_topology = bytes.data();
  other.serialized_topology_size = bytes.size();
  CHECK(Fails(api->PJRT_TopologyDescription_Deserialize(&other),
              PJRT_Error_Code_FAILED_PRECONDITION, "another machine"));
  auto program = New<PJRT_Program>();
  program.code = kAdd.data();
  program.code_size = kAdd.size();
  program.format = "mlir";
  program.format_size = 4;
  auto compile = New<PJRT_Compile_Args>();
  compile.topology = restore.topology;
  compile.program = &program;
  CHECK(Ok(api->PJRT_Compile(&compile)));
  auto outputs = New<PJRT_Executable_NumOutputs_Args>();
  outputs.executable = compile.executable;
  CHECK(Ok(api->PJRT_Executable_NumOutputs(&outputs)) && outputs.num_outputs == 1);
  auto destroy = New<PJRT_Executable_Destroy_Args>();
  destroy.executable = compile.executable;
  CHECK(Ok(api->PJRT_Executable_Destroy(&destroy)));
  for (PJRT_TopologyDescription* topology : {create.topology, restore.topology}) {
    auto end = New<PJRT_TopologyDescription_Destroy_Args>();
    end.topology = topology;
    CHECK(Ok(api->PJRT_TopologyDescription_Destroy(&end)));
  }
}

void TestCompileErrors(PJRT_Client* client) {
  PJRT_LoadedExecutable* executable = nullptr;
  CHECK(Fails(Compile(client, "func.func @main(", "mlir", &executable),
              PJRT_Error_Code_INVALID_ARGUMENT, "line 1"));
  CHECK(Fails(Compile(client, "", "hlo", &executable), PJRT_Error_Code_UNIMPLEMENTED, "\"hlo\""));
  constexpr std::string_view call = R"(
    func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.custom_call @nobody(%a) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    })";
  CHECK(Text(Compile(client, call, "mlir", &executable)).find("nobody") != std::string::npos);
}

void TestExecutable(PJRT_LoadedExecutable* loaded) {
  auto get = New<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = loaded;
  CHECK(Ok(api->PJRT_LoadedExecutable_GetExecutable(&get)));
  auto outputs = New<PJRT_Executable_NumOutputs_Args>();
  outputs.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_NumOutputs(&outputs)) && outputs.num_outputs == 1);
  auto dims = New<PJRT_Executable_OutputDimensions_Args>();
  dims.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_OutputDimensions(&dims)));
  CHECK(dims.dim_sizes[0] == 1 && dims.dims[0] == 4);
  auto fingerprint = New<PJRT_Executable_Fingerprint_Args>();
  fingerprint.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_Fingerprint(&fingerprint)));
  CHECK(fingerprint.executable_fingerprint_size == 32);
  auto stats = New<PJRT_Executable_GetCompiledMemoryStats_Args>();
  stats.executable = get.executable;
  stats.peak_memory_in_bytes = stats.total_size_in_bytes = -1;
  stats.struct_size = offsetof(PJRT_Executable_GetCompiledMemoryStats_Args, peak_memory_in_bytes);
  CHECK(Ok(api->PJRT_Executable_GetCompiledMemoryStats(&stats)));
  CHECK(stats.output_size_in_bytes == 16 && stats.peak_memory_in_bytes == -1);
  stats.struct_size = sizeof(stats);
  CHECK(Ok(api->PJRT_Executable_GetCompiledMemoryStats(&stats)));
  CHECK(stats.peak_memory_in_bytes >= 32 && stats.total_size_in_bytes >= 32);
  auto destroy = New<PJRT_Executable_Destroy_Args>();
  destroy.executable = get.executable;
  CHECK(Ok(api->PJRT_Executable_Destroy(&destroy)));
}

/** Numbers, donation, and buffers without memory. */
void TestExecute(PJRT_Client* client, PJRT_Device* device) {
  PJRT_LoadedExecutable* add = nullptr;
  CHECK(Ok(Compile(client, kAdd, "mlir", &add)));
  TestExecutable(add);
  const float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  PJRT_Buffer* x = MakeBuffer(client, device, a, {4});
  PJRT_Buffer* y = MakeBuffer(client, device, b, {4});
  PJRT_Buffer *kept = nullptr, *sum = nullptr, *none = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(Execute(add, {x, y}, &kept, &event, {0})));
  CHECK(Ok(Await(event)));
  CHECK((Read(kept) == std::vector<float>{11, 22, 33, 44}));
  CHECK(!IsDeleted(x) && !IsDeleted(y));
  CHECK(Fails(Execute(add, {x}, &none, &event), PJRT_Error_Code_INVALID_ARGUMENT, "2 arguments"));
  CHECK(Fails(Execute(add, {x, x}, &none, &event), PJRT_Error_Code_INVALID_ARGUMENT, "donated"));
  CHECK(!IsDeleted(x));  // the execution was refused
  CHECK(Ok(Execute(add, {x, y}, &sum, &event)));
  CHECK(Ok(Await(event)));
  CHECK(IsDeleted(x) && !IsDeleted(y));
  CHECK((Read(sum) == std::vector<float>{11, 22, 33, 44}));
  CHECK(Fails(Execute(add, {x, y}, &none, &event), PJRT_Error_Code_INVALID_ARGUMENT, "donated"));
  auto ready = New<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = x;
  CHECK(Fails(api->PJRT_Buffer_ReadyEvent(&ready), PJRT_Error_Code_INVALID_ARGUMENT, "deleted"));
  auto dims = New<PJRT_Buffer_Dimensions_Args>();
  dims.buffer = x;
  CHECK(Ok(api->PJRT_Buffer_Dimensions(&dims)) && dims.num_dims == 1 && dims.dims[0] == 4);
  auto remove = New<PJRT_Buffer_Delete_Args>();
  remove.buffer = y;
  CHECK(Ok(api->PJRT_Buffer_Delete(&remove)) && IsDeleted(y));
  for (PJRT_Buffer* buffer : {x, y, kept, sum}) DestroyBuffer(buffer);
  DestroyLoaded(add);
}

/** Callbacks come once, and may destroy the event. */
void TestEvents(PJRT_Client* client, PJRT_Device* device) {
  struct State {
    PJRT_Event* event;
    std::atomic<int> calls = 0;
  } state;
  std::vector<float> data(1 << 16, 2.5f);
  PJRT_Buffer* buffer = MakeBuffer(client, device, data.data(), {1 << 16}, {},
                                   PJRT_HostBufferSemantics_kImmutableZeroCopy, &state.event);
  auto on_ready = New<PJRT_Event_OnReady_Args>();
  on_ready.event = state.event;
  on_ready.user_arg = &state;
  on_ready.callback = [](PJRT_Error* error, void* user_arg) {
    State* s = static_cast<State*>(user_arg);
    CHECK(Ok(error));
    DestroyEvent(s->event);
    ++s->calls;
  };
  CHECK(Ok(api->PJRT_Event_OnReady(&on_ready)));
  CHECK(state.calls == 0);  // the memory is in use until the buffer is gone
  CHECK(Read(buffer)[77] == 2.5f);
  DestroyBuffer(buffer);
  for (int i = 0; i < 10000 && state.calls == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(state.calls == 1);
}

void TestStrides(PJRT_Client* client, PJRT_Device* device) {
  const float m[] = {1, 2, 3, 4, 5, 6};
  PJRT_Buffer* transposed = MakeBuffer(client, device, m, {3, 2}, {4, 12});
  CHECK((Read(transposed) == std::vector<float>{1, 4, 2, 5, 3, 6}));
  PJRT_Buffer* reversed = MakeBuffer(client, device, m + 5, {6}, {-4});
  CHECK((Read(reversed) == std::vector<float>{6, 5, 4, 3, 2, 1}));
  PJRT_Buffer* broadcast = MakeBuffer(client, device, m + 1, {3}, {0});
  CHECK((Read(broadcast) == std::vector<float>{2, 2, 2}));
  PJRT_Buffer* empty = MakeBuffer(client, device, nullptr, {0, 3});
  CHECK(Read(empty).empty());
  for (PJRT_Buffer* buffer : {transposed, reversed, broadcast, empty}) DestroyBuffer(buffer);
}

/** A buffer that was not ready when it was asked for is not on the CPU later either. */
void TestNotReady(PJRT_Client* client, PJRT_Device* device) {
  constexpr std::string_view kLoop = R"(
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %n = stablehlo.constant dense<1000000> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %x = %a) : tensor<i32>, tensor<4xf32> cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %j = stablehlo.add %i, %one : tensor<i32>
        %y = stablehlo.sine %x : tensor<4xf32>
        stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
      }
      return %r#1 : tensor<4xf32>
    })";
  PJRT_LoadedExecutable* loop = nullptr;
  CHECK(Ok(Compile(client, kLoop, "mlir", &loop)));
  const float a[] = {1, 2, 3, 4};
  PJRT_Buffer *x = MakeBuffer(client, device, a, {4}), *y = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(Execute(loop, {x}, &y, &event)));
  auto on_cpu = New<PJRT_Buffer_IsOnCpu_Args>();
  on_cpu.buffer = y;
  CHECK(Ok(api->PJRT_Buffer_IsOnCpu(&on_cpu)));
  const bool first = on_cpu.is_on_cpu;
  CHECK(Ok(Await(event)));
  CHECK(Ok(api->PJRT_Buffer_IsOnCpu(&on_cpu)));
  CHECK(on_cpu.is_on_cpu == first);
  for (PJRT_Buffer* buffer : {x, y}) DestroyBuffer(buffer);
  DestroyLoaded(loop);
}

/** Memory that the caller reads in place outlives the deletion of its buffer. */
void TestInPlace(PJRT_Client* client, PJRT_Device* device) {
  const float data[] = {5, 6, 7};
  PJRT_Buffer* buffer = MakeBuffer(client, device, data, {3});
  auto on_cpu = New<PJRT_Buffer_IsOnCpu_Args>();
  on_cpu.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_IsOnCpu(&on_cpu)) && on_cpu.is_on_cpu);
  auto increase = New<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  increase.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_IncreaseExternalReferenceCount(&increase)));
  auto pointer = New<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
  pointer.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer)));
  auto remove = New<PJRT_Buffer_Delete_Args>();
  remove.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_Delete(&remove)) && IsDeleted(buffer));
  CHECK(std::memcmp(pointer.device_memory_ptr, data, sizeof(data)) == 0);
  CHECK(Fails(api->PJRT_Buffer_OpaqueDeviceMemoryDataPointer(&pointer),
              PJRT_Error_Code_INVALID_ARGUMENT, "deleted"));
  auto decrease = New<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  decrease.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_DecreaseExternalReferenceCount(&decrease)));
  CHECK(Fails(api->PJRT_Buffer_DecreaseExternalReferenceCount(&decrease),
              PJRT_Error_Code_INVALID_ARGUMENT, "no external references"));
  DestroyBuffer(buffer);
}

/** The extension of a type in the table. */
template <typename Extension>
const Extension* Find(PJRT_Extension_Type type) {
  auto* at = static_cast<const PJRT_Extension_Base*>(api->extension_start);
  while (at != nullptr && at->type != type) at = at->next;
  CHECK(at != nullptr && at->struct_size == sizeof(Extension));
  return reinterpret_cast<const Extension*>(at);
}

/** An order of elements, as the extension tells it. */
std::string LayoutOf(PJRT_Buffer* buffer) {
  const auto* layouts = Find<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts);
  auto args = New<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>();
  args.buffer = buffer;
  CHECK(Ok(layouts->buffer(&args)));
  auto serialize = New<PJRT_Layouts_MemoryLayout_Serialize_Args>();
  serialize.layout = args.layout;
  CHECK(Ok(layouts->serialize(&serialize)));
  std::string text(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_layout_deleter(serialize.serialized_layout);
  auto destroy = New<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destroy.layout = args.layout;
  CHECK(Ok(layouts->destroy(&destroy)));
  return text;
}

/** A client of two devices with their memories. */
PJRT_Client* MakeTwoDevices(std::vector<PJRT_Device*>* devices) {
  auto create = New<PJRT_Client_Create_Args>();
  PJRT_NamedValue option = {};
  option.name = "kiln_device_count";
  option.name_size = std::strlen(option.name);
  option.type = PJRT_NamedValue_kString;
  create.create_options = &option;
  create.num_options = 1;
  for (const char* text : {"two", "0", "1025"}) {
    option.string_value = text;
    option.value_size = std::strlen(text);
    CHECK(Fails(api->PJRT_Client_Create(&create), PJRT_Error_Code_INVALID_ARGUMENT, option.name));
  }
  option.type = PJRT_NamedValue_kInt64;
  option.int64_value = 2;
  CHECK(Ok(api->PJRT_Client_Create(&create)));
  auto list = New<PJRT_Client_AddressableDevices_Args>();
  list.client = create.client;
  CHECK(Ok(api->PJRT_Client_AddressableDevices(&list)) && list.num_addressable_devices == 2);
  devices->assign(list.addressable_devices, list.addressable_devices + 2);
  auto memories = New<PJRT_Client_AddressableMemories_Args>();
  memories.client = create.client;
  CHECK(Ok(api->PJRT_Client_AddressableMemories(&memories)));
  std::set<int> ids;
  for (size_t i = 0; i < memories.num_addressable_memories; ++i) {
    auto id = New<PJRT_Memory_Id_Args>();
    id.memory = memories.addressable_memories[i];
    CHECK(Ok(api->PJRT_Memory_Id(&id)));
    ids.insert(id.id);
  }
  CHECK(ids.size() == 6 && memories.num_addressable_memories == 6);
  return create.client;
}

/** Buffers of two devices, in other kinds of memory and orders of elements. */
void TestPlaces() {
  std::vector<PJRT_Device*> devices;
  PJRT_Client* client = MakeTwoDevices(&devices);
  auto kinds = New<PJRT_Device_AddressableMemories_Args>();
  kinds.device = devices[1];
  CHECK(Ok(api->PJRT_Device_AddressableMemories(&kinds)) && kinds.num_memories == 3);
  const float data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3}, order[] = {0, 1}, wrong[] = {0, 0};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  auto make = New<PJRT_Client_BufferFromHostBuffer_Args>();
  make.client = client;
  make.data = data;
  make.type = PJRT_Buffer_Type_F32;
  make.dims = dims;
  make.num_dims = 2;
  make.memory = kinds.memories[1];
  make.device_layout = &layout;
  CHECK(Ok(api->PJRT_Client_BufferFromHostBuffer(&make)));
  CHECK(Ok(Await(make.done_with_host_buffer)));
  CHECK(LayoutOf(make.buffer) == "{0,1}");
  CHECK((Read(make.buffer) == std::vector<float>{1, 2, 3, 4, 5, 6}));
  auto memory = New<PJRT_Buffer_Memory_Args>();
  memory.buffer = make.buffer;
  CHECK(Ok(api->PJRT_Buffer_Memory(&memory)) && memory.memory == kinds.memories[1]);
  auto pointer = New<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = make.buffer;
  CHECK(Ok(api->PJRT_Buffer_UnsafePointer(&pointer)));
  CHECK(reinterpret_cast<const float*>(pointer.buffer_pointer)[1] == 4);
  auto copy = New<PJRT_Buffer_CopyToDevice_Args>();
  copy.buffer = make.buffer;
  copy.dst_device = devices[0];
  CHECK(Ok(api->PJRT_Buffer_CopyToDevice(&copy)));
  CHECK((Read(copy.dst_buffer) == std::vector<float>{1, 2, 3, 4, 5, 6}));
  CHECK(LayoutOf(copy.dst_buffer) == "{0,1}");
  auto device = New<PJRT_Buffer_Device_Args>();
  device.buffer = copy.dst_buffer;
  CHECK(Ok(api->PJRT_Buffer_Device(&device)) && device.device == devices[0]);
  layout.tiled.minor_to_major = wrong;
  CHECK(Fails(api->PJRT_Client_BufferFromHostBuffer(&make), PJRT_Error_Code_INVALID_ARGUMENT,
              "no order"));
  layout.tiled.num_tiles = 1;
  CHECK(
      Fails(api->PJRT_Client_BufferFromHostBuffer(&make), PJRT_Error_Code_UNIMPLEMENTED, "tiles"));
  DestroyBuffer(make.buffer);
  DestroyBuffer(copy.dst_buffer);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = client;
  CHECK(Ok(api->PJRT_Client_Destroy(&destroy)));
}

/** Memory of others is used in place, and given back; transposed arrays are copied. */
void TestViews(PJRT_Client* client, PJRT_Device* device) {
  alignas(64) static float data[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {3, 2}, order[] = {0, 1};
  int given_back = 0;
  auto args = New<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
  args.struct_size = offsetof(PJRT_Client_CreateViewOfDeviceBuffer_Args, memory);
  args.client = client;
  args.device_buffer_ptr = data;
  args.dims = dims;
  args.num_dims = 2;
  args.element_type = PJRT_Buffer_Type_F32;
  args.device = device;
  args.on_delete_callback = [](void* memory, void* count) {
    CHECK(memory == data);
    ++*static_cast<int*>(count);
  };
  args.on_delete_callback_arg = &given_back;
  CHECK(Ok(api->PJRT_Client_CreateViewOfDeviceBuffer(&args)));
  auto pointer = New<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = args.buffer;
  CHECK(Ok(api->PJRT_Buffer_UnsafePointer(&pointer)));
  CHECK(pointer.buffer_pointer == reinterpret_cast<uintptr_t>(data) && given_back == 0);
  CHECK((Read(args.buffer) == std::vector<float>{1, 2, 3, 4, 5, 6}));
  DestroyBuffer(args.buffer);
  CHECK(given_back == 1);
  PJRT_Buffer_MemoryLayout layout = {};
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled.minor_to_major = order;
  layout.tiled.minor_to_major_size = 2;
  args.layout = &layout;
  CHECK(Ok(api->PJRT_Client_CreateViewOfDeviceBuffer(&args)) && given_back == 2);
  CHECK((Read(args.buffer) == std::vector<float>{1, 4, 2, 5, 3, 6}));
  CHECK(LayoutOf(args.buffer) == "{1,0}");
  DestroyBuffer(args.buffer);
}

int Run(const char* library) {
  if (!Load(library)) return 1;
  TestTable();
  TestAttributes();
  PJRT_Client* client = MakeClient();
  if (client == nullptr) return 1;
  PJRT_Device* device = TestStart(client);
  TestCompileErrors(client);
  TestSaved(client, device);
  TestTopology();
  TestExecute(client, device);
  TestEvents(client, device);
  TestStrides(client, device);
  TestNotReady(client, device);
  TestInPlace(client, device);
  TestViews(client, device);
  TestPlaces();
  // A buffer keeps what it needs beyond the client's end.
  const float data[] = {1, 2};
  PJRT_Buffer* last = MakeBuffer(client, device, data, {2});
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = client;
  CHECK(Ok(api->PJRT_Client_Destroy(&destroy)));
  CHECK((Read(last) == std::vector<float>{1, 2}));
  DestroyBuffer(last);
  if (failed != 0) std::printf("%d checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln_jax_test

int main(int argc, char** argv) { return argc == 2 ? kiln_jax_test::Run(argv[1]) : 2; }
