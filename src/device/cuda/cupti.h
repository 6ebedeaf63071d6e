// CUPTI, the records of a GPU's activities, loaded at run time. It has one subscriber per process:
// if another library has loaded it already, it is left alone unless requested by name.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/context.h"
#include "device/gpu/activity.h"

namespace kiln::device::cuda {

// `library` is a file; empty for the one matching the driver, in the usual places; "off" for none.
// Null if missing or not working. Like the driver's library, it is never unloaded.
std::unique_ptr<GpuActivities> Listen(std::shared_ptr<Context> context, const std::string& library);

}  // namespace kiln::device::cuda
