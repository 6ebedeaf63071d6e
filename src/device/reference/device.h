// The evaluator as a device: slow, and the judge of the others.
#pragma once

#include "runtime/device.h"

namespace kiln::device {

class ReferenceDevice : public runtime::Device {
 public:
  explicit ReferenceDevice(std::string name) : Device(std::move(name), target::Reference()) {}
  Result<std::unique_ptr<runtime::LoadedExecutable>> Load(
      std::shared_ptr<const plan::Artefact> artefact) override;
};

}  // namespace kiln::device
