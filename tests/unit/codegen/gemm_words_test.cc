// Gemms whose instructions multiply several narrow elements for each sum.
#include "support/gemm.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "codegen/llvm_session.h"

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
  GemmUnit unit;
  ElementType type, a, b;
};
constexpr Words kWords[] = {
    {GemmUnit::kBf16Pair, kF32, ElementType::kBF16, ElementType::kBF16},
    {GemmUnit::kByteQuad, ElementType::kS32, ElementType::kS8, ElementType::kS8},
    {GemmUnit::kByteQuad, ElementType::kS32, ElementType::kU8, ElementType::kS8},
    {GemmUnit::kByteQuad, ElementType::kS32, ElementType::kS8, ElementType::kU8},
    {GemmUnit::kByteQuad, ElementType::kU32, ElementType::kU8, ElementType::kU8},
};

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

bool Has(const target::Cpu& cpu, GemmUnit unit) {
  return unit == GemmUnit::kBf16Pair ? cpu.MultipliesBf16() : cpu.MultipliesBytes();
}

void CheckWords(const testing::GemmCase& c, GemmUnit unit) {
  Result<GemmSchedule> s = ChooseGemmSchedule(c.cpu, c.problem);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->unit, Has(c.cpu, unit) ? unit : GemmUnit::kElement) << c.problem.ToString();
  CheckGemm(c);
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
              CheckWords({.cpu = cpu, .problem = p}, words.unit);
            }
          }
        }
      }
    }
    if (!cpu.MultipliesBytes()) return;
  }
}

TEST(CodegenGemm, WordsInBlocks) {
  const target::Cpu cpu = VectorCpus()[0];
  for (const Words& words : kWords) {
    if (!Has(cpu, words.unit)) continue;
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

TEST(CodegenGemm, InnerProductsOfWords) {
  const target::Cpu cpu = VectorCpus()[0];
  for (const Words& words : kWords) {
    if (!Has(cpu, words.unit)) continue;
    for (auto [m, n, k] : {std::tuple(1, 37, 300), {3, 64, 256}, {7, 33, 5}, {4, 1, 1000}}) {
      for (auto [mr, nr, nv] : {std::tuple(1, 1, 1), {1, 8, 2}, {3, 4, 1}, {2, 2, 3}}) {
        GemmProblem p = ProblemOf(words, m, n, k);
        p.b_k = 1;
        p.b_n = k;
        CheckGemm({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                     s.unit = words.unit;
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

// Code that gemms of words share with others: the bytes of A change their signs in one of two
// places.
TEST(CodegenGemm, WordsShareTheirCode) {
  const target::Cpu cpu = VectorCpus()[0];
  for (const Words& words : kWords) {
    if (!Has(cpu, words.unit)) continue;
    for (bool packed : {false, true}) {
      GemmProblem p = ProblemOf(words, 33, 96, 192);
      if (packed) p.a_m = 1, p.a_k = 40;
      const int64_t steps = 192 / kernel::GroupOf(words.unit);
      CheckGemm({.cpu = cpu,
                 .problem = p,
                 .change =
                     [=](GemmSchedule& s) {
                       s.mr = 14;
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

// --- Tiles of AMX, which this machine need not have

// This machine with vectors of 64 bytes and AMX; nothing where it has no such vectors.
std::optional<target::Cpu> WithTiles() {
  target::Cpu cpu = target::HostCpu().cpu;
  if (cpu.vector_bytes != 64) return std::nullopt;
  for (const char* feature : {"avx512bf16", "avx512vnni", "amx-tile", "amx-bf16", "amx-int8"}) {
    if (!cpu.Has(feature)) cpu.features.emplace_back(feature);
  }
  return cpu;
}

TEST(CodegenGemm, Tiles) {
  const std::optional<target::Cpu> cpu = WithTiles();
  if (!cpu) GTEST_SKIP() << "no AVX-512";
  for (const Words& words : kWords) {
    const bool halves = words.unit == GemmUnit::kBf16Pair;
    const GemmUnit unit = halves ? GemmUnit::kBf16Tile : GemmUnit::kByteTile;
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
        CheckGemm({.cpu = *cpu, .problem = p, .change = change});
        if (!halves) continue;
        CheckGemm(
            {.cpu = *cpu, .problem = p, .epilogue = Epilogue::kShortResidual, .change = change});
      }
    }
  }
}

// Whether the code of a gemm of 64 x 64 x 64 has an instruction: the bytes of its opcode behind a
// prefix of two more.
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
    if (byte(0) == 0xc4 && byte(1) == 0xe2 && (byte(2) & 0x87) == prefix && byte(3) == opcode) {
      return true;
    }
  }
  return false;
}

TEST(CodegenGemm, TilesAreMultipliedByTheirInstructions) {
  const std::optional<target::Cpu> cpu = WithTiles();
  if (!cpu) GTEST_SKIP() << "no AVX-512";
  EXPECT_TRUE(HasInstruction(*cpu, kWords[0], 2, 0x5c));  // tdpbf16ps
  EXPECT_TRUE(HasInstruction(*cpu, kWords[1], 3, 0x5e));  // tdpbssd
  EXPECT_TRUE(HasInstruction(*cpu, kWords[2], 1, 0x5e));  // tdpbusd
  EXPECT_TRUE(HasInstruction(*cpu, kWords[3], 2, 0x5e));  // tdpbsud
  EXPECT_TRUE(HasInstruction(*cpu, kWords[4], 0, 0x5e));  // tdpbuud
}

}  // namespace
}  // namespace kiln::codegen
