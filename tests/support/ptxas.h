// The assembler of CUDA's toolkit, where it is installed.
#pragma once

#include <string>

namespace kiln::testing {

// What ptxas says against the text; "" for nothing, and where there is no ptxas.
std::string Assemble(int sm, const std::string& ptx);
bool HasPtxas();

}  // namespace kiln::testing
