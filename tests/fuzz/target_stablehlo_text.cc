// StableHLO text: the reader takes anything, and what it accepts prints to text that reads back the
// same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "stablehlo/mlir/print.h"
#include "stablehlo/text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kiln::mlir::PrintOptions options{.sources = true};
  for (const kiln::stablehlo::Chunk& chunk : kiln::stablehlo::SplitChunks(text)) {
    auto module = kiln::stablehlo::ReadText(chunk.text, {.first_line = chunk.first_line});
    if (!module.ok()) continue;
    std::string printed = kiln::mlir::ToText(**module, options);
    auto again = kiln::stablehlo::ReadText(printed);
    if (!again.ok()) {
      std::printf("%s\ndoes not read back: %s\n", printed.c_str(),
                  again.status().ToString().c_str());
      std::abort();
    }
    if (std::string twice = kiln::mlir::ToText(**again, options); twice != printed) {
      std::printf("%s\nreads back as\n%s\n", printed.c_str(), twice.c_str());
      std::abort();
    }
  }
  return 0;
}
