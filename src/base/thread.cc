#include "base/thread.h"

#include <csignal>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

namespace kiln {
namespace {

// A blocked synchronous signal would end the process.
sigset_t FromElsewhere() {
  sigset_t signals;
  sigfillset(&signals);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&signals, own);
  }
  return signals;
}

void* Main(void* argument) {
  std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

int Create(pthread_t* thread, void* argument) {
  pthread_attr_t attributes;
  if (int error = pthread_attr_init(&attributes)) return error;
  int error = pthread_attr_setstacksize(&attributes, kThreadStackBytes);
  if (error == 0) {
    // A thread inherits its creator's mask: asynchronous signals are blocked from its first
    // instruction on.
    const sigset_t blocked = FromElsewhere();
    sigset_t callers;
    pthread_sigmask(SIG_BLOCK, &blocked, &callers);
    error = pthread_create(thread, &attributes, &Main, argument);
    pthread_sigmask(SIG_SETMASK, &callers, nullptr);
  }
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

Thread::Thread(std::function<void()> body) {
  auto kept = std::make_unique<std::function<void()>>(std::move(body));
  if (int error = Create(&thread_, kept.get())) {
    throw std::system_error(error, std::generic_category(), "starting a thread");
  }
  kept.release();
  joinable_ = true;
}

Thread::Thread(Thread&& other) noexcept
    : thread_(other.thread_), joinable_(std::exchange(other.joinable_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (joinable_) std::terminate();
  thread_ = other.thread_;
  joinable_ = std::exchange(other.joinable_, false);
  return *this;
}

Thread::~Thread() {
  if (joinable_) std::terminate();
}

void Thread::Join() {
  pthread_join(thread_, nullptr);
  joinable_ = false;
}

void Thread::Detach() {
  pthread_detach(thread_);
  joinable_ = false;
}

}  // namespace kiln
