// The thread that runs the asynchronous work of a device: one job after the other, in order.
// Asynchronous devices get the next job while they still work on the preceding one.
//
// A job may wait for jobs of other queues, but only for jobs pushed before it: so the first of all
// remaining jobs never waits.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/thread.h"

namespace kiln::client {

class Queue {
 public:
  class Job {
   public:
    virtual ~Job() = default;
    // True if the work is asynchronous, and Finish must wait for its end.
    virtual bool Run() noexcept = 0;
    virtual void Finish() noexcept {}
  };

  // The thread is "kiln NAME NUMBER" in timelines.
  explicit Queue(int number, std::string name = "queue");
  // Runs the rest.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The thread is created with the first job. Throws bad_alloc or system_error, without taking the
  // job. `on_taken` is called before the job can run.
  template <typename F>
  void Push(std::unique_ptr<Job> job, F&& on_taken) {
    auto lock = Take(std::move(job));
    on_taken();
  }
  // Whether every pushed job has run and is destroyed.
  bool IsIdle() const;
  // Waits for that. Does nothing on a queue's thread.
  void Drain();

  // Whether this thread is a queue's, where callbacks are allowed only by an option.
  static bool OnThread();

 private:
  struct State;
  std::unique_lock<std::mutex> Take(std::unique_ptr<Job> job);
  static void Work(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
  Thread thread_;
};

}  // namespace kiln::client
