/** @file
 *  Buffers: arrays on a device, in row-major order.
 *
 *  Host memory is given in three ways: copied during the call; borrowed, until an event says that
 *  the library is done with it; or adopted, with a function that frees it. Memory at a multiple of
 *  ::KILN_ALIGNMENT is used where it is. Of an executable's arguments on CPU:0 a multiple of an
 *  element's size is enough, as NumPy's arrays and the weights in mapped files have it, but for
 * what is given to custom calls or donated, and on processors without AVX. Other memory works too,
 * and is copied: an argument before each execution, a result after it. A device whose memory is not
 * the host's (XLA_CPU:0) copies in all three cases, at once: then results do not reach the caller's
 * memory, and the event is ready, or the deleter has been called, when the function returns.
 *
 *  Memory of the device itself, a GPU's above all, is borrowed or adopted as it is. */
#ifndef KILN_BUFFER_H_
#define KILN_BUFFER_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/device.h"
#include "kiln/error.h"
#include "kiln/event.h"
#include "kiln/export.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Host memory at a multiple of this is used without a copy, in bytes; see above for less. */
#define KILN_ALIGNMENT 64

/** An array on a device. Reading one from several threads is fine; writing one, by an execution
 *  that has it as a result, is for one at a time. \since 0.1 */
typedef struct kiln_buffer kiln_buffer;

/** Makes a buffer of zeros, in memory of the context's allocator.
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT for sizes whose product overflows, RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_create(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                        size_t rank, kiln_buffer** buffer);

/** Makes a buffer with a copy of the caller's elements, whose memory is his again when the call
 *  returns.
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param data `bytes` bytes: the elements in row-major order
 *  @param bytes the size of the array
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT for a type or sizes that there are not, and where `bytes` is not the
 * size of the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_host(kiln_device* device, kiln_dtype dtype,
                                           const int64_t* dims, size_t rank, const void* data,
                                           size_t bytes, kiln_buffer** buffer);

/** Makes a buffer with a copy of `bytes` bytes at `data`, and may return before they are copied.
 * The buffer can be used at once: what needs its value waits for the copy.
 *  @param data the size of the array; must stay as it is until `done`
 *  @param done receives one reference to an event that is ready when the copy has ended
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT where `bytes` is not the size of the array; RESOURCE_EXHAUSTED. A
 * failure of the copy itself is the event's, and of what uses the buffer
 *
 *  Copies and executions that a thread asks for on one device are done in order. With a context of
 *  one thread the copy is done when the call returns. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_host_async(kiln_device* device, kiln_dtype dtype,
                                                 const int64_t* dims, size_t rank, const void* data,
                                                 size_t bytes, kiln_event** done,
                                                 kiln_buffer** buffer);

/** Makes a buffer of the caller's memory: executions read it, or write it where the buffer is one
 *  of their results. The caller may change or read it between executions.
 *  @param data `bytes` bytes, which must stay until `done`
 *  @param done unless NULL, receives one reference to an event: the memory is the caller's alone
 *         when it is ready, some time after the last reference to the buffer is given back, and to
 *         what shares its memory: results in the place of donated arguments, and tensors. Who waits
 *         for it and holds one of these waits in vain
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT where `bytes` is not the size of the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_borrow_host(kiln_device* device, kiln_dtype dtype,
                                             const int64_t* dims, size_t rank, void* data,
                                             size_t bytes, kiln_event** done, kiln_buffer** buffer);

/** Makes a buffer of memory that the library shall free.
 *  @param deleter called once with `user_data` when the memory is no longer needed; not called when
 *         this function fails
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT where `bytes` is not the size of the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_adopt_host(kiln_device* device, kiln_dtype dtype,
                                            const int64_t* dims, size_t rank, void* data,
                                            size_t bytes, void (*deleter)(void* user_data),
                                            void* user_data, kiln_buffer** buffer);

/** Makes a buffer of memory of the caller's that is the device's, used where it is: on a GPU of the
 *  CUDA driver memory of that GPU, or managed memory; on an emulated GPU and on the other devices
 *  memory of the host. The caller may change or read it between executions; what his own work has
 *  still to write there must be done, or be in the stream that executions are put on
 *  (kiln_execute_options).
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param data `bytes` bytes at a multiple of ::KILN_ALIGNMENT, which must stay until `done`
 *  @param bytes the size of the array
 *  @param done unless NULL, receives one reference to an event: the memory is the caller's alone
 *         when it is ready, some time after the last reference to the buffer is given back, and to
 *         what shares its memory: results in the place of donated arguments, and tensors. Who waits
 *         for it and holds one of these waits in vain
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT where `bytes` is not the size of the array, where `data` is not
 * aligned, and where it is not memory of the device
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_borrow_device(kiln_device* device, kiln_dtype dtype,
                                               const int64_t* dims, size_t rank, void* data,
                                               size_t bytes, kiln_event** done,
                                               kiln_buffer** buffer);

/** Makes a buffer of memory of the device that the library shall free; for the rest as
 *  kiln_buffer_borrow_device().
 *  @param deleter called once with `user_data` when no work uses the memory any more; not called
 *         when this function fails
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return INVALID_ARGUMENT, as kiln_buffer_borrow_device()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_adopt_device(kiln_device* device, kiln_dtype dtype,
                                              const int64_t* dims, size_t rank, void* data,
                                              size_t bytes, void (*deleter)(void* user_data),
                                              void* user_data, kiln_buffer** buffer);

/** Waits for the buffer's value and copies it to `data`.
 *  @param bytes the size of the array, as kiln_buffer_shape() tells it
 *  @return the error of the execution that should have made the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_host(kiln_buffer* buffer, void* data, size_t bytes);

/** Copies the buffer's value to `data`, and may return before that: the copy comes after all that
 *  was asked for before and makes the value. The buffer may be given back, and be donated to an
 *  execution, at once.
 *  @param bytes the size of the array, as kiln_buffer_shape() tells it; the memory must stay until
 *         `done`
 *  @param done receives one reference to an event that is ready when the elements are at `data`;
 * its error is that of the execution that should have made the value, if it failed
 *  @return INVALID_ARGUMENT where `bytes` is not the size of the array; FAILED_PRECONDITION where
 * the buffer has been donated
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_host_async(kiln_buffer* buffer, void* data, size_t bytes,
                                                    kiln_event** done);

/** Copies a buffer to another device, or within one. Waits for its value.
 *  @param copy receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return the error of the execution that should have made the value, if it failed;
 *          FAILED_PRECONDITION where the buffer has been donated; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_device(kiln_buffer* buffer, kiln_device* device,
                                                kiln_buffer** copy);

/** Copies a buffer to another device, or within one, and may return before that: the copy can be
 * used at once, and what needs its value waits for it. It is done in the order of the buffer's
 * device; work on the other device goes on meanwhile.
 *  @param done unless NULL, receives one reference to an event that is ready when the copy has
 * ended; its error is that of the execution that should have made the value, if it failed
 *  @param copy receives one reference
 *  @return FAILED_PRECONDITION where the buffer has been donated; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_device_async(kiln_buffer* buffer, kiln_device* device,
                                                      kiln_event** done, kiln_buffer** copy);

/** Waits for the buffer's value and tells where its elements are, for reading without a copy. The
 *  address is good for as long as the buffer lives and no execution writes it.
 *  @return FAILED_PRECONDITION where the device's memory is not the host's
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_data(kiln_buffer* buffer, const void** data);

/** Waits for the buffer's value and tells where its elements are in the device's memory, for
 * reading by work of the caller's on that device: on a GPU of the CUDA driver a CUdeviceptr, on the
 * other devices an address of the host. It is good for as long as the buffer lives and no execution
 *  writes it.
 *  @return the error of the execution that should have made the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_device_data(kiln_buffer* buffer, const void** data);

/** Element type, sizes and bytes.
 *  @param shape receives them; `shape->dims` is borrowed, and lives as long as the buffer
 *  @return INVALID_ARGUMENT where `shape->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_shape(const kiln_buffer* buffer, kiln_shape* shape);

/** The device it is on, borrowed; NULL for NULL. Any thread. \since 0.1 */
KILN_API kiln_device* kiln_buffer_device(const kiln_buffer* buffer);

/** Makes an event that is ready when the buffer's value is.
 *  @param event receives one reference, which the caller gives back with kiln_event_release()
 *  @return RESOURCE_EXHAUSTED; a failure to make the value is the event's
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_ready(kiln_buffer* buffer, kiln_event** event);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_buffer_retain(kiln_buffer* buffer);

/** Gives a reference back; NULL is taken. Executions that use the buffer go on. Any thread.
 *  \since 0.1 */
KILN_API void kiln_buffer_release(kiln_buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif /* KILN_BUFFER_H_ */
