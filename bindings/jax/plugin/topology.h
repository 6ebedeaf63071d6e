/** @file
 *  Topologies: the devices of this machine as descriptions, and compilation for them. */
#ifndef KILN_JAX_PLUGIN_TOPOLOGY_H_
#define KILN_JAX_PLUGIN_TOPOLOGY_H_

#include "plugin/api/client.h"
#include "plugin/api/executable.h"
#include "plugin/error.h"

namespace kiln_jax {

PJRT_Error* TopologyCreate(PJRT_TopologyDescription_Create_Args* args);
PJRT_Error* TopologyDestroy(PJRT_TopologyDescription_Destroy_Args* args);
PJRT_Error* TopologySerialize(PJRT_TopologyDescription_Serialize_Args* args);
PJRT_Error* TopologyDeserialize(PJRT_TopologyDescription_Deserialize_Args* args);
PJRT_Error* TopologyCompile(PJRT_Compile_Args* args);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_TOPOLOGY_H_
