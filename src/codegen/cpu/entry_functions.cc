#include "codegen/cpu/entry_functions.h"

#include <functional>

#include "codegen/poll.h"
#include "frame/frame.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using Builder = llvm::IRBuilder<>;

constexpr int64_t kCopyItemBytes = 256 << 10;
constexpr int64_t kVectorBytes = 64;

// The data of a launch, in words of 64 bits: these, then an allocation and an offset per operand.
enum LaunchField : uint64_t { kId, kItems, kTasks, kFinish, kOperands, kFields };

// One of these functions under construction.
class Code {
 public:
  explicit Code(llvm::Function* function)
      : b(BasicBlock::Create(function->getContext(), "entry", function)), function_(function) {}

  Builder b;

  Value* Arg(unsigned i) { return function_->getArg(i); }
  Value* Word(Value* words, uint64_t i) {
    return b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), words, i));
  }
  Value* Pointer(Value* pointers, uint64_t i) {
    return b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), pointers, i));
  }
  void CallTable(uint64_t index, std::vector<Value*> args) {
    std::vector<llvm::Type*> types;
    for (Value* a : args) types.push_back(a->getType());
    b.CreateCall(llvm::FunctionType::get(b.getVoidTy(), types, false),
                 Pointer(Pointer(Arg(0), KILN_FRAME_TABLE), index), args);
  }
  void If(Value* condition, const std::function<void()>& then,
          const std::function<void()>& otherwise = {}) {
    BasicBlock *yes = NewBlock("then"), *no = NewBlock("else"), *after = NewBlock("after");
    b.CreateCondBr(condition, yes, no);
    b.SetInsertPoint(yes);
    then();
    b.CreateBr(after);
    b.SetInsertPoint(no);
    if (otherwise) otherwise();
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }
  void ReturnIf(Value* condition, Value* value) {
    BasicBlock *yes = NewBlock("return"), *after = NewBlock("after");
    b.CreateCondBr(condition, yes, after);
    b.SetInsertPoint(yes);
    b.CreateRet(value);
    b.SetInsertPoint(after);
  }
  // for (i = first; i < last; i += step)
  void Loop(Value* first, Value* last, int64_t step, const std::function<void(Value*)>& body) {
    BasicBlock *before = b.GetInsertBlock(), *inside = NewBlock("loop"), *after = NewBlock("after");
    b.CreateCondBr(b.CreateICmpSLT(first, last), inside, after);
    b.SetInsertPoint(inside);
    llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(first, before);
    body(i);
    Value* next = b.CreateAdd(i, b.getInt64(static_cast<uint64_t>(step)));
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpSLT(next, last), inside, after);
    b.SetInsertPoint(after);
  }

 private:
  BasicBlock* NewBlock(const char* name) {
    return BasicBlock::Create(function_->getContext(), name, function_);
  }

  llvm::Function* function_;
};

}  // namespace

llvm::Function* LaunchFunction(LlvmSession& session) {
  constexpr const char* kName = "kiln.launch";
  if (llvm::Function* known = session.module().getFunction(kName)) return known;
  llvm::Type* pointer = llvm::PointerType::getUnqual(session.context());
  llvm::Function* f =
      session.AddFunction(llvm::FunctionType::get(llvm::Type::getInt32Ty(session.context()),
                                                  {pointer, pointer, pointer, pointer}, false),
                          kName, false);
  Code code(f);
  Builder& b = code.b;
  Value *frame = code.Arg(0), *args = code.Arg(1), *kernel = code.Arg(2), *data = code.Arg(3);
  Value* buffers = code.Pointer(frame, KILN_FRAME_BUFFERS);
  code.Loop(b.getInt64(0), code.Word(data, kOperands), 1, [&](Value* i) {
    Value* at = b.CreateAdd(b.CreateShl(i, b.getInt64(1)), b.getInt64(kFields));
    Value* operand = b.CreateInBoundsGEP(b.getInt64Ty(), data, at);
    Value* slot = b.CreateInBoundsGEP(b.getPtrTy(), buffers, code.Word(operand, 0));
    Value* base = b.CreateLoad(b.getPtrTy(), slot);
    Value* address = b.CreateInBoundsGEP(b.getInt8Ty(), base, code.Word(operand, 1));
    b.CreateStore(address, b.CreateInBoundsGEP(b.getPtrTy(), args, i));
  });
  Value* id = b.CreateTrunc(code.Word(data, kId), b.getInt32Ty());
  Value* traced = b.CreateAnd(b.CreateIsNotNull(code.Pointer(frame, KILN_FRAME_TRACE)),
                              b.CreateICmpSGE(id, b.getInt32(0)));
  code.If(traced, [&] { code.CallTable(KILN_TABLE_TRACE_BEGIN, {frame, id}); });
  Value *items = code.Word(data, kItems), *tasks = code.Word(data, kTasks);
  auto run = [&](Value* begin, Value* end) {
    b.CreateCall(session.KernelType(), kernel, {frame, args, begin, end});
  };
  code.If(
      b.CreateICmpSLE(tasks, b.getInt64(1)),
      [&] { code.If(b.CreateICmpSGT(items, b.getInt64(0)), [&] { run(b.getInt64(0), items); }); },
      [&] {
        code.CallTable(KILN_TABLE_PARALLEL_FOR, {frame, kernel, args, items, tasks});
      });
  code.If(b.CreateICmpNE(code.Word(data, kFinish), b.getInt64(0)),
          [&] { run(items, b.CreateAdd(items, b.getInt64(1))); });
  code.If(traced, [&] { code.CallTable(KILN_TABLE_TRACE_END, {frame, id}); });
  EmitPoll(b, frame, [&](Value* error) { b.CreateRet(error); });
  b.CreateRet(b.getInt32(0));
  return f;
}

llvm::Function* LaunchesFunction(LlvmSession& session) {
  constexpr const char* kName = "kiln.launches";
  if (llvm::Function* known = session.module().getFunction(kName)) return known;
  llvm::Function* launch = LaunchFunction(session);
  llvm::Type* pointer = llvm::PointerType::getUnqual(session.context());
  llvm::Type* i64 = llvm::Type::getInt64Ty(session.context());
  llvm::Function* f =
      session.AddFunction(llvm::FunctionType::get(llvm::Type::getInt32Ty(session.context()),
                                                  {pointer, pointer, pointer, pointer, i64}, false),
                          kName, false);
  Code code(f);
  Builder& b = code.b;
  Value* next = b.CreateAlloca(pointer);
  b.CreateStore(code.Arg(3), next);
  code.Loop(b.getInt64(0), code.Arg(4), 1, [&](Value* i) {
    Value* kernel = b.CreateLoad(pointer, b.CreateInBoundsGEP(pointer, code.Arg(2), i));
    Value* data = b.CreateLoad(pointer, next);
    Value* error = b.CreateCall(launch, {code.Arg(0), code.Arg(1), kernel, data});
    code.ReturnIf(b.CreateIsNotNull(error), error);
    Value* size =
        b.CreateAdd(b.CreateShl(code.Word(data, kOperands), b.getInt64(1)), b.getInt64(kFields));
    b.CreateStore(b.CreateInBoundsGEP(i64, data, size), next);
  });
  b.CreateRet(b.getInt32(0));
  return f;
}

void AddLaunchData(const plan::Launch& launch, const plan::ScheduledKernel& kernel,
                   std::vector<uint64_t>& words) {
  size_t first = words.size();
  words.resize(first + kFields);
  words[first + kId] = static_cast<uint64_t>(launch.id);
  words[first + kItems] = static_cast<uint64_t>(kernel.items);
  words[first + kTasks] = static_cast<uint64_t>(kernel.items > 0 ? kernel.max_tasks : 1);
  words[first + kFinish] = kernel.finish ? 1 : 0;
  words[first + kOperands] = launch.args.size();
  for (const plan::Slice& slice : launch.args) {
    words.push_back(static_cast<uint64_t>(slice.allocation));
    words.push_back(static_cast<uint64_t>(slice.offset));
  }
}

llvm::Constant* LaunchData(LlvmSession& session, const std::vector<uint64_t>& words) {
  llvm::Constant* value = llvm::ConstantDataArray::get(session.context(), words);
  return new llvm::GlobalVariable(session.module(), value->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::PrivateLinkage, value);
}

int64_t CopyItems(int64_t bytes) { return (bytes + kCopyItemBytes - 1) / kCopyItemBytes; }

llvm::Function* CopyKernel(LlvmSession& session) {
  constexpr const char* kName = "kiln.copy";
  if (llvm::Function* known = session.module().getFunction(kName)) return known;
  llvm::Function* f = session.AddFunction(session.KernelType(), kName, false);
  Code code(f);
  Builder& b = code.b;
  Value *to = code.Pointer(code.Arg(1), 0), *from = code.Pointer(code.Arg(1), 1);
  Value *size = code.Word(code.Arg(1), 2), *item = b.getInt64(kCopyItemBytes);
  Value* begin = b.CreateMul(code.Arg(2), item);
  Value* end = b.CreateMul(code.Arg(3), item);
  end = b.CreateSelect(b.CreateICmpSLT(end, size), end, size);
  Value* length = b.CreateSub(end, begin);
  Value* whole = b.CreateAdd(begin, b.CreateAnd(length, b.getInt64(~uint64_t{kVectorBytes - 1})));
  auto loop = [&](Value* first, Value* last, llvm::Type* type, int64_t step) {
    llvm::Align align(static_cast<uint64_t>(step));
    code.Loop(first, last, step, [&](Value* i) {
      // An argument of the user's may lie anywhere.
      Value* value = b.CreateAlignedLoad(type, b.CreateGEP(b.getInt8Ty(), from, i), llvm::Align(1));
      b.CreateAlignedStore(value, b.CreateGEP(b.getInt8Ty(), to, i), align);
    });
  };
  loop(begin, whole, llvm::FixedVectorType::get(b.getInt8Ty(), kVectorBytes), kVectorBytes);
  loop(whole, end, b.getInt8Ty(), 1);
  b.CreateRetVoid();
  return f;
}

}  // namespace kiln::codegen
