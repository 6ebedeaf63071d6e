// The backend of CPUs, by LLVM.
#pragma once

#include <memory>

#include "compiler/backend.h"

namespace kiln::compiler {

std::unique_ptr<const Backend> MakeCpuBackend(const target::Target& target);

}  // namespace kiln::compiler
