// What the command line tools have in common: the command line, failures, the end.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <new>
#include <optional>
#include <string>
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

// For CLI::Option::transform: one of several names, in either case, becomes the value beside it; a
// value stays itself.
inline CLI::Validator OneOf(const std::map<std::string, std::string>& values) {
  const auto replace = [values](std::string& text) {
    std::string names;
    for (const auto& [name, value] : values) {
      if (CLI::detail::to_lower(text) == name || text == value) {
        text = value;
        return std::string();
      }
      names += (names.empty() ? "" : ", ") + name;
    }
    return "'" + text + "' is none of " + names;
  };
  return CLI::Validator(replace, "");
}

// For CLI::Option::check: a number for which `holds`, and its range in words.
inline CLI::Validator NumberIn(bool (*holds)(double), const char* range) {
  const auto check = [holds, range](std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && holds(value)) return std::string();
    return "'" + text + "' is no number " + range;
  };
  return CLI::Validator(check, "");
}
inline CLI::Validator FromZero() {
  return NumberIn([](double value) { return value >= 0; }, "from 0 on");
}
inline CLI::Validator AboveZero() {
  return NumberIn([](double value) { return value > 0; }, "above 0");
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
