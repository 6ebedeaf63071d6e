// How kernels of a CPU find their arrays aligned.
#pragma once

#include <cstdint>

#include "target/target.h"
#include "tensor/element_type.h"

namespace kiln::kernel {

// Where arrays that kernels write, and all that the library allocates, begin: program::kAlignment,
// which this room does not know.
inline constexpr int64_t kArrayAlignment = 64;

// What the kernels may rely on of arrays that they only read: a multiple of the elements' size, as
// far as vectors may lie anywhere. Without AVX an operand of an instruction that lies anywhere
// takes an instruction of its own.
inline int64_t InputAlignment(ElementType type, const target::Cpu& cpu) {
  return cpu.Has("avx") ? ByteWidth(type) : kArrayAlignment;
}

}  // namespace kiln::kernel
