// Gemms beside oneDNN and OpenBLAS on the same arrays, in turn within one run.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "harness.h"
#include "machine.h"
#include "peers.h"
#include "runtime/thread_pool.h"
#include "support/kernel_jit.h"

namespace kiln::bench {
namespace {

using kernel::GemmB;
using kernel::GemmProblem;
using kernel::GemmSchedule;

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<float[], FreeDeleter>;

Memory Allocate(int64_t bytes) {
  auto size = static_cast<size_t>((bytes + 4095) / 4096 * 4096 + 4096);
  Memory memory(static_cast<float*>(std::aligned_alloc(4096, size)));
  std::fill_n(memory.get(), size / sizeof(float), 0.0f);
  return memory;
}

Memory Random(int64_t count) {
  Memory memory = Allocate(count * 4);
  uint32_t state = 12345;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    memory[static_cast<size_t>(i)] = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  return memory;
}

struct Shape3 {
  int64_t m, n, k;
  std::string ToString() const { return Cat(m, "x", n, "x", k); }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

struct Arrays {
  explicit Arrays(const Shape3& s)
      : a(Random(s.m * s.k)), b(Random(s.k * s.n)), c(Allocate(s.m * s.n * 4)), bias(Random(s.n)) {}
  Memory a, b, c, bias;
};

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

// One of our kernels with its operands.
class Gemm {
 public:
  Gemm(const Shape3& s, const Arrays& arrays, bool constant, bool epilogue) : arrays_(arrays) {
    const target::Cpu cpu = target::HostCpu().cpu;
    GemmProblem p = GemmProblem::RowMajor(ElementType::kF32, s.m, s.n, s.k);
    p.b_constant = constant;
    auto schedule = kernel::ChooseGemmSchedule(cpu, p);
    auto jit = testing::KernelJit::Create(cpu);
    if (!schedule.ok() || !jit.ok()) std::abort();
    schedule_ = *schedule;
    jit_ = *std::move(jit);
    Status status = jit_->Add("gemm", [&](llvm::Function* f) {
      return codegen::EmitGemm(f, p, schedule_, {.a = 0, .b = 1, .c = 2, .scratch = 3},
                               epilogue ? BiasRelu(s) : codegen::GemmEpilogue());
    });
    const bool packed = schedule_.b == GemmB::kPrepacked;
    if (status.ok() && packed) {
      status = jit_->Add(
          "pack", [&](llvm::Function* f) { return codegen::EmitGemmPackB(f, p, schedule_, 0, 1); });
    }
    if (status.ok()) status = jit_->Compile();
    if (!status.ok()) std::abort();
    scratch_ = Allocate(schedule_.scratch_bytes);
    args_ = {arrays.a.get(), arrays.b.get(), arrays.c.get(), scratch_.get(), arrays.bias.get()};
    if (packed) {
      packed_ = Allocate(schedule_.packed_b_bytes);
      void* args[] = {arrays.b.get(), packed_.get()};
      jit_->Find("pack")(nullptr, args, 0, schedule_.pack_b_items);
      args_[1] = packed_.get();
    }
    kernel_ = jit_->Find("gemm");
  }

  void Run() { kernel_(nullptr, args_.data(), 0, schedule_.items); }

  void Run(runtime::ThreadPool& pool) {
    pieces_ = std::min<int64_t>(pool.threads(), schedule_.max_tasks);
    if (pieces_ <= 1) return Run();
    pool.Run(
        pieces_,
        [](void* context, int64_t task) {
          auto* self = static_cast<Gemm*>(context);
          auto [begin, end] = runtime::PieceOf(self->schedule_.items, self->pieces_, task);
          self->kernel_(nullptr, self->args_.data(), begin, end);
        },
        this);
  }

  double compile_milliseconds() const { return jit_->compile_milliseconds(); }

 private:
  const Arrays& arrays_;
  GemmSchedule schedule_;
  std::unique_ptr<testing::KernelJit> jit_;
  Memory scratch_, packed_;
  std::vector<void*> args_;
  kiln_kernel_fn kernel_ = nullptr;
  int64_t pieces_ = 1;
};

// Those who take turns at one gemm.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds;

  double Rate(const Shape3& s) {
    std::sort(seconds.begin(), seconds.end());
    return s.flops() / seconds[seconds.size() / 2];
  }
};

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

struct Row {
  Shape3 shape;
  double of_peak = 0;     // what a square gemm must reach of the multiply-add peak
  double in_place = 0.9;  // and beside the better library
  double packed = 0.9;
};

const Row kRows[] = {
    {{32, 32, 32}},         {{64, 64, 64}, 0.8},      {{128, 128, 128}, 0.8},
    {{256, 256, 256}, 0.8}, {{512, 512, 512}, 0.75},  {{1024, 1024, 1024}, 0.7},
    {{2048, 2048, 2048}},   {{128, 768, 768}},        {{128, 3072, 768}},
    {{196, 1024, 256}},     {{1, 768, 3072}, 0, 0.8}, {{100, 10, 784}},
    {{2048, 2048, 64}},
};

void Compare(Report& report, int threads) {
  runtime::ThreadPool pool(threads);
  const double peak = FmaPeak(1.0);
  if (threads == 1) report.Add("gemm.peak", peak / 1e9, "GFLOP/s");
  for (const Row& row : kRows) {
    const Shape3& s = row.shape;
    Arrays arrays(s);
    Gemm in_place(s, arrays, false, false);
    Gemm packed(s, arrays, true, false);
    std::vector<Contender> contenders = {{"plain", [&] { in_place.Run(pool); }, {}},
                                         {"constant", [&] { packed.Run(pool); }, {}}};
    for (const GemmPeer& peer : GemmPeers()) {
      peer.SetThreads(threads);
      const Sgemm gemm{s.m, s.n, s.k, arrays.a.get(), arrays.b.get(), arrays.c.get()};
      contenders.push_back({peer.name(), [&peer, gemm] { peer.Run(gemm); }, {}});
    }
    TakeTurns(contenders, threads);
    double best = 0;
    for (size_t i = 2; i < contenders.size(); ++i) best = std::max(best, contenders[i].Rate(s));
    const std::string name = Cat("gemm.", s.ToString(), ".threads", threads, ".");
    for (size_t i = 0; i < contenders.size(); ++i) {
      report.Add(name + contenders[i].name, contenders[i].Rate(s) / 1e9, "GFLOP/s");
    }
    if (threads == 1 && row.of_peak > 0) {
      report.Add(name + "of_peak", contenders[0].Rate(s) / peak, "", AtLeast(row.of_peak));
    }
    if (best == 0) continue;
    report.Add(name + "plain.of_best", contenders[0].Rate(s) / best, "", AtLeast(row.in_place));
    report.Add(name + "constant.of_best", contenders[1].Rate(s) / best, "", AtLeast(row.packed));
  }
}

}  // namespace

KILN_BENCH(gemm_1_thread) { Compare(report, 1); }

KILN_BENCH(gemm_2_threads) {
  if (Cpus() > 1) Compare(report, 2);
}

// What bias and ReLU add to a gemm that they are fused with.
KILN_BENCH(gemm_epilogue) {
  for (const Shape3& s : {Shape3{256, 256, 256},
                          {512, 512, 512},
                          {128, 768, 768},
                          {128, 3072, 768},
                          {196, 1024, 256},
                          {100, 10, 784}}) {
    Arrays arrays(s);
    for (bool constant : {false, true}) {
      Gemm plain(s, arrays, constant, false);
      Gemm fused(s, arrays, constant, true);
      const double ratio = PairedRatio([&] { fused.Run(); }, [&] { plain.Run(); }, 50);
      report.Add(Cat("gemm_epilogue.", s.ToString(), constant ? ".constant" : ".plain"), ratio, "",
                 AtMost(1.05));
    }
  }
}

KILN_BENCH(gemm_compile_time) {
  for (const Row& row : kRows) {
    Arrays arrays({1, 1, 1});
    std::vector<double> times;
    for (int i = 0; i < 7; ++i) {
      times.push_back(Gemm(row.shape, arrays, false, true).compile_milliseconds());
    }
    std::sort(times.begin(), times.end());
    report.Add(Cat("gemm_compile.", row.shape.ToString()), times[3], "ms", AtMost(9));
  }
}

}  // namespace kiln::bench
