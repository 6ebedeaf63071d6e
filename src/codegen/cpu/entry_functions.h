// Functions that the entry's code calls for its steps: there once, so that a step takes one call.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/llvm_session.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "plan/plan.h"

namespace kiln::codegen {

// int32_t launch(frame, args, kernel, data): puts the addresses of the launch's operands into
// `args` and runs the kernel's items and its finishing call, between the calls for timelines. 0, or
// the code of an error where the run is to end.
llvm::Function* LaunchFunction(LlvmSession& session);

// int32_t launches(frame, args, kernels, data, count): the same for one launch after the other.
llvm::Function* LaunchesFunction(LlvmSession& session);

// What launches are, for these functions: `words` receives one more.
void AddLaunchData(const plan::Launch& launch, const plan::ScheduledKernel& kernel,
                   std::vector<uint64_t>& words);
llvm::Constant* LaunchData(LlvmSession& session, const std::vector<uint64_t>& words);

// A kernel that copies args[2] bytes (as a number) from args[1] to args[0], in so many items. There
// is no memcpy to call.
llvm::Function* CopyKernel(LlvmSession& session);
int64_t CopyItems(int64_t bytes);

}  // namespace kiln::codegen
