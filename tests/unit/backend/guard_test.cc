// What would end the process in LLVM ends a run of it, and the next run is as good as the first.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "backend/guard.h"
#include "backend/memory.h"
#include "base/stack.h"
#include "base/strings.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/ErrorHandling.h"

namespace kiln::codegen {
namespace {

// A function of many blocks, which holds `spoil`, or nothing that LLVM could not take.
Status Compile(const std::string& name, const Interrupt& interrupt,
               const std::function<void(llvm::IRBuilder<>&)>& spoil = {}) {
  return backend::RunLlvm(name, interrupt, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(auto session, LlvmSession::ForCpu(name, target::HostCpu().cpu));
    for (int k = 0; k < 4; ++k) {
      llvm::Function* f =
          session->AddFunction(session->KernelType(), Cat("kernel", k), /*external=*/true);
      llvm::IRBuilder<> b(llvm::BasicBlock::Create(session->context(), "entry", f));
      if (k == 2 && spoil) spoil(b);
      b.CreateStore(b.CreateAdd(f->getArg(2), b.getInt64(1)), f->getArg(1));
      b.CreateRetVoid();
    }
    KILN_RETURN_IF_ERROR(session->Verify());
    return session->Emit().status();
  });
}

// An instruction of a GPU's on a CPU.
void Unselectable(llvm::IRBuilder<>& b) {
  llvm::Value* thread = b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
  b.CreateStore(thread, b.GetInsertBlock()->getParent()->getArg(0));
}

void ExpectUnselectable(const Status& status) {
  EXPECT_EQ(status.code(), Code::kInternal);
  const std::string text(status.message());
  EXPECT_NE(text.find("planted"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel2"), std::string::npos) << text;
  EXPECT_NE(text.find("Cannot select"), std::string::npos) << text;
}

TEST(LlvmGuard, WhatCannotBeSelected) {
  for (int round = 0; round < 3; ++round) {
    ExpectUnselectable(Compile("planted", {}, Unselectable));
    EXPECT_EQ(Compile("fine", {}).ToString(), "OK");
  }
}

TEST(LlvmGuard, OnThreads) {
  std::vector<std::thread> threads;
  std::vector<Status> bad(4), good(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      bad[t] = Compile("planted", {}, Unselectable);
      good[t] = Compile("fine", {});
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < 4; ++t) {
    ExpectUnselectable(bad[t]);
    EXPECT_EQ(good[t].ToString(), "OK");
  }
}

TEST(LlvmGuard, MalformedCode) {
  // A terminator in the middle of a block.
  Status status = Compile("planted", {}, [](llvm::IRBuilder<>& b) { b.CreateRetVoid(); });
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("malformed code in planted, function kernel2"), std::string::npos)
      << status.ToString();
}

TEST(LlvmGuard, FatalErrorsOfAnyKind) {
  Status status =
      backend::RunLlvm("planted", {}, []() -> Status { llvm::report_fatal_error("an error"); });
  EXPECT_EQ(status.ToString(), "INTERNAL: planted: LLVM: an error");
  status = backend::RunLlvm("planted", {},
                            []() -> Status { llvm::report_bad_alloc_error("no memory"); });
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
}

TEST(LlvmGuard, IsInterrupted) {
  const int32_t cancel = 1;
  Status status = Compile("fine", Interrupt(&cancel));
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  status = Compile("fine", Interrupt(nullptr, Interrupt::Clock::now()));
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
  EXPECT_EQ(Compile("fine", {}).ToString(), "OK");
}

// More than there is: a second failure, with the reserve given back, ends the run.
TEST(LlvmGuard, WithoutMemory) {
  Status status = backend::RunLlvm("planted", {}, []() -> Status {
    void* volatile memory = std::malloc(size_t{1} << 60);
    std::free(memory);
    return Internal("a block of 2^60 bytes");
  });
  EXPECT_EQ(status.ToString(), "RESOURCE_EXHAUSTED: planted: there is no memory to generate code");
  void* volatile memory = std::malloc(size_t{1} << 60);
  EXPECT_EQ(memory, nullptr);
}

}  // namespace
}  // namespace kiln::codegen
