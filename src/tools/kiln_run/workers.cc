#include "tools/kiln_run/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>

namespace kiln::run {
namespace {

using Clock = std::chrono::steady_clock;

bool ReadAll(int fd, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    ssize_t n = read(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// A report with all results as text is large; more is cut off.
constexpr size_t kMaxReason = size_t{1} << 30;

// A process's report on a file: verdict, length of the reason, the reason.
bool Send(int fd, const Outcome& outcome) {
  const uint32_t head[2] = {static_cast<uint32_t>(outcome.verdict),
                            static_cast<uint32_t>(std::min(outcome.reason.size(), kMaxReason))};
  return WriteAll(fd, head, sizeof(head)) && WriteAll(fd, outcome.reason.data(), head[1]);
}

bool Receive(int fd, Outcome* outcome) {
  uint32_t head[2];
  if (!ReadAll(fd, head, sizeof(head)) || head[0] > 2 || head[1] > kMaxReason) return false;
  outcome->verdict = static_cast<Verdict>(head[0]);
  outcome->reason.resize(head[1]);
  return ReadAll(fd, outcome->reason.data(), head[1]);
}

// A process, the file that it works on, and the pipes to it and from it.
struct Worker {
  pid_t pid = -1;
  int to = -1, from = -1;
  std::optional<size_t> file = {};
  int taken = 0;
  Clock::time_point deadline = {};
};

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    return std::string("the process ended by signal ") + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return std::string("the process ended with exit status ") + std::to_string(WEXITSTATUS(status));
}

class Pool {
 public:
  Pool(const std::vector<std::string>& paths, const WorkerOptions& options,
       const std::function<Outcome(const std::string&)>& work,
       const std::function<void(size_t, const Outcome&)>& report)
      : paths_(paths), options_(options), work_(work), report_(report), outcomes_(paths.size()) {}

  bool Run() {
    workers_.resize(std::min(static_cast<size_t>(std::max(options_.jobs, 1)), paths_.size()));
    while (reported_ < paths_.size()) {
      for (Worker& w : workers_) {
        if (!w.file && next_ < paths_.size() && !Give(w)) return false;
      }
      Wait();
    }
    for (Worker& w : workers_) End(w, false);
    return true;
  }

 private:
  bool Start(Worker& w) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0) return false;
    if (pipe2(from, O_CLOEXEC) != 0) {
      close(to[0]);
      close(to[1]);
      return false;
    }
    const pid_t pid = fork();
    if (pid == 0) {
      // Only its own ends: a pipe ends for the parent when its process does.
      for (const Worker& other : workers_) {
        if (other.to >= 0) close(other.to);
        if (other.from >= 0) close(other.from);
      }
      close(to[1]);
      close(from[0]);
      // Printed output is not part of the outcome.
      dup2(STDERR_FILENO, STDOUT_FILENO);
      uint64_t file = 0;
      while (ReadAll(to[0], &file, sizeof(file))) {
        if (!Send(from[1], Work(paths_[file]))) break;
      }
      _exit(0);
    }
    close(to[0]);
    close(from[1]);
    if (pid < 0) {
      close(to[1]);
      close(from[0]);
      return false;
    }
    w = {.pid = pid, .to = to[1], .from = from[0]};
    return true;
  }

  // In the process: an exception must not leave it for what is the parent's.
  Outcome Work(const std::string& path) const {
    try {
      return work_(path);
    } catch (const std::bad_alloc&) {
      return {Verdict::kFail, "RESOURCE_EXHAUSTED: out of memory"};
    }
  }

  // The status that waitpid gives.
  int End(Worker& w, bool kill_it) {
    int status = 0;
    if (w.pid < 0) return status;
    close(w.to);
    if (kill_it) kill(w.pid, SIGKILL);
    while (waitpid(w.pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(w.from);
    w = Worker();
    return status;
  }

  bool Give(Worker& w) {
    if (w.taken >= options_.batch) End(w, false);
    if (w.pid < 0 && !Start(w)) return false;
    GiveFile(w, next_++);
    return true;
  }

  void GiveFile(Worker& w, uint64_t file) {
    w.file = file;
    ++w.taken;
    w.deadline = Clock::now() + std::chrono::seconds(options_.deadline_s);
    // A process that has gone is noticed by its other pipe.
    WriteAll(w.to, &file, sizeof(file));
  }

  void Wait() {
    std::vector<pollfd> polls;
    std::vector<Worker*> waiting;
    auto soonest = Clock::time_point::max();
    for (Worker& w : workers_) {
      if (!w.file) continue;
      polls.push_back({w.from, POLLIN, 0});
      waiting.push_back(&w);
      soonest = std::min(soonest, w.deadline);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(soonest - Clock::now());
    const int milliseconds = static_cast<int>(std::max<int64_t>(left.count() + 1, 0));
    poll(polls.data(), polls.size(), milliseconds);
    for (size_t i = 0; i < waiting.size(); ++i) {
      Worker& w = *waiting[i];
      const size_t file = *w.file;
      Outcome outcome;
      if (polls[i].revents != 0) {
        if (!Receive(w.from, &outcome)) {
          // It may have been hurt by a file before: then this one is given to another process.
          const bool others = w.taken > 1;
          outcome = {Verdict::kFail, EndText(End(w, false))};
          if (others && Start(w)) {
            GiveFile(w, file);
            continue;
          }
        }
      } else if (Clock::now() >= w.deadline) {
        End(w, true);
        outcome = {Verdict::kFail,
                   "took longer than " + std::to_string(options_.deadline_s) + " s"};
      } else {
        continue;
      }
      w.file.reset();
      outcomes_[file] = std::move(outcome);
    }
    for (; reported_ < paths_.size() && outcomes_[reported_]; ++reported_) {
      report_(reported_, *outcomes_[reported_]);
    }
  }

  const std::vector<std::string>& paths_;
  const WorkerOptions& options_;
  const std::function<Outcome(const std::string&)>& work_;
  const std::function<void(size_t, const Outcome&)>& report_;
  std::vector<std::optional<Outcome>> outcomes_;
  std::vector<Worker> workers_;
  size_t next_ = 0, reported_ = 0;
};

}  // namespace

bool ForEachFile(const std::vector<std::string>& paths, const WorkerOptions& options,
                 const std::function<Outcome(const std::string& path)>& work,
                 const std::function<void(size_t index, const Outcome& outcome)>& report) {
  // Writing to a process that has gone fails, and does not end this one.
  signal(SIGPIPE, SIG_IGN);
  return Pool(paths, options, work, report).Run();
}

}  // namespace kiln::run
