// Calls that save and load executables.
#include <cstdio>
#include <memory>
#include <string>

#include "base/strings.h"
#include "calls/callers.h"
#include "calls/world.h"

namespace kiln::fuzz {
namespace {

kiln_executable* HandleOf(const std::shared_ptr<ExecutableState>& executable) {
  return executable ? executable->handle : nullptr;
}

// What was loaded of an executable's bytes.
void AddLoaded(World& w, const std::shared_ptr<ExecutableState>& executable,
               const std::shared_ptr<ContextState>& context, size_t device, kiln_executable* made) {
  w.Expect(executable != nullptr, "an executable of no saved one");
  auto state = w.Add(w.executables, made);
  state->context = context;
  state->device = device;
  state->has_loops = executable->has_loops;
  state->is_large = executable->is_large;
}

}  // namespace

void Call_kiln_executable_serialize(World& w) {
  auto executable = w.PickOrNull(w.executables);
  kiln_text* bytes = World::Untouched<kiln_text>();
  w.Begin("kiln_executable_serialize", World::Name("executable", executable));
  if (w.Gave(kiln_executable_serialize(HandleOf(executable), &bytes), bytes)) {
    w.Add(w.texts, bytes);
  }
}

void Call_kiln_executable_fingerprint(World& w) {
  auto executable = w.PickOrNull(w.executables);
  kiln_text* text = World::Untouched<kiln_text>();
  w.Begin("kiln_executable_fingerprint", World::Name("executable", executable));
  if (w.Gave(kiln_executable_fingerprint(HandleOf(executable), &text), text)) {
    w.Add(w.texts, text);
  }
}

// On the device of the executable that was saved, or another one; or of any bytes.
void Call_kiln_executable_load(World& w) {
  auto executable = w.PickOrNull(w.executables);
  auto context = executable ? executable->context : w.Context();
  const size_t device = executable && w.Chance(90) ? executable->device : w.Device(*context);
  std::string bytes = w.WildText();
  kiln_text* saved = nullptr;
  if (executable && w.Ok(kiln_executable_serialize(executable->handle, &saved))) {
    size_t size = 0;
    const char* data = kiln_text_data(saved, &size);
    bytes.assign(data, size);
    kiln_text_release(saved);
    if (w.Chance(10)) bytes.resize(w.Below(size));
    if (w.Chance(10) && !bytes.empty()) bytes[w.Below(bytes.size())] ^= 4;
  }
  kiln_executable* made = World::Untouched<kiln_executable>();
  w.Begin("kiln_executable_load", context->names[device], ", ",
          World::Name("executable", executable), ", ", bytes.size(), " bytes");
  if (w.Gave(kiln_executable_load(context->devices[device], bytes.data(), bytes.size(), &made),
             made)) {
    AddLoaded(w, executable, context, device, made);
  }
}

void Call_kiln_executable_save(World& w) {
  auto executable = w.PickOrNull(w.executables);
  const std::string path =
      w.Chance(90) ? Cat(w.Folder(), "/program", w.Below(4)) : Cat(w.Folder(), "/", w.WildText());
  w.Begin("kiln_executable_save", World::Name("executable", executable), ", ", path.size());
  w.Ok(kiln_executable_save(HandleOf(executable), path.data(), path.size()));
}

// Of a file that is saved for it, or of none.
void Call_kiln_executable_load_file(World& w) {
  auto executable = w.PickOrNull(w.executables);
  auto context = executable ? executable->context : w.Context();
  const size_t device = executable && w.Chance(90) ? executable->device : w.Device(*context);
  const std::string path = Cat(w.Folder(), "/loaded");
  if (executable && w.Chance(95) &&
      !w.Ok(kiln_executable_save(executable->handle, path.data(), path.size()))) {
    return;
  }
  kiln_executable* made = World::Untouched<kiln_executable>();
  w.Begin("kiln_executable_load_file", context->names[device], ", ",
          World::Name("executable", executable));
  const bool loaded = w.Gave(
      kiln_executable_load_file(context->devices[device], path.data(), path.size(), &made), made);
  std::remove(path.c_str());
  if (loaded) AddLoaded(w, executable, context, device, made);
}

}  // namespace kiln::fuzz
