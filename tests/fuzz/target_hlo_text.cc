// HLO text: the reader takes anything, and what it accepts prints to text that reads back the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/text.h"
#include "ir/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = kiln::ir::ParseHloText(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!module.ok()) return 0;
  std::string printed = kiln::ir::ToHloText(**module);
  auto again = kiln::ir::ParseHloText(printed);
  if (!again.ok()) {
    std::printf("%s\ndoes not read back: %s\n", printed.c_str(), again.status().ToString().c_str());
    std::abort();
  }
  if (std::string twice = kiln::ir::ToHloText(**again); twice != printed) {
    std::printf("%s\nreads back as\n%s\n", printed.c_str(), twice.c_str());
    std::abort();
  }
  return 0;
}
