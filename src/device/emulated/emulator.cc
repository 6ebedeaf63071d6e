#include "device/emulated/emulator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "base/float_environment.h"
#include "base/strings.h"
#include "device/cpu/stack_sizes.h"
#include "device/emulated/worker.h"
#include "tensor/small_float.h"

namespace kiln::device {
namespace {

// The functions called by generated code (frame/emulated.h).
EmulatedThread& ThreadOf(kiln_emulated_thread* view) {
  return *reinterpret_cast<EmulatedThread*>(view);
}
EmulatedWorker& WorkerOf(kiln_emulated_thread* view) {
  return *static_cast<EmulatedWorker*>(view->host);
}

void Access(kiln_emulated_thread* t, std::byte* address, uint64_t access) {
  WorkerOf(t).Access(ThreadOf(t), address, access);
}
void Barrier(kiln_emulated_thread* t, int32_t site) { WorkerOf(t).Barrier(ThreadOf(t), site); }
void Warp(kiln_emulated_thread* t, int32_t operation, int32_t site) {
  WorkerOf(t).Warp(ThreadOf(t), operation, site);
}
void Copy(kiln_emulated_thread* t, std::byte* to, const std::byte* from, int32_t bytes,
          uint64_t access) {
  WorkerOf(t).Copy(ThreadOf(t), to, from, bytes, access);
}
void Fence(kiln_emulated_thread* t) { WorkerOf(t).Fence(); }
void Commit(kiln_emulated_thread* t) { WorkerOf(t).Commit(ThreadOf(t)); }
void Wait(kiln_emulated_thread* t, int32_t pending) { WorkerOf(t).Wait(ThreadOf(t), pending); }
void Endless(kiln_emulated_thread* t) { WorkerOf(t).Endless(ThreadOf(t)); }

// Helpers called by LLVM's back end for halves on CPUs without instructions: the 16 bits are passed
// in the lowest part of a vector register, as a float is.
float BitsAsFloat(uint32_t bits) { return std::bit_cast<float>(bits); }
uint16_t LowBits(float f) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(f)); }
float TruncateToBfloat(float f) { return BitsAsFloat(BFloat16(f).bits()); }
float TruncateDoubleToBfloat(double f) { return BitsAsFloat(BFloat16(f).bits()); }
float TruncateToHalf(float f) { return BitsAsFloat(Float16(f).bits()); }
float TruncateDoubleToHalf(double f) { return BitsAsFloat(Float16(f).bits()); }
float ExtendHalf(float half) { return static_cast<float>(Float16::FromBits(LowBits(half))); }

template <typename Function>
LinkSymbol Symbol(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

constexpr int kMostThreads = 1024;

}  // namespace

EmulatorOptions EmulatorOptions::FromEnvironment() {
  EmulatorOptions options;
  if (const char* seed = std::getenv("KILN_EMULATE_GPU_SEED")) {
    if (auto number = ParseInt(seed)) options.seed = static_cast<uint64_t>(*number);
  }
  if (const char* watch = std::getenv("KILN_EMULATE_GPU_WATCH")) {
    options.watch_global_memory = std::string_view(watch) == "1";
  }
  return options;
}

Result<std::unique_ptr<EmulatedCode>> EmulatedCode::Load(const std::string& object) {
#if !defined(__x86_64__)
  return Unimplemented("the emulated GPU runs on x86-64 only");
#else
  const LinkSymbol table[] = {
      Symbol("kiln.gpu.emulated.access", &Access), Symbol("kiln.gpu.emulated.barrier", &Barrier),
      Symbol("kiln.gpu.emulated.warp", &Warp),     Symbol("kiln.gpu.emulated.fence", &Fence),
      Symbol("kiln.gpu.emulated.copy", &Copy),     Symbol("kiln.gpu.emulated.commit", &Commit),
      Symbol("kiln.gpu.emulated.wait", &Wait),     Symbol("kiln.gpu.emulated.endless", &Endless),
      Symbol("__truncsfbf2", &TruncateToBfloat),   Symbol("__truncdfbf2", &TruncateDoubleToBfloat),
      Symbol("__truncsfhf2", &TruncateToHalf),     Symbol("__truncdfhf2", &TruncateDoubleToHalf),
      Symbol("__extendhfsf2", &ExtendHalf),
  };
  std::unique_ptr<EmulatedCode> code(new EmulatedCode);
  KILN_ASSIGN_OR_RETURN(code->code_, Link({object}, table));
  KILN_ASSIGN_OR_RETURN(code->stack_bytes_, StackBytesOf({object}));
  return code;
#endif
}

Result<const EmulatedKernel*> EmulatedCode::Find(const std::string& symbol) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = kernels_.find(symbol);
  if (found == kernels_.end()) {
    Result<void*> info = code_->Find(symbol + ".kernel");
    if (!info.ok()) {
      if (info.status().code() != Code::kInternal) return info.status();
      return NotFound("kernel ", symbol, ": ", info.status().message());
    }
    EmulatedKernel kernel{symbol, *static_cast<const kiln_emulated_kernel*>(*info), stack_bytes_};
    found = kernels_.emplace(symbol, std::move(kernel)).first;
  }
  return &found->second;
}

Emulator::Emulator(runtime::ThreadPool& pool, const EmulatorOptions& options)
    : pool_(pool), options_(options) {}

Emulator::~Emulator() = default;

Result<std::unique_ptr<EmulatedWorker>> Emulator::Acquire() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) {
    std::unique_ptr<EmulatedWorker> worker(new (std::nothrow) EmulatedWorker);
    if (!worker) return ResourceExhausted("no memory for a worker of the emulated GPU");
    return worker;
  }
  std::unique_ptr<EmulatedWorker> worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

void Emulator::Release(std::unique_ptr<EmulatedWorker> worker) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(worker));
}

Status Emulator::Run(const EmulatedKernel& kernel, const GpuGrid& grid,
                     std::span<const GpuSpan> args, const int32_t* cancel) {
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 ||
      grid.threads > kMostThreads || grid.threads % kWarpLanes != 0 || grid.shared_bytes < 0) {
    return Internal("kernel ", kernel.name, ": no GPU has a grid of ", grid.blocks, " blocks of ",
                    grid.threads, " threads with ", grid.shared_bytes, " bytes of shared memory");
  }
  if (static_cast<size_t>(kernel.info.parameters) != args.size()) {
    return Internal("kernel ", kernel.name, " has ", kernel.info.parameters, " parameters, but ",
                    args.size(), " were given");
  }
  int64_t workers = std::min<int64_t>(pool_.threads(), grid.blocks);
  // Waking a host thread takes as long as a few thousand short GPU threads.
  if (grid.blocks * grid.threads <= 2048) workers = 1;
  if (options_.watch_global_memory) workers = 1;
  // Neighbouring blocks have neighbouring memory.
  int64_t piece_blocks = std::clamp<int64_t>(grid.blocks / (workers * 16), 1, 256);
  EmulatedGrid run(kernel, grid, args, options_, piece_blocks, cancel);
  if (options_.watch_global_memory) {
    try {
      run.global.Begin(args, kernel.info.written, kernel.info.global_granule);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("kernel ", kernel.name, ": no memory to watch what it writes");
    }
  }
  struct Context {
    Emulator* emulator;
    EmulatedGrid* run;
  } context{this, &run};
  auto work = [](void* c, int64_t) {
    auto [emulator, run] = *static_cast<Context*>(c);
    DefaultFloatEnvironment environment;
    auto worker = emulator->Acquire();
    if (!worker.ok()) {
      run->Fail(worker.status());
      return;
    }
    (*worker)->Run(*run);
    emulator->Release(*std::move(worker));
  };
  if (workers == 1) {
    work(&context, 0);
  } else {
    pool_.Run(workers, work, &context);
  }
  return run.status();
}

}  // namespace kiln::device
