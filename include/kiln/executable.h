/** @file
 *  Executables: whole graphs compiled for a device, and their execution. */
#ifndef KILN_EXECUTABLE_H_
#define KILN_EXECUTABLE_H_

#include <stddef.h>
#include <stdint.h>

#include "kiln/buffer.h"
#include "kiln/device.h"
#include "kiln/error.h"
#include "kiln/event.h"
#include "kiln/export.h"
#include "kiln/graph.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph compiled for a device. Immutable; any number of threads may execute it at once.
 *  \since 0.1 */
typedef struct kiln_executable kiln_executable;

/** The size of a symbol. \since 0.1 */
typedef struct kiln_symbol_size {
  const char* name;   /**< the symbol's name */
  size_t name_length; /**< its number of characters */
  int64_t size;       /**< the size to put in for it, not negative */
} kiln_symbol_size;

/** How a graph is compiled. Zero everywhere means the defaults. \since 0.1 */
typedef struct kiln_compile_options {
  size_t struct_size;              /**< set by kiln_compile_options_init() */
  kiln_device* device;             /**< borrowed; NULL: the context's first, CPU:0 */
  int32_t replicas;                /**< 0 and 1 are one; more is UNIMPLEMENTED */
  int32_t partitions;              /**< 0 and 1 are one; more is UNIMPLEMENTED */
  const kiln_symbol_size* symbols; /**< a size for each symbol of the graph's */
  size_t symbol_count;             /**< number of `symbols` */
  const char* disabled_passes;     /**< names of passes to leave out, with commas between */
  size_t disabled_passes_length;   /**< its number of characters */
  int32_t verify;          /**< 1: check the graph after every pass and all code that is made;
                                slow, for finding mistakes of the compiler */
  int32_t dump_ptx_sm;     /**< unless 0, kernels are dumped as PTX for this architecture too: 75,
                                80, 86, 89 or 90 */
  const char* dump_folder; /**< unless NULL, every stage is written into this folder, made where it
                                is missing: HLO text before and after, the graph after each pass,
                              the plan, LLVM IR; under XLA's names, module_0001.NAME.… */
  size_t dump_folder_length; /**< its number of bytes */
} kiln_compile_options;

/** Makes default ::kiln_compile_options of a variable. */
#define KILN_COMPILE_OPTIONS_INIT \
  { sizeof(kiln_compile_options), NULL, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, 0 }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_compile_options). A size below
 *  that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_compile_options_init(kiln_compile_options* options, size_t size);

/** Compiles a whole graph, or fails and names the op that cannot be compiled. The graph is copied:
 *  it may be changed or given back afterwards.
 *  @param options may be NULL: the defaults
 *  @param executable receives one reference, which the caller gives back with
 *         kiln_executable_release()
 *  @return the graph's first mistake if it has one; FAILED_PRECONDITION where no results are set;
 *          INVALID_ARGUMENT for options and for symbols without a size; UNIMPLEMENTED;
 *          RESOURCE_EXHAUSTED
 *
 *  Several graphs may be compiled at once by several threads. \since 0.1 */
KILN_API kiln_error* kiln_graph_compile(const kiln_graph* graph,
                                        const kiln_compile_options* options,
                                        kiln_executable** executable);

/** Adds a reference; NULL is taken. Any thread. \since 0.1 */
KILN_API void kiln_executable_retain(kiln_executable* executable);

/** Gives a reference back; NULL is taken. Executions go on. Any thread. \since 0.1 */
KILN_API void kiln_executable_release(kiln_executable* executable);

/** The device it was compiled for, borrowed; NULL for NULL. Any thread. \since 0.1 */
KILN_API kiln_device* kiln_executable_device(const kiln_executable* executable);

/** The number of arguments it takes: the arrays among its parameters, tuples taken apart in order.
 *  0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_argument_count(const kiln_executable* executable);

/** The shape of an argument; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE where there is none of that number
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_argument_shape(const kiln_executable* executable, size_t index,
                                                    kiln_shape* shape);

/** The name of an argument, with a 0 behind it; lives as long as the executable. NULL where there
 *  is none of that number. Any thread. \since 0.1 */
KILN_API const char* kiln_executable_argument_name(const kiln_executable* executable, size_t index,
                                                   size_t* length);

/** The number of results: the arrays of what the graph computes, tuples taken apart in order. 0 for
 *  NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_result_count(const kiln_executable* executable);

/** The shape of a result; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE where there is none of that number
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_result_shape(const kiln_executable* executable, size_t index,
                                                  kiln_shape* shape);

/** What a program costs. \since 0.1 */
typedef struct kiln_program_info {
  size_t struct_size;           /**< set by the caller: sizeof(kiln_program_info) */
  int64_t kernels;              /**< kernels that a run starts; a loop's or branch's count once */
  int64_t temporary_bytes;      /**< memory of a run beside arguments, results and constants */
  int64_t compile_microseconds; /**< how long compiling took, dumps included */
} kiln_program_info;

/** Makes an empty ::kiln_program_info of a variable, with its struct_size set. */
#define KILN_PROGRAM_INFO_INIT \
  { sizeof(kiln_program_info), 0, 0, 0 }

/** Tells what the executable costs. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_info(const kiln_executable* executable,
                                          kiln_program_info* info);

/** How a program is executed. Zero everywhere means the defaults. \since 0.1 */
typedef struct kiln_execute_options {
  size_t struct_size; /**< set by kiln_execute_options_init() */
  int32_t threads;    /**< threads to use, at most the context's; 0: the context's. The results have
                           the same bits for any number */
  int32_t reserved;   /**< 0 */
  const int32_t* cancel; /**< unless NULL, looked at by loops of the program and before it starts:
                            not 0 ends the execution with CANCELLED. It must stay until the
                            execution has ended, and may be set by any thread */
} kiln_execute_options;

/** Makes default ::kiln_execute_options of a variable. */
#define KILN_EXECUTE_OPTIONS_INIT \
  { sizeof(kiln_execute_options), 0, 0, NULL }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_execute_options). A size below
 *  that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_execute_options_init(kiln_execute_options* options, size_t size);

/** Executes on one device, and returns when the results are there.
 *  @param options may be NULL: the defaults
 *  @param arguments `argument_count` buffers on the executable's device, of the shapes it asks for
 *  @param results `result_count` places. Where one is NULL, it receives one reference to a new
 *         buffer; where it holds a buffer, the result is written into that one, which must be of
 *         the right shape and share no memory with an argument or another result
 *  @return INVALID_ARGUMENT naming the argument and its shape; the error of an argument that should
 *          have been made by an execution that failed; RESOURCE_EXHAUSTED; CANCELLED. Where the
 *          execution had begun, the contents of given results are undefined
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_run(kiln_executable* executable,
                                         const kiln_execute_options* options,
                                         kiln_buffer* const* arguments, size_t argument_count,
                                         kiln_buffer** results, size_t result_count);

/** Executes on a list of devices, and may return before the results are there.
 *  @param options may be NULL: the defaults
 *  @param arguments per device, its list of arguments as in kiln_executable_run()
 *  @param argument_count the length of each of these lists
 *  @param results per device, its list of results as in kiln_executable_run()
 *  @param result_count the length of each of these lists
 *  @param device_count the number of lists: replicas times partitions, which is 1
 *  @param events unless NULL, `device_count` places that receive one reference each to an event
 *         that is ready when the execution on that device has ended; the buffers of the results can
 *         be used at once, as arguments too, and what needs their values waits for them. When the
 *         execution fails, so does what uses them. NULL: the call returns when all has ended
 *  @return what can be seen beforehand, as in kiln_executable_run(); the rest goes to the events
 *
 *  Executions of one context that are asked for in this way run one after the other, in order. With
 *  a context of one thread they run during the call. Buffers that take part may be given back at
 *  any time. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_execute(kiln_executable* executable,
                                             const kiln_execute_options* options,
                                             kiln_buffer* const* const* arguments,
                                             size_t argument_count, kiln_buffer** const* results,
                                             size_t result_count, size_t device_count,
                                             kiln_event** events);

#ifdef __cplusplus
}
#endif

#endif /* KILN_EXECUTABLE_H_ */
