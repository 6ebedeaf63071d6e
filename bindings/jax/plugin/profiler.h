/** @file
 *  The profiler of the plugin: jax.profiler's traces get the timelines of Kiln's devices. */
#ifndef KILN_JAX_PLUGIN_PROFILER_H_
#define KILN_JAX_PLUGIN_PROFILER_H_

#include "plugin/api/profiler.h"

namespace kiln_jax {

/** The profiler's table, which lives as long as the library. A profiler records the clients that
 *  are there when it starts. Any thread. */
PLUGIN_Profiler_Api* ProfilerTable();

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_PROFILER_H_
