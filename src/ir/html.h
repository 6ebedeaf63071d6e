// A module as a page for a browser, complete in itself: HLO text with links from operands and
// called computations to their definitions. Pointing at a value marks its definition and its uses.
#pragma once

#include <string>

#include "ir/ir.h"
#include "ir/text.h"

namespace kiln::ir {

std::string ToHtml(const Module& module, const PrintOptions& options = {});

}  // namespace kiln::ir
