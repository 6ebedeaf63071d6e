/** @file
 *  Programs compiled ahead of time by kiln-aot, and their run time, libkiln_rt.a.
 *
 *  The header made with a program includes this one. Nothing here needs libkiln. Codes of failures
 *  are those of ::kiln_code. \since 0.1 */
#ifndef KILN_AOT_H_
#define KILN_AOT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Of the description of programs and of their code: both must be of one version, which
 *  kiln_aot_place() and kiln_aot_create() check. */
#define KILN_AOT_VERSION 2

/** The alignment of memory and results, in bytes. */
#define KILN_AOT_ALIGNMENT 64

/** The bytes of a failure's text, with the 0 at its end. */
#define KILN_AOT_TEXT_BYTES 252

/** Does not compile unless the array has that many bytes. For the shapes in programs' headers. */
#define KILN_AOT_ASSERT_BYTES(array, bytes) \
  ((void)sizeof(char[sizeof(array) == (size_t)(bytes) ? 1 : -1]))

/** A complex number of two floats. */
typedef struct kiln_aot_c64 {
  float real; /**< its real part */
  float imag; /**< its imaginary part */
} kiln_aot_c64;

/** A complex number of two doubles. */
typedef struct kiln_aot_c128 {
  double real; /**< its real part */
  double imag; /**< its imaginary part */
} kiln_aot_c128;

/** A failure. Functions write one only when they fail; a NULL in its place is allowed. */
typedef struct kiln_aot_error {
  int32_t code;                   /**< a ::kiln_code; never 0 */
  char text[KILN_AOT_TEXT_BYTES]; /**< cut off where it is too long */
} kiln_aot_error;

/** An argument or result of a program, or an array of a custom call. */
typedef struct kiln_aot_array {
  const char* name;              /**< a parameter's name; "" for results and arrays of calls */
  int32_t dtype;                 /**< the type of its elements, a ::kiln_dtype */
  int32_t rank;                  /**< number of dimensions */
  const int64_t* dims;           /**< `rank` sizes */
  const int64_t* minor_to_major; /**< the `rank` dimensions in the order of memory, the one with
                                      contiguous elements first: `rank` - 1, ..., 0 is row-major */
  int64_t byte_size;             /**< of the elements */
  int64_t alignment;             /**< that its address must have, in bytes */
  int64_t alias;                 /**< of a result the number of the argument whose memory it may be
                                      in (the same address is given for both), or -1 */
} kiln_aot_array;

/** The parts of a program that are only the run time's. */
struct kiln_aot_code;

/** A program. Constant, and shared by all threads. */
typedef struct kiln_aot_program {
  int32_t version;                   /**< KILN_AOT_VERSION */
  int32_t threads;                   /**< --threads of kiln-aot, a recommendation; 0: all CPUs */
  const char* name;                  /**< the module's */
  const kiln_aot_array* arguments;   /**< `argument_count` arrays: tuples are flattened, in order */
  const kiln_aot_array* results;     /**< `result_count` arrays, likewise */
  int32_t argument_count;            /**< number of `arguments` */
  int32_t result_count;              /**< number of `results` */
  int64_t memory_bytes;              /**< what kiln_aot_place() needs */
  int64_t stack_bytes;               /**< a bound on what its code takes of the stack */
  const struct kiln_aot_code* codes; /**< one for each target, the best first */
  int32_t code_count;                /**< number of `codes` */
  int32_t reserved;                  /**< 0 */
} kiln_aot_program;

/** A program with its memory, ready to run. One run at a time; several instances of a program may
 *  run at once. */
typedef struct kiln_aot_instance kiln_aot_instance;

/** Threads for programs: those of kiln_aot_pool_create(), or the program's own. */
typedef struct kiln_aot_pool {
  int32_t threads;  /**< how many, the caller's among them */
  int32_t reserved; /**< 0 */
  /** Calls work(context, task) for each task in [0, tasks), on any of the threads, and returns when
   *  all is done. */
  void (*run)(struct kiln_aot_pool* pool, int64_t tasks, void (*work)(void* context, int64_t task),
              void* context);
} kiln_aot_pool;

/** Makes an instance in memory of the caller's: nothing is allocated, here or in its runs, and no
 *  thread is made.
 *  @param memory aligned to KILN_AOT_ALIGNMENT; must live as long as the instance, which ends with
 *         it
 *  @param bytes  its size: at least kiln_aot_program::memory_bytes
 *  @param pool   the threads that share the work of runs; NULL: the caller's thread alone
 *  @return the instance, at `memory`; NULL after an error: INVALID_ARGUMENT for the memory,
 *          FAILED_PRECONDITION where this processor lacks what the code needs, for a program of
 *          another version, and for one that calls the run time's FFT and decompositions, which
 *          allocate
 *
 *  Any thread. */
kiln_aot_instance* kiln_aot_place(const kiln_aot_program* program, void* memory, size_t bytes,
                                  kiln_aot_pool* pool, kiln_aot_error* error);

/** Makes an instance in memory that is allocated.
 *  @param pool as in kiln_aot_place()
 *  @return to be destroyed by kiln_aot_destroy(); NULL after an error: RESOURCE_EXHAUSTED,
 *          FAILED_PRECONDITION as in kiln_aot_place(), and what the functions that it calls say of
 *          their arrays
 *
 *  Any thread. */
kiln_aot_instance* kiln_aot_create(const kiln_aot_program* program, kiln_aot_pool* pool,
                                   kiln_aot_error* error);

/** Destroys an instance of kiln_aot_create() that is not running; NULL does nothing. Any thread. */
void kiln_aot_destroy(kiln_aot_instance* instance);

/** Runs the program.
 *  @param arguments an address for each argument, aligned as kiln_aot_array::alignment says; read
 *         only, except where a result has the same address
 *  @param results   an address for each result, aligned to KILN_AOT_ALIGNMENT. No two overlap, nor
 *         an argument except for kiln_aot_array::alias
 *  @return 0, or the code of `error`: INVALID_ARGUMENT for addresses, and what functions that the
 *          program calls return. The results are undefined then
 *
 *  One thread at a time per instance. The caller's stack must have kiln_aot_program::stack_bytes
 *  free. */
int32_t kiln_aot_run(kiln_aot_instance* instance, const void* const* arguments,
                     void* const* results, kiln_aot_error* error);

/** The target of the code that the instance runs, as text: which of kiln_aot_program::codes. Lives
 *  as long as the program. Any thread. */
const char* kiln_aot_target(const kiln_aot_instance* instance);

/** Makes a pool of threads for the calling process, but not for its forks. The threads wait for
 *  work without using the CPU, and receive no signals sent to the process.
 *  @param threads how many, the caller's among them; 0 or less: one for each CPU that the process
 *         may use. Fewer where the system refuses more
 *  @return to be destroyed by kiln_aot_pool_destroy(), after the instances that use it; NULL where
 *          there is no memory
 *
 *  Any thread. A pool may be shared by instances in several threads: while one of them has its
 *  threads, the others run on their callers'. */
kiln_aot_pool* kiln_aot_pool_create(int32_t threads);

/** Destroys a pool of kiln_aot_pool_create(); NULL does nothing. Any thread. */
void kiln_aot_pool_destroy(kiln_aot_pool* pool);

/** A custom call in a program. Tuples among its operands and results are flattened, in order, and
 *  tokens are omitted. */
typedef struct kiln_aot_call {
  const char* name;               /**< for messages: the op and what it calls */
  const char* target;             /**< the name of the called function in the program */
  const char* attributes;         /**< backend_config, the op's text for the function */
  size_t attributes_length;       /**< its number of bytes */
  const kiln_aot_array* operands; /**< the inputs */
  const kiln_aot_array* results;  /**< the outputs; `alias` numbers operands */
  int32_t operand_count;          /**< number of `operands` */
  int32_t result_count;           /**< number of `results` */
  int32_t api_version;     /**< XLA's calling convention, 1 to 4, which changes nothing here */
  int32_t has_side_effect; /**< 1 if the call is marked so */
} kiln_aot_call;

/** The type of the functions that a program's custom calls call: C functions of the program that
 *  links the object, which its header declares. Each has its call's target as its name, with `_`
 * for characters that cannot be in one; several targets may be one function so.
 *  @param arrays the addresses of operands, then results; only results may be written
 *  @return 0, or a ::kiln_code that ends the run; `error` may have a text then, and is never NULL.
 *          Must not throw */
typedef int32_t kiln_aot_function(const kiln_aot_call* call, void* const* arrays,
                                  kiln_aot_error* error);

#ifdef __cplusplus
} /* extern "C" */

namespace kiln {

/** The base of the classes that `kiln-aot --cxx` makes: a program with memory for its arguments and
 *  results, or the caller's in their place. An object that could not be made says so in
 * error_msg(), and its runs fail. One thread at a time. */
class AotProgram {
 public:
  AotProgram(const AotProgram&) = delete;
  AotProgram& operator=(const AotProgram&) = delete;
  /** The message of the last failure, "" before one. */
  const char* error_msg() const { return error_.text; }
  /** Its ::kiln_code, 0 before one. */
  int32_t error_code() const { return error_.code; }
  /** Runs the program; whether all went well. */
  bool Run() {
    return instance_ != nullptr && kiln_aot_run(instance_, arguments_, results_, &error_) == 0;
  }
  /** How many threads its runs use, the caller's among them. */
  int32_t threads() const;
  /** Has its runs use this pool, which must outlive it, in place of its own threads. NULL: the
   *  caller's thread alone. */
  void set_thread_pool(kiln_aot_pool* pool);

 protected:
  /** The number of the program's argument with a name, or -1. */
  static int LookupArgIndex(const kiln_aot_program& program, const char* name);
  AotProgram(const kiln_aot_program& program, int32_t threads, const void** arguments,
             void** results);
  ~AotProgram();

  const void** const arguments_; /**< addresses, by number */
  void** const results_;         /**< likewise */

 private:
  kiln_aot_error error_;
  void* memory_ = nullptr; /* of arguments and results */
  kiln_aot_pool* pool_ = nullptr;
  kiln_aot_instance* instance_ = nullptr;
};

} /* namespace kiln */
#endif

#endif /* KILN_AOT_H_ */
