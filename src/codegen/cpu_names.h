// LLVM's names of processors.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::codegen {

// The names of x86-64's processors and levels ("znver4", "x86-64-v3"), in LLVM's order.
std::vector<std::string_view> X86CpuNames();
// The features of one of them, by LLVM's names, in no order; nothing for other names.
std::optional<std::vector<std::string>> X86CpuFeatures(std::string_view name);

}  // namespace kiln::codegen
