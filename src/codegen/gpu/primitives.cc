#include "codegen/gpu/primitives.h"

#include <functional>
#include <map>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Pass.h"
#include "llvm/Transforms/Utils.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

constexpr MmaShape kShapes[] = {
    {"mma_m16n8k8_f16", 16, 8, 8, 2, 1, 4, 75},    {"mma_m16n8k16_f16", 16, 8, 16, 4, 2, 4, 80},
    {"mma_m16n8k16_bf16", 16, 8, 16, 4, 2, 4, 80}, {"mma_m16n8k8_tf32", 16, 8, 8, 4, 2, 4, 80},
    {"mma_m16n8k32_s8", 16, 8, 32, 4, 2, 4, 80},   {"mma_m8n8k4_f64", 8, 8, 4, 1, 1, 2, 80},
};

}  // namespace

const MmaShape& ShapeOf(Mma mma) { return kShapes[static_cast<int>(mma)]; }

llvm::CallInst* GpuPrimitives::Call(llvm::StringRef name, llvm::Type* result,
                                    llvm::ArrayRef<Value*> args) {
  std::vector<llvm::Type*> types;
  for (Value* a : args) types.push_back(a->getType());
  auto callee = module_.getOrInsertFunction(("kiln.gpu." + name).str(),
                                            llvm::FunctionType::get(result, types, false));
  // Not to be moved to where other threads do not come.
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  return b_.CreateCall(callee, args);
}

Value* GpuPrimitives::Thread() {
  return b_.CreateZExt(Call("thread", b_.getInt32Ty(), {}), b_.getInt64Ty());
}

Value* GpuPrimitives::Block() {
  return b_.CreateZExt(Call("block", b_.getInt32Ty(), {}), b_.getInt64Ty());
}

void GpuPrimitives::Barrier() { Call("barrier", b_.getVoidTy(), {}); }

Value* GpuPrimitives::Shared() { return Call("shared", b_.getPtrTy(kSharedSpace), {}); }

// Registers are shuffled by 32 bits: wider values in halves, narrower ones widened.
Value* GpuPrimitives::Shuffle(llvm::StringRef name, Value* value, Value* by) {
  llvm::Type* type = value->getType();
  unsigned bits = type->getScalarSizeInBits();
  llvm::Type* integer = b_.getIntNTy(bits);
  Value* raw = b_.CreateBitCast(value, integer);
  auto word = [&](Value* v) { return Call(name, b_.getInt32Ty(), {v, by}); };
  if (bits <= 32) {
    Value* result = word(b_.CreateZExt(raw, b_.getInt32Ty()));
    return b_.CreateBitCast(b_.CreateTrunc(result, integer), type);
  }
  Value* low = word(b_.CreateTrunc(raw, b_.getInt32Ty()));
  Value* high = word(b_.CreateTrunc(b_.CreateLShr(raw, 32), b_.getInt32Ty()));
  Value* both =
      b_.CreateOr(b_.CreateZExt(low, integer), b_.CreateShl(b_.CreateZExt(high, integer), 32));
  return b_.CreateBitCast(both, type);
}

Value* GpuPrimitives::ShuffleDown(Value* value, int delta) {
  return Shuffle("shuffle_down", value, b_.getInt32(static_cast<uint32_t>(delta)));
}

Value* GpuPrimitives::ShuffleUp(Value* value, int delta) {
  return Shuffle("shuffle_up", value, b_.getInt32(static_cast<uint32_t>(delta)));
}

Value* GpuPrimitives::ShuffleXor(Value* value, int mask) {
  return Shuffle("shuffle_xor", value, b_.getInt32(static_cast<uint32_t>(mask)));
}

Value* GpuPrimitives::ShuffleIndex(Value* value, Value* lane) {
  return Shuffle("shuffle_index", value, lane);
}

Value* GpuPrimitives::Ballot(Value* condition) {
  return Call("ballot", b_.getInt32Ty(), {condition});
}

void GpuPrimitives::WarpBarrier() { Call("warp_barrier", b_.getVoidTy(), {}); }
void GpuPrimitives::Fence() { Call("fence", b_.getVoidTy(), {}); }

void GpuPrimitives::CopyAsync(Value* to, Value* from, int size, Value* bytes) {
  Call(size == 4   ? "copy_async_4"
       : size == 8 ? "copy_async_8"
                   : "copy_async_16",
       b_.getVoidTy(), {to, from, bytes});
}

void GpuPrimitives::CopyCommit() { Call("copy_commit", b_.getVoidTy(), {}); }

void GpuPrimitives::CopyWait(int pending) {
  Call("copy_wait", b_.getVoidTy(), {b_.getInt32(static_cast<uint32_t>(pending))});
}

std::vector<Value*> GpuPrimitives::Elements(Value* aggregate, int count) {
  std::vector<Value*> elements;
  for (int i = 0; i < count; ++i) {
    elements.push_back(b_.CreateExtractValue(aggregate, static_cast<unsigned>(i)));
  }
  return elements;
}

std::vector<Value*> GpuPrimitives::MatrixProduct(Mma mma, std::span<Value* const> a,
                                                 std::span<Value* const> b,
                                                 std::span<Value* const> c) {
  const MmaShape& shape = ShapeOf(mma);
  std::vector<Value*> args(a.begin(), a.end());
  args.insert(args.end(), b.begin(), b.end());
  args.insert(args.end(), c.begin(), c.end());
  std::vector<llvm::Type*> types(static_cast<size_t>(shape.c), c[0]->getType());
  return Elements(Call(shape.name, llvm::StructType::get(b_.getContext(), types), args), shape.c);
}

std::vector<Value*> GpuPrimitives::LoadMatrix(Value* row, bool transposed) {
  std::vector<llvm::Type*> types(4, b_.getInt32Ty());
  return Elements(Call(transposed ? "load_matrix_x4_trans" : "load_matrix_x4",
                       llvm::StructType::get(b_.getContext(), types), {row}),
                  4);
}

namespace {

class NvptxLowering {
 public:
  explicit NvptxLowering(llvm::Module& module) : module_(module) {
    namespace id = llvm::Intrinsic;
    Plain("thread", id::nvvm_read_ptx_sreg_tid_x);
    Plain("block", id::nvvm_read_ptx_sreg_ctaid_x);
    Plain("barrier", id::nvvm_barrier0);
    Plain("fence", id::nvvm_membar_gl);
    Plain("copy_commit", id::nvvm_cp_async_commit_group);
    Plain("copy_wait", id::nvvm_cp_async_wait_group);
    Plain("copy_async_4", id::nvvm_cp_async_ca_shared_global_4_s);
    Plain("copy_async_8", id::nvvm_cp_async_ca_shared_global_8_s);
    Plain("copy_async_16", id::nvvm_cp_async_cg_shared_global_16_s);
    // The clamp keeps to the warp.
    Shuffle("shuffle_down", id::nvvm_shfl_sync_down_i32, 31);
    Shuffle("shuffle_up", id::nvvm_shfl_sync_up_i32, 0);
    Shuffle("shuffle_xor", id::nvvm_shfl_sync_bfly_i32, 31);
    Shuffle("shuffle_index", id::nvvm_shfl_sync_idx_i32, 31);
    Add("ballot", [](llvm::IRBuilder<>& b, llvm::CallInst* call) -> Value* {
      return b.CreateIntrinsic(id::nvvm_vote_ballot_sync, {},
                               {b.getInt32(kAllLanes), call->getArgOperand(0)});
    });
    Add("warp_barrier", [](llvm::IRBuilder<>& b, llvm::CallInst*) -> Value* {
      return b.CreateIntrinsic(id::nvvm_bar_warp_sync, {}, {b.getInt32(kAllLanes)});
    });
    Product(Mma::kM16N8K8F16, id::nvvm_mma_m16n8k8_row_col_f32_f32, true);
    Product(Mma::kM16N8K16F16, id::nvvm_mma_m16n8k16_row_col_f32_f32, true);
    Product(Mma::kM16N8K16BF16, id::nvvm_mma_m16n8k16_row_col_bf16, false);
    Product(Mma::kM16N8K8TF32, id::nvvm_mma_m16n8k8_row_col_tf32, false);
    Product(Mma::kM16N8K32S8, id::nvvm_mma_m16n8k32_row_col_s8, false);
    Product(Mma::kM8N8K4F64, id::nvvm_mma_m8n8k4_row_col_f64, false);
    LoadMatrix("load_matrix_x4", id::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16);
    LoadMatrix("load_matrix_x4_trans", id::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16);
    Add("shared", [this](llvm::IRBuilder<>&, llvm::CallInst*) -> Value* { return Shared(); });
  }

  Status Run() {
    std::vector<llvm::Function*> primitives;
    for (llvm::Function& f : module_) {
      if (f.getName().starts_with("kiln.gpu.")) primitives.push_back(&f);
    }
    for (llvm::Function* f : primitives) {
      auto found = lowerings_.find(f->getName().drop_front(9).str());
      if (found == lowerings_.end()) return Internal("no GPU primitive ", f->getName().str());
      const Lowering& lowering = found->second;
      while (!f->use_empty()) {
        auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
        llvm::IRBuilder<> b(call);
        Value* result = lowering(b, call);
        if (!call->getType()->isVoidTy()) call->replaceAllUsesWith(result);
        call->eraseFromParent();
      }
      f->eraseFromParent();
    }
    return OkStatus();
  }

 private:
  static constexpr uint32_t kAllLanes = 0xffffffffu;
  using Lowering = std::function<Value*(llvm::IRBuilder<>&, llvm::CallInst*)>;

  void Add(const std::string& name, Lowering lowering) { lowerings_[name] = std::move(lowering); }

  static std::vector<Value*> ArgumentsOf(llvm::CallInst* call) {
    return {call->arg_begin(), call->arg_end()};
  }

  void Plain(const char* name, llvm::Intrinsic::ID id) {
    Add(name, [id](llvm::IRBuilder<>& b, llvm::CallInst* call) -> Value* {
      return b.CreateIntrinsic(id, {}, ArgumentsOf(call));
    });
  }

  void Shuffle(const char* name, llvm::Intrinsic::ID id, uint32_t clamp) {
    Add(name, [id, clamp](llvm::IRBuilder<>& b, llvm::CallInst* call) -> Value* {
      return b.CreateIntrinsic(id, {},
                               {b.getInt32(kAllLanes), call->getArgOperand(0),
                                call->getArgOperand(1), b.getInt32(clamp)});
    });
  }

  // `halves`: LLVM has two f16 where PTX has a register.
  void Product(Mma mma, llvm::Intrinsic::ID id, bool halves) {
    const MmaShape& shape = ShapeOf(mma);
    auto operands = static_cast<size_t>(halves ? shape.a + shape.b : 0);
    Add(shape.name, [id, operands](llvm::IRBuilder<>& b, llvm::CallInst* call) -> Value* {
      std::vector<Value*> args = ArgumentsOf(call);
      for (size_t i = 0; i < operands; ++i) {
        args[i] = b.CreateBitCast(args[i], llvm::FixedVectorType::get(b.getHalfTy(), 2));
      }
      return b.CreateIntrinsic(id, {}, args);
    });
  }

  void LoadMatrix(const char* name, llvm::Intrinsic::ID id) {
    Add(name, [id](llvm::IRBuilder<>& b, llvm::CallInst* call) -> Value* {
      return b.CreateIntrinsic(id, {call->getArgOperand(0)->getType()}, ArgumentsOf(call));
    });
  }

  Value* Shared() {
    if (!shared_) {
      auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module_.getContext()), 0);
      shared_ = new llvm::GlobalVariable(module_, type, false, llvm::GlobalValue::ExternalLinkage,
                                         nullptr, "kiln_shared", nullptr,
                                         llvm::GlobalValue::NotThreadLocal, kSharedSpace);
      shared_->setAlignment(llvm::Align(128));
    }
    return shared_;
  }

  llvm::Module& module_;
  std::map<std::string, Lowering> lowerings_;
  llvm::GlobalVariable* shared_ = nullptr;
};

int FirstArchitecture(llvm::StringRef name) {
  name.consume_front("kiln.gpu.");
  for (const MmaShape& shape : kShapes) {
    if (name == shape.name) return shape.sm;
  }
  return name.starts_with("copy_") ? 80 : 75;
}

}  // namespace

Status CheckPrimitives(const llvm::Module& module, int sm) {
  for (const llvm::Function& f : module) {
    if (!f.getName().starts_with("kiln.gpu.") || sm >= FirstArchitecture(f.getName())) continue;
    return Internal(f.getName().str(), " on sm_", sm, ", which has it not");
  }
  return OkStatus();
}

namespace {

// What ptxas 13.0 gets wrong with 16 bits (and with 8, which NVPTX computes in 16) is computed in
// 32:
// - of max.s16 and a comparison of its result it makes one instruction for sm_90 and sm_100,
//   VIMNMX.S16x2, and takes the predicate of the upper half, which holds nothing;
// - neg.s16 and abs.s16 whose result is extended it computes in 32 bits without a truncation:
//   -(-32768) is 32768 then.
class NarrowIntegers {
 public:
  explicit NarrowIntegers(llvm::Module& module) {
    for (llvm::Function& f : module) {
      for (llvm::Instruction& i : llvm::instructions(f)) {
        if (i.getType()->isIntegerTy(8) || i.getType()->isIntegerTy(16)) narrow_.push_back(&i);
      }
    }
  }

  void Widen() {
    for (llvm::Instruction* i : narrow_) {
      llvm::IRBuilder<> b(i);
      Value* wide = Extremum(b, *i);
      if (!wide) wide = Negation(b, *i);
      if (!wide) continue;
      i->replaceAllUsesWith(b.CreateTrunc(wide, i->getType()));
      i->eraseFromParent();
    }
  }

 private:
  static Value* Wide(llvm::IRBuilder<>& b, Value* narrow, bool is_signed) {
    return b.CreateIntCast(narrow, b.getInt32Ty(), is_signed);
  }

  static Value* Extremum(llvm::IRBuilder<>& b, llvm::Instruction& i) {
    Value *x = nullptr, *y = nullptr;
    const auto pattern = llvm::matchSelectPattern(&i, x, y).Flavor;
    if (!llvm::SelectPatternResult::isMinOrMax(pattern)) return nullptr;
    const bool is_signed = pattern == llvm::SPF_SMIN || pattern == llvm::SPF_SMAX;
    x = Wide(b, x, is_signed), y = Wide(b, y, is_signed);
    return b.CreateSelect(b.CreateICmp(llvm::getMinMaxPred(pattern), x, y), x, y);
  }

  static Value* Negation(llvm::IRBuilder<>& b, llvm::Instruction& i) {
    Value* x = nullptr;
    if (llvm::PatternMatch::match(&i, llvm::PatternMatch::m_Neg(llvm::PatternMatch::m_Value(x)))) {
      return b.CreateNeg(Wide(b, x, true));
    }
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call || call->getIntrinsicID() != llvm::Intrinsic::abs) return nullptr;
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, Wide(b, call->getArgOperand(0), true),
                                   b.getFalse());
  }

  std::vector<llvm::Instruction*> narrow_;
};

}  // namespace

void PromoteStackSlots(llvm::Module& module) {
  llvm::legacy::PassManager passes;
  passes.add(llvm::createPromoteMemoryToRegisterPass());
  passes.run(module);
}

Status LowerPrimitivesToNvptx(llvm::Module& module, int sm) {
  PromoteStackSlots(module);
  KILN_RETURN_IF_ERROR(CheckPrimitives(module, sm));
  KILN_RETURN_IF_ERROR(NvptxLowering(module).Run());
  NarrowIntegers(module).Widen();
  return OkStatus();
}

}  // namespace kiln::codegen
