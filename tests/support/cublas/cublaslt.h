/* What tests tell the stand-in for cuBLASLt, and ask of it. Found by dlsym.
 *
 * It has the functions that Kiln uses, on the memory of the stand-in for the driver, and computes
 * gemms as work of that one's streams. Every handle, size and address is checked. */
#ifndef KILN_TEST_CUBLASLT_H
#define KILN_TEST_CUBLASLT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Settings as "name=value,name=value"; the environment's KILN_TEST_CUBLASLT is read first. Not 0
 * where there is no such name. Names and what they are without:
 *   version=130100
 *   time=1           milliseconds of the driver's clock that a gemm takes
 *   takes=1          0: no gemm is supported; -1: there is no way to make one
 *   workspace=4096   bytes that a gemm wants, where it may have them
 *   fail=0           of all calls from now on, the one with this number fails */
int kiln_test_cublaslt_configure(const char* settings);

/* Settings as at the start, counts to zero; forgets failures that are still to come, and objects.
 */
void kiln_test_cublaslt_reset(void);

/* From now on, of the calls of `symbol` (all: NULL) the first-th to the (first + times - 1)-th fail
 * with this status before they do anything. */
void kiln_test_cublaslt_fail(const char* symbol, long long first, long long times, int status);

/* Counts: "calls" since the last failure was ordered, or of one function by its name; "live"
 * objects; "gemms" that were computed, "rounded" those of factors rounded to tf32, "batches"
 * those of several matrices; "misuse", of objects and memory that are none, and of what would not
 * be exact. -1: there is no such count. */
long long kiln_test_cublaslt_count(const char* what);

#ifdef __cplusplus
}
#endif

#endif
