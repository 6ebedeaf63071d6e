// The choices between the machine's library and our kernels for gemms: each is measured once,
// recorded in memory and as text in a folder, and followed from then on.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::device {

enum class GpuLibraryUse { kAuto, kNever, kAlways };

struct AutotuneResult {
  bool library = false;
  double our_microseconds = 0, library_microseconds = 0;
};

// Of one context, for all of its GPUs. May be used by several threads at once.
//
// The file has a line for each gemm:
//
//   GPU | driver | library | gemm | ours 812.4 us | library 701.9 us | library
//
// Malformed lines are skipped; lines that begin with # are comments.
class AutotuneResults {
 public:
  // Without a folder results are kept in memory only. The folder is created with the first result.
  AutotuneResults(GpuLibraryUse use, std::string folder) : use_(use), folder_(std::move(folder)) {}

  GpuLibraryUse use() const { return use_; }

  static std::string KeyOf(std::string_view gpu, std::string_view driver, std::string_view library,
                           std::string_view gemm);
  std::optional<AutotuneResult> Find(const std::string& key);
  // The result to follow: this one, or an earlier one of another process.
  AutotuneResult Add(const std::string& key, const AutotuneResult& result);
  // The problems of the file, each once.
  std::vector<std::string> TakeNotes();

  static constexpr char kFileName[] = "gpu_gemms.txt";

 private:
  void Read();
  Status Write();
  // The first result of a key stays.
  Status AddToFile(const std::string& key, const AutotuneResult& result);
  std::string Path() const;

  const GpuLibraryUse use_;
  const std::string folder_;
  std::mutex mutex_;
  bool has_read_ = false;
  std::map<std::string, AutotuneResult> results_;
  std::vector<std::string> notes_;
  bool noted_lines_ = false, noted_write_ = false;
};

}  // namespace kiln::device
