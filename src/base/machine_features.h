// The features of the processor, asked for without a library: run times of programs compiled ahead
// of time have none.
#pragma once

#include <cstdint>

#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kiln {
namespace features {

// Not a constant: a feature without a number does not compile.
uint64_t HasNoNumber();

constexpr bool Same(const char* a, const char* b) {
  for (; *a && *a == *b; ++a, ++b) {
  }
  return *a == *b;
}

// The bit of a feature.
consteval uint64_t Bit(const char* name) {
  uint64_t bit = 1;
  for (const char* known : kCpuFeatures) {
    if (Same(known, name)) return bit;
    bit <<= 1;
  }
  return HasNoNumber();
}

#if defined(__x86_64__)

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;  // zeros where the processor has none such
};

inline Leaf LeafOf(unsigned number, unsigned part) {
  Leaf leaf;
  __get_cpuid_count(number, part, &leaf.a, &leaf.b, &leaf.c, &leaf.d);
  return leaf;
}

// What the system saves of the registers.
inline uint64_t SavedState() {
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Whether the system lets the process use the registers of AMX, which it has to be asked for.
inline bool MayUseTiles() {
#if defined(__linux__)
  constexpr long kArchPrctl = 158, kRequest = 0x1023, kTileData = 18;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(kArchPrctl), "D"(kRequest), "S"(kTileData)
               : "rcx", "r11", "memory");
  return result == 0;
#else
  return false;
#endif
}

#endif

}  // namespace features

// Those of kCpuFeatures that this processor and system have: bit n for number n.
inline uint64_t FeaturesOfMachine() {
  using namespace features;
#if defined(__x86_64__)
  const Leaf basic = LeafOf(1, 0), more = LeafOf(7, 0), most = LeafOf(7, 1),
             others = LeafOf(0x80000001u, 0);
  uint64_t found = 0;
  auto add = [&](unsigned word, int bit, uint64_t feature) {
    if (word >> bit & 1) found |= feature;
  };
  add(basic.c, 19, Bit("sse4.1"));
  add(basic.c, 20, Bit("sse4.2"));
  add(basic.c, 23, Bit("popcnt"));
  add(more.b, 3, Bit("bmi"));
  add(more.b, 8, Bit("bmi2"));
  add(others.c, 5, Bit("lzcnt"));
  constexpr uint64_t kAvxState = 6, kAvx512State = 0xe6;
  const bool has_xsave = basic.c >> 27 & 1;
  const uint64_t saved = has_xsave ? SavedState() : 0;
  if ((saved & kAvxState) != kAvxState) return found;
  add(basic.c, 28, Bit("avx"));
  add(basic.c, 12, Bit("fma"));
  add(basic.c, 29, Bit("f16c"));
  add(more.b, 5, Bit("avx2"));
  add(most.a, 4, Bit("avxvnni"));
  add(most.d, 4, Bit("avxvnniint8"));
  if ((saved & kAvx512State) != kAvx512State) return found;
  add(more.b, 16, Bit("avx512f"));
  add(more.b, 17, Bit("avx512dq"));
  add(more.b, 28, Bit("avx512cd"));
  add(more.b, 30, Bit("avx512bw"));
  add(more.b, 31, Bit("avx512vl"));
  add(more.c, 11, Bit("avx512vnni"));
  add(most.a, 5, Bit("avx512bf16"));
  constexpr uint64_t kTileState = 0x60000;
  if ((more.d >> 24 & 1) == 0 || (saved & kTileState) != kTileState || !MayUseTiles()) {
    return found;
  }
  add(more.d, 22, Bit("amx-bf16"));
  add(more.d, 24, Bit("amx-tile"));
  add(more.d, 25, Bit("amx-int8"));
  add(most.a, 21, Bit("amx-fp16"));
  return found;
#elif defined(__aarch64__)
  return Bit("neon");
#else
  return 0;
#endif
}

}  // namespace kiln
