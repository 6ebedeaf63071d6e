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
#include "kiln/trace.h"
#include "kiln/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph compiled for a device. Immutable; any number of threads may execute it concurrently.
 *  \since 0.1 */
typedef struct kiln_executable kiln_executable;

/** The size of a symbol. \since 0.1 */
typedef struct kiln_symbol_size {
  const char* name;   /**< the symbol's name */
  size_t name_length; /**< its number of characters */
  int64_t size;       /**< its size, not negative */
} kiln_symbol_size;

/** A result that shares the memory of an argument. \since 0.1 */
typedef struct kiln_alias {
  size_t result;   /**< the number of the result */
  size_t argument; /**< the number of the argument, of the same type, sizes and layout */
  int32_t must; /**< 1: executions must donate the argument; 0: an argument that is not donated is
                     copied */
  int32_t reserved; /**< 0 */
} kiln_alias;

/** The effort of the compiler. \since 0.1 */
typedef int32_t kiln_optimization;
/** @name Optimization levels */
/** @{ */
/** The default: all code is optimised, except cheap kernels in programs of thousands of different
 *  kernels, which are compiled as with ::KILN_OPTIMIZATION_QUICK. */
#define KILN_OPTIMIZATION_AUTO 0
/** Elementwise kernels outside of loops compile in a third of the time and run up to a third
 *  slower. Matrix products, reductions, sorts and loops are optimised as usual. */
#define KILN_OPTIMIZATION_QUICK 1
/** All code is optimised, regardless of compile time. */
#define KILN_OPTIMIZATION_FULL 2
/** @} */

/** Forms of modules in dumps: a sum of constants. \since 0.1 */
typedef int32_t kiln_dump_forms;
/** @name Forms of dumps */
/** @{ */
#define KILN_DUMP_TEXT 1 /**< HLO text */
#define KILN_DUMP_DOT 2  /**< a graph for Graphviz */
#define KILN_DUMP_HTML \
  4 /**< a page for a browser; and one of the input, the result and the passes */
#define KILN_DUMP_SVG 8 /**< a picture, drawn without other programs */
/** @} */

/** The options of a compilation. Members that are 0 have their defaults; flags in environment
 *  variables (docs/flags.md) change those of dumps, verification and disabled passes. \since 0.1 */
typedef struct kiln_compile_options {
  size_t struct_size;              /**< set by kiln_compile_options_init() */
  kiln_device* device;             /**< borrowed; NULL: the context's first, CPU:0 */
  int32_t replicas;                /**< 0 and 1 are one; more is UNIMPLEMENTED */
  int32_t partitions;              /**< 0 and 1 are one; more is UNIMPLEMENTED */
  const kiln_symbol_size* symbols; /**< a size for each symbol of the graph */
  size_t symbol_count;             /**< number of `symbols` */
  const char* disabled_passes;     /**< names of passes to disable, separated by commas */
  size_t disabled_passes_length;   /**< its number of characters */
  int32_t verify;          /**< 1: verify the graph after every pass; slow, for finding mistakes of
                                the compiler */
  int32_t dump_ptx_sm;     /**< unless 0, kernels are also dumped as PTX for this architecture: 75,
                                80, 86, 89 or 90 */
  const char* dump_folder; /**< unless NULL, every stage is written into this folder, created if
                                missing: HLO text before and after, the graph after each pass, the
                                plan, LLVM IR, resources of GPU kernels; under XLA's names,
                                module_0001.NAME.… */
  size_t dump_folder_length; /**< its number of bytes */
  const kiln_alias* aliases; /**< results that share the memory of arguments, in addition to the
                                  aliases in the graph's text (input_output_alias) */
  size_t alias_count;        /**< number of `aliases` */
  kiln_optimization optimization; /**< the effort of the compiler */
  int32_t allow_tf32;    /**< 1: a GPU's tf32 units may compute products of f32, with 10 bits of the
                              factors' mantissas and sums in f32; 0: products are exact except for the
                              rounding of sums. Ignored by other devices */
  const int32_t* cancel; /**< unless NULL, polled during compilation: a value other than 0 ends it
                              with CANCELLED. It must stay until the call returns, and may be set by
                              any thread */
  int64_t timeout_ns; /**< time limit of the compilation in nanoseconds, beyond which it ends with
                           DEADLINE_EXCEEDED; 0: none; not negative */
  int32_t dump_large_constants; /**< 1: dumps show all constants; 0: constants of more than 256
                                     elements are elided as "{...}" */
  kiln_dump_forms dump_forms;   /**< the forms of modules in `dump_folder`; 0: the input and the
                                     result as HLO text, stages between them for Graphviz */
  const size_t* donors; /**< numbers of arguments that executions may donate although no alias
                             names them. Each gets the first result of its type and sizes
                             that has memory of its own, as an alias that need not be
                             donated; without one, executions free the memory */
  size_t donor_count;   /**< number of `donors` */
  const size_t* frozen; /**< numbers of frozen arguments: bound by kiln_executable_bind(), and the
                             same in all executions until they are bound anew; weights, for
                             example. They are packed, converted and computed with once, as
                           constants are. An argument that may be donated cannot be frozen.
                           StableHLO marks them by the attribute `kiln.frozen = true` */
  size_t frozen_count;  /**< number of `frozen` */
  const char* frozen_names;   /**< names of further ones (kiln_executable_argument_name()), one in a
                                   line; '*' stands for any characters: "params*". NOT_FOUND for a
                                   line that no argument is like */
  size_t frozen_names_length; /**< its number of bytes */
  int64_t memory_limit_bytes; /**< the most temporaries of a run in bytes
                                   (kiln_program_info::temporary_bytes); 0: no limit; not negative.
                                   To fit in it, results are computed again where they are read
                                   late instead of being kept: elementwise ops and reductions
                                   first, then products; never side effects, nor random numbers
                                   from a state. Their bits may differ in the last places, as the
                                   copies are in other kernels. The least is computed again by
                                   which they fit, and RESOURCE_EXHAUSTED names the largest
                                   temporaries where they cannot. Ignored by REFERENCE */
  int32_t allow_bf16; /**< 1: a CPU's bf16 units may compute products of f32, with 7 bits of the
                           factors' mantissas and sums in f32, where that is faster; 0:
                           factors are not rounded. Ignored by other devices. \since 0.1 */
  int32_t keep_subnormals; /**< 1: products of bf16 keep subnormal numbers; 0: a CPU's bf16 units,
                                which treat them as 0, may compute these products, faster.
                                Ignored by other devices. \since 0.1 */
  int32_t takes_graph; /**< 1: the graph is given up. It is not copied, which saves time and memory,
                            and no other thread may use it during the call. Afterwards, also if
                            the call fails behind the check of its arguments, it may be
                            released and asked for attributes of arguments and results
                            (kiln_graph_argument_attribute()); other uses fail with
                            FAILED_PRECONDITION, or find an empty graph. \since 0.1 */
} kiln_compile_options;

/** Makes default ::kiln_compile_options of a variable. */
#define KILN_COMPILE_OPTIONS_INIT                                                       \
  {                                                                                     \
    sizeof(kiln_compile_options), NULL, 0, 0, NULL, 0, NULL, 0, 0, 0, NULL, 0, NULL, 0, \
        KILN_OPTIMIZATION_AUTO, 0, NULL, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0 \
  }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_compile_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_compile_options_init(kiln_compile_options* options, size_t size);

/** Compiles a whole graph, or fails with an error that names the unsupported op. The graph is
 *  copied, and may be changed or released afterwards, unless the options take it.
 *  @param options may be NULL: the defaults
 *  @param executable receives one reference, to be released with kiln_executable_release()
 *  @return the graph's first error, if any; FAILED_PRECONDITION if no results are set;
 *         INVALID_ARGUMENT for options and for symbols without a size; UNIMPLEMENTED;
 *         RESOURCE_EXHAUSTED, also for a graph that would become too large; CANCELLED and
 *         DEADLINE_EXCEEDED by the options
 *
 *  Several threads may compile different graphs concurrently. \since 0.1 */
KILN_API kiln_error* kiln_graph_compile(const kiln_graph* graph,
                                        const kiln_compile_options* options,
                                        kiln_executable** executable);

/** Adds a reference; NULL is allowed. Any thread. \since 0.1 */
KILN_API void kiln_executable_retain(kiln_executable* executable);

/** Releases a reference; NULL is allowed. Executions continue. Any thread. \since 0.1 */
KILN_API void kiln_executable_release(kiln_executable* executable);

/** The device of the compilation, borrowed; NULL for NULL. Any thread. \since 0.1 */
KILN_API kiln_device* kiln_executable_device(const kiln_executable* executable);

/** The number of arguments: the arrays and tokens among the parameters, with tuples flattened in
 *  order. 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_argument_count(const kiln_executable* executable);

/** The shape of an argument; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE for a number beyond the last
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_argument_shape(const kiln_executable* executable, size_t index,
                                                    kiln_shape* shape);

/** The name of an argument, null-terminated; lives as long as the executable. It is the parameter's
 *  op_name if it has one, as parameters from StableHLO and XLA do ("p['layer00']['b1']"), otherwise
 *  the parameter's name; arrays in a tuple have their index appended, ".0". NULL for a number
 *  beyond the last. Any thread. \since 0.1 */
KILN_API const char* kiln_executable_argument_name(const kiln_executable* executable, size_t index,
                                                   size_t* length);

/** The number of the argument of a name (kiln_executable_argument_name()); of several the first.
 *  @param index receives it
 *  @return NOT_FOUND
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_find_argument(const kiln_executable* executable,
                                                   const char* name, size_t name_length,
                                                   size_t* index);

/** Whether an argument is frozen (kiln_compile_options::frozen): bound by kiln_executable_bind(),
 * and no argument of executions.
 *  @return 1 or 0; 0 for a number beyond the last
 *
 *  Any thread. \since 0.1 */
KILN_API int32_t kiln_executable_argument_is_frozen(const kiln_executable* executable,
                                                    size_t index);

/** The number of results: the arrays and tokens of the graph's result, with tuples flattened in
 *  order. 0 for NULL. Any thread. \since 0.1 */
KILN_API size_t kiln_executable_result_count(const kiln_executable* executable);

/** The shape of a result; `shape->dims` lives as long as the executable.
 *  @return OUT_OF_RANGE for a number beyond the last
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_result_shape(const kiln_executable* executable, size_t index,
                                                  kiln_shape* shape);

/** The argument that a result shares its memory with when that argument is donated.
 *  @param argument receives its number, or -1 for a result with its own memory
 *  @return OUT_OF_RANGE for a number beyond the last
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_result_alias(const kiln_executable* executable, size_t index,
                                                  int64_t* argument);

/** Whether the program allows the donation of an argument: one with a result in its memory, one
 *  marked `jax.buffer_donor` in StableHLO, or one of kiln_compile_options::donors. Executions may
 *  donate others, too; these have no use for it.
 *  @return 1 or 0; 0 for a number beyond the last
 *
 *  Any thread. \since 0.1 */
KILN_API int32_t kiln_executable_argument_is_donatable(const kiln_executable* executable,
                                                       size_t index);

/** The cost of a program. \since 0.1 */
typedef struct kiln_program_info {
  size_t struct_size;           /**< set by the caller: sizeof(kiln_program_info) */
  int64_t kernels;              /**< kernel launches of a run; those in loops and branches count
                                     once */
  int64_t temporary_bytes;      /**< memory of a run in addition to arguments, results and
                                     constants */
  int64_t compile_microseconds; /**< the compile time, dumps included */
} kiln_program_info;

/** Makes an empty ::kiln_program_info of a variable, with its struct_size set. */
#define KILN_PROGRAM_INFO_INIT \
  { sizeof(kiln_program_info), 0, 0, 0 }

/** Reports the cost of the executable.
 *  @return INVALID_ARGUMENT if `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_info(const kiln_executable* executable,
                                          kiln_program_info* info);

/** The memory of an executable and of a run, in bytes as requested from the context's allocator.
 *  \since 0.1 */
typedef struct kiln_program_memory {
  size_t struct_size;      /**< set by the caller: sizeof(kiln_program_memory) */
  int64_t code_bytes;      /**< machine code and its constants; not from the allocator */
  int64_t argument_bytes;  /**< all arguments of an execution */
  int64_t output_bytes;    /**< all results */
  int64_t alias_bytes;     /**< results in the memory of donated arguments */
  int64_t temporary_bytes; /**< other memory of a run; it is kept for the next run */
  int64_t scratch_bytes;   /**< the largest scratch of a kernel, part of the temporaries */
  int64_t constant_bytes;  /**< constants and values computed from them, for the executable's
                                lifetime: one copy, in the form in which kernels read them */
  int64_t peak_bytes;      /**< peak of a run with its aliased arguments donated: arguments, outputs
                                less aliased ones, temporaries, constants and frozen arguments */
  int64_t frozen_bytes;    /**< frozen arguments as kernels read them, once they are bound: buffers
                                that they read as they are, packed forms, and values computed from
                                them */
} kiln_program_memory;

/** Makes an empty ::kiln_program_memory of a variable, with its struct_size set. */
#define KILN_PROGRAM_MEMORY_INIT \
  { sizeof(kiln_program_memory), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Reports the memory of the executable.
 *  @return INVALID_ARGUMENT if `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_memory(const kiln_executable* executable,
                                            kiln_program_memory* memory);

/** The work of a run, by the definitions of XLA's cost analysis. \since 0.1 */
typedef struct kiln_program_cost {
  size_t struct_size;      /**< set by the caller: sizeof(kiln_program_cost) */
  int64_t flops;           /**< operations of the graph as given: one per element of an elementwise
                                op, two per product of a dot, the applications of computations in
                                reductions, maps and scatters, n log2 n for a sort; loops count
                                once, of branches the largest counts */
  int64_t transcendentals; /**< elements of transcendental ops, not included in `flops` */
  int64_t bytes_accessed;  /**< bytes read and written by the compiled kernels; a copy counts twice
                                its size. 0 on REFERENCE, which has no kernels */
  int64_t partial; /**< 1 if a run may do more work than counted: the graph has loops, which count
                        once, or custom calls, whose work is unknown; otherwise 0 */
} kiln_program_cost;

/** Makes an empty ::kiln_program_cost of a variable, with its struct_size set. */
#define KILN_PROGRAM_COST_INIT \
  { sizeof(kiln_program_cost), 0, 0, 0, 0 }

/** Reports the work of a run.
 *  @return INVALID_ARGUMENT if `struct_size` is not set
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_cost(const kiln_executable* executable,
                                          kiln_program_cost* cost);

/** The executable as bytes: its code, its constants, and all that a device needs to run it, for
 *  kiln_executable_load() in this or another process, on a machine of the same kind, with a library
 *  of the same version of the format and of the interface to its code. Functions that it calls
 *  (kiln_context_register_call()) are in it by name. Equal executables have equal bytes. The format
 *  is in docs/saved-programs.md.
 *  @param bytes receives one reference, to be released with kiln_text_release(); the bytes are as
 *         many as code and constants (kiln_executable_memory()) and a little more; frozen arguments
 *         are not in it, and are bound after loading
 *  @return UNIMPLEMENTED, with the part that cannot be saved; RESOURCE_EXHAUSTED
 *
 *  Waits for earlier work of a GPU. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_serialize(const kiln_executable* executable,
                                               kiln_text** bytes);

/** Writes the bytes of kiln_executable_serialize() into a file, for kiln_executable_load_file().
 *  The file takes the path's place once it is complete and on the disk; after a failure the old one
 *  is there as it was.
 *  @param path        where to write; a symbolic link is followed
 *  @param path_length characters of `path`
 *  @return the errors of kiln_executable_serialize(); INVALID_ARGUMENT for a path to something else
 *         than a file; errors of the system, as RESOURCE_EXHAUSTED for a full disk or a file
 *         beyond the process's limit (RLIMIT_FSIZE)
 *
 *  Waits for earlier work of a GPU. Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_save(const kiln_executable* executable, const char* path,
                                          size_t path_length);

/** Makes an executable of the bytes of kiln_executable_serialize(), without a compilation. They are
 *  checked, and bytes that were damaged by chance are refused; bytes from an untrusted source are
 *  code of that source.
 *  @param device  the device that will run it, of the kind for which it was compiled
 *  @param bytes   copied: they may go afterwards
 *  @param size    their number
 *  @param executable receives one reference, to be released with kiln_executable_release()
 *  @return INVALID_ARGUMENT for bytes that are no saved executable or are damaged;
 *         FAILED_PRECONDITION, with both values, for another version of the format or of the
 *         interface to the code, or a device that lacks a feature of the machine of the
 *         compilation; NOT_FOUND if the context lacks a function that it calls; RESOURCE_EXHAUSTED
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_load(kiln_device* device, const void* bytes, size_t size,
                                          kiln_executable** executable);

/** Makes an executable of a file of kiln_executable_save(), as kiln_executable_load(). The file is
 *  mapped. A CPU and the evaluator read the constants there, so processes share their memory, and
 *  the constants count as the program's in kiln_executable_memory() but are not allocated. The file
 *  may be replaced or removed while the executable is in use, but must not be changed or cut off in
 *  its place.
 *  @param device      the device that will run it, of the kind for which it was compiled
 *  @param path        a regular file
 *  @param path_length characters of `path`
 *  @param executable  receives one reference, to be released with kiln_executable_release()
 *  @return the errors of kiln_executable_load(), and of the system, as NOT_FOUND
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_load_file(kiln_device* device, const char* path,
                                               size_t path_length, kiln_executable** executable);

/** A name of the executable: 64 hexadecimal digits. Equal executables of one build of the library
 *  have equal names, in every process, whether they were compiled or loaded.
 *  @param text receives one reference, to be released with kiln_text_release()
 *  @return RESOURCE_EXHAUSTED; UNIMPLEMENTED for a signature with a symbolic size
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_fingerprint(const kiln_executable* executable,
                                                 kiln_text** text);

/** Binds frozen arguments, some or all of them: packs and converts them, and computes what depends
 * on them and on constants alone. Executions begun afterwards find them; executions in flight go on
 *  with the former ones. On an error nothing has changed.
 *
 *  A buffer that kernels read as it is stays in use, borrowed: it can be neither donated nor
 * written by executions and copies until it is bound anew or the executable has gone, and its
 * memory must not be changed otherwise. A buffer in the file of kiln_safetensors_buffer() is read
 * from there. Of the others nothing is kept once the call returns, and when they are released only
 * the packed or computed form is left (kiln_program_memory::frozen_bytes).
 *
 *  Arguments that are computed with each other (the statistics and the scale of a normalisation,
 * for example) are first bound in any order, and kept until the last of them is there. Later they
 * are bound anew together, except those that are still there because kernels read them.
 *  @param arguments their numbers, different ones: frozen arguments
 *  @param buffers for each a buffer on the executable's device, of its shape
 *  @param count the number of both
 *  @return INVALID_ARGUMENT naming the argument and its shape; FAILED_PRECONDITION for a donated
 *         buffer, and, naming it, for an argument that must be bound anew, too; the error of the
 *         execution that defines a buffer, if it failed; RESOURCE_EXHAUSTED
 *
 *  Waits for the buffers' values, and returns when all is done. Any thread, beside executions and
 *  other calls: of two calls for one argument the later one counts. \since 0.1 */
KILN_API kiln_error* kiln_executable_bind(kiln_executable* executable, const size_t* arguments,
                                          kiln_buffer* const* buffers, size_t count);

/** The options of an execution. Members that are 0 have their defaults. \since 0.1 */
typedef struct kiln_execute_options {
  size_t struct_size; /**< set by kiln_execute_options_init() */
  int32_t threads;    /**< threads to use, at most the device's (kiln_device_threads()); 0: all of
                           these. The results have the same bits for any number */
  int32_t donate_aliased; /**< 1: donates all arguments with an aliased result, except those in
                               `kept` */
  const int32_t* cancel;  /**< unless NULL, polled before the program starts, in its loops, between
                               kernels, and in long kernels: a value other than 0 ends the execution
                               with CANCELLED, mostly within 50 ms. Work already submitted to a GPU
                               and the current op of the evaluator are awaited. It must stay, and
                               not become 0 again, until the execution has ended; any thread may set
                               it */
  const size_t* donated;  /**< numbers of donated arguments: once the execution has been accepted
                               they are unusable and have no contents. Results aliased with them are
                               made in their memory; memory without such a result is freed with the
                               buffer. What other threads have asked to read them gets their values
                               or FAILED_PRECONDITION, and the call waits for synchronous work among
                               it, unless that calls functions of the user */
  size_t donated_count;   /**< number of `donated` */
  const size_t* kept;     /**< numbers of arguments that must not be donated */
  size_t kept_count;      /**< number of `kept` */
  void* stream;           /**< unless NULL, a CUstream of the device's primary context, on a GPU of
                               the CUDA driver: the execution takes its place in the order of that
                               stream before the call returns (CU_STREAM_LEGACY is (void*)1), after
                               all earlier work of the device and before all later work of it. The
                               stream must stay until the execution has ended. INVALID_ARGUMENT on
                               other devices and for sessions */
  int64_t timeout_ns;     /**< time limit of the execution in nanoseconds, from the call on; an
                               execution beyond it ends with DEADLINE_EXCEEDED, as soon as with
                               `cancel`; 0: none; not negative */
  kiln_trace* trace; /**< unless NULL, records the work of this execution, in place of a trace of
                          the whole context; of kiln_trace_create(), borrowed */
} kiln_execute_options;

/** Makes default ::kiln_execute_options of a variable. */
#define KILN_EXECUTE_OPTIONS_INIT \
  { sizeof(kiln_execute_options), 0, 0, NULL, NULL, 0, NULL, 0, NULL, 0, NULL }

/** Sets `size` bytes at `options` to the defaults; pass sizeof(kiln_execute_options). NULL, or a
 *  size below that of `struct_size` itself, does nothing. Any thread. \since 0.1 */
KILN_API void kiln_execute_options_init(kiln_execute_options* options, size_t size);

/** Executes on one device, and returns when the results are ready.
 *  @param options may be NULL: the defaults; numbers of arguments count frozen ones, too
 *  @param arguments `argument_count` buffers on the executable's device, of the shapes of its
 *         arguments, in their order, without the frozen ones
 *  @param results `result_count` places. A place with NULL receives one reference to a new buffer.
 *         A place with a buffer has the result written into that buffer, which must be of the right
 *         shape and share no memory with an argument or another result. A result in the memory of a
 *         donated argument must be NULL
 *  @return INVALID_ARGUMENT naming the argument and its shape; FAILED_PRECONDITION for a donated
 *         buffer, for an argument that must be donated and is not, and, naming it, for a frozen one
 *         that is not bound; the error of the execution
 *         that defines an argument, if it failed; RESOURCE_EXHAUSTED; CANCELLED. If the execution
 *         had begun, the contents of given results are undefined
 *
 *  Any thread. \since 0.1 */
KILN_API kiln_error* kiln_executable_run(kiln_executable* executable,
                                         const kiln_execute_options* options,
                                         kiln_buffer* const* arguments, size_t argument_count,
                                         kiln_buffer** results, size_t result_count);

/** Executes on a list of devices, asynchronously.
 *  @param options may be NULL: the defaults
 *  @param arguments per device, its list of arguments as in kiln_executable_run()
 *  @param argument_count the length of each of these lists
 *  @param results per device, its list of results as in kiln_executable_run()
 *  @param result_count the length of each of these lists
 *  @param device_count the number of lists: replicas times partitions, which is 1
 *  @param events unless NULL, `device_count` places that receive one reference each to an event
 *         that is ready when the execution on that device has ended. The buffers of the results can
 *         be used at once, as arguments too: users of their values wait for them, and fail if the
 *         execution fails. NULL: the call returns when all executions have ended
 *  @return errors found before the execution, as in kiln_executable_run(); later ones go to the
 *         events, such as RESOURCE_EXHAUSTED for a result of 1 MiB and more in the host's memory,
 *         which is allocated when the execution begins
 *
 *  A thread's executions on one device run one after the other, in order; executions on different
 *  devices run concurrently, except that each waits for the values it needs. While an execution is
 *  inside a function of the user (kiln_context_register_call()), later ones run that need not wait
 *  for its results, except those that call such functions: these keep their order. The function may
 *  request executions and copies of its own, and wait for them. On a CPU, executions
 *  of a few microseconds run during the call if none is queued; with a context of one thread all
 *  do. The buffers may be released at any time. Any thread. \since 0.1 */
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
