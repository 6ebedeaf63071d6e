// Discrete Fourier transforms of arrays.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "runtime/lib/function.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// The op fft, as its row in ops.def says: FFT, IFFT, RFFT or IRFFT along the last one to three
// dimensions.
Result<std::shared_ptr<const Function>> MakeFft(const CallSignature& signature);
// Of memory that a call has to itself.
Result<int64_t> FftScratchBytes(const CallSignature& signature);

}  // namespace kiln::runtime::lib
