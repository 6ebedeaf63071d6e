// Custom calls of programs that the evaluator runs.
#pragma once

#include "interp/evaluator.h"
#include "runtime/custom_calls.h"

namespace kiln::device {

// By the host's functions, which must live as long as this is used.
interp::CustomCall CustomCallBy(const runtime::CallHost& host);

// NOT_FOUND where a custom call of the program has no function, and what else a function says of
// its arrays. Whether any is the user's.
Result<bool> CheckCustomCalls(const interp::Evaluator& program, const runtime::CallHost& host);

}  // namespace kiln::device
