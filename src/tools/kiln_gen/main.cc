// usage: kiln-gen --root REPOSITORY [--check]
//
// Generates files from the op table, the table of functions, the headers of the simplifier's rules
// and the table of flags. Files that differ are updated; with --check they are only listed, and the
// exit code is 1.

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "flags/table.h"
#include "tools/kiln_gen/flags_page.h"
#include "tools/kiln_gen/tables.h"
#include "tools/kiln_gen/writers.h"

namespace kiln::gen {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;  // from the top of the repository
  std::string text;
};

std::optional<std::string> Read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

// A reader sees the old file or the new one, never half of it.
Status Write(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  fs::path temporary = Cat(path.string(), ".", getpid(), ".tmp");
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream << text;
    stream.close();
    if (stream) fs::rename(temporary, path, error);
    if (stream && !error) return OkStatus();
  }
  std::string reason = error ? error.message() : std::strerror(errno);
  fs::remove(temporary, error);
  return Unavailable(path.string(), ": ", reason);
}

// Finds the header of each function; the headers and capi/api.def must agree.
Result<Headers> ReadHeaders(const fs::path& root) {
  Headers headers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "include/kiln", error)) {
    std::string header = entry.path().filename().string();
    if (!header.ends_with(".h") || header == "ops.h") continue;
    std::string text = Read(entry.path()).value_or("");
    static const std::regex declaration(R"(\bKILN_API\b[^(;#]*?\b(kiln_\w+)\()");
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      headers[(*it)[1].str()] = header;
    }
  }
  if (error) return Unavailable((root / "include/kiln").string(), ": ", error.message());
  size_t listed = 0;
  for (const Function& function : Functions()) {
    if (!headers.contains(function.name)) {
      return NotFound("src/capi/api.def: no header declares ", function.name);
    }
    ++listed;
  }
  if (listed == headers.size()) return headers;
  for (const auto& [name, header] : headers) {
    bool found = false;
    for (const Function& function : Functions()) found |= function.name == name;
    if (!found) return NotFound("include/kiln/", header, ": src/capi/api.def lacks ", name);
  }
  return InvalidArgument("src/capi/api.def lists a function twice");
}

Result<std::vector<File>> Files(const fs::path& root) {
  KILN_ASSIGN_OR_RETURN(Headers headers, ReadHeaders(root));
  KILN_ASSIGN_OR_RETURN(std::vector<Builder> builders, Builders());
  KILN_ASSIGN_OR_RETURN(std::string rules, RulesReference(root.string()));
  KILN_RETURN_IF_ERROR(CheckVariables(root.string(), flags::OtherVariables()));
  std::vector<ConstantGroup> constants = ConstantGroups();
  return std::vector<File>{
      {"include/kiln/ops.h", OpsHeader(builders)},
      {"src/capi/ops_generated.cc", OpsBodies(builders)},
      {"src/capi/check_api.cc", ApiCheck(constants)},
      {"src/capi/builders.def", BuildersTable(builders)},
      {"src/capi/exports.map", ExportsMap(builders)},
      {"bindings/python/kiln/_table.py", PythonTable(builders, constants)},
      {"bindings/python/kiln/_graph_ops.py", PythonOps(builders)},
      {"docs/reference/ops.md", OpsReference(builders)},
      {"docs/reference/api.md", ApiReference(builders, headers)},
      {"docs/reference/simplifier.md", rules},
      {"docs/reference/accuracy.md", AccuracyReference()},
      {"docs/flags.md",
       FlagsPage(Notice("src/flags/flags.def"), flags::AllFlags(), flags::OtherVariables())},
  };
}

int Run(const char* program, const fs::path& root, bool check) {
  Result<std::vector<File>> files = Files(root);
  if (!files.ok()) {
    std::fprintf(stderr, "kiln-gen: %s\n", std::string(files.status().message()).c_str());
    return 1;
  }
  size_t drifted = 0;
  for (const File& file : *files) {
    fs::path path = root / file.path;
    if (Read(path) == file.text) continue;
    ++drifted;
    std::printf("%s: %s\n", file.path.c_str(), check ? "not what the tables say" : "written");
    if (check) continue;
    if (Status status = Write(path, file.text); !status.ok()) {
      std::fprintf(stderr, "kiln-gen: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  if (!check || drifted == 0) return 0;
  std::printf("`%s --root %s` mends this\n", program, root.string().c_str());
  return 1;
}

}  // namespace
}  // namespace kiln::gen

int main(int argc, char** argv) {
  std::optional<std::string> root;
  bool check = false;
  bool good = true;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--check") {
      check = true;
    } else if (argument == "--root" && i + 1 < argc) {
      root = argv[++i];
    } else {
      good = false;
    }
  }
  if (!good || !root) {
    std::fprintf(stderr, "usage: kiln-gen --root REPOSITORY [--check]\n");
    return 2;
  }
  return kiln::gen::Run(argv[0], *root, check);
}
