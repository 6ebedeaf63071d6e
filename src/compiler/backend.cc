#include "compiler/backend.h"

#include "compiler/cpu/backend.h"
#include "compiler/gpu/backend.h"
#include "compiler/reference/backend.h"

namespace kiln::compiler {

std::unique_ptr<const Backend> BackendFor(const target::Target& target) {
  switch (target.kind) {
    case target::Kind::kCpu:
      return MakeCpuBackend(target);
    case target::Kind::kGpu:
      return MakeGpuBackend(target);
    case target::Kind::kReference:
      break;
  }
  return MakeReferenceBackend(target);
}

}  // namespace kiln::compiler
