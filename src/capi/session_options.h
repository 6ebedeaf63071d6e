// The options of sessions, with the environment's flags where they are at their defaults.
#pragma once

#include <string_view>

#include "base/status.h"
#include "client/client.h"
#include "flags/flags.h"
#include "kiln/session.h"
#include "session/session.h"

namespace kiln::capi {

// How a program wants clusters to be compiled; a strict one is neither lazy nor asynchronous.
struct CompileMode {
  bool is_lazy = false;
  bool is_asynchronous = false;
  bool is_strict = false;
};

// INVALID_ARGUMENT for a strict mode that is lazy or asynchronous, too; `strict` is the option.
Status CheckMode(std::string_view strict, const CompileMode& mode);

// The options of sessions and functions that have no members in their structs, and the mode, which
// flags choose where the program does not: strict, or else asynchronous.
session::SessionOptions OptionsOf(const flags::SessionFlags& flags, const CompileMode& mode);

// INVALID_ARGUMENT names a member out of range.
Result<session::SessionOptions> ReadSessionOptions(const kiln_session_options& options,
                                                   client::Client& client);

}  // namespace kiln::capi
