#include "compiler/gpu/backend.h"

#include "compiler/gpu/grids.h"
#include "passes/pipelines.h"

namespace kiln::compiler {
namespace {

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(const target::Target& target) : Backend(target) {}

  std::string_view platform() const override { return "gpu"; }
  bool runs_kernels() const override { return true; }
  const passes::Pipeline& pipeline() const override { return passes::GpuPipeline(); }
  // The scratch of a call is host memory.
  bool calls_have_scratch() const override { return false; }
  bool counts_trips() const override { return true; }
  void Finish(codegen::LoweredProgram& lowered) const override { DescribeGrids(lowered); }
  Result<std::vector<std::string>> Generate(const codegen::LoweredProgram& lowered,
                                            const codegen::Options& options) const override {
    return codegen::GenerateGpu(lowered, target(), options);
  }
};

}  // namespace

std::unique_ptr<const Backend> MakeGpuBackend(const target::Target& target) {
  return std::make_unique<GpuBackend>(target);
}

}  // namespace kiln::compiler
