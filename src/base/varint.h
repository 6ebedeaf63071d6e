// Numbers in as few bytes as they need: seven bits in each, the lowest first, with the eighth bit
// set in all bytes but the last (LEB128; the varints of protocol buffers).
#pragma once

#include <cstdint>
#include <string>

namespace kiln {

void AppendVarint(std::string& bytes, uint64_t number);

// Signed numbers with their sign in the lowest bit, so that small ones are short.
constexpr uint64_t ZigZag(int64_t number) {
  return static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
}
constexpr int64_t FromZigZag(uint64_t number) {
  return static_cast<int64_t>(number >> 1 ^ (~(number & 1) + 1));
}

}  // namespace kiln
