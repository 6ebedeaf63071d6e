// Residues of a prime. Powers of a primitive root order the elements of a transform such that it
// becomes a convolution.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::runtime::lib::fft {

bool IsPrime(int64_t n);
// The powers g^0 ... g^(p-2) mod p of the least primitive root g of an odd prime below 2^32: 1 to
// p - 1, each once.
std::vector<uint32_t> PowersOfPrimitiveRoot(int64_t p);

}  // namespace kiln::runtime::lib::fft
