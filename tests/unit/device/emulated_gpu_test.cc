// What kernels may ask of a GPU, on the emulated one; and that the assembler takes the same as PTX.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/strings.h"
#include "codegen/gpu/emulate.h"
#include "support/emulated.h"
#include "tensor/small_float.h"

namespace kiln {
namespace {

using codegen::GpuPrimitives;
using codegen::Mma;
using device::GpuGrid;
using device::GpuSpan;
using llvm::Value;
using testing::HandWritten;
using testing::SpanOf;
using B = llvm::IRBuilder<>;

// The address of element `i` of parameter `p`.
Value* At(B& b, llvm::Function* f, unsigned p, llvm::Type* type, Value* i) {
  return b.CreateGEP(type, f->getArg(p), i);
}

// block * threads + thread
Value* Position(B& b, GpuPrimitives& gpu, uint64_t threads) {
  return b.CreateAdd(b.CreateMul(gpu.Block(), b.getInt64(threads)), gpu.Thread());
}

TEST(EmulatedGpu, ThreadsAndBlocks) {
  HandWritten kernel(1, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    Value* both = b.CreateAdd(b.CreateMul(gpu.Block(), b.getInt64(1000)), gpu.Thread());
    b.CreateStore(b.CreateTrunc(both, b.getInt32Ty()),
                  At(b, f, 0, b.getInt32Ty(), Position(b, gpu, 96)));
  });
  std::vector<int32_t> out(5 * 96, -1);
  EXPECT_EQ(kernel.Run({5, 96}, {{SpanOf(out)}}).ToString(), "OK");
  for (int i = 0; i < 5 * 96; ++i) EXPECT_EQ(out[i], i / 96 * 1000 + i % 96);
}

// Every lane's number, as lanes see it through a shuffle.
std::vector<int32_t> Shuffled(const std::function<Value*(B&, GpuPrimitives&, Value*)>& shuffle) {
  HandWritten kernel(1, [&](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    Value* thread = gpu.Thread();
    Value* result = shuffle(b, gpu, thread);
    b.CreateStore(b.CreateTrunc(result, b.getInt32Ty()), At(b, f, 0, b.getInt32Ty(), thread));
  });
  std::vector<int32_t> out(64, -1);
  EXPECT_EQ(kernel.Run({1, 64}, {{SpanOf(out)}}).ToString(), "OK");
  return out;
}

TEST(EmulatedGpu, OlderArchitecturesLackPrimitives) {
  auto copies = [](llvm::IRBuilder<>&, codegen::GpuPrimitives& gpu, llvm::Function*) {
    gpu.CopyCommit();
    gpu.CopyWait(0);
  };
  EXPECT_TRUE(HandWritten(0, copies, "k", 80).status().ok());
  Status status = HandWritten(0, copies, "k", 75).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.ToString().find("on sm_75, which has it not"), std::string::npos)
      << status.ToString();
  EXPECT_EQ(HandWritten::Ptx(75, 0, copies).status().code(), Code::kInternal);
}

TEST(EmulatedGpu, Shuffles) {
  auto down = Shuffled([](B&, GpuPrimitives& g, Value* t) { return g.ShuffleDown(t, 5); });
  auto up = Shuffled([](B&, GpuPrimitives& g, Value* t) { return g.ShuffleUp(t, 3); });
  auto across = Shuffled([](B&, GpuPrimitives& g, Value* t) { return g.ShuffleXor(t, 18); });
  auto index = Shuffled([](B& b, GpuPrimitives& g, Value* t) {
    Value* lane = b.CreateTrunc(b.CreateMul(t, b.getInt64(7)), b.getInt32Ty());
    return g.ShuffleIndex(t, lane);
  });
  for (int i = 0; i < 64; ++i) {
    int lane = i % 32, first = i - lane;
    EXPECT_EQ(down[i], lane + 5 < 32 ? i + 5 : i);
    EXPECT_EQ(up[i], lane >= 3 ? i - 3 : i);
    EXPECT_EQ(across[i], first + (lane ^ 18));
    EXPECT_EQ(index[i], first + i * 7 % 32);
  }
}

// Values of every width arrive whole.
TEST(EmulatedGpu, ShufflesOfEveryType) {
  HandWritten kernel(4, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    Value* thread = gpu.Thread();
    llvm::Type* types[] = {b.getInt8Ty(), b.getHalfTy(), b.getFloatTy(), b.getDoubleTy()};
    for (unsigned p = 0; p < 4; ++p) {
      Value* address = At(b, f, p, types[p], thread);
      Value* value = b.CreateAlignedLoad(types[p], address, llvm::Align(1));
      b.CreateAlignedStore(gpu.ShuffleXor(value, 1), address, llvm::Align(1));
    }
  });
  std::vector<uint8_t> bytes(32);
  std::vector<uint16_t> halves(32);
  std::vector<uint32_t> floats(32);
  std::vector<uint64_t> doubles(32);
  for (size_t i = 0; i < 32; ++i) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
    bytes[i] = static_cast<uint8_t>(x), halves[i] = static_cast<uint16_t>(x);
    floats[i] = static_cast<uint32_t>(x), doubles[i] = x;
  }
  auto was = std::make_tuple(bytes, halves, floats, doubles);
  EXPECT_EQ(kernel.Run({1, 32}, {{SpanOf(bytes), SpanOf(halves), SpanOf(floats), SpanOf(doubles)}})
                .ToString(),
            "OK");
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(bytes[i], std::get<0>(was)[i ^ 1]);
    EXPECT_EQ(halves[i], std::get<1>(was)[i ^ 1]);
    EXPECT_EQ(floats[i], std::get<2>(was)[i ^ 1]);
    EXPECT_EQ(doubles[i], std::get<3>(was)[i ^ 1]);
  }
}

TEST(EmulatedGpu, Ballot) {
  HandWritten kernel(1, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    Value* thread = gpu.Thread();
    Value* bits = gpu.Ballot(b.CreateICmpEQ(b.CreateURem(thread, b.getInt64(3)), b.getInt64(0)));
    gpu.WarpBarrier();
    b.CreateStore(bits, At(b, f, 0, b.getInt32Ty(), thread));
  });
  std::vector<uint32_t> out(64);
  EXPECT_EQ(kernel.Run({1, 64}, {{SpanOf(out)}}).ToString(), "OK");
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t expected = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) expected |= ((i / 32 * 32 + lane) % 3 == 0) << lane;
    EXPECT_EQ(out[i], expected);
  }
}

// Turned round within the block, by shared memory that is larger than 48 KiB.
TEST(EmulatedGpu, SharedMemoryAndBarriers) {
  HandWritten kernel(2, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    llvm::Type* type = llvm::ArrayType::get(b.getInt32Ty(), 16);
    Value *thread = gpu.Thread(), *shared = gpu.Shared(), *position = Position(b, gpu, 1024);
    b.CreateStore(b.CreateLoad(b.getInt32Ty(), At(b, f, 0, b.getInt32Ty(), position)),
                  b.CreateGEP(type, shared, thread));
    gpu.Barrier();
    Value* other = b.CreateSub(b.getInt64(1023), thread);
    b.CreateStore(b.CreateLoad(b.getInt32Ty(), b.CreateGEP(type, shared, other)),
                  At(b, f, 1, b.getInt32Ty(), position));
  });
  std::vector<int32_t> in(3 * 1024), out(3 * 1024);
  std::iota(in.begin(), in.end(), 7);
  EXPECT_EQ(kernel.Run({3, 1024, 64 << 10}, {{SpanOf(in), SpanOf(out)}}).ToString(), "OK");
  for (int i = 0; i < 3 * 1024; ++i) EXPECT_EQ(out[i], in[i / 1024 * 1024 + 1023 - i % 1024]);
}

// Sums by atomics of several types in both memories, from several threads of the host.
void EmitAtomics(B& b, GpuPrimitives& gpu, llvm::Function* f) {
  auto order = llvm::AtomicOrdering::Monotonic;
  auto add = [&](llvm::AtomicRMWInst::BinOp op, Value* address, Value* value, uint64_t align) {
    b.CreateAtomicRMW(op, address, value, llvm::Align(align), order);
  };
  using Op = llvm::AtomicRMWInst;
  Value* thread = gpu.Thread();
  Value* number = b.CreateTrunc(thread, b.getInt32Ty());
  add(Op::Add, f->getArg(0), number, 4);
  add(Op::FAdd, f->getArg(1), b.CreateUIToFP(thread, b.getFloatTy()), 4);
  add(Op::FAdd, f->getArg(2), b.CreateUIToFP(thread, b.getDoubleTy()), 8);
  Value* shared = gpu.Shared();
  llvm::BasicBlock *first = llvm::BasicBlock::Create(f->getContext(), "first", f),
                   *rest = llvm::BasicBlock::Create(f->getContext(), "rest", f);
  Value* is_first = b.CreateICmpEQ(thread, b.getInt64(0));
  b.CreateCondBr(is_first, first, rest);
  b.SetInsertPoint(first);
  b.CreateStore(b.getInt32(0), shared);
  b.CreateBr(rest);
  b.SetInsertPoint(rest);
  gpu.Barrier();
  add(Op::UMax, shared, number, 4);
  gpu.Barrier();
  gpu.Fence();
  Value* most = b.CreateLoad(b.getInt32Ty(), shared);
  b.CreateAtomicCmpXchg(b.CreateConstGEP1_32(b.getInt32Ty(), f->getArg(0), 1), b.getInt32(0), most,
                        llvm::Align(4), order, order);
}

TEST(EmulatedGpu, Atomics) {
  HandWritten kernel(3, EmitAtomics);
  std::vector<uint32_t> ints(2);
  std::vector<float> floats(1);
  std::vector<double> doubles(1);
  constexpr int kBlocks = 40, kThreads = 128;
  for (bool watch : {true, false}) {
    ints = {0, 0}, floats = {0}, doubles = {0};
    EXPECT_EQ(kernel
                  .Run({kBlocks, kThreads, 4}, {{SpanOf(ints), SpanOf(floats), SpanOf(doubles)}},
                       {.watch_global_memory = watch})
                  .ToString(),
              "OK");
    constexpr int kSum = kBlocks * (kThreads - 1) * kThreads / 2;
    EXPECT_EQ(ints[0], static_cast<uint32_t>(kSum));
    EXPECT_EQ(ints[1], static_cast<uint32_t>(kThreads - 1));
    EXPECT_EQ(floats[0], static_cast<float>(kSum));
    EXPECT_EQ(doubles[0], kSum);
  }
}

// Where the machine of the host has no arithmetic in halves.
TEST(EmulatedGpu, AtomicsOfHalves) {
  HandWritten kernel(2, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    llvm::Type* types[] = {b.getHalfTy(), b.getBFloatTy()};
    for (unsigned p = 0; p < 2; ++p) {
      b.CreateAtomicRMW(llvm::AtomicRMWInst::FAdd, f->getArg(p),
                        llvm::ConstantFP::get(types[p], 0.5), llvm::Align(2),
                        llvm::AtomicOrdering::Monotonic);
    }
  });
  std::vector<uint16_t> half(1), bfloat(1);
  EXPECT_EQ(kernel.Run({3, 64}, {{SpanOf(half), SpanOf(bfloat)}}).ToString(), "OK");
  EXPECT_EQ(half[0], Float16(96.0).bits());
  EXPECT_EQ(bfloat[0], BFloat16(96.0).bits());
}

// Kernels of one module may share functions, and are found by their names.
TEST(EmulatedGpu, ManyKernelsInAModule) {
  auto session = codegen::LlvmSession::ForCpu("many", target::HostCpu().cpu);
  ASSERT_TRUE(session.ok());
  llvm::Module& module = (*session)->module();
  llvm::LLVMContext& context = (*session)->context();
  llvm::Type* pointer = llvm::PointerType::get(context, codegen::kGlobalSpace);
  B b(context);
  auto* part_type = llvm::FunctionType::get(b.getVoidTy(), {pointer, b.getInt32Ty()}, false);
  auto* part = llvm::Function::Create(part_type, llvm::Function::InternalLinkage, "part", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", part));
  GpuPrimitives gpu(b, module);
  Value* own = b.CreateGEP(b.getInt32Ty(), part->getArg(0), gpu.Thread());
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt32Ty(), own), part->getArg(1)), own);
  b.CreateRetVoid();
  std::vector<llvm::Function*> kernels;
  for (uint32_t k = 0; k < 20; ++k) {
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer}, false);
    // Whoever they were visible to, they are entries now.
    kernels.push_back(
        llvm::Function::Create(type, llvm::Function::InternalLinkage, Cat("kernel.", k), module));
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", kernels.back()));
    for (uint32_t i = 0; i < 2; ++i) b.CreateCall(part, {kernels[k]->getArg(0), b.getInt32(k)});
    if (k % 2) gpu.Barrier();
    b.CreateRetVoid();
  }
  ASSERT_EQ(codegen::LowerPrimitivesToEmulator(module, kernels, 90).ToString(), "OK");
  ASSERT_EQ((*session)->Verify().ToString(), "OK");
  auto code = device::EmulatedCode::Load((*session)->Emit().value());
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  for (int k = 0; k < 20; ++k) {
    auto kernel = (*code)->Find(Cat("kernel.", k));
    ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
    EXPECT_EQ((*kernel)->info.waits, k % 2);
    EXPECT_EQ((*kernel)->info.written, 1u);
    std::vector<int32_t> values(32, 100);
    EXPECT_EQ(testing::RunEmulated(**kernel, {1, 32}, {{SpanOf(values)}}, {}).ToString(), "OK");
    EXPECT_EQ(values, std::vector<int32_t>(32, 100 + 2 * k));
  }
  EXPECT_EQ((*code)->Find("part").status().code(), Code::kNotFound);
}

// Two groups of copies of all sizes, the second of which is waited for later; of thread t's last
// copy, t % 5 * 4 bytes are read and the rest is zero.
void EmitCopies(B& b, GpuPrimitives& gpu, llvm::Function* f) {
  Value *thread = gpu.Thread(), *shared = gpu.Shared();
  auto place = [&](Value* base, uint64_t first, uint64_t size) {
    Value* offset = b.CreateAdd(b.CreateMul(thread, b.getInt64(size)), b.getInt64(first));
    return b.CreateGEP(b.getInt8Ty(), base, offset);
  };
  auto copy = [&](uint64_t first, int size, Value* bytes) {
    auto wide = static_cast<uint64_t>(size);
    gpu.CopyAsync(place(shared, first, wide), place(f->getArg(0), first, wide), size, bytes);
  };
  copy(0, 4, b.getInt32(4));
  copy(4 * 64, 8, b.getInt32(8));
  gpu.CopyCommit();
  Value* some = b.CreateMul(b.CreateURem(thread, b.getInt64(5)), b.getInt64(4));
  copy(12 * 64, 16, b.CreateTrunc(some, b.getInt32Ty()));
  gpu.CopyCommit();
  gpu.CopyWait(1);
  gpu.Barrier();
  auto move = [&](uint64_t first, unsigned words, Value* at) {
    llvm::Type* type = llvm::FixedVectorType::get(b.getInt32Ty(), words);
    Value* offset = b.CreateAdd(b.CreateMul(at, b.getInt64(4 * words)), b.getInt64(first));
    Value* value = b.CreateAlignedLoad(type, b.CreateGEP(b.getInt8Ty(), shared, offset),
                                       llvm::Align(4 * words));
    b.CreateAlignedStore(value, b.CreateGEP(b.getInt8Ty(), f->getArg(1), offset),
                         llvm::Align(4 * words));
  };
  Value* other = b.CreateSub(b.getInt64(63), thread);
  move(0, 1, other);
  move(4 * 64, 2, other);
  gpu.CopyWait(0);
  gpu.Barrier();
  move(12 * 64, 4, other);
}

TEST(EmulatedGpu, AsynchronousCopies) {
  HandWritten kernel(2, EmitCopies);
  alignas(16) static uint32_t in[28 * 16], out[28 * 16];
  for (uint32_t i = 0; i < 28 * 16; ++i) in[i] = i + 1;
  GpuSpan spans[] = {{reinterpret_cast<std::byte*>(in), sizeof(in)},
                     {reinterpret_cast<std::byte*>(out), sizeof(out)}};
  EXPECT_EQ(kernel.Run({1, 64, sizeof(in)}, spans).ToString(), "OK");
  for (uint32_t i = 0; i < 28 * 16; ++i) {
    uint32_t last = i - 12 * 16;
    bool is_zero = i >= 12 * 16 && last % 4 >= last / 4 % 5;
    EXPECT_EQ(out[i], is_zero ? 0 : i + 1) << i;
  }
}

// The functions that a kernel calls see the thread, and their accesses are checked.
TEST(EmulatedGpu, FunctionsOfTheModule) {
  auto body = [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    llvm::LLVMContext& context = f->getContext();
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {f->getArg(0)->getType()}, false);
    auto* part =
        llvm::Function::Create(type, llvm::Function::InternalLinkage, "part", f->getParent());
    auto* square_type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
    auto* square = llvm::Function::Create(square_type, llvm::Function::InternalLinkage, "square",
                                          f->getParent());
    B inside(llvm::BasicBlock::Create(context, "entry", square));
    inside.CreateRet(inside.CreateMul(square->getArg(0), square->getArg(0)));
    inside.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", part));
    GpuPrimitives of_part(inside, *f->getParent());
    Value* thread = of_part.Thread();
    Value* value = inside.CreateCall(square, {inside.CreateTrunc(thread, b.getInt32Ty())});
    inside.CreateStore(value, inside.CreateGEP(b.getInt32Ty(), part->getArg(0), thread));
    inside.CreateRetVoid();
    b.CreateCall(part, {f->getArg(1)});
    b.CreateCall(part, {f->getArg(0)});
  };
  HandWritten kernel(2, body);
  std::vector<int32_t> first(32), second(32), small(31);
  EXPECT_EQ(kernel.Run({1, 32}, {{SpanOf(first), SpanOf(second)}}).ToString(), "OK");
  for (int i = 0; i < 32; ++i) EXPECT_EQ(first[i] + second[i], 2 * i * i);
  EXPECT_EQ(kernel.Run({1, 32}, {{SpanOf(first), SpanOf(small)}}).message(),
            "kernel k, block 0, thread 31: store of 4 bytes out of bounds at offset 124 of "
            "parameter 1, which has 124 bytes");
}

// Sums of rows by shuffles and shared memory have the same bits in whatever order threads run.
TEST(EmulatedGpu, OrdersDoNotMatter) {
  HandWritten kernel(2, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    llvm::Type* type = b.getFloatTy();
    Value *thread = gpu.Thread(), *shared = gpu.Shared();
    Value* sum = b.CreateLoad(type, At(b, f, 0, type, Position(b, gpu, 128)));
    for (int by = 16; by > 0; by /= 2) sum = b.CreateFAdd(sum, gpu.ShuffleDown(sum, by));
    b.CreateStore(sum, b.CreateGEP(type, shared, thread));
    gpu.Barrier();
    Value* all = llvm::ConstantFP::get(type, 0);
    for (unsigned w = 0; w < 4; ++w) {
      all = b.CreateFAdd(all, b.CreateLoad(type, b.CreateConstGEP1_32(type, shared, 32 * w)));
    }
    b.CreateStore(all, At(b, f, 1, type, Position(b, gpu, 128)));
  });
  constexpr size_t kCount = 50 * 128;
  std::vector<float> in(kCount), first(kCount), out(kCount);
  for (size_t i = 0; i < kCount; ++i) in[i] = std::sin(static_cast<float>(i));
  EXPECT_EQ(kernel.Run({50, 128, 512}, {{SpanOf(in), SpanOf(first)}}, {.seed = 0}).ToString(),
            "OK");
  for (uint64_t seed : {1, 2, 3, 77}) {
    for (bool watch : {false, true}) {
      std::fill(out.begin(), out.end(), 0.0f);
      EXPECT_EQ(kernel
                    .Run({50, 128, 512}, {{SpanOf(in), SpanOf(out)}},
                         {.seed = seed, .watch_global_memory = watch})
                    .ToString(),
                "OK");
      EXPECT_EQ(std::memcmp(out.data(), first.data(), kCount * sizeof(float)), 0);
    }
  }
}

// All primitives as PTX.
TEST(EmulatedGpu, TheAssemblerTakesEveryPrimitive) {
  for (int sm : {75, 80, 90}) {
    auto ptx = HandWritten::Ptx(sm, 3, [sm](B& b, GpuPrimitives& gpu, llvm::Function* f) {
      EmitAtomics(b, gpu, f);
      if (sm >= 80) EmitCopies(b, gpu, f);
      gpu.WarpBarrier();
      Value* bits = gpu.Ballot(b.CreateICmpULT(gpu.Block(), b.getInt64(3)));
      Value* value = b.CreateUIToFP(bits, b.getDoubleTy());
      value = gpu.ShuffleUp(gpu.ShuffleDown(value, 3), 4);
      value = gpu.ShuffleIndex(gpu.ShuffleXor(value, 5), bits);
      b.CreateStore(value, f->getArg(2));
      for (bool transposed : {false, true}) {
        for (Value* word : gpu.LoadMatrix(gpu.Shared(), transposed)) {
          b.CreateStore(word, f->getArg(0));
        }
      }
      for (int m = 0; m < 6; ++m) {
        const codegen::MmaShape& shape = codegen::ShapeOf(static_cast<Mma>(m));
        if (shape.sm > sm) continue;
        auto mma = static_cast<Mma>(m);
        llvm::Type* sum = mma == Mma::kM8N8K4F64    ? b.getDoubleTy()
                          : mma == Mma::kM16N8K32S8 ? b.getInt32Ty()
                                                    : b.getFloatTy();
        llvm::Type* in = mma == Mma::kM8N8K4F64 ? b.getDoubleTy() : b.getInt32Ty();
        auto load = [&](llvm::Type* type, int count) {
          std::vector<Value*> values;
          for (int i = 0; i < count; ++i) {
            values.push_back(b.CreateLoad(
                type, b.CreateConstGEP1_32(type, f->getArg(1), static_cast<unsigned>(i))));
          }
          return values;
        };
        auto product =
            gpu.MatrixProduct(mma, load(in, shape.a), load(in, shape.b), load(sum, shape.c));
        for (Value* word : product) b.CreateStore(word, f->getArg(2));
      }
    });
    ASSERT_TRUE(ptx.ok()) << ptx.status().ToString();
    EXPECT_EQ(testing::Assemble(sm, *ptx), "");
    for (const char* text : {"shfl.sync.down", "shfl.sync.up", "shfl.sync.bfly", "shfl.sync.idx",
                             "vote.sync.ballot", "bar.warp.sync", "membar.gl", "bar.sync",
                             "ldmatrix.sync", "mma.sync", "atom.", ".extern .shared .align 128"}) {
      EXPECT_NE(ptx->find(text), std::string::npos) << text;
    }
    EXPECT_EQ(ptx->find("cp.async.cg.shared.global") != std::string::npos, sm >= 80);
  }
}

TEST(EmulatedGpu, PrimitivesOfLaterArchitecturesAreRefused) {
  auto copy =
      HandWritten::Ptx(75, 0, [](B&, GpuPrimitives& gpu, llvm::Function*) { gpu.CopyCommit(); });
  EXPECT_EQ(copy.status().message(), "kiln.gpu.copy_commit on sm_75, which has it not");
  auto product = HandWritten::Ptx(75, 0, [](B& b, GpuPrimitives& gpu, llvm::Function*) {
    Value* x = llvm::ConstantFP::get(b.getDoubleTy(), 1);
    std::vector<Value*> one(1, x), two(2, x);
    gpu.MatrixProduct(Mma::kM8N8K4F64, one, one, two);
  });
  EXPECT_EQ(product.status().message(), "kiln.gpu.mma_m8n8k4_f64 on sm_75, which has it not");
}

double Milliseconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    auto begin = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

// `loop` from 0 to `count`.
void Loop(B& b, llvm::Function* f, uint64_t count, const std::function<void(Value*)>& body) {
  auto *before = b.GetInsertBlock(), *head = llvm::BasicBlock::Create(f->getContext(), "head", f);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), before);
  body(i);
  Value* next = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(next, b.GetInsertBlock());
  auto* after = llvm::BasicBlock::Create(f->getContext(), "after", f);
  b.CreateCondBr(b.CreateICmpULT(next, b.getInt64(count)), head, after);
  b.SetInsertPoint(after);
}

// c = a b of 256 x 256 x 256: blocks of 64 x 64, 16 x 16 threads of 4 x 4, 16 at a time of k.
void EmitProduct(B& b, GpuPrimitives& gpu, llvm::Function* f) {
  llvm::Type* type = b.getFloatTy();
  auto* vector = llvm::FixedVectorType::get(type, 4);
  auto n = [&](uint64_t i) { return b.getInt64(i); };
  Value *thread = gpu.Thread(), *block = gpu.Block(), *shared = gpu.Shared();
  Value *row0 = b.CreateMul(b.CreateUDiv(block, n(4)), n(64)),
        *column0 = b.CreateMul(b.CreateURem(block, n(4)), n(64));
  Value *y = b.CreateUDiv(thread, n(16)), *x = b.CreateURem(thread, n(16));
  llvm::AllocaInst* sums[4];
  for (auto& s : sums) {
    s = b.CreateAlloca(vector);
    b.CreateStore(llvm::Constant::getNullValue(vector), s);
  }
  auto add = [&](Value* i, Value* j) { return b.CreateAdd(i, j); };
  auto times = [&](Value* i, uint64_t by) { return b.CreateMul(i, n(by)); };
  Loop(b, f, 16, [&](Value* step) {
    Value* k0 = times(step, 16);
    gpu.Barrier();
    // a's 64 x 16 are kept by k, b's 16 x 64 as they are; four of each for a thread.
    Value *ar = b.CreateUDiv(thread, n(4)), *ak = times(b.CreateURem(thread, n(4)), 4);
    Value* a4 = b.CreateAlignedLoad(
        vector, At(b, f, 0, type, add(times(add(row0, ar), 256), add(k0, ak))), llvm::Align(16));
    for (unsigned i = 0; i < 4; ++i) {
      b.CreateStore(b.CreateExtractElement(a4, i),
                    b.CreateGEP(type, shared, add(times(add(ak, n(i)), 64), ar)));
    }
    Value* b4 = b.CreateAlignedLoad(
        vector, At(b, f, 1, type, add(times(add(k0, y), 256), add(column0, times(x, 4)))),
        llvm::Align(16));
    b.CreateAlignedStore(b4,
                         b.CreateGEP(type, shared, add(n(1024), add(times(y, 64), times(x, 4)))),
                         llvm::Align(16));
    gpu.Barrier();
    Loop(b, f, 16, [&](Value* k) {
      auto load = [&](Value* at) {
        return b.CreateAlignedLoad(vector, b.CreateGEP(type, shared, at), llvm::Align(16));
      };
      Value* left = load(add(times(k, 64), times(y, 4)));
      Value* right = load(add(n(1024), add(times(k, 64), times(x, 4))));
      for (unsigned i = 0; i < 4; ++i) {
        Value* l = b.CreateVectorSplat(4, b.CreateExtractElement(left, i));
        Value* sum = b.CreateLoad(vector, sums[i]);
        b.CreateStore(b.CreateFAdd(sum, b.CreateFMul(l, right)), sums[i]);
      }
    });
  });
  for (unsigned i = 0; i < 4; ++i) {
    Value* row = add(row0, add(times(y, 4), n(i)));
    b.CreateAlignedStore(b.CreateLoad(vector, sums[i]),
                         At(b, f, 2, type, add(times(row, 256), add(column0, times(x, 4)))),
                         llvm::Align(16));
  }
}

template <typename T>
struct Aligned {
  explicit Aligned(size_t count) : memory(count + 64 / sizeof(T)), count(count) {
    auto address = reinterpret_cast<uintptr_t>(memory.data());
    data = memory.data() + (-address & 63) / sizeof(T);
  }
  GpuSpan span() {
    return {reinterpret_cast<std::byte*>(data), static_cast<int64_t>(count * sizeof(T))};
  }
  std::vector<T> memory;
  T* data;
  size_t count;
};

TEST(EmulatedGpu, ProductBySharedMemoryAndItsSpeed) {
  HandWritten kernel(3, EmitProduct);
  Aligned<float> a(256 * 256), x(256 * 256), c(256 * 256);
  for (size_t i = 0; i < a.count; ++i) {
    a.data[i] = static_cast<float>(i % 31) - 15, x.data[i] = static_cast<float>(i % 17) - 8;
  }
  GpuSpan spans[] = {a.span(), x.span(), c.span()};
  GpuGrid grid{16, 256, 8192};
  EXPECT_EQ(kernel.Run(grid, spans).ToString(), "OK");
  for (size_t i = 0; i < 256; i += 5) {
    for (size_t j = 0; j < 256; ++j) {
      float sum = 0;
      for (size_t k = 0; k < 256; ++k) sum += a.data[i * 256 + k] * x.data[k * 256 + j];
      ASSERT_EQ(c.data[i * 256 + j], sum);
    }
  }
  runtime::ThreadPool pool(1);
  device::Emulator emulator(pool, device::EmulatorOptions::FromEnvironment());
  printf("  product of 256^3, 4 x 4 a thread: %.1f ms on one thread\n",
         Milliseconds([&] { EXPECT_TRUE(emulator.Run(*kernel.kernel(), grid, spans).ok()); }));
}

TEST(EmulatedGpu, SpeedOfLaunchesAndElements) {
  // Four elements of a thread at a time.
  auto body = [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    auto* vector = llvm::FixedVectorType::get(b.getFloatTy(), 4);
    Value* position = Position(b, gpu, 256);
    Value* value = b.CreateAlignedLoad(vector, At(b, f, 0, vector, position), llvm::Align(16));
    b.CreateAlignedStore(b.CreateFAdd(value, value), At(b, f, 1, vector, position),
                         llvm::Align(16));
  };
  HandWritten kernel(2, body);
  HandWritten scalar(2, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
    Value* position = Position(b, gpu, 256);
    Value* value = b.CreateLoad(b.getFloatTy(), At(b, f, 0, b.getFloatTy(), position));
    b.CreateStore(b.CreateFAdd(value, value), At(b, f, 1, b.getFloatTy(), position));
  });
  HandWritten barrier(0, [](B&, GpuPrimitives& gpu, llvm::Function*) { gpu.Barrier(); });
  HandWritten empty(0, [](B&, GpuPrimitives&, llvm::Function*) {});
  runtime::ThreadPool pool(1);
  device::Emulator emulator(pool, device::EmulatorOptions::FromEnvironment());
  constexpr int64_t kCount = 4 << 20;
  Aligned<float> in(kCount), out(kCount);
  std::fill_n(in.data, kCount, 1.5f);
  GpuSpan spans[] = {in.span(), out.span()};
  auto run = [&](HandWritten& k, const GpuGrid& grid, std::span<const GpuSpan> args) {
    return Milliseconds([&] { EXPECT_EQ(emulator.Run(*k.kernel(), grid, args).ToString(), "OK"); });
  };
  printf("  4M elements: %.1f ms by four, %.1f ms by one\n",
         run(kernel, {kCount / 1024, 256}, spans), run(scalar, {kCount / 256, 256}, spans));
  EXPECT_EQ(out.data[kCount - 1], 3.0f);
  for (Mma mma : {Mma::kM16N8K8TF32, Mma::kM16N8K16F16, Mma::kM16N8K32S8}) {
    const codegen::MmaShape& shape = codegen::ShapeOf(mma);
    HandWritten products(0, [&](B& b, GpuPrimitives& gpu, llvm::Function* f) {
      llvm::Type* sum = mma == Mma::kM16N8K32S8 ? b.getInt32Ty() : b.getFloatTy();
      Loop(b, f, 1000, [&](Value*) {
        std::vector<Value*> c(4, llvm::Constant::getNullValue(sum));
        std::vector<Value*> a(4, b.getInt32(0)), right(2, b.getInt32(0));
        gpu.MatrixProduct(mma, a, right, c);
      });
    });
    printf("  %s: %.2f us\n", shape.name, run(products, {1, 32}, {}));
  }
  device::Emulator watching(pool, {.watch_global_memory = true});
  printf("  4M elements by four, watched: %.1f ms\n", Milliseconds([&] {
           EXPECT_TRUE(watching.Run(*kernel.kernel(), {kCount / 1024, 256}, spans).ok());
         }));
  printf("  launch of a block: %.2f us; with a barrier, 32 threads: %.2f us, 1024: %.2f us\n",
         1e3 * run(empty, {1, 32}, {}), 1e3 * run(barrier, {1, 32}, {}),
         1e3 * run(barrier, {1, 1024}, {}));
  printf("  a thread: %.1f ns, with a barrier %.1f ns\n",
         run(empty, {4096, 256}, {}) * 1e6 / (1 << 20),
         run(barrier, {1024, 256}, {}) * 1e6 / (1 << 18));
}

}  // namespace
}  // namespace kiln
