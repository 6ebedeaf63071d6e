// SHA-256 (FIPS 180-4): names for contents, without collisions by chance or by intent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256() = default;
  // The same without instructions of the processor's own, for tests.
  static Sha256 Portable() {
    Sha256 hash;
    hash.is_portable_ = true;
    return hash;
  }
  void Update(std::string_view bytes);
  // A text preceded by its length, so that consecutive texts are unambiguous.
  void UpdateField(std::string_view bytes);
  // Once, at the end.
  Digest Finish();

 private:
  void Blocks(const uint8_t* blocks, size_t count);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> waiting_ = {};
  uint64_t bytes_ = 0;
  bool is_portable_ = false;
};

Digest HashOf(std::string_view bytes);
// Two lower-case digits for each byte.
std::string HexText(std::span<const uint8_t> bytes);
// The 16 digits of a number.
std::string HexText(uint64_t number);

}  // namespace kiln
