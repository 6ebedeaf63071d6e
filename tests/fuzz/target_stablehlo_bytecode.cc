// Portable bytecode: the reader takes anything, and what it accepts prints, and is the same when it
// is read again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/mlir/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto module = kiln::stablehlo::ReadBytecode(bytes);
  if (!module.ok()) return 0;
  const std::string printed = kiln::mlir::ToText(**module, {.sources = true});
  auto again = kiln::stablehlo::ReadBytecode(bytes);
  if (!again.ok() || kiln::mlir::ToText(**again, {.sources = true}) != printed) {
    std::printf("%s\nis not read again as it was\n", printed.c_str());
    std::abort();
  }
  return 0;
}
