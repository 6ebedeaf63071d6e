#include "support/gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/strings.h"
#include "device/cuda/machine.h"
#include "device/emulated/machine.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/guarded_memory.h"
#include "support/hlo.h"
#include "support/literal.h"
#include "support/ptxas.h"
#include "target/target.h"

namespace kiln::testing {
namespace {

class OnGpu : public runtime::LoadedExecutable {
 public:
  OnGpu(device::GpuDevice& device, std::unique_ptr<runtime::LoadedExecutable> executable)
      : device_(device), executable_(std::move(executable)) {}

  const program::Program& program() const override { return executable_->program(); }
  int64_t code_bytes() const override { return executable_->code_bytes(); }

  Status Run(std::span<const void* const> arguments, std::span<void* const> results,
             const runtime::RunOptions& options) override {
    const program::Signature& signature = program().signature;
    Arrays arrays(device_);
    std::vector<const void*> in;
    std::vector<void*> out;
    KILN_RETURN_IF_ERROR(CopyArguments(arguments, arrays, in));
    for (size_t i = 0; i < results.size(); ++i) {
      // What is donated is one memory.
      int alias = signature.aliases.empty() ? -1 : signature.aliases[i];
      if (alias >= 0 && results[i] == arguments[static_cast<size_t>(alias)]) {
        out.push_back(const_cast<void*>(in[static_cast<size_t>(alias)]));
        continue;
      }
      KILN_ASSIGN_OR_RETURN(std::byte * memory, arrays.New(signature.results[i].byte_size()));
      out.push_back(memory);
    }
    KILN_RETURN_IF_ERROR(executable_->Run(in, out, options));
    for (size_t i = 0; i < results.size(); ++i) {
      KILN_RETURN_IF_ERROR(device_.CopyToHost(results[i], static_cast<std::byte*>(out[i]),
                                              signature.results[i].byte_size()));
    }
    return OkStatus();
  }

  Result<std::shared_ptr<const runtime::Binding>> Bind(
      const runtime::Binding* previous, std::span<const size_t> groups,
      std::span<const void* const> arguments) override {
    Arrays arrays(device_);
    std::vector<const void*> in;
    KILN_RETURN_IF_ERROR(CopyArguments(arguments, arrays, in));
    return executable_->Bind(previous, groups, in);
  }

 private:
  class Arrays {
   public:
    explicit Arrays(device::GpuDevice& device) : device_(device) {}
    ~Arrays() {
      for (auto [memory, bytes] : memory_) device_.Deallocate(memory, bytes);
    }
    Arrays(const Arrays&) = delete;
    Arrays& operator=(const Arrays&) = delete;

    Result<std::byte*> New(int64_t bytes) {
      KILN_ASSIGN_OR_RETURN(std::byte * memory, device_.Allocate(bytes));
      memory_.push_back({memory, bytes});
      return memory;
    }

   private:
    device::GpuDevice& device_;
    std::vector<std::pair<std::byte*, int64_t>> memory_;
  };

  // Those that there are: some frozen ones are not read.
  Status CopyArguments(std::span<const void* const> arguments, Arrays& arrays,
                       std::vector<const void*>& in) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i]) {
        in.push_back(nullptr);
        continue;
      }
      const int64_t bytes = program().signature.parameters[i].byte_size();
      KILN_ASSIGN_OR_RETURN(std::byte * memory, arrays.New(bytes));
      KILN_RETURN_IF_ERROR(device_.CopyFromHost(memory, arguments[i], bytes));
      in.push_back(memory);
    }
    return OkStatus();
  }

  device::GpuDevice& device_;
  std::unique_ptr<runtime::LoadedExecutable> executable_;
};

std::shared_ptr<device::GpuMachine> EmulatedMachineOf(int sm, bool loops_on_device) {
  static auto& allocator = *new runtime::Allocator(GuardedMemory());
  device::EmulatedMachine::Options options;
  options.emulator.watch_global_memory = true;
  options.loops_on_device = loops_on_device;
  auto machine =
      device::EmulatedMachine::Create(target::EmulatedGpu(sm).value(), Pool(), allocator, options);
  return std::move(machine).value();
}

// By KILN_CUDA_LIBRARY, as a context finds it.
std::shared_ptr<device::GpuMachine> CudaMachineOf(int sm, bool loops_on_device) {
  device::cuda::CudaOptions options;
  if (const char* library = std::getenv("KILN_CUDA_LIBRARY"); library && *library) {
    options.library = library;
  }
  options.architecture = sm;
  options.loops_on_device = loops_on_device;
  device::cuda::CudaDevices found = device::cuda::Discover(options);
  if (found.machines.empty()) {
    std::fprintf(stderr, "KILN_TEST_DEVICE is CUDA: %s\n", Join(found.notes, "\n").c_str());
    std::exit(1);
  }
  return std::move(found.machines[0]);
}

// Of a program's target, "gpu sm_80 ...".
int SmOf(const program::Program& program) {
  constexpr std::string_view kBeginning = "gpu sm_";
  return std::stoi(program.target.substr(kBeginning.size()));
}

}  // namespace

device::GpuDevice& SharedGpu(int sm, bool loops_on_device) {
  static auto& devices = *new std::map<std::pair<int, bool>, std::unique_ptr<device::GpuDevice>>;
  auto& device = devices[{sm, loops_on_device}];
  if (!device) {
    device =
        std::make_unique<device::GpuDevice>("GPU:0",
                                            IsTestOfCuda() ? CudaMachineOf(sm, loops_on_device)
                                                           : EmulatedMachineOf(sm, loops_on_device),
                                            0);
  }
  return *device;
}

Result<std::unique_ptr<runtime::LoadedExecutable>> LoadOnGpu(
    const std::shared_ptr<const program::Artefact>& artefact) {
  device::GpuDevice& device = SharedGpu(SmOf(artefact->program));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<runtime::LoadedExecutable> executable,
                        device.Load(*artefact));
  return std::unique_ptr<runtime::LoadedExecutable>(
      std::make_unique<OnGpu>(device, std::move(executable)));
}

Result<Loaded> LoadOnGpu(const ir::Module& module, bool fuse, device::GpuDevice& device,
                         std::vector<size_t> frozen) {
  compiler::Options options;
  options.frozen = std::move(frozen);
  options.verify = true;
  options.fuse = fuse;
  KILN_ASSIGN_OR_RETURN(CompiledProgram compiled,
                        CompileWithKernels(module.Clone(), device.target(), options));
  KILN_ASSIGN_OR_RETURN(auto artefact, SavedAndRestored(compiled.artefact));
  KILN_ASSIGN_OR_RETURN(Loaded loaded, LoadOnGpu(std::move(artefact), device));
  loaded.lowered = std::make_shared<const codegen::LoweredProgram>(std::move(compiled.lowered));
  return loaded;
}

Result<Loaded> LoadOnGpu(std::shared_ptr<const program::Artefact> artefact,
                         device::GpuDevice& device) {
  Loaded loaded;
  loaded.artefact = std::move(artefact);
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<runtime::LoadedExecutable> executable,
                        device.Load(*loaded.artefact));
  loaded.executable = std::make_unique<OnGpu>(device, std::move(executable));
  return loaded;
}

Result<Loaded> LoadOnGpu(const ir::Module& module, bool fuse, int sm) {
  return LoadOnGpu(module, fuse, SharedGpu(sm));
}

Result<Literal> RunOnGpu(const Loaded& loaded, const std::vector<Literal>& arguments) {
  Execution run(*loaded.artefact);
  run.SetArguments(arguments);
  KILN_RETURN_IF_ERROR(loaded.executable->Run(run.arguments(), run.results()));
  return run.Result();
}

std::string AssembleProgram(const ir::Module& module, bool fuse) {
  compiler::Options options;
  options.verify = true;
  options.fuse = fuse;
  for (int sm : {75, 80, 90}) {
    auto artefact = compiler::Compile(module.Clone(), target::NvidiaGpu(sm).value(), options);
    if (!artefact.ok()) return artefact.status().ToString();
    for (const std::string& ptx : artefact->code) {
      if (ptx.find(Cat(".target sm_", sm)) == std::string::npos) return Cat("no sm_", sm, " in it");
      std::string problem = Assemble(sm, ptx);
      if (problem.empty() && sm == 90) problem = Assemble(120, ptx);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

namespace {

// Functions of half types may be one step off.
double BoundOf(const codegen::LoweredProgram& lowered) {
  double bound = 1e-5;
  for (const kernel::ScheduledKernel& k : lowered.kernels) {
    for (const kernel::Stage& stage : k.kernel.stages) {
      for (const kernel::Node& n : stage.nodes) {
        bound = std::max(bound, n.type == ElementType::kBF16  ? 0x1p-7
                                : n.type == ElementType::kF16 ? 0x1p-10
                                                              : 0);
      }
    }
  }
  return bound;
}

}  // namespace

std::vector<kernel::GpuSchedule> CheckOnGpu(const std::string& text, double bound) {
  std::vector<kernel::GpuSchedule> schedules;
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = RandomArguments(*module, 7);
  auto expected = interp::Evaluate(*module, arguments);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    EXPECT_EQ(AssembleProgram(*module, fuse), "");
    auto loaded = LoadOnGpu(*module, fuse);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    if (!loaded.ok()) return schedules;
    const program::Program& program = loaded->artefact->program;
    for (const kernel::ScheduledKernel& k : loaded->lowered->kernels) {
      if (const auto* grids = kernel::GridsOf(k.schedule)) schedules.push_back(*grids);
      const auto* bundle = std::get_if<kernel::GpuBundle>(&k.schedule);
      if (!bundle) continue;
      for (const kernel::GpuBundle::Part& part : bundle->parts) schedules.push_back(part.schedule);
    }
    // The second run is that of a graph, with other addresses.
    for (int run = 0; run < 2; ++run) {
      auto actual = RunOnGpu(*loaded, arguments);
      EXPECT_TRUE(actual.ok()) << actual.status().ToString() << "\n" << program.ToString();
      if (!actual.ok()) return schedules;
      const double most = bound < 0 ? BoundOf(*loaded->lowered) : bound;
      EXPECT_EQ(Difference(*expected, *actual, most, most), "")
          << (fuse ? "fused\n" : "op by op\n") << program.ToString();
    }
  }
  return schedules;
}

}  // namespace kiln::testing
