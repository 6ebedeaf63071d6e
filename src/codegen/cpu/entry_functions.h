// Helper functions for the steps in the entry's code.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/llvm_session.h"
#include "kernel/scheduled_kernel.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "program/program.h"

namespace kiln::codegen {

// The data of launches, for the frame's table: `words` receives one more.
void AddLaunchData(const program::Launch& launch, const kernel::CpuItems& items,
                   std::vector<uint64_t>& words);
llvm::Constant* LaunchData(LlvmSession& session, const std::vector<uint64_t>& words);

// A kernel that copies args[2] bytes (as a number) from args[1] to args[0], in so many items. There
// is no memcpy to call.
llvm::Function* CopyKernel(LlvmSession& session);
int64_t CopyItems(int64_t bytes);

}  // namespace kiln::codegen
