/* What a kernel on the emulated GPU gets, in plain C: one thread of a grid.
 *
 * An object for the emulator defines, for each kernel NAME, a function of that name and beside it
 * a constant kiln_emulated_kernel, NAME.kernel, which says what the emulator must know of it.
 * Generated code knows the layouts below by the KILN_EMULATED_* indices. */
#ifndef KILN_FRAME_EMULATED_H_
#define KILN_FRAME_EMULATED_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One parameter of the kernel: where it is, and how large. A size of 0 makes generated code report
 * each access before it is done. */
typedef struct kiln_emulated_parameter {
  void* address;
  int64_t bytes;
} kiln_emulated_parameter;

enum { KILN_EMULATED_WORDS = 12 };

typedef struct kiln_emulated_thread {
  /* Indices in the block and of the block. */
  uint32_t thread;
  uint32_t block;
  const kiln_emulated_parameter* parameters;
  /* The block's shared memory, 128-byte aligned, and its size. */
  void* shared;
  int64_t shared_bytes;
  /* A tag for each granule of shared memory: of who wrote it last, and of who read it last. What
   * was written at tags from epoch[FIRST] to below epoch[NOW] may be read by everyone, and a read
   * of what has the tag epoch[MANY] as its reader needs no note. */
  const uint32_t* writers;
  const uint32_t* readers;
  const uint32_t* epoch;
  /* How many times a loop may go back. */
  int64_t budget;
  /* Operands and results of warp operations, as registers of 32 bits. */
  uint32_t words[KILN_EMULATED_WORDS];
  /* The emulator's own. */
  void* host;
} kiln_emulated_thread;

enum {
  KILN_EMULATED_THREAD = 0,
  KILN_EMULATED_BLOCK = 1,
  KILN_EMULATED_PARAMETERS = 2,
  KILN_EMULATED_SHARED = 3,
  KILN_EMULATED_SHARED_BYTES = 4,
  KILN_EMULATED_WRITERS = 5,
  KILN_EMULATED_READERS = 6,
  KILN_EMULATED_EPOCH = 7,
  KILN_EMULATED_BUDGET = 8,
  KILN_EMULATED_WORD = 9,
  KILN_EMULATED_HOST = 10
};

/* The tags that `epoch` points at: three numbers. */
enum {
  KILN_EMULATED_EPOCH_FIRST = 0, /* of the block */
  KILN_EMULATED_EPOCH_NOW = 1,   /* since the last barrier */
  KILN_EMULATED_EPOCH_MANY = 2   /* read by many since the last barrier */
};

typedef void (*kiln_emulated_kernel_fn)(kiln_emulated_thread* thread);

typedef struct kiln_emulated_kernel {
  kiln_emulated_kernel_fn function;
  int32_t parameters;
  /* Whether threads wait for each other, and so need a stack each. */
  int32_t waits;
  /* All accesses are of multiples of so many bytes, at such multiples: of shared memory, and of
   * global memory. */
  int32_t shared_granule;
  int32_t global_granule;
  /* Bit i: the kernel may write parameter i, or parameter 63 + n for bit 63. */
  uint64_t written;
} kiln_emulated_kernel;

/* Objects for the emulator call these functions and no others, beside what LLVM's back end calls by
 * itself. Where something is wrong they do not return.
 *
 *   void kiln.gpu.emulated.access(thread, ptr, i64 access)   before the access is done
 *   void kiln.gpu.emulated.barrier(thread, i32 site)         `site` tells places in a kernel apart
 *   void kiln.gpu.emulated.warp(thread, i32 operation, i32 site)
 *   void kiln.gpu.emulated.fence(thread)
 *   void kiln.gpu.emulated.copy(thread, ptr to, ptr from, i32 bytes, i64 access)
 *   void kiln.gpu.emulated.commit(thread)
 *   void kiln.gpu.emulated.wait(thread, i32 pending)
 *   void kiln.gpu.emulated.endless(thread)                   the budget is used up
 *
 * What a thread does to memory, for the functions that check it: size, alignment, kind and the
 * parameter that the address was made of. */
enum {
  KILN_ACCESS_LOAD = 0,
  KILN_ACCESS_STORE = 1,
  KILN_ACCESS_ATOMIC = 2,
  KILN_ACCESS_COPY = 3 /* an asynchronous one */
};
enum {
  KILN_ACCESS_SIZE_SHIFT = 0,      /* 24 bits: bytes */
  KILN_ACCESS_ALIGN_SHIFT = 24,    /* 6 bits: a power of two */
  KILN_ACCESS_KIND_SHIFT = 30,     /* 2 bits */
  KILN_ACCESS_PARAMETER_SHIFT = 32 /* 24 bits: 1 more than the parameter, or as below */
};
enum {
  KILN_ACCESS_UNKNOWN = 0,       /* the address was not made of one parameter */
  KILN_ACCESS_SHARED = 0xffffff, /* shared memory */
  KILN_ACCESS_LOCAL = 0xfffffe,  /* an array of the thread's own */
  KILN_ACCESS_CONSTANT = 0xfffffd
};

/* What the lanes of a warp do together. The operands are words 0, 1, ... of each lane, the results
 * are put there. */
enum {
  KILN_WARP_BARRIER = 0,
  KILN_WARP_SHUFFLE_DOWN = 1,
  KILN_WARP_SHUFFLE_UP = 2,
  KILN_WARP_SHUFFLE_XOR = 3,
  KILN_WARP_SHUFFLE_INDEX = 4,
  KILN_WARP_BALLOT = 5,
  KILN_WARP_MMA_M16N8K8_F16 = 6,
  KILN_WARP_MMA_M16N8K16_F16 = 7,
  KILN_WARP_MMA_M16N8K16_BF16 = 8,
  KILN_WARP_MMA_M16N8K8_TF32 = 9,
  KILN_WARP_MMA_M16N8K32_S8 = 10,
  KILN_WARP_MMA_M8N8K4_F64 = 11,
  KILN_WARP_LOAD_MATRIX_X4 = 12,
  KILN_WARP_LOAD_MATRIX_X4_TRANS = 13
};

#ifdef __cplusplus
}
#endif

#endif /* KILN_FRAME_EMULATED_H_ */
