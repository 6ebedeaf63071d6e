// Discrete Fourier transforms of arrays.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "runtime/lib/function.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// The op fft of ops.def: FFT, IFFT, RFFT or IRFFT along the last one to three dimensions.
Result<std::shared_ptr<const Function>> MakeFft(const CallSignature& signature);
// The scratch bytes of a call.
Result<int64_t> FftScratchBytes(const CallSignature& signature);

}  // namespace kiln::runtime::lib
