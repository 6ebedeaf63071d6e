#include "kernel/schedule/cpu/gemm_unit.h"

namespace kiln::kernel {
namespace {

bool IsByte(ElementType type) { return type == ElementType::kS8 || type == ElementType::kU8; }

// Whether s16 has all values.
bool IsOfS16(ElementType type) { return IsByte(type) || type == ElementType::kS16; }

bool IsBf16(const target::Cpu& cpu, ElementType type) {
  return type == ElementType::kBF16 || (cpu.allow_bf16 && type == ElementType::kF32);
}

// Sums and products of subnormal f16 are no subnormals of f32, which the instruction takes as 0:
// all are multiples of 2^-48.
bool HasF16Tiles(const target::Cpu& cpu) {
  return cpu.vector_bytes == 64 && cpu.Has("amx-tile") && cpu.Has("amx-fp16");
}

bool MultipliesAnyBytes(const target::Cpu& cpu) {
  return cpu.vector_bytes == 32 && cpu.Has("avxvnniint8");
}

bool MultipliesS16(const target::Cpu& cpu) { return cpu.triple.starts_with("x86_64"); }

}  // namespace

std::string_view NameOf(GemmUnit unit) {
  switch (unit) {
    case GemmUnit::kElement:
      return "";
    case GemmUnit::kBf16Pair:
      return "bf16-pairs";
    case GemmUnit::kS16Pair:
      return "s16-pairs";
    case GemmUnit::kByteQuad:
      return "byte-quads";
    case GemmUnit::kAnyByteQuad:
      return "any-byte-quads";
    case GemmUnit::kBf16Tile:
      return "bf16-tiles";
    case GemmUnit::kF16Tile:
      return "f16-tiles";
    case GemmUnit::kByteTile:
      return "byte-tiles";
  }
  return "";
}

GemmUnit VectorUnitFor(const target::Cpu& cpu, ElementType sum, ElementType a, ElementType b) {
  if (sum == ElementType::kF32 && IsBf16(cpu, a) && IsBf16(cpu, b) && cpu.MultipliesBf16()) {
    return GemmUnit::kBf16Pair;
  }
  if (!IsInteger(sum) || ByteWidth(sum) != 4) return GemmUnit::kElement;
  if (IsByte(a) && IsByte(b)) {
    if (MultipliesAnyBytes(cpu)) return GemmUnit::kAnyByteQuad;
    if (cpu.MultipliesBytes()) return GemmUnit::kByteQuad;
  }
  // Products fit into 32 bits, and so do sums of two of them but for those of -32768 alone, which
  // wrap.
  return MultipliesS16(cpu) && IsOfS16(a) && IsOfS16(b) ? GemmUnit::kS16Pair : GemmUnit::kElement;
}

GemmUnit UnitFor(const target::Cpu& cpu, ElementType sum, ElementType a, ElementType b) {
  if (sum == ElementType::kF32) {
    if (IsBf16(cpu, a) && IsBf16(cpu, b) && cpu.HasBf16Tiles()) return GemmUnit::kBf16Tile;
    const bool halves = a == ElementType::kF16 && b == ElementType::kF16;
    if (halves && HasF16Tiles(cpu)) return GemmUnit::kF16Tile;
  }
  const bool integers = IsInteger(sum) && ByteWidth(sum) == 4;
  if (integers && IsByte(a) && IsByte(b) && cpu.HasByteTiles()) return GemmUnit::kByteTile;
  return VectorUnitFor(cpu, sum, a, b);
}

}  // namespace kiln::kernel
