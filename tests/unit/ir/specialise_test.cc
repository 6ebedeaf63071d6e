#include "ir/specialise.h"

#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kModule = R"(HloModule m
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y)
}
scale {
  a = f32[N,M] parameter(0)
  b = f32[N,M] multiply(a, a)
}
ENTRY main {
  p = f32[N,784] parameter(0)
  w = (f32[784,M]{0,1}, f32[<=4]) parameter(1)
  v = f32[784,M]{0,1} get-tuple-element(w), index=0
  d = f32[N,M] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[N,M] call(d), to_apply=scale
  whole = f32[N,M] slice(c), slice={[0:-1], [0:-1]}
  zero = f32[] constant(0)
  pad = f32[N,M] pad(whole, zero), padding=0_0x0_0
  rows = f32[N] reduce(pad, zero), dimensions={1}, to_apply=add
  wide = f32[2,N,M] broadcast(rows), dimensions={1}
  flat = f32[M,N,1,2] reshape(wide)
  i = s32[N,3] iota(), iota_dimension=0
  ROOT t = (f32[M,N,1,2], s32[N,3]) tuple(flat, i)
})";

const ElementType F32 = ElementType::kF32;

TEST(Specialise, MatchesArguments) {
  auto module = ParseOrDie(kModule);
  Shape p(F32, {16, 784});
  Shape w = Shape::Tuple({Shape(F32, {784, 10}), Shape(F32, {3})});
  auto sizes = MatchSymbols(*module, std::vector<Shape>{p, w});
  ASSERT_TRUE(sizes.ok()) << sizes.status().ToString();
  EXPECT_EQ(*sizes, (std::map<std::string, int64_t>{{"M", 10}, {"N", 16}}));

  auto error = [&](std::vector<Shape> arguments) {
    auto result = MatchSymbols(*module, arguments);
    return result.ok() ? "OK" : std::string(result.status().message());
  };
  EXPECT_EQ(error({p}), "there are 1 arguments; expected 2");
  EXPECT_NE(error({Shape(F32, {16, 783}), w})
                .find("argument 0 has shape f32[16,783]; expected f32[N,784]"),
            std::string::npos);
  EXPECT_NE(error({Shape(ElementType::kF64, {16, 784}), w}), "OK");
  EXPECT_NE(error({Shape(F32, {16}), w}), "OK");
  EXPECT_NE(error({p, Shape::Tuple({Shape(F32, {784, 10}), Shape(F32, {5})})}), "OK");
  EXPECT_NE(error({p, p}), "OK");
}

TEST(Specialise, OneSymbolHasOneSize) {
  auto module = ParseOrDie("ENTRY e { p = f32[N,N] parameter(0) }");
  EXPECT_TRUE(MatchSymbols(*module, std::vector<Shape>{Shape(F32, {3, 3})}).ok());
  auto result = MatchSymbols(*module, std::vector<Shape>{Shape(F32, {3, 4})});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("where N is 3 already"), std::string_view::npos);
}

TEST(Specialise, PutsSizesIn) {
  auto module = ParseOrDie(kModule);
  auto special = Specialise(*module, {{"N", 16}, {"M", 10}, {"unused", 1}});
  ASSERT_TRUE(special.ok()) << special.status().ToString();
  EXPECT_TRUE(Verify(**special).ok());
  std::string text = ToHloText(**special);
  for (std::string_view line :
       {"%p = f32[16,784]{1,0} parameter(0)", "%b = f32[16,10]{1,0} multiply(%a, %a)",
        "%v = f32[784,10]{0,1} get-tuple-element(%w), index=0",
        "%whole = f32[16,10]{1,0} slice(%c), slice={[0:16], [0:10]}",
        "ROOT %t = (f32[10,16,1,2]{3,2,1,0}, s32[16,3]{1,0}) tuple(%flat, %i)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
  EXPECT_NE(ToHloText(*module).find("f32[N,784]"), std::string::npos)
      << "the original is as it was";
}

TEST(Specialise, RefusesSizesThatDoNotFit) {
  auto module = ParseOrDie(kModule);
  auto error = [&](const std::map<std::string, int64_t>& sizes) {
    auto result = Specialise(*module, sizes);
    return result.ok() ? "OK" : result.status().ToString();
  };
  EXPECT_NE(error({{"N", 16}}).find("symbol M has no size"), std::string::npos);
  EXPECT_NE(error({{"N", -1}, {"M", 1}}).find("negative dimension"), std::string::npos);
  EXPECT_NE(error({{"N", int64_t{1} << 40}, {"M", int64_t{1} << 40}}).find("more bytes"),
            std::string::npos);
  EXPECT_EQ(error({{"N", 0}, {"M", 1}}), "OK");
}

}  // namespace
}  // namespace kiln::ir
