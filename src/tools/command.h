// What the command line tools have in common: the command line, failures, the end.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <optional>
#include <string_view>

namespace kiln::tools {

// The exit status of every failure.
inline constexpr int kFailed = 1;

// Says "TOOL: message" on standard error, and returns kFailed.
inline int Fail(std::string_view tool, std::string_view message) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(tool.size()), tool.data(),
               static_cast<int>(message.size()), message.data());
  return kFailed;
}

// Reads the command line. The exit status where nothing is left to be done: after --help, and after
// a mistake, which has been reported.
inline std::optional<int> Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kFailed;
  }
}

// body() -> exit status, or the failure of a tool that is out of memory.
template <typename F>
int Guarded(std::string_view tool, const F& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(tool, "out of memory");
  }
}

}  // namespace kiln::tools
