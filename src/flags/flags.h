// The flags of the environment, for users who cannot change the program: they give the defaults of
// options that the program leaves at 0. A client reads them once and does not change them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flags/regex.h"

namespace kiln::flags {

using Bool = bool;
using Int = int64_t;
using Text = std::string;
using List = std::vector<std::string>;
// The levels of the log; kDefault: not given.
enum class Level { kDefault, kInfo, kWarning, kError, kOff };

// Read by contexts.
struct ContextFlags {
#define KILN_CONTEXT_FLAG(Type, member, value, ...) Type member = value;
#include "flags/flags.def"
};

// Read by compilations of graphs.
struct CompileFlags {
#define KILN_COMPILE_FLAG(Type, member, value, ...) Type member = value;
#include "flags/flags.def"
};

// Read by sessions; the defaults are TensorFlow's.
struct SessionFlags {
#define KILN_SESSION_FLAG(Type, member, value, ...) Type member = value;
#include "flags/flags.def"
};

struct Flags {
  ContextFlags context;
  CompileFlags compile;
  SessionFlags session;
};

}  // namespace kiln::flags
