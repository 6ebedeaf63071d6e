// One run of a program with buffers: checked, given memory, and run, now or in its device's queue.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/event.h"
#include "client/executable.h"

namespace kiln::client {

struct ExecuteOptions {
  int threads = 0;                  // at most; 0: the client's
  const int32_t* cancel = nullptr;  // not 0 ends the run with CANCELLED; stays until its end
  void* stream = nullptr;           // of the caller's, which the run is put on
  std::vector<bool> donated;        // by argument; empty where none is
};

class Execution {
 public:
  // Checks counts, devices and shapes, and makes the results that are null.
  static Result<Execution> Bind(Ref<const Executable> executable, ExecuteOptions options,
                                std::span<Buffer* const> arguments,
                                std::span<Buffer* const> results);

  // Waits for the arguments' values and for other uses of the results, and runs on this thread.
  Status RunNow();
  // Puts the run into its device's queue, or runs it on this thread where it is small and need not
  // wait, where the client does nothing behind the user's back, or where the run would call his
  // functions there. On a stream of the caller's the run is put by this thread, so that what he
  // puts there next comes after it. A failure of the run is the event's.
  Result<Ref<Event>> Start() &&;
  // The buffers that were given or made; what was made is the caller's to hand over.
  const std::vector<Ref<Buffer>>& results() const { return results_; }

 private:
  explicit Execution(Ref<const Executable> executable) : executable_(std::move(executable)) {}

  // --- binding.cc
  Status BindBuffer(std::string_view kind, size_t number, Buffer* buffer, const Shape& shape,
                    std::vector<Ref<Buffer>>& bound) const;
  Status CheckDonations() const;
  Status CheckOverlaps(std::span<Buffer* const> given_results) const;

  // --- execution.cc
  // A run that has been started, with what it needs until its end.
  class Running;
  class QueuedRun;
  bool IsDonated(size_t argument) const {
    return !options_.donated.empty() && options_.donated[argument];
  }
  // Whether no queued work uses the buffers.
  bool IsFree() const;
  // Until the arguments' values are there (the first failure among them, if there is one), and
  // other uses of what the run writes are over.
  Status WaitForBuffers() const;
  // Until what the run comes after is in the order of the device's work.
  void WaitForStarts() const;
  // Takes them: none where one of them has been donated already.
  Status Donate() const;
  // On this thread, at once; what fails is the event's.
  Ref<Event> RunHere();
  Status RunToEnd() const;

  Ref<const Executable> executable_;
  ExecuteOptions options_;
  std::vector<Ref<Buffer>> arguments_, results_;
};

}  // namespace kiln::client
