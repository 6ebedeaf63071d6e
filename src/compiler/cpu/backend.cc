#include "compiler/cpu/backend.h"

#include "compiler/cpu/alignment.h"
#include "compiler/cpu/duration.h"
#include "compiler/cpu/fuse_loops.h"
#include "compiler/cpu/waves.h"
#include "passes/pipelines.h"

namespace kiln::compiler {
namespace {

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(const target::Target& target) : Backend(target) {}

  std::string_view platform() const override { return "cpu"; }
  bool runs_kernels() const override { return true; }
  const passes::Pipeline& pipeline() const override { return passes::CpuPipeline(); }
  bool calls_have_scratch() const override { return true; }
  bool counts_trips() const override { return false; }
  void Finish(codegen::LoweredProgram& lowered) const override {
    FuseLoops(lowered);
    lowered.program.argument_alignments = ArgumentAlignments(lowered, target().cpu);
    lowered.program.nanoseconds = NanosecondsOf(lowered);
  }
  Waves FindWaves(codegen::LoweredProgram& lowered, int threads) const override {
    return compiler::FindWaves(lowered, target().cpu, threads);
  }
  Result<std::vector<std::string>> Generate(const codegen::LoweredProgram& lowered,
                                            const codegen::Options& options) const override {
    return codegen::GenerateCpu(lowered, target().cpu, options);
  }
};

}  // namespace

std::unique_ptr<const Backend> MakeCpuBackend(const target::Target& target) {
  return std::make_unique<CpuBackend>(target);
}

}  // namespace kiln::compiler
