#include "runtime/device.h"

#include "base/strings.h"
#include "frame/frame.h"

namespace kiln::runtime {

Result<program::Artefact> LoadedExecutable::Save() const {
  if (!keeps_code_) {
    return FailedPrecondition("the code of '", program().name, "' has not been kept");
  }
  program::Artefact saved{.program = program(), .code = code_, .keeps_code = true};
  KILN_RETURN_IF_ERROR(SaveConstants(saved.program));
  saved.machine_code = Assembled(saved.code);
  return saved;
}

Result<std::unique_ptr<LoadedExecutable>> Device::Load(program::Artefact artefact,
                                                       TraceSink* trace) {
  const program::Program& program = artefact.program;
  auto fail = [&](const Status& status) {
    return status.WithContext(Cat("'", program.name, "' does not load on ", name_));
  };
  if (program.frame_version != KILN_FRAME_VERSION) {
    return fail(FailedPrecondition("its code is for version ", program.frame_version,
                                   " of the library's frame, and this is version ",
                                   KILN_FRAME_VERSION));
  }
  Status runs = target::CheckRunsOn(program.target, target_);
  if (!runs.ok()) return fail(runs);
  return LoadChecked(std::move(artefact), trace);
}

}  // namespace kiln::runtime
