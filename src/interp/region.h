// The evaluation's interface for ops that apply computations to elements.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::interp {

struct RegionContext {
  // A computation's result, a tuple's elements one by one.
  std::function<Result<std::vector<Literal>>(const ir::Computation&, std::vector<Literal>)> call;
  // Fails beyond the limit of executed instructions.
  std::function<Status(int64_t instructions)> charge;
};

}  // namespace kiln::interp
