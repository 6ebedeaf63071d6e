// For processors with AVX2; see loops.cc.
#if defined(__x86_64__)
#define KILN_LINEAR_NAMESPACE avx2
#define KILN_LINEAR_BYTES 32
#include "runtime/lib/linear/loops_impl.h"
#endif
