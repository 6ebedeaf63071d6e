#include "plugin/client.h"

#include <string_view>

#include "kiln/version.h"
#include "plugin/error.h"

namespace kiln_jax {

namespace {

std::string_view NameOf(const PJRT_NamedValue& option) { return {option.name, option.name_size}; }

/** Reads the options of the caller. */
PJRT_Error* ReadOptions(const PJRT_Client_Create_Args& args, kiln_context_options* options) {
  for (size_t i = 0; i < args.num_options; ++i) {
    const PJRT_NamedValue& option = args.create_options[i];
    const std::string_view name = NameOf(option);
    if (name != "kiln_threads" && name != "node_id" && name != "num_nodes") {
      return InvalidArgument("unknown option \"" + std::string(name) +
                             "\" of a client; kiln has kiln_threads");
    }
    if (option.type != PJRT_NamedValue_kInt64) {
      return InvalidArgument("option \"" + std::string(name) + "\" must be an integer");
    }
    if (name == "num_nodes" && option.int64_value > 1) {
      return UnimplementedError("clients of several processes (num_nodes > 1)");
    }
    if (name != "kiln_threads") continue;
    if (option.int64_value < 0 || option.int64_value > INT32_MAX) {
      return InvalidArgument("option \"kiln_threads\" is out of range");
    }
    options->threads = static_cast<int32_t>(option.int64_value);
  }
  return nullptr;
}

void Describe(Client* client) {
  size_t length = 0;
  const char* target = kiln_device_description(client->device.device, &length);
  client->description.kind = "Kiln CPU";
  client->description.to_string = "KilnDevice(id=0)";
  client->description.debug_string = "Kiln CPU 0: " + std::string(target, length);
  client->memory.kind = kMemoryKind;
  client->memory.to_string = "KilnMemory(device)";
  client->memory.device = &client->device;
  client->device.description = &client->description;
  client->device.memory = &client->memory;
  // Part of the keys of JAX's persistent cache: the library and the processor's features.
  client->topology.platform_version =
      std::string("Kiln ") + kiln_version_string() + ", " + std::string(target, length);
  client->topology.description = &client->description;
}

}  // namespace

Client::~Client() { kiln_context_release(context); }

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

PJRT_Error* ClientCreate(PJRT_Client_Create_Args* args) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.callbacks_from_any_thread = 1;  // events call back while nobody waits
  options.gpu = KILN_GPU_OFF;
  options.cpu_devices = 1;
  if (PJRT_Error* error = ReadOptions(*args, &options)) return error;
  auto client = std::make_shared<Client>();
  if (kiln_error* error = kiln_context_create(&options, &client->context)) return TakeError(error);
  client->device.device = kiln_context_device(client->context, 0);
  Describe(client.get());
  args->client = new PJRT_Client{std::move(client)};
  return nullptr;
}

PJRT_Error* ClientDestroy(PJRT_Client_Destroy_Args* args) {
  delete args->client;
  return nullptr;
}

PJRT_Error* ClientPlatformName(PJRT_Client_PlatformName_Args* args) {
  args->platform_name = kPlatform;
  args->platform_name_size = sizeof(kPlatform) - 1;
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
  args->devices = args->client->client->devices;
  args->num_devices = 1;
  return nullptr;
}

PJRT_Error* ClientAddressableDevices(PJRT_Client_AddressableDevices_Args* args) {
  args->addressable_devices = args->client->client->devices;
  args->num_addressable_devices = 1;
  return nullptr;
}

PJRT_Error* ClientLookupDevice(PJRT_Client_LookupDevice_Args* args) {
  if (args->id != 0) return InvalidArgument("no device has the id " + std::to_string(args->id));
  args->device = &args->client->client->device;
  return nullptr;
}

PJRT_Error* ClientLookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args) {
  if (args->local_hardware_id != 0) {
    return InvalidArgument("no device has the local hardware id " +
                           std::to_string(args->local_hardware_id));
  }
  args->addressable_device = &args->client->client->device;
  return nullptr;
}

PJRT_Error* ClientAddressableMemories(PJRT_Client_AddressableMemories_Args* args) {
  args->addressable_memories = args->client->client->memories;
  args->num_addressable_memories = 1;
  return nullptr;
}

PJRT_Error* ClientDefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args) {
  if (args->num_replicas != 1 || args->num_partitions != 1 || args->default_assignment_size < 1) {
    return InvalidArgument("there is one device, not " + std::to_string(args->num_replicas) +
                           " times " + std::to_string(args->num_partitions));
  }
  args->default_assignment[0] = 0;
  return nullptr;
}

}  // namespace kiln_jax
