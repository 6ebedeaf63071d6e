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
    if (Ref<Event> value = buffer.value()) inputs_.push_back(std::move(value));
  }
  void Write(const Buffer& buffer) { buffer.AppendUses(others_); }

  // At the work's turn in its queue: an event that it must not begin before; null if there is none.
  Ref<Event> Blocker() const {
    for (const std::vector<Ref<Event>>* events : {&inputs_, &others_}) {
      for (const Ref<Event>& event : *events) {
        if (!IsBefore(*event)) return event;
      }
    }
    return {};
  }
  // Waits for such events. Returns the failure of an input if known by now; pending inputs come
  // before the work in the device's order.
  Status Start() const {
    while (Ref<Event> event = Blocker()) event->WaitForStart(&queue_);
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
  // Whether work that begins now comes after the event: it has ended, or is in the device's order.
  bool IsBefore(const Event& event) const { return event.is_ready() || event.IsStartedIn(queue_); }

  const Queue& queue_;
  std::vector<Ref<Event>> inputs_;
  std::vector<Ref<Event>> others_;  // uses of what the work writes
};

}  // namespace kiln::client
