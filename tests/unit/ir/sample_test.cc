// Seeded arguments: what the readers of a parameter want of its elements.
#include "ir/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "interp/interpreter.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

// A module with these instructions; the last one is the root.
std::unique_ptr<Module> Entry(const std::string& body, const std::string& computations = "") {
  return ParseOrDie("HloModule m\n" + computations + "ENTRY e {\n" + body + "\n}\n");
}
SampleRange RangeOf(const Module& module, int64_t parameter, std::vector<int64_t> path = {}) {
  return Sampler(module).RangeOf(*module.entry()->parameter(parameter), path);
}
bool IsIn(const Literal& value, int64_t low, int64_t high) {
  for (int64_t k = 0; k < value.shape().num_elements(); ++k) {
    if (value.AsInt(k) < low || value.AsInt(k) > high) return false;
  }
  return true;
}

constexpr char kGather[] = R"(
  x = f32[50,8,4] parameter(0)
  i = s32[40,2] parameter(1)
  ROOT g = f32[40,3,4] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={0},
      start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,3,4}, indices_are_sorted=true)";

TEST(Sample, IndicesOfAGatherAreInRange) {
  auto module = Entry(kGather);
  const SampleRange range = RangeOf(*module, 1);
  EXPECT_EQ(range.low, 0);
  EXPECT_EQ(range.high, 5);  // the smaller one of 49 and 8 - 3
  EXPECT_TRUE(range.sorted);
  const Literal indices = SampleArguments(*module, 7)[1];
  EXPECT_TRUE(IsIn(indices, 0, 5));
  for (int64_t k = 2; k < 80; k += 2) {
    const auto vector = [&](int64_t n) { return indices.AsInt(n) * 6 + indices.AsInt(n + 1); };
    EXPECT_LE(vector(k - 2), vector(k));
  }
}

TEST(Sample, IndicesOfAScatterAreDistinctWhereItSaysSo) {
  for (const char* count : {"40", "100"}) {
    auto module =
        Entry(std::string("x = f32[100,4] parameter(0)\n i = s32[") + count +
                  ",1] parameter(1)\n u = f32[" + count + R"(,4] parameter(2)
  ROOT s = f32[100,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add)",
              "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n");
    const Literal indices = SampleArguments(*module, 3)[1];
    EXPECT_TRUE(IsIn(indices, 0, 99));
    std::set<int64_t> seen;
    for (int64_t k = 0; k < indices.shape().num_elements(); ++k) seen.insert(indices.AsInt(k));
    EXPECT_EQ(static_cast<int64_t>(seen.size()), indices.shape().num_elements());
  }
}

TEST(Sample, ReadersBehindMovesCount) {
  // As JAX wraps negative indices, in a called computation, and out of a tuple.
  auto module = Entry(
      R"(t = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[9] get-tuple-element(t), index=1
  ROOT c = f32[2] call(x, i), to_apply=f)",
      R"(f {
  x = f32[9] parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  n = s32[] constant(9)
  less = pred[] compare(i, zero), direction=LT
  more = s32[] add(i, n)
  at = s32[] select(less, more, i)
  ROOT s = f32[2] dynamic-slice(x, at), dynamic_slice_sizes={2}
}
)");
  EXPECT_EQ(RangeOf(*module, 0, {0}).high, 7);
  EXPECT_EQ(RangeOf(*module, 0, {0}).low, 0);
  // As a part of a loop's state.
  module = Entry(
      R"(i = s32[] parameter(0)
  x = f32[5] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], s32[], f32[5]) tuple(zero, i, x)
  ROOT w = (s32[], s32[], f32[5]) while(s), condition=c, body=b)",
      R"(c {
  s = (s32[], s32[], f32[5]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  three = s32[] constant(3)
  ROOT p = pred[] compare(n, three), direction=LT
}
b {
  s = (s32[], s32[], f32[5]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  i = s32[] get-tuple-element(s), index=1
  x = f32[5] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  u = f32[1] constant({2})
  y = f32[5] dynamic-update-slice(x, u, i)
  ROOT r = (s32[], s32[], f32[5]) tuple(next, i, y)
}
)");
  EXPECT_EQ(RangeOf(*module, 0).high, 4);
}

TEST(Sample, BranchesSizesAndLabels) {
  auto module = Entry(
      R"(b = s32[] parameter(0)
  x = f32[4] parameter(1)
  ROOT c = f32[4] conditional(b, x, x, x), branch_computations={f, f, f})",
      "f { x = f32[4] parameter(0) ROOT n = f32[4] negate(x) }\n");
  EXPECT_EQ(RangeOf(*module, 0).high, 2);
  module = Entry(R"(labels = s32[6] parameter(0)
  classes = s32[6,10] iota(), iota_dimension=1
  each = s32[6,10] broadcast(labels), dimensions={0}
  ROOT hot = pred[6,10] compare(each, classes), direction=EQ)");
  EXPECT_EQ(RangeOf(*module, 0).high, 9);
  EXPECT_EQ(RangeOf(*module, 0).low, 0);
}

TEST(Sample, NumbersSuitTheirReaders) {
  auto module = Entry(R"(v = f32[4] parameter(0)
  w = f32[100,4] parameter(1)
  x = f32[3,100] parameter(2)
  a = f32[4,4] parameter(3)
  small = f32[] constant(0.001)
  eps = f32[4] broadcast(small), dimensions={}
  sum = f32[4] add(v, eps)
  root = f32[4] rsqrt(sum)
  y = f32[3,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  l = f32[4,4] cholesky(a), lower=true
  ROOT t = (f32[4], f32[3,4], f32[4,4]) tuple(root, y, l))");
  EXPECT_TRUE(RangeOf(*module, 0).positive);
  EXPECT_DOUBLE_EQ(RangeOf(*module, 1).magnitude, 0.2);
  EXPECT_TRUE(RangeOf(*module, 3).dominant_diagonal);
  auto result = interp::Evaluate(*module, SampleArguments(*module, 5));
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  for (const Literal& part : result->elements()) {
    for (int64_t k = 0; k < part.shape().num_elements(); ++k) {
      EXPECT_TRUE(std::isfinite(part.AsDouble(k))) << part.ToString();
    }
  }
}

TEST(Sample, WhatNobodyReadsHasTheDefaultRange) {
  auto module = Entry(R"(a = s32[5] parameter(0)
  b = u8[5] parameter(1)
  c = s64[] parameter(2)
  ROOT t = (s32[5], u8[5], s64[]) tuple(a, b, c))");
  EXPECT_EQ(RangeOf(*module, 0).low, -9);
  EXPECT_EQ(RangeOf(*module, 0).high, 9);
  EXPECT_EQ(RangeOf(*module, 1).low, 0);
  EXPECT_EQ(RangeOf(*module, 2).high, 3);
  EXPECT_EQ(SampleArguments(*module, 1), SampleArguments(*module, 1));
  EXPECT_NE(SampleArguments(*module, 1), SampleArguments(*module, 2));
}

TEST(Sample, IndicesFitTheirType) {
  for (const char* type : {"s8", "u8", "s4", "u4", "s64"}) {
    auto module = Entry(std::string("x = f32[50000] parameter(0)\n i = ") + type +
                        R"([200,1] parameter(1)
  ROOT g = f32[200,1] gather(x, i), offset_dims={1}, collapsed_slice_dims={},
      start_index_map={0}, index_vector_dim=1, slice_sizes={1})");
    EXPECT_TRUE(IsIn(SampleArguments(*module, 1)[1], 0, 49999)) << type;
  }
}

}  // namespace
}  // namespace kiln::ir
