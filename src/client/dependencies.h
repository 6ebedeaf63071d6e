// The dependencies of queued work, by the buffers that it reads and writes.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/event.h"
#include "client/queue.h"

namespace kiln::client {

class Dependencies {
 public:
  // For work to be pushed into `queue`.
  explicit Dependencies(const Queue& queue) : queue_(queue) {}

  // Before the work is announced to the buffers.
  void Read(const Buffer& buffer) {
    if (Ref<Event> value = buffer.value()) {
      AddOther(value);
      inputs_.push_back(std::move(value));
    }
  }
  void Write(const Buffer& buffer) {
    if (Ref<Event> use = buffer.last_use()) AddOther(use);
  }

  // At the work's turn in its queue: waits for work of other queues. Returns the failure of an
  // input if known by now; pending inputs come before the work in the device's order.
  Status Start() const {
    for (const Ref<Event>& other : others_) other->WaitFor(-1);
    for (const Ref<Event>& input : inputs_) {
      if (input->is_ready()) KILN_RETURN_IF_ERROR(input->status());
    }
    return OkStatus();
  }
  // At the end of the work, and of all work before it: the first failure of an input, which makes
  // the work void.
  Status Finish() const {
    for (const Ref<Event>& input : inputs_) KILN_RETURN_IF_ERROR(input->Wait());
    return OkStatus();
  }
  // Whether Finish would not wait.
  bool inputs_are_ready() const {
    return std::ranges::all_of(inputs_, [](const Ref<Event>& input) { return input->is_ready(); });
  }
  void Clear() {
    inputs_.clear();
    others_.clear();
  }

 private:
  void AddOther(const Ref<Event>& event) {
    if (event->queue() != &queue_ && !event->is_ready()) others_.push_back(event);
  }

  const Queue& queue_;
  std::vector<Ref<Event>> inputs_;
  std::vector<Ref<Event>> others_;  // of other queues
};

}  // namespace kiln::client
