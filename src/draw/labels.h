// Texts and colours of instructions in pictures.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace kiln::draw {

// One per family of ops, as "#rrggbb".
std::string_view ColourOf(Opcode opcode);

// At most `most` bytes of a text, with "..." for the rest; no character of UTF-8 is cut in pieces.
std::string BeginningOf(std::string_view text, size_t most);
// The same of the end: of an op's name ("jit(f)/layer1/add"), which tells more there.
std::string EndOf(std::string_view text, size_t most);

// "multiply", "constant 1.5".
std::string OpText(const ir::Instruction& i);

// Where a session is to run an op and with what it is to compile it, one each: "device CPU:0".
std::vector<std::string> MarksOf(const ir::Instruction& i);

// A text inside of markup: of an element or, in double quotes, of an attribute.
std::string EscapeMarkup(std::string_view text);

}  // namespace kiln::draw
