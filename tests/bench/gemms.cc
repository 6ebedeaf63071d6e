#include "gemms.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "harness.h"

namespace kiln::bench {
namespace {

using kernel::GemmB;
using kernel::GemmProblem;

// Numbers between -1 and 1, or integers of all sizes.
Memory Random(int64_t count, ElementType type) {
  Memory memory = Allocate(count * ByteWidth(type));
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    const float number = static_cast<float>(state >> 8) / (1 << 23) - 1;
    uint32_t bits = state >> 16;
    if (IsFloat(type)) std::memcpy(&bits, &number, sizeof(bits));
    // A bf16 is the upper half of an f32.
    if (type == ElementType::kBF16) bits >>= 16;
    std::memcpy(static_cast<char*>(memory.get()) + i * ByteWidth(type), &bits,
                static_cast<size_t>(ByteWidth(type)));
  }
  return memory;
}

codegen::GemmEpilogue BiasRelu(const Shape3& s) {
  codegen::GemmEpilogue epilogue;
  epilogue.emit = [n = s.n](llvm::IRBuilder<>& b, const codegen::GemmVector& v) {
    llvm::Function* f = b.GetInsertBlock()->getParent();
    llvm::Type* type = v.value->getType();
    const llvm::Align align(4);
    auto at = [&](int arg, llvm::Value* index) {
      llvm::Value* slot =
          b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(1), static_cast<uint64_t>(arg));
      return b.CreateGEP(b.getFloatTy(), b.CreateLoad(b.getPtrTy(), slot), index);
    };
    llvm::Value* bias = at(4, v.n);
    if (v.mask) {
      bias = b.CreateMaskedLoad(type, bias, align, v.mask);
    } else {
      bias = b.CreateAlignedLoad(type, bias, align);
    }
    llvm::Value* sum = b.CreateFAdd(v.value, bias);
    llvm::Value* zero = llvm::Constant::getNullValue(type);
    sum = b.CreateSelect(b.CreateFCmpOGT(sum, zero), sum, zero);
    llvm::Value* row = b.CreateMul(v.m, b.getInt64(static_cast<uint64_t>(n)));
    llvm::Value* out = at(2, b.CreateAdd(row, v.n));
    if (v.mask) {
      b.CreateMaskedStore(sum, out, align, v.mask);
    } else {
      b.CreateAlignedStore(sum, out, align);
    }
  };
  return epilogue;
}

}  // namespace

Memory Allocate(int64_t bytes) {
  auto size = static_cast<size_t>((bytes + 4095) / 4096 * 4096 + 4096);
  Memory memory(std::aligned_alloc(4096, size));
  std::memset(memory.get(), 0, size);
  return memory;
}

std::string Shape3::ToString() const { return Cat(m, "x", n, "x", k); }

double Shape3::flops() const {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

GemmArrays::GemmArrays(const Shape3& s, const GemmTypes& types)
    : shape(s),
      types(types),
      a(Random(s.m * s.k, types.a)),
      b(Random(s.k * s.n, types.b)),
      c(Allocate(s.m * s.n * ByteWidth(types.c))),
      bias(Random(s.n, types.c)) {}

GemmRun::GemmRun(const GemmArrays& arrays, const GemmForm& form) {
  const target::Cpu cpu = target::HostCpu().cpu;
  const Shape3& s = arrays.shape;
  GemmProblem p = GemmProblem::RowMajor(arrays.types.c, s.m, s.n, s.k);
  p.a_type = arrays.types.a;
  p.b_type = arrays.types.b;
  p.b_constant = form.constant;
  auto schedule = kernel::ChooseGemmSchedule(cpu, p);
  auto jit = testing::KernelJit::Create(cpu);
  if (!schedule.ok() || !jit.ok()) std::abort();
  schedule_ = *schedule;
  jit_ = *std::move(jit);
  Status status = jit_->Add("gemm", [&](llvm::Function* f) {
    return codegen::EmitGemm(f, p, schedule_, {.a = 0, .b = 1, .c = 2, .scratch = 3},
                             form.bias_relu ? BiasRelu(s) : codegen::GemmEpilogue());
  });
  const bool packs_b = schedule_.b == GemmB::kPrepacked;
  if (status.ok() && packs_b) {
    status = jit_->Add(
        "pack_b", [&](llvm::Function* f) { return codegen::EmitGemmPackB(f, p, schedule_, 0, 1); });
  }
  if (status.ok() && schedule_.pack_a) {
    status = jit_->Add(
        "pack_a", [&](llvm::Function* f) { return codegen::EmitGemmPackA(f, p, schedule_, 0, 1); });
  }
  if (status.ok()) status = jit_->Compile();
  if (!status.ok()) std::abort();
  scratch_ = Allocate(schedule_.scratch_bytes);
  args_ = {arrays.a.get(), arrays.b.get(), arrays.c.get(), scratch_.get(), arrays.bias.get()};
  if (packs_b) {
    packed_b_ = Allocate(schedule_.packed_b_bytes);
    void* args[] = {arrays.b.get(), packed_b_.get()};
    jit_->Find("pack_b")(nullptr, args, 0, schedule_.pack_b_items);
    args_[1] = packed_b_.get();
  }
  if (schedule_.pack_a) {
    packed_a_ = Allocate(schedule_.packed_a_bytes);
    pack_args_ = {arrays.a.get(), packed_a_.get()};
    args_[0] = packed_a_.get();
    pack_ = jit_->Find("pack_a");
  }
  kernel_ = jit_->Find("gemm");
}

void GemmRun::Run() {
  if (pack_) pack_(nullptr, pack_args_.data(), 0, schedule_.pack_a_items);
  kernel_(nullptr, args_.data(), 0, schedule_.items);
}

void GemmRun::Run(runtime::ThreadPool& pool) {
  pieces_ = std::min<int64_t>(pool.threads(), schedule_.max_tasks);
  if (pieces_ <= 1) return Run();
  if (pack_) {
    pool.Run(
        pieces_,
        [](void* context, int64_t task) {
          auto* self = static_cast<GemmRun*>(context);
          auto [begin, end] = runtime::PieceOf(self->schedule_.pack_a_items, self->pieces_, task);
          self->pack_(nullptr, self->pack_args_.data(), begin, end);
        },
        this);
  }
  pool.Run(
      pieces_,
      [](void* context, int64_t task) {
        auto* self = static_cast<GemmRun*>(context);
        auto [begin, end] = runtime::PieceOf(self->schedule_.items, self->pieces_, task);
        self->kernel_(nullptr, self->args_.data(), begin, end);
      },
      this);
}

double Contender::Rate(const Shape3& s) {
  std::sort(seconds.begin(), seconds.end());
  return s.flops() / seconds[seconds.size() / 2];
}

void TakeTurns(std::vector<Contender>& contenders, int threads) {
  for (int round = 0; round < 15; ++round) {
    for (Contender& c : contenders) {
      // Parked threads need a while until each has a processor of its own.
      const double warm = Now();
      do {
        c.run();
      } while (threads > 1 && Now() - warm < 10e-3);
      const double start = Now();
      double now = start;
      int calls = 0;
      do {
        c.run();
        ++calls;
        now = Now();
      } while (now - start < 2e-3);
      c.seconds.push_back((now - start) / calls);
      // Threads of other libraries spin on for tens of milliseconds.
      if (threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
  }
}

}  // namespace kiln::bench
