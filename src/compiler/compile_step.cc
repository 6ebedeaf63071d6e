#include "compiler/compile_step.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "compiler/backend.h"
#include "compiler/identify.h"
#include "kernel/contraction.h"

namespace kiln::compiler {
namespace {

// Adds an argument, whose type does not matter, and says where it is.
program::Slice AddArgument(program::Program& program, int64_t bytes) {
  const size_t number = program.allocations.size();
  program.signature.parameters.emplace_back(ElementType::kU8, std::vector<Dimension>{bytes});
  program.signature.parameter_names.emplace_back();
  return {program.allocations.Add({program::Allocation::Kind::kParameter, number, bytes}), 0,
          bytes};
}

Result<program::Artefact> Generate(codegen::LoweredProgram lowered, program::Step step,
                                   std::string_view text, const Backend& backend) {
  lowered.program.steps.push_back(std::move(step));
  Identify(lowered, backend.target(), {text});
  backend.Finish(lowered);
  program::Artefact artefact;
  KILN_ASSIGN_OR_RETURN(artefact.code, backend.Generate(lowered, codegen::Options()));
  artefact.program = std::move(lowered.program);
  return artefact;
}

}  // namespace

std::string KernelText(const kernel::ScheduledKernel& kernel) {
  // What a gemm's schedule depends on beside the kernel is told of it.
  const auto* gemm = std::get_if<kernel::CpuGemm>(&kernel.schedule);
  const int role = gemm ? 1 + static_cast<int>(gemm->role) : 0;
  std::string text = Cat(role, " ", kernel.kernel.ToString());
  if (gemm) {
    const kernel::Contraction& c = *gemm->contraction;
    text += Cat(*gemm->schedule, " ", c.problem, " ", c.a_param);
  }
  return text;
}

Result<program::Artefact> CompileLaunch(const kernel::ScheduledKernel& kernel,
                                        std::string_view text,
                                        const std::vector<program::Slice>& args,
                                        const Backend& backend) {
  codegen::LoweredProgram lowered;
  lowered.program.name = kernel.kernel.name;
  lowered.program.launches = {{kernel.kernel.name, kernel.kernel.op_names, 0, 0}};
  lowered.kernels = {kernel};
  program::Launch launch{.kernel = program::KernelId(0), .id = program::LaunchId(0)};
  for (const program::Slice& slice : args) {
    launch.args.push_back(AddArgument(lowered.program, slice.bytes));
  }
  return Generate(std::move(lowered), {std::move(launch)}, text, backend);
}

Result<program::Artefact> CompileHostCall(const program::HostCall& call,
                                          const program::LaunchInfo& info, const Backend& backend) {
  codegen::LoweredProgram lowered;
  lowered.program.name = call.target;
  lowered.program.launches = {info};
  program::HostCall own{.target = call.target, .config = call.config, .id = program::LaunchId(0)};
  for (const program::Slice& slice : call.args) {
    program::Slice argument = AddArgument(lowered.program, slice.bytes);
    argument.allocation =
        program::AllocationId(std::ranges::find(call.args, slice) - call.args.begin());
    own.args.push_back(argument);
  }
  return Generate(std::move(lowered), {std::move(own)}, "", backend);
}

}  // namespace kiln::compiler
