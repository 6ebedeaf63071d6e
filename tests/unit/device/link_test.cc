// What the loader refuses: code that wants what neither it nor the closed table has, objects that
// are none, and calls of functions that nobody registered.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/llvm_session.h"
#include "device/cpu/executable.h"
#include "llvm/IR/IRBuilder.h"
#include "program/steps.h"

namespace kiln {
namespace {

// An object whose function `defined` calls `wanted`.
std::string ObjectThatCalls(const std::string& defined, const std::string& wanted) {
  auto session = codegen::LlvmSession::ForCpu("caller", target::HostCpu().cpu);
  EXPECT_TRUE(session.ok()) << session.status().ToString();
  llvm::Function* function = (*session)->AddFunction((*session)->EntryType(), defined, true);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create((*session)->context(), "entry", function));
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), false);
  b.CreateRet(b.CreateCall((*session)->module().getOrInsertFunction(wanted, type)));
  auto object = (*session)->Emit();
  EXPECT_TRUE(object.ok()) << object.status().ToString();
  return *object;
}

class Loading : public ::testing::Test {
 protected:
  Status Load(std::vector<std::string> objects) {
    program::Artefact artefact;
    artefact.program.name = "program";
    artefact.code = std::move(objects);
    auto loaded = device::CpuExecutable::Load(std::move(artefact), allocator_, pool_);
    return loaded.ok() ? OkStatus() : loaded.status();
  }
  void ExpectError(const Status& status, Code code, const std::string& part) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
    EXPECT_NE(status.message().find("program"), std::string_view::npos) << status.ToString();
  }

  runtime::Allocator allocator_;
  runtime::ThreadPool pool_{1};
};

// The C library of this process has getpid, which is no reason for generated code to have it.
TEST_F(Loading, SymbolsOfTheProcessAreNotFound) {
  ExpectError(Load({ObjectThatCalls(program::EntrySymbol({}), "getpid")}), Code::kInternal,
              "getpid");
}

TEST_F(Loading, UnknownSymbolsAreNamed) {
  ExpectError(Load({ObjectThatCalls(program::EntrySymbol({}), "kiln_nowhere")}), Code::kInternal,
              "kiln_nowhere");
}

TEST_F(Loading, ObjectsFindEachOther) {
  codegen::LoweredProgram empty;
  auto objects = codegen::GenerateCpu(empty, target::HostCpu().cpu, {});
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  EXPECT_EQ(Load(*objects).ToString(), "OK");
  auto linked =
      device::Link({ObjectThatCalls("caller", program::EntrySymbol({})), objects->front()});
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  auto caller = (*linked)->Find("caller");
  EXPECT_TRUE(caller.ok()) << caller.status().ToString();
  auto other = (*linked)->Find("another");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().message().find("another"), std::string_view::npos);
}

TEST_F(Loading, CodeWithoutAnEntryIsRefused) {
  ExpectError(Load({ObjectThatCalls("something_else", "memcpy")}), Code::kInternal,
              program::EntrySymbol({}));
}

TEST_F(Loading, SymbolsDefinedTwiceAreNamed) {
  std::string object = ObjectThatCalls(program::EntrySymbol({}), "memcpy");
  ExpectError(Load({object, object}), Code::kInternal, program::EntrySymbol({}));
}

TEST_F(Loading, ObjectsThatAreNoneAreRefused) {
  std::string object = ObjectThatCalls(program::EntrySymbol({}), "memcpy");
  ExpectError(Load({"this is no object"}), Code::kInternal, "");
  ExpectError(Load({""}), Code::kInternal, "");
  ExpectError(Load({object.substr(0, 40)}), Code::kInternal, "");
  ExpectError(Load({object.substr(0, object.size() / 2)}), Code::kInternal, "");
}

}  // namespace
}  // namespace kiln
