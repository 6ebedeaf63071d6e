// The first instruction of a program whose value differs from the reference's.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tools/kiln_run/judge.h"

namespace kiln::run {

struct Culprit {
  std::string name, op_name;  // of the instruction
  std::string text;           // as in HLO
  // Whether it differs although all values before it are results as well; otherwise it is alone the
  // result of the program.
  bool among_all = false;
  Comparison comparison;
};

// Of an entry computation in order, calls and fusions with a difference taken apart. The values of
// the instructions become results, many at once; if all of them agree, because a kernel with fewer
// results is another one, each alone. Nothing if none differs that way. The errors of compiling and
// running.
Result<std::optional<Culprit>> Isolate(const Program& program, std::span<const Literal> arguments,
                                       const JudgeOptions& options);

}  // namespace kiln::run
