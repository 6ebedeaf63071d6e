#include "codegen/cpu/entry_functions.h"

#include "codegen/control_flow.h"
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

// A function under construction.
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

 private:
  llvm::Function* function_;
};

}  // namespace

void AddLaunchData(const program::Launch& launch, const kernel::CpuItems& items,
                   std::vector<uint64_t>& words) {
  size_t first = words.size();
  words.resize(first + KILN_LAUNCH_FIELDS);
  words[first + KILN_LAUNCH_STEP] = static_cast<uint64_t>(launch.id.value());
  words[first + KILN_LAUNCH_ITEMS] = static_cast<uint64_t>(items.count);
  words[first + KILN_LAUNCH_TASKS] = static_cast<uint64_t>(items.count > 0 ? items.max_tasks : 1);
  words[first + KILN_LAUNCH_SLICE] = static_cast<uint64_t>(items.slice());
  words[first + KILN_LAUNCH_FINISH] = items.finish ? 1 : 0;
  words[first + KILN_LAUNCH_OPERANDS] = launch.args.size();
  for (const program::Slice& slice : launch.args) {
    words.push_back(uint64_t{slice.allocation.index()});
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
  end = EmitMin(b, end, size);
  Value* length = b.CreateSub(end, begin);
  Value* whole = b.CreateAdd(begin, b.CreateAnd(length, b.getInt64(~uint64_t{kVectorBytes - 1})));
  auto loop = [&](Value* first, Value* last, llvm::Type* type, int64_t step) {
    llvm::Align align(static_cast<uint64_t>(step));
    auto copy = [&](Value* i) {
      // An argument of the user's may lie anywhere.
      Value* value = b.CreateAlignedLoad(type, b.CreateGEP(b.getInt8Ty(), from, i), llvm::Align(1));
      b.CreateAlignedStore(value, b.CreateGEP(b.getInt8Ty(), to, i), align);
    };
    EmitLoop(b, first, last, step, copy, {.nsw = false});
  };
  loop(begin, whole, llvm::FixedVectorType::get(b.getInt8Ty(), kVectorBytes), kVectorBytes);
  loop(whole, end, b.getInt8Ty(), 1);
  b.CreateRetVoid();
  return f;
}

}  // namespace kiln::codegen
