/* The door between generated code and the library, in plain C.
 *
 * Generated code gets one kiln_frame and may call what its table holds, and nothing else: it never
 * resolves a symbol from the host process. The same object therefore runs under ORC, from a cache,
 * or linked into a program that has no libkiln. Generated code knows the layout below by the
 * KILN_FRAME_* indices; a change of layout changes KILN_FRAME_VERSION, which artefacts carry. */
#ifndef KILN_FRAME_FRAME_H_
#define KILN_FRAME_FRAME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_FRAME_VERSION 3

typedef struct kiln_frame kiln_frame;

/* One kernel: does the work items [begin, end) of its `items` (see kernel::Kernel). `args` are the
 * addresses of its parameters' first bytes, in the order of the kernel's parameters. */
typedef void (*kiln_kernel_fn)(const kiln_frame* frame, void* const* args, int64_t begin,
                               int64_t end);

/* The data of one launch, in words of 64 bits: these, then an allocation and an offset in bytes for
 * each operand. */
enum {
  KILN_LAUNCH_STEP = 0,     /* in the program's launch table; -1: not in timelines */
  KILN_LAUNCH_ITEMS = 1,    /* work items */
  KILN_LAUNCH_TASKS = 2,    /* how many pieces parallel_for may make of them */
  KILN_LAUNCH_SLICE = 3,    /* and its slice */
  KILN_LAUNCH_FINISH = 4,   /* 1: one more item, behind all others */
  KILN_LAUNCH_OPERANDS = 5, /* how many follow */
  KILN_LAUNCH_FIELDS = 6
};

/* A whole executable. 0, or the code of an error that has been put into the frame's slot. */
typedef int32_t (*kiln_entry_fn)(const kiln_frame* frame);

/* A call step of the program (FFT, a decomposition, a registered custom call): `step` indexes the
 * program's launch table, `args` are the addresses of operands, results and scratch, `config` is
 * the step's constant. 0, or the code of an error that has been put into the frame's slot. */
typedef int32_t (*kiln_call_fn)(const kiln_frame* frame, int32_t step, void* const* args,
                                const void* config, int64_t config_size);

typedef struct kiln_frame_table {
  /* Runs `kernel` over [0, items) in at most `tasks` contiguous pieces, on the pool's threads and
   * the caller's; returns when all is done. The split depends on items and tasks alone and tasks
   * are cut by items, never by who is free, but results must not depend on it. Where the frame can
   * be cancelled, a piece is done in slices: the first one has `slice` items, some milliseconds of
   * work at most, and its time decides on the next ones. 0: the kernel polls, and gets each piece
   * at once. */
  void (*parallel_for)(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args,
                       int64_t items, int64_t tasks, int64_t slice);
  kiln_call_fn call;
  /* Bracket one step when frame->trace is set. `step` indexes the program's launch table. */
  void (*trace_begin)(const kiln_frame* frame, int32_t step);
  void (*trace_end)(const kiln_frame* frame, int32_t step);
  /* Puts an error into the frame, unless there is one: a canonical code and a constant message.
   * Returns the code. Kernels call it, too, on any of the threads. */
  int32_t (*fail)(const kiln_frame* frame, int32_t code, const char* message, int64_t size);
  /* Runs `count` kernels, one after the other, as `data` says. `args` has room for the operands of
   * each. 0, or the code of an error that has been put into the frame's slot. */
  int32_t (*launch)(const kiln_frame* frame, void** args, const kiln_kernel_fn* kernels,
                    const int64_t* data, int64_t count);
} kiln_frame_table;

struct kiln_frame {
  /* Addresses of the program's allocations, by index: parameters, results, constants, one arena. */
  void* const* buffers;
  const kiln_frame_table* table;
  /* NULL, or set: generated code then brackets its steps with trace_begin and trace_end. */
  void* trace;
  /* NULL, or polled by loops of the program, between kernels, and by kernels that take long:
   * non-zero asks them to stop with CANCELLED. */
  const int32_t* cancel;
  /* The library's own state for the table's functions; generated code passes it by. */
  void* host;
  /* How many threads parallel_for may use, 1 meaning the caller's alone. */
  int32_t threads;
  int32_t reserved;
};

enum {
  KILN_FRAME_BUFFERS = 0,
  KILN_FRAME_TABLE = 1,
  KILN_FRAME_TRACE = 2,
  KILN_FRAME_CANCEL = 3,
  KILN_FRAME_HOST = 4,
  KILN_FRAME_THREADS = 5
};

enum {
  KILN_TABLE_PARALLEL_FOR = 0,
  KILN_TABLE_CALL = 1,
  KILN_TABLE_TRACE_BEGIN = 2,
  KILN_TABLE_TRACE_END = 3,
  KILN_TABLE_FAIL = 4,
  KILN_TABLE_LAUNCH = 5
};

#ifdef __cplusplus
}
#endif

#endif /* KILN_FRAME_FRAME_H_ */
