#include "codegen/cpu/entry.h"

#include <algorithm>
#include <functional>
#include <span>

#include "base/strings.h"
#include "codegen/control_flow.h"
#include "codegen/cpu/entry_functions.h"
#include "codegen/cpu/nest.h"
#include "codegen/poll.h"
#include "frame/frame.h"
#include "llvm/IR/IRBuilder.h"
#include "program/frozen.h"
#include "program/steps.h"

namespace kiln::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using Builder = llvm::IRBuilder<>;

// Up to so much is copied without a kernel.
constexpr int64_t kInlineCopyBytes = 512;

class Entry {
 public:
  Entry(LlvmSession& session, const LoweredProgram& lowered, const target::Cpu& cpu,
        llvm::Function* function)
      : session_(session),
        lowered_(lowered),
        cpu_(cpu),
        function_(function),
        bases_(lowered.program.allocations.size(), nullptr),
        start_(BasicBlock::Create(session.context(), "entry", function)),
        b_(start_) {}

  // The program, or a part of it.
  Status Emit(const program::Steps& steps) {
    EmitStart(MostArgs(steps));
    KILN_RETURN_IF_ERROR(EmitSteps(steps));
    b_.CreateRet(b_.getInt32(0));
    return OkStatus();
  }

  // One loop, in a function that is optimised.
  Status EmitLoopFunction(const program::While& loop) {
    EmitStart(std::max(MostArgs(loop.condition), MostArgs(loop.body)));
    BasicBlock* first = NewBlock(b_, "first");
    hoists_ = b_.CreateBr(first);
    b_.SetInsertPoint(first);
    KILN_RETURN_IF_ERROR(EmitLoop(loop));
    b_.CreateRet(b_.getInt32(0));
    return OkStatus();
  }

 private:
  void EmitStart(uint64_t most_args) {
    frame_ = function_->getArg(0);
    buffers_ = Field(KILN_FRAME_BUFFERS);
    table_ = Field(KILN_FRAME_TABLE);
    trace_ = b_.CreateIsNotNull(Field(KILN_FRAME_TRACE));
    args_ = b_.CreateAlloca(llvm::ArrayType::get(b_.getPtrTy(), most_args));
  }

  // --- The frame

  Value* Field(int index) {
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(
                                            b_.getPtrTy(), frame_, static_cast<uint64_t>(index)));
  }

  Value* CallTable(int index, llvm::Type* result, std::vector<Value*> args) {
    std::vector<llvm::Type*> types;
    for (Value* a : args) types.push_back(a->getType());
    Value* slot =
        b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), table_, static_cast<uint64_t>(index));
    return b_.CreateCall(llvm::FunctionType::get(result, types, false),
                         b_.CreateLoad(b_.getPtrTy(), slot), args);
  }

  Value* LoadBase(Builder& b, program::AllocationId allocation) {
    return b.CreateLoad(b.getPtrTy(),
                        b.CreateConstInBoundsGEP1_64(b.getPtrTy(), buffers_, allocation.index()));
  }

  // In a function of a loop it is loaded before the loop.
  Value* Base(program::AllocationId allocation) {
    if (!hoists_) return LoadBase(b_, allocation);
    Value*& base = bases_[allocation];
    if (!base) {
      Builder before(hoists_);
      base = LoadBase(before, allocation);
    }
    return base;
  }

  Value* Address(const program::Slice& slice) {
    Value* base = Base(slice.allocation);
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, static_cast<uint64_t>(slice.offset));
  }

  void StoreArg(size_t index, Value* pointer) {
    b_.CreateStore(pointer, b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), args_, index));
  }

  void StoreArgs(const std::vector<program::Slice>& slices) {
    for (size_t i = 0; i < slices.size(); ++i) StoreArg(i, Address(slices[i]));
  }

  // One array serves all steps; a copy's kernel takes three.
  static uint64_t MostArgs(const program::Steps& steps) {
    uint64_t most = 3;
    program::ForEachStep(steps, [&](const program::Step& step, bool) {
      uint64_t args = 0;
      program::ForEachSlice(step, [&](const program::Slice&) { ++args; });
      most = std::max(most, args);
    });
    return most;
  }

  // --- Control

  // Leaves with `code` unless it is 0.
  void ReturnIfError(Value* code) {
    EmitIf(b_, b_.CreateIsNotNull(code), [&] { b_.CreateRet(code); },
           {.then = "failed", .after = "fine"});
  }

  Value* Text(std::string_view text) {
    return b_.CreateGlobalString(llvm::StringRef(text.data(), text.size()), "", 0,
                                 &session_.module());
  }

  void PollCancel() {
    EmitPoll(b_, frame_, stop_, [&](Value* code) { b_.CreateRet(code); });
  }

  // --- Steps

  Status EmitSteps(const program::Steps& steps) {
    for (auto step = steps.begin(); step != steps.end();) {
      auto after = std::find_if_not(step, steps.end(), [](const program::Step& s) {
        const auto* launch = std::get_if<program::Launch>(&s.what);
        return launch && !launch->inlined;
      });
      if (after != step) {
        KILN_RETURN_IF_ERROR(EmitLaunches(std::span(step, after)));
        step = after;
        continue;
      }
      KILN_RETURN_IF_ERROR(std::visit([this](const auto& s) { return EmitStep(s); }, step->what));
      ++step;
    }
    return OkStatus();
  }

  // Launches are tables, which the library reads: code for each would take long to compile.
  Status EmitLaunches(std::span<const program::Step> steps) {
    std::vector<llvm::Constant*> kernels;
    std::vector<uint64_t> words;
    for (const program::Step& step : steps) {
      const auto& launch = std::get<program::Launch>(step.what);
      const kernel::ScheduledKernel& kernel = lowered_.KernelOf(launch);
      const std::optional<kernel::CpuItems> items = kernel::ItemsOf(kernel.schedule);
      if (!items) return Internal("kernel ", kernel.kernel.name, " has no schedule for a CPU");
      kernels.push_back(KernelOf(launch));
      AddLaunchData(launch, *items, words);
    }
    llvm::Constant* table =
        llvm::ConstantArray::get(llvm::ArrayType::get(b_.getPtrTy(), kernels.size()), kernels);
    auto* variable =
        new llvm::GlobalVariable(session_.module(), table->getType(), /*isConstant=*/true,
                                 llvm::GlobalValue::PrivateLinkage, table);
    ReturnIfError(CallTable(
        KILN_TABLE_LAUNCH, b_.getInt32Ty(),
        {frame_, args_, variable, LaunchData(session_, words), b_.getInt64(kernels.size())}));
    return OkStatus();
  }

  llvm::Constant* KernelOf(const program::Launch& launch) {
    llvm::FunctionCallee callee = session_.module().getOrInsertFunction(
        KernelSymbol(lowered_, launch.kernel), session_.KernelType());
    return llvm::cast<llvm::Constant>(callee.getCallee());
  }

  // A loop in a function of its own is traced as a whole.
  void Traced(program::LaunchId id, const std::function<void()>& step) {
    auto call = [&](int function) {
      if (!id.valid()) return;
      EmitIf(b_, trace_, [&] {
        CallTable(function, b_.getVoidTy(),
                  {frame_, b_.getInt32(static_cast<uint32_t>(id.value()))});
      });
    };
    call(KILN_TABLE_TRACE_BEGIN);
    step();
    call(KILN_TABLE_TRACE_END);
  }

  // An inlined one: EmitLaunches has the others.
  Status EmitStep(const program::Launch& launch) {
    const kernel::ScheduledKernel& kernel = lowered_.KernelOf(launch);
    std::vector<Value*> args;
    for (const program::Slice& slice : launch.args) args.push_back(Address(slice));
    const auto& nest = std::get<kernel::CpuNestSchedule>(kernel.schedule);
    return EmitNestInline(b_, std::move(args), kernel.kernel, nest, cpu_);
  }

  Status EmitStep(const program::Copy& copy) {
    if (copy.from.bytes != copy.to.bytes) return Internal("a copy between slices of two sizes");
    int64_t bytes = copy.from.bytes;
    if (bytes == 0) return OkStatus();
    Value *to = Address(copy.to), *from = Address(copy.from);
    if (bytes <= kInlineCopyBytes) {
      // An argument of the user's may lie anywhere.
      b_.CreateMemCpyInline(to, llvm::Align(program::kAlignment), from, llvm::Align(1),
                            b_.getInt64(static_cast<uint64_t>(bytes)));
      return OkStatus();
    }
    StoreArg(0, to);
    StoreArg(1, from);
    StoreArg(2, b_.CreateIntToPtr(b_.getInt64(static_cast<uint64_t>(bytes)), b_.getPtrTy()));
    llvm::Function* kernel = CopyKernel(session_);
    Value* items = b_.getInt64(static_cast<uint64_t>(CopyItems(bytes)));
    if (CopyItems(bytes) == 1) {
      b_.CreateCall(kernel, {frame_, args_, b_.getInt64(0), items});
    } else {
      CallTable(KILN_TABLE_PARALLEL_FOR, b_.getVoidTy(),
                {frame_, kernel, args_, items, items, b_.getInt64(1)});
    }
    return OkStatus();
  }

  Status EmitStep(const program::HostCall& call) {
    StoreArgs(call.args);
    Traced(call.id, [&] {
      ReturnIfError(CallTable(KILN_TABLE_CALL, b_.getInt32Ty(),
                              {frame_, b_.getInt32(static_cast<uint32_t>(call.id.value())), args_,
                               Text(call.config), b_.getInt64(call.config.size())}));
    });
    PollCancel();
    return OkStatus();
  }

  // A loop with code of kernels in it is a function of its own: the entry's code is not optimised.
  Status EmitStep(const program::While& loop) {
    if (hoists_) return EmitLoop(loop);
    if (!loop.fused) {
      Status status;
      Traced(loop.id, [&] { status = EmitLoop(loop); });
      return status;
    }
    std::string name = Cat("loop", loop.id, ".", lowered_.program.launches[loop.id].kernel_name);
    llvm::Function* function = session_.AddFunction(session_.EntryType(), name, false);
    KILN_RETURN_IF_ERROR(Entry(session_, lowered_, cpu_, function).EmitLoopFunction(loop));
    Traced(loop.id, [&] { ReturnIfError(b_.CreateCall(function, {frame_})); });
    return OkStatus();
  }

  Status EmitLoop(const program::While& loop) {
    Status status;
    auto condition = [&](const Values&) {
      PollCancel();
      status = EmitSteps(loop.condition);
      return b_.CreateIsNotNull(b_.CreateLoad(b_.getInt8Ty(), Address(loop.predicate)));
    };
    auto body = [&](Values&) {
      if (status.ok()) status = EmitSteps(loop.body);
    };
    EmitWhile(b_, {}, condition, body, {.body = "body", .after = "done"});
    return status;
  }

  Status EmitStep(const program::Conditional& conditional) {
    size_t count = conditional.branches.size();
    if (count == 0 || (conditional.by_predicate && count != 2)) {
      return Internal("a conditional of ", count, " branches");
    }
    std::vector<BasicBlock*> blocks;
    for (size_t i = 0; i < count; ++i) blocks.push_back(NewBlock(b_, "branch"));
    BasicBlock* after = NewBlock(b_, "joined");
    Value* address = Address(conditional.index);
    if (conditional.by_predicate) {
      Value* predicate = b_.CreateLoad(b_.getInt8Ty(), address);
      b_.CreateCondBr(b_.CreateIsNotNull(predicate), blocks[0], blocks[1]);
    } else {
      llvm::SwitchInst* table =
          b_.CreateSwitch(b_.CreateLoad(b_.getInt32Ty(), address), blocks.back());
      for (size_t i = 0; i + 1 < count; ++i) {
        table->addCase(b_.getInt32(static_cast<uint32_t>(i)), blocks[i]);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      b_.SetInsertPoint(blocks[i]);
      KILN_RETURN_IF_ERROR(EmitSteps(conditional.branches[i]));
      b_.CreateBr(after);
    }
    b_.SetInsertPoint(after);
    return OkStatus();
  }

  LlvmSession& session_;
  const LoweredProgram& lowered_;
  const target::Cpu& cpu_;
  llvm::Function* function_;
  IdVector<program::AllocationId, Value*> bases_;  // as far as they are loaded
  BasicBlock* start_;
  Builder b_;
  llvm::Instruction* hoists_ = nullptr;  // what a loop wants once goes before this
  Value* frame_ = nullptr;
  Value* buffers_ = nullptr;
  Value* table_ = nullptr;
  Value* trace_ = nullptr;
  Value* args_ = nullptr;
  BasicBlock* stop_ = nullptr;  // where cancelled runs end
};

}  // namespace

std::string KernelSymbol(const LoweredProgram& lowered, program::KernelId kernel) {
  return Cat("k", kernel, ".", lowered.kernels[kernel].kernel.name, ".", lowered.program.id);
}

Status EmitEntries(LlvmSession& session, const LoweredProgram& lowered, const target::Cpu& cpu) {
  const program::Program& program = lowered.program;
  auto emit = [&](const std::string& symbol, const program::Steps& steps) {
    llvm::Function* function = session.AddFunction(session.EntryType(), symbol, true);
    MakeQuick(function);  // it runs through once
    return Entry(session, lowered, cpu, function).Emit(steps);
  };
  KILN_RETURN_IF_ERROR(emit(EntrySymbol(program), program.steps));
  if (!program.prologue.empty()) {
    KILN_RETURN_IF_ERROR(emit(PrologueSymbol(program), program.prologue));
  }
  const std::vector<program::FrozenGroup> groups = program::FrozenGroups(program);
  for (size_t g = 0; g < groups.size(); ++g) {
    KILN_RETURN_IF_ERROR(emit(BindingSymbol(program, g), groups[g].steps));
  }
  return OkStatus();
}

}  // namespace kiln::codegen
