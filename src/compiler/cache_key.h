// Keys of compilations, for caches: equal keys, equal code, in every process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/compiler.h"
#include "ir/ir.h"
#include "program/program.h"
#include "target/target.h"

namespace kiln::compiler {

// A text of lines for people, with the build of the library, the target, the options that change
// code, and the module's digest (ir/digest.h). The program's name is the module's, whose number has
// no part in it. Empty for a build without an id, which cannot be told from others, and for targets
// whose programs are modules.
std::string CacheKey(const ir::Module& module, const target::Target& target,
                     const Options& options);

// The same for CompileLaunch.
std::string CacheKeyOfLaunch(std::string_view kernel_text, const std::vector<program::Slice>& args,
                             const target::Target& target);

}  // namespace kiln::compiler
