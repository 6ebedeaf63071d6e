// Conditional nodes of CUDA graphs: the driver's support, and the kernel that sets their
// conditions.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device/cuda/context.h"
#include "device/cuda/module.h"

namespace kiln::device::cuda {

// The value of a conditional node's handle: whether `branch` is the branch selected by the value at
// `address`, or with kWhich its number. No branches: a predicate, branch 0 if true.
struct Condition {
  static constexpr uint32_t kWhich = 0xffffffff;

  ConditionalHandle handle = 0;
  DevicePointer address = 0;
  uint32_t branches = 0;
  uint32_t branch = 0;
};

class Conditions {
 public:
  // The first versions of CUDA with loops and conditions without an alternative, and with the
  // others, which do not hang in empty bodies.
  static constexpr int kLeastVersion = 12030, kLeastVersionOfSwitch = 12080;

  explicit Conditions(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  bool are_there() const;
  bool has_switch() const { return context_->driver().version() >= kLeastVersionOfSwitch; }
  // A node's launch that sets a handle, of the condition's members.
  struct Launch {
    KernelNode node;
    std::array<void*, 4> parameters;
  };
  Status Describe(Condition& condition, Launch& launch);

 private:
  const std::shared_ptr<Context> context_;
  std::mutex mutex_;
  std::shared_ptr<LoadedCode> code_;  // from the first use on
};

// Its PTX, for tests.
extern const char kConditionPtx[];

}  // namespace kiln::device::cuda
