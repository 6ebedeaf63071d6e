// Runs a graph one op at a time, without compilation of whole graphs. Each op is a kernel of its
// own, compiled once and cached, with the same schedules, threads, and reuse of memory as in
// compiled graphs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codegen/lowered_program.h"
#include "compiler/backend.h"
#include "ir/ir.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kiln::session {

// The cost of a run for a set of fetches.
struct RunInfo {
  int64_t kernels = 0;          // launches; loops' and branches' counted once
  int64_t temporary_bytes = 0;  // beside feeds and fetches
  int64_t compile_microseconds = 0;
};

class Session {
 public:
  // The module's entry defines the values that can be fed and fetched; it is copied, and has no
  // symbols. The device must outlive the session.
  static Result<std::unique_ptr<Session>> Create(const ir::Module& module, runtime::Device& device);

  ~Session();

  // Prepares the computation of some instructions of the entry from others, all arrays, by name:
  // later runs of the same feeds and fetches find their kernels compiled. Any array can be fed: its
  // own inputs are then not needed. Fails if a fetch needs a parameter that is not fed. Returns a
  // number for Run.
  Result<int> Prepare(std::span<const std::string> feeds, std::span<const std::string> fetches);
  const RunInfo& InfoOf(int prepared) const;
  const program::Signature& SignatureOf(int prepared) const;
  // Whether a run calls functions of the user.
  bool CallsUsersFunctions(int prepared) const;

  // One run, with memory for the prepared feeds and fetches, in their order. Several threads may
  // run at once.
  Status Run(int prepared, std::span<const void* const> feeds, std::span<void* const> fetches,
             const runtime::RunOptions& options = {});

 private:
  struct Op;
  struct Prepared;
  class Replay;
  Session(const ir::Module& module, runtime::Device& device);
  Result<std::shared_ptr<Op>> Load(Result<program::Artefact> artefact);
  Result<std::shared_ptr<Op>> Compile(const kernel::ScheduledKernel& kernel,
                                      const std::vector<program::Slice>& args);
  Status CompileSteps(Prepared& prepared, const codegen::LoweredProgram& lowered,
                      const program::Steps& steps);
  Result<std::unique_ptr<Prepared>> Build(std::span<const std::string> feeds,
                                          std::span<const std::string> fetches);

  std::unique_ptr<ir::Module> module_;
  runtime::Device& device_;
  const std::unique_ptr<const compiler::Backend> backend_;
  mutable std::mutex mutex_;
  // Kernels by their keys.
  std::unordered_map<std::string, std::shared_ptr<Op>> ops_;
  std::map<std::pair<std::vector<std::string>, std::vector<std::string>>, int> by_names_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace kiln::session
