// A number for bytes, which chance gives to no others.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::backend {

// By XXH3, at about the rate of memory. Who wants to can find other bytes of the same number.
uint64_t FingerprintOf(std::string_view bytes);

}  // namespace kiln::backend
