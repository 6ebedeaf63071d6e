// How single kernels go through memory on a CPU with vectors of 32 bytes, and their values.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/compiled.h"
#include "support/hlo.h"

namespace kiln::testing {
namespace {

// The schedule of a program's one kernel, if that is a nest.
std::optional<kernel::CpuNestSchedule> NestOf(const std::string& text) {
  auto compiled = CompileWithKernels(ir::ParseOrDie(text), target::HostCpuWithVectors(32));
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok() || compiled->lowered.kernels.size() != 1) return std::nullopt;
  const kernel::KernelSchedule& schedule = (*compiled->lowered.kernels.begin()).schedule;
  const auto* nest = std::get_if<kernel::CpuNestSchedule>(&schedule);
  return nest ? std::optional(*nest) : std::nullopt;
}

// Bytes are transposed in squares as others are, and all of a line at a time.
TEST(NestSchedules, TransposeOfBytes) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = s8[512,384] parameter(0)
  ROOT y = s8[384,512] transpose(x), dimensions={1,0}
})";
  Check(text);
  const auto nest = NestOf(text);
  ASSERT_TRUE(nest);
  EXPECT_TRUE(nest->tile_variable.valid());
  EXPECT_EQ(nest->vector_width, 16);
  EXPECT_EQ(nest->block % 64, 0);
}

// What is behind a row of a table is not what is read next.
TEST(NestSchedules, RowsOfATable) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[20000,64] parameter(0)
  i = s32[300,1] parameter(1)
  ROOT y = f32[300,64] gather(x, i), offset_dims={1}, collapsed_slice_dims={0},
      start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
})";
  Check(text);
  const auto nest = NestOf(text);
  ASSERT_TRUE(nest);
  EXPECT_TRUE(nest->prefetches.empty()) << nest->ToString();
}

// A few channels are summed where strided vectors of them are loaded; a gemm would pack them first.
TEST(NestSchedules, FewChannels) {
  for (const char* product : {"dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
                              "dot(w, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}"}) {
    const std::string text = std::string(R"(HloModule m
ENTRY e {
  x = f32[1003,3] parameter(0)
  w = f32[3] parameter(1)
  ROOT y = f32[1003] )") + product +
                             "\n}";
    Check(text);
    const auto nest = NestOf(text);
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->vector_width, 8);
  }
}

// Rows of 64 numbers are normalised as columns, transposed in registers.
TEST(NestSchedules, NormalisedShortRows) {
  const std::string text = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[8192,64] parameter(0)
  zero = f32[] constant(0)
  part = f32[] constant(0.015625)
  parts = f32[8192] broadcast(part), dimensions={}
  s = f32[8192] reduce(x, zero), dimensions={1}, to_apply=add
  m = f32[8192] multiply(s, parts)
  mb = f32[8192,64] broadcast(m), dimensions={0}
  c = f32[8192,64] subtract(x, mb)
  cc = f32[8192,64] multiply(c, c)
  q = f32[8192] reduce(cc, zero), dimensions={1}, to_apply=add
  v = f32[8192] multiply(q, parts)
  r = f32[8192] rsqrt(v)
  rb = f32[8192,64] broadcast(r), dimensions={0}
  ROOT y = f32[8192,64] multiply(c, rb)
})";
  Check(text);
  const auto nest = NestOf(text);
  ASSERT_TRUE(nest);
  EXPECT_GT(nest->strips.width, 0);
  EXPECT_TRUE(nest->stages.front().by_columns) << nest->ToString();
}

// Where both dimensions are in pieces, each piece of the rows has loops over those of the columns,
// without masks.
TEST(NestSchedules, PadsOfBothDimensions) {
  const std::string text = R"(HloModule m
ENTRY e {
  x = f32[40,500] parameter(0)
  above = f32[3,500] slice(x), slice={[1:4],[0:500]}
  top = f32[3,500] reverse(above), dimensions={0}
  below = f32[3,500] slice(x), slice={[36:39],[0:500]}
  bottom = f32[3,500] reverse(below), dimensions={0}
  tall = f32[46,500] concatenate(top, x, bottom), dimensions={0}
  before = f32[46,5] slice(tall), slice={[0:46],[1:6]}
  left = f32[46,5] reverse(before), dimensions={1}
  after = f32[46,5] slice(tall), slice={[0:46],[494:499]}
  right = f32[46,5] reverse(after), dimensions={1}
  ROOT y = f32[46,510] concatenate(left, tall, right), dimensions={1}
})";
  Check(text, 0, 0);
  const auto nest = NestOf(text);
  ASSERT_TRUE(nest);
  ASSERT_EQ(nest->cases.size(), 2u) << nest->ToString();
  EXPECT_EQ(nest->cases[0].begins, (std::vector<int64_t>{0, 3, 43}));
  EXPECT_EQ(nest->cases[1].begins, (std::vector<int64_t>{0, 5, 505}));
}

}  // namespace
}  // namespace kiln::testing
