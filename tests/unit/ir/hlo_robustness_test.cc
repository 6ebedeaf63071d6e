// Damaged text gives an error or a module, and never a crash.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "draw/dot.h"
#include "draw/page.h"
#include "draw/svg.h"
#include "ir/specialise.h"
#include "ir/verifier.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kSamples[] = {
    R"(HloModule sum, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }, entry_computation_layout={(f32[2,3]{1,0}, f32[N,<=4]{0,1})->(f32[2]{0}, f32[2,3]{1,0})}

FileNames
1 "a.py"

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(f32[] %x, f32[] %y), metadata={op_name="a/\"b\"\n" source_line=3}
}

ENTRY %main (p: f32[2,3], q: f32[N,<=4]) -> (f32[2], f32[2,3]) {
  %p = f32[2,3]{1,0:T(8,128)} parameter(0), sharding={replicated}
  %q = f32[N,<=4]{0,1} parameter(1)
  %zero = f32[] constant(-1.5e-3)
  /* the sum */ %r = f32[2]{0} reduce(%p, %zero), dimensions={1}, to_apply=%add
  %c = f32[2,3]{1,0} constant({ { nan(0x400001), -inf, 3 }, { 0x1p3, 5, 6 } })
  %d = f32[2,2]{1,0} dot(%p, %c), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %w = f32[4,7]{1,0} pad(%p, %zero), padding=1_1_0x2_0_1
  %l = f32[2,2]{1,0} slice(%w), slice={[0:4:2], [1:6:3]}
  %t = f32[7,4]{1,0} transpose(%w), dimensions={1,0}
  %b = f32[2,7,4]{2,1,0} broadcast(%t), dimensions={1,2}
  %h = f32[56]{0} reshape(%b)
  ROOT %out = (f32[2]{0}, f32[2,3]{1,0}) tuple(%r, %p)
}
)",
    R"(HloModule loop
cond {
  s = (s32[], pred[2], u8[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT lt = pred[] compare(i, n), direction=LT, type=SIGNED
}
body {
  s = (s32[], pred[2], u8[]) parameter(0)
  i = get-tuple-element(s), index=0
  m = pred[2] get-tuple-element(s), index=1
  k = u8[] get-tuple-element(s), index=2
  ROOT t = (s32[], pred[2], u8[]) tuple(add(i, s32[] constant(1)), m, k)
}
a { p = s32[] parameter(0) }
b { p = s32[] parameter(0)
  ROOT q = s32[] fusion(p), kind=kLoop, calls={ r = s32[] parameter(0)
    ROOT v = s32[] multiply(r, r) } }
ENTRY e {
  i = s32[] parameter(0)
  init = (s32[], pred[2], u8[]) tuple(i, pred[2] constant({1, false}), u8[] constant(255))
  w = (s32[], pred[2], u8[]) while(init), condition=cond, body=body
  x = s32[] get-tuple-element(w), index=0
  y = s32[] conditional(x, x, i), branch_computations={a, b}
  pb = pred[] compare(x, y), direction=NE
  z = s32[] conditional(pb, x, y), true_computation=a, false_computation=b
  o = s32[5,<=3] iota(), iota_dimension=1
}
)"};

// What a caller does with a module that was taken.
void Use(const Module& module) {
  EXPECT_TRUE(Verify(module).ok()) << Verify(module).ToString();
  std::string printed = ToHloText(module);
  auto again = ParseHloText(printed);
  ASSERT_TRUE(again.ok()) << again.status().ToString() << "\n" << printed;
  EXPECT_EQ(ToHloText(**again), printed);
  EXPECT_FALSE(draw::ToDot(module).empty());
  EXPECT_FALSE(draw::ToSvg(module).empty());
  EXPECT_FALSE(draw::ToHtml(module).empty());
  auto special = Specialise(module, {{"N", 3}});
  if (special.ok()) EXPECT_TRUE(Verify(**special).ok());
}

// Whether the text was taken; where it was not, the error says where.
bool Try(std::string_view text) {
  auto module = ParseHloText(text);
  if (module.ok()) {
    Use(**module);
    return true;
  }
  EXPECT_TRUE(StartsWith(module.status().message(), "line ")) << module.status().ToString();
  EXPECT_TRUE(module.status().code() == Code::kInvalidArgument ||
              module.status().code() == Code::kUnimplemented)
      << module.status().ToString();
  return false;
}

class HloRobustness : public ::testing::TestWithParam<size_t> {
 protected:
  std::string_view Sample() const { return kSamples[GetParam()]; }
};

TEST_P(HloRobustness, Whole) {
  auto module = ParseHloText(Sample());
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  Use(**module);
}

TEST_P(HloRobustness, CutOff) {
  int taken = 0;
  for (size_t size = 0; size < Sample().size(); ++size) taken += Try(Sample().substr(0, size));
  // Nothing but the last line break, and computations without an entry behind them, can be missed.
  EXPECT_LT(taken, 60);
}

TEST_P(HloRobustness, BytesChanged) {
  std::mt19937_64 random(7);
  constexpr std::string_view kCharacters = "%{}()[]=,.:<>-_/*\"\\ \n09aNxf\x80";
  int taken = 0;
  for (int run = 0; run < 4000; ++run) {
    std::string text(Sample());
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = kCharacters[random() % kCharacters.size()];
          break;
        case 2:
          text.erase(at, 1 + random() % 8);
          break;
        case 3:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
      }
      if (text.empty()) text = " ";
    }
    taken += Try(text);
  }
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 4000);
}

// Numbers are where sizes overflow.
TEST_P(HloRobustness, NumbersChanged) {
  std::mt19937_64 random(11);
  constexpr std::string_view kNumbers[] = {"-1",
                                           "0",
                                           "1",
                                           "2",
                                           "65",
                                           "4294967296",
                                           "1000000000",
                                           "2147483648",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "1e999"};
  for (int run = 0; run < 3000; ++run) {
    std::string text(Sample());
    size_t at = random() % text.size();
    at = text.find_first_of("0123456789", at);
    if (at == std::string::npos) continue;
    size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    text.replace(at, end - at, kNumbers[random() % std::size(kNumbers)]);
    Try(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, HloRobustness, ::testing::Range(size_t{0}, std::size(kSamples)));

KILN_LABEL(text, "Samples/HloRobustness");

}  // namespace
}  // namespace kiln::ir
