#include "client/compile.h"

#include <utility>

#include "base/heap.h"
#include "base/strings.h"
#include "base/trace.h"
#include "client/donation.h"
#include "client/dumps.h"
#include "client/program_cache.h"
#include "compiler/cache_key.h"
#include "program/saved.h"

namespace kiln::client {
namespace {

// Whether its operation count is incomplete.
bool HasPartialCost(const ir::Module& module) {
  for (const auto& computation : module.computations()) {
    if (computation->MayHold(Opcode::kWhile) || computation->MayHold(Opcode::kCustomCall)) {
      return true;
    }
  }
  return false;
}

// Flags are the defaults of options.
void ApplyFlags(const flags::CompileFlags& flags, compiler::Options& options) {
  options.verify |= flags.verify;
  if (options.disabled_passes.empty()) {
    options.disabled_passes = {flags.disabled_passes.begin(), flags.disabled_passes.end()};
  }
  if (options.dump_ptx_sm == 0) options.dump_ptx_sm = static_cast<int>(flags.dump_ptx_sm);
  if (flags.dump_large_constants) options.dump_literal_elements = INT64_MAX;
}

// The key of a compilation in the cache; empty: it must happen. Of all options, so that a new one
// is not forgotten.
std::string KeyOf(const Device& device, const ir::Module& module, const CompileOptions& options,
                  const std::vector<bool>& donatable) {
  const auto& [can_be_saved, compiler, donors, dump_folder, start_ns] = options;
  if (compiler.dump || compiler.at_stage || compiler.lowered) return "";
  std::string key = compiler::CacheKey(module, device.runtime().target(), compiler);
  if (key.empty()) return "";
  key += "donatable ";
  for (const bool may_be : donatable) key += may_be ? '1' : '0';
  return key + "\n";
}

// That frozen arguments are arrays, whose memory executions never write.
Status CheckFrozen(const std::vector<size_t>& frozen, const ir::Module& module,
                   const std::vector<bool>& donatable) {
  std::vector<Shape> arguments;
  for (const ir::Instruction* parameter : module.entry()->parameters()) {
    ForEachLeaf(parameter->shape(), [&](const Shape& leaf, auto) { arguments.push_back(leaf); });
  }
  for (const size_t number : frozen) {
    if (number >= arguments.size()) {
      return InvalidArgument("frozen argument ", number, ": there are ", arguments.size(),
                             " arguments");
    }
    if (!arguments[number].is_array()) {
      return InvalidArgument("frozen argument ", number, " is a token");
    }
    if (donatable[number]) {
      return InvalidArgument("frozen argument ", number,
                             " may be donated: a result is in its memory, or it is a donor");
    }
  }
  return OkStatus();
}

// `done`: "compiled" or "loaded" and from where, since `start_ns`.
Ref<CompiledExecutable> Finished(Device& device, std::unique_ptr<runtime::LoadedExecutable> loaded,
                                 std::string_view done, int64_t start_ns) {
  const int64_t microseconds = (TraceSink::Now() - start_ns) / 1000;
  device.client().Log(LogLevel::kInfo, Cat(done, " '", loaded->program().name, "' for ",
                                           device.name(), " in ", microseconds, " us"));
  return MakeRef<CompiledExecutable>(device, std::move(loaded), microseconds);
}

// `restore`: the artefact that was saved.
template <typename Restore>
Result<Ref<CompiledExecutable>> LoadSaved(Device& device, const Restore& restore) {
  const int64_t start = TraceSink::Now();
  const std::shared_ptr<TraceSink> trace = device.client().trace();
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact, restore());
  artefact.keeps_code = true;
  KILN_ASSIGN_OR_RETURN(auto loaded, Load(device, std::move(artefact), trace.get()));
  return Finished(device, std::move(loaded), "loaded", start);
}

}  // namespace

Result<Ref<CompiledExecutable>> Compile(Device& device, std::unique_ptr<ir::Module> module,
                                        CompileOptions options) {
  Client& client = device.client();
  const std::shared_ptr<TraceSink> trace = client.trace();
  compiler::Options& compiler = options.compiler;
  compiler.threads = client.threads();
  compiler.module_number = client.NextModuleNumber();
  compiler.trace = trace.get();
  ApplyFlags(client.flags().compile, compiler);
  Dumps dumps(client, *module, compiler);
  KILN_RETURN_IF_ERROR(dumps.Open(options.dump_folder));
  KILN_ASSIGN_OR_RETURN(std::vector<bool> donatable, AliasDonors(options.donors, *module));
  KILN_RETURN_IF_ERROR(CheckFrozen(compiler.frozen, *module, donatable));
  const std::string name = module->name();
  const std::string key = client.cache() ? KeyOf(device, *module, options, donatable) : "";
  KILN_ASSIGN_OR_RETURN(
      LoadedProgram program,
      LoadThroughCache(
          device, key, name, options.can_be_saved, trace.get(), [&]() -> Result<program::Artefact> {
            const bool has_partial_cost = HasPartialCost(*module);
            auto compiled =
                compiler::Compile(std::move(module), device.runtime().target(), compiler);
            KILN_RETURN_IF_ERROR(dumps.status());
            if (!compiled.ok()) return compiled.status();
            compiled->program.has_partial_cost = has_partial_cost;
            compiled->program.donatable = std::move(donatable);
            return compiled;
          }));
  // Constants were packed, folded and copied on the way.
  TrimHeap(program.executable->constant_bytes());
  if (dumps.is_on()) {
    const std::string report = program.executable->ResourceReport();
    const std::string prefix = compiler::DumpPrefix(name, compiler.module_number);
    if (!report.empty()) dumps.Write(Cat(prefix, "resources.txt"), report);
    KILN_RETURN_IF_ERROR(dumps.status());
  }
  return Finished(device, std::move(program.executable),
                  program.from_cache ? "loaded from the cache" : "compiled", options.start_ns);
}

Result<std::string> SaveExecutable(const CompiledExecutable& executable) {
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact, executable.loaded().Save());
  return program::Save(artefact);
}

Status SaveExecutableFile(const CompiledExecutable& executable, const std::string& path) {
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact, executable.loaded().Save());
  return program::SaveFile(artefact, path);
}

Result<Ref<CompiledExecutable>> LoadExecutable(Device& device, std::string_view bytes) {
  return LoadSaved(device, [&] { return program::Restore(bytes); });
}

Result<Ref<CompiledExecutable>> LoadExecutableFile(Device& device, const std::string& path) {
  return LoadSaved(device, [&] { return program::RestoreFile(path); });
}

}  // namespace kiln::client
