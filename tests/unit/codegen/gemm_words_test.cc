// Gemms whose instructions multiply several narrow elements for each sum.
#include "support/gemm.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "codegen/llvm_session.h"
#include "target/cpu_features.h"

namespace kiln::codegen {
namespace {

using kernel::ChooseGemmSchedule;
using kernel::GemmB;
using kernel::GemmKind;
using kernel::GemmProblem;
using kernel::GemmSchedule;
using kernel::GemmUnit;
using testing::CheckGemm;
using testing::GemmCpus;
using Epilogue = testing::GemmEpilogueCase;

constexpr ElementType kF32 = ElementType::kF32;

// Operands of which an instruction multiplies several elements at once.
struct Words {
  ElementType type, a, b;
};
constexpr Words kWords[] = {
    {kF32, ElementType::kBF16, ElementType::kBF16},
    {ElementType::kS32, ElementType::kS8, ElementType::kS8},
    {ElementType::kS32, ElementType::kU8, ElementType::kS8},
    {ElementType::kS32, ElementType::kS8, ElementType::kU8},
    {ElementType::kU32, ElementType::kU8, ElementType::kU8},
    {ElementType::kS32, ElementType::kS16, ElementType::kS16},
    {ElementType::kS32, ElementType::kU8, ElementType::kS16},
    {ElementType::kU32, ElementType::kS16, ElementType::kS8},
};
constexpr Words kF16Words = {kF32, ElementType::kF16, ElementType::kF16};

GemmProblem ProblemOf(const Words& words, int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  GemmProblem p = GemmProblem::RowMajor(words.type, m, n, k, batch);
  p.a_type = words.a;
  p.b_type = words.b;
  return p;
}

// This machine with its vectors and with shorter ones, and without tiles.
std::vector<target::Cpu> VectorCpus() {
  std::vector<target::Cpu> cpus = GemmCpus();
  for (target::Cpu& cpu : cpus) {
    std::erase_if(cpu.features, [](const std::string& f) { return f.starts_with("amx"); });
  }
  return cpus;
}

#if defined(__x86_64__)
constexpr bool kX86 = true;
#else
constexpr bool kX86 = false;
#endif

bool IsByte(ElementType type) { return BitWidth(type) == 8; }

// The instruction of vectors.
GemmUnit UnitOf(const target::Cpu& cpu, const Words& words) {
  if (words.type == kF32) {
    return cpu.MultipliesBf16() ? GemmUnit::kBf16Pair : GemmUnit::kElement;
  }
  if (IsByte(words.a) && IsByte(words.b)) {
    if (cpu.vector_bytes == 32 && cpu.Has("avxvnniint8")) return GemmUnit::kAnyByteQuad;
    if (cpu.MultipliesBytes()) return GemmUnit::kByteQuad;
  }
  return kX86 ? GemmUnit::kS16Pair : GemmUnit::kElement;
}
bool Has(const target::Cpu& cpu, const Words& words) {
  return UnitOf(cpu, words) != GemmUnit::kElement;
}

void CheckWords(const testing::GemmCase& c, const Words& words) {
  Result<GemmSchedule> s = ChooseGemmSchedule(c.cpu, c.problem);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->unit, UnitOf(c.cpu, words)) << c.problem.ToString();
  CheckGemm(c);
}

// This machine with vectors of 32 bytes and AVX_VNNI, or AVX_VNNI_INT8, which it need not have;
// nothing where it has no AVX2.
std::vector<target::Cpu> EmulatedCpus() {
  std::vector<target::Cpu> cpus(2, target::HostCpuWithVectors(32).cpu);
  if (cpus[0].vector_bytes != 32) return {};
  for (target::Cpu& cpu : cpus) {
    std::erase_if(cpu.features, [](const std::string& f) { return f.starts_with("avxvnni"); });
    cpu.features.emplace_back("avxvnni");
  }
  cpus[1].features.emplace_back("avxvnniint8");
  return cpus;
}

// Sums of whole words and of others, of operands in any order.
TEST(CodegenGemm, WordsOfAnyOrder) {
  for (const target::Cpu& cpu : VectorCpus()) {
    for (const Words& words : kWords) {
      for (auto [m, n, k] : {std::tuple(31, 45, 37), {33, 48, 40}, {6, 16, 5}, {9, 70, 130}}) {
        const int64_t layouts_a[][2] = {{k, 1}, {1, m}, {2 * k + 3, 2}, {k + 5, 1}, {-k, 1}};
        const int64_t layouts_b[][2] = {{n, 1}, {1, k}, {3, 3 * k + 1}, {n + 5, 1}};
        for (auto [a_m, a_k] : layouts_a) {
          for (auto [b_k, b_n] : layouts_b) {
            for (bool constant : {false, true}) {
              GemmProblem p = ProblemOf(words, m, n, k);
              p.a_m = a_m;
              p.a_k = a_k;
              p.b_k = b_k;
              p.b_n = b_n;
              p.b_constant = constant;
              CheckWords({.cpu = cpu, .problem = p}, words);
            }
          }
        }
      }
    }
    if (cpu.vector_bytes == 32) return;
  }
}

// The largest products of all.
TEST(CodegenGemm, WordsOfExtremes) {
  for (const target::Cpu& cpu : VectorCpus()) {
    for (const Words& words : kWords) {
      if (words.type == kF32) continue;
      for (int64_t m : {1, 8}) {
        for (bool columns : {false, true}) {
          GemmProblem p = ProblemOf(words, m, 40, 67);
          if (columns) p.b_k = 1, p.b_n = p.k;
          CheckGemm({.cpu = cpu, .problem = p, .extreme = true});
        }
      }
    }
  }
}

TEST(CodegenGemm, WordsInBlocks) {
  const target::Cpu cpu = VectorCpus()[0];
  for (const Words& words : kWords) {
    if (!Has(cpu, words)) continue;
    const Epilogue epilogues[] = {Epilogue::kNone, Epilogue::kInPlaceResidual,
                                  Epilogue::kShortResidual};
    for (GemmB b : {GemmB::kPackPanel, GemmB::kPrepacked}) {
      for (int variant = 0; variant < 8; ++variant) {
        for (Epilogue epilogue : epilogues) {
          if (epilogue != Epilogue::kNone && words.type != kF32) continue;
          GemmProblem p = ProblemOf(words, 53, 151, variant & 4 ? 180 : 179, 2);
          if (variant == 3) std::swap(p.a_m, p.a_k), p.a_k = 53;
          if (variant == 2) p.b_k = 1, p.b_n = p.k;
          if (variant == 6) p.batch[0].b = 0;
          CheckGemm(
              {.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](GemmSchedule& s) {
                 s.b = b;
                 s.mr = 5;
                 s.nv = 2;
                 s.block_m = 3;
                 s.block_n = 2;
                 s.kc = variant % 4 == 0 ? 90 : variant == 1 ? 30 : 8;
                 s.panels_inner = variant >= 2;
                 s.items_along_m = variant % 2 == 0;
                 s.prefetch_b = b == GemmB::kPrepacked;
               }});
        }
      }
    }
  }
}

void CheckInnerProducts(const target::Cpu& cpu, bool only_bytes = false) {
  for (const Words& words : kWords) {
    if (only_bytes && !(IsByte(words.a) && IsByte(words.b))) continue;
    const GemmUnit unit = UnitOf(cpu, words);
    if (unit == GemmUnit::kElement) continue;
    for (auto [m, n, k] : {std::tuple(1, 37, 300), {3, 64, 256}, {7, 33, 5}, {4, 1, 1000}}) {
      for (auto [mr, nr, nv] : {std::tuple(1, 1, 1), {1, 8, 2}, {3, 4, 1}, {2, 2, 3}}) {
        GemmProblem p = ProblemOf(words, m, n, k);
        p.b_k = 1;
        p.b_n = k;
        CheckGemm({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                     s.unit = unit;
                     s.kind = GemmKind::kInner;
                     s.pack_a = false;
                     s.b = GemmB::kInPlace;
                     s.mr = mr;
                     s.nr = nr;
                     s.nv = nv;
                   }});
      }
    }
  }
}

TEST(CodegenGemm, InnerProductsOfWords) {
  for (const target::Cpu& cpu : VectorCpus()) CheckInnerProducts(cpu);
}

// Code that gemms of words share with others: the bytes of A change their signs in one of two
// places.
TEST(CodegenGemm, WordsShareTheirCode) {
  const target::Cpu cpu = VectorCpus()[0];
  for (const Words& words : kWords) {
    if (!Has(cpu, words)) continue;
    for (bool packed : {false, true}) {
      GemmProblem p = ProblemOf(words, 33, 96, 192);
      if (packed) p.a_m = 1, p.a_k = 40;
      const int64_t steps = 192 / kernel::GroupOf(UnitOf(cpu, words));
      CheckGemm({.cpu = cpu,
                 .problem = p,
                 .change =
                     [=](GemmSchedule& s) {
                       s.mr = cpu.vector_bytes == 64 ? 14 : 6;
                       s.nv = 2;
                       s.block_m = s.block_n = 2;
                       s.kc = steps / 2;
                       s.unroll = 1;
                       s.panels_inner = true;
                     },
                 .other =
                     [=](GemmProblem& q, GemmSchedule&) {
                       q.a_m = packed ? 1 : 400;
                       q.n = q.b_k = q.c_m = 160;
                     }});
    }
  }
}

// --- Instructions that this machine need not have

TEST(CodegenGemm, EmulatedQuadsOfBytes) {
  for (const target::Cpu& cpu : EmulatedCpus()) {
    CheckInnerProducts(cpu, true);
    for (const Words& words : kWords) {
      if (!IsByte(words.a) || !IsByte(words.b)) continue;
      for (auto [m, n, k] : {std::tuple(33, 48, 40), {9, 70, 130}, {6, 16, 5}}) {
        for (int variant = 0; variant < 4; ++variant) {
          GemmProblem p = ProblemOf(words, m, n, k);
          p.b_constant = variant == 1;
          if (variant == 2) p.b_k = 1, p.b_n = k;
          if (variant == 3) p.a_m = 1, p.a_k = m;
          CheckWords({.cpu = cpu, .problem = p}, words);
        }
      }
    }
  }
}

// This machine with AMX and vectors of 64 bytes, which LLVM splits where it has only shorter ones.
target::Cpu WithTiles() {
  target::Cpu cpu = target::HostCpu().cpu;
  std::vector<std::string> features = {"amx-tile", "amx-bf16", "amx-int8", "amx-fp16"};
  if (cpu.vector_bytes == 64) features.insert(features.end(), {"avx512bf16", "avx512vnni"});
  for (const std::string& feature : features) {
    if (!cpu.Has(feature)) cpu.features.push_back(feature);
  }
  cpu.vector_bytes = 64;
  cpu.vector_registers = 32;
  cpu.has_masks = true;
  return cpu;
}

TEST(CodegenGemm, Tiles) {
  const target::Cpu cpu = WithTiles();
  std::vector<Words> tiles(std::begin(kWords) + 1, std::begin(kWords) + 5);
  if (cpu.HasBf16Tiles()) tiles.push_back(kWords[0]);
  tiles.push_back(kF16Words);
  for (const Words& words : tiles) {
    const bool halves = words.type == kF32;
    const GemmUnit unit = words.a == ElementType::kBF16 ? GemmUnit::kBf16Tile
                          : halves                      ? GemmUnit::kF16Tile
                                                        : GemmUnit::kByteTile;
    for (auto [m, n, k] : {std::tuple(32, 32, 128), {71, 45, 37}, {9, 70, 130}, {20, 16, 64}}) {
      for (int variant = 0; variant < 6; ++variant) {
        GemmProblem p = ProblemOf(words, m, n, k, variant == 4 ? 2 : 1);
        p.b_constant = variant == 1;
        if (variant == 2) p.b_k = 1, p.b_n = k;
        if (variant == 3) p.a_m = 1, p.a_k = m;
        auto change = [=](GemmSchedule& s) {
          EXPECT_EQ(s.unit, unit) << s.ToString();
          if (variant == 5) s.kc = 16;
        };
        CheckGemm({.cpu = cpu, .problem = p, .change = change});
        if (!halves) continue;
        CheckGemm(
            {.cpu = cpu, .problem = p, .epilogue = Epilogue::kShortResidual, .change = change});
      }
    }
  }
}

// Whether the code of a gemm of 64 x 64 x 64 has an instruction: the bytes of its opcode behind a
// prefix of three bytes.
bool HasInstruction(const target::Cpu& cpu, const Words& words, uint8_t prefix, uint8_t opcode) {
  const GemmProblem p = ProblemOf(words, 64, 64, 64);
  auto schedule = ChooseGemmSchedule(cpu, p);
  auto session = LlvmSession::ForCpu("tiles", cpu);
  if (!schedule.ok() || !session.ok()) return false;
  llvm::Function* f = (*session)->AddFunction((*session)->KernelType(), "gemm", true);
  if (!EmitGemm(f, p, *schedule, {.a = 0, .b = 1, .c = 2, .scratch = 3}).ok()) return false;
  auto object = (*session)->Emit();
  if (!object.ok()) return false;
  for (size_t i = 0; i + 4 < object->size(); ++i) {
    auto byte = [&](size_t k) { return static_cast<uint8_t>((*object)[i + k]); };
    // The prefix has the registers in bits that do not tell instructions apart.
    if (byte(0) == 0xc4 && (byte(1) & 0x1f) == 2 && (byte(2) & 0x87) == prefix &&
        byte(3) == opcode) {
      return true;
    }
  }
  return false;
}

TEST(CodegenGemm, TilesAreMultipliedByTheirInstructions) {
  const target::Cpu cpu =
      target::X86WithFeatures(
          {"sse4.1",     "sse4.2",  "popcnt",   "avx",      "avx2",     "fma",      "bmi",
           "bmi2",       "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512vnni",
           "avx512bf16", "lzcnt",   "f16c",     "amx-tile", "amx-bf16", "amx-int8", "amx-fp16"})
          .cpu;
  EXPECT_TRUE(HasInstruction(cpu, kWords[0], 2, 0x5c));  // tdpbf16ps
  EXPECT_TRUE(HasInstruction(cpu, kWords[1], 3, 0x5e));  // tdpbssd
  EXPECT_TRUE(HasInstruction(cpu, kWords[2], 1, 0x5e));  // tdpbusd
  EXPECT_TRUE(HasInstruction(cpu, kWords[3], 2, 0x5e));  // tdpbsud
  EXPECT_TRUE(HasInstruction(cpu, kWords[4], 0, 0x5e));  // tdpbuud
  EXPECT_TRUE(HasInstruction(cpu, kF16Words, 3, 0x5c));  // tdpfp16ps
}

TEST(CodegenGemm, QuadsAreMultipliedByTheirInstructions) {
  const std::vector<target::Cpu> cpus = EmulatedCpus();
  if (cpus.empty()) GTEST_SKIP() << "no AVX2";
  for (size_t i = 1; i <= 4; ++i) EXPECT_TRUE(HasInstruction(cpus[0], kWords[i], 5, 0x50));
  EXPECT_TRUE(HasInstruction(cpus[1], kWords[1], 7, 0x50));  // vpdpbssd
  EXPECT_TRUE(HasInstruction(cpus[1], kWords[2], 6, 0x50));  // vpdpbsud
  EXPECT_TRUE(HasInstruction(cpus[1], kWords[3], 6, 0x50));
  EXPECT_TRUE(HasInstruction(cpus[1], kWords[4], 4, 0x50));  // vpdpbuud
  EXPECT_TRUE(HasInstruction(cpus[0], kWords[5], 5, 0x52));  // vpdpwssd
}

}  // namespace
}  // namespace kiln::codegen
