#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

extern char** environ;

namespace kiln::gpu_check {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> ChangedEnvironment(
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    bool changed = false;
    for (const auto& [name, value] : changes) changed |= text.starts_with(Cat(name, "="));
    if (!changed) all.emplace_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(Cat(name, "=", value));
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What comes through the pipe until it is closed. False where that takes longer.
bool ReadUntil(int pipe, double deadline, std::string* output) {
  char piece[4096];
  while (true) {
    double left = deadline - Now();
    if (left <= 0) return false;
    pollfd wait = {pipe, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    ssize_t count = read(pipe, piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    output->append(piece, static_cast<size_t>(count));
  }
}

bool WaitUntil(pid_t child, double deadline, int* status) {
  while (true) {
    pid_t ended = waitpid(child, status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return true;
    if (Now() > deadline) return false;
    usleep(1000);
  }
}

}  // namespace

std::string Outcome::ToString() const {
  if (timed_out) return Cat("stopped after ", static_cast<int64_t>(seconds), " s");
  if (signal != 0) return Cat("ended by signal ", signal, " (", strsignal(signal), ")");
  return Cat("exit code ", exit_code);
}

Result<Outcome> RunProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           double seconds) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Internal("pipe: ", std::strerror(errno));
  std::vector<std::string> argument_texts = arguments;
  std::vector<std::string> variable_texts = ChangedEnvironment(environment);
  std::vector<char*> argv = Pointers(argument_texts), variables = Pointers(variable_texts);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  // A group of its own, so that what it has started ends with it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  double start = Now();
  pid_t child = 0;
  int error = posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return Internal("cannot run ", arguments[0], ": ", std::strerror(error));
  }
  Outcome outcome;
  int status = 0;
  bool ended = ReadUntil(ends[0], start + seconds, &outcome.output) &&
               WaitUntil(child, start + seconds, &status);
  outcome.timed_out = !ended;
  close(ends[0]);
  if (!ended) {
    kill(-child, SIGKILL);
    // One that hangs in the driver may not end even now.
    WaitUntil(child, Now() + 10, &status);
  }
  outcome.seconds = Now() - start;
  if (!ended) return outcome;
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

std::string Tail(const std::string& text, size_t characters) {
  if (text.size() <= characters) return text;
  size_t line = text.find('\n', text.size() - characters);
  return text.substr(line == std::string::npos ? text.size() - characters : line + 1);
}

}  // namespace kiln::gpu_check
