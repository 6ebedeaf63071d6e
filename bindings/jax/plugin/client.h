/** @file
 *  The client with its devices, their memories and the topology. */
#ifndef KILN_JAX_PLUGIN_CLIENT_H_
#define KILN_JAX_PLUGIN_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "kiln/context.h"
#include "kiln/device.h"
#include "plugin/api/client.h"
#include "plugin/api/event.h"
#include "plugin/error.h"
#include "plugin/ffi/targets.h"

struct PJRT_DeviceDescription {
  int id = 0;
  std::string kind;
  std::string debug_string;
  std::string to_string;
};

/** A kind of memory of a device. On the processor all kinds are the same memory; a GPU's host kinds
 *  are the memory of CPU:0. */
struct PJRT_Memory {
  const void* vtable = nullptr;  // a table of functions since 0.105; callers take NULL for none
  int id = 0;
  int kind_id = 0;
  const char* kind = nullptr;
  std::string to_string;
  PJRT_Device* device = nullptr;
  kiln_device* place = nullptr;  // of its buffers; borrowed from the context
};

struct PJRT_Device {
  kiln_device* device = nullptr;  // borrowed from the context
  PJRT_DeviceDescription* description = nullptr;
  PJRT_Memory* const* memories = nullptr;  // kMemoryKindCount; the first is the default
};

namespace kiln_jax {
struct Client;
}

struct PJRT_TopologyDescription {
  std::shared_ptr<kiln_jax::Client> client;  // of a topology of its own; a client's has none
  const char* platform = nullptr;
  std::string platform_version;
  std::vector<PJRT_DeviceDescription*> descriptions;
};

namespace kiln_jax {

/** The names of the platforms, for JAX_PLATFORMS and jax.devices(): of the processor, and of
 *  GPUs. */
inline constexpr char kPlatform[] = "kiln";
inline constexpr char kGpuPlatform[] = "kiln_gpu";

/** The kinds of memory that each device has; the first is the default. */
inline constexpr size_t kMemoryKindCount = 3;
inline constexpr const char* kMemoryKinds[kMemoryKindCount] = {"device", "pinned_host",
                                                               "unpinned_host"};

/** What is behind a PJRT_Client. Buffers and executables share it, so it outlives the client's
 *  destruction as long as they need it. Immutable after its creation, but
 *  for `ffi_targets`. */
struct Client {
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  kiln_context* context = nullptr;
  KnownTargets ffi_targets;
  bool is_gpu = false;
  int64_t timeout_ns = 0;  // of each execution; 0: none
  std::vector<PJRT_DeviceDescription> descriptions;
  std::vector<PJRT_Memory> memories;  // kMemoryKindCount for each device
  std::vector<PJRT_Device> devices;   // the index is the id
  PJRT_TopologyDescription topology;
  // The lists that callers get.
  std::vector<PJRT_Device*> device_list;
  std::vector<PJRT_Memory*> memory_list;
};

/** The device with an id; NULL if there is none. */
PJRT_Device* FindDevice(Client* client, int64_t id);

// The callbacks for trying a key came later, and are not used.
template <>
inline constexpr size_t kOldestSize<PJRT_Client_Create_Args> = offsetof(PJRT_Client_Create_Args,
                                                                        kv_try_get_callback);

/** The clients of callers, without those that only belong to topologies. Any thread. */
std::vector<std::shared_ptr<Client>> LiveClients();

/** Makes a client with options by name. */
PJRT_Error* MakeClient(const PJRT_NamedValue* options, size_t count,
                       std::shared_ptr<Client>* client);

PJRT_Error* PluginInitialize(PJRT_Plugin_Initialize_Args* args);
PJRT_Error* PluginAttributes(PJRT_Plugin_Attributes_Args* args);
PJRT_Error* ClientCreate(PJRT_Client_Create_Args* args);
PJRT_Error* ClientDestroy(PJRT_Client_Destroy_Args* args);
PJRT_Error* ClientPlatformName(PJRT_Client_PlatformName_Args* args);
PJRT_Error* ClientProcessIndex(PJRT_Client_ProcessIndex_Args* args);
PJRT_Error* ClientPlatformVersion(PJRT_Client_PlatformVersion_Args* args);
PJRT_Error* ClientTopologyDescription(PJRT_Client_TopologyDescription_Args* args);
PJRT_Error* ClientDevices(PJRT_Client_Devices_Args* args);
PJRT_Error* ClientAddressableDevices(PJRT_Client_AddressableDevices_Args* args);
PJRT_Error* ClientLookupDevice(PJRT_Client_LookupDevice_Args* args);
PJRT_Error* ClientLookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args* args);
PJRT_Error* ClientAddressableMemories(PJRT_Client_AddressableMemories_Args* args);
PJRT_Error* ClientDefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args* args);

}  // namespace kiln_jax

struct PJRT_Client {
  std::shared_ptr<kiln_jax::Client> client;
};

#endif  // KILN_JAX_PLUGIN_CLIENT_H_
