// The features of the processor, by number.
#pragma once

#include <cstdint>

namespace kiln::rt {

// By LLVM's names, as in targets; a set of them has bit n for number n. The order is that of
// objects: new ones go to the end.
inline constexpr const char* kCpuFeatures[] = {
    "sse4.1",   "sse4.2",     "popcnt",     "avx",      "avx2",     "fma",
    "bmi",      "bmi2",       "avx512f",    "avx512cd", "avx512bw", "avx512dq",
    "avx512vl", "avx512vnni", "avx512bf16", "lzcnt",    "f16c",     "neon",
};

// Those that this processor and system have.
uint64_t FeaturesOfMachine();

}  // namespace kiln::rt
