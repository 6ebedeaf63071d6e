// The evaluator's ops that move elements.
#include <gtest/gtest.h>

#include "support/interp.h"

namespace kiln {
namespace {

using testing::Apply;
using testing::Eval;
using testing::ValueOf;

TEST(InterpShape, Iota) {
  EXPECT_EQ(Eval("s32[2,3] iota(), iota_dimension=0"), "{ { 0, 0, 0 }, { 1, 1, 1 } }");
  EXPECT_EQ(Eval("f32[2,3] iota(), iota_dimension=1"), "{ { 0, 1, 2 }, { 0, 1, 2 } }");
  EXPECT_EQ(Eval("s64[0,3] iota(), iota_dimension=1"), "{  }");
  // Counts past the type's range wrap.
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  i = u8[300] iota(), iota_dimension=0
  ROOT s = u8[2] slice(i), slice={[255:257]}
})"),
            "{255, 0}");
}

TEST(InterpShape, Broadcast) {
  EXPECT_EQ(Eval("s32[2,2] broadcast(s32[] constant(7)), dimensions={}"), "{ { 7, 7 }, { 7, 7 } }");
  EXPECT_EQ(Eval("s32[2,3] broadcast(s32[2] constant({1, 2})), dimensions={0}"),
            "{ { 1, 1, 1 }, { 2, 2, 2 } }");
  // The dimensions need not keep their order.
  EXPECT_EQ(Eval("s32[3,2] broadcast(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1,0}"),
            "{ { 1, 4 }, { 2, 5 }, { 3, 6 } }");
  EXPECT_EQ(Eval("u8[0] broadcast(u8[] constant(1)), dimensions={}"), "{}");
}

TEST(InterpShape, Concatenate) {
  EXPECT_EQ(Eval("s32[5] concatenate(s32[2] constant({1, 2}), s32[0] constant({}), "
                 "s32[3] constant({3, 4, 5})), dimensions={0}"),
            "{1, 2, 3, 4, 5}");
  EXPECT_EQ(Eval("f64[2,3] concatenate(f64[2,1] constant({{1}, {2}}), "
                 "f64[2,2] constant({{3, 4}, {5, 6}})), dimensions={1}"),
            "{ { 1, 3, 4 }, { 2, 5, 6 } }");
}

TEST(InterpShape, Pad) {
  auto pad = [](std::string_view padding, int size) {
    return Eval(Cat("s32[", size,
                    "] pad(s32[3] constant({1, 2, 3}), s32[] constant(9)), padding=", padding));
  };
  EXPECT_EQ(pad("1_2", 6), "{9, 1, 2, 3, 9, 9}");
  EXPECT_EQ(pad("0_0_2", 7), "{1, 9, 9, 2, 9, 9, 3}");
  EXPECT_EQ(pad("-1_0", 2), "{2, 3}");
  EXPECT_EQ(pad("0_-2", 1), "{1}");
  EXPECT_EQ(pad("-2_1_1", 4), "{2, 9, 3, 9}");
  // What is cut may be padding between elements.
  EXPECT_EQ(pad("-1_-1_1", 3), "{9, 2, 9}");
  EXPECT_EQ(pad("-3_2", 2), "{9, 9}");
  EXPECT_EQ(pad("5_-5", 3), "{9, 9, 9}");
  EXPECT_EQ(pad("-9223372036854775808_9223372036854775807", 2), "{9, 9}");
  EXPECT_EQ(Eval("s32[2,2] pad(s32[2,0] constant({{}, {}}), s32[] constant(4)), padding=0_0x1_1"),
            "{ { 4, 4 }, { 4, 4 } }");
  EXPECT_EQ(Eval("s32[1] pad(s32[1] constant({4}), s32[] constant(0)), "
                 "padding=0_0_9223372036854775807"),
            "{4}");
}

TEST(InterpShape, Reshape) {
  EXPECT_EQ(Eval("s32[3,2] reshape(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}}))"),
            "{ { 1, 2 }, { 3, 4 }, { 5, 6 } }");
  EXPECT_EQ(Eval("u8[] reshape(u8[1,1] constant({{5}}))"), "5");
  EXPECT_EQ(Eval("f32[0] reshape(f32[3,0] constant({{}, {}, {}}))"), "{}");
}

TEST(InterpShape, Slice) {
  EXPECT_EQ(Eval("s32[3] slice(s32[7] constant({0, 1, 2, 3, 4, 5, 6})), slice={[1:6:2]}"),
            "{1, 3, 5}");
  EXPECT_EQ(Eval("s32[2,1] slice(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), slice={[0:2], [2:3]}"),
            "{ {3}, {6} }");
  EXPECT_EQ(Eval("s32[0] slice(s32[3] constant({0, 1, 2})), slice={[3:3]}"), "{}");
  EXPECT_EQ(Eval("s32[1] slice(s32[3] constant({0, 1, 2})), slice={[1:3:9223372036854775807]}"),
            "{1}");
}

TEST(InterpShape, Transpose) {
  EXPECT_EQ(Eval("s32[3,2] transpose(s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})), dimensions={1,0}"),
            "{ { 1, 4 }, { 2, 5 }, { 3, 6 } }");
  // The result's dimension i is the operand's dimensions[i].
  EXPECT_EQ(Eval("s32[3,1,2] transpose(s32[1,2,3] constant({{{1, 2, 3}, {4, 5, 6}}})), "
                 "dimensions={2,0,1}"),
            "{ { { 1, 4 } }, { { 2, 5 } }, { { 3, 6 } } }");
  EXPECT_EQ(Eval("pred[] transpose(pred[] constant(true)), dimensions={}"), "true");
}

TEST(InterpShape, LayoutsDoNotMatter) {
  EXPECT_EQ(ValueOf(R"(HloModule m
ENTRY e {
  a = s32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})
  b = s32[2,3]{1,0} copy(a)
  ROOT c = s32[6]{0} reshape(b)
})"),
            "{1, 2, 3, 4, 5, 6}");
}

}  // namespace
}  // namespace kiln
