// Timelines as an XSpace, the protocol buffer of XLA's profiler (xplane.proto), for TensorBoard,
// XProf and jax.profiler.
#pragma once

#include <string>

#include "base/trace.h"

namespace kiln {

// The serialised XSpace: a plane for each device and one for the host, named
// "/device:CUSTOM:Kiln CPU:0", with a line for each lane. Lines begin at the time of the system's
// clock, in nanoseconds since 1970. The arguments of events, and their categories, are stats.
std::string ToXSpace(const TraceSink& sink);

}  // namespace kiln
