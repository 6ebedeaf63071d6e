// Programs on devices, by way of the client's disk cache.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/trace.h"
#include "client/device.h"
#include "program/program.h"
#include "runtime/device.h"

namespace kiln::client {

// Without the cache. `trace` may be null, here and below.
Result<std::unique_ptr<runtime::LoadedExecutable>> Load(Device& device, program::Artefact artefact,
                                                        TraceSink* trace);

struct LoadedProgram {
  std::unique_ptr<runtime::LoadedExecutable> executable;
  bool from_cache = false;
};

// Loads the program of that key from the client's cache, or else the one that `compile` makes, and
// keeps it there. Constants stay in the mapped entry where the device can read them. With an empty
// key, or a client without a cache, just that. The program has the name. `keeps_code`: see
// program::Artefact. The cache adds no failure: a program that it cannot keep or that does not load
// is compiled as ever.
Result<LoadedProgram> LoadThroughCache(Device& device, const std::string& key,
                                       const std::string& name, bool keeps_code, TraceSink* trace,
                                       const std::function<Result<program::Artefact>()>& compile);

}  // namespace kiln::client
