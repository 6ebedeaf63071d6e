// A module run one op at a time, without compilation of the whole. Each op is a kernel of its own,
// compiled once and cached, with the same schedules, threads, and reuse of memory as in compiled
// graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/ref.h"
#include "base/status.h"
#include "client/executable.h"
#include "codegen/lowered_program.h"
#include "compiler/backend.h"
#include "ir/ir.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kiln::session {

// The cost of a run.
struct RunInfo {
  int64_t kernels = 0;          // launches; loops' and branches' counted once
  int64_t temporary_bytes = 0;  // beside arguments and results
  int64_t compile_microseconds = 0;
};

// One op's kernel, as a program of a single launch.
struct CompiledOp {
  std::unique_ptr<runtime::LoadedExecutable> executable;
};

// The kernels of a device, by their text. Beyond the bound the least recently used one goes; runs
// prepared with it keep it. Any thread.
class OpCache {
 public:
  static constexpr size_t kDefaultBound = 16384;

  explicit OpCache(size_t bound = kDefaultBound) : bound_(bound) {}

  std::shared_ptr<const CompiledOp> Find(const std::string& text);
  void Insert(std::string text, std::shared_ptr<const CompiledOp> op);
  size_t size() const;

 private:
  struct Entry {
    std::string text;
    std::shared_ptr<const CompiledOp> op;
  };
  const size_t bound_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_text_;
};

// A module prepared for runs op by op.
class OpByOpExecutable : public client::Executable {
 public:
  virtual const RunInfo& info() const = 0;

 protected:
  using Executable::Executable;
};

// Prepares modules for one device.
class OpByOpCompiler {
 public:
  // UNIMPLEMENTED for devices whose programs are not kernels.
  static Result<std::unique_ptr<OpByOpCompiler>> Create(client::Device& device);

  client::Device& device() const { return device_; }
  const OpCache& cache() const { return cache_; }
  // The module's result is a tuple of arrays; it has no symbols. Any thread.
  Result<Ref<const OpByOpExecutable>> Prepare(std::unique_ptr<ir::Module> module);

 private:
  class Prepared;
  explicit OpByOpCompiler(client::Device& device);
  // An empty key: not by way of the disk cache.
  Result<std::shared_ptr<const CompiledOp>> Load(
      const std::string& key, const std::string& name,
      const std::function<Result<program::Artefact>()>& compile);
  Result<std::shared_ptr<const CompiledOp>> Compile(const kernel::ScheduledKernel& kernel,
                                                    const std::vector<program::Slice>& args);
  Status CompileSteps(Prepared& prepared, const codegen::LoweredProgram& lowered,
                      const program::Steps& steps);

  client::Device& device_;
  const std::unique_ptr<const compiler::Backend> backend_;
  OpCache cache_;
};

}  // namespace kiln::session
