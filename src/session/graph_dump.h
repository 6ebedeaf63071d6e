// The part of a graph that a run computes, with devices and clusters, as text and as a picture.
#pragma once

#include <string>

#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {

// The module in HLO text. The frontend attribute `kiln.device` is an op's device, and
// `_XlaCluster`, TensorFlow's, the name of its cluster; `clustering` may be null.
std::string PlacedText(const ir::Module& module, const Placement& placement,
                       const Clustering* clustering);

// The entry in Graphviz's language: a colour for each device, and a box for each cluster. Both may
// be null; without a placement ops have the devices of their marks, and no colours.
std::string PlacedDot(const ir::Module& module, const Placement* placement,
                      const Clustering* clustering);

}  // namespace kiln::session
