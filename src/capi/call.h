// One run of a program with the user's buffers: checked, given memory, and run, now or in the
// queue.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capi/buffer.h"
#include "capi/context.h"
#include "capi/event.h"
#include "kiln/executable.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kiln::capi {

// What can be run: an executable, or what a session has prepared.
class Callee {
 public:
  Callee(std::string name, kiln_device& device) : name_(std::move(name)), device_(device) {}
  virtual ~Callee() = default;

  const std::string& name() const { return name_; }  // in timelines and messages
  kiln_device& device() const { return device_; }
  virtual const program::Signature& signature() const = 0;
  // Whether a run is over sooner than another thread would begin with it.
  virtual bool is_small() const { return false; }
  // Whether it runs on a stream of the caller's.
  virtual bool takes_streams() const { return false; }
  // What the memory of an argument must be a multiple of.
  virtual int64_t argument_alignment(size_t argument) const {
    (void)argument;
    return program::kAlignment;
  }
  // Whether a run calls functions of the user's.
  virtual bool calls_users_functions() const { return false; }
  // What runtime::LoadedExecutable::Start says.
  virtual Result<std::unique_ptr<runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const runtime::RunOptions& options) const = 0;

 private:
  const std::string name_;
  kiln_device& device_;
};

class Call {
 public:
  // Checks options, counts, devices and shapes, and makes the results that are NULL.
  static Result<Call> Bind(std::shared_ptr<const Callee> callee,
                           const kiln_execute_options* options, kiln_buffer* const* arguments,
                           size_t argument_count, kiln_buffer* const* results, size_t result_count);

  // Waits for the arguments' values and for other uses of the results, and runs on this thread.
  Status RunNow();
  // Puts the run into the context's queue, or runs it on this thread where it is small and need not
  // wait, where the context does nothing behind the user's back, or where the run would call his
  // functions there. On a stream of the caller's
  // the run is put by this thread, so that what he puts there next comes after it. A failure of the
  // run is the event's.
  Result<Ref<kiln_event>> Start() &&;
  // The buffers that were given or made; what was made is the caller's to hand over.
  const std::vector<Ref<kiln_buffer>>& results() const { return results_; }

 private:
  class QueuedRun;
  // On this thread, at once; what fails is the event's.
  Ref<kiln_event> RunHere();
  Status RunToEnd() const;
  explicit Call(std::shared_ptr<const Callee> callee) : callee_(std::move(callee)) {}
  Status BindBuffer(std::string_view kind, size_t number, kiln_buffer* buffer, const Shape& shape,
                    std::vector<Ref<kiln_buffer>>& bound) const;
  Status CheckOverlaps(kiln_buffer* const* given_results) const;
  // Which arguments are donated.
  Status ReadDonations();
  // Until the arguments' values are there (the first failure among them, if there is one), and
  // other uses of what the run writes are over.
  Status WaitForBuffers() const;
  // Until what the run comes after is in the order of the device's work.
  void WaitForStarts() const;
  // Takes them: none where one of them has been donated already.
  Status Donate() const;
  // A run that has been started, with what it needs until its end.
  class Running;

  std::shared_ptr<const Callee> callee_;
  kiln_execute_options options_;
  std::vector<Ref<kiln_buffer>> arguments_, results_;
  std::vector<bool> donated_;  // by argument; empty where none is
};

// After success: a reference to each result that the user had no buffer for.
void HandOverResults(const std::vector<Ref<kiln_buffer>>& bound, kiln_buffer** results);

}  // namespace kiln::capi
