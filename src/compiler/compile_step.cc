#include "compiler/compile_step.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "compiler/program_id.h"
#include "compiler/program_kernels.h"
#include "frame/frame.h"
#include "kernel/contraction.h"

namespace kiln::compiler {
namespace {

// Adds an argument, and says where it is.
program::Slice AddArgument(program::Program& program, int64_t bytes) {
  const int number = static_cast<int>(program.allocations.size());
  program.allocations.push_back({program::Allocation::Kind::kParameter, number, bytes});
  return {number, 0, bytes};
}

Result<program::Artefact> Generate(codegen::LoweredProgram lowered, program::Step step,
                                   std::string_view text, const target::Target& target) {
  program::Program& p = lowered.program;
  p.target = target.ToString();
  p.frame_version = KILN_FRAME_VERSION;
  p.steps.push_back(std::move(step));
  p.id = ProgramId(p, target, {text});
  DescribeKernels(lowered, target.kind);
  program::Artefact artefact;
  KILN_ASSIGN_OR_RETURN(artefact.code,
                        target.kind == target::Kind::kGpu
                            ? codegen::GenerateGpu(lowered, target, codegen::Options())
                            : codegen::GenerateCpu(lowered, target.cpu, codegen::Options()));
  artefact.program = std::move(p);
  return artefact;
}

}  // namespace

std::string KernelText(const kernel::ScheduledKernel& kernel) {
  std::string text = Cat(static_cast<int>(kernel.form), " ", kernel.kernel.ToString());
  if (kernel.gemm) {
    text += Cat(*kernel.gemm, " ", kernel.contraction->problem, " ", kernel.contraction->a_param);
  }
  return text;
}

Result<program::Artefact> CompileLaunch(const kernel::ScheduledKernel& kernel,
                                        std::string_view text,
                                        const std::vector<program::Slice>& args,
                                        const target::Target& target) {
  codegen::LoweredProgram lowered;
  lowered.program.name = kernel.kernel.name;
  lowered.program.launches = {{kernel.kernel.name, kernel.kernel.op_names, 0, 0}};
  lowered.kernels = {kernel};
  program::Launch launch{.kernel = 0, .id = 0};
  for (const program::Slice& slice : args) {
    launch.args.push_back(AddArgument(lowered.program, slice.bytes));
  }
  return Generate(std::move(lowered), {std::move(launch)}, text, target);
}

Result<program::Artefact> CompileCall(const program::Call& call, const program::LaunchInfo& info,
                                      const target::Target& target) {
  codegen::LoweredProgram lowered;
  lowered.program.name = call.target;
  lowered.program.launches = {info};
  program::Call own{.target = call.target, .config = call.config, .id = 0};
  for (const program::Slice& slice : call.args) {
    program::Slice argument = AddArgument(lowered.program, slice.bytes);
    argument.allocation = static_cast<int>(std::ranges::find(call.args, slice) - call.args.begin());
    own.args.push_back(argument);
  }
  return Generate(std::move(lowered), {std::move(own)}, "", target);
}

}  // namespace kiln::compiler
