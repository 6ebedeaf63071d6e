// What an evaluation is told beside the program and its arguments.
#pragma once

#include <cstdint>
#include <functional>
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

// A custom call of a program.
struct CalledFunction {
  std::string name;  // of the instruction
  std::string target;
  CallSignature signature;
  // (result, operand) that are one memory, by their places in the signature.
  std::vector<std::pair<size_t, size_t>> aliases;
};

// What a custom call does: from the arrays of its operands to those of its result, one by one and
// in order; tokens are left out.
using CustomCall = std::function<Result<std::vector<Literal>>(
    const CalledFunction& called, std::span<const Literal* const> operands)>;

struct Options {
  // Fails with DEADLINE_EXCEEDED before it does more work, in the units of interp/work.h: programs
  // may have endless loops. As each array's elements are counted before it is made, memory is
  // bounded, too.
  int64_t max_work = INT64_MAX;
  // Unless null, the work that was done is added to it.
  int64_t* work_done = nullptr;
  // Looked at as work is charged.
  Interrupt interrupt;
  // Null: custom calls are NOT_FOUND, but for markers, which give their operand.
  // What the evaluator has itself, see interp/harness.h, does not come here.
  CustomCall custom_call = nullptr;
  // Gets what programs print; null: nobody does.
  std::function<void(std::string_view text)> print = nullptr;
  // Where probes keep what they are given; null: it is this evaluation's alone.
  Probes* probes = nullptr;
};

}  // namespace kiln::interp
