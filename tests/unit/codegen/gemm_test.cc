#include "support/gemm.h"

#include <gtest/gtest.h>

#include "base/strings.h"

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

TEST(CodegenGemm, Shapes) {
  const int64_t shapes[][3] = {
      {1, 1, 1},    {1, 1, 7},    {1, 17, 5},    {17, 1, 5},   {3, 10, 33},   {16, 16, 16},
      {32, 32, 32}, {33, 47, 65}, {100, 10, 84}, {64, 64, 64}, {13, 130, 3},  {128, 96, 64},
      {5, 5, 300},  {29, 200, 1}, {2, 3, 0},     {40, 100, 2}, {1, 300, 129}, {300, 1, 129}};
  for (const target::Cpu& cpu : GemmCpus()) {
    for (auto [m, n, k] : shapes) {
      for (bool constant : {false, true}) {
        GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
        p.b_constant = constant;
        CheckGemm({.cpu = cpu, .problem = p});
        CheckGemm({.cpu = cpu, .problem = p, .epilogue = Epilogue::kInPlaceResidual});
        CheckGemm({.cpu = cpu, .problem = p, .epilogue = Epilogue::kShortResidual});
      }
    }
  }
}

TEST(CodegenGemm, Strides) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (auto [m, n, k] : {std::tuple(31, 45, 37), {7, 64, 16}, {3, 50, 40}, {64, 5, 9}}) {
      const int64_t layouts_a[][2] = {{k, 1}, {1, m}, {2 * k + 3, 2}, {-k, 1}, {0, 1}};
      const int64_t layouts_b[][2] = {{n, 1}, {1, k}, {3, 3 * k + 1}, {n + 5, 1}, {1, 0}};
      for (auto [a_m, a_k] : layouts_a) {
        for (auto [b_k, b_n] : layouts_b) {
          GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
          p.a_m = a_m;
          p.a_k = a_k;
          p.b_k = b_k;
          p.b_n = b_n;
          p.c_m = n + 3;
          p.b_constant = a_m == k && b_n != 1;
          CheckGemm({.cpu = cpu, .problem = p});
        }
      }
      GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
      p.c_m = 1;
      p.c_n = m;
      CheckGemm({.cpu = cpu, .problem = p});
      GemmProblem t = p.Transposed();
      EXPECT_EQ(t.c_n, 1);
      CheckGemm({.cpu = cpu, .problem = t});
      p.c_m = 2;
      p.c_n = 2 * m + 1;
      CheckGemm({.cpu = cpu, .problem = p});
    }
  }
}

TEST(CodegenGemm, RegisterTiles) {
  for (const target::Cpu& cpu : GemmCpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (int nv = 1; nv <= 8; ++nv) {
      for (int mr : {1, 2, 3, 4, 5, 6, 8, 9, 14, 30}) {
        if (mr * nv > 30) continue;
        GemmProblem p = GemmProblem::RowMajor(kF32, 2 * mr + 1, (2 * nv + 1) * lanes - 3, 11);
        for (int unroll : {1, 2, 4}) {
          CheckGemm({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                       s.mr = mr;
                       s.nv = nv;
                       s.unroll = unroll;
                     }});
        }
      }
    }
  }
}

// Few columns beside contiguous rows of A, as in the gradient of a small layer's weights.
TEST(CodegenGemm, NarrowOnesGoByColumns) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32}) {
      for (auto [m, n, k] : {std::tuple(784, 10, 100), {65, 3, 40}, {97, 5, 2}, {130, 13, 31}}) {
        GemmProblem p = GemmProblem::RowMajor(type, m, n, k);
        p.a_m = 1;
        p.a_k = m + 3;
        const int64_t lanes = cpu.vector_bytes / ByteWidth(type);
        if (n == 10 && lanes > 8) {
          EXPECT_TRUE(ChooseGemmSchedule(cpu, p)->by_columns) << p.ToString();
        }
        for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kShortResidual}) {
          if (!IsFloat(type) && epilogue != Epilogue::kNone) continue;
          CheckGemm({.cpu = cpu, .problem = p, .epilogue = epilogue});
        }
        for (int64_t vectors : {1, 2}) {
          if (vectors * lanes > m) continue;
          CheckGemm({.cpu = cpu, .problem = p, .change = [&](GemmSchedule& s) {
                       s.by_columns = true;
                       s.mr = static_cast<int>(vectors * lanes);
                       s.nv = static_cast<int>((n + lanes - 1) / lanes);
                       s.b = GemmB::kInPlace;
                       s.pack_a = false;
                       s.unroll = 2;
                       s.kc = k > 30 ? (k + 1) / 2 : k;
                     }});
        }
      }
    }
  }
}

TEST(CodegenGemm, Blocks) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (GemmB b : {GemmB::kInPlace, GemmB::kPackPanel, GemmB::kPrepacked}) {
      for (bool pack_a : {false, true}) {
        for (int variant = 0; variant < 5; ++variant) {
          for (Epilogue epilogue :
               {Epilogue::kNone, Epilogue::kInPlaceResidual, Epilogue::kShortResidual}) {
            GemmProblem p = GemmProblem::RowMajor(kF32, 53, 151, 90, 2);
            if (variant == 3) std::swap(p.a_m, p.a_k), p.a_k = 53;
            CheckGemm(
                {.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](GemmSchedule& s) {
                   s.b = b;
                   s.pack_a = pack_a;
                   s.mr = 5;
                   s.nv = 2;
                   s.block_m = 3;
                   s.block_n = 2;
                   s.kc = variant == 0 ? 90 : variant == 1 ? 30 : 32;
                   s.panels_inner = variant >= 2;
                   s.group_m = variant == 4 ? 2 : 1;
                   s.items_along_m = variant % 2 == 0;
                 }});
          }
        }
      }
    }
  }
}

// Gemms that differ in their widths only, and in what they do with their results.
TEST(CodegenGemm, ShareTheirCode) {
  for (const target::Cpu& cpu : GemmCpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (GemmB b : {GemmB::kInPlace, GemmB::kPackPanel}) {
      for (int variant = 0; variant < 4; ++variant) {
        for (Epilogue epilogue :
             {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kInPlaceResidual}) {
          // Alone, what goes straight to C is less code.
          const bool blocks = variant > 0;
          if (!blocks && epilogue == Epilogue::kNone) continue;
          CheckGemm({.cpu = cpu,
                     .problem = GemmProblem::RowMajor(kF32, 23, 5 * 2 * lanes, 90),
                     .epilogue = epilogue,
                     .change =
                         [=](GemmSchedule& s) {
                           s.b = b;
                           s.mr = 5;
                           s.nv = 2;
                           s.block_m = 2;
                           s.block_n = 3;
                           s.kc = blocks ? 32 : 90;
                           s.panels_inner = variant >= 2;
                           s.items_along_m = variant % 2 == 0;
                           s.prefetch_b = b == GemmB::kInPlace;
                         },
                     .other =
                         [=](GemmProblem& p, GemmSchedule&) {
                           p.n = p.b_k = p.c_m = (variant == 3 ? 2 : 7) * 2 * lanes;
                         }});
        }
      }
    }
  }
}

// Gemms that differ in the strides of A, in whether it is packed, in blocks of k and in columns of
// B.
TEST(CodegenGemm, ShareTheirCodeForAnyA) {
  enum class A { kRows, kColumns, kPacked, kBackwards };
  for (const target::Cpu& cpu : GemmCpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (A a : {A::kRows, A::kColumns, A::kPacked, A::kBackwards}) {
      for (int variant = 0; variant < 24; ++variant) {
        const bool blocks = variant & 1, even = variant & 2, columns = variant & 4;
        const Epilogue epilogue = variant & 8    ? Epilogue::kBiasRelu
                                  : variant & 16 ? Epilogue::kInPlaceResidual
                                                 : Epilogue::kNone;
        if (!blocks && epilogue == Epilogue::kNone) continue;
        GemmProblem problem = GemmProblem::RowMajor(kF32, even ? 28 : 33, 6 * lanes, 96);
        if (a == A::kRows) problem.a_m = 103;
        if (a == A::kBackwards) problem.a_m = -97;
        if (a == A::kColumns) {
          problem.a_m = 1;
          problem.a_k = 40;
        }
        if (columns) {
          problem.b_k = 1;
          problem.b_n = 99;
        }
        CheckGemm({.cpu = cpu,
                   .problem = problem,
                   .epilogue = epilogue,
                   .change =
                       [=](GemmSchedule& s) {
                         s.kind = GemmKind::kOuter;
                         s.b = columns ? GemmB::kPackPanel : GemmB::kInPlace;
                         s.pack_a = a == A::kPacked;
                         s.mr = 14;
                         s.nv = 2;
                         s.block_m = 2;
                         s.block_n = 2;
                         s.kc = blocks ? 32 : 96;
                         s.unroll = 1;
                         s.panels_inner = true;
                         s.prefetch_b = !columns;
                       },
                   .other =
                       [=](GemmProblem& p, GemmSchedule& s) {
                         s.pack_a = false;
                         p.a_m = 200;
                         p.a_k = 1;
                         if (blocks) p.k = 160;
                         if (columns) p.b_n = 161;
                       }});
      }
    }
  }
}

// A gemm of one long block of k takes the code of one of several, whose slots are larger.
TEST(CodegenGemm, ShareTheirCodeWithThoseOfSeveralBlocks) {
  constexpr int64_t kBlock = 512;
  for (const target::Cpu& cpu : GemmCpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (int variant = 0; variant < 16; ++variant) {
      const bool even = variant & 1, columns = variant & 2, along_m = variant & 4;
      GemmProblem problem = GemmProblem::RowMajor(kF32, even ? 28 : 33, 10 * lanes, kBlock);
      if (columns) {
        problem.b_k = 1;
        problem.b_n = kBlock + 3;
      }
      CheckGemm({.cpu = cpu,
                 .problem = problem,
                 .epilogue = variant & 8 ? Epilogue::kBiasRelu : Epilogue::kInPlaceResidual,
                 .change =
                     [=](GemmSchedule& s) {
                       s.kind = GemmKind::kOuter;
                       s.b = GemmB::kPackPanel;
                       s.mr = 14;
                       s.nv = 2;
                       s.block_m = 2;
                       s.block_n = 3;
                       s.kc = kBlock;
                       s.unroll = 1;
                       s.panels_inner = !along_m || even;
                       s.items_along_m = along_m;
                       s.prefetch_b = false;
                     },
                 .other = [=](GemmProblem& p, GemmSchedule&) { p.k = 3 * kBlock; }});
    }
  }
}

// Gemms that differ in all of their sizes, and in where C's rows are: with last tiles and panels
// that are moved back, or not; one alone, or several blocks of rows and of k; with epilogues, or
// without.
TEST(CodegenGemm, ShareTheirCodeForAnySize) {
  for (const target::Cpu& cpu : GemmCpus()) {
    const int64_t lanes = cpu.vector_bytes / 4;
    for (int mr : {1, 4, 6}) {
      for (int variant = 0; variant < 64; ++variant) {
        const bool blocks = variant & 1, columns = variant & 2, along_m = variant & 4;
        const bool moved = variant & 8, in_place = (variant & 16) && !columns;
        const bool has_epilogue = variant & 32;
        GemmProblem problem = GemmProblem::RowMajor(kF32, moved ? 5 * mr - mr / 2 : 6 * mr,
                                                    (moved ? 5 : 6) * lanes, 96);
        problem.c_m = problem.n + 5;
        if (columns) {
          problem.b_k = 1;
          problem.b_n = 99;
        }
        CheckGemm({.cpu = cpu,
                   .problem = problem,
                   .epilogue = has_epilogue ? Epilogue::kBiasRelu : Epilogue::kNone,
                   .change =
                       [=](GemmSchedule& s) {
                         s.kind = GemmKind::kOuter;
                         s.b = in_place ? GemmB::kInPlace : GemmB::kPackPanel;
                         s.pack_a = false;
                         s.mr = mr;
                         s.nv = 2;
                         s.block_m = along_m ? 2 : 8;
                         s.block_n = 2;
                         s.kc = blocks ? 32 : 96;
                         s.unroll = 2;
                         s.panels_inner = true;
                         s.items_along_m = along_m;
                         s.prefetch_b = false;
                       },
                   .other =
                       [=](GemmProblem& p, GemmSchedule& s) {
                         p.m = 9 * mr;
                         p.n = 11 * lanes;
                         p.k = blocks ? 48 : 34;
                         p.a_m = p.k;
                         p.c_m = p.n;
                         if (columns) {
                           p.b_n = p.k;
                         } else {
                           p.b_k = p.n;
                         }
                         s.block_m = along_m ? 3 : 9;
                         s.kc = blocks ? 24 : 34;
                       },
                   .of_any_size = true});
      }
    }
  }
}

TEST(CodegenGemm, InnerProducts) {
  for (const target::Cpu& cpu : GemmCpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (auto [m, n, k] : {std::tuple(1, 37, 100), {3, 64, 64}, {7, 33, 5}, {4, 1, 1000}}) {
      for (auto [mr, nr, nv] : {std::tuple(1, 1, 1), {1, 8, 2}, {3, 4, 1}, {2, 2, 3}}) {
        if (nr > lanes) continue;
        GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
        p.b_k = 1;
        p.b_n = k;
        for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kInPlaceResidual}) {
          CheckGemm(
              {.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](GemmSchedule& s) {
                 s.kind = GemmKind::kInner;
                 s.b = GemmB::kInPlace;
                 s.mr = mr;
                 s.nr = nr;
                 s.nv = nv;
               }});
        }
      }
    }
  }
}

// Few columns, which would leave lanes of vectors along n empty.
TEST(CodegenGemm, NarrowOnesGoAlongTheSum) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32}) {
      const int64_t lanes = cpu.vector_bytes / ByteWidth(type);
      for (auto [m, n, k] : {std::tuple(100, 10, 784), {65, 3, 71}, {97, 2, 64}, {31, 13, 203}}) {
        for (int64_t batch : {1, 3}) {
          GemmProblem p = GemmProblem::RowMajor(type, m, n, k, batch);
          if (lanes == 8 && k > 700) {
            EXPECT_EQ(ChooseGemmSchedule(cpu, p)->kind, GemmKind::kInner) << p.ToString();
          }
          for (bool constant : {false, true}) {
            p.b_constant = constant;
            for (bool residual : {false, true}) {
              const Epilogue epilogue =
                  residual && IsFloat(type) ? Epilogue::kShortResidual : Epilogue::kNone;
              CheckGemm({.cpu = cpu, .problem = p, .epilogue = epilogue});
              CheckGemm({.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](auto& s) {
                           s.kind = GemmKind::kInner;
                           s.b = constant ? GemmB::kPrepacked : GemmB::kPackPanel;
                           s.mr = residual ? 1 : 3;
                           s.nr = 2;
                           s.nv = static_cast<int>((n + lanes - 1) / lanes);
                           s.row_batches = 1;
                           s.by_columns = s.pack_a = s.panels_inner = s.prefetch_b = false;
                           s.items_along_m = !residual;
                           s.block_m = 5;
                         }});
            }
          }
          p.b_constant = false;
          p.b_k = 1, p.b_n = k + 3;
          if (batch > 1) p.batch[0].b = n * (k + 3);
          CheckGemm({.cpu = cpu, .problem = p});
        }
      }
    }
  }
}

TEST(CodegenGemm, BatchesAndTypes) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32, ElementType::kU64}) {
      for (bool transposed_b : {false, true}) {
        // Heads of attention: two batch dimensions that do not collapse.
        GemmProblem p;
        p.type = type;
        p.m = 19;
        p.n = 23;
        p.k = 24;
        p.batch = {{.size = 2, .a = 19 * 3 * 24, .b = 24 * 3 * 24, .c = 3 * 19 * 23},
                   {.size = 3, .a = 24, .b = 24, .c = 19 * 23}};
        p.a_m = 3 * 24;
        p.a_k = 1;
        p.b_k = transposed_b ? 1 : 3 * 24;
        p.b_n = transposed_b ? 3 * 24 : 1;
        p.c_m = 23;
        CheckGemm({.cpu = cpu, .problem = p});
        p.batch[0].b = p.batch[1].b = 0;
        p.b_constant = true;
        CheckGemm({.cpu = cpu, .problem = p});
        if (IsFloat(type)) {
          CheckGemm({.cpu = cpu, .problem = p, .epilogue = Epilogue::kBiasRelu});
          CheckGemm({.cpu = cpu, .problem = p, .epilogue = Epilogue::kShortResidual});
        }
      }
    }
  }
}

// Operands that are converted as they are read or packed.
TEST(CodegenGemm, OperandsOfOtherTypes) {
  struct Types {
    ElementType type, a, b;
  };
  const Types all[] = {{kF32, ElementType::kF16, ElementType::kF16},
                       {kF32, ElementType::kBF16, ElementType::kBF16},
                       {kF32, kF32, ElementType::kBF16},
                       {kF32, ElementType::kF16, ElementType::kS8},
                       {ElementType::kF64, kF32, ElementType::kF64},
                       {ElementType::kS32, ElementType::kS8, ElementType::kU8},
                       {ElementType::kS32, ElementType::kS16, ElementType::kS32}};
  for (const target::Cpu& cpu : GemmCpus()) {
    for (const Types& types : all) {
      for (auto [m, n, k] : {std::tuple(1, 40, 33), {3, 130, 70}, {53, 151, 90}, {40, 1, 19}}) {
        for (int variant = 0; variant < 9; ++variant) {
          GemmProblem p = GemmProblem::RowMajor(types.type, m, n, k, variant == 7 ? 2 : 1);
          p.a_type = types.a;
          p.b_type = types.b;
          p.b_constant = variant == 1 || variant == 7;
          if (variant == 2 || variant == 8) p.b_k = 1, p.b_n = k;
          if (variant == 3) p.a_m = 1, p.a_k = m;
          if (variant == 4) p = p.Transposed();
          if (variant < 5) {
            CheckGemm({.cpu = cpu, .problem = p});
            continue;
          }
          CheckGemm({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                       s.prefetch_b = true;
                       if (s.kind == GemmKind::kInner || variant == 8) return;
                       s.unit = GemmUnit::kElement;
                       s.b = variant == 5   ? GemmB::kInPlace
                             : variant == 6 ? GemmB::kPackPanel
                                            : GemmB::kPrepacked;
                       s.pack_a = variant != 6;
                       s.kc = 32;
                     }});
        }
      }
    }
  }
}

// One row by a matrix beyond the second cache, which is read once, with its rows or its columns
// along the sum.
TEST(CodegenGemm, OneRowByLargeMatrices) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (ElementType type : {kF32, ElementType::kBF16, ElementType::kS8}) {
      for (bool columns_in_order : {false, true}) {
        GemmProblem p = GemmProblem::RowMajor(kF32, 1, 1040, cpu.l2_bytes / 1024 + 7);
        p.b_type = type;
        if (columns_in_order) p.b_k = 1, p.b_n = p.k;
        Result<GemmSchedule> s = ChooseGemmSchedule(cpu, p);
        ASSERT_TRUE(s.ok());
        EXPECT_EQ(s->kind == GemmKind::kInner, columns_in_order) << s->ToString();
        const bool late = !columns_in_order && cpu.vector_bytes == 64;
        EXPECT_EQ(s->prefetch_b, late || type != kF32) << s->ToString();
        CheckGemm({.cpu = cpu, .problem = p});
      }
    }
  }
}

// With sixteen registers chains of additions are as many as the latency of one asks for, tiles of
// one vector have one step in a turn, and matrices of many rows meet packed panels where those in
// place would not stay in the first cache. AVX-512 reads them in place.
TEST(CodegenGemm, SixteenRegisters) {
  target::Cpu cpu{.vector_bytes = 32, .vector_registers = 16, .has_fma = true};
  cpu.l2_bytes = 512 << 10;
  target::Cpu wide = cpu;
  wide.vector_bytes = 64, wide.vector_registers = 32, wide.has_masks = true;
  auto choose = [](const target::Cpu& cpu, int64_t m, int64_t n, int64_t k) {
    return *ChooseGemmSchedule(cpu, GemmProblem::RowMajor(kF32, m, n, k));
  };
  for (int64_t size : {32, 64, 128, 256, 1024}) {
    const GemmSchedule s = choose(cpu, size, size, size);
    EXPECT_GE(s.mr * s.nv, 10) << s.ToString();
  }
  const GemmSchedule one_vector = choose(cpu, 512, 4, 256);
  EXPECT_EQ(one_vector.nv * one_vector.unroll, 1) << one_vector.ToString();
  for (auto [m, n, k] : {std::tuple(256, 256, 256), {128, 3072, 768}, {196, 1024, 256}}) {
    EXPECT_EQ(choose(cpu, m, n, k).b, GemmB::kPackPanel);
    EXPECT_EQ(choose(wide, m, n, k).b, GemmB::kInPlace);
  }
  for (auto [m, n, k] : {std::tuple(200, 200, 200), {128, 128, 128}, {16, 768, 768}}) {
    EXPECT_EQ(choose(cpu, m, n, k).b, GemmB::kInPlace);
  }
  // Groups of tiles meet a panel that stays in the first cache beside them.
  EXPECT_GT(choose(cpu, 784, 512, 128).group_m, 8);
  EXPECT_EQ(choose(cpu, 784, 512, 512).group_m, 1);
  EXPECT_EQ(choose(wide, 784, 512, 128).group_m, 1);
}

// Long sums are cut, and groups of tiles meet a panel, where few panels of the whole sum would stay
// in the second cache while rows that do not stay there pass by.
TEST(CodegenGemm, LongSumsOfManyRows) {
  for (target::Cpu cpu : GemmCpus()) {
    cpu.l1_bytes = 32 << 10;
    cpu.l2_bytes = 256 << 10;
    cpu.l3_bytes = 1 << 20;
    for (bool constant : {false, true}) {
      for (int64_t m : {3, 101}) {
        GemmProblem p = GemmProblem::RowMajor(kF32, m, 500, 1601, 2);
        p.b_constant = constant;
        if (constant) p.batch[0].b = 0;
        const GemmSchedule s = *ChooseGemmSchedule(cpu, p);
        const bool is_long = m > 3 && cpu.vector_bytes < 64;
        EXPECT_EQ(s.k_blocks == 2, is_long) << s.ToString();
        EXPECT_EQ(s.group_m > 1, is_long) << s.ToString();
        CheckGemm({.cpu = cpu, .problem = p});
        CheckGemm({.cpu = cpu, .problem = p, .epilogue = Epilogue::kBiasRelu});
      }
    }
  }
}

// A is packed where so many panels meet so much of it that it comes from memory again and again.
TEST(CodegenGemm, LargeOnesPackTheLeftFactor) {
  for (target::Cpu cpu : GemmCpus()) {
    cpu.l1_bytes = 32 << 10;
    cpu.l2_bytes = 512 << 10;
    cpu.l3_bytes = 32 << 20;
    const bool may_pack = cpu.vector_bytes < 64;
    for (bool constant : {false, true}) {
      auto choose = [&](int64_t m, int64_t n, int64_t k) {
        GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
        p.b_constant = constant;
        return *ChooseGemmSchedule(cpu, p);
      };
      const GemmSchedule s = choose(2048, 2048, 2048);
      EXPECT_EQ(s.pack_a, may_pack) << s.ToString();
      EXPECT_TRUE(!may_pack || (s.group_m > 1 && s.k_blocks > 2)) << s.ToString();
      EXPECT_EQ(choose(1536, 768, 1024).pack_a, may_pack);
      EXPECT_FALSE(choose(1024, 2048, 2048).pack_a);
      EXPECT_FALSE(choose(2048, 512, 2048).pack_a);
      EXPECT_FALSE(choose(2048, 2048, 768).pack_a);
    }
  }
}

// Tiles of any height are transposed as they are packed: rows along the sum, of any length, into
// the blocks of the sum.
TEST(CodegenGemm, PackedTilesOfAnyHeight) {
  for (const target::Cpu& cpu : GemmCpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32}) {
      for (int mr : {1, 3, 6, 14}) {
        for (int64_t k : {7, 33, 70}) {
          GemmProblem p = GemmProblem::RowMajor(type, 2 * mr + 1, 35, k, 2);
          p.a_m = k + 3;
          p.batch[0].a = p.m * p.a_m;
          CheckGemm({.cpu = cpu, .problem = p, .change = [&](GemmSchedule& s) {
                       s.kind = GemmKind::kOuter;
                       s.b = GemmB::kPackPanel;
                       s.by_columns = s.prefetch_a = false;
                       s.pack_a = s.panels_inner = s.polls = true;
                       s.mr = mr;
                       s.nv = 2;
                       s.block_m = s.group_m = 2;
                       s.block_n = 3;
                       s.kc = 32;
                       s.unroll = 2;
                     }});
        }
      }
    }
  }
}

// Tiles ask for the rows of the next one, where few columns meet rows that come from memory: in one
// piece, or in blocks of a long sum.
TEST(CodegenGemm, TilesAskForTheNextRows) {
  for (target::Cpu cpu : GemmCpus()) {
    cpu.l2_bytes = 64 << 10;
    for (auto [m, n, k] :
         {std::tuple(200, 10, 130), {200, 40, 131}, {90, 20, 2100}, {150, 3, 300}, {301, 1, 100}}) {
      const GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
      const GemmSchedule s = *ChooseGemmSchedule(cpu, p);
      EXPECT_EQ(s.prefetch_a, cpu.vector_bytes < 64) << s.ToString();
      EXPECT_EQ(s.k_blocks > 1, k > 2048) << s.ToString();
      for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu}) {
        CheckGemm({.cpu = cpu, .problem = p, .epilogue = epilogue});
      }
    }
    EXPECT_FALSE(ChooseGemmSchedule(cpu, GemmProblem::RowMajor(kF32, 200, 10, 60))->prefetch_a);
    EXPECT_FALSE(ChooseGemmSchedule(cpu, GemmProblem::RowMajor(kF32, 200, 300, 130))->prefetch_a);
  }
}

// Beside a left operand in the third cache a thread waits for one panel of a constant only, and
// finds the others in the second cache. Long sums are in blocks, so that there is room for the next
// panel.
TEST(CodegenGemm, PackedConstantsPassByPanels) {
  for (target::Cpu cpu : GemmCpus()) {
    cpu.l2_bytes = 1 << 20;
    cpu.l3_bytes = 32 << 20;
    for (int64_t k : {500, 2060}) {
      GemmProblem p = GemmProblem::RowMajor(kF32, 200, cpu.l2_bytes / 2 / 4 / k + 131, k);
      p.b_constant = true;
      Result<GemmSchedule> s = ChooseGemmSchedule(cpu, p);
      ASSERT_TRUE(s.ok());
      EXPECT_EQ(s->b, GemmB::kPrepacked) << s->ToString();
      EXPECT_EQ(s->block_n, 1) << s->ToString();
      EXPECT_TRUE(s->prefetch_b) << s->ToString();
      EXPECT_EQ(s->k_blocks > 1, k > 2048) << s->ToString();
      for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu}) {
        CheckGemm({.cpu = cpu, .problem = p, .epilogue = epilogue});
      }
    }
  }
}

TEST(CodegenGemm, RefusesWhatItCannotDo) {
  target::Cpu cpu = GemmCpus()[0];
  EXPECT_EQ(ChooseGemmSchedule(cpu, GemmProblem::RowMajor(kF32, 0, 1, 1)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      ChooseGemmSchedule(cpu, GemmProblem::RowMajor(ElementType::kF16, 2, 2, 2)).status().code(),
      Code::kUnimplemented);
}

}  // namespace
}  // namespace kiln::codegen
