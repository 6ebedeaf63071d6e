// The options of an evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "tensor/call_signature.h"
#include "tensor/literal.h"
#include "tensor/probes.h"

namespace kiln::interp {

// A custom call, or a host callback, of a program.
struct CalledFunction {
  std::string name;    // of the instruction
  std::string target;  // or the callback's name
  CallSignature signature;
  // (result, operand) that share memory, by their indices in the signature.
  std::vector<std::pair<size_t, size_t>> aliases;
};

// The function of a custom call or a host callback: from the arrays of its operands to the arrays
// of its result, in order; tokens are omitted.
using CustomCall = std::function<Result<std::vector<Literal>>(
    const CalledFunction& called, std::span<const Literal* const> operands)>;

struct Options {
  // The limit of work, in the units of interp/work.h, beyond which evaluation fails with
  // DEADLINE_EXCEEDED: programs may have endless loops. Elements of arrays are charged before
  // allocation, so memory is bounded, too.
  int64_t max_work = INT64_MAX;
  // Unless null, receives the sum of the work done.
  int64_t* work_done = nullptr;
  // Polled as work is charged.
  Interrupt interrupt;
  // Null: custom calls are NOT_FOUND, except markers, which return their operand. The evaluator's
  // own calls (interp/harness.h) are not passed to it. Host callbacks are, and may return any sizes
  // within the bounds of their results.
  CustomCall custom_call = nullptr;
  // Receives the output of programs; null: none.
  std::function<void(std::string_view text)> print = nullptr;
  // The storage of probes; null: private to this evaluation.
  Probes* probes = nullptr;
  // The values of variables by name, which assignments change, also in an evaluation that fails
  // later; null: private to this evaluation, and none at its start.
  std::map<std::string, Literal>* variables = nullptr;
};

}  // namespace kiln::interp
