/** @file
 *  Threads for the tasks of handlers. */
#ifndef KILN_JAX_PLUGIN_FFI_TASK_POOL_H_
#define KILN_JAX_PLUGIN_FFI_TASK_POOL_H_

#include <cstdint>

namespace kiln_jax {

/** Runs task(data) soon, on a thread of the pool, or at once where no thread can be made. Any
 *  thread. */
void ScheduleTask(void (*task)(void* data), void* data);

/** The number of threads, at least 1. */
int64_t TaskThreads();

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_FFI_TASK_POOL_H_
