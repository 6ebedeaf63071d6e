// For processors with AVX-512; see kernels.cc.
#if defined(__x86_64__)
#define KILN_FFT_NAMESPACE avx512
#define KILN_FFT_NAME "AVX-512"
#define KILN_FFT_BYTES 64
#include "runtime/lib/fft/kernels_impl.h"
#endif
