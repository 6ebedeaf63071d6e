// Rows and columns on GPUs that stay in registers from one stage of a kernel to the next.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "kernel/schedule/gpu/schedule.h"
#include "support/gpu.h"

namespace kiln {
namespace {

using kernel::GpuSchedule;

std::string Reducers(std::string_view t) {
  return Cat("HloModule m\nadd { a = ", t, "[] parameter(0)\n  b = ", t,
             "[] parameter(1)\n  ROOT c = ", t, "[] add(a, b) }\nmax { a = ", t,
             "[] parameter(0)\n  b = ", t, "[] parameter(1)\n  ROOT c = ", t,
             "[] maximum(a, b) }\n");
}

// Over the dimension `along` of an array of such a shape.
std::string Softmax(std::string_view type, int64_t m, int64_t n, int along) {
  std::string shape = Cat(type, "[", m, ",", n, "]");
  std::string reduced = Cat(type, "[", along == 1 ? m : n, "]");
  std::string kept = Cat("dimensions={", 1 - along, "}"), gone = Cat("dimensions={", along, "}");
  return Cat(Reducers(type), "ENTRY e { x = ", shape, " parameter(0)\n  low = ", type,
             "[] constant(-inf)\n  zero = ", type, "[] constant(0)\n  m = ", reduced,
             " reduce(x, low), ", gone, ", to_apply=max\n  mb = ", shape, " broadcast(m), ", kept,
             "\n  d = ", shape, " subtract(x, mb)\n  e = ", shape,
             " exponential(d)\n  s = ", reduced, " reduce(e, zero), ", gone,
             ", to_apply=add\n  sb = ", shape, " broadcast(s), ", kept, "\n  ROOT r = ", shape,
             " divide(e, sb) }");
}

// With a scale for each column.
std::string Normalised(std::string_view type, int64_t m, int64_t n) {
  std::string shape = Cat(type, "[", m, ",", n, "]"), rows = Cat(type, "[", m, "]");
  std::string text = Cat(Reducers(type), "ENTRY e { x = ", shape, " parameter(0)\n  g = ", type,
                         "[", n, "] parameter(1)\n  zero = ", type, "[] constant(0)\n  n = ", type,
                         "[] constant(", n, ")\n  nb = ", rows, " broadcast(n), dimensions={}\n");
  return Cat(text, "  s = ", rows,
             " reduce(x, zero), dimensions={1}, to_apply=add\n  mean = ", rows,
             " divide(s, nb)\n  mb = ", shape, " broadcast(mean), dimensions={0}\n  d = ", shape,
             " subtract(x, mb)\n  q = ", shape, " multiply(d, d)\n  v = ", rows,
             " reduce(q, zero), dimensions={1}, to_apply=add\n  var = ", rows,
             " divide(v, nb)\n  r = ", rows, " rsqrt(var)\n  rb = ", shape,
             " broadcast(r), dimensions={0}\n  y = ", shape, " multiply(d, rb)\n  gb = ", shape,
             " broadcast(g), dimensions={1}\n  ROOT o = ", shape, " multiply(y, gb) }");
}

// The schedule of the one kernel that keeps rows; fails where there is none.
GpuSchedule KeptIn(const std::vector<GpuSchedule>& schedules) {
  for (const GpuSchedule& s : schedules) {
    if (s.kept.steps > 0) return s;
  }
  std::string all;
  for (const GpuSchedule& s : schedules) all += "\n" + s.ToString();
  ADD_FAILURE() << "no kernel keeps rows:" << all;
  return {};
}

bool KeepsNothing(const std::vector<GpuSchedule>& schedules) {
  return std::ranges::all_of(schedules, [](const GpuSchedule& s) { return s.kept.steps == 0; });
}

// Whole warps and blocks, rows that fill no step, and rows that fill several.
TEST(GpuRows, SoftmaxIsReadOnce) {
  for (int64_t n : {5, 100, 1024, 4100}) {
    GpuSchedule s = KeptIn(testing::CheckOnGpu(Softmax("f32", 5, n, 1)));
    // The rows in both stages that follow, and the exponentials from the second one.
    EXPECT_EQ(s.kept.loads.size(), 2u) << n;
    EXPECT_EQ(s.kept.replaced.size(), 1u) << n;
  }
}

TEST(GpuRows, TypesOfHalfSizeAndOfDouble) {
  for (const char* type : {"bf16", "f16", "f64"}) {
    for (int64_t n : {77, 1024}) KeptIn(testing::CheckOnGpu(Softmax(type, 6, n, 1)));
  }
}

TEST(GpuRows, Columns) {
  for (int64_t m : {7, 64, 129}) KeptIn(testing::CheckOnGpu(Softmax("f32", m, 70, 0)));
}

TEST(GpuRows, NormalisedRows) {
  for (int64_t n : {33, 768, 2052}) {
    GpuSchedule s = KeptIn(testing::CheckOnGpu(Normalised("f32", 3, n)));
    EXPECT_EQ(s.kept.loads.size(), 2u);
  }
}

// Several dimensions at once, in an order of their own in the result.
TEST(GpuRows, SeveralDimensionsAndTransposedResults) {
  KeptIn(testing::CheckOnGpu(Cat(Reducers("f32"), R"(
ENTRY e { x = f32[6,9,20] parameter(0)
  zero = f32[] constant(0)
  s = f32[9] reduce(x, zero), dimensions={0,2}, to_apply=add
  sb = f32[6,9,20] broadcast(s), dimensions={1}
  ROOT r = f32[6,9,20] divide(x, sb) })")));
  testing::CheckOnGpu(Cat(Reducers("f32"), R"(
ENTRY e { x = f32[40,64] parameter(0)
  zero = f32[] constant(0)
  s = f32[40] reduce(x, zero), dimensions={1}, to_apply=add
  sb = f32[40,64] broadcast(s), dimensions={0}
  d = f32[40,64] divide(x, sb)
  ROOT r = f32[64,40] transpose(d), dimensions={1,0} })"));
}

// Where registers do not hold it, rows are read again.
TEST(GpuRows, LongOnesAreReadAgain) {
  auto schedules = testing::CheckOnGpu(Softmax("f32", 2, 70000, 1));
  EXPECT_TRUE(KeepsNothing(schedules));
  for (const GpuSchedule& s : schedules) EXPECT_NE(s.form, GpuSchedule::Form::kSerial);
}

// A result in the memory of what it is made of.
TEST(GpuRows, InPlace) {
  std::string text = Softmax("f32", 9, 200, 1);
  text.replace(0, std::string("HloModule m").size(),
               "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }");
  KeptIn(testing::CheckOnGpu(text));
}

// Of the last block's teams those without a point of their own read nothing: what they would read
// is written over.
TEST(GpuRows, IdleTeamsReadNothingInPlace) {
  testing::CheckOnGpu(Cat(Reducers("f32"), R"(ENTRY e { x = f32[2,2,2] parameter(0)
  y = f32[2,2,2] parameter(1)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[2] reduce(x, low), dimensions={0,2}, to_apply=max
  b = f32[2,2,2] broadcast(m), dimensions={1}
  t = f32[2,2,2] tanh(y)
  p = f32[2,2,2] multiply(b, t)
  s = f32[2] reduce(p, zero), dimensions={0,2}, to_apply=add
  ROOT r = (f32[2,2,2], f32[2]) tuple(p, s) })"));
}

}  // namespace
}  // namespace kiln
