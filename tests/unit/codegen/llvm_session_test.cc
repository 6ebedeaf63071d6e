// What LLVM's back end must not do to the process that it lives in; quick functions.

#include "codegen/llvm_session.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "support/jit.h"

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

using Function = int64_t (*)(int64_t);

llvm::Function* IntegerFunction(LlvmSession& session, const std::string& name, bool external) {
  llvm::Type* i64 = llvm::Type::getInt64Ty(session.context());
  return session.AddFunction(llvm::FunctionType::get(i64, {i64}, false), name, external);
}

// Each of two sessions with an optimised function, a quick one and another one that is not visible
// outside: they call each other, and read a table, one at an address within it.
TEST(LlvmSession, QuickFunctionsUseTheOthers) {
  std::vector<std::string> objects;
  for (const std::string name : {"first", "second"}) {
    auto made = LlvmSession::ForCpu(name, target::HostCpu().cpu);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    LlvmSession& session = **made;
    llvm::IRBuilder<> b(session.context());
    auto begin = [&](llvm::Function* f) {
      b.SetInsertPoint(llvm::BasicBlock::Create(session.context(), "entry", f));
      return f->getArg(0);
    };
    int64_t base = name == "first" ? 100 : 200;
    std::vector<uint64_t> numbers;
    for (int64_t n : {1, 2, 3, 4}) numbers.push_back(static_cast<uint64_t>(base + n));
    llvm::Constant* data = llvm::ConstantDataArray::get(session.context(), numbers);
    auto* table = new llvm::GlobalVariable(session.module(), data->getType(), true,
                                           llvm::GlobalValue::PrivateLinkage, data);
    auto element = [&](uint64_t i) {
      llvm::Constant* address =
          llvm::ConstantExpr::getInBoundsGetElementPtr(b.getInt64Ty(), table, b.getInt64(i));
      return b.CreateLoad(b.getInt64Ty(), address);
    };
    llvm::Function* twice = IntegerFunction(session, "twice", false);
    llvm::Value* x = begin(twice);
    b.CreateRet(b.CreateAdd(b.CreateAdd(x, x), element(1)));
    llvm::Function* quick = IntegerFunction(session, "quick", false);
    MakeQuick(quick);
    x = begin(quick);
    b.CreateRet(b.CreateAdd(b.CreateCall(twice, {x}), element(3)));
    llvm::Function* outer = IntegerFunction(session, name, true);
    x = begin(outer);
    b.CreateRet(b.CreateAdd(b.CreateCall(quick, {x}), b.getInt64(1)));
    llvm::Function* quick_outer = IntegerFunction(session, name + ".quick", true);
    MakeQuick(quick_outer);
    x = begin(quick_outer);
    b.CreateRet(b.CreateCall(outer, {x}));
    llvm::Constant* functions =
        llvm::ConstantArray::get(llvm::ArrayType::get(b.getPtrTy(), 2), {outer, quick_outer});
    auto* function_table = new llvm::GlobalVariable(session.module(), functions->getType(), true,
                                                    llvm::GlobalValue::PrivateLinkage, functions);
    llvm::Function* by_table = IntegerFunction(session, name + ".by_table", true);
    MakeQuick(by_table);
    x = begin(by_table);
    llvm::Value* second = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), function_table, 1);
    b.CreateRet(b.CreateCall(by_table->getFunctionType(), b.CreateLoad(b.getPtrTy(), second), {x}));
    EXPECT_EQ(session.Verify().ToString(), "OK");
    for (auto emit : {&LlvmSession::EmitQuick, &LlvmSession::Emit}) {
      auto object = (session.*emit)();
      ASSERT_TRUE(object.ok()) << object.status().ToString();
      objects.push_back(*std::move(object));
    }
  }
  auto jit = testing::Jit::Load(objects);
  ASSERT_TRUE(jit.ok()) << jit.status().ToString();
  for (const char* symbol :
       {"first", "first.quick", "first.by_table", "second", "second.quick", "second.by_table"}) {
    auto* function = reinterpret_cast<Function>((*jit)->Lookup(symbol));
    ASSERT_NE(function, nullptr) << symbol;
    int64_t base = symbol[0] == 'f' ? 100 : 200;
    EXPECT_EQ(function(5), 10 + (base + 2) + (base + 4) + 1) << symbol;
  }
}

// Adds 1 to its argument, `count` times, each time by an instruction that stays.
void AddLongFunction(LlvmSession& session, const std::string& name, int count) {
  llvm::Function* f = IntegerFunction(session, name, true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(session.context(), "entry", f));
  llvm::Value* x = f->getArg(0);
  for (int i = 0; i < count; ++i) x = b.CreateAdd(x, b.getInt64(1));
  b.CreateRet(x);
}

TEST(LlvmSession, LargeFunctionsAreQuick) {
  for (bool all : {false, true}) {
    auto made = LlvmSession::ForCpu("large", target::HostCpu().cpu);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    LlvmSession& session = **made;
    AddLongFunction(session, "small", 9'000);
    auto is_quick = session.MakeLargeQuick();
    ASSERT_TRUE(is_quick.ok()) << is_quick.status().ToString();
    EXPECT_FALSE(*is_quick);
    AddLongFunction(session, "large", 50'000);
    is_quick = session.MakeLargeQuick();
    ASSERT_TRUE(is_quick.ok()) << is_quick.status().ToString();
    EXPECT_TRUE(*is_quick);
    EXPECT_FALSE(session.module().getFunction("small")->hasOptNone());
    EXPECT_TRUE(session.module().getFunction("large")->hasOptNone());
    std::vector<std::string> objects;
    if (all) {
      objects.push_back(session.EmitAllQuick().value());
    } else {
      objects.push_back(session.EmitQuick().value());
      objects.push_back(session.Emit().value());
    }
    auto jit = testing::Jit::Load(objects);
    ASSERT_TRUE(jit.ok()) << jit.status().ToString();
    EXPECT_EQ(reinterpret_cast<Function>((*jit)->Lookup("small"))(5), 9'005);
    EXPECT_EQ(reinterpret_cast<Function>((*jit)->Lookup("large"))(5), 50'005);
  }
}

TEST(LlvmSession, NoFunctionIsTooLargeForLlvm) {
  auto made = LlvmSession::ForCpu("huge", target::HostCpu().cpu);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  AddLongFunction(**made, "huge", 100'000);
  EXPECT_EQ((*made)->MakeLargeQuick().status().ToString(),
            "RESOURCE_EXHAUSTED: the code of huge would have 100001 LLVM instructions; the most is "
            "100000");
}

}  // namespace
}  // namespace kiln::codegen
