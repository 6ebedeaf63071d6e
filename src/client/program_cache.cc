#include "client/program_cache.h"

#include <utility>

#include "base/disk_cache.h"
#include "base/exception.h"
#include "base/strings.h"
#include "client/client.h"
#include "program/saved.h"

namespace kiln::client {

Result<std::unique_ptr<runtime::LoadedExecutable>> Load(Device& device, program::Artefact artefact,
                                                        TraceSink* trace) {
  const TraceSpan span(trace, Cat("load ", artefact.program.name), "load");
  return device.runtime().Load(std::move(artefact), trace);
}

namespace {

// Null: it is not there.
std::unique_ptr<runtime::LoadedExecutable> Find(Device& device, const std::string& key,
                                                const std::string& name, bool keeps_code,
                                                TraceSink* trace) {
  std::unique_ptr<runtime::LoadedExecutable> found;
  device.client().cache()->Find(key, [&](std::string_view contents, const auto& owner) -> Status {
    KILN_ASSIGN_OR_RETURN(program::Artefact artefact, program::Restore(contents, owner));
    artefact.program.name = name;
    artefact.keeps_code = keeps_code;
    KILN_ASSIGN_OR_RETURN(found, Load(device, std::move(artefact), trace));
    return OkStatus();
  });
  return found;
}

// What cannot be saved is not kept.
void Keep(DiskCache& cache, const std::string& key, const runtime::LoadedExecutable& executable) {
  (void)Try([&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const program::Artefact artefact, executable.Save());
    KILN_ASSIGN_OR_RETURN(const std::string saved, program::Save(artefact));
    cache.Insert(key, saved);
    return OkStatus();
  });
}

}  // namespace

Result<LoadedProgram> LoadThroughCache(Device& device, const std::string& key,
                                       const std::string& name, bool keeps_code, TraceSink* trace,
                                       const std::function<Result<program::Artefact>()>& compile) {
  LoadedProgram program;
  DiskCache* cache = key.empty() ? nullptr : device.client().cache();
  if (cache) {
    TraceSpan span(trace, Cat("find ", name), "cache");
    program.executable = Find(device, key, name, keeps_code, trace);
    program.from_cache = program.executable != nullptr;
    span.AddArg("found", int64_t{program.from_cache});
    if (program.from_cache) return program;
  }
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact, compile());
  artefact.keeps_code = keeps_code || cache;
  KILN_ASSIGN_OR_RETURN(program.executable, Load(device, std::move(artefact), trace));
  if (!cache) return program;
  const TraceSpan span(trace, Cat("keep ", name), "cache");
  Keep(*cache, key, *program.executable);
  if (!keeps_code) program.executable->DropCode();
  return program;
}

}  // namespace kiln::client
