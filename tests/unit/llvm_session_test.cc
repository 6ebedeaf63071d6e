// What LLVM's back end must not do to the process that it lives in.

#include "codegen/llvm_session.h"

#include <gtest/gtest.h>

#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {
namespace {

// Half of the mask is false whatever the guard is: LLVM 19 makes a plain load of that half, of a
// size that it does not know, and a pass that asks for the size ends the process.
TEST(LlvmSession, CopiesThroughMasksDoNotEndTheProcess) {
  auto session = LlvmSession::ForCpu("copy", target::HostCpuWithVectors(32).cpu);
  ASSERT_TRUE(session.ok()) << session.status().ToString();
  llvm::Function* function = (*session)->AddFunction((*session)->KernelType(), "copy", true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create((*session)->context(), "entry", function));
  auto* type = llvm::FixedVectorType::get(b.getInt32Ty(), 16);
  std::vector<llvm::Constant*> lanes(16, b.getFalse());
  for (size_t i = 8; i < 16; ++i) lanes[i] = b.getTrue();
  llvm::Value* guard = b.CreateICmpULT(function->getArg(2), b.getInt64(2));
  llvm::Value* mask = b.CreateAnd(llvm::ConstantVector::get(lanes), b.CreateVectorSplat(16, guard));
  llvm::Align align(4);
  llvm::Value* value = b.CreateMaskedLoad(type, function->getArg(0), align, mask,
                                          llvm::Constant::getNullValue(type));
  b.CreateAlignedStore(value, function->getArg(1), align);
  b.CreateRetVoid();
  EXPECT_EQ((*session)->Verify().ToString(), "OK");
  auto object = (*session)->Emit();
  ASSERT_TRUE(object.ok()) << object.status().ToString();
  EXPECT_GT(object->size(), 0u);
}

}  // namespace
}  // namespace kiln::codegen
