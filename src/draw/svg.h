// A module as a picture in SVG, drawn without other programs.
#pragma once

#include <string>

#include "draw/graph.h"
#include "ir/ir.h"

namespace kiln::draw {

// Fusions, calls, loops and conditionals are open, as long as the picture stays small enough for a
// browser. `work` is that of a run, for instructions that have a time.
std::string ToSvg(const ir::Module& module, const WorkByName& work = {});

}  // namespace kiln::draw
