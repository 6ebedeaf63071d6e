// Calls of functions outside generated code: by name in programs, resolved when these are loaded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/trace.h"
#include "program/program.h"
#include "runtime/lib/function.h"
#include "tensor/call_signature.h"
#include "tensor/probes.h"

namespace kiln::runtime {

class ThreadPool;

// The functions that programs may call: the library's, and those that are added. Any thread.
class CustomCallRegistry {
 public:
  using Maker =
      std::function<Result<std::shared_ptr<const lib::Function>>(const CallSignature& signature)>;

  // ALREADY_EXISTS where there is a function of that name, INVALID_ARGUMENT for names that are the
  // library's to give. `make` is then not taken, and may be used on.
  Status Add(std::string_view target, Maker& make);
  void Clear();
  // NOT_FOUND, naming it, where there is none.
  Result<std::shared_ptr<const lib::Function>> Make(std::string_view target,
                                                    const CallSignature& signature) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Maker, std::less<>> makers_;
};

// What a device needs for the calls of its programs.
struct CallHost {
  const CustomCallRegistry* registry = nullptr;  // null: the library's functions alone
  ThreadPool* pool = nullptr;                    // null: they run on the caller's thread
};

// The calls of one program, ready to run.
class ProgramCalls {
 public:
  // A call as it is made: the function, and what it is told beside addresses.
  struct Prepared {
    std::shared_ptr<const lib::Function> function;
    CallSignature signature;
  };

  // Fails where a function is missing or does not take its arrays, naming the op.
  static Result<ProgramCalls> Make(const program::Program& program,
                                   const CustomCallRegistry* registry);

  bool empty() const { return prepared_.empty(); }
  bool has_users() const { return has_users_; }
  // By the step's place in the program's launches.
  const Prepared& at(int launch) const { return *prepared_[static_cast<size_t>(launch)]; }
  // Runs it with memory that the host reads and writes, for generated code. A failure names the op.
  Status Run(const program::Program& program, int launch, const kiln_frame* frame,
             void* const* args) const;
  // The same for a device's executor, which has what the run's calls keep: on so many of the pool's
  // threads (0: all), with a span in the timeline unless that is null.
  Status RunOnHost(const program::Program& program, int launch, void* const* args, ThreadPool* pool,
                   int threads, TraceSink* trace, Probes& probes) const;

 private:
  std::vector<std::shared_ptr<const Prepared>> prepared_;  // by launch
  bool has_users_ = false;
};

// A function outside any program, on all of the pool's threads.
Status RunFunction(const lib::Function& function, void* const* args, ThreadPool* pool);

}  // namespace kiln::runtime
