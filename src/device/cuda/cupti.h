// CUPTI, which tells what a GPU did and when, loaded at run time. It has one listener in a process:
// where somebody else has it loaded already, it is left to him unless it is asked for by name.
#pragma once

#include <memory>
#include <string>

#include "device/cuda/context.h"
#include "device/gpu/activity.h"

namespace kiln::device::cuda {

// `library` is a file; empty for the one that fits the driver, in the usual places; "off" for none.
// Null where there is none, or it does not work. Like the driver's, the library stays for good.
std::unique_ptr<GpuActivities> Listen(std::shared_ptr<Context> context, const std::string& library);

}  // namespace kiln::device::cuda
