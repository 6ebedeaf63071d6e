/** @file
 *  Arrays that change hands without a copy between Kiln and other libraries, by the structures of
 *  DLPack. Its header `dlpack.h` declares them; here they are names only.
 *
 *  There are two forms of a tensor: that of DLPack 1, which says its version and its flags, and the
 *  older one without either (`_unversioned`), which is what many libraries still hand out. */
#ifndef KILN_DLPACK_H_
#define KILN_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/buffer.h"
#include "kiln/device.h"
#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensorVersioned;
struct DLManagedTensor;

/** Tells DLPack's device type and number of the memory of a device's buffers: kDLCUDA (2) and the
 *  driver's number for a GPU of the CUDA driver, kDLCPU (1) and 0 for the others, as the memory of
 *  an emulated GPU is the host's.
 *  @return INVALID_ARGUMENT for NULL
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_device_dlpack(const kiln_device* device, int32_t* device_type,
                                        int32_t* device_id);

/** Hands a buffer out as a tensor in the same memory. Waits for its value. The tensor is flagged as
 *  read-only: other users of the buffer see what is written there. It must not be read while an
 *  execution writes the buffer or has been given it by donation.
 *  @param tensor receives a tensor, row-major with strides, which keeps the buffer: whoever has it
 *         last calls its `deleter`, on any thread. That its elements of less than a byte take a
 *         whole one is said by DLPack's flag for it
 *  @return the error of the execution that should have made the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_to_dlpack(kiln_buffer* buffer,
                                           struct DLManagedTensorVersioned** tensor);

/** The same in the older form, which has no flag: who gets the tensor must not write to it.
 *  @param tensor receives the tensor, whose deleter the caller calls once
 *  @return as kiln_buffer_to_dlpack(); UNIMPLEMENTED for element types of less than a byte, which
 * the form has packed alone
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_to_dlpack_unversioned(kiln_buffer* buffer,
                                                       struct DLManagedTensor** tensor);

/** Makes a buffer of a tensor: in its memory where that is memory of the device, in row-major
 * order, and its first element at a multiple of ::KILN_ALIGNMENT, or, in memory of the host, of an
 * element's size (see kiln/buffer.h for where that is as fast); else the elements are copied.
 * Memory of the host is taken by all devices, kDLCUDA and kDLCUDAManaged where a device of the
 * context gets at it; what the CUDA driver's legacy default stream has been asked for comes before.
 *  @param tensor becomes the library's with success: its `deleter` is called once when the memory
 * is no longer needed, during the call where the elements are copied. It stays the caller's when
 * this fails
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release(). In
 *         the memory of a tensor that is flagged as read-only, executions that would write it, as a
 *         result or a donated argument, fail with INVALID_ARGUMENT
 *  @return UNIMPLEMENTED for another major version than 1, for element types that this library does
 *          not have (several lanes among them, and elements of less than a byte that are packed),
 * and for memory of devices that the context has not; INVALID_ARGUMENT for what is no tensor;
 * RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_from_dlpack(kiln_device* device,
                                             struct DLManagedTensorVersioned* tensor,
                                             kiln_buffer** buffer);

/** The same for a tensor in the older form, whose memory executions may write.
 *  @param buffer receives one reference, which the caller gives back with kiln_buffer_release()
 *  @return as kiln_buffer_from_dlpack()
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_from_dlpack_unversioned(kiln_device* device,
                                                         struct DLManagedTensor* tensor,
                                                         kiln_buffer** buffer);

#ifdef __cplusplus
}
#endif

#endif /* KILN_DLPACK_H_ */
