// The threads that run the asynchronous work of a device, one job after the other. Asynchronous
// devices get the next job while they still work on the preceding one.
//
// One thread at a time has the queue's turn. It gives the turn to another one when its job calls a
// function of the user, which may ask for more work and wait for it. Jobs need not end in order
// then: a job runs at its turn if nothing blocks it, and otherwise as soon as its blocker has
// ended. Nothing blocks a job but work asked for before it, so the first of all remaining jobs is
// free.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/ref.h"
#include "client/event.h"

namespace kiln::client {

class Queue {
 public:
  class Job {
   public:
    virtual ~Job() = default;
    // Work that must end first; null if there is none. Asked at the job's turn, and again at the
    // end of that work.
    virtual Ref<Event> Blocker() noexcept { return {}; }
    // True if the work is asynchronous, and Finish must wait for its end.
    virtual bool Run() noexcept = 0;
    virtual void Finish() noexcept {}

    std::unique_ptr<Job> next;

   private:
    friend class Queue;
    bool keeps_order_ = false, has_order_ = false;
  };

  // The threads are "kiln NAME NUMBER" in timelines.
  explicit Queue(int number, std::string name = "queue");
  // Runs the rest.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // The place of a job among the others.
  enum class Order {
    kLast,
    // Behind the end of all such jobs, if not pushed inside a function of the user: its effects can
    // be seen.
    kStrict,
    // Before those that have not begun: it depends on its blockers alone.
    kFirst,
  };
  // The thread is created with the first job. Throws bad_alloc or system_error, without taking the
  // job. `on_taken` is called before the job can run.
  template <typename F>
  void Push(std::unique_ptr<Job> job, Order order, F&& on_taken) {
    auto lock = Take(std::move(job), order);
    on_taken();
  }
  // Whether every pushed job has run and is destroyed.
  bool IsIdle() const;
  // Waits for that. Does nothing on a queue's thread.
  void Drain();

  // Whether this thread is a queue's, where callbacks are allowed only by an option.
  static bool OnThread();

  // In its scope this thread is inside a function of the user: it gives up the turn of its queue.
  class InUsersFunction {
   public:
    InUsersFunction() noexcept;
    ~InUsersFunction();
    InUsersFunction(const InUsersFunction&) = delete;
    InUsersFunction& operator=(const InUsersFunction&) = delete;
  };

 private:
  struct State;
  class Parked;
  std::unique_lock<std::mutex> Take(std::unique_ptr<Job> job, Order order);
  static void Work(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

}  // namespace kiln::client
