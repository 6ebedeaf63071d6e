#include "codegen/cpu/bundle.h"

#include "codegen/control_flow.h"
#include "codegen/cpu/entry.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;

// void part(frame, args, begin, end, kernel, first, weight, items): runs those of a part's items
// that begin in [begin, end), the first beginning at `first`, and each being `weight` long.
llvm::Function* PartFunction(LlvmSession& session) {
  constexpr const char* kName = "kiln.part";
  if (llvm::Function* known = session.module().getFunction(kName)) return known;
  llvm::LLVMContext& context = session.context();
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Function* f = session.AddFunction(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                              {pointer, pointer, i64, i64, pointer, i64, i64, i64}, false),
      kName, false);
  llvm::IRBuilder<> b(BasicBlock::Create(context, "entry", f));
  Value *first = f->getArg(5), *weight = f->getArg(6), *items = f->getArg(7);
  // The number of the part's items that begin before an item of the bundle.
  auto before = [&](Value* item) {
    Value* offset = EmitMax(b, b.CreateSub(item, first), b.getInt64(0));
    Value* count = b.CreateUDiv(b.CreateAdd(offset, b.CreateSub(weight, b.getInt64(1))), weight);
    return EmitMin(b, count, items);
  };
  Value *from = before(f->getArg(2)), *to = before(f->getArg(3));
  auto run = [&] {
    b.CreateCall(session.KernelType(), f->getArg(4), {f->getArg(0), f->getArg(1), from, to});
  };
  EmitIf(b, b.CreateICmpSLT(from, to), run, {.then = "run", .after = "done"});
  b.CreateRetVoid();
  return f;
}

}  // namespace

void EmitBundle(LlvmSession& session, llvm::Function* function, const LoweredProgram& lowered,
                const kernel::CpuBundle& bundle) {
  llvm::IRBuilder<> b(BasicBlock::Create(session.context(), "entry", function));
  auto number = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
  for (const kernel::CpuBundle::Part& part : bundle.parts) {
    llvm::FunctionCallee kernel = session.module().getOrInsertFunction(
        KernelSymbol(lowered, part.kernel), session.KernelType());
    Value* args = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), function->getArg(1),
                                               static_cast<uint64_t>(part.first_arg));
    const auto& nest = std::get<kernel::CpuNestSchedule>(lowered.kernels[part.kernel].schedule);
    b.CreateCall(
        PartFunction(session),
        {function->getArg(0), args, function->getArg(2), function->getArg(3), kernel.getCallee(),
         number(part.first_item), number(part.weight), number(nest.items)});
  }
  b.CreateRetVoid();
}

}  // namespace kiln::codegen
