// Custom calls of programs run by the evaluator.
#pragma once

#include "interp/evaluator.h"
#include "runtime/custom_calls.h"

namespace kiln::device {

// By the host's functions, which must outlive this.
interp::CustomCall CustomCallBy(const runtime::CallHost& host);

// Whether any custom call is the user's. NOT_FOUND for a call without a function; also a function's
// own error about its arrays.
Result<bool> CheckCustomCalls(const interp::Evaluator& program, const runtime::CallHost& host);

}  // namespace kiln::device
