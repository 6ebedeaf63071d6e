/** @file
 *  Files of named arrays in the safetensors format, as Hugging Face's library reads and writes
 *  them: weights of models, and saved variables.
 *
 *  A file is a header with the names, element types, sizes and places of its arrays, a map of texts
 *  (the metadata), and the arrays' elements in row-major order. Files may be hostile: one that is
 *  not of the format is an INVALID_ARGUMENT error that names the array or the byte, and memory is
 *  bounded by the size of the file.
 *
 *  The dtypes of the format and their element types: BOOL is ::KILN_PRED; I8, I16, I32 and I64 are
 *  ::KILN_S8 to ::KILN_S64; U8 to U64, F16, BF16, F32, F64 and C64 are those of the same name;
 *  F8_E5M2 is ::KILN_F8E5M2, F8_E4M3 ::KILN_F8E4M3FN, F8_E8M0 ::KILN_F8E8M0FNU, F8_E5M2FNUZ
 *  ::KILN_F8E5M2FNUZ, F8_E4M3FNUZ ::KILN_F8E4M3FNUZ; F4, with two elements in a byte, the first
 *  one in the low bits, is ::KILN_F4E2M1FN. The packing of F6_E2M3 and F6_E3M2 is not defined by
 *  the format. */
#ifndef KILN_SAFETENSORS_H_
#define KILN_SAFETENSORS_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/buffer.h"
#include "kiln/device.h"
#include "kiln/error.h"
#include "kiln/export.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A file that was opened. Immutable, reference counted; belongs to no context. \since 0.1 */
typedef struct kiln_safetensors kiln_safetensors;

/** Opens a file, and checks all of it but the elements' values. The file is mapped: nothing is
 *  copied, and the elements are read from the disk when they are used. A pipe is read into memory.
 *
 *  A mapped file must not be changed or cut off while it or one of its buffers is in use: values
 *  would change, and a missing page is a SIGBUS. It may be removed, or replaced by renaming, as
 *  kiln_safetensors_save() does.
 *  @param path `path_length` bytes without a NUL
 *  @param file receives one reference, to be released with kiln_safetensors_release()
 *  @return INVALID_ARGUMENT for contents that are not of the format; NOT_FOUND; PERMISSION_DENIED;
 *         RESOURCE_EXHAUSTED; UNAVAILABLE for other errors of the system
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_safetensors_open(const char* path, size_t path_length,
                                           kiln_safetensors** file);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_safetensors_retain(kiln_safetensors* file);

/** Releases a reference; NULL is allowed. Buffers of the file stay. Any thread. \since 0.1 */
KILN_API void kiln_safetensors_release(kiln_safetensors* file);

/** The number of arrays. They are in the order of their elements in the file. 0 for NULL. Any
 *  thread. \since 0.1 */
KILN_API size_t kiln_safetensors_count(const kiln_safetensors* file);

/** The name of an array, in UTF-8, null-terminated; lives as long as the file. `length`, unless
 *  NULL, receives its number of bytes, which may include NULs. NULL for a number beyond the last.
 *  Any thread. \since 0.1 */
KILN_API const char* kiln_safetensors_name(const kiln_safetensors* file, size_t index,
                                           size_t* length);

/** The dtype of an array, as in the file: "F32". Null-terminated; lives as long as the file. NULL
 *  for a number beyond the last. Any thread. \since 0.1 */
KILN_API const char* kiln_safetensors_dtype(const kiln_safetensors* file, size_t index,
                                            size_t* length);

/** The number of the array of a name.
 *  @return NOT_FOUND
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_safetensors_find(const kiln_safetensors* file, const char* name,
                                           size_t name_length, size_t* index);

/** Element type, sizes and bytes of an array, as a buffer.
 *  @param shape receives them; `shape->dims` lives as long as the file
 *  @return OUT_OF_RANGE for a number beyond the last; UNIMPLEMENTED for a dtype without an element
 *         type, naming the array and the dtype; INVALID_ARGUMENT for more dimensions than buffers
 *         have
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_safetensors_shape(const kiln_safetensors* file, size_t index,
                                            kiln_shape* shape);

/** The number of the metadata's keys. 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_safetensors_metadata_count(const kiln_safetensors* file);

/** A key of the metadata, in their order, in UTF-8, null-terminated; lives as long as the file.
 *  NULL for a number beyond the last. Any thread. \since 0.1 */
KILN_API const char* kiln_safetensors_metadata_key(const kiln_safetensors* file, size_t index,
                                                   size_t* length);

/** The text of a key of the metadata, in UTF-8, null-terminated; lives as long as the file. NULL
 *  for a key that is not there. Any thread. \since 0.1 */
KILN_API const char* kiln_safetensors_metadata(const kiln_safetensors* file, const char* key,
                                               size_t key_length, size_t* length);

/** Makes a buffer of the array of a name. On a device whose memory is the host's, as CPU:0, it is
 *  the file's own memory, read-only: an execution can neither write it nor take it as a donated
 *  argument. It keeps the file mapped. Elements that are packed, or not at a multiple of their
 *  size, and those for other devices are copied.
 *  @param buffer receives one reference, to be released with kiln_buffer_release()
 *  @return NOT_FOUND; UNIMPLEMENTED for a dtype without an element type, naming the array and the
 *         dtype; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_safetensors_buffer(const kiln_safetensors* file, const char* name,
                                             size_t name_length, kiln_device* device,
                                             kiln_buffer** buffer);

/** A buffer and its name. \since 0.1 */
typedef struct kiln_named_buffer {
  const char* name;    /**< in UTF-8 */
  size_t name_length;  /**< its number of bytes */
  kiln_buffer* buffer; /**< on any device of any context */
} kiln_named_buffer;

/** A key and its text. \since 0.1 */
typedef struct kiln_text_pair {
  const char* key;     /**< in UTF-8 */
  size_t key_length;   /**< its number of bytes */
  const char* value;   /**< in UTF-8 */
  size_t value_length; /**< its number of bytes */
} kiln_text_pair;

/** The options of a file to be written. Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_safetensors_options {
  size_t struct_size;             /**< set by kiln_safetensors_options_init() */
  const kiln_text_pair* metadata; /**< different keys; written in this order */
  size_t metadata_count;          /**< number of `metadata` */
} kiln_safetensors_options;

/** Makes default ::kiln_safetensors_options of a variable. */
#define KILN_SAFETENSORS_OPTIONS_INIT \
  { sizeof(kiln_safetensors_options), NULL, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_safetensors_options). NULL, or
 *  a size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_safetensors_options_init(kiln_safetensors_options* options, size_t size);

/** Waits for the values of buffers, and writes them into a file. The file is written completely,
 *  and forced to the disk, before it takes the place of an older one: until then, and after a
 *  failure, the old file is there as it was, and nothing else is left in the folder. Its
 *  permissions are kept; a symbolic link is followed. The bytes are those that Hugging Face's
 *  library would write: arrays with larger elements come first, and arrays of one type are in the
 *  order of their names. Bytes of ::KILN_PRED are written as 0 or 1.
 *  @param path `path_length` bytes without a NUL; a file, or none in a folder that can be written
 *  @param arrays `array_count` buffers under different names; no name is "__metadata__"
 *  @param options may be NULL: the defaults
 *  @return INVALID_ARGUMENT for names and texts that are not UTF-8 or there twice, and for a path
 *         that is no file's; UNIMPLEMENTED for an element type that the format lacks, naming the
 *         array; FAILED_PRECONDITION for a donated buffer; the error of the execution that defines
 *         a value, if it failed; PERMISSION_DENIED; NOT_FOUND for a missing folder;
 *         RESOURCE_EXHAUSTED for a full disk, or a file beyond the process's limit (RLIMIT_FSIZE);
 *         UNAVAILABLE for other errors of the system
 *
 *  Of buffers in a GPU's memory, one at a time is copied to the host. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_safetensors_save(const char* path, size_t path_length,
                                           const kiln_named_buffer* arrays, size_t array_count,
                                           const kiln_safetensors_options* options);

#ifdef __cplusplus
}
#endif

#endif /* KILN_SAFETENSORS_H_ */
