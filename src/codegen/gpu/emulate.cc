#include "codegen/gpu/emulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "codegen/gpu/emulate_checks.h"
#include "codegen/gpu/emulate_nans.h"
#include "codegen/gpu/primitives.h"
#include "frame/emulated.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace kiln::codegen {
namespace {

using llvm::Value;

struct WarpOperation {
  const char* name;
  int operation;
};

constexpr WarpOperation kWarpOperations[] = {
    {"warp_barrier", KILN_WARP_BARRIER},
    {"shuffle_down", KILN_WARP_SHUFFLE_DOWN},
    {"shuffle_up", KILN_WARP_SHUFFLE_UP},
    {"shuffle_xor", KILN_WARP_SHUFFLE_XOR},
    {"shuffle_index", KILN_WARP_SHUFFLE_INDEX},
    {"ballot", KILN_WARP_BALLOT},
    {"mma_m16n8k8_f16", KILN_WARP_MMA_M16N8K8_F16},
    {"mma_m16n8k16_f16", KILN_WARP_MMA_M16N8K16_F16},
    {"mma_m16n8k16_bf16", KILN_WARP_MMA_M16N8K16_BF16},
    {"mma_m16n8k8_tf32", KILN_WARP_MMA_M16N8K8_TF32},
    {"mma_m16n8k32_s8", KILN_WARP_MMA_M16N8K32_S8},
    {"mma_m8n8k4_f64", KILN_WARP_MMA_M8N8K4_F64},
    {"load_matrix_x4", KILN_WARP_LOAD_MATRIX_X4},
    {"load_matrix_x4_trans", KILN_WARP_LOAD_MATRIX_X4_TRANS},
};

constexpr int64_t kMatrixRow = 16;  // bytes that load_matrix reads at an address

// The name behind "kiln.gpu.", or "".
llvm::StringRef PrimitiveName(const llvm::Instruction& i) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
  if (!call || !call->getCalledFunction()) return "";
  llvm::StringRef name = call->getCalledFunction()->getName();
  return name.consume_front("kiln.gpu.") && !name.starts_with("emulated.") ? name : "";
}

int64_t CopySize(llvm::StringRef primitive) {
  if (!primitive.consume_front("copy_async_")) return 0;
  return primitive == "4" ? 4 : primitive == "8" ? 8 : 16;
}

// Whether a call is of a function of its own, which takes some of the kernel's parameters that
// follow each other: a part of a bundle. It stays a function: LLVM takes more than linear time for
// long ones.
bool IsPart(const llvm::CallInst& call) {
  const llvm::Function* f = call.getCalledFunction();
  if (!f || f->isDeclaration() || !f->hasLocalLinkage() || !f->hasOneUse() ||
      !f->getReturnType()->isVoidTy() || f->arg_empty()) {
    return false;
  }
  auto* first = llvm::dyn_cast<llvm::Argument>(call.getArgOperand(0));
  for (unsigned k = 0; first && k < call.arg_size(); ++k) {
    auto* argument = llvm::dyn_cast<llvm::Argument>(call.getArgOperand(k));
    if (!argument || argument->getArgNo() != first->getArgNo() + k) return false;
  }
  return first != nullptr;
}

std::vector<llvm::CallInst*> PartCalls(llvm::Function& kernel) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Instruction& i : llvm::instructions(kernel)) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
    if (call && IsPart(*call)) calls.push_back(call);
  }
  return calls;
}

// Whether a function asks the machine for something, or gets at memory by a pointer that it is
// given: it is inlined into the kernels, where all can be checked.
class Inliner {
 public:
  // Into a kernel, which goes on calling its parts, or into a part.
  Status InlineInto(llvm::Function& kernel, bool keeps_parts) {
    constexpr int kMostCalls = 100'000;  // of recursive functions there is no end
    std::vector<llvm::CallInst*> work;
    auto add = [&](llvm::Instruction& i) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
      if (!call || !call->getCalledFunction() || (keeps_parts && IsPart(*call))) return;
      if (Wanted(*call->getCalledFunction())) work.push_back(call);
    };
    for (llvm::Instruction& i : llvm::instructions(kernel)) add(i);
    for (int calls = 0; !work.empty(); ++calls) {
      llvm::CallInst* next = work.back();
      work.pop_back();
      llvm::InlineFunctionInfo info;
      std::string name = next->getCalledFunction()->getName().str();
      if (calls == kMostCalls || !llvm::InlineFunction(*next, info).isSuccess()) {
        return Internal("kernel ", kernel.getName().str(), ": ", name, " cannot be inlined");
      }
      for (llvm::CallBase* call : info.InlinedCallSites) add(*call);
    }
    return OkStatus();
  }

 private:
  bool Wanted(const llvm::Function& f) {
    if (f.isDeclaration()) return false;
    auto [known, is_new] = wanted_.try_emplace(&f, false);
    if (!is_new) return known->second;
    bool wanted = std::any_of(f.arg_begin(), f.arg_end(), [](const llvm::Argument& a) {
      return a.getType()->isPtrOrPtrVectorTy();
    });
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      if (wanted) break;
      auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
      if (!call || !call->getCalledFunction()) continue;
      wanted = !PrimitiveName(i).empty() || Wanted(*call->getCalledFunction());
    }
    return wanted_[&f] = wanted;
  }

  std::map<const llvm::Function*, bool> wanted_;
};

// The emulator's description of a kernel.
struct KernelFacts {
  bool waits = false;
  int64_t shared_granule = kMatrixRow, global_granule = 16;
  uint64_t written = 0;
  uint32_t sites = 0;
};

// A kernel's function, or that of one of its parts, whose parameters are the kernel's from `first`
// on.
class FunctionLowering {
 public:
  FunctionLowering(llvm::Function& function, unsigned first, bool small, KernelFacts& facts)
      : old_(function),
        first_(first),
        small_(small),
        facts_(facts),
        module_(*function.getParent()),
        context_(function.getContext()) {}

  llvm::Function& new_function() { return *new_; }

  // Collects the uses before any change. `parts` are called functions.
  Status Find(const std::set<const llvm::Function*>& parts) {
    KILN_ASSIGN_OR_RETURN(accesses_, FindAccesses(old_, parts));
    for (MemoryAccess& access : accesses_) access.object = InKernel(access.object);
    FindPrimitives();
    FindGranules();
    return OkStatus();
  }

  // void NAME(ptr thread), with the blocks that the function had.
  Status MoveBody() {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context_), {pointer}, false);
    const std::string name = old_.getName().str();
    for (const llvm::Argument& a : old_.args()) {
      if (!a.getType()->isPointerTy()) {
        return Internal("kernel ", name, " has a parameter that is no pointer");
      }
    }
    old_.setName(name + ".gpu");
    new_ = llvm::Function::Create(type, old_.getLinkage(), name, &module_);
    new_->addFnAttr(llvm::Attribute::NoUnwind);
    if (old_.hasFnAttribute("prefer-vector-width")) {
      new_->addFnAttr(old_.getFnAttribute("prefer-vector-width"));
    }
    new_->splice(new_->begin(), &old_);
    return OkStatus();
  }

  // Replaces them by the emulator's.
  Status Rewrite() {
    LoadParameters();
    CheckAccesses(*new_, accesses_, parameters_, facts_.shared_granule, small_);
    for (llvm::CallInst* call : primitives_) KILN_RETURN_IF_ERROR(Lower(call));
    old_.eraseFromParent();
    CheckLoops(*new_);
    return OkStatus();
  }

 private:
  int64_t InKernel(int64_t object) const {
    const bool is_parameter = object != KILN_ACCESS_UNKNOWN && object < KILN_ACCESS_CONSTANT;
    return is_parameter ? object + first_ : object;
  }

  void FindPrimitives() {
    for (llvm::Instruction& i : llvm::instructions(old_)) {
      llvm::StringRef name = PrimitiveName(i);
      if (name.empty()) continue;
      auto* call = llvm::cast<llvm::CallInst>(&i);
      primitives_.push_back(call);
      if (name.starts_with("copy_async")) {
        sources_[call] = InKernel(ObjectOf(call->getArgOperand(1)));
      }
      bool waits = name == "barrier" || name.starts_with("copy_");
      for (const WarpOperation& w : kWarpOperations) waits = waits || name == w.name;
      facts_.waits = facts_.waits || waits;
    }
  }

  // The common alignment of all accesses; the written parameters.
  void FindGranules() {
    auto narrow = [](int64_t& granule, int64_t bytes, int64_t align) {
      granule = std::min({granule, bytes & -bytes, align});
    };
    for (const MemoryAccess& a : accesses_) {
      if (a.object == KILN_ACCESS_LOCAL || a.object == KILN_ACCESS_CONSTANT) continue;
      if (a.object != KILN_ACCESS_SHARED) narrow(facts_.global_granule, a.bytes, a.align);
      if (a.object == KILN_ACCESS_SHARED || a.object == KILN_ACCESS_UNKNOWN) {
        narrow(facts_.shared_granule, a.bytes, a.align);
      }
      if (a.kind == KILN_ACCESS_LOAD || a.object == KILN_ACCESS_SHARED) continue;
      facts_.written |= a.object == KILN_ACCESS_UNKNOWN
                            ? ~uint64_t{0}
                            : uint64_t{1} << std::min<int64_t>(a.object - 1, 63);
    }
    for (llvm::CallInst* call : primitives_) {
      int64_t size = CopySize(PrimitiveName(*call));
      if (size == 0) continue;
      narrow(facts_.shared_granule, size, size);
      narrow(facts_.global_granule, size, size);
    }
  }

  // Loads each parameter that is used, outside of loops, where its uses have a common way to them.
  void LoadParameters() {
    llvm::DominatorTree dominators(*new_);
    llvm::LoopInfo loops(dominators);
    parameters_.resize(first_ + old_.arg_size());
    for (llvm::Argument& argument : old_.args()) {
      if (argument.use_empty()) continue;
      llvm::BasicBlock* place = nullptr;
      for (llvm::Use& use : argument.uses()) {
        auto* user = llvm::cast<llvm::Instruction>(use.getUser());
        auto* phi = llvm::dyn_cast<llvm::PHINode>(user);
        llvm::BasicBlock* block = phi ? phi->getIncomingBlock(use) : user->getParent();
        if (!dominators.isReachableFromEntry(block)) continue;
        place = place ? dominators.findNearestCommonDominator(place, block) : block;
      }
      if (!place) place = &new_->getEntryBlock();
      while (loops.getLoopFor(place)) place = dominators.getNode(place)->getIDom()->getBlock();
      llvm::IRBuilder<> b(place, place->getFirstInsertionPt());
      // Behind stack slots, which stay together.
      if (place == &new_->getEntryBlock()) b.SetInsertPointPastAllocas(new_);
      Value* all = LoadThreadField(b, *new_, KILN_EMULATED_PARAMETERS);
      auto* pair = llvm::StructType::get(context_, {argument.getType(), b.getInt64Ty()});
      auto load = [&](unsigned field) {
        Value* parameter = b.CreateConstGEP1_32(pair, all, first_ + argument.getArgNo());
        auto* value =
            b.CreateLoad(pair->getElementType(field), b.CreateStructGEP(pair, parameter, field));
        value->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
        return value;
      };
      LoadedParameter& loaded = parameters_[first_ + argument.getArgNo()];
      loaded.address = load(0);
      loaded.bytes = load(1);
      argument.replaceAllUsesWith(loaded.address);
    }
  }

  Status Lower(llvm::CallInst* call) {
    llvm::IRBuilder<> b(call);
    llvm::StringRef name = PrimitiveName(*call);
    Value* thread = new_->getArg(0);
    Value* result = nullptr;
    auto run = [&](llvm::StringRef function, std::vector<Value*> args) {
      args.insert(args.begin(), thread);
      std::vector<llvm::Type*> types;
      for (Value* a : args) types.push_back(a->getType());
      b.CreateCall(EmulatorFunction(module_, function, types), args);
    };
    if (name == "thread") {
      result = LoadThreadField(b, *new_, KILN_EMULATED_THREAD);
    } else if (name == "block") {
      result = LoadThreadField(b, *new_, KILN_EMULATED_BLOCK);
    } else if (name == "shared") {
      result = b.CreateAddrSpaceCast(LoadThreadField(b, *new_, KILN_EMULATED_SHARED),
                                     b.getPtrTy(kSharedSpace));
    } else if (name == "barrier") {
      run("barrier", {b.getInt32(++facts_.sites)});
    } else if (name == "fence") {
      // Threads of a block run in turns, and threads of different blocks interact by atomics only.
      b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
      run("fence", {});
    } else if (int64_t size = CopySize(name)) {
      MemoryAccess access;
      access.bytes = access.align = size;
      access.kind = KILN_ACCESS_COPY;
      access.object = sources_.at(call);
      run("copy", {b.CreateAddrSpaceCast(call->getArgOperand(0), b.getPtrTy()),
                   b.CreateAddrSpaceCast(call->getArgOperand(1), b.getPtrTy()),
                   call->getArgOperand(2), b.getInt64(access.Encoded())});
    } else if (name == "copy_commit") {
      run("commit", {});
    } else if (name == "copy_wait") {
      run("wait", {call->getArgOperand(0)});
    } else {
      KILN_ASSIGN_OR_RETURN(result, LowerWarp(b, call, name));
    }
    if (result && !call->getType()->isVoidTy()) call->replaceAllUsesWith(result);
    call->eraseFromParent();
    return OkStatus();
  }

  // Operands and results go through the thread's words.
  Result<Value*> LowerWarp(llvm::IRBuilder<>& b, llvm::CallInst* call, llvm::StringRef name) {
    auto found = std::find_if(std::begin(kWarpOperations), std::end(kWarpOperations),
                              [&](const WarpOperation& w) { return name == w.name; });
    if (found == std::end(kWarpOperations)) return Internal("no GPU primitive ", name.str());
    llvm::StructType* type = EmulatedThreadType(context_);
    auto word = [&](unsigned i) {
      return b.CreateGEP(type, new_->getArg(0),
                         {b.getInt32(0), b.getInt32(KILN_EMULATED_WORD), b.getInt32(i)});
    };
    unsigned place = 0;
    for (Value* operand : call->args()) {
      if (operand->getType()->isIntegerTy(1)) operand = b.CreateZExt(operand, b.getInt32Ty());
      b.CreateAlignedStore(operand, word(place), llvm::Align(4));
      place += operand->getType()->isPointerTy() || operand->getType()->isDoubleTy() ? 2 : 1;
    }
    auto callee = EmulatorFunction(module_, "warp", {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()});
    b.CreateCall(callee, {new_->getArg(0), b.getInt32(static_cast<uint32_t>(found->operation)),
                          b.getInt32(++facts_.sites)});
    llvm::Type* result = call->getType();
    if (result->isVoidTy()) return nullptr;
    auto* parts = llvm::dyn_cast<llvm::StructType>(result);
    if (!parts) return b.CreateAlignedLoad(result, word(0), llvm::Align(4));
    Value* all = llvm::PoisonValue::get(parts);
    for (unsigned i = 0; i < parts->getNumElements(); ++i) {
      llvm::Type* part = parts->getElementType(i);
      unsigned width = part->isDoubleTy() ? 2 : 1;
      all = b.CreateInsertValue(all, b.CreateAlignedLoad(part, word(i * width), llvm::Align(4)), i);
    }
    return all;
  }

  llvm::Function& old_;
  const unsigned first_;
  const bool small_;
  KernelFacts& facts_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::Function* new_ = nullptr;
  std::vector<MemoryAccess> accesses_;
  std::vector<llvm::CallInst*> primitives_;
  std::map<llvm::CallInst*, int64_t> sources_;  // what asynchronous copies read
  std::vector<LoadedParameter> parameters_;     // by their numbers in the kernel
};

// The kiln_emulated_kernel.
void Describe(llvm::Function& kernel, size_t parameters, const KernelFacts& facts) {
  llvm::IRBuilder<> b(kernel.getContext());
  auto i32 = [&](int64_t n) { return b.getInt32(static_cast<uint32_t>(n)); };
  llvm::Constant* all = llvm::ConstantStruct::getAnon(
      {&kernel, i32(static_cast<int64_t>(parameters)), i32(facts.waits), i32(facts.shared_granule),
       i32(facts.global_granule), b.getInt64(facts.written)});
  new llvm::GlobalVariable(*kernel.getParent(), all->getType(), true,
                           llvm::GlobalValue::ExternalLinkage, all, kernel.getName() + ".kernel");
}

// A kernel and its parts, as functions of one thread.
Status LowerKernel(llvm::Function& kernel, bool small) {
  KernelFacts facts;
  const size_t parameters = kernel.arg_size();
  const std::vector<llvm::CallInst*> calls = PartCalls(kernel);
  std::set<const llvm::Function*> parts;
  std::deque<FunctionLowering> functions;
  functions.emplace_back(kernel, 0, small, facts);
  for (llvm::CallInst* call : calls) {
    auto* first = llvm::cast<llvm::Argument>(call->getArgOperand(0));
    functions.emplace_back(*call->getCalledFunction(), first->getArgNo(), small, facts);
    parts.insert(call->getCalledFunction());
    KILN_RETURN_IF_ERROR(functions.back().Find({}));
  }
  KILN_RETURN_IF_ERROR(functions.front().Find(parts));
  for (FunctionLowering& f : functions) KILN_RETURN_IF_ERROR(f.MoveBody());
  llvm::Function& main = functions.front().new_function();
  for (size_t k = 0; k < calls.size(); ++k) {
    llvm::IRBuilder<>(calls[k]).CreateCall(&functions[k + 1].new_function(), {main.getArg(0)});
    calls[k]->eraseFromParent();
  }
  for (FunctionLowering& f : functions) KILN_RETURN_IF_ERROR(f.Rewrite());
  Describe(main, parameters, facts);
  return OkStatus();
}

// Functions called only by the original kernels.
void EraseUnused(llvm::Module& module) {
  for (bool changed = true; changed;) {
    changed = false;
    for (llvm::Function& f : llvm::make_early_inc_range(module)) {
      bool mine = f.hasLocalLinkage() || f.getName().starts_with("kiln.gpu.");
      if (!mine || !f.use_empty()) continue;
      f.eraseFromParent();
      changed = true;
    }
  }
}

}  // namespace

Status LowerPrimitivesToEmulator(llvm::Module& module, std::span<llvm::Function* const> kernels,
                                 int sm, bool small) {
  KILN_RETURN_IF_ERROR(CheckPrimitives(module, sm));
  // It names the kernels as they were, for NVPTX.
  if (auto* annotations = module.getNamedMetadata("nvvm.annotations")) {
    annotations->eraseFromParent();
  }
  Inliner inliner;
  for (llvm::Function* kernel : kernels) {
    kernel->setLinkage(llvm::Function::ExternalLinkage);
    KILN_RETURN_IF_ERROR(inliner.InlineInto(*kernel, true));
    for (llvm::CallInst* call : PartCalls(*kernel)) {
      KILN_RETURN_IF_ERROR(inliner.InlineInto(*call->getCalledFunction(), false));
    }
  }
  EraseUnused(module);
  PromoteStackSlots(module);
  for (llvm::Function& f : module) MakeNansEqual(f);
  for (llvm::Function* kernel : kernels) KILN_RETURN_IF_ERROR(LowerKernel(*kernel, small));
  EraseUnused(module);
  PromoteStackSlots(module);
  return OkStatus();
}

}  // namespace kiln::codegen
