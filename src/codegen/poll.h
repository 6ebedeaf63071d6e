// Cancellation: the polls in generated code.
#pragma once

#include <functional>

#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

// Goes on behind this unless the frame says that the run is to end. Then it goes to `stop`, one
// block for all polls of a function, which is made where it is null: the frame is told that the run
// has ended, and `leave` gets the error's code (an i32) and ends the block. What is left so must be
// memory that later code may read as it is.
void EmitPoll(llvm::IRBuilder<>& b, llvm::Value* frame, llvm::BasicBlock*& stop,
              const std::function<void(llvm::Value* code)>& leave);
// Where a function has one poll.
void EmitPoll(llvm::IRBuilder<>& b, llvm::Value* frame,
              const std::function<void(llvm::Value* code)>& leave);

// Steps of an innermost loop, or their like, that are worth a look: some tens of microseconds.
inline constexpr int64_t kStepsBetweenPolls = 1 << 16;

}  // namespace kiln::codegen
