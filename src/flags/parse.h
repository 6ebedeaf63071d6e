// Reads the flags of the environment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "flags/flags.h"

namespace kiln::flags {

// For the log.
struct Message {
  bool is_warning;  // otherwise an information
  std::string text;
};

struct Parsed {
  Flags flags;
  std::vector<Message> messages;
};

// The value of an environment variable; nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const char* variable)>;

// Parses KILN_FLAGS, XLA_FLAGS, TF_XLA_FLAGS and TF_DUMP_GRAPH_PREFIX. KILN_FLAGS goes before the
// others, and a later flag before an earlier one. A value that does not begin with a dash is the
// name of a file with the flags.
//
// A mistake in KILN_FLAGS is INVALID_ARGUMENT, an unknown flag with the nearest name. The other
// variables belong to other programs, too: there unknown flags are ignored with an information, and
// malformed ones with a warning. Known flags that nothing reads give a warning.
Result<Parsed> Parse(const Lookup& lookup);

// By the environment of the process. A program with more rights than its user has no flags.
Result<Parsed> FromEnvironment();

}  // namespace kiln::flags
