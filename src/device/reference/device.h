// The evaluator as a device: slow, and the reference for the others.
#pragma once

#include "runtime/host_device.h"

namespace kiln::device {

class ReferenceDevice : public runtime::HostDevice {
 public:
  ReferenceDevice(std::string name, runtime::Allocator& allocator)
      : HostDevice(std::move(name), target::Reference(), allocator) {}

 private:
  Result<std::unique_ptr<runtime::LoadedExecutable>> LoadChecked(program::Artefact artefact,
                                                                 TraceSink* trace) override;
};

}  // namespace kiln::device
