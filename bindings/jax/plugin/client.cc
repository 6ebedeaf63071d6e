#include "plugin/client.h"

#include <charconv>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "kiln/version.h"
#include "plugin/callbacks.h"
#include "plugin/error.h"

namespace kiln_jax {

namespace {

std::mutex clients_mutex;
// Not destroyed at exit: callers may release clients later.
std::set<PJRT_Client*>& clients = *new std::set<PJRT_Client*>;

std::string_view NameOf(const PJRT_NamedValue& option) { return {option.name, option.name_size}; }

/** The options of a client, of the plugin and of JAX. */
struct Options {
  int64_t threads = 0;
  int64_t device_count = 1;
  int64_t timeout_ms = 0;
  int64_t nodes = 1;
  bool is_gpu = false;
  std::string cache_folder;  // empty: by the environment
  int64_t cache_bytes = 0;
};

/** Reads a number, or the text of one, which options in one string are. */
PJRT_Error* ReadInteger(const PJRT_NamedValue& option, int64_t minimum, int64_t maximum,
                        int64_t* value) {
  const std::string name(NameOf(option));
  bool is_integer = option.type == PJRT_NamedValue_kInt64;
  if (is_integer) *value = option.int64_value;
  if (option.type == PJRT_NamedValue_kString) {
    const char* end = option.string_value + option.value_size;
    const auto [stop, failure] = std::from_chars(option.string_value, end, *value);
    is_integer = failure == std::errc() && stop == end;
  }
  if (!is_integer) return InvalidArgument("option \"" + name + "\" must be an integer");
  if (*value >= minimum && *value <= maximum) return nullptr;
  return InvalidArgument("option \"" + name + "\" is " + std::to_string(*value) + "; expected " +
                         std::to_string(minimum) + " to " + std::to_string(maximum));
}

PJRT_Error* ReadText(const PJRT_NamedValue& option, std::string* value) {
  if (option.type != PJRT_NamedValue_kString) {
    return InvalidArgument("option \"" + std::string(NameOf(option)) + "\" must be a text");
  }
  value->assign(option.string_value, option.value_size);
  return nullptr;
}

PJRT_Error* ReadDevice(const PJRT_NamedValue& option, bool* is_gpu) {
  if (option.type == PJRT_NamedValue_kString) {
    const std::string_view kind(option.string_value, option.value_size);
    *is_gpu = kind == "gpu";
    if (kind == "gpu" || kind == "cpu") return nullptr;
  }
  return InvalidArgument("option \"kiln_device\" must be \"cpu\" or \"gpu\"");
}

/** Reads the options of the caller. */
PJRT_Error* ReadOptions(const PJRT_NamedValue* given, size_t count, Options* options) {
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& option = given[i];
    const std::string_view name = NameOf(option);
    PJRT_Error* error = nullptr;
    int64_t node = 0;
    if (name == "kiln_threads") {
      error = ReadInteger(option, 0, INT32_MAX, &options->threads);
    } else if (name == "kiln_device_count") {
      error = ReadInteger(option, 1, 1024, &options->device_count);
    } else if (name == "kiln_timeout_ms") {
      error = ReadInteger(option, 0, INT32_MAX, &options->timeout_ms);
    } else if (name == "kiln_device") {
      error = ReadDevice(option, &options->is_gpu);
    } else if (name == "kiln_cache_folder") {
      error = ReadText(option, &options->cache_folder);
    } else if (name == "kiln_cache_bytes") {
      error = ReadInteger(option, KILN_CACHE_OFF, INT64_MAX, &options->cache_bytes);
    } else if (name == "num_nodes") {
      error = ReadInteger(option, 0, INT32_MAX, &options->nodes);
    } else if (name == "node_id") {
      error = ReadInteger(option, 0, INT32_MAX, &node);
    } else {
      error = InvalidArgument("unknown option \"" + std::string(name) +
                              "\" of a client; kiln has kiln_threads, kiln_device_count, "
                              "kiln_device, kiln_timeout_ms, kiln_cache_folder and "
                              "kiln_cache_bytes");
    }
    if (error != nullptr) return error;
  }
  if (options->nodes > 1) return UnimplementedError("clients of several processes (num_nodes > 1)");
  return nullptr;
}

std::string NameOf(const kiln_device* device) {
  size_t length = 0;
  const char* name = kiln_device_name(device, &length);
  return {name, length};
}

std::string DescriptionOf(const kiln_device* device) {
  size_t length = 0;
  const char* text = kiln_device_description(device, &length);
  return {text, length};
}

/** Finds the context's devices of the client's kind. */
PJRT_Error* FindDevices(Client* client) {
  const std::string_view prefix = client->is_gpu ? "GPU:" : "CPU:";
  for (size_t i = 0; i < kiln_context_device_count(client->context); ++i) {
    kiln_device* device = kiln_context_device(client->context, i);
    if (!NameOf(device).starts_with(prefix)) continue;
    client->devices.emplace_back();
    client->devices.back().device = device;
  }
  if (!client->devices.empty()) return nullptr;
  size_t length = 0;
  const char* notes = kiln_context_device_notes(client->context, &length);
  return MakeError(PJRT_Error_Code_NOT_FOUND, "no GPU: " + std::string(notes, length));
}

/** Makes the objects of the devices, with ids from 0. */
void Describe(Client* client) {
  client->topology.platform = client->is_gpu ? kGpuPlatform : kPlatform;
  const size_t count = client->devices.size();
  client->descriptions.resize(count);
  client->memories.resize(count * kMemoryKindCount);
  for (PJRT_Memory& memory : client->memories) client->memory_list.push_back(&memory);
  kiln_device* host = kiln_context_device(client->context, 0);
  for (size_t i = 0; i < count; ++i) {
    PJRT_Device& device = client->devices[i];
    PJRT_DeviceDescription& description = client->descriptions[i];
    const std::string number = std::to_string(i);
    description.id = static_cast<int>(i);
    description.kind = client->is_gpu ? "Kiln GPU" : "Kiln CPU";
    description.to_string =
        (client->is_gpu ? "KilnGpuDevice(id=" : "KilnDevice(id=") + number + ")";
    // str() of a device in Python.
    description.debug_string = std::string(client->topology.platform) + ":" + number;
    device.description = &description;
    device.memories = client->memory_list.data() + i * kMemoryKindCount;
    for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
      PJRT_Memory& memory = *device.memories[kind];
      memory.id = static_cast<int>(i * kMemoryKindCount + kind);
      memory.kind_id = static_cast<int>(kind);
      memory.kind = kMemoryKinds[kind];
      memory.to_string = std::string("KilnMemory(") + memory.kind + ", device=" + number + ")";
      memory.device = &device;
      memory.place = client->is_gpu && kind > 0 ? host : device.device;
    }
    client->device_list.push_back(&device);
    client->topology.descriptions.push_back(&description);
  }
  // Part of the keys of JAX's persistent cache: the library's build and the processor's features.
  client->topology.platform_version = std::string("Kiln ") + kiln_version_string() + ", build " +
                                      kiln_build_id() + ", " +
                                      DescriptionOf(client->devices[0].device);
}

}  // namespace

Client::~Client() {
  if (context != nullptr) ReleaseContext(context);
}

PJRT_Error* PluginInitialize(PJRT_Plugin_Initialize_Args*) { return nullptr; }

PJRT_Error* PluginAttributes(PJRT_Plugin_Attributes_Args* args) {
  static const int64_t current[] = {1, 20, 0};
  static const int64_t minimum[] = {0, 9, 0};
  auto version = [](std::string_view name, const int64_t* value) {
    PJRT_NamedValue made = {};
    made.struct_size = sizeof(PJRT_NamedValue);
    made.name = name.data();
    made.name_size = name.size();
    made.type = PJRT_NamedValue_kInt64List;
    made.int64_array_value = value;
    made.value_size = 3;
    return made;
  };
  static const PJRT_NamedValue attributes[] = {version("stablehlo_current_version", current),
                                               version("stablehlo_minimum_version", minimum)};
  args->attributes = attributes;
  args->num_attributes = 2;
  return nullptr;
}

PJRT_Error* MakeClient(const PJRT_NamedValue* named, size_t count, std::shared_ptr<Client>* made) {
  Options given;
  if (PJRT_Error* error = ReadOptions(named, count, &given)) return error;
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.callbacks_from_any_thread = 1;  // events call back while nobody waits
  options.gpu = given.is_gpu ? KILN_GPU_AUTO : KILN_GPU_OFF;
  options.threads = static_cast<int32_t>(given.threads);
  options.cpu_devices = given.is_gpu ? 1 : static_cast<int32_t>(given.device_count);
  options.cache_folder = given.cache_folder.c_str();
  options.cache_folder_length = given.cache_folder.size();
  options.cache_bytes = given.cache_bytes;
  auto client = std::make_shared<Client>();
  client->is_gpu = given.is_gpu;
  client->timeout_ns = given.timeout_ms * 1000000;
  if (kiln_error* error = kiln_context_create(&options, &client->context)) return TakeError(error);
  if (kiln_error* error = RegisterPythonCallback(client->context)) return TakeError(error);
  if (PJRT_Error* error = FindDevices(client.get())) return error;
  Describe(client.get());
  *made = std::move(client);
  return nullptr;
}

std::vector<std::shared_ptr<Client>> LiveClients() {
  std::vector<std::shared_ptr<Client>> live;
  const std::lock_guard lock(clients_mutex);
  for (const PJRT_Client* client : clients) live.push_back(client->client);
  return live;
}

PJRT_Error* ClientCreate(PJRT_Client_Create_Args* args) {
  std::shared_ptr<Client> client;
  if (PJRT_Error* error = MakeClient(args->create_options, args->num_options, &client)) {
    return error;
  }
  auto made = std::make_unique<PJRT_Client>(std::move(client));
  const std::lock_guard lock(clients_mutex);
  clients.insert(made.get());
  args->client = made.release();
  return nullptr;
}

PJRT_Error* ClientDestroy(PJRT_Client_Destroy_Args* args) {
  {
    const std::lock_guard lock(clients_mutex);
    clients.erase(args->client);
  }
  delete args->client;
  return nullptr;
}

PJRT_Error* ClientPlatformName(PJRT_Client_PlatformName_Args* args) {
  args->platform_name = args->client->client->topology.platform;
  args->platform_name_size = std::strlen(args->platform_name);
  return nullptr;
}

PJRT_Error* ClientProcessIndex(PJRT_Client_ProcessIndex_Args* args) {
  args->process_index = 0;
  return nullptr;
}

PJRT_Error* ClientPlatformVersion(PJRT_Client_PlatformVersion_Args* args) {
  const std::string& version = args->client->client->topology.platform_version;
  args->platform_version = version.c_str();
  args->platform_version_size = version.size();
  return nullptr;
}

PJRT_Error* ClientTopologyDescription(PJRT_Client_TopologyDescription_Args* args) {
  args->topology = &args->client->client->topology;
  return nullptr;
}

PJRT_Error* ClientDevices(PJRT_Client_Devices_Args* args) {
  args->devices = args->client->client->device_list.data();
  args->num_devices = args->client->client->device_list.size();
  return nullptr;
}

PJRT_Error* ClientAddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  args->addressable_devices = args->client->client->device_list.data();
  args->num_addressable_devices = args->client->client->device_list.size();
  return nullptr;
}

PJRT_Device* FindDevice(Client* client, int64_t id) {
  const bool exists = id >= 0 && id < static_cast<int64_t>(client->devices.size());
  return exists ? &client->devices[static_cast<size_t>(id)] : nullptr;
}

PJRT_Error* ClientLookupDevice(PJRT_Client_LookupDevice_Args* args) {
  args->device = FindDevice(args->client->client.get(), args->id);
  if (args->device != nullptr) return nullptr;
  return InvalidArgument("no device has the id " + std::to_string(args->id));
}

PJRT_Error* ClientLookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args) {
  args->addressable_device = FindDevice(args->client->client.get(), args->local_hardware_id);
  if (args->addressable_device != nullptr) return nullptr;
  return InvalidArgument("no device has the local hardware id " +
                         std::to_string(args->local_hardware_id));
}

PJRT_Error* ClientAddressableMemories(PJRT_Client_AddressableMemories_Args* args) {
  args->addressable_memories = args->client->client->memory_list.data();
  args->num_addressable_memories = args->client->client->memory_list.size();
  return nullptr;
}

PJRT_Error* ClientDefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args) {
  const int64_t count = static_cast<int64_t>(args->num_replicas) * args->num_partitions;
  const auto devices = static_cast<int64_t>(args->client->client->devices.size());
  if (args->num_replicas < 1 || args->num_partitions < 1 || count > devices ||
      static_cast<int64_t>(args->default_assignment_size) < count) {
    return InvalidArgument("there are " + std::to_string(devices) + " devices, not " +
                           std::to_string(args->num_replicas) + " times " +
                           std::to_string(args->num_partitions));
  }
  for (int i = 0; i < count; ++i) args->default_assignment[i] = i;
  return nullptr;
}

}  // namespace kiln_jax
