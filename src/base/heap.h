// The free memory kept by the C library.
#pragma once

#include <cstdint>

namespace kiln {

// To be called after freeing large arrays of this total size: returns the C library's free memory
// to the system, if that is worth its time. Otherwise the heap keeps free pieces between other
// arrays.
void TrimHeap(int64_t freed_bytes);

}  // namespace kiln
