/* What tests tell the stand-in for the CUDA driver's library, and ask of it. Found by dlsym.
 *
 * The stand-in has the driver's functions that Kiln uses, and CUPTI's, on the host's memory.
 * Kernels check their launch and compute nothing, but for those that set conditions of graphs.
 * Every handle, address and current context is checked. */
#ifndef KILN_TEST_CUDA_CONTROL_H
#define KILN_TEST_CUDA_CONTROL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Settings as "name=value,name=value"; the environment's KILN_TEST_CUDA is read first. Not 0 where
 * there is no such name. Names and what they are without:
 *   driver_version=12040  devices=1  sm=86  memory_bytes=1073741824  pools=1  multiprocessors=16
 *   init_error=0       what cuInit returns
 *   deferred=0         1: a stream's work is done when someone waits for it
 *   real_time=0        1: events tell real times; else each piece of work takes a millisecond
 *   drop_records=0     1: CUPTI has no room for any record
 *   launch_time=1      milliseconds that a kernel takes by the clock, as all other work takes one
 *   body_updates=1     0: nodes in bodies of conditional nodes get no other parameters
 *   fail=0             of all calls from now on, the one with this number fails, ...
 *   fail_with=1        ... with this error */
int kiln_test_cuda_configure(const char* settings);

/* Settings as at the start, counts to zero; forgets failures that are still to come. */
void kiln_test_cuda_reset(void);

/* From now on, of the calls of `symbol` (all: NULL) the first-th to the (first + times - 1)-th fail
 * with this error before they do anything. */
void kiln_test_cuda_fail(const char* symbol, long long first, long long times, int error);

/* The next kernel that runs fails with this error, and the context is lost. */
void kiln_test_cuda_fail_work(int error);

/* The end of the process, for the driver: all objects go. Nobody may use any of them any more. */
void kiln_test_cuda_forget(void);

/* Counts: "calls" since the last failure was ordered, or of one function by its name; "launches" of
 * kernels, and "copies" that were done; "live" objects of all kinds, or of one: "contexts",
 * "streams", "events", "modules", "links", "pools", "memory", "pinned", "graphs", "execs"; "depth"
 * of all threads' stacks of contexts; "leaked" objects that their context's end found; "misuse", of
 * handles and addresses that are none; "records" that CUPTI told of work, and "buffers" of its
 * listener's that it still has. -1: there is no such count. */
long long kiln_test_cuda_count(const char* what);

/* A context beside the primary one of a device, and a stream of it or (context NULL) of the
 * device's primary one, which is retained for it. */
void* kiln_test_cuda_make_context(int device);
void kiln_test_cuda_destroy_context(void* context);
void* kiln_test_cuda_make_stream(void* context, int device);
void kiln_test_cuda_destroy_stream(void* stream);
/* How many pieces of work a stream has been asked for, or how many times to wait for an event. */
long long kiln_test_cuda_stream_work(void* stream, int waits);

#ifdef __cplusplus
}
#endif

#endif
