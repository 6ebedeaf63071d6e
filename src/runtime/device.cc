#include "runtime/device.h"

#include "base/strings.h"
#include "frame/frame.h"

namespace kiln::runtime {

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
