// HLO text, out and in, interchangeable with XLA's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

struct PrintOptions {
  // Arrays of more elements are printed as "{...}".
  int64_t max_literal_elements = INT64_MAX;
  // If it is not null: constant arrays of more elements are printed as "{...}", and their literals
  // are added here, for the reader. Tuples are printed in full.
  std::vector<std::shared_ptr<const Literal>>* elided = nullptr;
  bool metadata = true;
  // Types before operands' names, as XLA's long form has them.
  bool operand_shapes = false;
};

std::string ToHloText(const Module& module, const PrintOptions& options = {});
std::string ToHloText(const Computation& computation, const PrintOptions& options = {});
std::string ToHloText(const Instruction& instruction, const PrintOptions& options = {});

struct ParseOptions {
  // The literal of each "{...}", in their order (PrintOptions::elided). Without them an omitted
  // literal has made-up elements, the same on every platform, which are valid indices where they
  // are used as such; RESOURCE_EXHAUSTED if they need more than 256 MiB.
  std::span<const std::shared_ptr<const Literal>> elided = {};
  // If it is not null: the number of literals with made-up elements.
  int64_t* made_up = nullptr;
};

// Reads a module and verifies it. Errors begin with "line L, column C: " and state the found and
// the expected item; depth and size are bounded. An unsupported op or type is UNIMPLEMENTED, by
// name. Unknown attributes are skipped, but frontend attributes are kept. The layouts of the
// header's entry_computation_layout become those of the entry's parameters and root.
Result<std::unique_ptr<Module>> ParseHloText(std::string_view text,
                                             const ParseOptions& options = {});

}  // namespace kiln::ir
