#include "aot/build.h"

#include <memory>
#include <utility>

#include "aot/header.h"
#include "aot/program_object.h"
#include "device/cpu/executable.h"
#include "runtime/arena.h"
#include "runtime/custom_calls.h"
#include "runtime/thread_pool.h"

namespace kiln::aot {
namespace {

// A function in the place of the user's, which is not called here.
class Absent : public runtime::lib::Function {
 public:
  Status Run(const kiln_frame*, void* const*) const override {
    return Internal("a function of the user's was called while compiling");
  }
};

Status AddAbsent(const program::Program& program, runtime::CustomCallRegistry& registry) {
  for (const std::string& target : UserTargets(program)) {
    runtime::CustomCallRegistry::Maker make =
        [](const CallSignature&) -> Result<std::shared_ptr<const runtime::lib::Function>> {
      return std::shared_ptr<const runtime::lib::Function>(std::make_shared<Absent>());
    };
    KILN_RETURN_IF_ERROR(registry.Add(target, make));
  }
  return OkStatus();
}

// The program with the prologue's constants in it, in the place of the prologue.
Result<program::Artefact> WithoutPrologue(program::Artefact artefact) {
  runtime::Allocator allocator;
  runtime::ThreadPool pool(1);
  runtime::CustomCallRegistry registry;
  KILN_RETURN_IF_ERROR(AddAbsent(artefact.program, registry));
  artefact.keeps_code = true;
  KILN_ASSIGN_OR_RETURN(
      const std::unique_ptr<device::CpuExecutable> executable,
      device::CpuExecutable::Load(std::move(artefact), allocator, pool, &registry));
  return executable->Save();
}

Result<Version> MakeVersion(const ir::Module& module, const target::Target& target,
                            const Options& options) {
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact,
                        compiler::Compile(module.Clone(), target, options.compiler));
  const bool runs_here = target::CheckRunsOn(target.ToString(), target::HostCpu()).ok();
  if (options.packs && !artefact.program.prologue.empty() && runs_here) {
    KILN_ASSIGN_OR_RETURN(artefact, WithoutPrologue(std::move(artefact)));
  }
  return Version{std::move(artefact), target};
}

}  // namespace

Result<Built> Build(const ir::Module& module, const Options& options) {
  std::vector<Version> versions;
  for (const target::Target& target : options.targets) {
    KILN_ASSIGN_OR_RETURN(Version version, MakeVersion(module, target, options));
    versions.push_back(std::move(version));
  }
  KILN_ASSIGN_OR_RETURN(ProgramObject made,
                        MakeProgramObject(options.name, versions, options.threads));
  const program::Program& program = versions[0].artefact.program;
  HeaderOptions header{.name = options.name,
                       .class_name = options.class_name,
                       .threads = options.threads,
                       .memory_bytes = made.memory_bytes,
                       .stack_bytes = made.stack_bytes,
                       .argument_alignments = ArgumentAlignments(versions),
                       .user_functions = UserFunctions(program)};
  for (const Version& version : versions) header.targets.push_back(version.target.ToString());
  KILN_ASSIGN_OR_RETURN(std::string text, HeaderText(program, header));
  return Built{std::move(made.object), std::move(text)};
}

}  // namespace kiln::aot
