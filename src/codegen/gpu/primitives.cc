#include "codegen/gpu/primitives.h"

#include <vector>

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace kiln::codegen {

using llvm::Value;

Value* GpuPrimitives::Call(const char* name, llvm::Type* result, llvm::ArrayRef<Value*> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, types, false));
  return b_.CreateCall(callee, args);
}

Value* GpuPrimitives::Thread() {
  return b_.CreateZExt(Call("kiln.gpu.thread", b_.getInt32Ty(), {}), b_.getInt64Ty());
}

Value* GpuPrimitives::Block() {
  return b_.CreateZExt(Call("kiln.gpu.block", b_.getInt32Ty(), {}), b_.getInt64Ty());
}

void GpuPrimitives::Barrier() { Call("kiln.gpu.barrier", b_.getVoidTy(), {}); }

Value* GpuPrimitives::Shared() { return Call("kiln.gpu.shared", b_.getPtrTy(kSharedSpace), {}); }

Value* GpuPrimitives::ShuffleWord(Value* word, int delta) {
  return Call("kiln.gpu.shuffle_down", b_.getInt32Ty(),
              {word, b_.getInt32(static_cast<uint32_t>(delta))});
}

// Registers are shuffled by 32 bits: wider values in halves, narrower ones widened.
Value* GpuPrimitives::ShuffleDown(Value* value, int delta) {
  llvm::Type* type = value->getType();
  unsigned bits = type->getScalarSizeInBits();
  llvm::Type* integer = b_.getIntNTy(bits);
  Value* raw = b_.CreateBitCast(value, integer);
  if (bits <= 32) {
    Value* word = b_.CreateZExt(raw, b_.getInt32Ty());
    return b_.CreateBitCast(b_.CreateTrunc(ShuffleWord(word, delta), integer), type);
  }
  Value* low = ShuffleWord(b_.CreateTrunc(raw, b_.getInt32Ty()), delta);
  Value* high = ShuffleWord(b_.CreateTrunc(b_.CreateLShr(raw, 32), b_.getInt32Ty()), delta);
  Value* both =
      b_.CreateOr(b_.CreateZExt(low, integer), b_.CreateShl(b_.CreateZExt(high, integer), 32));
  return b_.CreateBitCast(both, type);
}

void LowerPrimitivesToNvptx(llvm::Module& module, int64_t shared_bytes) {
  std::vector<llvm::Function*> primitives;
  for (llvm::Function& f : module) {
    if (f.getName().starts_with("kiln.gpu.")) primitives.push_back(&f);
  }
  llvm::GlobalVariable* shared = nullptr;
  for (llvm::Function* f : primitives) {
    while (!f->use_empty()) {
      auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
      llvm::IRBuilder<> b(call);
      Value* result = nullptr;
      if (f->getName() == "kiln.gpu.thread") {
        result = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
      } else if (f->getName() == "kiln.gpu.block") {
        result = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
      } else if (f->getName() == "kiln.gpu.barrier") {
        b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, {}, {});
      } else if (f->getName() == "kiln.gpu.shuffle_down") {
        // All lanes take part; the clamp of 31 keeps to the warp.
        result = b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_down_i32, {},
                                   {b.getInt32(0xffffffffu), call->getArgOperand(0),
                                    call->getArgOperand(1), b.getInt32(31)});
      } else {
        if (!shared) {
          auto* type = llvm::ArrayType::get(b.getInt8Ty(), static_cast<uint64_t>(shared_bytes));
          shared = new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                            llvm::UndefValue::get(type), "kiln_shared", nullptr,
                                            llvm::GlobalValue::NotThreadLocal, kSharedSpace);
          shared->setAlignment(llvm::Align(16));
        }
        result = shared;
      }
      if (result) call->replaceAllUsesWith(result);
      call->eraseFromParent();
    }
    f->eraseFromParent();
  }
}

}  // namespace kiln::codegen
