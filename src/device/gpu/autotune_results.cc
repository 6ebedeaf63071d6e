#include "device/gpu/autotune_results.h"

#include <fcntl.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "base/disk_cache.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/output_file.h"
#include "base/strings.h"

namespace kiln::device {
namespace {

constexpr std::string_view kBetween = " | ";
constexpr std::string_view kOurs = "ours", kLibrary = "library", kUnit = " us";
constexpr std::string_view kComment = "# Kiln: which gemms go by a library, as it was measured.\n";

// "812.4"
std::string TenthsOf(double microseconds) {
  const auto tenths = static_cast<int64_t>(std::llround(10 * microseconds));
  return Cat(tenths / 10, ".", tenths % 10);
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t at = line.find(kBetween);
    fields.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return fields;
    line.remove_prefix(at + kBetween.size());
  }
}

// Of "ours 812.4 us".
std::optional<double> TimeOf(std::string_view field, std::string_view whose) {
  if (!StartsWith(field, whose) || !field.ends_with(kUnit)) return std::nullopt;
  field.remove_prefix(whose.size());
  field.remove_suffix(kUnit.size());
  if (!StartsWith(field, " ")) return std::nullopt;
  std::optional<double> time = ParseDouble(field.substr(1));
  if (!time || !std::isfinite(*time) || *time < 0) return std::nullopt;
  return time;
}

std::string LineOf(const std::string& key, const AutotuneResult& result) {
  return Cat(key, kBetween, kOurs, " ", TenthsOf(result.our_microseconds), kUnit, kBetween,
             kLibrary, " ", TenthsOf(result.library_microseconds), kUnit, kBetween,
             result.library ? kLibrary : kOurs, "\n");
}

std::optional<std::pair<std::string, AutotuneResult>> ParseLine(std::string_view line) {
  const std::vector<std::string_view> fields = Fields(line);
  if (fields.size() != 7) return std::nullopt;
  for (size_t i = 0; i < 4; ++i) {
    if (fields[i].empty()) return std::nullopt;
  }
  auto ours = TimeOf(fields[4], kOurs), library = TimeOf(fields[5], kLibrary);
  if (!ours || !library || (fields[6] != kOurs && fields[6] != kLibrary)) return std::nullopt;
  return std::pair(AutotuneResults::KeyOf(fields[0], fields[1], fields[2], fields[3]),
                   AutotuneResult{fields[6] == kLibrary, *ours, *library});
}

// Against concurrent changes. On a file system without locks the last writer wins, and the others'
// results are measured again.
Result<FileLock> LockFolder(const std::string& folder) {
  Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return SystemError(errno);
  return FileLock::Take(std::move(opened));
}

}  // namespace

std::string AutotuneResults::KeyOf(std::string_view gpu, std::string_view driver,
                                   std::string_view library, std::string_view gemm) {
  std::string key;
  for (std::string_view part : {gpu, driver, library, gemm}) {
    if (!key.empty()) key += kBetween;
    for (char c : part) key += c == '|' || c == '\n' || c == '\r' || c == '#' ? '_' : c;
  }
  return key;
}

std::string AutotuneResults::Path() const { return Cat(folder_, "/", kFileName); }

// The file takes precedence over memory: other processes follow it, too.
void AutotuneResults::Read() {
  has_read_ = true;
  if (folder_.empty()) return;
  std::optional<std::string> text = ReadFile(Path());
  if (!text) return;
  std::vector<int> wrong;
  int number = 0;
  for (std::string_view line : Split(*text, '\n')) {
    ++number;
    if (Trim(line).empty() || StartsWith(line, "#")) continue;
    if (auto parsed = ParseLine(line)) {
      results_[parsed->first] = parsed->second;
    } else {
      wrong.push_back(number);
    }
  }
  if (wrong.empty() || std::exchange(noted_lines_, true)) return;
  if (wrong.size() > 8) wrong.resize(8);
  notes_.push_back(Cat(Path(), ": what cannot be read is passed over, in lines ", Join(wrong, ", "),
                       wrong.size() == 8 ? " and perhaps more" : ""));
}

Status AutotuneResults::Write() {
  std::string text(kComment);
  for (const auto& [key, result] : results_) text += LineOf(key, result);
  KILN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(Path()));
  KILN_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

std::optional<AutotuneResult> AutotuneResults::Find(const std::string& key) {
  std::lock_guard lock(mutex_);
  if (!has_read_) Read();
  auto found = results_.find(key);
  if (found == results_.end()) return std::nullopt;
  return found->second;
}

Status AutotuneResults::AddToFile(const std::string& key, const AutotuneResult& result) {
  KILN_RETURN_IF_ERROR(DiskCache::MakeFolder(folder_));
  KILN_ASSIGN_OR_RETURN(const FileLock lock, LockFolder(folder_));
  Read();
  return results_.try_emplace(key, result).second ? Write() : OkStatus();
}

AutotuneResult AutotuneResults::Add(const std::string& key, const AutotuneResult& result) {
  std::lock_guard lock(mutex_);
  if (folder_.empty()) return results_.try_emplace(key, result).first->second;
  Status status = AddToFile(key, result);
  if (!status.ok()) results_.try_emplace(key, result);
  if (!status.ok() && !std::exchange(noted_write_, true)) {
    notes_.push_back(
        Cat("which gemms go by a library is not kept in ", folder_, ": ", status.message()));
  }
  return results_[key];
}

std::vector<std::string> AutotuneResults::TakeNotes() {
  std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace kiln::device
