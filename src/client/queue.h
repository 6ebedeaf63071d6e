// The thread that runs the asynchronous work of a device: one job after the other, in order.
// Devices that work by themselves are given the next job while they are still at the one before.
//
// A job may wait for jobs of other queues, but only for those that were pushed before it: so the
// first of all jobs that are left never waits.
#pragma once

#include <memory>
#include <mutex>

#include "base/thread.h"

namespace kiln::client {

class Queue {
 public:
  class Job {
   public:
    virtual ~Job() = default;
    // True where the work goes on, and Finish is to wait for its end.
    virtual bool Run() noexcept = 0;
    virtual void Finish() noexcept {}
  };

  // `number` is the thread's in timelines.
  explicit Queue(int number);
  // Runs the rest.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The thread is made with the first job. Throws bad_alloc or system_error, and then has not taken
  // the job. `on_taken` is called before the job can run.
  template <typename F>
  void Push(std::unique_ptr<Job> job, F&& on_taken) {
    auto lock = Take(std::move(job));
    on_taken();
  }
  // Whether every job that was pushed has run and is gone.
  bool IsIdle() const;
  // Waits for that. Does nothing on a queue's thread, whose job others may wait for.
  void Drain();

  // Whether this thread is a queue's: there the user's functions may be called only if he allows
  // it.
  static bool OnThread();

 private:
  struct State;
  std::unique_lock<std::mutex> Take(std::unique_ptr<Job> job);
  static void Work(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
  Thread thread_;
};

}  // namespace kiln::client
