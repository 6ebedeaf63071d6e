// The resources of kernels on a GPU, as reported by the machine.
#pragma once

#include <functional>
#include <string>

#include "device/gpu/machine.h"
#include "program/program.h"

namespace kiln::device {

// A row for each launched kernel of the program; empty without launches.
std::string ResourceTable(const program::Program& program,
                          const std::function<Result<GpuKernel*>(const std::string&)>& find);

}  // namespace kiln::device
