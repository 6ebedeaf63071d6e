// Sorting networks over vector registers of 64 bytes (AVX-512) of unsigned integers, which are of
// 32 or 64 bits.
#pragma once

#include <vector>

#include "codegen/elemental.h"

namespace kiln::codegen {

// Sorts the elements of all registers, of which there is a power of two. Element i of the order is
// in lane i / registers of register i % registers.
void EmitNetwork(Builder& b, std::vector<llvm::Value*>& registers);
// What EmitNetwork gives as registers one after the other, as they go to memory.
std::vector<llvm::Value*> EmitWeave(Builder& b, const std::vector<llvm::Value*>& registers);

}  // namespace kiln::codegen
