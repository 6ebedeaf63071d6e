// Programs ready to be executed with buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/client.h"
#include "client/frozen.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kiln::client {

// The program of an execution: a compiled graph, or ops prepared by a session. Any number of
// threads may run it at once.
class Executable : public Counted<Executable> {
 public:
  virtual ~Executable();

  Client& client() const { return *client_; }
  Device& device() const { return device_; }
  const std::string& name() const { return name_; }  // in timelines and messages
  virtual const program::Signature& signature() const = 0;
  // Whether a run ends sooner than another thread would begin it.
  virtual bool is_small() const { return false; }
  // Whether it can run on a stream of the caller.
  virtual bool takes_streams() const { return false; }
  // The required alignment of an argument.
  virtual int64_t argument_alignment(size_t argument) const {
    (void)argument;
    return program::kAlignment;
  }
  // Whether a run calls functions of the user.
  virtual bool calls_users_functions() const { return false; }
  // Whether a run that has begun fails with its device only: program::IsStraight.
  virtual bool is_straight() const { return false; }
  // Its frozen arguments, which are no arguments of executions; null: it has none.
  virtual FrozenArguments* frozen() const { return nullptr; }
  // As runtime::LoadedExecutable::Start.
  virtual Result<std::unique_ptr<runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const runtime::RunOptions& options) const = 0;

 protected:
  Executable(std::string name, Device& device);

 private:
  // The first member: destroyed after the objects in the client's memory.
  Ref<Client> client_;
  Device& device_;
  const std::string name_;
};

// A graph compiled as a whole.
class CompiledExecutable final : public Executable {
 public:
  CompiledExecutable(Device& device, std::unique_ptr<runtime::LoadedExecutable> loaded,
                     int64_t compile_microseconds);

  const runtime::LoadedExecutable& loaded() const { return *loaded_; }
  const program::Program& program() const { return loaded_->program(); }
  int64_t code_bytes() const { return loaded_->code_bytes(); }
  int64_t constant_bytes() const { return loaded_->constant_bytes(); }
  // Of the compilation, or of the loading if it was loaded from bytes.
  int64_t compile_microseconds() const { return compile_microseconds_; }
  // Whether executions may donate an argument.
  bool is_donatable(size_t argument) const {
    return argument < program().donatable.size() && program().donatable[argument];
  }
  // The sizes of arguments and results.
  const std::vector<std::vector<int64_t>>& argument_dims() const { return argument_dims_; }
  const std::vector<std::vector<int64_t>>& result_dims() const { return result_dims_; }

  const program::Signature& signature() const override { return program().signature; }
  bool is_small() const override { return is_small_; }
  bool takes_streams() const override;
  int64_t argument_alignment(size_t argument) const override {
    return loaded_->argument_alignment(argument);
  }
  bool calls_users_functions() const override { return loaded_->calls_users_functions(); }
  bool is_straight() const override { return is_straight_; }
  FrozenArguments* frozen() const override { return frozen_.get(); }
  Result<std::unique_ptr<runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const runtime::RunOptions& options) const override {
    return loaded_->Start(arguments, results, options);
  }

 private:
  const std::unique_ptr<runtime::LoadedExecutable> loaded_;
  const std::unique_ptr<FrozenArguments> frozen_;
  const int64_t compile_microseconds_;
  const bool is_small_, is_straight_;
  std::vector<std::vector<int64_t>> argument_dims_, result_dims_;
};

}  // namespace kiln::client
