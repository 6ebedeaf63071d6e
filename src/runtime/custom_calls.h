// Calls of functions outside generated code: by name in programs, resolved at load time.
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

// The functions callable by programs: the library's, and registered ones. Any thread.
class CustomCallRegistry {
 public:
  using Maker =
      std::function<Result<std::shared_ptr<const lib::Function>>(const CallSignature& signature)>;

  // ALREADY_EXISTS for a registered name, INVALID_ARGUMENT for the library's own names. On failure
  // `make` is not moved from.
  Status Add(std::string_view target, Maker& make);
  void Clear();
  // NOT_FOUND, with the name, if missing.
  Result<std::shared_ptr<const lib::Function>> Make(std::string_view target,
                                                    const CallSignature& signature) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Maker, std::less<>> makers_;
};

// The call in messages: "fft 'x'", or "custom-call 'x' of target".
std::string CallName(const program::LaunchInfo& info);

// A device's environment for the calls of its programs.
struct CallHost {
  const CustomCallRegistry* registry = nullptr;  // null: the library's functions alone
  ThreadPool* pool = nullptr;                    // null: they run on the caller's thread
};

// The resolved calls of one program.
class ProgramCalls {
 public:
  // A call: the function, and its arguments except addresses.
  struct Prepared {
    std::shared_ptr<const lib::Function> function;
    CallSignature signature;
  };

  // Fails, naming the op, if a function is missing or refuses its arrays.
  static Result<ProgramCalls> Make(const program::Program& program,
                                   const CustomCallRegistry* registry);

  bool empty() const { return prepared_.empty(); }
  bool has_users() const { return has_users_; }
  const Prepared& at(program::LaunchId launch) const { return *prepared_[launch]; }
  // Runs it on host memory, for generated code. A failure names the op.
  Status Run(const program::Program& program, program::LaunchId launch, const kiln_frame* frame,
             void* const* args) const;
  // The same for a device's executor, with the state of the run's calls: on this number of the
  // pool's threads (0: all), with a span in the timeline unless that is null.
  Status RunOnHost(const program::Program& program, program::LaunchId launch, void* const* args,
                   ThreadPool* pool, int threads, TraceSink* trace, Probes& probes) const;

 private:
  IdVector<program::LaunchId, std::shared_ptr<const Prepared>> prepared_;
  bool has_users_ = false;
};

// A function outside any program, on all of the pool's threads.
Status RunFunction(const lib::Function& function, void* const* args, ThreadPool* pool);

}  // namespace kiln::runtime
