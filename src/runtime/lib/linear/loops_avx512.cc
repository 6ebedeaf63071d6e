// For processors with AVX-512; see loops.cc.
#if defined(__x86_64__)
#define KILN_LINEAR_NAMESPACE avx512
#define KILN_LINEAR_BYTES 64
#include "runtime/lib/linear/loops_impl.h"
#endif
