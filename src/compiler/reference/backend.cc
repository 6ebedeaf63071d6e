#include "compiler/reference/backend.h"

#include "passes/pipelines.h"

namespace kiln::compiler {
namespace {

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(const target::Target& target) : Backend(target) {}

  std::string_view platform() const override { return "reference"; }
  bool runs_kernels() const override { return false; }
  const passes::Pipeline& pipeline() const override { return passes::OpByOpPipeline(); }
  bool calls_have_scratch() const override { return false; }
  bool counts_trips() const override { return false; }
  void Finish(codegen::LoweredProgram&) const override {}
  Result<std::vector<std::string>> Generate(const codegen::LoweredProgram&,
                                            const codegen::Options&) const override {
    return Internal("the reference device runs no kernels");
  }
};

}  // namespace

std::unique_ptr<const Backend> MakeReferenceBackend(const target::Target& target) {
  return std::make_unique<ReferenceBackend>(target);
}

}  // namespace kiln::compiler
