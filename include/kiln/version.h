/** @file
 *  The version of the library, at compile time and at run time. */
#ifndef KILN_VERSION_H_
#define KILN_VERSION_H_

#include <stdint.h>

#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Incompatible changes of the C ABI; 0 until the ABI is declared stable. */
#define KILN_VERSION_MAJOR 0
/** Additions. */
#define KILN_VERSION_MINOR 1
/** Corrections. */
#define KILN_VERSION_PATCH 0
/** The version that a program was compiled with, in the form of kiln_version(). */
#define KILN_VERSION (KILN_VERSION_MAJOR * 1000000 + KILN_VERSION_MINOR * 1000 + KILN_VERSION_PATCH)

/** The version of the loaded library: major * 1000000 + minor * 1000 + patch. Any thread.
 *  \since 0.1 */
KILN_API int32_t kiln_version(void);

/** The same as text, "0.1.0". Static. Any thread. \since 0.1 */
KILN_API const char* kiln_version_string(void);

/** The linker's build id of the loaded library, in hexadecimal digits: another build has another.
 *  kiln_executable_fingerprint() names executables by it. Empty if the library was linked without
 * one. Static. Any thread. \since 0.1 */
KILN_API const char* kiln_build_id(void);

#ifdef __cplusplus
}
#endif

#endif /* KILN_VERSION_H_ */
