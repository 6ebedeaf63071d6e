// The backend of the evaluator, which takes modules as they are.
#pragma once

#include <memory>

#include "compiler/backend.h"

namespace kiln::compiler {

std::unique_ptr<const Backend> MakeReferenceBackend(const target::Target& target);

}  // namespace kiln::compiler
