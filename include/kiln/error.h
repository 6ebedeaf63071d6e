/** @file
 *  Errors.
 *
 *  A function that can fail returns a `kiln_error*`: NULL is success, any other value belongs to
 *  the caller, to be released with kiln_error_release(). On failure the outputs of the function are
 *  unchanged. Errors are immutable and independent of the context: they may outlive it and move
 *  between threads.
 *
 *  Errors of every such function: INVALID_ARGUMENT for a NULL pointer where it is not allowed,
 *  RESOURCE_EXHAUSTED for memory, FAILED_PRECONDITION in a child process for the parent's objects.
 *  A function's page lists the others. */
#ifndef KILN_ERROR_H_
#define KILN_ERROR_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kind of a failure: the canonical codes of gRPC and PJRT. \since 0.1 */
typedef int32_t kiln_code;
/** @name Codes of errors */
/** @{ */
#define KILN_OK 0                  /**< no error: the code of NULL */
#define KILN_CANCELLED 1           /**< the caller ended the operation */
#define KILN_UNKNOWN 2             /**< none of the others */
#define KILN_INVALID_ARGUMENT 3    /**< an argument is wrong in any state */
#define KILN_DEADLINE_EXCEEDED 4   /**< a wait ran out of time */
#define KILN_NOT_FOUND 5           /**< no object has that name */
#define KILN_ALREADY_EXISTS 6      /**< the object exists already */
#define KILN_PERMISSION_DENIED 7   /**< the system refused */
#define KILN_RESOURCE_EXHAUSTED 8  /**< out of memory or of another resource */
#define KILN_FAILED_PRECONDITION 9 /**< the object is not in a state for the call */
#define KILN_ABORTED 10            /**< abandoned because of a conflict */
#define KILN_OUT_OF_RANGE 11       /**< beyond the end */
#define KILN_UNIMPLEMENTED 12      /**< not supported; the message names the op */
#define KILN_INTERNAL 13           /**< a mistake of the library */
#define KILN_UNAVAILABLE 14        /**< not at present */
#define KILN_DATA_LOSS 15          /**< data are damaged */
/** @} */

/** A failure: code and message. Reference counted. \since 0.1 */
typedef struct kiln_error kiln_error;

/** Makes an error, for failures of the user's functions; the caller gets one reference.
 *  @param code NULL is returned for KILN_OK
 *  @param message UTF-8 text, copied; may be NULL with length 0
 *  @return the error; without memory for it, a static error that says so
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_error_create(kiln_code code, const char* message, size_t length);

/** The code; KILN_OK for NULL. Any thread. \since 0.1 */
KILN_API kiln_code kiln_error_code(const kiln_error* error);

/** The message in UTF-8, null-terminated; it lives as long as the error. `length`, unless NULL,
 *  receives its number of bytes, without the terminator. "" for NULL. Any thread. \since 0.1 */
KILN_API const char* kiln_error_message(const kiln_error* error, size_t* length);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_error_retain(kiln_error* error);

/** Releases a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_error_release(kiln_error* error);

/** The name of a code, "INVALID_ARGUMENT"; "UNKNOWN" for other numbers. Static. Any thread.
 *  \since 0.1 */
KILN_API const char* kiln_code_name(kiln_code code);

#ifdef __cplusplus
}
#endif

#endif /* KILN_ERROR_H_ */
