/** @file
 *  The client with its device, memory and topology. */
#ifndef KILN_JAX_PLUGIN_CLIENT_H_
#define KILN_JAX_PLUGIN_CLIENT_H_

#include <memory>
#include <string>

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

struct PJRT_Memory {
  const void* vtable = nullptr;  // a table of functions since 0.105; callers take NULL for none
  std::string kind;
  std::string to_string;
  PJRT_Device* device = nullptr;
};

struct PJRT_Device {
  kiln_device* device = nullptr;  // borrowed from the context
  PJRT_DeviceDescription* description = nullptr;
  PJRT_Memory* memory = nullptr;
};

struct PJRT_TopologyDescription {
  std::string platform_version;
  PJRT_DeviceDescription* description = nullptr;
};

namespace kiln_jax {

/** The name of the platform, for JAX_PLATFORMS and jax.devices(). */
inline constexpr char kPlatform[] = "kiln";
/** The kind of the only memory. */
inline constexpr char kMemoryKind[] = "device";

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
  PJRT_DeviceDescription description;
  PJRT_Memory memory;
  PJRT_Device device;
  PJRT_TopologyDescription topology;
  // The lists that callers get.
  PJRT_Device* devices[1] = {&device};
  PJRT_Memory* memories[1] = {&memory};
  PJRT_DeviceDescription* descriptions[1] = {&description};
};

// The callbacks for trying a key came later, and are not used.
template <>
inline constexpr size_t kOldestSize<PJRT_Client_Create_Args> = offsetof(PJRT_Client_Create_Args,
                                                                        kv_try_get_callback);

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
