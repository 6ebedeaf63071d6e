// The instructions that gemms make their sums by.
#pragma once

#include <cstdint>
#include <string_view>

#include "target/target.h"
#include "tensor/element_type.h"

namespace kiln::kernel {

// What an instruction adds to each lane of the sums.
enum class GemmUnit : uint8_t {
  kElement,   // one product, in the type of the sum
  kBf16Pair,  // two products of bf16, in f32 (AVX512_BF16)
  kS16Pair,   // two products of s16, in 32 bits and modulo 2^32 (SSE2, AVX2, AVX512_BW)
  // Four products of bytes, in 32 bits and exact: of unsigned bytes and signed ones (AVX512_VNNI,
  // AVX_VNNI), or of any (AVX_VNNI_INT8).
  kByteQuad,
  kAnyByteQuad,
  // Those of a row and a column of tiles: kTileSteps pairs (AMX_BF16, AMX_FP16) or quads
  // (AMX_INT8).
  kBf16Tile,
  kF16Tile,
  kByteTile,
};

// Rows and columns of the largest tile of AMX, and the steps that one instruction adds.
inline constexpr int kTileRows = 16, kTileSteps = 16;

constexpr bool IsTile(GemmUnit unit) {
  return unit == GemmUnit::kBf16Tile || unit == GemmUnit::kF16Tile || unit == GemmUnit::kByteTile;
}

// Products of a lane: the elements along k of a packed operand that are one word.
constexpr int64_t GroupOf(GemmUnit unit) {
  switch (unit) {
    case GemmUnit::kElement:
      return 1;
    case GemmUnit::kBf16Pair:
    case GemmUnit::kS16Pair:
    case GemmUnit::kBf16Tile:
    case GemmUnit::kF16Tile:
      return 2;
    case GemmUnit::kByteQuad:
    case GemmUnit::kAnyByteQuad:
    case GemmUnit::kByteTile:
      return 4;
  }
  return 1;
}

// "", or for example "byte-quads".
std::string_view NameOf(GemmUnit unit);

// The machine's instruction for sums of a type over products of factors of two types.
GemmUnit UnitFor(const target::Cpu& cpu, ElementType sum, ElementType a, ElementType b);
// The same of those that are no tiles.
GemmUnit VectorUnitFor(const target::Cpu& cpu, ElementType sum, ElementType a, ElementType b);

}  // namespace kiln::kernel
