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

/** A result that is to be in the memory of an argument. \since 0.1 */
typedef struct kiln_alias {
  size_t result;   /**< the number of the result */
  size_t argument; /**< the number of the argument, of the same type, sizes and layout */
  int32_t must; /**< 1: executions must donate the argument; 0: where they do not, it is copied */
  int32_t reserved; /**< 0 */
} kiln_alias;

/** How much of the compiler's work code is worth. \since 0.1 */
typedef int32_t kiln_optimization;
/** @name Optimizations */
/** @{ */
/** The default: all code is optimised, but in programs of thousands of different kernels those that
 *  do little work are made quickly, as by ::KILN_OPTIMIZATION_QUICK. */
#define KILN_OPTIMIZATION_AUTO 0
/** Elementwise kernels outside of loops are made in a third of the time and run up to a third
 *  slower. Matrix products, reductions, sorts and loops are optimised all the same. */
#define KILN_OPTIMIZATION_QUICK 1
/** All code is optimised, however long that takes. */
#define KILN_OPTIMIZATION_FULL 2
/** @} */

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
  int32_t verify;          /**< 1: check the graph after every pass; slow, for finding mistakes of
                                the compiler */
  int32_t dump_ptx_sm;     /**< unless 0, kernels are dumped as PTX for this architecture too: 75,
                                80, 86, 89 or 90 */
  const char* dump_folder; /**< unless NULL, every stage is written into this folder, made where it
                                is missing: HLO text before and after, the graph after each pass,
                                the plan, LLVM IR, what kernels take of a GPU; under XLA's names,
                                module_0001.NAME.… */
  size_t dump_folder_length; /**< its number of bytes */
  const kiln_alias* aliases; /**< results that are to be in the memory of arguments, beside those
                                that the graph's text has told (input_output_alias) */
  size_t alias_count;        /**< number of `aliases` */
  kiln_optimization optimization; /**< how much work the code is worth */
  int32_t allow_tf32; /**< 1: products of f32 may be made by a GPU's tf32 units, which keep 10 bits
                         of their factors' mantissas and sum in f32; 0: they are exact but for the
                           rounding of sums. No other device heeds it */
  const int32_t* cancel; /**< unless NULL, looked at while compiling: not 0 ends it with CANCELLED.
                            It must stay until the call returns, and may be set by any thread */
  int64_t timeout_ns; /**< unless 0, compiling that takes longer than so many nanoseconds ends with
                           DEADLINE_EXCEEDED; not negative */
  int32_t dump_large_constants; /**< 1: dumps show all constants; 0: those of more than 256 elements
                                     are "{...}" in them */
  int32_t reserved;             /**< 0 */
} kiln_compile_options;

/** Makes default ::kiln_compile_options of a variable. */
#define KILN_COMPILE_OPTIONS_INIT                                                       \
  {                                                                                     \
    sizeof(kiln_compile_options), NULL, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, 0, NULL, 0, \
        KILN_OPTIMIZATION_AUTO, 0, NULL, 0, 0, 0                                        \
  }

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
 *          RESOURCE_EXHAUSTED, also for a graph that would become too large; CANCELLED and
 *          DEADLINE_EXCEEDED as the options ask for
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

/** The number of arguments it takes: the arrays among its parameters, tuples taken apart in order,
 *  and tokens left out. 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_argument_count(const kiln_executable* executable);

/** The shape of an argument; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE where there is none of that number
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_argument_shape(const kiln_executable* executable, size_t index,
                                                    kiln_shape* shape);

/** The name of an argument, with a 0 behind it; lives as long as the executable: its op_name where
 * it has one, as parameters from StableHLO and XLA have ("p['layer00']['b1']"), else the
 * parameter's name; of an array in a tuple with its place behind, ".0". NULL where there is none of
 * that number. Any thread. \since 0.1 */
KILN_API const char* kiln_executable_argument_name(const kiln_executable* executable, size_t index,
                                                   size_t* length);

/** The number of results: the arrays of what the graph computes, tuples taken apart in order, and
 *  tokens left out. 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_result_count(const kiln_executable* executable);

/** The shape of a result; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE where there is none of that number
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_result_shape(const kiln_executable* executable, size_t index,
                                                  kiln_shape* shape);

/** The argument whose memory a result is in when that argument is donated.
 *  @param argument receives its number, or -1 where the result has memory of its own
 *  @return OUT_OF_RANGE where there is no result of that number
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_result_alias(const kiln_executable* executable, size_t index,
                                                  int64_t* argument);

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

/** Tells what the executable costs.
 *  @return INVALID_ARGUMENT where `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_info(const kiln_executable* executable,
                                          kiln_program_info* info);

/** The memory that an executable and a run of it take, in bytes as they are asked of the context's
 *  allocator. \since 0.1 */
typedef struct kiln_program_memory {
  size_t struct_size;      /**< set by the caller: sizeof(kiln_program_memory) */
  int64_t code_bytes;      /**< machine code and its constants; not of the allocator */
  int64_t argument_bytes;  /**< all arguments */
  int64_t output_bytes;    /**< all results */
  int64_t alias_bytes;     /**< of the results, those that are in the memory of donated arguments */
  int64_t temporary_bytes; /**< what a run needs beside these; it is kept for the next run */
  int64_t scratch_bytes;   /**< of the temporaries, the most that one kernel has for itself */
  int64_t constant_bytes;  /**< constants, and what is made of them, while the executable lives: one
                                copy, in the form in which kernels read them */
  int64_t peak_bytes;      /**< what is allocated when most is, during a run whose arguments with an
                                alias are donated: arguments, outputs less aliased ones, temporaries
                                and constants */
} kiln_program_memory;

/** Makes an empty ::kiln_program_memory of a variable, with its struct_size set. */
#define KILN_PROGRAM_MEMORY_INIT \
  { sizeof(kiln_program_memory), 0, 0, 0, 0, 0, 0, 0, 0 }

/** Tells what memory the executable takes.
 *  @return INVALID_ARGUMENT where `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_memory(const kiln_executable* executable,
                                            kiln_program_memory* memory);

/** What a run does, as XLA's cost analysis counts it. \since 0.1 */
typedef struct kiln_program_cost {
  size_t struct_size;      /**< set by the caller: sizeof(kiln_program_cost) */
  int64_t flops;           /**< of the graph as it was given: one for each element of an elementwise
                                op, two for each product of a dot, what reductions, maps and
                                scatters apply, n log2 n of a sort; loops count once, of branches
                                the largest */
  int64_t transcendentals; /**< the elementwise ops among them that are transcendental, which
                                `flops` leaves out */
  int64_t bytes_accessed;  /**< what the kernels that the graph became read and write; a copy counts
                                twice its size. 0 on REFERENCE, which has no kernels */
  int64_t partial; /**< 1 where a run may do more than these figures say: the graph has loops,
                        which count once, or custom calls, whose work is not known; else 0 */
} kiln_program_cost;

/** Makes an empty ::kiln_program_cost of a variable, with its struct_size set. */
#define KILN_PROGRAM_COST_INIT \
  { sizeof(kiln_program_cost), 0, 0, 0, 0 }

/** Tells what a run does.
 *  @return INVALID_ARGUMENT where `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_cost(const kiln_executable* executable,
                                          kiln_program_cost* cost);

/** How a program is executed. Zero everywhere means the defaults. \since 0.1 */
typedef struct kiln_execute_options {
  size_t struct_size; /**< set by kiln_execute_options_init() */
  int32_t threads;    /**< threads to use, at most the context's; 0: the context's. The results have
                           the same bits for any number */
  int32_t donate_aliased; /**< 1: all arguments that results have as aliases are donated, but for
                               those that `kept` lists */
  const int32_t* cancel;  /**< unless NULL, looked at before the program starts, by its loops,
                             between kernels, and by kernels that take long: not 0 ends the
                             execution with CANCELLED, mostly within 50 ms. Waited for are what a
                             GPU has been given, and an op of the evaluator's. It must stay, and
                             not become 0 again, until the execution has ended; any thread may
                             set it */
  const size_t* donated;  /**< numbers of arguments that are donated: from when the execution has
                               been accepted they cannot be used any more, and have no contents.
                               Results that have them as aliases are made in their memory; what no
                               result takes is given back with the buffer */
  size_t donated_count;   /**< number of `donated` */
  const size_t* kept;     /**< numbers of arguments that must not be donated */
  size_t kept_count;      /**< number of `kept` */
  void* stream;           /**< unless NULL, a CUstream of the device's primary context, on a GPU of
                               the CUDA driver: the execution takes its place in the order of that
                               stream before the call returns (CU_STREAM_LEGACY is (void*)1), after
                               all that the device was asked for before, and the device's own work
                               that is asked for later comes after it. The stream must stay until
                               the execution has ended. INVALID_ARGUMENT on other devices and for
                               sessions */
} kiln_execute_options;

/** Makes default ::kiln_execute_options of a variable. */
#define KILN_EXECUTE_OPTIONS_INIT \
  { sizeof(kiln_execute_options), 0, 0, NULL, NULL, 0, NULL, 0, NULL }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_execute_options). A size below
 *  that of `struct_size` itself, or NULL, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_execute_options_init(kiln_execute_options* options, size_t size);

/** Executes on one device, and returns when the results are there.
 *  @param options may be NULL: the defaults
 *  @param arguments `argument_count` buffers on the executable's device, of the shapes it asks for
 *  @param results `result_count` places. Where one is NULL, it receives one reference to a new
 *         buffer; where it holds a buffer, the result is written into that one, which must be of
 *         the right shape and share no memory with an argument or another result. The result that
 *         is in the memory of a donated argument must be NULL
 *  @return INVALID_ARGUMENT naming the argument and its shape; FAILED_PRECONDITION for a buffer
 * that has been donated, and where an argument must be and is not; the error of an argument that
 * should have been made by an execution that failed; RESOURCE_EXHAUSTED; CANCELLED. Where the
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
 *  Executions on one device that a thread asks for in this way run one after the other, in order;
 *  those on different devices at the same time, but that one waits for what it needs of another.
 *  Those that take a few microseconds run during the call on a CPU, where no other is queued, and
 *  with a context of one thread all do. Buffers that take part may be given back at
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
