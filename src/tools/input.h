// The input of the tools that take one program.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::tools {

// What stands for standard input in the place of a file.
inline constexpr char kStandardInput[] = "-";

// The contents of a file, or of standard input. Errors name it.
Result<std::string> ReadInput(const std::string& file);

// Whether a program is HLO text, by its beginning behind comments; everything else is MLIR.
bool IsHloText(std::string_view text);

// The failure of a reader of the file's text in the form of compilers: "file:L:C: what" where the
// reader says "line L, column C: what", and otherwise "file: what".
Status AtPlace(const std::string& file, const Status& failure);

}  // namespace kiln::tools
