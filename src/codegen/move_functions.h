// One LLVM module in two.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "llvm/IR/Module.h"

namespace kiln::codegen {

// Moves the functions that are `chosen` to a new module in the same context, which has the module's
// name and `suffix`. What one module has and the other uses becomes visible outside, and where it
// was not so before has the module's name added to its own, so that no two modules of a program
// clash.
std::unique_ptr<llvm::Module> MoveFunctions(
    llvm::Module& module, const std::function<bool(const llvm::Function&)>& chosen,
    std::string_view suffix);

}  // namespace kiln::codegen
