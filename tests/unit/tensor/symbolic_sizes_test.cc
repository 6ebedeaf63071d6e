// Sizes that are polynomials of symbols: their arithmetic, inference, HLO text, and numbers put in.
#include <gtest/gtest.h>

#include "ir/specialise.h"
#include "ir/verifier.h"
#include "support/hlo.h"
#include "tensor/dimension.h"

namespace kiln::ir {
namespace {

constexpr ElementType kF32 = ElementType::kF32;

// The shape of the root of an entry whose other shapes are left to inference, or the mistake.
std::string RootShape(std::string_view body) {
  auto module = ParseHloText(Cat("add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n",
                                 "s = f32[] add(x, y) }\nENTRY e {\n", body, "\n}"));
  if (!module.ok()) return module.status().ToString();
  const std::string shape = (*module)->entry()->root()->shape().ToString();
  // What is printed is read again as the same.
  auto again = ParseHloText(ToHloText(**module));
  if (!again.ok()) return again.status().ToString();
  EXPECT_EQ(ToHloText(**again), ToHloText(**module));
  return shape;
}

std::string WithParameters(std::string_view body) {
  return RootShape(Cat("x = f32[n,4] parameter(0)\n y = f32[m,4] parameter(1)\n",
                       "zero = f32[] constant(0)\n i = s32[] constant(0)\n",
                       "z = f32[2*n+1,4] parameter(2)\n ROOT r = ", body));
}

void ExpectMistake(std::string_view body, std::string_view part) {
  const std::string text = WithParameters(body);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(SymbolicSizes, NormalForm) {
  auto printed = [](std::string_view size) {
    auto module = ParseHloText(Cat("ENTRY e { p = f32[", size, "] parameter(0) }"));
    return module.ok() ? module.value()->entry()->root()->shape().ToString()
                       : std::string(module.status().message());
  };
  EXPECT_EQ(printed("2*n+1"), "f32[2*n+1]");
  EXPECT_EQ(printed("1 + n*2"), "f32[2*n+1]");
  EXPECT_EQ(printed("n+n+n-2*n"), "f32[n]");
  EXPECT_EQ(printed("n-n+7"), "f32[7]");
  EXPECT_EQ(printed("m*n+n*m"), "f32[2*m*n]");
  EXPECT_EQ(printed("n*n"), "f32[n*n]");
  EXPECT_EQ(printed("8-n"), "f32[-n+8]");
  EXPECT_EQ(printed("-n+8"), "f32[-n+8]");
  EXPECT_EQ(printed("b+a+a*b"), "f32[a*b+a+b]");
  EXPECT_NE(printed("2*").find("expected a size or a symbol"), std::string::npos);
  EXPECT_NE(printed("n*9223372036854775807*9").find("does not fit in an int64"), std::string::npos);
  EXPECT_NE(printed("n*n*n*n*n*n*n*n*n").find("product of 9 symbols"), std::string::npos);
  EXPECT_NE(printed("n-n-1").find("not negative"), std::string::npos);
  EXPECT_NE(printed("<=n").find("a number as the bound"), std::string::npos);
}

TEST(SymbolicSizes, Concatenate) {
  EXPECT_EQ(WithParameters("concatenate(x, x), dimensions={0}"), "f32[2*n,4]");
  EXPECT_EQ(WithParameters("concatenate(x, y), dimensions={0}"), "f32[m+n,4]");
  EXPECT_EQ(WithParameters("concatenate(x, z, y, x), dimensions={0}"), "f32[m+4*n+1,4]");
  ExpectMistake("concatenate(x, y), dimensions={1}", "concatenate");
}

TEST(SymbolicSizes, SliceAndPad) {
  EXPECT_EQ(WithParameters("slice(x), slice={[1:-1], [0:4]}"), "f32[n-1,4]");
  EXPECT_EQ(WithParameters("slice(x), slice={[1:n-1], [0:4]}"), "f32[n-2,4]");
  EXPECT_EQ(WithParameters("slice(z), slice={[n:2*n], [0:4]}"), "f32[n,4]");
  EXPECT_EQ(WithParameters("slice(z), slice={[1:2*n+1:2], [0:4]}"), "f32[n,4]");
  EXPECT_EQ(WithParameters("slice(z), slice={[0:2*n+1:2], [0:4]}"), "f32[n+1,4]");
  EXPECT_EQ(WithParameters("slice(x), slice={[0:3], [0:4]}"), "f32[3,4]");
  EXPECT_EQ(WithParameters("slice(x), slice={[n-2:n], [0:4]}"), "f32[2,4]");
  ExpectMistake("slice(x), slice={[0:n+1], [0:4]}", "expected 0 <= start <= limit <= n");
  ExpectMistake("slice(x), slice={[0:n:2], [0:4]}", "n+1 is no multiple of 2");
  ExpectMistake("slice(x), slice={[0:n:0], [0:4]}", "must be at least 1");
  EXPECT_EQ(WithParameters("pad(x, zero), padding=1_2x0_0"), "f32[n+3,4]");
  EXPECT_EQ(WithParameters("pad(x, zero), padding=-1_0_2x0_0"), "f32[3*n-3,4]");
  EXPECT_EQ(WithParameters("pad(x, zero), padding=0_(m)x0_0"), "f32[m+n,4]");
  EXPECT_EQ(WithParameters("pad(x, zero), padding=0_(8-n)x0_(n*m)"), "f32[8,m*n+4]");
  ExpectMistake("pad(x, zero), padding=0_(-n-1)x0_0", "leaves -1 elements");
}

TEST(SymbolicSizes, Reshape) {
  EXPECT_EQ(WithParameters("f32[4*n] reshape(x)"), "f32[4*n]");
  EXPECT_EQ(WithParameters("f32[2,2*n] reshape(x)"), "f32[2,2*n]");
  EXPECT_EQ(WithParameters("f32[8*n+4] reshape(z)"), "f32[8*n+4]");
  ExpectMistake("f32[4*n+1] reshape(x)", "equally many elements, with the same symbols");
  EXPECT_EQ(RootShape("x = f32[b,s,8] parameter(0)\n ROOT r = f32[b*s,8] reshape(x)"),
            "f32[b*s,8]");
}

TEST(SymbolicSizes, WindowsAndOthers) {
  EXPECT_EQ(WithParameters("reduce-window(x, zero), window={size=3x1}, to_apply=add"),
            "f32[n-2,4]");
  EXPECT_EQ(WithParameters("reduce-window(x, zero), window={size=3x1 pad=1_1x0_0}, to_apply=add"),
            "f32[n,4]");
  EXPECT_EQ(WithParameters("reduce-window(z, zero), window={size=2x1 stride=2x1}, to_apply=add"),
            "f32[n,4]");
  EXPECT_EQ(
      WithParameters("reduce-window(x, zero), window={size=1x1 lhs_dilate=3x1}, to_apply=add"),
      "f32[3*n-2,4]");
  ExpectMistake("reduce-window(x, zero), window={size=2x1 stride=2x1}, to_apply=add",
                "no multiple of 2");
  EXPECT_EQ(RootShape(R"(x = f32[1,2*n,3] parameter(0)
 w = f32[2,3,5] parameter(1)
ROOT r = convolution(x, w), window={size=2 stride=2}, dim_labels=b0f_0io->b0f)"),
            "f32[1,n,5]");
  EXPECT_EQ(WithParameters("dynamic-slice(z, i, i), dynamic_slice_sizes={n,4}"), "f32[n,4]");
  EXPECT_EQ(WithParameters("dynamic-slice(z, i, i), dynamic_slice_sizes={-1,2}"), "f32[2*n+1,2]");
  ExpectMistake("dynamic-slice(x, i, i), dynamic_slice_sizes={n+1,4}", "expected 0 to n");
  EXPECT_EQ(WithParameters("dynamic-update-slice(z, x, i, i)"), "f32[2*n+1,4]");
  EXPECT_EQ(RootShape("x = f32[2*n,4] parameter(0)\n i = s32[m+1,1] parameter(1)\n"
                      "ROOT r = gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, "
                      "start_index_map={0}, index_vector_dim=1, slice_sizes={n,4}"),
            "f32[m+1,n,4]");
  EXPECT_EQ(WithParameters("f32[2,2*n+1,4] broadcast(z), dimensions={1,2}"), "f32[2,2*n+1,4]");
  EXPECT_EQ(WithParameters("s32[2*n-1] iota(), iota_dimension=0"), "s32[2*n-1]");
  EXPECT_EQ(WithParameters("dot(z, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
            "f32[2*n+1,n]");
  EXPECT_EQ(WithParameters("reduce(z, zero), dimensions={1}, to_apply=add"), "f32[2*n+1]");
  ExpectMistake("add(x, y)", "must be equal");
}

// A module of an op of a vector x.
Result<std::unique_ptr<Module>> OfVector(std::string_view size, std::string_view op) {
  return ParseHloText(Cat("add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n",
                          "s = f32[] add(x, y) }\nENTRY e {\n x = f32[", size,
                          "] parameter(0)\n zero = f32[] constant(0)\n ROOT r = ", op, "\n}"));
}

std::string Replaced(std::string text, std::string_view part, int64_t number) {
  const size_t at = text.find(part);
  return at == std::string::npos ? text : text.replace(at, part.size(), Cat(number));
}

// What is inferred of symbols and then given numbers is what is inferred of numbers, wherever
// windows and interiors have something to be about.
TEST(SymbolicSizes, AgreeWithNumbers) {
  std::vector<std::string> ops;
  for (int64_t a : {-2, 0, 1, 3}) {
    for (int64_t b : {-1, 0, 2}) {
      for (int64_t interior : {0, 1, 2}) {
        ops.push_back(Cat("pad(x, zero), padding=", a, "_", b, "_", interior));
      }
    }
  }
  for (int64_t size : {1, 2, 3}) {
    for (int64_t stride : {1, 2, 3, 4}) {
      for (int64_t pad : {-1, 0, 2}) {
        for (int64_t dilate : {1, 2, 3}) {
          ops.push_back(Cat("reduce-window(x, zero), window={size=", size, " stride=", stride,
                            " pad=", pad, "_1 lhs_dilate=", dilate,
                            " rhs_dilate=2}, to_apply=add"));
        }
      }
      ops.push_back(Cat("slice(x), slice={[", size, ":(n):", stride, "]}"));
      ops.push_back(Cat("slice(x), slice={[(n):2*n:", stride, "]}"));
    }
  }
  struct Size {
    std::string_view text;
    int64_t times, plus;
  };
  int compared = 0;
  for (const Size& size : {Size{"n", 1, 0}, Size{"2*n+1", 2, 1}, Size{"12*n+7", 12, 7}}) {
    for (const std::string& op : ops) {
      auto module = OfVector(size.text, op);
      if (!module.ok()) continue;
      for (int64_t n : {2, 3, 5, 8}) {
        auto direct = OfVector(Cat(size.times * n + size.plus),
                               Replaced(Replaced(op, "2*n", 2 * n), "(n)", n));
        auto special = Specialise(**module, {{"n", n}});
        auto shape = [](const auto& made) {
          return made.ok() ? (*made)->entry()->root()->shape().ToString() : "refused";
        };
        // A window that is larger than all there is has no place, which symbols do not say.
        if (!special.ok() && shape(direct) == "f32[0]") continue;
        EXPECT_EQ(shape(special), shape(direct))
            << op << " of f32[" << size.text << "] with n = " << n;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 600);
}

Shape Vector(int64_t size) { return Shape(kF32, {size}); }

std::string Matched(std::string_view parameters, std::vector<Shape> arguments) {
  auto module = ParseOrDie(Cat("ENTRY e {\n", parameters, "\n}"));
  auto sizes = MatchSymbols(*module, arguments);
  if (!sizes.ok()) return sizes.status().ToString();
  std::string text;
  for (const auto& [name, size] : *sizes) text += Cat(name, "=", size, " ");
  return text;
}

TEST(SymbolicSizes, AreSolvedFor) {
  EXPECT_EQ(Matched("p = f32[2*n+1] parameter(0)", {Vector(7)}), "n=3 ");
  EXPECT_EQ(Matched("p = f32[-n+8] parameter(0)", {Vector(8)}), "n=0 ");
  EXPECT_EQ(Matched("p = f32[n+m] parameter(0)\n q = f32[m] parameter(1)", {Vector(7), Vector(2)}),
            "m=2 n=5 ");
  EXPECT_EQ(
      Matched("p = f32[n*m] parameter(0)\n q = f32[2*m] parameter(1)", {Vector(6), Vector(4)}),
      "m=2 n=3 ");
  EXPECT_EQ(Matched("p = f32[n*n] parameter(0)\n q = f32[n] parameter(1)", {Vector(9), Vector(3)}),
            "n=3 ");
  auto fails = [](std::string_view parameters, std::vector<Shape> arguments,
                  std::string_view part) {
    const std::string text = Matched(parameters, std::move(arguments));
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  fails("p = f32[2*n+1] parameter(0)", {Vector(8)}, "where 2*n+1 is 8 for no size n");
  fails("p = f32[n+3] parameter(0)", {Vector(2)}, "where n+3 is 2 for no size n");
  fails("p = f32[n+m] parameter(0)", {Vector(2)}, "m+n = 2 is not solved");
  fails("p = f32[n*n] parameter(0)", {Vector(9)}, "n*n = 9 is not solved");
  fails("p = f32[2*n] parameter(0)\n q = f32[n+1] parameter(1)", {Vector(4), Vector(4)},
        "where n+1 is 3 already");
}

TEST(SymbolicSizes, NumbersArePutIn) {
  auto module = ParseOrDie(R"(
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y) }
cond { t = (f32[m+n], s32[]) parameter(0)
  i = get-tuple-element(t), index=1
  k = s32[] constant(3)
  r = compare(i, k), direction=LT }
body { t = (f32[m+n], s32[]) parameter(0)
  v = get-tuple-element(t), index=0
  i = get-tuple-element(t), index=1
  one = s32[] constant(1)
  next = add(i, one)
  ROOT r = tuple(v, next) }
ENTRY e {
  p = f32[2*n+1,m] parameter(0)
  zero = f32[] constant(0)
  i = s32[] constant(1)
  tail = slice(p), slice={[n:2*n+1], [0:-1]}
  padded = pad(tail, zero), padding=(m)_(8-n)x0_0
  part = dynamic-slice(p, i, i), dynamic_slice_sizes={n,-1}
  sums = reduce(padded, zero), dimensions={1}, to_apply=add
  row = f32[m*n] reshape(part)
  both = concatenate(sums, row), dimensions={0}
  start = f32[m+n] broadcast(zero), dimensions={}
  state = (f32[m+n], s32[]) tuple(start, i)
  loop = (f32[m+n], s32[]) while(state), condition=cond, body=body
  looped = get-tuple-element(loop), index=0
  ROOT all = concatenate(both, looped), dimensions={0}
})");
  EXPECT_EQ(module->entry()->root()->shape().ToString(), "f32[m*n+2*m+n+9]");
  EXPECT_EQ(SymbolsOf(*module), (std::set<std::string>{"m", "n"}));
  for (auto [n, m] : {std::pair<int64_t, int64_t>{3, 5}, {0, 2}, {8, 1}}) {
    auto special = Specialise(*module, {{"n", n}, {"m", m}});
    ASSERT_TRUE(special.ok()) << special.status().ToString();
    EXPECT_TRUE(Verify(**special).ok());
    EXPECT_EQ((*special)->entry()->root()->shape().dim(0), m * n + 2 * m + n + 9);
    EXPECT_TRUE(SymbolsOf(**special).empty());
    const std::string text = ToHloText(**special);
    EXPECT_NE(text.find(Cat("slice={[", n, ":", 2 * n + 1, "], [0:", m, "]}")), std::string::npos)
        << text;
    EXPECT_NE(text.find(Cat("padding=", m, "_", 8 - n, "x0_0")), std::string::npos) << text;
  }
  auto error = [&](std::string_view text, const SymbolSizes& sizes) {
    auto special = Specialise(*ParseOrDie(text), sizes);
    return special.ok() ? "OK" : std::string(special.status().message());
  };
  EXPECT_EQ(error("ENTRY e { p = f32[-n+8] parameter(0) }", {{"n", 8}}), "OK");
  EXPECT_EQ(error("ENTRY e { p = f32[-n+8] parameter(0) }", {{"n", 9}}),
            "instruction 'p': dimension 0 of f32[-n+8] would be -1, which is a negative dimension");
  EXPECT_EQ(error("ENTRY e { p = f32[n*m] parameter(0) }",
                  {{"n", int64_t{1} << 40}, {"m", int64_t{1} << 40}}),
            "instruction 'p': dimension 0 of f32[m*n]: a size or one of its coefficients does not "
            "fit in an int64");
  EXPECT_EQ(error("ENTRY e { p = f32[n*m] parameter(0) }", {{"n", 2}}),
            "instruction 'p': dimension 0 of f32[m*n]: symbol m has no size");
  constexpr std::string_view kSlice =
      "ENTRY e { p = f32[n] parameter(0)\n s = slice(p), slice={[0:3]} }";
  EXPECT_EQ(error(kSlice, {{"n", 3}}), "OK");
  EXPECT_NE(error(kSlice, {{"n", 2}}).find("expected 0 <= start <= limit <= 2"), std::string::npos);
}

}  // namespace
}  // namespace kiln::ir
