#include "runtime/device.h"

#include "base/strings.h"
#include "frame/frame.h"

namespace kiln::runtime {

LoadedExecutable::~LoadedExecutable() = default;

void LoadedExecutable::DropCode() {
  keeps_code_ = false;
  code_ = {};
}

void LoadedExecutable::KeepCode(program::Artefact& artefact) {
  keeps_code_ = artefact.keeps_code;
  if (keeps_code_) code_ = std::move(artefact.code);
}

Result<std::unique_ptr<Completion>> LoadedExecutable::Start(std::span<const void* const> arguments,
                                                            std::span<void* const> results,
                                                            const RunOptions& options) {
  KILN_RETURN_IF_ERROR(Run(arguments, results, options));
  return std::unique_ptr<Completion>();
}

Result<std::shared_ptr<const Binding>> LoadedExecutable::Bind(
    const Binding* previous, std::span<const size_t> groups,
    std::span<const void* const> arguments) {
  (void)previous, (void)groups, (void)arguments;
  return Internal("'", program().name, "' makes nothing of frozen arguments");
}

std::optional<program::MachineCode> LoadedExecutable::Assembled(
    std::span<const std::string> code) const {
  (void)code;
  return std::nullopt;
}

Device::Device(std::string name, target::Target target)
    : name_(std::move(name)), target_(std::move(target)) {}
Device::~Device() = default;

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
