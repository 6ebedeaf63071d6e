// StableHLO text: what the importer accepts is a module that the verifier takes, and that HLO text
// says.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "ir/text.h"
#include "ir/verifier.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const kiln::stablehlo::Chunk& chunk : kiln::stablehlo::SplitChunks(text)) {
    auto tree = kiln::stablehlo::ReadText(chunk.text, {.first_line = chunk.first_line});
    if (!tree.ok()) continue;
    auto module = kiln::stablehlo::Import(**tree);
    if (!module.ok()) continue;
    if (kiln::Status status = kiln::ir::Verify(**module); !status.ok()) {
      std::printf("%.*s\nbecomes a wrong module: %s\n", static_cast<int>(chunk.text.size()),
                  chunk.text.data(), status.ToString().c_str());
      std::abort();
    }
    kiln::ir::ToHloText(**module, {.max_literal_elements = 100});
  }
  return 0;
}
