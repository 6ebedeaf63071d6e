// A hash of bytes, without accidental collisions.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::backend {

// By XXH3, at about the rate of memory. Not safe against deliberate collisions.
uint64_t FingerprintOf(std::string_view bytes);

}  // namespace kiln::backend
