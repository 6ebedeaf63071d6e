// Programs compiled for this machine, and their runs. Where the environment variable
// KILN_TEST_DEVICE is GPU, they are compiled for the emulated GPU instead, and run there; where it
// is CUDA, on the first GPU of the CUDA driver. Where KILN_TEST_PTXAS is set as well, ptxas looks
// at them for every architecture.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "codegen/codegen.h"
#include "codegen/lowered_program.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "ir/ir.h"
#include "program/program.h"
#include "tensor/literal.h"

namespace kiln::testing {

// Arguments and results of a run, in memory of their own.
class Execution {
 public:
  explicit Execution(const program::Artefact& artefact);
  ~Execution();

  void SetArguments(const std::vector<Literal>& literals);
  Literal Result() const;
  bool SameBits(const Execution& other) const;
  std::span<const void* const> arguments() const { return arguments_; }
  std::span<void* const> results() const { return results_; }

  static runtime::Allocator allocator;

 private:
  void* New(const Shape& s);
  void Put(const Literal& l, size_t& next);
  Literal Get(const Shape& shape, size_t& next) const;

  const program::Signature& signature_;
  std::vector<const void*> arguments_;
  std::vector<void*> results_;
  std::vector<std::pair<std::byte*, int64_t>> memory_;
};

// The artefact as it comes back from bytes, which must be the same program: all programs of the
// tests run so.
Result<std::shared_ptr<const program::Artefact>> SavedAndRestored(
    const program::Artefact& artefact);

// A module compiled, and what the compiler knew of its kernels.
struct CompiledProgram {
  program::Artefact artefact;
  codegen::LoweredProgram lowered;
};
Result<CompiledProgram> CompileWithKernels(std::unique_ptr<ir::Module> module,
                                           const target::Target& target,
                                           compiler::Options options = {});

struct Loaded {
  std::shared_ptr<const program::Artefact> artefact;
  std::shared_ptr<const codegen::LoweredProgram> lowered;  // null where it is not known
  // Takes and gives host memory, whatever the device is.
  std::unique_ptr<runtime::LoadedExecutable> executable;
};

// Whether KILN_TEST_DEVICE is GPU or CUDA: then nothing is expected of how a CPU's plan looks.
bool IsTestOfGpu();
// Whether it is CUDA.
bool IsTestOfCuda();

// How many tasks of a kernel a CPU thinks worth their dispatch; 1 on a GPU.
inline int64_t TasksOf(const kernel::ScheduledKernel& k) {
  return kernel::ItemsOf(k.schedule).value_or(kernel::CpuItems()).max_tasks;
}

// A program once more, on other threads; on a GPU these do not matter.
Result<std::unique_ptr<runtime::LoadedExecutable>> LoadOnPool(
    const std::shared_ptr<const program::Artefact>& artefact, runtime::ThreadPool& pool);

runtime::ThreadPool& Pool();

// The module for this machine, with vectors of at most so many bytes.
// Where waking a thread costs less, more is cut into tasks, and small kernels are bundled.
Result<Loaded> Load(const ir::Module& module, bool fuse, int vector_bytes = 64,
                    codegen::Optimization optimization = codegen::Optimization::kAuto,
                    double task_microseconds = 10, std::vector<size_t> frozen = {});
// The same, run once.
Result<Literal> RunCompiled(const ir::Module& module, const std::vector<Literal>& arguments,
                            bool fuse, int vector_bytes = 64);

// Expects that a module in HLO text, on random arguments, compiled fused and op by op for three
// vector widths, gives what the evaluator gives.
void Check(const std::string& text, double relative = 1e-5, double absolute = 1e-5);

}  // namespace kiln::testing
