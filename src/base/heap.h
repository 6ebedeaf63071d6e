// What the C library keeps of memory that it was given back.
#pragma once

#include <cstdint>

namespace kiln {

// Call where large arrays, of so many bytes together, have been freed: gives the C library's free
// memory back to the system, where that is worth its time. Arrays of a model's size come from
// between others in its heap, whose free pieces it would keep.
void TrimHeap(int64_t freed_bytes);

}  // namespace kiln
