// Makes a failing module small: fewer results, instructions and elements, as long as it fails.
#pragma once

#include <functional>
#include <memory>

#include "ir/ir.h"

namespace kiln::tools {

struct ReduceOptions {
  // How often the module is tried at most.
  int64_t max_tries = 2000;
};

// Whether a valid module shows the failure. The function itself must not end the process.
using Fails = std::function<bool(const ir::Module&)>;

// A failing module from which nothing more can be taken, or the one after the last try. `module`
// fails. The same module and answers give the same result.
std::unique_ptr<ir::Module> Reduce(const ir::Module& module, const Fails& fails,
                                   const ReduceOptions& options = {});

}  // namespace kiln::tools
