/** @file
 *  Devices: where graphs are compiled for, and where buffers live. */
#ifndef KILN_DEVICE_H_
#define KILN_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/context.h"
#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A device of a context:
 *  - `CPU:0`, the machine's processor;
 *  - `XLA_CPU:0`, the same processor as a device of its own, whose transfers copy;
 *  - `GPU:0`, `GPU:1` and so on, the GPUs of the CUDA driver that are of architecture sm_75 or
 *    newer, or an emulated one, which says so in its description;
 *  - `XLA_GPU:0` and so on, the same GPUs as devices of their own;
 *  - `REFERENCE:0`, the evaluator: slow, and the judge of the others.
 *
 *  A device lives as long as its context; retaining it retains the context. \since 0.1 */
typedef struct kiln_device kiln_device;

/** The number of devices; 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_context_device_count(const kiln_context* context);

/** A device by its position, borrowed from the context; NULL if there is none. Any thread.
 *  \since 0.1 */
KILN_API kiln_device* kiln_context_device(kiln_context* context, size_t index);

/** Why GPUs are not there that one might expect: no driver, one that is too old, no device, an old
 *  architecture. One line for each, with a 0 behind them; empty where there is nothing to say, and
 *  where the context was made without GPUs; NULL for NULL. Lives as long as the context. `length`,
 *  unless NULL, receives the number of characters. Any thread. \since 0.1 */
KILN_API const char* kiln_context_device_notes(const kiln_context* context, size_t* length);

/** Finds a device by name: "CPU:0", "CPU" (the first of its kind), or TensorFlow's long form
 *  "/job:localhost/replica:0/task:0/device:CPU:0"; case does not matter.
 *  @param device receives the device, borrowed from the context
 *  @return NOT_FOUND, listing the devices that there are, and why GPUs are not
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_find_device(kiln_context* context, const char* name,
                                              size_t name_length, kiln_device** device);

/** "CPU:0" and so on, with a 0 behind it; lives as long as the device. `length`, unless NULL,
 *  receives the number of characters. Any thread. \since 0.1 */
KILN_API const char* kiln_device_name(const kiln_device* device, size_t* length);

/** One line on what code is made for: the instruction set and vector width, or the like. Lives as
 *  long as the device. Any thread. \since 0.1 */
KILN_API const char* kiln_device_description(const kiln_device* device, size_t* length);

/** Tells how much of a device's memory has been given out. Devices in the host's memory share the
 *  context's.
 *  @return INVALID_ARGUMENT where `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_device_memory(const kiln_device* device, kiln_memory_info* info);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_device_retain(kiln_device* device);

/** Gives a reference back; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_device_release(kiln_device* device);

#ifdef __cplusplus
}
#endif

#endif /* KILN_DEVICE_H_ */
