// A loaded artefact, ready to run on the CPU.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/trace.h"
#include "device/cpu/link.h"
#include "frame/frame.h"
#include "program/program.h"
#include "runtime/arena.h"
#include "runtime/constants.h"
#include "runtime/custom_calls.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace kiln::device {

using runtime::RunOptions;

class CpuExecutable : public runtime::LoadedExecutable {
 public:
  // Links the code, resolves its calls (null: the library's functions only), and runs the prologue
  // on constants. Allocator and pool must outlive the executable.
  static Result<std::unique_ptr<CpuExecutable>> Load(
      program::Artefact artefact, runtime::Allocator& allocator, runtime::ThreadPool& pool,
      const runtime::CustomCallRegistry* calls = nullptr, TraceSink* trace = nullptr);

  const program::Program& program() const override { return program_; }
  int64_t code_bytes() const override { return code_->byte_size(); }
  bool calls_users_functions() const override { return calls_.has_users(); }

  Status Run(std::span<const void* const> arguments, std::span<void* const> results,
             const RunOptions& options = {}) override;
  Result<std::shared_ptr<const runtime::Binding>> Bind(
      const runtime::Binding* previous, std::span<const size_t> groups,
      std::span<const void* const> arguments) override;

 private:
  CpuExecutable(program::Program program, runtime::Allocator& allocator, runtime::ThreadPool& pool);
  Status SaveConstants(program::Program& saved) const override;
  Result<kiln_entry_fn> FindEntry(const std::string& symbol);
  Status RunPrologue();
  // Outside of a run.
  Status RunAlone(kiln_entry_fn entry, const program::Addresses& addresses);
  Status RunEntry(kiln_entry_fn entry, void* const* buffers, const RunOptions& options);

  program::Program program_;  // without its literals, once these are in memory of the allocator's
  runtime::Allocator& allocator_;
  runtime::ThreadPool& pool_;
  runtime::ArenaCache arenas_;
  std::unique_ptr<LinkedCode> code_;
  kiln_entry_fn entry_ = nullptr;
  bool wants_own_stack_ = false;  // for its frames are large
  runtime::ProgramCalls calls_;
  runtime::LoadedConstants constants_;
  runtime::Binder binder_;
  std::vector<kiln_entry_fn> bindings_;  // by group of frozen arguments
  // (result, argument) that share memory.
  std::vector<std::pair<size_t, size_t>> aliases_;
};

}  // namespace kiln::device
