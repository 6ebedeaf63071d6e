// For processors with AVX2 and FMA; see kernels.cc.
#if defined(__x86_64__)
#define KILN_FFT_NAMESPACE avx2
#define KILN_FFT_NAME "AVX2"
#define KILN_FFT_BYTES 32
#include "runtime/lib/fft/kernels_impl.h"
#endif
