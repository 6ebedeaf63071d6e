/** @file
 *  The context: all of the library's state. There is no global state; contexts share nothing.
 *
 *  A child of fork() has none of the threads of its parent's contexts and cannot use their objects:
 *  every function that can fail returns FAILED_PRECONDITION, builder functions return 0, events are
 *  ready, and released references stay, with the memory behind them. A context made by the child
 *  works normally. (GPUs do not: the CUDA driver does not survive fork().)
 *
 *  exit() may be called, and main may return, while executions are queued and threads are inside
 *  functions of the library: pending work is abandoned. Before dlclose() unloads the library, all
 *  its objects must have been released. */
#ifndef KILN_CONTEXT_H_
#define KILN_CONTEXT_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/error.h"
#include "kiln/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Allocator, logger, threads, devices and caches. All objects made from a context keep it alive.
 *  \since 0.1 */
typedef struct kiln_context kiln_context;

/** The severity of a log message. \since 0.1 */
typedef int32_t kiln_log_level;
/** @name Levels of the log */
/** @{ */
#define KILN_LOG_DEFAULT 0 /**< as an option: the same as KILN_LOG_WARNING */
#define KILN_LOG_INFO 1    /**< information on normal events */
#define KILN_LOG_WARNING 2 /**< conditions that the user may want to change */
#define KILN_LOG_ERROR 3   /**< errors without a caller to return them to */
#define KILN_LOG_OFF 4     /**< as an option: nothing */
/** @} */

/** Which GPUs a context has. \since 0.1 */
typedef int32_t kiln_gpu_mode;
/** @name GPUs of a context */
/** @{ */
#define KILN_GPU_AUTO                                                                             \
  0 /**< the CUDA driver's GPUs; or an emulated one, if the environment variable KILN_EMULATE_GPU \
       is set and not 0 */
#define KILN_GPU_EMULATED 1 /**< one GPU emulated on the processor */
#define KILN_GPU_OFF 2      /**< none: the driver is not loaded */
/** @} */

/** When cuBLASLt, if installed, computes a GPU's matrix products. \since 0.1 */
typedef int32_t kiln_gpu_library;
/** @name Use of a library for matrix products */
/** @{ */
#define KILN_GPU_LIBRARY_DEFAULT                                                         \
  0 /**< by the environment variable KILN_GPU_LIBRARY: auto, never or always; without it \
         KILN_GPU_LIBRARY_AUTO */
#define KILN_GPU_LIBRARY_AUTO 1   /**< for products where autotuning found it faster */
#define KILN_GPU_LIBRARY_NEVER 2  /**< never: the library is not even loaded */
#define KILN_GPU_LIBRARY_ALWAYS 3 /**< for all products that it supports, without autotuning */
/** @} */

/** The options of a context. Members that are 0 have their defaults; flags in environment variables
 *  (docs/flags.md) change some of these, and defaults of other options of the context's objects.
 *
 *  Callbacks get the `user_data` next to them. They must not throw, and must not call into objects
 *  in use. Unless `callbacks_from_any_thread` is set, they are called only on threads inside a call
 *  of this library: callbacks due on the library's own threads wait for the next such call, and
 *  asynchronous work with an allocator or `run_tasks` is done by the calling thread. \since 0.1 */
typedef struct kiln_context_options {
  size_t struct_size; /**< set by kiln_context_options_init() */
  int32_t threads;    /**< threads that run kernels, including the caller's: 0 for as many as the
                           process may use, 1 for the caller's only (no thread is created, but by the
                           first kiln_execute_options::timeout_ns) */
  int32_t callbacks_from_any_thread; /**< 1: the library's threads may call the callbacks too */
  /** Returns `bytes` bytes at a multiple of `alignment` (a power of two), or NULL. May be called by
   *  several threads at once. NULL: the library's own. */
  void* (*allocate)(void* user_data, size_t bytes, size_t alignment);
  /** Frees memory returned by `allocate`, with the same numbers. Set both or neither. */
  void (*deallocate)(void* user_data, void* memory, size_t bytes, size_t alignment);
  void* allocator_user_data; /**< the first argument of the two above */
  /** Called once after the end of the context; may be NULL. */
  void (*allocator_destroy)(void* user_data);
  /** Receives the messages of the log, one at a time; NULL: they go to standard error. */
  void (*log)(void* user_data, kiln_log_level level, const char* message, size_t length);
  void* log_user_data; /**< the first argument of `log` */
  /** Called once after the end of the context; may be NULL. */
  void (*log_destroy)(void* user_data);
  kiln_log_level log_level; /**< messages below it are dropped; 0: by the flags */
  kiln_gpu_mode gpu;        /**< the GPUs of the context */
  int64_t gpu_memory_bytes; /**< limit on the memory of buffers and executables on each GPU device;
                                 0: no limit */
  /** Folder of the disk cache (docs/cache.md): compiled programs, code assembled by a driver and
   *  autotuning results are kept there for other processes. Created if missing, for its user alone;
   *  who can write to it can run code in the processes that use it. NULL: by the environment
   *  (KILN_CACHE, or the flag cache_folder), without it none. */
  const char* cache_folder;
  size_t cache_folder_length;   /**< characters of `cache_folder` */
  kiln_gpu_library gpu_library; /**< use of a library for matrix products */
  int32_t cpu_devices;          /**< number of devices that the processor is, `CPU:0`, `CPU:1` and
                                     so on, up to 1024, which divide the threads among them as
                                     equally as possible, with at least one each (see kiln_device);
                                     0: by the environment variable KILN_CPU_DEVICES, without it
                                     1 */
  int64_t cache_bytes; /**< most bytes of all entries of the disk cache together: an entry that
                          would exceed it takes the place of the least recently used ones. 0: by the
                          flag cache_bytes, without it 1 GiB; KILN_CACHE_OFF: no disk cache,
                          whatever the environment says */
  /** Runs kernels on the caller's threads, in place of threads of the library's own: calls
   *  task(context, number) for each number in [0, tasks), on any threads and in any order, and
   *  returns when all calls have returned. Several threads may call it at once, but no task does.
   *  A task does not fail, and takes no more than 64 KiB of its thread's stack. `threads` says how
   * many tasks are worth while. NULL: the library's own threads. */
  void (*run_tasks)(void* user_data, int64_t tasks, void (*task)(void* context, int64_t number),
                    void* context);
  void* pool_user_data; /**< the first argument of `run_tasks` */
  /** Called once after the end of the context; may be NULL. */
  void (*pool_destroy)(void* user_data);
} kiln_context_options;

/** As kiln_context_options::cache_bytes: no disk cache. \since 0.1 */
#define KILN_CACHE_OFF (-1)

/** Makes default ::kiln_context_options of a variable. */
#define KILN_CONTEXT_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(kiln_context_options), 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, \
        0, 0, 0, 0, NULL, NULL, NULL                                                             \
  }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_context_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_context_options_init(kiln_context_options* options, size_t size);

/** Makes a context.
 *  @param options may be NULL: the defaults
 *  @param context receives one reference, to be released with kiln_context_release()
 *  @return INVALID_ARGUMENT for an option out of range or a mistake in the environment variable
 *          KILN_FLAGS, RESOURCE_EXHAUSTED for threads or memory
 *
 *  On failure the destroy callbacks of `options` are not called. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_create(const kiln_context_options* options,
                                         kiln_context** context);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_context_retain(kiln_context* context);

/** Releases a reference; NULL is allowed. The context ends when all objects made from it are
 *  released, too. Any thread. \since 0.1 */
KILN_API void kiln_context_release(kiln_context* context);

/** The number of threads that run kernels, including the caller's; 0 for NULL. With several CPU
 *  devices it is divided among them: kiln_device_threads(). Any thread. \since 0.1 */
KILN_API int32_t kiln_context_threads(const kiln_context* context);

/** The use of a memory, in bytes. \since 0.1 */
typedef struct kiln_memory_info {
  size_t struct_size;  /**< set by the caller: sizeof(kiln_memory_info) */
  int64_t live_bytes;  /**< allocated now: buffers, constants and cached temporaries */
  int64_t peak_bytes;  /**< the maximum of `live_bytes` so far */
  int64_t limit_bytes; /**< the limit; 0 for none but the machine's */
} kiln_memory_info;

/** Makes an empty ::kiln_memory_info of a variable, with its struct_size set. */
#define KILN_MEMORY_INFO_INIT \
  { sizeof(kiln_memory_info), 0, 0, 0 }

/** Reports the memory allocated by the context's allocator.
 *  @return INVALID_ARGUMENT if `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_memory(const kiln_context* context, kiln_memory_info* info);

/** The uses of a context's disk cache. Except for the last two members, of this context since it
 *  was made. \since 0.1 */
typedef struct kiln_cache_info {
  size_t struct_size;    /**< set by the caller: sizeof(kiln_cache_info) */
  int64_t hits;          /**< entries found and used in the place of a compilation */
  int64_t misses;        /**< searches without an entry that could be used */
  int64_t written;       /**< entries added */
  int64_t evicted;       /**< entries removed for the bound */
  int64_t failed;        /**< entries that were damaged, could not be read, or could not be added (a
                              full disk, no permission, more bytes than the bound); the log has the
                              reasons, each once (warning) */
  int64_t read_bytes;    /**< of the entries that were used */
  int64_t written_bytes; /**< of the entries that were added */
  int64_t folder_bytes;  /**< of all entries in the folder now, by all processes; after damaged
                              entries or killed processes possibly too large, for an hour at most */
  int64_t limit_bytes;   /**< the bound on `folder_bytes`; 0: the context has no disk cache, and all
                              other members are 0 */
} kiln_cache_info;

/** Makes an empty ::kiln_cache_info of a variable, with its struct_size set. */
#define KILN_CACHE_INFO_INIT \
  { sizeof(kiln_cache_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Reports the uses of the context's disk cache.
 *  @return INVALID_ARGUMENT if `info->struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_context_cache(const kiln_context* context, kiln_cache_info* info);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CONTEXT_H_ */
