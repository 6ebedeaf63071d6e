#include "target/target.h"

#include <unistd.h>

#include <algorithm>

#include "base/machine_features.h"
#include "base/strings.h"
#include "target/cpu_features.h"

namespace kiln::target {
namespace {

int64_t CacheBytes(int name, int64_t fallback) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : fallback;
}

#if defined(__x86_64__)
// The third cache of one processor. Of AMD's processors sysconf has the sum of all those of a
// package, each of which serves a few processors (leaf 8000001D: AMD64 Architecture Programmer's
// Manual, volume 3; zeros where there is none such).
int64_t ThirdCacheBytes(int64_t fallback) {
  const features::Leaf leaf = features::LeafOf(0x8000001D, 3);
  const bool is_third = (leaf.a >> 5 & 7) == 3;
  if (!is_third) return CacheBytes(_SC_LEVEL3_CACHE_SIZE, fallback);
  const int64_t ways = (leaf.b >> 22) + 1, lines = (leaf.b >> 12 & 1023) + 1,
                line_bytes = (leaf.b & 4095) + 1, sets = int64_t{leaf.c} + 1;
  return ways * lines * line_bytes * sets;
}
#endif

// Vectors of 64 bytes need the AVX-512 subset that compilers assume since Skylake.
bool HasAvx512(const Cpu& cpu) {
  return cpu.Has("avx512f") && cpu.Has("avx512dq") && cpu.Has("avx512bw") && cpu.Has("avx512vl") &&
         cpu.Has("avx512cd");
}

void SetVectors(Cpu& cpu, int bytes) {
  cpu.vector_bytes = bytes;
  cpu.has_masks = bytes == 64;
  cpu.vector_registers = bytes == 64 ? 32 : 16;
}

}  // namespace

bool Cpu::Has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

// Processors with tiles take as long for products of bf16 by vectors as for those of f32, or
// longer.
bool Cpu::MultipliesBf16() const {
  return vector_bytes == 64 && !keep_subnormals && Has("avx512bf16") && !Has("amx-bf16");
}

bool Cpu::HasBf16Tiles() const {
  return vector_bytes == 64 && !keep_subnormals && Has("avx512bf16") && Has("amx-tile") &&
         Has("amx-bf16");
}

bool Cpu::HasByteTiles() const { return vector_bytes == 64 && Has("amx-tile") && Has("amx-int8"); }

bool Cpu::MultipliesBytes() const {
  return (vector_bytes == 64 && Has("avx512vnni")) || (vector_bytes == 32 && Has("avxvnni"));
}

int64_t Cpu::TasksWorth(double microseconds) const {
  if (microseconds < 2 * task_microseconds) return 1;
  return static_cast<int64_t>(std::min(microseconds / task_microseconds, 1e15));
}

namespace {

std::string CpuText(const Cpu& cpu) {
  return Cat("cpu ", cpu.triple, " vector=", cpu.vector_bytes,
             " features=", Join(cpu.features, ","), " task=", cpu.task_microseconds, "us");
}

// The word of a target's text with that prefix, without the prefix.
std::string_view WordOf(std::string_view text, std::string_view beginning) {
  for (std::string_view word : Split(text, ' ')) {
    if (StartsWith(word, beginning)) return word.substr(beginning.size());
  }
  return {};
}

// Whether code for one CPU runs on another one.
Status CheckCpu(std::string_view compiled_for, const Cpu& cpu) {
  const std::vector<std::string_view> words = Split(compiled_for, ' ');
  if (words.size() < 2 || words[1] != cpu.triple) {
    return FailedPrecondition("it was compiled for ", compiled_for, ", and this machine is ",
                              cpu.triple);
  }
  std::vector<std::string_view> missing;
  for (std::string_view feature : Split(WordOf(compiled_for, "features="), ',')) {
    if (!feature.empty() && !cpu.Has(feature)) missing.push_back(feature);
  }
  if (missing.empty()) return OkStatus();
  return FailedPrecondition("it was compiled for a CPU with ", Join(missing, ", "),
                            ", which this machine lacks: it has ", Join(cpu.features, ", "));
}

// Between a GPU's text and that of the CPU which emulates it.
constexpr std::string_view kOn = " emulated on ";

// Whether a GPU takes code of another one. The number of multiprocessors has only been good for its
// schedules.
bool TakesCodeOf(std::string_view compiled_for, const Gpu& gpu) {
  const std::optional<int64_t> sm = ParseInt(WordOf(compiled_for, "sm_"));
  const bool emulated = compiled_for.find(kOn) != std::string_view::npos;
  return StartsWith(compiled_for, "gpu ") && sm && *sm <= gpu.sm && emulated == gpu.emulated;
}

}  // namespace

Status CheckRunsOn(std::string_view compiled_for, const Target& target) {
  const std::string own = target.ToString();
  if (compiled_for == own) return OkStatus();
  if (target.kind == Kind::kCpu && StartsWith(compiled_for, "cpu ")) {
    return CheckCpu(compiled_for, target.cpu);
  }
  if (target.kind == Kind::kGpu && TakesCodeOf(compiled_for, target.gpu)) {
    if (!target.gpu.emulated) return OkStatus();
    return CheckCpu(compiled_for.substr(compiled_for.find(kOn) + kOn.size()), target.cpu);
  }
  return FailedPrecondition("it was compiled for ", compiled_for, ", and the device is ", own);
}

std::string Target::ToString() const {
  switch (kind) {
    case Kind::kCpu:
      return CpuText(cpu);
    case Kind::kGpu:
      return Cat("gpu sm_", gpu.sm, " ptx=", gpu.ptx_version,
                 " multiprocessors=", gpu.multiprocessors,
                 gpu.emulated ? Cat(kOn, CpuText(cpu)) : "");
    case Kind::kReference:
      return "reference";
  }
  return "";
}

Target X86WithFeatures(const std::vector<std::string>& features) {
  Target t;
  t.kind = Kind::kCpu;
  Cpu& cpu = t.cpu;
  cpu.triple = "x86_64-unknown-linux-gnu";
  for (std::string_view known : kCpuFeatures) {
    if (std::ranges::find(features, known) != features.end()) cpu.features.emplace_back(known);
  }
  cpu.has_fma = cpu.Has("fma");
  cpu.has_f16 = cpu.Has("f16c");
  SetVectors(cpu, HasAvx512(cpu) ? 64 : cpu.Has("avx2") ? 32 : 16);
  return t;
}

Target BaselineAArch64() {
  Target t;
  t.kind = Kind::kCpu;
  Cpu& cpu = t.cpu;
  cpu.triple = "aarch64-unknown-linux-gnu";
  cpu.features = {"neon"};
  cpu.has_fma = true;
  cpu.has_f16 = true;
  cpu.vector_registers = 32;
  return t;
}

Target HostCpu() {
#if defined(__x86_64__)
  const uint64_t has = FeaturesOfMachine();
  std::vector<std::string> features;
  for (size_t n = 0; n < std::size(kCpuFeatures); ++n) {
    if (has >> n & 1) features.emplace_back(kCpuFeatures[n]);
  }
  Target t = X86WithFeatures(features);
  Cpu& cpu = t.cpu;
  cpu.l1_bytes = CacheBytes(_SC_LEVEL1_DCACHE_SIZE, cpu.l1_bytes);
  cpu.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE, cpu.l2_bytes);
  cpu.l3_bytes = ThirdCacheBytes(cpu.l3_bytes);
  return t;
#elif defined(__aarch64__)
  return BaselineAArch64();
#else
  Target t;
  t.kind = Kind::kCpu;
  return t;
#endif
}

Target HostCpuWithVectors(int bytes) {
  Target t = HostCpu();
  if (t.cpu.vector_bytes <= bytes) return t;
  std::erase_if(t.cpu.features, [bytes](const std::string& f) {
    return StartsWith(f, "avx512") || StartsWith(f, "amx") ||
           (bytes < 32 && (StartsWith(f, "avx") || f == "fma" || f == "f16c"));
  });
  t.cpu.has_fma = t.cpu.Has("fma");
  t.cpu.has_f16 = t.cpu.Has("f16c");
  SetVectors(t.cpu, bytes);
  return t;
}

Result<Target> NvidiaGpu(int sm) {
  Target t;
  t.kind = Kind::kGpu;
  t.gpu.sm = sm;
  // The lowest PTX version with the architecture and its matrix instructions, as LLVM 19 emits it,
  // and the shared memory of a block (CUDA C++ Programming Guide, "Technical Specifications per
  // Compute Capability").
  auto set = [&](int ptx_version, int64_t shared_kib) {
    t.gpu.ptx_version = ptx_version;
    t.gpu.shared_bytes_per_block = shared_kib << 10;
    return t;
  };
  switch (sm) {
    case 75:
      return set(65, 64);
    case 80:
      return set(70, 163);
    case 86:
      return set(71, 99);
    case 89:
      return set(78, 99);
    case 90:
      return set(78, 227);
    default:
      return InvalidArgument("no GPU architecture sm_", sm,
                             "; known are sm_75, sm_80, sm_86, sm_89 and sm_90");
  }
}

Result<Target> EmulatedGpu(int sm) {
  KILN_ASSIGN_OR_RETURN(Target t, NvidiaGpu(sm));
  t.cpu = HostCpu().cpu;
  t.gpu.emulated = true;
  return t;
}

Target Reference() { return Target(); }

}  // namespace kiln::target
