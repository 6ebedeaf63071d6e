// LLVM's passes that our code does without.
#pragma once

#include "llvm/IR/LegacyPassManager.h"

namespace kiln::codegen {

// A pass manager for a CPU's code, which leaves out passes that find nothing to do in it. LLVM's
// pipeline has some 160 passes, for exceptions, garbage collection, hardening, debug information
// and more; with the analyses they ask for, they take longer than the rest for a small function.
class NeededPasses : public llvm::legacy::PassManager {
 public:
  // Takes the pass.
  void add(llvm::Pass* pass) override;
};

}  // namespace kiln::codegen
