#include "backend/guard.h"

#include <string>

#include "backend/memory.h"
#include "base/stack.h"
#include "base/strings.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace kiln::backend {
namespace {

// A run of LLVM on this thread.
struct Run {
  std::string_view name;
  const Interrupt& interrupt;
  MemoryReserve& memory;
  // The last object of a pass, as described by LLVM.
  std::string place;
};

thread_local Run* current = nullptr;

// LLVM ends the process if a handler returns.
void OnFatalError(void*, const char* reason, bool) {
  if (!current || !IsAbandonable()) return;
  Abandon(Internal(current->name, current->place.empty() ? "" : ", ", current->place,
                   ": LLVM: ", reason));
}
void OnBadAlloc(void*, const char*, bool) {
  if (current && IsAbandonable()) Abandon(current->memory.failure());
}

void InstallHandlers() {
  static const bool installed = [] {
    llvm::install_fatal_error_handler(&OnFatalError);
    llvm::install_bad_alloc_error_handler(&OnBadAlloc);
    return true;
  }();
  (void)installed;
}

// Optional passes ask whether to run, function by function. LLVM holds no lock at that point.
class Gate : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef, llvm::StringRef description) override {
    if (!current || !IsAbandonable()) return true;
    current->place.assign(description.data(), description.size());
    if (!current->memory.Refill()) Abandon(current->memory.failure());
    Status status = current->interrupt.Check();
    if (!status.ok()) Abandon(status);
    return true;
  }
};

}  // namespace

Status RunLlvm(std::string_view name, const Interrupt& interrupt,
               const std::function<Status()>& work) {
  InstallHandlers();
  MemoryReserve memory(ResourceExhausted(name, ": there is no memory to generate code"));
  if (!memory.Refill()) return memory.failure();
  // The thread's state is restored at the end, even after an abandoned run.
  struct Scope {
    ~Scope() {
      current = outer;
      llvm::RestorePrettyStackState(trace);
    }
    Run* outer = current;
    const void* trace = llvm::SavePrettyStackState();
  } scope;
  Run run{name, interrupt, memory, {}};
  Status status;
  current = &run;
  ReserveScope reserve(memory);
  Status ended = RunAbandonable([&] { status = work(); });
  return ended.ok() ? status : ended;
}

void EndBetweenPasses(llvm::LLVMContext& context) {
  static Gate gate;
  context.setOptPassGate(gate);
}

}  // namespace kiln::backend
