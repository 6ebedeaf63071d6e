// The identity of a build of the library.
#pragma once

#include <string>

namespace kiln {

// The linker's build id of the binary with this code, in hexadecimal digits; empty if the linker
// made none. Any change of the code or of the compiler changes it.
const std::string& BuildId();

}  // namespace kiln
