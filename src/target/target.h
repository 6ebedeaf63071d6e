// A machine as data: the compiler's assumptions about the machine that will run the code.
// Compilation needs a target, not a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::target {

enum class Kind : uint8_t { kCpu, kGpu, kReference };

// Chosen by feature bits, never by a CPU's name, which virtual machines may invent.
struct Cpu {
  std::string triple;                 // LLVM's, "x86_64-unknown-linux-gnu"
  std::vector<std::string> features;  // LLVM's names of what is there: "avx512f", "fma", ...
  int vector_bytes = 16;              // of the widest vector registers worth using
  int vector_registers = 16;
  bool has_fma = false;
  bool has_f16 = false;    // instructions that convert between f16 and f32
  bool has_masks = false;  // masked loads and stores cost what plain ones do (AVX-512, SVE)
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 8 << 20;
  // Products of f32 may have factors rounded to bf16.
  bool allow_bf16 = false;
  // Products of bf16 are not taken by instructions that treat subnormal numbers as 0.
  bool keep_subnormals = false;
  // Smaller work is faster on one thread than with another thread woken for it.
  double task_microseconds = 10;

  bool Has(std::string_view feature) const;
  // Whether instructions that gemms may use add two products of bf16 to each f32 of a vector, or
  // four products of bytes to each integer of 32 bits.
  bool MultipliesBf16() const;
  bool MultipliesBytes() const;
  // Whether AMX multiplies tiles of them.
  bool HasBf16Tiles() const;
  bool HasByteTiles() const;
  // The best number of tasks for this much work.
  int64_t TasksWorth(double microseconds) const;
};

struct Gpu {
  int sm = 80;           // compute capability, 10 * major + minor
  int ptx_version = 70;  // what the assembler must accept, 10 * major + minor
  int warp_size = 32;
  int max_threads_per_block = 1024;
  int64_t shared_bytes_per_block = 48 << 10;  // the most that a block may ask for
  int multiprocessors = 108;
  // Products of f32 may keep only 10 bits of their factors' mantissas.
  bool tf32 = false;
  // Kernels are made for the emulator, as objects for the target's CPU.
  bool emulated = false;
};

struct Target {
  Kind kind = Kind::kReference;
  Cpu cpu;
  Gpu gpu;

  // One line that identifies the target: part of every cache key.
  std::string ToString() const;
};

// Whether code compiled for a target (its Target::ToString) runs on another one; otherwise
// FAILED_PRECONDITION, with the mismatch. A CPU may have more features, a GPU may be newer.
Status CheckRunsOn(std::string_view compiled_for, const Target& target);

// The machine this runs on.
Target HostCpu();
// The same with vectors of at most `bytes` (16, 32, 64) and the features that go with them, for
// tests and for code that must run elsewhere.
Target HostCpuWithVectors(int bytes);
// sm is 75, 80, 86, 89 or 90; INVALID_ARGUMENT otherwise.
Result<Target> NvidiaGpu(int sm);
// The same, emulated on the machine this runs on.
Result<Target> EmulatedGpu(int sm);
Target Reference();

}  // namespace kiln::target
