// Derivatives of custom calls by functions of the user.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::client {

// Of the calls of one target. Any thread of the user.
class CallGradient {
 public:
  virtual ~CallGradient() = default;
  // The backward computation of a call, in its module (see grad/custom.h).
  virtual Result<ir::Computation*> Build(const ir::Instruction& call) const = 0;
};

}  // namespace kiln::client
