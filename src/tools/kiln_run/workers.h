// Work on files in processes of their own: a crash or hang affects no other file.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kiln::run {

enum class Verdict { kPass, kFail, kSkip };

struct Outcome {
  Verdict verdict = Verdict::kFail;
  std::string reason;  // of what did not pass, one line; or the work's own report
};

struct WorkerOptions {
  int jobs = 1;         // processes at once
  int deadline_s = 60;  // for one file, after which its process is killed
  int batch = 40;       // files that a process takes, one after the other, before the next begins
};

// Calls work(path) for each path in one of the processes, and report(index, outcome) here, in the
// order of the paths, as soon as an outcome and all before it are known. The calling process must
// have no other threads. False where no process can be made; then not all was reported.
bool ForEachFile(const std::vector<std::string>& paths, const WorkerOptions& options,
                 const std::function<Outcome(const std::string& path)>& work,
                 const std::function<void(size_t index, const Outcome& outcome)>& report);

}  // namespace kiln::run
