// The values of LAPACK's functions, and their errors.
#include "support/lapack_calls.h"

namespace kiln::stablehlo::lapack {
namespace {

constexpr ElementType kF64 = ElementType::kF64;

// Of LAPACK, for arguments that are not random.
void ExpectResults(const Call& call, const std::vector<Literal>& arguments,
                   const std::vector<std::vector<Wide>>& expected) {
  std::vector<Item> items;
  RunCall(call, arguments, items);
  ASSERT_EQ(items.size(), 1u);
  ASSERT_LE(expected.size(), items[0].out.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<Wide>& found = items[0].out[i].elements;
    ASSERT_TRUE(expected[i].empty() || expected[i].size() == found.size());
    for (size_t k = 0; k < expected[i].size(); ++k) {
      EXPECT_LE(std::abs(found[k] - expected[i][k]), 2e-14) << call.name << " " << i << ", " << k;
    }
  }
}

TEST(StablehloLapack, RealValues) {
  const auto given = [](const Sizes& sizes, const std::vector<double>& x) {
    return Literal::Array<double>(Shape(kF64, std::span<const int64_t>(sizes)), x);
  };
  const Literal a = given({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 10});
  ExpectResults(Hessenberg(kF64, {}, 3, 1, 3), {a},
                {{1, -3.597007303087045, -0.24806946917841666, -8.06225774829855, 14.8, 2.4,
                  0.5803225354712214, 0.4, 0.2},
                 {1.4961389383568338, 0}});
  ExpectResults(ToTridiagonal(kF64, {}, 3, 'L'), {a},
                {{1, 2, 3, -8.06225774829855, 15.66153846153846, 6, 0.5803225354712214,
                  1.907692307692309, -0.6615384615384592},
                 {1, 15.66153846153846, -0.6615384615384592},
                 {-8.06225774829855, 1.907692307692309},
                 {1.4961389383568338, 0}});
  ExpectResults(ToTridiagonal(kF64, {}, 3, 'U'), {a},
                {{0.2, 0.4, 0.2360679774997897, 4, 5.8, -6.708203932499369, 7, 8, 10},
                 {0.2, 5.8, 10},
                 {0.4, -6.708203932499369},
                 {0, 1.8944271909999157}});
  const Call qr = PivotedQr(kF64, {}, 3, 3);
  ExpectResults(qr, {a, Literal(qr.operands[1].shape())},
                {{-12.041594578792296, -8.055411545812776, -9.633275663033835, 0.39889387847613067,
                  -1.0537290105080197, -0.37960423981034364, 0.664823130793551, 0.679637909006424,
                  -0.23643312187173038},
                 {3, 1, 2},
                 {1.24913643956122, 1.3680754382060891, 0}});
  ExpectResults(SelfAdjoint(kF64, {}, 3, 'V', 'L'), {given({3, 3}, {4, 9, 9, 1, 3, 9, 2, 0, 1})},
                {{}, {-0.06870782332995562, 2.7222456337625314, 5.346462189567422}, {0}});
  ExpectResults(Svd("gesdd", kF64, {}, 3, 2, 'N'), {given({3, 2}, {1, 2, 3, 4, 5, 6})},
                {{}, {9.525518091565107, 0.5143005806586443}});
  ExpectResults(Eigen(kF64, {}, 2), {given({2, 2}, {0, 1, -2, 2})}, {{1, 1}, {1, -1}});
  ExpectResults(Schur(kF64, {}, 2, 'V'), {given({2, 2}, {1, 2, -3, 1.5})}, {{}, {}, {1.25, 1.25}});
}

TEST(StablehloLapack, ComplexValues) {
  constexpr ElementType kC128 = ElementType::kC128;
  const Wide i(0, 1);
  const Literal a = Literal::Array<Wide>(
      Hessenberg(kC128, {}, 3, 1, 3).operands[0].shape(),
      std::vector<Wide>{1, 2.0 + i, 3, 4, 5.0 - 2.0 * i, 6.0 * i, 7, 8, 10.0 + i});
  ExpectResults(
      Hessenberg(kC128, {}, 3, 1, 3), {a},
      {{1, Wide(-3.597007303087045, -0.49613893835683376),
        Wide(0.7307815450297526, 0.5304177116467204), -8.06225774829855,
        Wide(12.215384615384616, 2.846153846153845), Wide(-1.3436387255926592, 4.570974357040397),
        0.5803225354712214, 5.238094418402047, Wide(2.7846153846153854, -3.8461538461538467)},
       {1.4961389383568338, Wide(1.7871329903088549, -0.6167833133017142)}});
  ExpectResults(ToTridiagonal(kC128, {}, 3, 'U'), {a},
                {{2.6, -2.9732137494637008, Wide(0.24845199749997662, -2 / 9.0), 4, 3.4,
                  -6.708203932499369, 7, 8, 10},
                 {2.6, 3.4, 10},
                 {-2.9732137494637008, -6.708203932499369},
                 {Wide(1.8100997786171518, -0.5862920336184362), Wide(1, 0.8944271909999159)}});
  const Call qr = PivotedQr(kC128, {}, 3, 3);
  ExpectResults(
      qr, {a, Literal(qr.operands[1].shape())},
      {{-12.083045973594572, Wide(-6.124283575657524, 2.896620610108288),
        Wide(-6.041522986797286, 2.5655782546673414), 0.3977976338800543 * i, -7.218222753976729,
        Wide(-4.65052053598527, -0.7221069430493343), Wide(0.6629960564667571, 0.06629960564667571),
        Wide(0.1559284254207507, 0.13386584280899172), -0.8769427155506244},
       {3, 2, 1},
       {1.2482817665807104, Wide(1.5881681618362073, -0.7248073330079468),
        Wide(1.790667861202982, 0.6122453211423519)}});
}

// Swaps of rows; the results are U's diagonals, the solution, and the first pivot that is 0.
TEST(StablehloLapack, ValuesOfTridiagonalSystems) {
  const Call call = Tridiagonal(kF64, {}, 3, 1), small = Tridiagonal(kF64, {}, 2, 1);
  const auto given = [&](size_t operand, const std::vector<double>& x) {
    return Literal::Array<double>(call.operands[operand].shape(), x);
  };
  ExpectResults(
      call, {given(0, {7, 1, 5}), given(1, {0, 2, 4}), given(2, {1, 5, 9}), given(3, {2, 8, 14})},
      {{7, 5, 5}, {1, 5, -0.8}, {2, 4, 9}, {-1, 2, 1}, {0}});
  const auto info = [](const Call& c, const std::vector<std::vector<double>>& arguments) {
    const std::string text = Results(c, arguments);
    return text.substr(text.rfind(' ') + 1);
  };
  EXPECT_EQ(info(call, {{0, 1, 1}, {1, 1, 1}, {0, 1, 0}, {1, 1, 1}}), "3)");
  EXPECT_EQ(info(small, {{0, 2}, {1, 4}, {2, 0}, {1, 1}}), "2)");
  EXPECT_EQ(info(small, {{0, 0}, {0, 4}, {2, 0}, {1, 1}}), "1)");
}

// As JAX writes it, with a matrix's sizes as operands.
TEST(StablehloLapack, SizesThatAreOperands) {
  const std::string text =
      Constant("x", "[[1.0, 2.0], [2.0, 1.0]]", "tensor<2x2xf64>") +
      Constant("s", "2", "tensor<2xi32>") + Constant("t", "2", "tensor<1xi32>") +
      Constant("u", "[]", "tensor<0xi32>") +
      "%0:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%x, %s, %t, %u) {indices_of_shape_operands "
      "= dense<[1, 2, 3]> : tensor<3xi64>, mhlo.backend_config = {mode = 78 : ui8, uplo = 76 : "
      "ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, "
      "dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], output_operand_aliases = "
      "[#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, "
      "operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : "
      "tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = "
      "#sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=2, j=2, k=2, l=2, m=2}, custom>} : "
      "(tensor<2x2xf64>, tensor<2xi32>, tensor<1xi32>, tensor<0xi32>) -> (tensor<?x?xf64>, "
      "tensor<?xf64>, tensor<i32>)";
  auto module = ImportText("func.func @main() -> (tensor<?xf64>, tensor<i32>) {\n" + text +
                           "\nreturn %0#1, %0#2 : tensor<?xf64>, tensor<i32>\n}\n");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  const auto value = interp::Evaluate(**module, {}, {.custom_call = device::CustomCallBy({})});
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  const std::span<const double> values = value->elements()[0].values<double>();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_NEAR(values[0], -1, 1e-15);
  EXPECT_NEAR(values[1], 3, 1e-15);
  EXPECT_EQ(value->elements()[1].values<int32_t>()[0], 0);
}

// Infinities and NaNs end the work, with info as LAPACK's for NaNs.
TEST(StablehloLapack, NansAndInfinities) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const auto ends = [&](const Call& call, double x, std::string_view info) {
    const std::string text = Results(call, {{1, 2, x, 4}});
    EXPECT_TRUE(text.ends_with(Cat(", ", info, ")"))) << text;
    EXPECT_NE(text.find("nan"), std::string::npos) << text;
  };
  for (double x : {nan, infinity}) {
    ends(SelfAdjoint(kF64, {}, 2, 'V', 'L'), x, "2");
    ends(Svd("gesdd", kF64, {}, 2, 2, 'A'), x, x == infinity ? "1" : "-4");
    ends(Svd("gesvd", kF64, {}, 2, 2, 'A'), x, "1");
    ends(Eigen(kF64, {}, 2), x, "-4");
    ends(Schur(kF64, {}, 2, 'V'), x, "2");
    ends(Hessenberg(kF64, {}, 2, 1, 2), x, "0");
    ends(ToTridiagonal(kF64, {}, 2, 'L'), x, "0");
  }
  // The other triangle is not read.
  const std::string text = Results(SelfAdjoint(kF64, {}, 2, 'N', 'U'), {{1, 0, nan, 4}});
  EXPECT_TRUE(text.ends_with("{1, 4}, 0)")) << text;
}

// Elements at both ends of the range.
TEST(StablehloLapack, Scales) {
  for (double scale : {1e-300, 1e300}) {
    const std::string text = Results(SelfAdjoint(kF64, {}, 2, 'N', 'L'), {{scale, 0, 0, -scale}});
    EXPECT_TRUE(text.ends_with(scale < 1 ? "{-1e-300, 1e-300}, 0)" : "{-1e+300, 1e+300}, 0)"))
        << text;
    std::vector<Item> items;
    const Call call = Hessenberg(kF64, {}, 3, 1, 3);
    const std::vector<double> values = {1, 2, 3, 3 * scale, 5, 6, 4 * scale, 8, 9};
    RunCall(call, {Literal::Array<double>(call.operands[0].shape(), values)}, items);
    ASSERT_EQ(items.size(), 1u);
    if (scale > 1) EXPECT_NEAR(items[0].out[0](1, 0).real() / scale, -5, 1e-14);
  }
}

TEST(StablehloLapack, Errors) {
  const auto imported = [](std::string text, std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    return Imported(text.replace(at, from.size(), to));
  };
  const std::string eigh = SelfAdjoint(kF64, {2}, 3, 'V', 'L').text();
  EXPECT_NE(
      imported(eigh, "operand_layouts = [dense<[1, 2, 0]>", "operand_layouts = [dense<[2, 1, 0]>")
          .find("must make matrices column-major"),
      std::string::npos);
  EXPECT_NE(
      imported(eigh, "result_layouts = [dense<[1, 2, 0]>", "result_layouts = [dense<[2, 1, 0]>")
          .find("must make matrices column-major"),
      std::string::npos);
  EXPECT_NE(imported(eigh, "uplo = 76", "uplo = 7").find("uplo, one of the letters LU"),
            std::string::npos);
  EXPECT_NE(imported(eigh, "mode = 86", "more = 86").find("mode, one of the letters NV"),
            std::string::npos);
  EXPECT_NE(imported(Schur(kF64, {}, 3, 'V').text(), "sort = 78", "sort = 83")
                .find("selection of eigenvalues is not implemented"),
            std::string::npos);
  // Sizes are the library's to check.
  Call call = Svd("gesdd", kF64, {}, 3, 2, 'A');
  call.results[2].own = {3, 2};
  EXPECT_NE(Results(call, {{1, 2, 3, 4, 5, 6}}).find("gesdd: the library has none of"),
            std::string::npos);
  call = Hessenberg(kF64, {}, 2, 0, 2);
  EXPECT_NE(Results(call, {{1, 2, 3, 4}}).find("low and high are 0 and 2"), std::string::npos);
}

}  // namespace
}  // namespace kiln::stablehlo::lapack
