/* Failure, memory, files and time, for all examples. */
#ifndef PARTS_COMMON_H_
#define PARTS_COMMON_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#define NO_RETURN __attribute__((noreturn))
#else
#define PRINTF_LIKE
#define NO_RETURN
#endif

/* Prints a message and ends the program. A library would return errors. */
PRINTF_LIKE NO_RETURN void fail(const char* format, ...);

/* Ends the program if there is an error. */
void check(kiln_error* error, const char* what);

/* Zeroed memory, to be freed with free(). */
void* allocate(size_t count, size_t size);

/* A formatted text, to be freed with free(). */
PRINTF_LIKE char* format_text(const char* format, ...);

/* The bytes of a file, followed by a NUL, to be freed with free(); NULL if there is no such file.
 * `size` may be NULL. */
char* read_file(const char* path, size_t* size);

/* Replaces a file: another process sees the old contents or the new. Returns 0, or an errno. */
int write_file(const char* path, const void* bytes, size_t size);

/* Makes a folder, unless it is there. */
void make_folder(const char* path);

double now_in_seconds(void);

/* A hash of the bytes and of an earlier hash, by FNV-1a; begin with HASH_START. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(uint64_t hash, const void* bytes, size_t size);

/* The number in an option's text; one that is not from `least` to `most` ends the program. */
int64_t parse_integer(const char* text, int64_t least, int64_t most, const char* option);
double parse_real(const char* text, double least, double most, const char* option);

/* Random numbers by SplitMix64. The state is the seed. */
uint64_t random_bits(uint64_t* state);
double random_unit(uint64_t* state);   /* from 0 to below 1, uniform */
double random_normal(uint64_t* state); /* of mean 0 and variance 1 */

/* A device by its name, in a new context, which the caller releases. Threads: 0 for all CPUs. */
kiln_device* open_device(const char* name, int32_t threads, kiln_context** context);

/* An empty graph, which the caller releases. */
kiln_graph* new_graph(kiln_context* context, const char* name);

/* A buffer of float[], or of one int32_t, from the host. */
kiln_buffer* f32_buffer(kiln_device* device, const int64_t* dims, size_t rank, const float* values);
kiln_buffer* s32_buffer(kiln_device* device, const int64_t* dims, size_t rank,
                        const int32_t* values);

/* Random pieces of a text, s32[count,length] of its bytes.
 *   size  at least `length` */
kiln_buffer* text_pieces(kiln_device* device, const char* text, size_t size, int64_t count,
                         int64_t length, uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif /* PARTS_COMMON_H_ */
