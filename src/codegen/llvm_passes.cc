#include "codegen/llvm_passes.h"

#include <algorithm>
#include <string_view>

#include "llvm/Pass.h"

namespace kiln::codegen {
namespace {

// By their names, in alphabetical order.
constexpr std::string_view kNeedless[] = {
    "Analyze Machine Code For Garbage Collection",
    "Argument Stack Rebase",
    "Assignment Tracking Analysis",
    "Contiguously Lay Out Funclets",
    "Early If-Conversion",  // a switch of the target, off
    "Exception handling preparation",
    "Expand indirectbr instructions",
    "Expand large div/rem",     // of more than 128 bits
    "Expand large fp convert",  // the same
    "Expand memcmp() to load/stores",
    "Expand vector predication intrinsics",
    "Fixup Statepoint Caller Saved",
    "Implement the 'patchable-function' attribute",
    "Insert KCFI indirect call checks",
    "Insert XRay ops",
    "Insert fentry calls",
    "Insert stack protectors",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "Live DEBUG_VALUE analysis",
    "Local Dynamic TLS Access Clean-up",
    "Lower AMX intrinsics",
    "Lower AMX type for load/store",
    "Lower Garbage Collection Instructions",
    "Lower constant intrinsics",
    "Machine Instruction Scheduler",  // off, see SetBackEndSwitches
    "Machine Sanitizer Binary Metadata",
    "Merge contiguous icmps into a memcmp",
    "Merge disjoint stack slots",  // by marks of their lifetimes
    "Partially inline calls to library functions",
    "Prepare callbr",
    "Pseudo Probe Inserter",
    "Remove Redundant DEBUG_VALUE analysis",
    "Replace intrinsics with calls to vector library",
    "Safe Stack instrumentation pass",
    "Shadow Stack GC Lowering",
    "Stack Frame Layout Analysis",
    "StackMap Liveness Analysis",
    "TLS Variable Hoist",
    "Tile Register Configure",
    "Tile Register Pre-configure",
    "X86 Atom pad short functions",
    "X86 Avoid Store Forwarding Blocks",  // off, see SetBackEndSwitches
    "X86 Discriminate Memory Operands",
    "X86 Domain Reassignment Pass",  // bits of masks in general registers: ours are vectors of i1
    "X86 Indirect Branch Tracking",
    "X86 Indirect Thunks",
    "X86 Insert Cache Prefetches",
    "X86 Load Value Injection (LVI) Load Hardening",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "X86 Lower Tile Copy",
    "X86 Return Thunks",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Windows Fixup Buffer Security Check",
    "X86 insert wait instruction",
    "X86 speculative load hardening",
};
static_assert(std::ranges::is_sorted(kNeedless));

}  // namespace

void NeededPasses::add(llvm::Pass* pass) {
  const llvm::StringRef name = pass->getPassName();
  if (std::ranges::binary_search(kNeedless, std::string_view(name.data(), name.size()))) {
    delete pass;
    return;
  }
  PassManager::add(pass);
}

}  // namespace kiln::codegen
