// The evaluator's ops that read and write slices: dynamic slices, gather and scatter.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Eval;
using testing::ValueOf;

// dynamic-slice of size 2 of {10, 20, 30, 40} at a start of some type.
std::string SliceAt(std::string_view type, std::string_view start) {
  return ValueOf(Cat("HloModule m\nENTRY e {\n  x = s32[4] constant({10, 20, 30, 40})\n  s = ",
                     type, "[] constant(", start,
                     ")\n  ROOT r = s32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}\n}\n"));
}

TEST(InterpIndexedOps, DynamicSliceMovesItsStart) {
  EXPECT_EQ(SliceAt("s32", "0"), "{10, 20}");
  EXPECT_EQ(SliceAt("s64", "1"), "{20, 30}");
  EXPECT_EQ(SliceAt("u8", "3"), "{30, 40}");
  EXPECT_EQ(SliceAt("s8", "-100"), "{10, 20}");
  EXPECT_EQ(SliceAt("s64", "-9223372036854775808"), "{10, 20}");
  EXPECT_EQ(SliceAt("s64", "9223372036854775807"), "{30, 40}");
  EXPECT_EQ(SliceAt("u64", "18446744073709551615"), "{30, 40}");
  EXPECT_EQ(SliceAt("u32", "4294967295"), "{30, 40}");
}

TEST(InterpIndexedOps, DynamicSliceOfSeveralDimensions) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = u8[3,4] constant({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}})
  i = s32[] constant(1)
  j = s32[] constant(9)
  a = u8[2,2] dynamic-slice(x, i, j), dynamic_slice_sizes={2,2}
  b = u8[3,0] dynamic-slice(x, j, i), dynamic_slice_sizes={3,0}
  c = u8[3,4] dynamic-slice(x, i, j), dynamic_slice_sizes={3,4}
  s = f32[] constant(5)
  d = f32[] dynamic-slice(s), dynamic_slice_sizes={}
  ROOT r = (u8[2,2], u8[3,0], u8[3,4], f32[]) tuple(a, b, c, d) })"),
            "({ { 7, 8 }, { 11, 12 } }, { {}, {}, {} }, "
            "{ { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, 5)");
}

TEST(InterpIndexedOps, DynamicUpdateSlice) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e { x = f64[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  u = f64[1,2] constant({{8, 9}})
  whole = f64[2,3] constant({{0, 0, 0}, {0, 0, 1}})
  none = f64[0,3] constant({})
  i = s32[] constant(7)
  j = s32[] constant(-7)
  a = f64[2,3] dynamic-update-slice(x, u, i, j)
  b = f64[2,3] dynamic-update-slice(x, u, j, i)
  c = f64[2,3] dynamic-update-slice(x, whole, i, j)
  d = f64[2,3] dynamic-update-slice(x, none, i, j)
  ROOT r = (f64[2,3], f64[2,3], f64[2,3], f64[2,3]) tuple(a, b, c, d) })"),
            "({ { 1, 2, 3 }, { 8, 9, 6 } }, { { 1, 8, 9 }, { 4, 5, 6 } }, "
            "{ { 0, 0, 0 }, { 0, 0, 1 } }, { { 1, 2, 3 }, { 4, 5, 6 } })");
}

std::string GatherOf(std::string_view operand, std::string_view indices, std::string_view result,
                     std::string_view attributes) {
  return ValueOf(Cat("HloModule m\nENTRY e {\n  x = ", operand, "\n  i = ", indices,
                     "\n  ROOT r = ", result, " gather(x, i), ", attributes, "\n}\n"));
}

constexpr char kTable[] = "s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})";

TEST(InterpIndexedOps, GatherRows) {
  EXPECT_EQ(GatherOf(kTable, "s32[4] constant({2, 0, -5, 9})", "s32[4,2]",
                     "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                     "index_vector_dim=1, slice_sizes={1,2}"),
            "{ { 5, 6 }, { 1, 2 }, { 1, 2 }, { 5, 6 } }");
  // The slices' dimension first, and the index vectors' in the middle.
  EXPECT_EQ(GatherOf(kTable, "s64[2,1,2] constant({{{2, 0}}, {{1, 1}}})", "s32[2,2,2]",
                     "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
                     "index_vector_dim=1, slice_sizes={1,2}"),
            "{ { { 5, 1 }, { 3, 3 } }, { { 6, 2 }, { 4, 4 } } }");
}

TEST(InterpIndexedOps, GatherSlices) {
  // Components in another order than the operand's dimensions; slices that keep both.
  EXPECT_EQ(GatherOf(kTable, "u8[2,2] constant({{0, 1}, {1, 200}})", "s32[2,2,1]",
                     "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, "
                     "index_vector_dim=1, slice_sizes={2,1}"),
            "{ { {3}, {5} }, { {4}, {6} } }");
  // Single elements by one vector, and by a scalar index.
  EXPECT_EQ(GatherOf(kTable, "s32[2] constant({2, 1})", "s32[]",
                     "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, "
                     "index_vector_dim=0, slice_sizes={1,1}"),
            "6");
  EXPECT_EQ(GatherOf(kTable, "s32[] constant(1)", "s32[2]",
                     "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, "
                     "index_vector_dim=0, slice_sizes={1,2}, indices_are_sorted=true"),
            "{3, 4}");
  // No index at all: every slice begins at 0.
  EXPECT_EQ(GatherOf(kTable, "s32[3,0] constant({{}, {}, {}})", "s32[3]",
                     "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={}, "
                     "index_vector_dim=1, slice_sizes={1,1}"),
            "{1, 1, 1}");
}

TEST(InterpIndexedOps, GatherBatches) {
  EXPECT_EQ(GatherOf(kTable, "s32[3,1] constant({{1}, {0}, {7}})", "s32[3]",
                     "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
                     "operand_batching_dims={0}, start_indices_batching_dims={0}, "
                     "index_vector_dim=1, slice_sizes={1,1}"),
            "{2, 3, 6}");
  // The batch is the indices' second dimension.
  EXPECT_EQ(GatherOf(kTable, "s32[2,3] constant({{1, 0, 0}, {0, 0, 1}})", "s32[2,3]",
                     "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
                     "operand_batching_dims={0}, start_indices_batching_dims={1}, "
                     "index_vector_dim=2, slice_sizes={1,1}"),
            "{ { 2, 3, 5 }, { 1, 3, 6 } }");
}

std::string ScatterOf(std::string_view operand, std::string_view indices, std::string_view updates,
                      std::string_view attributes, std::string_view op = "add") {
  return ValueOf(Cat(R"(HloModule m
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] )",
                     op == "second" ? "add" : op,
                     "(a, b) }\nsecond { a = s32[] parameter(0)\n  ROOT b = s32[] parameter(1) }\n",
                     "ENTRY e {\n  x = ", operand, "\n  i = ", indices, "\n  u = ", updates,
                     "\n  ROOT r = scatter(x, i, u), ", attributes,
                     ", to_apply=", op == "second" ? "second" : "f", "\n}\n"));
}

TEST(InterpIndexedOps, ScatterRows) {
  constexpr char kRows[] =
      "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
      "index_vector_dim=1";
  // Rows that collide add up; those outside are left out.
  EXPECT_EQ(ScatterOf(kTable, "s32[5] constant({2, 0, 2, -1, 3})",
                      "s32[5,2] constant({{10, 10}, {20, 20}, {30, 30}, {1, 1}, {1, 1}})", kRows),
            "{ { 21, 22 }, { 3, 4 }, { 45, 46 } }");
  // In order: what collides is not the same the other way round.
  EXPECT_EQ(ScatterOf(kTable, "s32[3] constant({1, 1, 1})",
                      "s32[3,2] constant({{1, 2}, {1, 1}, {7, 9}})", kRows, "subtract"),
            "{ { 1, 2 }, { -6, -8 }, { 5, 6 } }");
  // An index that no int64 holds is outside as well.
  EXPECT_EQ(ScatterOf(kTable, "u64[2] constant({18446744073709551615, 1})",
                      "s32[2,2] constant({{1, 2}, {1, 1}})", kRows),
            "{ { 1, 2 }, { 4, 5 }, { 5, 6 } }");
}

TEST(InterpIndexedOps, ScatterSlices) {
  // Slices of two elements that overlap; the last one is half outside, and left out whole.
  EXPECT_EQ(ScatterOf("s32[5] constant({0, 0, 0, 0, 0})", "s32[4,1] constant({{0}, {1}, {3}, {4}})",
                      "s32[4,2] constant({{1, 2}, {10, 20}, {3, 4}, {5, 6}})",
                      "update_window_dims={1}, inserted_window_dims={}, "
                      "scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
            "{1, 12, 20, 3, 4}");
  // Components in another order, slices first in the updates, one index vector.
  EXPECT_EQ(ScatterOf(kTable, "s32[2] constant({0, 1})", "s32[2,1] constant({{10}, {20}})",
                      "update_window_dims={0,1}, inserted_window_dims={}, "
                      "scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"),
            "{ { 1, 2 }, { 13, 4 }, { 25, 6 } }");
  EXPECT_EQ(ScatterOf("s32[] constant(5)", "s32[0] constant({})", "s32[] constant(3)",
                      "update_window_dims={}, inserted_window_dims={}, "
                      "scatter_dims_to_operand_dims={}, index_vector_dim=0"),
            "8");
  EXPECT_EQ(ScatterOf(kTable, "s32[0] constant({})", "s32[0,2] constant({})",
                      "update_window_dims={1}, inserted_window_dims={0}, "
                      "scatter_dims_to_operand_dims={0}, index_vector_dim=1"),
            "{ { 1, 2 }, { 3, 4 }, { 5, 6 } }");
}

TEST(InterpIndexedOps, ScatterBatches) {
  EXPECT_EQ(ScatterOf(kTable, "s32[3,2,1] constant({{{1}, {1}}, {{0}, {5}}, {{0}, {1}}})",
                      "s32[3,2] constant({{10, 20}, {30, 40}, {50, 60}})",
                      "update_window_dims={}, inserted_window_dims={1}, "
                      "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
                      "scatter_indices_batching_dims={0}, index_vector_dim=2"),
            "{ { 1, 32 }, { 33, 4 }, { 55, 66 } }");
}

TEST(InterpIndexedOps, ScatterReplaces) {
  EXPECT_EQ(
      ScatterOf(kTable, "s32[3] constant({1, 0, 1})", "s32[3,2] constant({{7, 7}, {8, 8}, {9, 9}})",
                "update_window_dims={1}, inserted_window_dims={0}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
                "indices_are_sorted=false, unique_indices=false",
                "second"),
      "{ { 8, 8 }, { 9, 9 }, { 5, 6 } }");
}

// Several operands at once: the larger value, and where it came from.
TEST(InterpIndexedOps, ScatterOfSeveral) {
  EXPECT_EQ(ValueOf(R"(HloModule m
larger { v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  y = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, y) }
ENTRY e { x = f32[3] constant({0.5, 0.5, 0.5})
  k = s32[3] constant({-1, -1, -1})
  at = s32[4] constant({0, 2, 0, 0})
  u = f32[4] constant({1, 2, 3, 1.5})
  n = s32[4] iota(), iota_dimension=0
  ROOT r = (f32[3], s32[3]) scatter(x, k, at, u, n), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=larger })"),
            "({3, 0.5, 2}, {2, -1, 1})");
}

// A computation that is more than elementwise ops.
TEST(InterpIndexedOps, ScatterByCalls) {
  EXPECT_EQ(ValueOf(R"(HloModule m
inner { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] subtract(a, b) }
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] call(b, a), to_apply=inner }
ENTRY e { x = s32[2] constant({1, 2})
  at = s32[2] constant({0, 0})
  u = s32[2] constant({5, 7})
  ROOT r = s32[2] scatter(x, at, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f })"),
            "{3, 2}");
}

}  // namespace
}  // namespace kiln
