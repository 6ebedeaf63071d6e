// The backend of NVIDIA GPUs, by PTX, and their emulator.
#pragma once

#include <memory>

#include "compiler/backend.h"

namespace kiln::compiler {

std::unique_ptr<const Backend> MakeGpuBackend(const target::Target& target);

}  // namespace kiln::compiler
