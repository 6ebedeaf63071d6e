// What every device is to the rest of the library: it loads artefacts and runs them. One to one
// with PJRT's notions of device and loaded executable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/trace.h"
#include "plan/plan.h"
#include "target/target.h"

namespace kiln::runtime {

struct RunOptions {
  int threads = 0;  // 0: all that the device has
  TraceSink* trace = nullptr;
  // Polled by loops of the program: non-zero ends the run with CANCELLED.
  const int32_t* cancel = nullptr;
};

// An artefact that is ready to run.
class LoadedExecutable {
 public:
  virtual ~LoadedExecutable() = default;
  virtual const plan::Program& program() const = 0;

  // Runs to the end. Arguments and results are leaves in order, each at a multiple of
  // plan::kAlignment and as large as its shape; results overlap neither arguments nor each other,
  // but that a result of the signature's aliases may be the argument's memory, which it then
  // becomes. Any number of threads may run one executable at once.
  virtual Status Run(std::span<const void* const> arguments, std::span<void* const> results,
                     const RunOptions& options) = 0;

  // Machine code, and what belongs to it.
  virtual int64_t code_bytes() const { return 0; }
};

class Device {
 public:
  virtual ~Device() = default;
  const std::string& name() const { return name_; }  // "CPU:0"
  const target::Target& target() const { return target_; }
  virtual Result<std::unique_ptr<LoadedExecutable>> Load(
      std::shared_ptr<const plan::Artefact> artefact) = 0;

 protected:
  Device(std::string name, target::Target target)
      : name_(std::move(name)), target_(std::move(target)) {}

 private:
  std::string name_;
  target::Target target_;
};

}  // namespace kiln::runtime
