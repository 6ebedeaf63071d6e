/** @file
 *  Exchange of arrays between Kiln and other libraries without a copy, by the structures of DLPack.
 *  Its header `dlpack.h` defines them; this one only declares their names.
 *
 *  There are two forms of a tensor: DLPack 1's, with a version and flags, and the older one without
 *  either (`_unversioned`), still used by many libraries. */
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

/** Returns DLPack's device type and number for a device's buffers: kDLCUDA (2) and the driver's
 *  number for a GPU of the CUDA driver, kDLCPU (1) and 0 for the others, including emulated GPUs,
 *  whose memory is the host's.
 *  @return INVALID_ARGUMENT for NULL
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_device_dlpack(const kiln_device* device, int32_t* device_type,
                                        int32_t* device_id);

/** Exports a buffer as a tensor in the same memory. Waits for its value. The tensor is flagged as
 *  read-only, because writes would be visible to other users of the buffer. It must not be read
 *  while an execution writes the buffer or after its donation.
 *  @param tensor receives a tensor, row-major with strides, which keeps the buffer alive: its last
 *         owner calls its `deleter`, on any thread. Elements of less than a byte occupy a whole
 *         one, marked by DLPack's flag
 *  @return the error of the execution that defines the value, if it failed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_to_dlpack(kiln_buffer* buffer,
                                           struct DLManagedTensorVersioned** tensor);

/** The same in the older form, which has no flag: the receiver must not write to it.
 *  @param tensor receives the tensor; the caller calls its deleter once
 *  @return as kiln_buffer_to_dlpack(); UNIMPLEMENTED for element types of less than a byte, which
 *         the older form defines as packed
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_to_dlpack_unversioned(kiln_buffer* buffer,
                                                       struct DLManagedTensor** tensor);

/** Makes a buffer of a tensor: in place if its memory is the device's, in row-major order, with the
 *  first element aligned to ::KILN_ALIGNMENT, or, in host memory, to an element's size (see
 *  kiln/buffer.h for its cost); otherwise by a copy. All devices accept host memory; kDLCUDA and
 *  kDLCUDAManaged are accepted if a device of the context can access them, ordered after the work
 *  in the CUDA driver's legacy default stream.
 *  @param tensor owned by the library on success: its `deleter` is called once when the memory is
 *         no longer needed, during the call if the elements are copied. On failure it stays the
 *         caller's
 *  @param buffer receives one reference, to be released with kiln_buffer_release(). If the tensor
 *         is flagged as read-only, executions that would write its memory, as a result or a donated
 *         argument, fail with INVALID_ARGUMENT
 *  @return UNIMPLEMENTED for a major version other than 1, for unsupported element types (including
 *         several lanes, and packed elements of less than a byte), and for memory of devices
 *         outside the context; INVALID_ARGUMENT for an invalid tensor; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_buffer_from_dlpack(kiln_device* device,
                                             struct DLManagedTensorVersioned* tensor,
                                             kiln_buffer** buffer);

/** The same for a tensor in the older form, with writable memory.
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
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
