/** @file
 *  The context: all of the library's state. Nothing is global; two contexts share nothing.
 *
 *  A child of fork() has none of the threads of a context that its parent made, and cannot use what
 *  was made from it: every function that can fail returns FAILED_PRECONDITION, builder functions
 *  return 0, events are ready, and references that are given back stay, with what they hold. A
 *  context that the child makes works as any other does. (GPUs do not: the CUDA driver does not
 *  survive fork().)
 *
 *  exit() may be called, and main may return, while executions are queued and threads are inside of
 *  functions of the library: what goes on is abandoned. Before the library is unloaded by dlclose()
 *  all that was made with it must have been given back. */
#ifndef KILN_CONTEXT_H_
#define KILN_CONTEXT_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Allocator, logger, threads, devices and caches. Everything made from a context keeps it alive.
 *  \since 0.1 */
typedef struct kiln_context kiln_context;

/** How much a message of the log matters. \since 0.1 */
typedef int32_t kiln_log_level;
/** @name Levels of the log */
/** @{ */
#define KILN_LOG_DEFAULT 0 /**< as an option: the same as KILN_LOG_WARNING */
#define KILN_LOG_INFO 1    /**< what happened */
#define KILN_LOG_WARNING 2 /**< what the user may want to change */
#define KILN_LOG_ERROR 3   /**< what went wrong with nobody to return it to */
#define KILN_LOG_OFF 4     /**< as an option: nothing */
/** @} */

/** Which GPUs a context has. \since 0.1 */
typedef int32_t kiln_gpu_mode;
/** @name GPUs of a context */
/** @{ */
#define KILN_GPU_AUTO                                                       \
  0 /**< those that the CUDA driver has; or, where the environment variable \
         KILN_EMULATE_GPU is set and not 0, an emulated one */
#define KILN_GPU_EMULATED 1 /**< one that is emulated on the processor */
#define KILN_GPU_OFF 2      /**< none: the driver is not asked */
/** @} */

/** When a GPU's products of matrices go by cuBLASLt, where that is installed. \since 0.1 */
typedef int32_t kiln_gpu_library;
/** @name When products go by a library */
/** @{ */
#define KILN_GPU_LIBRARY_DEFAULT                                                           \
  0 /**< as the environment variable KILN_GPU_LIBRARY says: auto, never or always; without \
         it KILN_GPU_LIBRARY_AUTO */
#define KILN_GPU_LIBRARY_AUTO 1   /**< those of which it was measured to be faster */
#define KILN_GPU_LIBRARY_NEVER 2  /**< none: the library is not looked for */
#define KILN_GPU_LIBRARY_ALWAYS 3 /**< all that it takes, without measuring */
/** @} */

/** What a context is made with. Zero everywhere means the defaults.
 *
 *  Callbacks get the `user_data` next to them. They must not throw or call back into the objects
 *  that are being used. Unless `callbacks_from_any_thread` is set, they are called only on threads
 *  that are inside a call of this library; what the library's own threads have to say waits for the
 *  next such call, and asynchronous work that needs an allocator callback is done by the thread
 *  that asks for it. \since 0.1 */
typedef struct kiln_context_options {
  size_t struct_size; /**< set by kiln_context_options_init() */
  int32_t threads;    /**< threads that run kernels, the caller's included: 0 for as many as the
                           process may use, 1 for the caller's alone (no thread is made at all) */
  int32_t callbacks_from_any_thread; /**< 1: the library's threads may call the callbacks too */
  /** Returns `bytes` bytes at a multiple of `alignment` (a power of two), or NULL. May be called by
   *  several threads at once. NULL: the library's own. */
  void* (*allocate)(void* user_data, size_t bytes, size_t alignment);
  /** Gives back what `allocate` returned, with the same numbers. Set both or neither. */
  void (*deallocate)(void* user_data, void* memory, size_t bytes, size_t alignment);
  void* allocator_user_data; /**< the first argument of the two above */
  /** Called once when the context has gone; may be NULL. */
  void (*allocator_destroy)(void* user_data);
  /** Receives the messages of the log, one at a time; NULL: they go to standard error. */
  void (*log)(void* user_data, kiln_log_level level, const char* message, size_t length);
  void* log_user_data; /**< the first argument of `log` */
  /** Called once when the context has gone; may be NULL. */
  void (*log_destroy)(void* user_data);
  kiln_log_level log_level; /**< messages below it are dropped */
  kiln_gpu_mode gpu;        /**< which GPUs there are */
  int64_t gpu_memory_bytes; /**< the most that buffers and executables may take of each GPU device's
                                 memory; 0: all that it has */
  const char* cache_folder; /**< where code that a driver has assembled, and what was measured of a
                                 library, is kept for other processes; NULL: nowhere. Made where it
                                 is missing */
  size_t cache_folder_length;   /**< characters of `cache_folder` */
  kiln_gpu_library gpu_library; /**< when products go by a library */
  int32_t reserved;             /**< 0 */
} kiln_context_options;

/** Makes default ::kiln_context_options of a variable. */
#define KILN_CONTEXT_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(kiln_context_options), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, \
        0, 0, 0                                                                                  \
  }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_context_options). A size below
 *  that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_context_options_init(kiln_context_options* options, size_t size);

/** Makes a context.
 *  @param options may be NULL: the defaults
 *  @param context receives one reference, which the caller gives back with kiln_context_release()
 *  @return INVALID_ARGUMENT for an option that is out of range, RESOURCE_EXHAUSTED where threads or
 *          memory cannot be had
 *
 *  The destroy callbacks of `options` are not called when this fails. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_create(const kiln_context_options* options,
                                         kiln_context** context);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_context_retain(kiln_context* context);

/** Gives a reference back; NULL is taken. The context goes when nothing made from it is left, too.
 *  Any thread. \since 0.1 */
KILN_API void kiln_context_release(kiln_context* context);

/** The number of threads that run kernels, the caller's included; 0 for NULL. Any thread.
 *  \since 0.1 */
KILN_API int32_t kiln_context_threads(const kiln_context* context);

/** What has been given out of a memory, in bytes. \since 0.1 */
typedef struct kiln_memory_info {
  size_t struct_size;  /**< set by the caller: sizeof(kiln_memory_info) */
  int64_t live_bytes;  /**< held now: buffers, constants and kept temporaries */
  int64_t peak_bytes;  /**< the most that was ever held */
  int64_t limit_bytes; /**< the most that may be held; 0 for no limit but the machine's */
} kiln_memory_info;

/** Makes an empty ::kiln_memory_info of a variable, with its struct_size set. */
#define KILN_MEMORY_INFO_INIT \
  { sizeof(kiln_memory_info), 0, 0, 0 }

/** Tells how much memory the context's allocator has given out.
 *  @return INVALID_ARGUMENT where `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_memory(const kiln_context* context, kiln_memory_info* info);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CONTEXT_H_ */
