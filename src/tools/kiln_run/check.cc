#include "tools/kiln_run/check.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/kiln.h"
#include "tools/kiln_run/handles.h"

namespace kiln::run {
namespace {

// "INVALID_ARGUMENT: line 3, column 5: ...", on one line.
std::string Text(const Status& status) {
  std::string text = status.ToString();
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (stream.bad()) return std::nullopt;
  return bytes;
}

bool IsBytecode(std::string_view bytes) { return bytes.starts_with("ML\xefR"); }
bool IsSavedProgram(std::string_view bytes) { return bytes.starts_with("KILNPRG\n"); }

struct Chunk {
  std::string text;
  size_t line;  // its first one
};

// Whether a line parts modules: "// -----", also in a comment, as it does for MLIR.
bool IsSplit(std::string_view line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != line.npos && line.substr(first).starts_with("//") &&
         line.find("// -----", first) != line.npos;
}

// The modules of one file. Each has as many empty lines before it as the file has others: errors
// tell lines of the file.
std::vector<Chunk> Chunks(std::string_view text) {
  std::vector<Chunk> chunks;
  size_t begin = 0, at = 0, line = 1, first = 1;
  auto add = [&](size_t end) {
    chunks.push_back({std::string(first - 1, '\n').append(text.substr(begin, end - begin)), first});
  };
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    if (IsSplit(text.substr(at, end - at))) {
      add(at);
      begin = std::min(end + 1, text.size());
      first = line + 1;
    }
    at = end + 1;
    ++line;
  }
  add(std::max(begin, text.size()));
  return chunks;
}

// Whether there is more than white space and comments.
bool HasModule(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    size_t first = line.find_first_not_of(" \t\r");
    if (first != line.npos && !line.substr(first).starts_with("//")) return true;
    at = end + 1;
  }
  return false;
}

// The text behind "RUN-DISABLED" in a comment: "(no interpreter support)".
std::optional<std::string> DisabledReason(std::string_view text) {
  size_t at = text.find("RUN-DISABLED");
  if (at == text.npos) return std::nullopt;
  std::string_view rest = text.substr(at, text.find('\n', at) - at);
  size_t open = rest.find('('), close = rest.find(')');
  if (open == rest.npos || close == rest.npos) return "marked RUN-DISABLED";
  return "marked RUN-DISABLED: " + std::string(rest.substr(open + 1, close - open - 1));
}

class Checker {
 public:
  // Files run side by side already.
  Status Open(const std::string& name) { return OpenContext(name, 1, &context_, &device_); }

  // Of StableHLO. Passes if there is an executable then.
  Outcome Compile(std::string_view program, const CheckOptions& options, Executable* executable) {
    kiln_graph* made = nullptr;
    const Status read = StatusOf(
        kiln_graph_from_stablehlo(context_.get(), program.data(), program.size(), nullptr, &made));
    if (!read.ok()) {
      std::string text = Text(read);
      // Programs for several sizes are no checks by themselves.
      const bool open = read.code() == Code::kUnimplemented &&
                        text.ends_with("shapes of the arguments may tell it");
      return {open ? Verdict::kSkip : Verdict::kFail,
              open ? "its entry takes arguments of unknown sizes" : std::move(text)};
    }
    Graph graph(made);
    kiln_compile_options c = KILN_COMPILE_OPTIONS_INIT;
    c.device = device_;
    c.disabled_passes = options.disabled_passes.data();
    c.disabled_passes_length = options.disabled_passes.size();
    c.memory_limit_bytes = options.memory_limit_bytes;
    kiln_executable* compiled = nullptr;
    const Status status = StatusOf(kiln_graph_compile(graph.get(), &c, &compiled));
    return Made(status, compiled, executable);
  }

  // Of a file of Save's.
  Outcome Load(const std::string& path, Executable* executable) {
    kiln_executable* loaded = nullptr;
    const Status status =
        StatusOf(kiln_executable_load_file(device_, path.data(), path.size(), &loaded));
    return Made(status, loaded, executable);
  }

  static Outcome Run(const Executable& executable) {
    if (kiln_executable_argument_count(executable.get()) != 0) {
      return {Verdict::kSkip, "its entry takes arguments"};
    }
    std::vector<kiln_buffer*> results(kiln_executable_result_count(executable.get()));
    const Status status = StatusOf(
        kiln_executable_run(executable.get(), nullptr, nullptr, 0, results.data(), results.size()));
    for (kiln_buffer* result : results) kiln_buffer_release(result);
    return OutcomeOf(status);
  }

 private:
  static Outcome OutcomeOf(const Status& status) {
    return status.ok() ? Outcome{Verdict::kPass, ""} : Outcome{Verdict::kFail, Text(status)};
  }
  static Outcome Made(const Status& status, kiln_executable* made, Executable* executable) {
    if (status.ok()) executable->reset(made);
    return OutcomeOf(status);
  }

  Context context_;
  kiln_device* device_ = nullptr;  // the context's
};

}  // namespace

Outcome CheckFile(const std::string& path, const CheckOptions& options) {
  std::optional<std::string> bytes = ReadFile(path);
  if (!bytes) return {Verdict::kFail, "cannot be read"};
  const bool is_saved = IsSavedProgram(*bytes);
  std::vector<Chunk> chunks = {{*bytes, 1}};
  if (!is_saved && !IsBytecode(*bytes)) {
    std::optional<std::string> disabled = DisabledReason(*bytes);
    if (disabled && !options.disabled_too) return {Verdict::kSkip, *disabled};
    chunks = Chunks(*bytes);
    std::erase_if(chunks, [](const Chunk& chunk) { return !HasModule(chunk.text); });
    if (chunks.empty()) return {Verdict::kSkip, "has no module"};
  }
  Checker checker;
  const Status opened = checker.Open(options.device);
  if (!opened.ok()) return {Verdict::kFail, Text(opened)};
  for (const Chunk& chunk : chunks) {
    Executable executable;
    Outcome outcome = is_saved ? checker.Load(path, &executable)
                               : checker.Compile(chunk.text, options, &executable);
    if (outcome.verdict == Verdict::kPass) outcome = Checker::Run(executable);
    if (outcome.verdict == Verdict::kPass) continue;
    if (chunks.size() > 1) {
      outcome.reason = "module of line " + std::to_string(chunk.line) + ": " + outcome.reason;
    }
    return outcome;
  }
  return {Verdict::kPass, ""};
}

std::optional<std::string> SaveProgram(const std::string& path, const std::string& to,
                                       const CheckOptions& options) {
  std::optional<std::string> bytes = ReadFile(path);
  if (!bytes) return path + " cannot be read";
  Checker checker;
  const Status opened = checker.Open(options.device);
  if (!opened.ok()) return Text(opened);
  Executable executable;
  const Outcome outcome = checker.Compile(*bytes, options, &executable);
  if (outcome.verdict != Verdict::kPass) return path + ": " + outcome.reason;
  const Status saved = StatusOf(kiln_executable_save(executable.get(), to.data(), to.size()));
  return saved.ok() ? std::nullopt : std::optional(Text(saved));
}

}  // namespace kiln::run
