/** @file
 *  Devices: the targets of compilation and the places of buffers. */
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
 *  - `CPU:0`, the machine's processor, or with the context's option `cpu_devices` a share of it,
 *    and the other shares `CPU:1` and so on;
 *  - `XLA_CPU:0` and so on, the same processors as separate devices, whose transfers copy;
 *  - `GPU:0`, `GPU:1` and so on, the GPUs of the CUDA driver with architecture sm_75 or newer, or
 *    an emulated one, recognisable by its description;
 *  - `XLA_GPU:0` and so on, the same GPUs as separate devices;
 *  - `REFERENCE:0`, the evaluator: slow, and the reference for the others.
 *
 *  They are listed kind by kind: all `CPU`, all `XLA_CPU`, `REFERENCE:0`, all `GPU`, all `XLA_GPU`.
 *
 *  Each device has its own order of asynchronous work. Several CPU devices also have threads of
 *  their own, a share of the context's (kiln_device_threads()), so that they work at the same time
 *  without competing for processors, unless there are fewer threads than devices; with one thread
 *  the caller does the work of all. `XLA_CPU:1` has the share of `CPU:1`; `REFERENCE:0` and GPUs
 *  have the share of `CPU:0`, for work of theirs that is done on the processor. All CPU devices
 *  have the same memory, the host's, and the same code, and give the same bits. They are still
 *  different devices: a buffer belongs to one of them, executables of another do not take it, and
 *  kiln_buffer_copy_to_device() copies it.
 *
 *  A device lives as long as its context; retaining it retains the context. \since 0.1 */
typedef struct kiln_device kiln_device;

/** The number of devices; 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_context_device_count(const kiln_context* context);

/** A device by its position, borrowed from the context; NULL if there is none. Any thread.
 *  \since 0.1 */
KILN_API kiln_device* kiln_context_device(kiln_context* context, size_t index);

/** The reasons for missing GPUs: no driver, an old driver, no device, an old architecture. One line
 *  each, null-terminated; empty if there are none, and for a context created without GPUs; NULL for
 *  NULL. Lives as long as the context. `length`, unless NULL, receives the number of characters.
 *  Any thread. \since 0.1 */
KILN_API const char* kiln_context_device_notes(const kiln_context* context, size_t* length);

/** Finds a device by name: "CPU:0", "CPU" (the first of its kind), or TensorFlow's long form
 *  "/job:localhost/replica:0/task:0/device:CPU:0"; case does not matter.
 *  @param device receives the device, borrowed from the context
 *  @return INVALID_ARGUMENT for a text that is no name of a device; NOT_FOUND, with the list of
 *         devices and the reasons for missing GPUs
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_find_device(kiln_context* context, const char* name,
                                              size_t name_length, kiln_device** device);

/** "CPU:0" and so on, null-terminated; lives as long as the device. `length`, unless NULL, receives
 *  the number of characters. Any thread. \since 0.1 */
KILN_API const char* kiln_device_name(const kiln_device* device, size_t* length);

/** One line on the target of code generation, such as instruction set and vector width, and on the
 *  share of the threads if there are several CPU devices. Lives as long as the device.
 *
 *  Any thread. \since 0.1 */
KILN_API const char* kiln_device_description(const kiln_device* device, size_t* length);

/** The number of threads of the host that run the device's work, including the caller's or the
 *  device's own: its share of the context's threads. 0 for NULL. Any thread. \since 0.1 */
KILN_API int32_t kiln_device_threads(const kiln_device* device);

/** Reports the use of a device's memory. Devices in host memory report the context's.
 *  @return INVALID_ARGUMENT if `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_device_memory(const kiln_device* device, kiln_memory_info* info);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_device_retain(kiln_device* device);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_device_release(kiln_device* device);

#ifdef __cplusplus
}
#endif

#endif /* KILN_DEVICE_H_ */
