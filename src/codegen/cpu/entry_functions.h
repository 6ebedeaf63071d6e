// Functions that the entry's code calls for its steps: there once, so that a step takes one call.
#pragma once

#include <cstdint>

#include "codegen/llvm_session.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "plan/plan.h"

namespace kiln::codegen {

// void launch(frame, args, kernel, data): puts the addresses of the launch's operands into `args`
// and runs the kernel's items and its finishing call, between the calls for timelines.
llvm::Function* LaunchFunction(LlvmSession& session);

// What a launch is, for that function.
llvm::Constant* LaunchData(LlvmSession& session, const plan::Launch& launch,
                           const plan::ScheduledKernel& kernel);

// A kernel that copies args[2] bytes (as a number) from args[1] to args[0], in so many items. There
// is no memcpy to call.
llvm::Function* CopyKernel(LlvmSession& session);
int64_t CopyItems(int64_t bytes);

}  // namespace kiln::codegen
