// Programs that are run as processes of their own: one that crashes or hangs is its own failure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace kiln::gpu_check {

struct Outcome {
  int exit_code = -1;  // -1 where a signal ended it
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  std::string output;  // both streams

  bool ok() const { return exit_code == 0; }
  // "exit code 1", "signal 11 (Segmentation fault)" or "more than 60 s".
  std::string ToString() const;
};

// In the caller's environment with some variables changed; the first argument is the program's
// path. Any thread.
Result<Outcome> RunProcess(const std::vector<std::string>& arguments,
                           const std::vector<std::pair<std::string, std::string>>& environment,
                           double seconds);

// The last lines of a text, of at most so many characters.
std::string Tail(const std::string& text, size_t characters);

}  // namespace kiln::gpu_check
