// One run of a program with buffers: checked, given memory, and run, now or in its device's queue.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "base/trace.h"
#include "client/buffer.h"
#include "client/buffer_checks.h"
#include "client/event.h"
#include "client/executable.h"
#include "client/time_limit.h"

namespace kiln::client {

struct ExecuteOptions {
  int threads = 0;                         // at most; 0: the device's share
  const int32_t* cancel = nullptr;         // not 0 ends the run with CANCELLED; stays until its end
  std::shared_ptr<const TimeLimit> limit;  // whose flag is `cancel`; null: none
  void* stream = nullptr;                  // of the caller's, which the run is put on
  // Set when the program begins; from then on the run is not cancelled. It stays until the run's
  // end. Null: the run is cancelled at any time.
  bool* begun = nullptr;
  std::vector<bool> donated;         // by argument; empty where none is
  std::shared_ptr<TraceSink> trace;  // the run's own; null: the client's, if one is recording

  // The trace that records the run, or null.
  std::shared_ptr<TraceSink> TraceOf(const Client& client) const {
    return trace ? trace : client.trace();
  }
};

class Execution {
 public:
  explicit Execution(Ref<const Executable> executable) : executable_(std::move(executable)) {}
  Execution(Execution&&) = default;
  ~Execution() { Unpin(); }

  const Executable& executable() const { return *executable_; }
  // Before Bind.
  void set_options(ExecuteOptions options) { options_ = std::move(options); }

  // Once, before the run: checks counts, devices and shapes, and allocates missing results. Frozen
  // arguments are not among `arguments`, and have their numbers in the options.
  Status Bind(std::span<Buffer* const> arguments, std::span<Buffer* const> results);
  // Waits for the arguments' values and for other uses of the results, and runs on this thread.
  Status RunNow();
  // Puts the run into its device's queue, or runs it on this thread: if it is small and need not
  // wait, if the client allows no asynchronous work, or if the run calls functions of the user. On
  // a caller's stream this thread submits the run, before the caller's later work. A failure of the
  // run is the event's.
  Result<Ref<Event>> Start() &&;
  // The given and the allocated buffers; the caller hands over the allocated ones.
  std::span<const Ref<Buffer>> results() const {
    return std::span(buffers_).subspan(argument_count_);
  }

 private:
  // --- binding.cc
  Status BindBuffer(Access access, size_t number, Buffer* buffer, const Shape& shape);
  Status BindResult(size_t number, Buffer* given);
  Status CheckOverlaps(std::span<Buffer* const> given_results) const;

  // --- execution.cc
  // A started run, with everything it needs until its end.
  class Running;
  class QueuedRun;
  std::span<const Ref<Buffer>> arguments() const {
    return std::span(buffers_).first(argument_count_);
  }
  bool IsDonated(size_t argument) const {
    return !options_.donated.empty() && options_.donated[argument];
  }
  // Whether no queued work uses the buffers.
  bool IsFree() const;
  // Waits for the arguments' values (the first failure among them, if any), and for the end of
  // other uses of the results.
  Status WaitForBuffers() const;
  // Waits for the end of other uses of the donated arguments.
  void WaitForDonated() const;
  // Waits until the work before the run is submitted to the device.
  void WaitForStarts() const;
  // Takes the donated buffers, once no other thread is about to read them. None is taken if one of
  // the arguments was donated already. `pins`: until Unpin() no other thread takes the others.
  Status Claim(bool pins);
  void Unpin() noexcept;
  // On this thread, at once; a failure is the event's.
  Ref<Event> RunHere();
  Status RunToEnd() const;
  // The outcome of the run in the terms of its options.
  Status Explain(Status status) const {
    return options_.limit ? options_.limit->Explain(std::move(status)) : status;
  }

  Ref<const Executable> executable_;
  ExecuteOptions options_;
  std::shared_ptr<const BoundArguments> frozen_;  // null: none
  std::vector<Ref<Buffer>> buffers_;  // the arguments, none for a frozen one, and then the results
  size_t argument_count_ = 0;
  size_t pinned_ = 0;  // of the arguments: those before it that are not donated
};

}  // namespace kiln::client
