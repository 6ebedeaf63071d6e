#include "client/compile.h"

#include <optional>
#include <utility>

#include "base/heap.h"
#include "base/strings.h"
#include "base/trace.h"
#include "client/dump_folder.h"

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

}  // namespace

Result<Ref<CompiledExecutable>> Compile(Device& device, std::unique_ptr<ir::Module> module,
                                        CompileOptions options) {
  Client& client = device.client();
  const std::shared_ptr<TraceSink> trace = client.trace();
  compiler::Options& compiler = options.compiler;
  compiler.threads = client.threads();
  compiler.module_number = client.NextModuleNumber();
  compiler.trace = trace.get();
  std::optional<DumpFolder> folder;
  if (!options.dump_folder.empty()) {
    KILN_ASSIGN_OR_RETURN(folder, DumpFolder::Open(options.dump_folder));
    compiler.dump = [&](const std::string& name, std::string_view text) {
      folder->Write(name, text);
    };
  }
  const std::string name = module->name();
  const bool has_partial_cost = HasPartialCost(*module);
  auto compiled = compiler::Compile(std::move(module), device.runtime().target(), compiler);
  if (folder) KILN_RETURN_IF_ERROR(folder->status());
  if (!compiled.ok()) return compiled.status();
  TraceSpan loading(trace.get(), Cat("load ", name), "load");
  KILN_ASSIGN_OR_RETURN(auto loaded, device.runtime().Load(*std::move(compiled), trace.get()));
  loading.End();
  // Constants were packed, folded and copied on the way.
  TrimHeap(loaded->constant_bytes());
  if (folder) {
    const std::string report = loaded->ResourceReport();
    const std::string prefix = compiler::DumpPrefix(name, compiler.module_number);
    if (!report.empty()) folder->Write(Cat(prefix, "resources.txt"), report);
    KILN_RETURN_IF_ERROR(folder->status());
  }
  const int64_t microseconds = (TraceSink::Now() - options.start_ns) / 1000;
  client.Log(LogLevel::kInfo,
             Cat("compiled '", name, "' for ", device.name(), " in ", microseconds, " us"));
  return MakeRef<CompiledExecutable>(device, std::move(loaded), microseconds, has_partial_cost);
}

}  // namespace kiln::client
