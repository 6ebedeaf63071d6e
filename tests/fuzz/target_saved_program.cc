// Saved programs: the reader takes anything, with the sums of the bytes or with mended ones; what
// it accepts is saved and comes back the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "program/container.h"
#include "program/saved.h"

namespace {

using kiln::program::Restore;
using kiln::program::Save;

[[noreturn]] void Found(std::string_view problem) {
  std::printf("%.*s\n", static_cast<int>(problem.size()), problem.data());
  std::abort();
}

void Check(std::string_view bytes) {
  auto artefact = Restore(bytes);
  if (!artefact.ok()) return;
  auto saved = Save(*artefact);
  if (!saved.ok()) Found(saved.status().ToString());
  auto again = Restore(*saved);
  if (!again.ok()) Found(again.status().ToString());
  auto twice = Save(*again);
  if (!twice.ok() || *twice != *saved) Found("a saved program comes back differently");
}

// The input as the description of a program whose code and constants are empty.
std::string AsDescription(std::string_view input) {
  std::string file;
  (void)kiln::program::WriteContainer({.description = std::string(input)},
                                      [&](std::string_view part) {
                                        file += part;
                                        return kiln::OkStatus();
                                      });
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string input(reinterpret_cast<const char*>(data), size);
  Check(input);
  Check(AsDescription(input));
  kiln::program::SealContainer(input);
  Check(input);
  return 0;
}
