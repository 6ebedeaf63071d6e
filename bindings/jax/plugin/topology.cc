#include "plugin/topology.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/client.h"
#include "plugin/program.h"

/** The bytes that a caller has until it calls the deleter. */
struct PJRT_SerializedTopology {
  std::string bytes;
};

namespace kiln_jax {
namespace {

constexpr char kMagic[] = "kiln topology 1\n";

/** The platform, the number of its devices, the build of Kiln and the machine. */
std::string BytesOf(const PJRT_TopologyDescription& topology) {
  return kMagic + std::string(topology.platform) + "\n" +
         std::to_string(topology.descriptions.size()) + "\n" + topology.platform_version;
}

/** The options of a client with the devices of serialised bytes; false if they are none. */
bool ReadBytes(std::string_view bytes, PJRT_NamedValue (&options)[2]) {
  if (!bytes.starts_with(kMagic)) return false;
  bytes.remove_prefix(sizeof(kMagic) - 1);
  const size_t end = bytes.find('\n');
  if (end == bytes.npos) return false;
  const bool is_gpu = bytes.substr(0, end) == kGpuPlatform;
  const std::string_view number = bytes.substr(end + 1);
  int64_t count = 0;
  std::from_chars(number.data(), number.data() + number.size(), count);
  for (PJRT_NamedValue& option : options) {
    option = {};
    option.struct_size = sizeof(PJRT_NamedValue);
  }
  options[0].name = "kiln_device_count";
  options[0].type = PJRT_NamedValue_kInt64;
  options[0].int64_value = count;
  options[1].name = "kiln_device";
  options[1].type = PJRT_NamedValue_kString;
  options[1].string_value = is_gpu ? "gpu" : "cpu";
  options[1].value_size = 3;
  for (PJRT_NamedValue& option : options) option.name_size = std::strlen(option.name);
  return count > 0;
}

/** A topology of its own, which keeps its client. */
PJRT_Error* MakeTopology(const PJRT_NamedValue* options, size_t count,
                         PJRT_TopologyDescription** topology) {
  std::shared_ptr<Client> client;
  if (PJRT_Error* error = MakeClient(options, count, &client)) return error;
  auto made = std::make_unique<PJRT_TopologyDescription>(client->topology);
  made->client = std::move(client);
  *topology = made.release();
  return nullptr;
}

}  // namespace

PJRT_Error* TopologyCreate(PJRT_TopologyDescription_Create_Args* args) {
  // Machines other than this one have no names yet; JAX's own tests look for this text.
  if (args->topology_name_size > 0) {
    return UnimplementedError("topology not implemented by Kiln's plugin: \"" +
                              std::string(args->topology_name, args->topology_name_size) +
                              "\"; the empty name is this machine's");
  }
  return MakeTopology(args->create_options, args->num_options, &args->topology);
}

PJRT_Error* TopologyDestroy(PJRT_TopologyDescription_Destroy_Args* args) {
  // A client's own topology goes with it.
  if (args->topology != nullptr && args->topology->client != nullptr) delete args->topology;
  return nullptr;
}

PJRT_Error* TopologySerialize(PJRT_TopologyDescription_Serialize_Args* args) {
  auto holder = std::make_unique<PJRT_SerializedTopology>();
  holder->bytes = BytesOf(*args->topology);
  args->serialized_bytes = holder->bytes.data();
  args->serialized_bytes_size = holder->bytes.size();
  args->serialized_topology = holder.release();
  args->serialized_topology_deleter = [](PJRT_SerializedTopology* done) { delete done; };
  return nullptr;
}

PJRT_Error* TopologyDeserialize(PJRT_TopologyDescription_Deserialize_Args* args) {
  const std::string_view bytes(args->serialized_topology, args->serialized_topology_size);
  PJRT_NamedValue options[2];
  if (!ReadBytes(bytes, options)) {
    return InvalidArgument("the bytes are no topology of Kiln's plugin");
  }
  PJRT_TopologyDescription* topology = nullptr;
  if (PJRT_Error* error = MakeTopology(options, 2, &topology)) return error;
  if (BytesOf(*topology) != bytes) {
    delete topology;
    return MakeError(PJRT_Error_Code_FAILED_PRECONDITION,
                     "the topology is of another machine or another build of Kiln");
  }
  args->topology = topology;
  return nullptr;
}

PJRT_Error* TopologyCompile(PJRT_Compile_Args* args) {
  std::shared_ptr<Client> client = args->topology->client;
  if (client == nullptr && args->client != nullptr) client = args->client->client;
  if (client == nullptr) return UnimplementedError("PJRT_Compile without a client");
  std::shared_ptr<const Program> program;
  if (PJRT_Error* error = CheckFormat(*args->program)) return error;
  if (PJRT_Error* error =
          MakeProgram(client, {args->program->code, args->program->code_size},
                      {args->compile_options, args->compile_options_size}, {}, &program)) {
    return error;
  }
  args->executable = new PJRT_Executable(std::move(program));
  return nullptr;
}

}  // namespace kiln_jax
