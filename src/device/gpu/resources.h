// What kernels take of a GPU, as the machine reports it.
#pragma once

#include <functional>
#include <string>

#include "device/gpu/machine.h"
#include "program/program.h"

namespace kiln::device {

// A row for each kernel that the program launches; empty where it launches none.
std::string ResourceTable(const program::Program& program,
                          const std::function<Result<GpuKernel*>(const std::string&)>& find);

}  // namespace kiln::device
