// Makes programs of modules, for the devices of a client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/ref.h"
#include "base/status.h"
#include "client/client.h"
#include "client/executable.h"
#include "client/queue.h"
#include "ir/ir.h"
#include "session/op_by_op.h"

namespace kiln::session {

// A program of a unit, and its cost.
struct MadeProgram {
  Ref<const client::Executable> executable;
  RunInfo info;
};

// Any thread. The client must outlive it.
class UnitCompiler {
 public:
  explicit UnitCompiler(client::Client& client);

  client::Client& client() const { return client_; }
  client::Device& device(int number) const {
    return *client_.devices()[static_cast<size_t>(number)];
  }
  // Whether ops of the device can run one by one. If not, all its modules are compiled as a whole.
  static bool RunsOpByOp(const client::Device& device);

  // The module compiled as a whole, unless the interrupt ends it; 0: no limit.
  Result<MadeProgram> Compile(client::Device& device, std::unique_ptr<ir::Module> module,
                              const Interrupt& interrupt, int64_t memory_limit_bytes);
  // Its ops one by one.
  Result<MadeProgram> Prepare(client::Device& device, std::unique_ptr<ir::Module> module);

  // Does work on a thread of its own, one piece after the other. It must be over before this ends.
  void InBackground(std::function<void()> work);

 private:
  client::Client& client_;
  std::mutex mutex_;
  // By the client's number of the device; null until it is needed.
  std::vector<std::unique_ptr<OpByOpCompiler>> op_by_op_;
  client::Queue background_;
};

}  // namespace kiln::session
