// The rows of flags.def as data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flags/flags.h"

namespace kiln::flags {

// The environment variables that hold flags.
enum class Variable { kKilnFlags, kXlaFlags, kTfXlaFlags, kTfDumpGraphPrefix, kKilnCache };
// "KILN_FLAGS" and so on.
const char* NameOf(Variable variable);

struct Spelling {
  Variable variable;
  std::string_view name;  // without dashes; empty: the whole variable is the value
};

enum class Reader { kContext, kCompile, kSession };

// A member of Flags, by its type.
using Place = std::variant<Bool*, Int*, Text*, List*, Regex*, Level*>;

struct FlagInfo {
  Reader reader;
  std::string_view name;  // in KILN_FLAGS, without dashes
  int64_t least, most;    // of an Int
  bool is_connected;      // whether the reader reads it
  std::string_view documentation;
  Place (*place)(Flags& flags);
  std::vector<Spelling> spellings;  // in other variables
};

// All flags, in the table's order.
std::span<const FlagInfo> AllFlags();
// By a name in a variable; null for an unknown one.
const FlagInfo* FindFlag(Variable variable, std::string_view name);
// The value as a flag has it: "true", "4", "a,b"; "" for an empty one.
std::string ValueText(const FlagInfo& info, Flags& flags);

// An environment variable without flags.
struct VariableInfo {
  std::string_view name, values, documentation;
};
std::span<const VariableInfo> OtherVariables();

// The name among those of KILN_FLAGS that differs least from `name`.
std::string_view NearestFlag(std::string_view name);

}  // namespace kiln::flags
