#include "codegen/cpu/chain.h"

#include "codegen/control_flow.h"
#include "codegen/cpu/entry.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;

class ChainCode {
 public:
  ChainCode(LlvmSession& session, llvm::Function* function, const LoweredProgram& lowered,
            const kernel::CpuChain& chain)
      : session_(session),
        function_(function),
        lowered_(lowered),
        chain_(chain),
        b_(BasicBlock::Create(session.context(), "entry", function)) {}

  void Emit() {
    args_ = function_->getArg(1);
    if (!chain_.pieces.empty()) CopyArgs();
    const LoopForm form = {.nsw = false, .after_last = true};
    auto emit_block = [&](Value* block) {
      for (size_t p = 0; p < pieces_.size(); ++p) SetPiece(p, block);
      for (const kernel::CpuChain::Part& part : chain_.parts) CallPart(part, block);
    };
    auto emit_item = [&](Value* item) {
      Value* first = b_.CreateMul(item, Int(chain_.blocks_per_item));
      Value* end = b_.CreateAdd(first, Int(chain_.blocks_per_item));
      EmitLoop(b_, first, EmitMin(b_, end, Int(chain_.blocks)), 1, emit_block, form);
    };
    EmitLoop(b_, function_->getArg(2), function_->getArg(3), 1, emit_item, form);
    b_.CreateRetVoid();
  }

 private:
  Value* Int(int64_t n) { return b_.getInt64(static_cast<uint64_t>(n)); }
  Value* ArgSlot(Value* args, int64_t arg) {
    return b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), args, static_cast<uint64_t>(arg));
  }

  // The arguments again, of which some change from block to block.
  void CopyArgs() {
    int64_t count = 0;
    for (const kernel::CpuChain::Part& part : chain_.parts) {
      const kernel::ScheduledKernel& k = lowered_.kernels[part.kernel];
      // A gemm may have scratch behind its parameters.
      count = part.first_arg + static_cast<int64_t>(k.kernel.params.size());
    }
    Value* own = b_.CreateAlloca(b_.getPtrTy(), Int(count));
    for (int64_t a = 0; a < count; ++a) {
      b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), ArgSlot(args_, a)), ArgSlot(own, a));
    }
    for (const kernel::CpuChain::Piece& piece : chain_.pieces) {
      pieces_.push_back(b_.CreateLoad(b_.getPtrTy(), ArgSlot(args_, piece.arg)));
    }
    args_ = own;
  }

  // Where the array would begin of which a piece is the block's part. A call uses the piece of its
  // first item, and that again and again: it stays warm, and calls that run at the same time do not
  // meet. Kernels may rely on an array's alignment.
  void SetPiece(size_t p, Value* block) {
    const kernel::CpuChain::Piece& piece = chain_.pieces[p];
    Value* back =
        b_.CreateAnd(b_.CreateMul(block, Int(piece.block_bytes)), Int(-program::kAlignment));
    Value* offset = b_.CreateSub(b_.CreateMul(function_->getArg(2), Int(piece.item_bytes)), back);
    b_.CreateStore(b_.CreateGEP(b_.getInt8Ty(), pieces_[p], offset), ArgSlot(args_, piece.arg));
  }

  void CallPart(const kernel::CpuChain::Part& part, Value* block) {
    llvm::FunctionCallee kernel = session_.module().getOrInsertFunction(
        KernelSymbol(lowered_, part.kernel), session_.KernelType());
    Value* first = b_.CreateMul(block, Int(part.block_items));
    Value* end = b_.CreateAdd(first, Int(part.block_items));
    b_.CreateCall(session_.KernelType(), kernel.getCallee(),
                  {function_->getArg(0), ArgSlot(args_, part.first_arg), first, end});
  }

  LlvmSession& session_;
  llvm::Function* function_;
  const LoweredProgram& lowered_;
  const kernel::CpuChain& chain_;
  llvm::IRBuilder<> b_;
  Value* args_ = nullptr;
  std::vector<Value*> pieces_;
};

}  // namespace

void EmitChain(LlvmSession& session, llvm::Function* function, const LoweredProgram& lowered,
               const kernel::CpuChain& chain) {
  ChainCode(session, function, lowered, chain).Emit();
}

}  // namespace kiln::codegen
