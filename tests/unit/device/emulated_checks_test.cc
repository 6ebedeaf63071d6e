// Mistakes in kernels that a GPU may not notice, and that the emulated one must; beside each, a
// kernel that does the same rightly.

#include <gtest/gtest.h>

#include "base/strings.h"
#include "device/emulated/shadow.h"
#include "support/emulated.h"

namespace kiln {
namespace {

using codegen::GpuPrimitives;
using device::EmulatorOptions;
using device::GpuGrid;
using llvm::Value;
using testing::HandWritten;
using testing::SpanOf;
using B = llvm::IRBuilder<>;
using F = llvm::Function;

// One array of so many ints, and a kernel on it.
std::string Try(size_t count, const GpuGrid& grid, const HandWritten::Body& body,
                const EmulatorOptions& options = {.watch_global_memory = true}) {
  HandWritten kernel(1, body), quick(1, body, "k", 90, true);
  std::vector<int32_t> values(count);
  Status status = kernel.Run(grid, {{SpanOf(values)}}, options);
  std::vector<int32_t> again(count);
  EXPECT_EQ(quick.Run(grid, {{SpanOf(again)}}, options).ToString(), status.ToString());
  if (status.ok()) {
    EXPECT_EQ(again, values);
    return "OK";
  }
  EXPECT_EQ(status.code(), Code::kInternal);
  // The kernel can be run again, and another one runs rightly after it.
  HandWritten right(1, [](B& b, GpuPrimitives& gpu, F* f) {
    gpu.Barrier();
    b.CreateStore(b.getInt32(1), b.CreateGEP(b.getInt32Ty(), f->getArg(0), gpu.Thread()));
  });
  std::vector<int32_t> other(64);
  EXPECT_EQ(right.Run({1, 64}, {{SpanOf(other)}}).ToString(), "OK");
  EXPECT_EQ(kernel.Run(grid, {{SpanOf(values)}}, options).ToString(), status.ToString());
  return std::string(status.message());
}

void If(B& b, Value* condition, const std::function<void()>& body) {
  F* f = b.GetInsertBlock()->getParent();
  auto *then = llvm::BasicBlock::Create(f->getContext(), "then", f),
       *after = llvm::BasicBlock::Create(f->getContext(), "after", f);
  b.CreateCondBr(condition, then, after);
  b.SetInsertPoint(then);
  body();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

Value* Is(B& b, Value* x, uint64_t y) { return b.CreateICmpEQ(x, b.getInt64(y)); }
Value* At(B& b, Value* base, Value* i) { return b.CreateGEP(b.getInt32Ty(), base, i); }
void Put(B& b, Value* base, Value* i, uint32_t value = 1) {
  b.CreateStore(b.getInt32(value), At(b, base, i));
}
Value* Get(B& b, Value* base, Value* i) { return b.CreateLoad(b.getInt32Ty(), At(b, base, i)); }

// Parts of a bundle, each of which has a block and two of the kernel's arrays: they stay functions,
// and know their arrays by the kernel's numbers. A part waits for all where the others do not.
TEST(EmulatedChecks, PartsOfKernels) {
  HandWritten kernel(4, [](B& b, GpuPrimitives& gpu, F* f) {
    for (unsigned k : {0u, 1u}) {
      llvm::Type* array = f->getArg(0)->getType();
      F* part = F::Create(llvm::FunctionType::get(b.getVoidTy(), {array, array}, false),
                          F::InternalLinkage, Cat("part.", k), f->getParent());
      B inside(llvm::BasicBlock::Create(f->getContext(), "entry", part));
      GpuPrimitives own(inside, *f->getParent());
      if (k == 1) own.Barrier();
      Value* sum = inside.CreateAdd(Get(inside, part->getArg(0), own.Thread()),
                                    inside.getInt32(100 * (k + 1)));
      inside.CreateStore(sum, At(inside, part->getArg(1), own.Thread()));
      inside.CreateRetVoid();
      If(b, Is(b, gpu.Block(), k), [&] {
        b.CreateCall(part, {f->getArg(2 * k), f->getArg(2 * k + 1)});
      });
    }
  });
  ASSERT_TRUE(kernel.status().ok()) << kernel.status().ToString();
  EXPECT_EQ(kernel.kernel()->info.parameters, 4);
  EXPECT_EQ(kernel.kernel()->info.written, 0b1010u);
  EXPECT_EQ(kernel.kernel()->info.waits, 1);
  EXPECT_NE(kernel.object().find("part.0"), std::string::npos);
  EXPECT_NE(kernel.object().find("part.1"), std::string::npos);
  auto run = [&](size_t last) {
    std::vector<int32_t> a(32, 1), x(32), b(32, 2), y(last);
    Status status = kernel.Run({2, 32}, {{SpanOf(a), SpanOf(x), SpanOf(b), SpanOf(y)}});
    if (status.ok()) {
      EXPECT_EQ(x, std::vector<int32_t>(32, 101));
      EXPECT_EQ(y, std::vector<int32_t>(32, 202));
    }
    return status.ok() ? "OK" : std::string(status.message());
  };
  EXPECT_EQ(run(32), "OK");
  EXPECT_EQ(run(31),
            "kernel k, block 1, thread 31: store of 4 bytes out of bounds at offset 124 of "
            "parameter 3, which has 124 bytes");
}

TEST(EmulatedChecks, GlobalMemory) {
  auto store_at = [](int64_t from) {
    return [from](B& b, GpuPrimitives& gpu, F* f) {
      Put(b, f->getArg(0), b.CreateAdd(gpu.Thread(), b.getInt64(static_cast<uint64_t>(from))));
    };
  };
  EXPECT_EQ(Try(32, {1, 32}, store_at(0)), "OK");
  EXPECT_EQ(Try(42, {1, 32}, store_at(10)), "OK");
  EXPECT_EQ(Try(41, {1, 32}, store_at(10)),
            "kernel k, block 0, thread 31: store of 4 bytes out of bounds at offset 164 of "
            "parameter 0, which has 164 bytes");
  EXPECT_EQ(Try(100, {1, 32}, store_at(-1)),
            "kernel k, block 0, thread 0: store of 4 bytes out of bounds at offset -4 of parameter "
            "0, which has 400 bytes");
  // Nothing of an access may be outside, and an empty parameter has no inside.
  auto wide = [](B& b, GpuPrimitives& gpu, F* f) {
    b.CreateAlignedLoad(b.getInt64Ty(), At(b, f->getArg(0), b.getInt64(2)), llvm::Align(4));
  };
  EXPECT_EQ(Try(4, {1, 32}, wide), "OK");
  EXPECT_EQ(
      Try(3, {1, 32}, wide, {.seed = 0}),
      "kernel k, block 0, thread 0: load of 8 bytes out of bounds at offset 8 of parameter 0, "
      "which has 12 bytes");
  EXPECT_NE(Try(0, {1, 32}, wide).find("which has 0 bytes"), std::string::npos);
}

// What lies beside a parameter is another one's, and yet outside.
TEST(EmulatedChecks, ParametersBesideEachOther) {
  auto body = [](B& b, GpuPrimitives& gpu, F* f) {
    Put(b, f->getArg(0), b.CreateAdd(gpu.Thread(), b.getInt64(1)));
  };
  HandWritten kernel(2, body);
  std::vector<int32_t> arena(64);
  auto* memory = reinterpret_cast<std::byte*>(arena.data());
  EXPECT_EQ(kernel.Run({1, 32}, {{{memory, 128}, {memory + 128, 128}}}).message(),
            "kernel k, block 0, thread 31: store of 4 bytes out of bounds at offset 128 of "
            "parameter 0, which has 128 bytes");
  for (int32_t x : std::span(arena).subspan(32)) EXPECT_EQ(x, 0);
  EXPECT_EQ(kernel.Run({1, 32}, {{{memory, 132}, {memory + 132, 124}}}).ToString(), "OK");
}

// An address that comes from one parameter or the other is checked against both.
TEST(EmulatedChecks, AddressesOfUnknownOrigin) {
  auto body = [](int64_t offset) {
    return [offset](B& b, GpuPrimitives& gpu, F* f) {
      Value* thread = gpu.Thread();
      Value* base =
          b.CreateSelect(b.CreateICmpULT(thread, b.getInt64(16)), f->getArg(0), f->getArg(1));
      Put(b, base, b.CreateAdd(thread, b.getInt64(static_cast<uint64_t>(offset))));
    };
  };
  std::vector<int32_t> first(16), second(32);
  EXPECT_EQ(HandWritten(2, body(0)).Run({1, 32}, {{SpanOf(first), SpanOf(second)}}).ToString(),
            "OK");
  std::string text = HandWritten(2, body(int64_t{1} << 40))
                         .Run({1, 32}, {{SpanOf(first), SpanOf(second)}}, {.seed = 0})
                         .ToString();
  EXPECT_EQ(text,
            "INTERNAL: kernel k, block 0, thread 0: store of 4 bytes out of bounds at an address "
            "that is in none of the parameters");
}

TEST(EmulatedChecks, Alignment) {
  auto body = [](uint64_t offset) {
    return [offset](B& b, GpuPrimitives&, F* f) {
      auto* type = llvm::FixedVectorType::get(b.getInt32Ty(), 2);
      b.CreateAlignedLoad(type, At(b, f->getArg(0), b.getInt64(offset)), llvm::Align(8));
    };
  };
  EXPECT_EQ(Try(32, {1, 32}, body(2)), "OK");
  EXPECT_EQ(Try(32, {1, 32}, body(3), {.seed = 0}),
            "kernel k, block 0, thread 0: misaligned load of 8 bytes at offset 12 of parameter 0, "
            "which has 128 bytes: not at a multiple of 8");
  auto shared = [](B& b, GpuPrimitives& gpu, F*) {
    If(b, Is(b, gpu.Thread(), 5), [&] {
      Value* address = b.CreateConstGEP1_32(b.getInt8Ty(), gpu.Shared(), 6);
      b.CreateAlignedStore(b.getInt32(1), address, llvm::Align(4));
    });
  };
  EXPECT_EQ(
      Try(1, {1, 32, 64}, shared),
      "kernel k, block 0, thread 5: misaligned store of 4 bytes at offset 6 of shared memory, "
      "which has 64 bytes: not at a multiple of 4");
}

TEST(EmulatedChecks, SharedMemoryBounds) {
  auto body = [](B& b, GpuPrimitives& gpu, F*) {
    Value *thread = gpu.Thread(), *shared = gpu.Shared();
    Put(b, shared, thread);
    gpu.Barrier();
    Get(b, shared, b.CreateXor(thread, b.getInt64(1)));
  };
  EXPECT_EQ(Try(1, {2, 64, 256}, body), "OK");
  EXPECT_EQ(Try(1, {1, 64, 252}, body),
            "kernel k, block 0, thread 63: store of 4 bytes out of bounds at offset 252 of shared "
            "memory, which has 252 bytes");
  auto read = [](B& b, GpuPrimitives& gpu, F*) { Get(b, gpu.Shared(), b.getInt64(-1)); };
  EXPECT_EQ(Try(1, {1, 32, 64}, read, {.seed = 0}),
            "kernel k, block 0, thread 0: load of 4 bytes out of bounds at offset -4 of shared "
            "memory, which has 64 bytes");
}

TEST(EmulatedChecks, SharedMemoryThatNobodyWrote) {
  auto body = [](uint64_t block, uint64_t last) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      // Of all blocks but one, all threads but some write.
      Value* writes = b.CreateOr(b.CreateICmpNE(gpu.Block(), b.getInt64(block)),
                                 b.CreateICmpULT(thread, b.getInt64(last)));
      If(b, writes, [&] { Put(b, shared, thread); });
      gpu.Barrier();
      Get(b, shared, b.CreateSub(b.getInt64(31), thread));
    };
  };
  EXPECT_EQ(Try(1, {8, 32, 128}, body(5, 32)), "OK");
  EXPECT_EQ(
      Try(1, {8, 32, 128}, body(5, 31)),
      "kernel k, block 5, thread 0: load of 4 bytes at offset 124 of shared memory, which has "
      "128 bytes: this block has not written it");
  // Each byte counts.
  auto bytes = [](uint64_t count) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value* shared = gpu.Shared();
      If(b, Is(b, gpu.Thread(), 3), [&] {
        for (uint64_t i = 0; i < count; ++i) {
          b.CreateStore(b.getInt8(7), b.CreateConstGEP1_64(b.getInt8Ty(), shared, i));
        }
        b.CreateLoad(b.getInt32Ty(), shared);
      });
    };
  };
  EXPECT_EQ(Try(1, {1, 32, 4}, bytes(4)), "OK");
  EXPECT_NE(Try(1, {1, 32, 4}, bytes(3)).find("thread 3: load of 4 bytes at offset 0"),
            std::string::npos);
}

TEST(EmulatedChecks, SharedMemoryWithoutBarriers) {
  // Thread 0 writes, thread 1 reads, or the other way round.
  auto body = [](bool read_first, bool barrier) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared(), *zero = b.getInt64(0);
      If(b, Is(b, thread, 0), [&] { Put(b, shared, zero); });
      if (read_first) gpu.Barrier();
      If(b, Is(b, thread, 1), [&] { Get(b, shared, zero); });
      if (barrier) gpu.Barrier();
      gpu.WarpBarrier();
      If(b, Is(b, thread, 2), [&] { Put(b, shared, zero); });
      gpu.Barrier();
    };
  };
  EXPECT_EQ(Try(1, {2, 64, 4}, body(true, true)), "OK");
  EXPECT_EQ(Try(1, {1, 64, 4}, body(true, false)),
            "kernel k, block 0, thread 2: store of 4 bytes at offset 0 of shared memory, which has "
            "4 bytes: thread 1 has read it without a barrier in between");
  EXPECT_EQ(
      Try(1, {1, 64, 4}, body(false, true), {.seed = 0}),
      "kernel k, block 0, thread 1: load of 4 bytes at offset 0 of shared memory, which has 4 "
      "bytes: thread 0 has written it without a barrier in between");
  // The same value from all threads, and one's own as often as one likes.
  auto all = [](bool one_place) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      Value* at = one_place ? b.getInt64(0) : thread;
      Put(b, shared, at);
      Get(b, shared, at);
      Put(b, shared, at);
      gpu.Barrier();
      Get(b, shared, b.getInt64(0));
      Get(b, shared, thread);
    };
  };
  EXPECT_EQ(Try(1, {2, 64, 256}, all(false)), "OK");
  EXPECT_NE(Try(1, {1, 64, 256}, all(true)).find("written it without a barrier"),
            std::string::npos);
  // Neighbouring bytes are nobody's business.
  auto narrow = [](B& b, GpuPrimitives& gpu, F*) {
    b.CreateStore(b.getInt8(1), b.CreateGEP(b.getInt8Ty(), gpu.Shared(), gpu.Thread()));
    gpu.Barrier();
  };
  EXPECT_EQ(Try(1, {2, 64, 64}, narrow), "OK");
}

// Barriers are counted in 20 bits, and blocks begin where the one before has ended.
TEST(EmulatedChecks, NumbersOfBarriersStartAgain) {
  device::SharedShadow shadow;
  auto access = [&](int64_t offset, int kind, uint32_t thread) {
    return shadow.Access(offset, 4, kind, thread).kind;
  };
  using Kind = device::Conflict::Kind;
  shadow.Begin(64, 4);
  EXPECT_EQ(access(0, KILN_ACCESS_STORE, 3), Kind::kNone);
  EXPECT_EQ(access(0, KILN_ACCESS_LOAD, 4), Kind::kWritten);
  EXPECT_EQ(shadow.BeginCopy(8, 8, 5).kind, Kind::kNone);
  for (int i = 0; i < 5 << 20; ++i) shadow.Barrier();
  EXPECT_EQ(access(0, KILN_ACCESS_LOAD, 4), Kind::kNone);
  EXPECT_EQ(access(4, KILN_ACCESS_LOAD, 4), Kind::kUnwritten);
  EXPECT_EQ(access(12, KILN_ACCESS_LOAD, 4), Kind::kUnderWay);
  shadow.EndCopy(8, 8, 5);
  EXPECT_EQ(access(12, KILN_ACCESS_LOAD, 4), Kind::kWritten);
  EXPECT_EQ(access(12, KILN_ACCESS_LOAD, 5), Kind::kNone);
  EXPECT_EQ(access(0, KILN_ACCESS_STORE, 5), Kind::kRead);
  for (int i = 0; i < 5 << 20; ++i) {
    shadow.Begin(64, 4);
    ASSERT_EQ(access(0, KILN_ACCESS_LOAD, 0), Kind::kUnwritten);
    ASSERT_EQ(access(0, KILN_ACCESS_STORE, 0), Kind::kNone);
  }
}

TEST(EmulatedChecks, AtomicsAgainstOthers) {
  auto body = [](bool plain) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      If(b, Is(b, thread, 9), [&] { Put(b, shared, b.getInt64(0)); });
      gpu.Barrier();
      b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, shared, b.getInt32(1), llvm::Align(4),
                        llvm::AtomicOrdering::Monotonic);
      if (plain) gpu.WarpBarrier();
      if (!plain) gpu.Barrier();
      If(b, Is(b, thread, 9), [&] { Get(b, shared, b.getInt64(0)); });
    };
  };
  EXPECT_EQ(Try(1, {2, 32, 4}, body(false)), "OK");
  EXPECT_NE(Try(1, {1, 32, 4}, body(true)).find("other threads have written it without a barrier"),
            std::string::npos);
}

TEST(EmulatedChecks, GlobalMemoryOfSeveralBlocks) {
  // Each block writes its own, and reads that of one so much further.
  auto body = [](uint64_t further, bool barrier) {
    return [=](B& b, GpuPrimitives& gpu, F* f) {
      Value* first = b.CreateMul(gpu.Block(), b.getInt64(32));
      Value* thread = gpu.Thread();
      Put(b, f->getArg(0), b.CreateAdd(first, thread));
      if (barrier) gpu.Barrier();
      Value* other = b.CreateXor(b.CreateAdd(first, thread), b.getInt64(further));
      Get(b, f->getArg(0), other);
    };
  };
  EXPECT_EQ(Try(4 * 32, {4, 32}, body(0, false)), "OK");
  EXPECT_EQ(Try(4 * 32, {4, 32}, body(3, true)), "OK");
  const EmulatorOptions in_order{.seed = 0, .watch_global_memory = true};
  EXPECT_EQ(Try(4 * 32, {4, 32}, body(3, false), in_order),
            "kernel k, block 0, thread 2: store of 4 bytes at offset 8 of parameter 0, which has "
            "512 bytes: thread 1 of the same block has read it without a barrier in between");
  EXPECT_EQ(Try(4 * 32, {4, 32}, body(32, true), in_order),
            "kernel k, block 1, thread 0: store of 4 bytes at offset 128 of parameter 0, which has "
            "512 bytes: thread 0 of block 0 has read it without a barrier in between");
  EXPECT_NE(Try(4 * 32, {4, 32}, body(3, false)), "OK");
  EXPECT_NE(Try(4 * 32, {4, 32}, body(32, true)), "OK");
  EXPECT_EQ(Try(4 * 32, {4, 32}, body(32, true), {.watch_global_memory = false}), "OK");
  // Reading is free, and so are atomics among each other.
  EXPECT_EQ(
      Try(1, {4, 32}, [](B& b, GpuPrimitives&, F* f) { Get(b, f->getArg(0), b.getInt64(0)); }),
      "OK");
  EXPECT_EQ(Try(1, {4, 32},
                [](B& b, GpuPrimitives&, F* f) {
                  b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, f->getArg(0), b.getInt32(1),
                                    llvm::Align(4), llvm::AtomicOrdering::Monotonic);
                }),
            "OK");
  EXPECT_NE(
      Try(1, {4, 32}, [](B& b, GpuPrimitives&, F* f) { Put(b, f->getArg(0), b.getInt64(0)); }),
      "OK");
}

// The last block that comes to a counter sums up what all of them have left; where they forget the
// fence, or do not ask whether they are the last, it is not there yet.
TEST(EmulatedChecks, TheLastBlockReadsWhatOthersLeft) {
  auto body = [](bool fence, bool atomic) {
    return [=](B& b, GpuPrimitives& gpu, F* f) {
      Value *block = gpu.Block(), *thread = gpu.Thread(), *values = f->getArg(0);
      If(b, Is(b, thread, 0), [&] {
        Put(b, values, b.CreateAdd(block, b.getInt64(2)), 5);
        if (fence) gpu.Fence();
        Value* count = b.getInt32(3);
        if (atomic) {
          count = b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, values, b.getInt32(1), llvm::Align(4),
                                    llvm::AtomicOrdering::Monotonic);
        }
        If(b, b.CreateICmpEQ(count, b.getInt32(3)), [&] {
          gpu.Fence();
          Value* sum = b.getInt32(0);
          for (uint64_t i = 0; i < 4; ++i)
            sum = b.CreateAdd(sum, Get(b, values, b.getInt64(i + 2)));
          b.CreateStore(sum, At(b, values, b.getInt64(1)));
        });
      });
    };
  };
  auto run = [&](bool fence, bool atomic, std::vector<int32_t>& values) {
    return HandWritten(1, body(fence, atomic)).Run({4, 32}, {{SpanOf(values)}}).ToString();
  };
  std::vector<int32_t> values(6);
  EXPECT_EQ(run(true, true, values), "OK");
  EXPECT_EQ(values[1], 20);
  for (bool fence : {false, true}) {
    std::fill(values.begin(), values.end(), 0);
    std::string text = run(fence, !fence, values);
    EXPECT_NE(text.find("without a barrier in between"), std::string::npos) << text;
  }
}

// Two parameters may be one memory.
TEST(EmulatedChecks, GlobalMemoryByTwoNames) {
  HandWritten kernel(2, [](B& b, GpuPrimitives& gpu, F* f) {
    Value* at = b.CreateAdd(b.CreateMul(gpu.Block(), b.getInt64(32)), gpu.Thread());
    Value* other = b.CreateSub(b.getInt64(63), at);
    b.CreateStore(Get(b, f->getArg(0), other), At(b, f->getArg(1), at));
  });
  std::vector<int32_t> in(64), out(64);
  EXPECT_EQ(kernel.Run({2, 32}, {{SpanOf(in), SpanOf(out)}}).ToString(), "OK");
  std::string text = kernel.Run({2, 32}, {{SpanOf(in), SpanOf(in)}}).ToString();
  EXPECT_NE(text.find("without a barrier in between"), std::string::npos) << text;
}

TEST(EmulatedChecks, BarriersThatSomeDoNotReach) {
  EXPECT_EQ(Try(1, {1, 64},
                [](B& b, GpuPrimitives& gpu, F*) {
                  If(b, b.CreateICmpULT(gpu.Thread(), b.getInt64(63)), [&] { gpu.Barrier(); });
                },
                {.seed = 0}),
            "kernel k, block 0, thread 0: waits at a barrier that thread 63 does not reach: it has "
            "ended");
  std::string text = Try(1, {1, 64}, [](B& b, GpuPrimitives& gpu, F* f) {
    auto* end = llvm::BasicBlock::Create(f->getContext(), "end", f);
    auto *low = llvm::BasicBlock::Create(f->getContext(), "low", f),
         *high = llvm::BasicBlock::Create(f->getContext(), "high", f);
    b.CreateCondBr(b.CreateICmpULT(gpu.Thread(), b.getInt64(32)), low, high);
    for (auto* side : {low, high}) {
      b.SetInsertPoint(side);
      gpu.Barrier();
      b.CreateBr(end);
    }
    b.SetInsertPoint(end);
  });
  EXPECT_NE(text.find("waits at another barrier than thread"), std::string::npos) << text;
  // All threads of a block take the same way.
  EXPECT_EQ(Try(1, {4, 64},
                [](B& b, GpuPrimitives& gpu, F*) {
                  If(b, b.CreateICmpULT(gpu.Block(), b.getInt64(2)), [&] { gpu.Barrier(); });
                }),
            "OK");
}

TEST(EmulatedChecks, WarpOperationsThatSomeDoNotReach) {
  EXPECT_EQ(Try(1, {1, 64},
                [](B& b, GpuPrimitives& gpu, F*) {
                  Value* thread = gpu.Thread();
                  If(b, b.CreateICmpNE(thread, b.getInt64(40)), [&] { gpu.ShuffleXor(thread, 1); });
                },
                {.seed = 0}),
            "kernel k, block 0, thread 32: shuffle_xor is not reached by thread 40 of the same "
            "warp, which has ended");
  EXPECT_EQ(
      Try(1, {1, 32},
          [](B& b, GpuPrimitives& gpu, F*) {
            Value* thread = gpu.Thread();
            If(b, b.CreateICmpNE(thread, b.getInt64(4)), [&] { gpu.Ballot(b.getTrue()); });
            gpu.Barrier();
          },
          {.seed = 0}),
      "kernel k, block 0, thread 0: ballot is not reached by thread 4 of the same warp, which "
      "waits at a barrier");
  std::string text = Try(1, {1, 32}, [](B& b, GpuPrimitives& gpu, F*) {
    Value* thread = gpu.Thread();
    If(b, b.CreateICmpULT(thread, b.getInt64(8)), [&] { gpu.ShuffleUp(thread, 1); });
    gpu.ShuffleDown(thread, 1);
  });
  EXPECT_NE(text.find("shuffle_"), std::string::npos) << text;
  EXPECT_NE(text.find(" of the same warp waits at another shuffle_"), std::string::npos) << text;
  // One warp may do what others do not.
  EXPECT_EQ(Try(1, {2, 96},
                [](B& b, GpuPrimitives& gpu, F*) {
                  Value* thread = gpu.Thread();
                  If(b, b.CreateICmpULT(thread, b.getInt64(32)),
                     [&] { gpu.ShuffleXor(thread, 1); });
                }),
            "OK");
}

TEST(EmulatedChecks, RowsOfMatrices) {
  auto body = [](uint64_t rows, bool barrier) {
    return [=](B& b, GpuPrimitives& gpu, F*) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      auto* row = llvm::FixedVectorType::get(b.getInt32Ty(), 4);
      Value* address = b.CreateGEP(row, shared, thread);
      If(b, b.CreateICmpULT(thread, b.getInt64(rows)), [&] {
        b.CreateAlignedStore(llvm::Constant::getNullValue(row), address, llvm::Align(16));
      });
      if (barrier) gpu.Barrier();
      gpu.LoadMatrix(b.CreateGEP(row, shared, b.CreateXor(thread, b.getInt64(1))), false);
    };
  };
  EXPECT_EQ(Try(1, {2, 32, 512}, body(32, true)), "OK");
  EXPECT_EQ(Try(1, {1, 32, 512}, body(31, true)),
            "kernel k, block 0, thread 30: load of 16 bytes at offset 496 of shared memory, which "
            "has 512 bytes: this block has not written it");
  EXPECT_NE(Try(1, {1, 32, 512}, body(32, false)).find("without a barrier"), std::string::npos);
}

TEST(EmulatedChecks, AsynchronousCopies) {
  enum class Mistake { kNone, kNoWait, kNoBarrier, kEarlyRead, kNoCommit, kEarlyStore };
  auto body = [](Mistake mistake, uint64_t from) {
    return [=](B& b, GpuPrimitives& gpu, F* f) {
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      gpu.CopyAsync(At(b, shared, thread),
                    At(b, f->getArg(0), b.CreateAdd(thread, b.getInt64(from))), 4, b.getInt32(4));
      if (mistake != Mistake::kNoCommit) gpu.CopyCommit();
      if (mistake == Mistake::kEarlyRead) Get(b, shared, thread);
      if (mistake == Mistake::kEarlyStore) Put(b, shared, thread);
      if (mistake != Mistake::kNoWait) gpu.CopyWait(0);
      if (mistake != Mistake::kNoBarrier) gpu.Barrier();
      Value* other = b.CreateXor(thread, b.getInt64(1));
      if (mistake != Mistake::kNoWait && mistake != Mistake::kNoCommit) Get(b, shared, other);
    };
  };
  EXPECT_EQ(Try(40, {2, 32, 128}, body(Mistake::kNone, 8)), "OK");
  EXPECT_EQ(Try(40, {1, 32, 128}, body(Mistake::kNoWait, 8), {.seed = 0}),
            "kernel k, block 0, thread 0: ends with asynchronous copies that have not been waited "
            "for");
  EXPECT_EQ(Try(40, {1, 32, 128}, body(Mistake::kNoCommit, 8), {.seed = 0}),
            "kernel k, block 0, thread 0: ends with asynchronous copies that have not been waited "
            "for");
  EXPECT_NE(Try(40, {1, 32, 128}, body(Mistake::kNoBarrier, 8)), "OK");
  EXPECT_EQ(Try(40, {1, 32, 128}, body(Mistake::kEarlyRead, 8), {.seed = 0}),
            "kernel k, block 0, thread 0: load of 4 bytes at offset 0 of shared memory, which has "
            "128 bytes: an asynchronous copy to it has not been waited for");
  EXPECT_NE(Try(40, {1, 32, 128}, body(Mistake::kEarlyStore, 8)).find("store of 4 bytes at offset"),
            std::string::npos);
  EXPECT_EQ(
      Try(40, {1, 32, 128}, body(Mistake::kNone, 9)),
      "kernel k, block 0, thread 31: asynchronous load of 4 bytes out of bounds at offset 160 "
      "of parameter 0, which has 160 bytes");
  EXPECT_EQ(Try(40, {1, 32, 124}, body(Mistake::kNone, 8)),
            "kernel k, block 0, thread 31: store of 4 bytes out of bounds at offset 124 of shared "
            "memory, which has 124 bytes");
}

TEST(EmulatedChecks, EndlessLoops) {
  auto body = [](uint64_t rounds, bool barrier) {
    return [=](B& b, GpuPrimitives& gpu, F* f) {
      if (barrier) gpu.Barrier();
      auto *before = b.GetInsertBlock(),
           *head = llvm::BasicBlock::Create(f->getContext(), "head", f),
           *after = llvm::BasicBlock::Create(f->getContext(), "after", f);
      b.CreateBr(head);
      b.SetInsertPoint(head);
      llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
      i->addIncoming(b.getInt64(0), before);
      Value* next = b.CreateAdd(i, b.getInt64(1));
      i->addIncoming(next, head);
      // Without an end where the block is 1.
      Value* end = b.CreateSelect(Is(b, gpu.Block(), 1), b.getInt64(-1), b.getInt64(rounds));
      b.CreateCondBr(b.CreateICmpULT(next, end), head, after);
      b.SetInsertPoint(after);
    };
  };
  for (bool barrier : {false, true}) {
    EXPECT_EQ(Try(1, {1, 32}, body(1000, barrier), {.most_rounds = 1000}), "OK");
    EXPECT_EQ(Try(1, {2, 32}, body(1000, barrier), {.seed = 0, .most_rounds = 1000}),
              "kernel k, block 1, thread 0: its loops went back 1000 times and have not ended");
  }
}

// Arrays of a thread's own, and of constants.
TEST(EmulatedChecks, OwnArrays) {
  auto body = [](uint64_t count) {
    return [=](B& b, GpuPrimitives& gpu, F* f) {
      Value* own = b.CreateAlloca(llvm::ArrayType::get(b.getInt32Ty(), 32));
      std::vector<llvm::Constant*> numbers;
      for (uint32_t i = 0; i < count; ++i) numbers.push_back(b.getInt32(i * i));
      auto* type = llvm::ArrayType::get(b.getInt32Ty(), count);
      auto* table =
          new llvm::GlobalVariable(*f->getParent(), type, true, llvm::GlobalValue::PrivateLinkage,
                                   llvm::ConstantArray::get(type, numbers));
      Value* thread = gpu.Thread();
      b.CreateStore(Get(b, table, thread), At(b, own, thread));
      b.CreateStore(Get(b, own, thread), At(b, f->getArg(0), thread));
    };
  };
  EXPECT_EQ(Try(64, {1, 32}, body(32)), "OK");
  EXPECT_EQ(Try(64, {1, 32}, body(31)),
            "kernel k, block 0, thread 31: load of 4 bytes out of bounds at a place outside of a "
            "constant array");
  EXPECT_EQ(Try(64, {1, 64}, body(64), {.seed = 0}),
            "kernel k, block 0, thread 32: store of 4 bytes out of bounds at a place outside of an "
            "array of the thread");
}

// What cannot be checked is not run.
TEST(EmulatedChecks, UncheckedAccessesAreRefused) {
  HandWritten kernel(2, [](B& b, GpuPrimitives&, F* f) {
    b.CreateMemCpy(f->getArg(0), llvm::MaybeAlign(4), f->getArg(1), llvm::MaybeAlign(4), 16);
  });
  EXPECT_EQ(kernel.status().code(), Code::kInternal);
  EXPECT_NE(kernel.status().message().find("cannot be checked"), std::string::npos)
      << kernel.status().ToString();
  HandWritten unknown(0, [](B& b, GpuPrimitives&, F* f) {
    b.CreateCall(f->getParent()->getOrInsertFunction(
        "kiln.gpu.sleep", llvm::FunctionType::get(b.getVoidTy(), false)));
  });
  EXPECT_EQ(unknown.status().message(), "no GPU primitive sleep");
}

TEST(EmulatedChecks, GridsThatNoGpuHas) {
  auto nothing = [](B&, GpuPrimitives&, F*) {};
  for (GpuGrid grid : {GpuGrid{0, 32}, GpuGrid{1, 33}, GpuGrid{1, 0}, GpuGrid{1, 2048}}) {
    EXPECT_NE(HandWritten(0, nothing).Run(grid, {}).ToString().find("no GPU has a grid"),
              std::string::npos);
  }
  EXPECT_EQ(HandWritten(1, nothing).Run({1, 32}, {}).message(),
            "kernel k has 1 parameters, but 0 were given");
}

}  // namespace
}  // namespace kiln
