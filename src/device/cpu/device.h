// The machine's own processor.
#pragma once

#include "device/cpu/executable.h"
#include "runtime/host_device.h"

namespace kiln::device {

class CpuDevice : public runtime::HostDevice {
 public:
  // Allocator and pool must outlive the device and its executables.
  CpuDevice(std::string name, runtime::Allocator& allocator, runtime::ThreadPool& pool)
      : HostDevice(std::move(name), target::HostCpu(), allocator), pool_(pool) {}

 private:
  Result<std::unique_ptr<runtime::LoadedExecutable>> LoadChecked(program::Artefact artefact,
                                                                 TraceSink* trace) override {
    KILN_ASSIGN_OR_RETURN(
        std::unique_ptr<CpuExecutable> executable,
        CpuExecutable::Load(std::move(artefact), allocator_, pool_, call_host().registry, trace));
    return std::unique_ptr<runtime::LoadedExecutable>(std::move(executable));
  }

  runtime::ThreadPool& pool_;
};

}  // namespace kiln::device
