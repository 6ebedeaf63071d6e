// The header of a program compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "program/program.h"

namespace kiln::aot {

struct HeaderOptions {
  std::string name;        // of the functions and macros in C
  std::string class_name;  // "ns::Class"; "": none
  int32_t threads = 0;     // kiln_aot_program::threads
  int64_t memory_bytes = 0, stack_bytes = 0;
  std::vector<int64_t> argument_alignments;
  std::vector<std::string> user_functions;  // names in C of what custom calls call
  std::vector<std::string> targets;         // of all versions, as texts
};

// The names in C of arguments ("x") and results ("result0").
struct ArrayNames {
  std::vector<std::string> arguments, results;
};
ArrayNames NamesOf(const program::Signature& signature);

// C99, and C++11 with a class. INVALID_ARGUMENT for names that C or C++ does not take.
Result<std::string> HeaderText(const program::Program& program, const HeaderOptions& options);

}  // namespace kiln::aot
