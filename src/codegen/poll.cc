#include "codegen/poll.h"

#include <string_view>

#include "base/status.h"
#include "codegen/control_flow.h"
#include "frame/frame.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

constexpr std::string_view kMessage = "the execution was cancelled";

}  // namespace

void EmitPoll(llvm::IRBuilder<>& b, llvm::Value* frame, llvm::BasicBlock*& stop,
              const std::function<void(llvm::Value* code)>& leave) {
  auto pointer = [&](llvm::Value* pointers, uint64_t index) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), pointers, index));
  };
  const bool is_first = !stop;
  if (is_first) stop = NewBlock(b, "cancelled");
  llvm::BasicBlock *look = NewBlock(b, "look"), *go = NewBlock(b, "go");
  llvm::Value* cancel = pointer(frame, KILN_FRAME_CANCEL);
  b.CreateCondBr(b.CreateIsNotNull(cancel), look, go);
  b.SetInsertPoint(look);
  llvm::LoadInst* flag = b.CreateAlignedLoad(b.getInt32Ty(), cancel, llvm::Align(4));
  flag->setAtomic(llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateIsNotNull(flag), stop, go);
  if (is_first) {
    b.SetInsertPoint(stop);
    llvm::Value* code = b.getInt32(static_cast<uint32_t>(Code::kCancelled));
    llvm::Value* text = b.CreateGlobalString(llvm::StringRef(kMessage.data(), kMessage.size()), "",
                                             0, b.GetInsertBlock()->getModule());
    auto* type = llvm::FunctionType::get(
        b.getInt32Ty(), {b.getPtrTy(), b.getInt32Ty(), b.getPtrTy(), b.getInt64Ty()}, false);
    leave(b.CreateCall(type, pointer(pointer(frame, KILN_FRAME_TABLE), KILN_TABLE_FAIL),
                       {frame, code, text, b.getInt64(kMessage.size())}));
  }
  b.SetInsertPoint(go);
}

void EmitPoll(llvm::IRBuilder<>& b, llvm::Value* frame,
              const std::function<void(llvm::Value* code)>& leave) {
  llvm::BasicBlock* stop = nullptr;
  EmitPoll(b, frame, stop, leave);
}

}  // namespace kiln::codegen
