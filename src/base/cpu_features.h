// The features of CPUs that code may need, by LLVM's names.
#pragma once

namespace kiln {

// The order is that of targets' texts, and of the bits in objects of programs compiled ahead of
// time: new ones go to the end.
inline constexpr const char* kCpuFeatures[] = {
    "sse4.1",   "sse4.2",     "popcnt",     "avx",      "avx2",        "fma",
    "bmi",      "bmi2",       "avx512f",    "avx512cd", "avx512bw",    "avx512dq",
    "avx512vl", "avx512vnni", "avx512bf16", "lzcnt",    "f16c",        "neon",
    "amx-tile", "amx-bf16",   "amx-int8",   "avxvnni",  "avxvnniint8", "amx-fp16",
};

}  // namespace kiln
