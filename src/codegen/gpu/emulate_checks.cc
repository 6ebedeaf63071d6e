#include "codegen/gpu/emulate_checks.h"

#include <set>

#include "base/strings.h"
#include "codegen/gpu/primitives.h"
#include "frame/emulated.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

bool IsPrimitive(const Value* value, llvm::StringRef name) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(value);
  return call && call->getCalledFunction() &&
         call->getCalledFunction()->getName() == ("kiln.gpu." + name).str();
}

// All that a pointer may have been made of, through steps that keep to one object.
void CollectBases(Value* pointer, std::set<Value*>& seen, std::set<Value*>& bases) {
  if (!seen.insert(pointer).second) return;
  auto* op = llvm::dyn_cast<llvm::Operator>(pointer);
  unsigned opcode = op ? op->getOpcode() : 0;
  if (opcode == llvm::Instruction::GetElementPtr || opcode == llvm::Instruction::AddrSpaceCast ||
      opcode == llvm::Instruction::BitCast) {
    CollectBases(op->getOperand(0), seen, bases);
  } else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(pointer)) {
    for (Value* incoming : phi->incoming_values()) CollectBases(incoming, seen, bases);
  } else if (auto* select = llvm::dyn_cast<llvm::SelectInst>(pointer)) {
    CollectBases(select->getTrueValue(), seen, bases);
    CollectBases(select->getFalseValue(), seen, bases);
  } else {
    bases.insert(pointer);
  }
}

// The one object that a pointer is made of, or null.
Value* BaseOf(Value* pointer) {
  std::set<Value*> seen, bases;
  CollectBases(pointer, seen, bases);
  return bases.size() == 1 ? *bases.begin() : nullptr;
}

int64_t KindOfObject(Value* base) {
  if (!base) return KILN_ACCESS_UNKNOWN;
  if (auto* argument = llvm::dyn_cast<llvm::Argument>(base)) return argument->getArgNo() + 1;
  if (IsPrimitive(base, "shared")) return KILN_ACCESS_SHARED;
  if (auto* slot = llvm::dyn_cast<llvm::AllocaInst>(base)) {
    return slot->isStaticAlloca() ? KILN_ACCESS_LOCAL : KILN_ACCESS_UNKNOWN;
  }
  if (llvm::isa<llvm::GlobalVariable>(base)) return KILN_ACCESS_CONSTANT;
  return KILN_ACCESS_UNKNOWN;
}

// Calls that do not touch memory that others see, or do so by a checked function.
bool IsHarmlessCall(const llvm::CallInst& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (!callee) return false;
  if (callee->getName().starts_with("kiln.gpu.")) return true;
  if (llvm::isa<llvm::LifetimeIntrinsic>(call) || llvm::isa<llvm::DbgInfoIntrinsic>(call)) {
    return true;
  }
  for (const llvm::Use& use : call.args()) {
    if (use->getType()->isPtrOrPtrVectorTy()) return false;
  }
  return true;
}

Value* AddressOf(llvm::Instruction& i) {
  if (Value* address = llvm::getLoadStorePointerOperand(&i)) return address;
  if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) return rmw->getPointerOperand();
  return llvm::cast<llvm::AtomicCmpXchgInst>(i).getPointerOperand();
}

// A branch to a rarely executed block if the condition holds; `at` continues behind it.
llvm::Instruction* Unlikely(Value* condition, llvm::Instruction* at, bool returns) {
  llvm::MDNode* weights = llvm::MDBuilder(at->getContext()).createBranchWeights(1, 1 << 20);
  return llvm::SplitBlockAndInsertIfThen(condition, at, !returns, weights);
}

class AccessChecks {
 public:
  AccessChecks(llvm::Function& function, const std::vector<LoadedParameter>& parameters,
               int64_t granule, bool small)
      : function_(function),
        parameters_(parameters),
        granule_(granule),
        small_(small),
        context_(function.getContext()),
        i64_(llvm::Type::getInt64Ty(context_)) {}

  void Check(const MemoryAccess& access) {
    llvm::IRBuilder<> b(access.instruction);
    if (access.object == KILN_ACCESS_UNKNOWN) {
      Report(b, access);
    } else if (access.object == KILN_ACCESS_SHARED) {
      CheckShared(b, access);
    } else {
      CheckObject(b, access);
    }
  }

 private:
  void Report(llvm::IRBuilder<>& b, const MemoryAccess& access) {
    auto callee = EmulatorFunction(*function_.getParent(), "access",
                                   {b.getPtrTy(), b.getPtrTy(), b.getInt64Ty()});
    Value* address = b.CreateAddrSpaceCast(access.address, b.getPtrTy());
    b.CreateCall(callee, {function_.getArg(0), address, b.getInt64(access.Encoded())});
  }

  // Whether the access leaves [base, base + bytes), or is misaligned.
  Value* IsBad(llvm::IRBuilder<>& b, const MemoryAccess& access, Value* base, Value* bytes,
               Value** offset_out = nullptr) {
    Value* address = b.CreatePtrToInt(access.address, i64_);
    Value* offset = b.CreateSub(address, b.CreatePtrToInt(base, i64_));
    if (offset_out) *offset_out = offset;
    Value* places = bytes;  // how many offsets are right
    if (access.bytes > 1) {
      places = b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, bytes,
                                       b.getInt64(static_cast<uint64_t>(access.bytes - 1)));
    }
    Value* bad = b.CreateICmpUGE(offset, places);
    if (access.align > 1) {
      Value* low = b.CreateAnd(address, b.getInt64(static_cast<uint64_t>(access.align - 1)));
      bad = b.CreateOr(bad, b.CreateICmpNE(low, b.getInt64(0)));
    }
    return bad;
  }

  void CheckObject(llvm::IRBuilder<>& b, const MemoryAccess& access) {
    Value *base, *bytes;
    if (access.base) {
      base = access.base;
      bytes = b.getInt64(static_cast<uint64_t>(access.extent));
      // At a constant place it was right when it was made.
      if (base == access.address && access.bytes <= access.extent) return;
    } else {
      const LoadedParameter& p = parameters_[access.object - 1];
      base = p.address;
      bytes = p.bytes;
    }
    llvm::Instruction* then = Unlikely(IsBad(b, access, base, bytes), access.instruction, true);
    b.SetInsertPoint(then);
    Report(b, access);
  }

  // Most reads of shared memory are of words written before the last barrier and read by others
  // since; all other reads go to the emulator.
  void CheckShared(llvm::IRBuilder<>& b, const MemoryAccess& access) {
    if (access.kind != KILN_ACCESS_LOAD) {
      Report(b, access);
      return;
    }
    if (small_) {
      Value* address = b.CreateAddrSpaceCast(access.address, b.getPtrTy());
      b.CreateCall(SharedCheck(access), {function_.getArg(0), address});
      return;
    }
    Value* shared = LoadThreadField(b, function_, KILN_EMULATED_SHARED);
    Value* bytes = LoadThreadField(b, function_, KILN_EMULATED_SHARED_BYTES);
    Value* offset;
    Value* bad = IsBad(b, access, shared, bytes, &offset);
    llvm::BasicBlock* before = b.GetInsertBlock();
    llvm::BasicBlock* done = llvm::SplitBlock(before, access.instruction);
    before->getTerminator()->eraseFromParent();
    auto* look = llvm::BasicBlock::Create(context_, "look", &function_, done);
    auto* slow = llvm::BasicBlock::Create(context_, "report", &function_, done);
    llvm::MDNode* weights = llvm::MDBuilder(context_).createBranchWeights(1, 1 << 20);
    b.SetInsertPoint(before);
    b.CreateCondBr(bad, slow, look, weights);
    b.SetInsertPoint(look);
    auto count = static_cast<unsigned>(access.bytes / granule_);
    llvm::Type* tags = b.getInt32Ty();
    if (count > 1) tags = llvm::FixedVectorType::get(tags, count);
    auto splat = [&](Value* v) { return count > 1 ? b.CreateVectorSplat(count, v) : v; };
    Value* epoch = LoadThreadField(b, function_, KILN_EMULATED_EPOCH);
    auto number = [&](unsigned i) {
      return b.CreateAlignedLoad(b.getInt32Ty(), b.CreateConstGEP1_32(b.getInt32Ty(), epoch, i),
                                 llvm::Align(4));
    };
    Value* index = b.CreateLShr(offset, static_cast<uint64_t>(__builtin_ctzll(granule_)));
    auto tags_of = [&](unsigned field) {
      Value* array = LoadThreadField(b, function_, field);
      return b.CreateAlignedLoad(tags, b.CreateGEP(b.getInt32Ty(), array, index), llvm::Align(4));
    };
    Value* first = number(KILN_EMULATED_EPOCH_FIRST);
    Value* span = b.CreateSub(number(KILN_EMULATED_EPOCH_NOW), first);
    Value* written =
        b.CreateICmpULT(b.CreateSub(tags_of(KILN_EMULATED_WRITERS), splat(first)), splat(span));
    Value* read =
        b.CreateICmpEQ(tags_of(KILN_EMULATED_READERS), splat(number(KILN_EMULATED_EPOCH_MANY)));
    Value* fine = b.CreateAnd(written, read);
    if (count > 1) fine = b.CreateAndReduce(fine);
    b.CreateCondBr(fine, done, slow);
    b.SetInsertPoint(slow);
    Report(b, access);
    b.CreateBr(done);
  }

  // The check as a function of the thread and the address, which all such reads share.
  llvm::Function* SharedCheck(MemoryAccess access) {
    llvm::Module& module = *function_.getParent();
    const std::string name = Cat("kiln.gpu.check_shared.", access.Encoded(), ".", granule_);
    if (llvm::Function* known = module.getFunction(name)) return known;
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    auto* type =
        llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer, pointer}, false);
    auto* check = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
    check->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::IRBuilder<> b(llvm::BasicBlock::Create(context_, "entry", check));
    access.instruction = b.CreateRetVoid();
    access.address = check->getArg(1);
    AccessChecks(*check, parameters_, granule_, false).Check(access);
    return check;
  }

  llvm::Function& function_;
  const std::vector<LoadedParameter>& parameters_;
  const int64_t granule_;
  const bool small_;
  llvm::LLVMContext& context_;
  llvm::Type* i64_;
};

}  // namespace

llvm::StructType* EmulatedThreadType(llvm::LLVMContext& context) {
  llvm::Type* i32 = llvm::Type::getInt32Ty(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  return llvm::StructType::get(context,
                               {i32, i32, pointer, pointer, i64, pointer, pointer, pointer, i64,
                                llvm::ArrayType::get(i32, KILN_EMULATED_WORDS), pointer});
}

Value* LoadThreadField(llvm::IRBuilderBase& b, llvm::Function& function, unsigned field) {
  llvm::StructType* type = EmulatedThreadType(b.getContext());
  Value* address = b.CreateStructGEP(type, function.getArg(0), field);
  auto* load = b.CreateLoad(type->getElementType(field), address);
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return load;
}

llvm::FunctionCallee EmulatorFunction(llvm::Module& module, llvm::StringRef name,
                                      llvm::ArrayRef<llvm::Type*> types) {
  auto callee = module.getOrInsertFunction(
      ("kiln.gpu.emulated." + name).str(),
      llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), types, false));
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::NoUnwind);
  return callee;
}

uint64_t MemoryAccess::Encoded() const {
  auto log = static_cast<uint64_t>(__builtin_ctzll(static_cast<uint64_t>(align)));
  return static_cast<uint64_t>(bytes) << KILN_ACCESS_SIZE_SHIFT | log << KILN_ACCESS_ALIGN_SHIFT |
         static_cast<uint64_t>(kind) << KILN_ACCESS_KIND_SHIFT |
         static_cast<uint64_t>(object) << KILN_ACCESS_PARAMETER_SHIFT;
}

int64_t ObjectOf(Value* pointer) { return KindOfObject(BaseOf(pointer)); }

Result<std::vector<MemoryAccess>> FindAccesses(llvm::Function& function,
                                               const std::set<const llvm::Function*>& parts) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  std::vector<MemoryAccess> accesses;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    MemoryAccess access;
    access.instruction = &i;
    llvm::Type* type = nullptr;
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      access.address = load->getPointerOperand();
      access.align = static_cast<int64_t>(load->getAlign().value());
      type = load->getType();
    } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      access.kind = KILN_ACCESS_STORE;
      access.address = store->getPointerOperand();
      access.align = static_cast<int64_t>(store->getAlign().value());
      type = store->getValueOperand()->getType();
    } else if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
      access.kind = KILN_ACCESS_ATOMIC;
      access.address = rmw->getPointerOperand();
      access.align = static_cast<int64_t>(rmw->getAlign().value());
      type = rmw->getType();
    } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
      access.kind = KILN_ACCESS_ATOMIC;
      access.address = exchange->getPointerOperand();
      access.align = static_cast<int64_t>(exchange->getAlign().value());
      type = exchange->getNewValOperand()->getType();
    } else if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
      if (!parts.contains(call->getCalledFunction()) && !IsHarmlessCall(*call)) {
        std::string name = call->getCalledFunction() ? call->getCalledFunction()->getName().str()
                                                     : "a function by its address";
        return Internal("kernel ", function.getName().str(), " calls ", name,
                        ", whose accesses of memory cannot be checked");
      }
      continue;
    } else {
      continue;
    }
    access.bytes = static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue());
    Value* base = BaseOf(access.address);
    access.object = access.address->getType()->getPointerAddressSpace() == kSharedSpace
                        ? int64_t{KILN_ACCESS_SHARED}
                        : KindOfObject(base);
    if (access.object == KILN_ACCESS_LOCAL) {
      auto* slot = llvm::cast<llvm::AllocaInst>(base);
      access.base = base;
      access.extent = static_cast<int64_t>(slot->getAllocationSize(layout)->getFixedValue());
    } else if (access.object == KILN_ACCESS_CONSTANT) {
      llvm::Type* held = llvm::cast<llvm::GlobalVariable>(base)->getValueType();
      access.base = base;
      access.extent = static_cast<int64_t>(layout.getTypeAllocSize(held).getFixedValue());
    }
    accesses.push_back(access);
  }
  return accesses;
}

void CheckAccesses(llvm::Function& function, const std::vector<MemoryAccess>& accesses,
                   const std::vector<LoadedParameter>& parameters, int64_t shared_granule,
                   bool small) {
  AccessChecks checks(function, parameters, shared_granule, small);
  for (MemoryAccess access : accesses) {
    // The former argument is loaded now.
    access.address = AddressOf(*access.instruction);
    checks.Check(access);
  }
}

void CheckLoops(llvm::Function& function) {
  llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 8> edges;
  llvm::FindFunctionBackedges(function, edges);
  if (edges.empty()) return;
  std::set<const llvm::BasicBlock*> sources;
  for (auto [from, to] : edges) sources.insert(from);
  std::vector<llvm::BasicBlock*> blocks;
  for (llvm::BasicBlock& block : function) {
    if (sources.count(&block)) blocks.push_back(&block);
  }
  llvm::BasicBlock& entry = function.getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.begin());
  Value* left = b.CreateAlloca(b.getInt64Ty());
  b.CreateStore(LoadThreadField(b, function, KILN_EMULATED_BUDGET), left);
  for (llvm::BasicBlock* block : blocks) {
    b.SetInsertPoint(block->getTerminator());
    Value* rest = b.CreateSub(b.CreateLoad(b.getInt64Ty(), left), b.getInt64(1));
    b.CreateStore(rest, left);
    llvm::Instruction* then =
        Unlikely(b.CreateICmpSLT(rest, b.getInt64(0)), block->getTerminator(), false);
    b.SetInsertPoint(then);
    b.CreateCall(EmulatorFunction(*function.getParent(), "endless", {b.getPtrTy()}),
                 {function.getArg(0)});
  }
}

}  // namespace kiln::codegen
