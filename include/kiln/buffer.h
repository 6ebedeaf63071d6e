/** @file
 *  Buffers: arrays on a device, in row-major order.
 *
 *  Host memory is passed in three ways: copied during the call; borrowed, until an event marks the
 *  end of its use; or adopted, with a function that frees it. Memory aligned to ::KILN_ALIGNMENT is
 *  used in place. For an executable's arguments on CPU:0 the alignment of an element suffices, as
 *  in NumPy's arrays and the weights in mapped files, except for arguments of custom calls, donated
 *  arguments, and on processors without AVX. Other memory works too, by copies: of an argument
 *  before each execution, of a result after it. A device whose memory is not the host's (XLA_CPU:0)
 *  copies in all three cases, at once: results do not reach the caller's memory, and the event is
 *  ready, or the deleter has been called, when the function returns.
 *
 *  Device memory, such as a GPU's, is borrowed or adopted in place.
 *
 *  A token (::KILN_TOKEN) is a buffer, too, of rank 0 and 0 bytes. As the result of an execution it
 *  is ready at the end of that execution; an execution that takes it as an argument begins after
 * it, and fails if the first one has failed. kiln_buffer_create() makes a token that is ready. */
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

/** The alignment, in bytes, at which host memory is used without a copy; see above for
 *  exceptions. */
#define KILN_ALIGNMENT 64

/** An array on a device. Several threads may read one at once; only one execution at a time may
 *  write it, as its result. \since 0.1 */
typedef struct kiln_buffer kiln_buffer;

/** Makes a buffer of zeros, in memory of the context's allocator; with ::KILN_TOKEN a token that is
 *  ready, for an execution that nothing needs to precede.
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT for sizes whose product overflows, and for a token with sizes;
 *         RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_create(kiln_device* device, kiln_dtype dtype, const int64_t* dims,
                                        size_t rank, kiln_buffer** buffer);

/** Makes a buffer with a copy of the caller's elements. The memory is read during the call only.
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param data `bytes` bytes: the elements in row-major order
 *  @param bytes the size of the array
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT for an invalid type or invalid sizes, and if `bytes` is not the size of
 *         the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_host(kiln_device* device, kiln_dtype dtype,
                                           const int64_t* dims, size_t rank, const void* data,
                                           size_t bytes, kiln_buffer** buffer);

/** Makes a buffer with an asynchronous copy of `bytes` bytes at `data`. The buffer can be used at
 *  once: users of its value wait for the copy.
 *  @param data as many bytes as the array has; must stay unchanged until `done`
 *  @param done receives one reference to an event that is ready at the end of the copy
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT if `bytes` is not the size of the array; RESOURCE_EXHAUSTED. A failure
 *         of the copy itself is the error of the event and of all users of the buffer
 *
 *  The copy does not wait for executions requested before. With a context of one thread it is done
 *  when the call returns. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_host_async(kiln_device* device, kiln_dtype dtype,
                                                 const int64_t* dims, size_t rank, const void* data,
                                                 size_t bytes, kiln_event** done,
                                                 kiln_buffer** buffer);

/** Makes a buffer of the caller's memory: executions read it, or write it if the buffer is one of
 *  their results. The caller may change or read it between executions.
 *  @param data `bytes` bytes, which must stay until `done`
 *  @param done unless NULL, receives one reference to an event that marks the end of the library's
 *         use of the memory. It is ready some time after the release of the last reference to the
 *         buffer and to the objects that share its memory: results in the place of donated
 *         arguments, and tensors. A wait while holding one of these never ends
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT if `bytes` is not the size of the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_borrow_host(kiln_device* device, kiln_dtype dtype,
                                             const int64_t* dims, size_t rank, void* data,
                                             size_t bytes, kiln_event** done, kiln_buffer** buffer);

/** Makes a buffer of memory to be freed by the library.
 *  @param deleter called once with `user_data` when the memory is no longer needed; not called on
 *         failure
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT if `bytes` is not the size of the array; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_adopt_host(kiln_device* device, kiln_dtype dtype,
                                            const int64_t* dims, size_t rank, void* data,
                                            size_t bytes, void (*deleter)(void* user_data),
                                            void* user_data, kiln_buffer** buffer);

/** Makes a buffer of the caller's device memory, used in place: on a GPU of the CUDA driver memory
 *  of that GPU, or managed memory; on an emulated GPU and on the other devices host memory. The
 *  caller may change or read it between executions. The caller's own writes must be complete, or be
 *  in the stream of the executions (kiln_execute_options).
 *  @param dims `rank` sizes, none negative; may be NULL with rank 0
 *  @param data `bytes` bytes, aligned to ::KILN_ALIGNMENT, which must stay until `done`
 *  @param bytes the size of the array
 *  @param done unless NULL, receives one reference to an event that marks the end of the library's
 *         use of the memory. It is ready some time after the release of the last reference to the
 *         buffer and to the objects that share its memory: results in the place of donated
 *         arguments, and tensors. A wait while holding one of these never ends
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT if `bytes` is not the size of the array, if `data` is not aligned, and
 *         if it is not memory of the device
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_borrow_device(kiln_device* device, kiln_dtype dtype,
                                               const int64_t* dims, size_t rank, void* data,
                                               size_t bytes, kiln_event** done,
                                               kiln_buffer** buffer);

/** Makes a buffer of device memory to be freed by the library; otherwise as
 *  kiln_buffer_borrow_device().
 *  @param deleter called once with `user_data` when no work uses the memory any more; not called on
 *         failure
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return INVALID_ARGUMENT, as kiln_buffer_borrow_device()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_adopt_device(kiln_device* device, kiln_dtype dtype,
                                              const int64_t* dims, size_t rank, void* data,
                                              size_t bytes, void (*deleter)(void* user_data),
                                              void* user_data, kiln_buffer** buffer);

/** Waits for the buffer's value and copies it to `data`.
 *  @param bytes the size of the array, as in kiln_buffer_shape()
 *  @return the error of the execution that defines the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_host(kiln_buffer* buffer, void* data, size_t bytes);

/** Copies the buffer's value to `data` asynchronously, after the work that defines the value. The
 *  buffer may be released, or donated to an execution, at once.
 *  @param bytes the size of the array, as in kiln_buffer_shape(); the memory must stay until `done`
 *  @param done receives one reference to an event that is ready when the elements are at `data`;
 *         its error is the error of the execution that defines the value, if it failed
 *  @return INVALID_ARGUMENT if `bytes` is not the size of the array; FAILED_PRECONDITION if the
 *         buffer has been donated
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_host_async(kiln_buffer* buffer, void* data, size_t bytes,
                                                    kiln_event** done);

/** Copies a part of the buffer's value to `data`, as kiln_buffer_copy_to_host_async().
 *  @param offset the first byte of the part in the row-major order of the elements
 *  @param data receives `bytes` bytes; the memory must stay until `done`
 *  @param done receives one reference to an event that is ready when the bytes are at `data`
 *  @return OUT_OF_RANGE if the part is not in the buffer; FAILED_PRECONDITION if the buffer has
 * been donated
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_read_part(kiln_buffer* buffer, size_t offset, void* data,
                                           size_t bytes, kiln_event** done);

/** Copies `bytes` bytes at `data` to a part of the buffer, asynchronously. It waits for no other
 * use of the buffer: other users see the bytes if they begin after `done`, as by
 * kiln_buffer_delay().
 *  @param offset the first byte of the part in the row-major order of the elements
 *  @param data must stay unchanged until `done`
 *  @param done receives one reference to an event that is ready at the end of the copy
 *  @return OUT_OF_RANGE if the part is not in the buffer; INVALID_ARGUMENT if it is in read-only
 *         memory; FAILED_PRECONDITION if it is bound as a frozen argument
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_write_part(kiln_buffer* buffer, size_t offset, const void* data,
                                            size_t bytes, kiln_event** done);

/** Makes the buffer's value wait for an event, beside the work that defines the value: later users
 *  of the value begin after the event, and fail if it fails.
 *  @param event of the buffer's context; must be set at some time (kiln_event_create())
 *  @return INVALID_ARGUMENT for an event of another context; FAILED_PRECONDITION if the buffer has
 *         been donated
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_delay(kiln_buffer* buffer, kiln_event* event);

/** Copies a buffer to another device, or within one. Waits for its value.
 *  @param copy receives one reference, to be released with kiln_buffer_release()
 *  @return the error of the execution that defines the value, if it failed; FAILED_PRECONDITION if
 *         the buffer has been donated; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_device(kiln_buffer* buffer, kiln_device* device,
                                                kiln_buffer** copy);

/** Copies a buffer to another device, or within one, asynchronously. The copy can be used at once:
 *  users of its value wait for it. It is done as soon as the value is there; work on the other
 *  device continues meanwhile.
 *  @param done unless NULL, receives one reference to an event that is ready at the end of the
 *         copy; its error is the error of the execution that defines the value, if it failed
 *  @param copy receives one reference
 *  @return FAILED_PRECONDITION if the buffer has been donated; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_copy_to_device_async(kiln_buffer* buffer, kiln_device* device,
                                                      kiln_event** done, kiln_buffer** copy);

/** Waits for the buffer's value and returns the address of its elements, for reading without a
 *  copy. The address is valid as long as the buffer lives and no execution writes it.
 *  @return FAILED_PRECONDITION if the device's memory is not the host's
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_data(kiln_buffer* buffer, const void** data);

/** Waits for the buffer's value and returns the address of its elements in device memory, for
 *  reading by the caller's own work on that device: on a GPU of the CUDA driver a CUdeviceptr, on
 *  the other devices a host address. It is valid as long as the buffer lives and no execution
 *  writes it.
 *  @return the error of the execution that defines the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_device_data(kiln_buffer* buffer, const void** data);

/** Returns the address that kiln_buffer_data(), or on other devices kiln_buffer_device_data(),
 * would return, without a wait for the value: the elements are there when the event of
 *  kiln_buffer_ready() is ready without an error, on a GPU after the work of its streams.
 *  @return FAILED_PRECONDITION if the buffer has been donated; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_address(kiln_buffer* buffer, const void** data);

/** Element type, sizes and bytes.
 *  @param shape receives them; `shape->dims` is borrowed, and lives as long as the buffer
 *  @return INVALID_ARGUMENT if `shape->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_shape(const kiln_buffer* buffer, kiln_shape* shape);

/** The buffer's device, borrowed; NULL for NULL. Any thread. \since 0.1 */
KILN_API kiln_device* kiln_buffer_device(const kiln_buffer* buffer);

/** Makes an event that is ready when the buffer's value is.
 *  @param event receives one reference, to be released with kiln_event_release()
 *  @return RESOURCE_EXHAUSTED; a failure of the value's execution is the event's error
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_ready(kiln_buffer* buffer, kiln_event** event);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_buffer_retain(kiln_buffer* buffer);

/** Releases a reference; NULL is allowed. Executions that use the buffer continue. Any thread.
 *  \since 0.1 */
KILN_API void kiln_buffer_release(kiln_buffer* buffer);

#ifdef __cplusplus
}
#endif

#endif /* KILN_BUFFER_H_ */
