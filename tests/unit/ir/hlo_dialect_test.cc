// What XLA prints, and what it takes by hand, beyond the ops of the table.
#include <gtest/gtest.h>

#include "ir/text_foreign.h"
#include "support/hlo.h"
#include "support/interp.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

using ::kiln::testing::ValueOf;

constexpr std::string_view kSum =
    "add { a = f32[] parameter(0)\nb = f32[] parameter(1)\n"
    "ROOT s = f32[] add(a, b) }\n";

std::string InEntry(std::string_view body) { return Cat(kSum, "ENTRY e {\n", body, "\n}\n"); }

// The value of a module, and of the same as it is printed, without spaces.
std::string Value(std::string_view module) {
  std::string value = ValueOf(module);
  EXPECT_EQ(ValueOf(ToHloText(*ParseOrDie(module))), value) << module;
  std::erase(value, ' ');
  return value;
}

TEST(HloDialect, ShortForms) {
  struct Case {
    std::string_view body, value;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"ROOT c = f32[2,2]{1,0} constant(1.5)", "{{1.5,1.5},{1.5,1.5}}"},
           {"c = s32[] constant(3)\nROOT b = s32[2] broadcast(c)", "{3,3}"},
           // Space in shapes; windows in any order; starts of slices as one operand.
           {"a = s32 [2,2] {0,1} constant({{1,2},{3,4}})\nROOT n = s32[2,2] negate(s32 [2,2] a)",
            "{{-1,-2},{-3,-4}}"},
           {"a = f32[3] constant({1,2,3})\nz = f32[] constant(0)\nROOT r = f32[2] "
            "reduce-window(a, z), window={stride=2 pad=0_1 size=2}, to_apply=add",
            "{3,3}"},
           {"a = s32[2,3] constant({{1,2,3},{4,5,6}})\ni = s32[2] constant({1,1})\n"
            "u = s32[1,1] constant({{9}})\ns = s32[1,2] dynamic-slice(a, i), "
            "dynamic_slice_sizes={1,2}\nd = s32[2,3] dynamic-update-slice(a, u, i)\n"
            "ROOT t = (s32[1,2], s32[2,3]) tuple(s, d)",
            "({{5,6}},{{1,2,3},{4,9,6}})"},
           // topk finds the largest elements unless it says otherwise.
           {"a = f32[3] constant({1,3,2})\nt = (f32[1], s32[1]) topk(a), k=1\n"
            "u = (f32[1], s32[1]) topk(a), k=1, largest=false\n"
            "ROOT r = ((f32[1], s32[1]), (f32[1], s32[1])) tuple(t, u)",
            "(({3},{1}),({1},{0}))"},
       }) {
    EXPECT_EQ(Value(InEntry(c.body)), c.value) << c.body;
  }
  EXPECT_NE(ParseError(InEntry("ROOT c = u32[] constant(-1)")).find("a number that u32 holds"),
            std::string::npos);
  // Signatures without colons, and with parameters of other names and numbers.
  EXPECT_EQ(Value("ENTRY e (x s32[]) -> s32[] { ROOT c = s32[] constant(1) }"), "1");
  EXPECT_EQ(Value("ENTRY e (a: s32[], b: f32[]) -> s32[] { ROOT c = s32[] constant(1) }"), "1");
}

// A text of one instruction, whose operands are the parameters.
TEST(HloDialect, AnInstructionAlone) {
  for (std::string_view text :
       {"f32[] subtract(f32[] %a, f32[]{} b)", "ROOT x = f32[] subtract(f32[], f32[])",
        "%x = f32[] subtract(f32[] a, f32[] b), metadata={op_name=\"n\"}"}) {
    EXPECT_EQ(ValueOf(text, {Literal::Scalar<float>(ElementType::kF32, 5),
                             Literal::Scalar<float>(ElementType::kF32, 3)}),
              "2")
        << text;
  }
  auto twice = ParseOrDie("s32[] add(s32[] a, s32[] a)");
  EXPECT_EQ(twice->entry()->parameters().size(), 1u);
  auto map = ParseOrDie(
      "f32[2] map(f32[2] a), dimensions={0}, to_apply={ p = f32[] parameter(0)\n"
      "ROOT n = f32[] negate(p) }");
  EXPECT_EQ(map->entry()->root()->opcode(), Opcode::kMap);
  EXPECT_NE(ParseError("f32[] negate(a)").find("expected the name of an instruction"),
            std::string::npos);
  EXPECT_NE(ParseError("f32[] negate(f32[] a) f32[] negate(f32[] a)").find("the end of the text"),
            std::string::npos);
  // No instruction, but a computation.
  EXPECT_EQ(Value("b(x: s32[]) -> s32[] { ROOT c = s32[] constant(1) }"), "1");
}

TEST(HloDialect, ElementsThatAreLeftOut) {
  const std::string text = InEntry(
      "c = f32[100] constant({...})\nd = f32[100] constant({...})\n"
      "i = s32[50,1] constant({...})\n"
      "g = f32[50] gather(c, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1}\n"
      "o = f32[3] constant({1,2,3})\nj = s32[50,1] constant({...})\n"
      "h = f32[50] gather(o, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1}\n"
      "p = (pred[64], s2[64]) constant(({...}, {...}))\n"
      "q = ((f32[64], ()), s32[64]) constant({...})\n"
      "ROOT t = (f32[100], f32[100], f32[50], f32[50], (pred[64], s2[64])) tuple(c, d, g, h, p)");
  int64_t made_up = 0;
  auto module = ParseHloText(text, {.made_up = &made_up});
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(made_up, 8);
  auto literal = [&](std::string_view name) -> const Literal& {
    return FindInstruction(**module, name)->literal();
  };
  EXPECT_EQ(literal("c"), FindInstruction(*ParseOrDie(text), "c")->literal());
  EXPECT_FALSE(literal("c") == literal("d"));
  double sum = 0;
  for (float x : literal("c").values<float>()) {
    EXPECT_LE(std::abs(x), 1);
    sum += x;
  }
  EXPECT_LT(std::abs(sum), 30);
  EXPECT_FALSE(literal("c").IsSplat());
  int32_t most = 0, most_of_three = 0;
  for (int32_t i : literal("i").values<int32_t>()) most = std::max(most, i);
  for (int32_t i : literal("j").values<int32_t>()) most_of_three = std::max(most_of_three, i);
  EXPECT_EQ(most, 7);
  EXPECT_EQ(most_of_three, 2);  // valid indices of what they index
  EXPECT_FALSE(literal("p").elements()[0].IsSplat());
  EXPECT_FALSE(literal("q").elements()[1].IsSplat());
  EXPECT_NE(ParseError(InEntry("c = f32[100000000] constant({...})")).find("RESOURCE_EXHAUSTED"),
            std::string::npos);
}

// Whatever shapes stand there.
TEST(HloDialect, ShapesOfTransfers) {
  const std::string printed = ToHloText(*ParseOrDie(
      InEntry("a = f32[2] parameter(0)\nt = token[] after-all()\n"
              "s = f32[2] send(a, t), channel_id=1\nd = token[] send-done(s), channel_id=1\n"
              "r = (f32[2], u32[8], token[]) recv(t)\ne = (f32[2], token[]) recv-done(r)\n"
              "ROOT v = f32[2] get-tuple-element(e), index=0")));
  EXPECT_NE(printed.find("(f32[2]{0}, u32[], token[]) send("), std::string::npos) << printed;
  EXPECT_NE(printed.find("(f32[2]{0}, u32[], token[]) recv("), std::string::npos) << printed;
}

// What no outfeed above has for it.
TEST(HloDialect, InfeedsThatNobodyFills) {
  const std::string text = InEntry(
      "x = f32[50] parameter(0)\nt = token[] after-all()\n"
      "a = ((f32[50]{0}, s32[50,1], f32[3,5000]{0,1}), token[]) infeed(t)\n"
      "o = token[] outfeed(x, t)\n"
      "b = (f32[50], token[]) infeed(o)\n"
      "c = (pred[], token[]) infeed(o), infeed_config=\"c\"\n"
      "p = (f32[50], s32[50,1], f32[3,5000]) get-tuple-element(a), index=0\n"
      "f = f32[50] get-tuple-element(p), index=0\ni = s32[50,1] get-tuple-element(p), index=1\n"
      "s = f32[3] slice(f), slice={[0:3]}\n"
      "g = f32[50] gather(s, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
      "index_vector_dim=1, slice_sizes={1}\n"
      "v = f32[50] get-tuple-element(b), index=0\nq = pred[] get-tuple-element(c), index=0\n"
      "ROOT r = (f32[50], f32[50], pred[]) tuple(g, v, q)");
  int64_t made_up = 0;
  auto module = ParseHloText(text, {.made_up = &made_up});
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(made_up, 4);
  int64_t infeeds = 0, most = 0;
  for (const Instruction* i : (*module)->entry()->instructions()) {
    infeeds += i->opcode() == Opcode::kInfeed;
    if (!i->IsConstant()) continue;
    if (IsPred(i->shape().type())) EXPECT_EQ(i->literal().values<bool>()[0], false);
    if (i->shape().type() != ElementType::kS32) continue;
    for (int32_t k : i->literal().values<int32_t>()) most = std::max<int64_t>(most, k);
  }
  EXPECT_EQ(infeeds, 1);  // b has what o gives
  EXPECT_EQ(most, 2);     // a valid index of s
  EXPECT_EQ(ToHloText(**module), ToHloText(*ParseOrDie(ToHloText(**module))));
}

TEST(HloDialect, LayoutsOfTuples) {
  const std::string text =
      "HloModule m, entry_computation_layout={((f32[2,2]{0,1}, s32[]))->(f32[2,2]{1,0}, s32[])}\n"
      "ENTRY e { p = (f32[2,2]{1,0}, s32[]) parameter(0)\n"
      "a = f32[2,2]{1,0} get-tuple-element(p), index=0\n"
      "b = s32[] get-tuple-element(p), index=1\n"
      "ROOT t = (f32[2,2]{1,0}, s32[]) tuple(a, b) }";
  const std::string printed = ToHloText(*ParseOrDie(text));
  EXPECT_NE(printed.find("%p = (f32[2,2]{0,1}, s32[]) parameter(0)"), std::string::npos) << printed;
  EXPECT_EQ(ToHloText(*ParseOrDie(printed)), printed);
  EXPECT_NE(ToHloText(*ParseOrDie("HloModule m, entry_computation_layout={((f32[2,2]{0,1}))->"
                                  "(f32[2,2]{1,0})}\nENTRY e { ROOT p = (f32[2,2]{1,0}) "
                                  "parameter(0) }"))
                .find("copy("),
            std::string::npos);
}

TEST(HloDialect, AliasesOfOtherShapes) {
  auto aliases = [](std::string_view alias) {
    return ParseOrDie(Cat("HloModule m, input_output_alias={ {}: (0, {}", alias, "), }\n",
                          InEntry("x = f32[4] parameter(0)\nROOT r = f32[2,2] reshape(x)")))
        ->aliases()
        .size();
  };
  EXPECT_EQ(aliases(""), 0u);
  EXPECT_EQ(aliases(", may-alias"), 0u);
  EXPECT_NE(ParseError(Cat("HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n",
                           InEntry("x = f32[4] parameter(0)\nROOT r = f32[2,2] reshape(x)")))
                .find("they must be equal"),
            std::string::npos);
}

TEST(HloDialect, PairsOfAsynchronousOps) {
  struct Case {
    std::string_view body, value;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"s = (f32[2], f32[2], u32[]) copy-start(x)\nROOT d = f32[2] copy-done(s)", "{1,2}"},
           {"s = f32[2] all-reduce-start(x), to_apply=add\nROOT d = f32[2] all-reduce-done(s)",
            "{1,2}"},
           {"s = (f32[2], f32[2]) all-gather-start(x), dimensions={0}\n"
            "ROOT d = f32[2] all-gather-done(s)",
            "{1,2}"},
           {"s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(x), "
            "source_target_pairs={{0,0}}\nROOT d = f32[2] collective-permute-done(s)",
            "{1,2}"},
           {"s = ((f32[2]), f32[2], s32[]) async-start(x), calls={ p = f32[2] parameter(0)\n"
            "ROOT n = f32[2] negate(p) }\nu = ((f32[2]), f32[2], s32[]) async-update(s)\n"
            "ROOT d = f32[2] async-done(u)",
            "{-1,-2}"},
           {"s = ((f32[2]), f32[2], s32[]) negate-start(x), async_execution_thread=\"t\"\n"
            "ROOT d = f32[2] negate-done(s)",
            "{-1,-2}"},
           {"i = s32[] constant(1)\ns = ((f32[2], s32[]), f32[1], u32[]) dynamic-slice-start(x, "
            "i), "
            "dynamic_slice_sizes={1}\nROOT d = f32[1] dynamic-slice-done(s)",
            "{2}"},
           {"s = ((f32[2]), (f32[2]), u32[]) scan-start(x), dimensions={0}, num_carries=0, "
            "to_apply={ p = f32[] parameter(0)\nn = f32[] negate(p)\n"
            "ROOT t = (f32[]) tuple(n) }\nROOT d = (f32[2]) scan-done(s)",
            "({-1,-2})"},
           // Other parts of the beginning may be read, too.
           {"s = (f32[2], f32[2], u32[]) copy-start(x)\nROOT c = u32[] get-tuple-element(s), "
            "index=2",
            "0"},
           {"t = token[] after-all()\nd = f32[2] add-dependency(x, t)\n"
            "ROOT e = f32[2] domain(d), domain={kind=\"sharding\", entry={}, exit={}}",
            "{1,2}"},
       }) {
    EXPECT_EQ(Value(InEntry(Cat("x = f32[2] constant({1,2})\n", c.body))), c.value) << c.body;
  }
  EXPECT_NE(ParseError(InEntry("x = f32[2] constant({1,2})\nROOT d = f32[2] copy-done(x)"))
                .find("copy-done has operand f32[2], which is no pair's beginning"),
            std::string::npos);
  EXPECT_NE(ParseError(InEntry("x = f32[2] constant({1,2})\ns = f32[2] copy-start(x)"))
                .find("expected a tuple of operands and results"),
            std::string::npos);
}

// All opcodes that XLA has, and pairs of each.
TEST(HloDialect, Opcodes) {
  constexpr std::string_view kNames =
      "abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start "
      "all-reduce all-reduce-done all-reduce-start all-to-all and asin asinh async-done "
      "async-start async-update atan2 atanh batch-norm-grad batch-norm-inference "
      "batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp "
      "collective-broadcast collective-permute collective-permute-done collective-permute-start "
      "compare complex concatenate conditional constant convert convolution copy copy-done "
      "copy-start cosh cosine count-leading-zeros custom-call divide domain dot dynamic-reshape "
      "dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor fusion "
      "gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one "
      "logistic map maximum minimum mulhi multiply negate not opt-barrier or outfeed pad "
      "parameter partition-id popcnt power ragged-all-to-all ragged-dot real recv recv-done "
      "reduce reduce-precision reduce-scatter reduce-window remainder replica-id reshape reverse "
      "rng rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt "
      "scaled-dot scan scatter select select-and-scatter send send-done set-dimension-size "
      "shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sort sqrt "
      "stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor";
  const auto names = Split(kNames, ' ');
  EXPECT_EQ(names.size(), 133u);
  for (std::string_view name : names) {
    const std::optional<Opcode> opcode = OpcodeByName(name);
    EXPECT_TRUE(ForeignOpByName(name).has_value() || (opcode && IsHloOp(*opcode))) << name;
    const bool is_pair = name.ends_with("-start") || name.ends_with("-done");
    if (is_pair || name == "async-update" || name == "parameter" || name == "constant" ||
        name == "domain" || name == "add-dependency") {
      continue;
    }
    EXPECT_TRUE(ForeignOpByName(Cat(name, "-start")).has_value()) << name;
    EXPECT_TRUE(ForeignOpByName(Cat(name, "-done")).has_value()) << name;
  }
  EXPECT_FALSE(ForeignOpByName("negate-begin").has_value());
  EXPECT_FALSE(ForeignOpByName("async").has_value());
}

TEST(HloDialect, Scan) {
  constexpr std::string_view kBody =
      "f { x = s32[] parameter(0)\nc = s32[] parameter(1)\nn = s32[] add(x, c)\n"
      "m = s32[] multiply(n, x)\nROOT t = (s32[], s32[]) tuple(m, n) }\n";
  auto scan = [&](std::string_view attributes, std::string_view input = "s32[3] constant({1,2,3})",
                  std::string_view shape = "s32[3]") {
    return Cat(kBody, "ENTRY e { x = ", input, "\nc = s32[] constant(10)\nROOT s = (", shape,
               ", s32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=f", attributes, " }");
  };
  EXPECT_EQ(Value(scan("")), "({11,26,48},16)");
  EXPECT_EQ(Value(scan(", is_reverse=true, is_associative=false")), "({16,30,39},16)");
  EXPECT_EQ(Value(scan("", "s32[0] constant({})", "s32[0]")), "({},10)");
  // Shapes may be absent.
  EXPECT_EQ(Value(Cat(kBody,
                      "ENTRY e { x = s32[3] constant({1,2,3})\nc = s32[] constant(10)\n"
                      "ROOT s = scan(x, c), dimensions={0}, num_carries=1, to_apply=f }")),
            "({11,26,48},16)");
  // Along another dimension than the first, without carries.
  EXPECT_EQ(Value("f { x = s32[2] parameter(0)\nROOT n = (s32[2]) tuple(x) }\n"
                  "ENTRY e { x = s32[2,3] constant({{1,2,3},{4,5,6}})\n"
                  "ROOT s = s32[2,3] scan(x), dimensions={1}, num_carries=0, to_apply=f }"),
            "{{1,2,3},{4,5,6}}");
  EXPECT_NE(ParseError(scan("", "s32[3] constant({1,2,3})", "s32[2]")).find("has s32[3], whose"),
            std::string::npos);
  EXPECT_NE(ParseError(scan("", "f32[] constant(1)")).find("whose dimension 0 is no other's"),
            std::string::npos);
}

TEST(HloDialect, RaggedDot) {
  auto dot = [](std::string_view lhs, std::string_view rhs, std::string_view sizes,
                std::string_view shape, std::string_view attributes) {
    return InEntry(Cat("a = ", lhs, "\nb = ", rhs, "\ns = ", sizes, "\nROOT d = ", shape,
                       " ragged-dot(a, b, s), ", attributes));
  };
  // Rows in groups; infinite factors of other groups do no harm.
  EXPECT_EQ(Value(dot("f32[3,2] constant({{1,2},{3,4},{5,6}})",
                      "f32[2,2,1] constant({{{1},{1}},{{10},{inf}}})", "s32[2] constant({1,1})",
                      "f32[3,1]",
                      "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
                      "rhs_group_dims={0}")),
            "{{3},{inf},{0}}");
  EXPECT_EQ(Value(dot("f32[2,1] constant({{1},{2}})", "f32[1,1,1] constant({{{3}}})",
                      "s32[1] constant({2})", "",
                      "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
                      "rhs_group_dims={0}")),
            "{{3},{6}}");
  // Sizes of their own for each index of a batch.
  EXPECT_EQ(
      Value(dot("s32[2,2,1] constant({{{1},{2}},{{3},{4}}})", "s32[2,1,1] constant({{{1}},{{10}}})",
                "s64[2,2] constant({{1,1},{2,0}})", "s32[2,2,1]",
                "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={1}, "
                "rhs_group_dims={0}")),
      "{{{1},{20}},{{3},{4}}}");
  // Groups of what is contracted.
  EXPECT_EQ(Value(dot("f32[2,3] constant({{1,2,3},{4,5,6}})", "f32[3,1] constant({{1},{1},{1}})",
                      "s32[2] constant({1,2})", "f32[2,2,1]",
                      "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}")),
            "{{{1},{4}},{{5},{11}}}");
  // Groups of a batch: behind them all is zero.
  EXPECT_EQ(Value(dot("f32[3,1] constant({{1},{2},{3}})", "f32[3,1] constant({{1},{10},{100}})",
                      "s32[2] constant({1,1})", "f32[3]",
                      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
                      "rhs_contracting_dims={1}, lhs_ragged_dims={0}")),
            "{1,20,0}");
  EXPECT_NE(ParseError(dot("f32[2] constant({1,2})", "f32[2] constant({1,2})",
                           "f32[2] constant({1,1})", "f32[]",
                           "lhs_contracting_dims={0}, rhs_contracting_dims={0}, "
                           "lhs_ragged_dims={0}"))
                .find("ragged-dot has operands f32[2], f32[2] and f32[2]"),
            std::string::npos);
}

TEST(HloDialect, ScaledDot) {
  EXPECT_EQ(Value(InEntry("a = f8e4m3fn[1,4] constant({{1,1,2,1}})\nb = f32[4,1] constant(1)\n"
                          "s = f8e8m0fnu[1,2] constant({{2,4}})\nt = f32[] constant(10)\n"
                          "ROOT d = bf16[1,1] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, "
                          "rhs_contracting_dims={0}")),
            "{{160}}");
  EXPECT_NE(ParseError(InEntry("a = f32[1,4] constant(1)\nb = f32[4,1] constant(1)\n"
                               "s = f32[1,3] constant(1)\nt = f32[] constant(10)\n"
                               "ROOT d = f32[1,1] scaled-dot(a, b, s, t), "
                               "lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
                .find("has a scale f32[1,3] for f32[1,4]"),
            std::string::npos);
}

TEST(HloDialect, DynamicReshape) {
  // Six elements as two rows of three, within bounds of 4 and 3.
  EXPECT_EQ(Value(InEntry("x = f32[6,2] constant({{1,2},{3,4},{5,6},{7,8},{9,10},{11,12}})\n"
                          "n = s32[] constant(2)\nm = s64[] constant(3)\n"
                          "ROOT r = f32[<=4,<=3] dynamic-reshape(x, n, m)")),
            "{{1,2,3},{4,5,6}}");
  // Of bounded dimensions the defined elements alone, and back.
  const std::string_view bounded =
      "x = s32[3,4] constant({{1,2,3,4},{5,6,7,8},{9,10,11,12}})\nn = s32[] constant(2)\n"
      "m = s32[] constant(3)\none = s32[] constant(1)\nsix = s32[] constant(6)\n"
      "y = s32[<=3,4] set-dimension-size(x, n), dimensions={0}\n"
      "z = s32[<=3,<=4] set-dimension-size(y, m), dimensions={1}\n";
  EXPECT_EQ(Value(InEntry(Cat(bounded, "ROOT r = s32[<=12] dynamic-reshape(z, six)"))),
            "{1,2,3,5,6,7}");
  EXPECT_EQ(Value(InEntry(Cat(bounded,
                              "f = s32[<=12] dynamic-reshape(z, six)\n"
                              "ROOT r = s32[<=4,<=3] dynamic-reshape(f, m, n)"))),
            "{{1,2},{3,5},{6,7}}");
  EXPECT_NE(ParseError(InEntry("x = f32[6] constant(0)\nn = s32[] constant(2)\n"
                               "ROOT r = f32[<=5] dynamic-reshape(x, n)"))
                .find("dynamic-reshape has operand f32[6], and other sizes than f32[<=5]"),
            std::string::npos);
}

TEST(HloDialect, RaggedAllToAll) {
  const std::string_view operands =
      "x = f32[4,1] constant({{1},{2},{3},{4}})\ny = f32[5,1] constant(9)\n"
      "i = s32[2] constant({0,2})\ns = s32[2] constant({2,1})\no = s32[2] constant({3,0})\n";
  EXPECT_EQ(Value(InEntry(Cat(operands, "ROOT r = f32[5,1] ragged-all-to-all(x, y, i, s, o, s)"))),
            "{{3},{9},{9},{1},{2}}");
  const std::string others =
      Cat("HloModule m, replica_count=2\n",
          InEntry(Cat(operands,
                      "ROOT r = f32[5,1] ragged-all-to-all(x, y, i, s, o, s), "
                      "replica_groups={{0,1}}")));
  EXPECT_EQ(ParseOrDie(others)->entry()->root()->opcode(), Opcode::kCustomCall);
}

// What shape inference refuses, and XLA takes.
TEST(HloDialect, LooseShapes) {
  struct Case {
    std::string_view body, value;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a = f32[2] constant({1,2})\nb = bf16[2] constant({3,4})\n"
            "ROOT c = bf16[2] multiply(a, b)",
            "{3,8}"},
           {"a = s8[1,2] constant({{100,100}})\nb = s16[2,1] constant({{100},{100}})\n"
            "ROOT c = s32[1,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "{{20000}}"},
           {"a = bf16[1,2] constant({{1,2}})\nb = bf16[2,1] constant({{3},{4}})\n"
            "ROOT c = s32[1,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "{{11}}"},
           {"a = bf16[2] constant({1,2})\nz = bf16[] constant(0)\n"
            "ROOT c = bf16[] reduce(a, z), dimensions={0}, to_apply=add",
            "3"},
           {"a = f32[2] constant({1,2})\nb = f16[] constant(7)\n"
            "ROOT c = f32[3] pad(a, b), padding=0_1",
            "{1,2,7}"},
           {"a = f32[] constant(1)\nROOT b = f16[2] broadcast(a), dimensions={}", "{1,1}"},
           {"a = (f32[2], s32[]) constant(({1,2}, 3))\nROOT c = (f32[2], s32[]) copy(a)",
            "({1,2},3)"},
           {"a = f32[1,2]{0,1} constant({{1,2}})\nROOT t = (f32[1,2]{1,0}) tuple(a)", "({{1,2}})"},
           {"a = f32[2] constant({1,2})\nROOT c = (f32[2], f32[2]) collective-permute(a, a), "
            "source_target_pairs={{0,0}}",
            "({1,2},{1,2})"},
           {"a = f32[2] constant({1,2})\nROOT c = f32[2] all-to-all(a), dimensions={0}", "{1,2}"},
           {"a = s4[4] constant({1,2,3,4})\nROOT c = s8[2] bitcast(a)", "{33,67}"},
           {"a = f32[2,2] constant({{1,2},{3,4}})\n"
            "ROOT f = f32[2,2]{0,1} fusion(a), kind=kLoop, calls={ p = f32[2,2]{0,1} parameter(0)\n"
            "ROOT n = f32[2,2]{1,0} negate(p) }",
            "{{-1,-2},{-3,-4}}"},
           // A bounded dimension beside its bound.
           {"a = f32[4] constant({1,2,3,4})\nn = s32[] constant(2)\n"
            "b = f32[<=4] set-dimension-size(a, n), dimensions={0}\n"
            "ROOT c = f32[<=4] multiply(a, b)",
            "{1,4}"},
           {"a = bf16[] constant(4)\nROOT w = bf16[] while(a), condition={ p = bf16[] "
            "parameter(0)\n"
            "z = bf16[] constant(1)\nROOT c = pred[] compare(p, z), direction=GT }, body={ p = "
            "f32[] "
            "parameter(0)\nh = f32[] constant(0.5)\nROOT m = f32[] multiply(p, h) }",
            "1"},
       }) {
    EXPECT_EQ(Value(InEntry(c.body)), c.value) << c.body;
  }
  // Dimensions that differ stay an error.
  EXPECT_NE(ParseError(InEntry("a = f32[2] constant({1,2})\nb = bf16[3] constant({1,2,3})\n"
                               "ROOT c = f32[2] add(a, b)"))
                .find("instruction 'c'"),
            std::string::npos);
}

TEST(HloDialect, GroupsOfProcesses) {
  auto printed = [](std::string_view counts, std::string_view line) {
    const std::string text =
        ToHloText(*ParseOrDie(Cat("HloModule m, ", counts, "\n", kSum,
                                  "ENTRY e { x = f32[2] parameter(0)\nROOT r = ", line, " }")));
    const size_t begin = text.find("ROOT %r");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(printed("replica_count=2", "f32[2] all-reduce(x), to_apply=add"),
            "ROOT %r = f32[2]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add");
  EXPECT_EQ(printed("num_partitions=2", "f32[2] all-reduce(x), to_apply=add"),
            "ROOT %r = f32[2]{0} all-reduce(%x), to_apply=%add");
  EXPECT_EQ(printed("replica_count=2, num_partitions=2",
                    "f32[2] all-reduce(x), channel_id=1, replica_groups={{0},{1}}, to_apply=add"),
            "ROOT %r = f32[2]{0} all-reduce(%x), replica_groups={{0,1},{2,3}}, channel_id=1, "
            "use_global_device_ids=true, to_apply=%add");
  EXPECT_EQ(printed("num_partitions=8",
                    "f32[2] all-reduce(x), channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), "
                    "use_global_device_ids=true, to_apply=add"),
            "ROOT %r = f32[2]{0} all-reduce(%x), replica_groups={{0,2,4,6},{1,3,5,7}}, "
            "channel_id=1, use_global_device_ids=true, to_apply=%add");
  for (auto [mesh, groups] : {
           std::pair("mesh['a'=2,'b'=4] {'b'}", "{{0,1,2,3},{4,5,6,7}}"),
           std::pair("mesh['a'=2,'b'=4] {'a'}", "{{0,4},{1,5},{2,6},{3,7}}"),
           std::pair("mesh['a'=2,'b'=4] {'b','a'}", "{{0,4,1,5,2,6,3,7}}"),
           std::pair("mesh['a'=2,'b'=4] {'b':(1)2}", "{{0,2},{1,3},{4,6},{5,7}}"),
           std::pair("mesh['a'=2,'b'=4] {'b':(2)2}", "{{0,1},{2,3},{4,5},{6,7}}"),
           std::pair("mesh[a=8] {a:(4)2,a:(1)2}", "{{0,4,1,5},{2,6,3,7}}"),
           std::pair("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}", "{{0,2,4,6},{1,3,5,7}}"),
           std::pair("mesh['a'=2,'b'=2], device_ids=(3,1,2,0) {'a'}", "{{3,2},{1,0}}"),
       }) {
    EXPECT_EQ(printed("num_partitions=8", Cat("f32[2] all-reduce(x), channel_id=1, "
                                              "use_global_device_ids=true, replica_groups=",
                                              mesh, ", to_apply=add")),
              Cat("ROOT %r = f32[2]{0} all-reduce(%x), replica_groups=", groups,
                  ", channel_id=1, use_global_device_ids=true, to_apply=%add"))
        << mesh;
  }
  for (std::string_view mesh :
       {"mesh['a'=2] {'b'}", "mesh['a'=4] {'a':(3)2}", "mesh['a'=4] {'a':(1)2,'a':(1)2}",
        "mesh['a'=4], device_ids=(0,1) {'a'}", "mesh['a'=65537] {'a'}", "mesh['a'=0] {'a'}"}) {
    EXPECT_NE(ParseError(Cat(kSum,
                             "ENTRY e { x = f32[2] parameter(0)\nROOT r = f32[2] "
                             "all-reduce(x), to_apply=add, replica_groups=",
                             mesh, " }")),
              "OK")
        << mesh;
  }
  // Many groups cannot be asked for by a short text.
  for (std::string_view groups : {"[1,65536]<=[65536]", "mesh['a'=65536] {'a'}"}) {
    std::string lines = "x = f32[2] parameter(0)\n";
    for (int k = 0; k < 129; ++k) {
      lines += Cat("r", k, " = f32[2] all-reduce(x), to_apply=add, replica_groups=", groups, "\n");
    }
    EXPECT_NE(ParseError(InEntry(lines)).find("expected fewer groups in all"), std::string::npos);
  }
  // Pieces along the dimension that is named.
  const std::string pieces =
      ToHloText(*ParseOrDie("HloModule m, replica_count=2\nENTRY e { x = f32[4,6] parameter(0)\n"
                            "ROOT r = f32[4,6] all-to-all(x), dimensions={1} }"));
  EXPECT_NE(pieces.find("slice={[0:4], [3:6]}"), std::string::npos) << pieces;
  EXPECT_EQ(ToHloText(*ParseOrDie(pieces)), pieces);
  EXPECT_EQ(printed("num_partitions=2", "f32[2] collective-broadcast(x), channel_id=1"),
            "ROOT %r = f32[2]{0} collective-broadcast(%x), replica_groups={{0,1}}, channel_id=1");
  EXPECT_NE(ParseError("ENTRY e { x = f32[2] parameter(0)\nROOT r = f32[2] "
                       "collective-broadcast(x), replica_groups=[2,4]<=[7] }")
                .find("expected groups of 7 numbers in all"),
            std::string::npos);
}

// Custom calls of XLA's passes and backends.
TEST(HloDialect, KnownCalls) {
  struct Case {
    std::string_view body, value;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a = f32[4] constant({3,1,4,2})\nROOT t = (f32[2], s32[2]) custom-call(a), "
            "custom_call_target=\"TopK\"",
            "({4,3},{2,0})"},
           {"a = f32[1,2] constant({{1,2}})\nb = f32[2,1] constant({{3},{4}})\n"
            "c = f32[1,1] constant({{100}})\n"
            "ROOT g = (f32[1,1], s8[2]) custom-call(a, b, c), "
            "custom_call_target=\"__cublas$gemm\", "
            "backend_config={\"gemm_backend_config\":{\"alpha_real\":2,\"alpha_imag\":0,\"beta\":1,"
            "\"dot_dimension_numbers\":{\"lhs_contracting_dimensions\":[\"1\"],"
            "\"rhs_contracting_dimensions\":[\"0\"],\"lhs_batch_dimensions\":[],"
            "\"rhs_batch_dimensions\":[]},\"epilogue\":\"DEFAULT\"}}",
            "({{122}},{0,0})"},
           {"a = f32[1,1] constant({{1}})\nb = f32[1,2] constant({{3,-4}})\n"
            "c = f32[2] constant({1,1})\nROOT g = f32[1,2] custom-call(a, b, c), "
            "custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":"
            "{\"beta\":0,\"epilogue\":\"BIAS_RELU\"}}",
            "{{4,0}}"},
           {"a = f32[1,3,1] constant({{{1},{2},{3}}})\nb = f32[2,1,1] constant({{{1}},{{10}}})\n"
            "ROOT c = (f32[1,2,1], u8[0]) custom-call(a, b), window={size=2}, "
            "dim_labels=b0f_0io->b0f, custom_call_target=\"__cudnn$convForward\", "
            "backend_config={\"cudnn_conv_backend_config\":{\"conv_result_scale\":2,"
            "\"activation_mode\":\"kNone\"}}",
            "({{{42},{64}}},{})"},
           {"a = f32[1,2,1] constant({{{1},{2}}})\nb = f32[1,1,1] constant({{{10}}})\n"
            "ROOT c = (f32[1,2,1], u8[0]) custom-call(a, b), window={size=1}, "
            "dim_labels=b0f_0io->b0f, custom_call_target=\"__cudnn$convForwardGraph\"",
            "({{{10},{20}}},{})"},
           {"a = f32[1,1,1] constant({{{-2}}})\nb = f32[1,1,1] constant({{{10}}})\n"
            "c = f32[1] constant({1})\nd = f32[1,1,1] constant({{{30}}})\n"
            "ROOT r = (f32[1,1,1], u8[0]) custom-call(a, b, c, d), window={size=1}, "
            "dim_labels=b0f_0io->b0f, custom_call_target=\"__cudnn$convBiasActivationForward\", "
            "backend_config=\"{\\\"activationMode\\\":\\\"2\\\",\\\"convResultScale\\\":2,"
            "\\\"sideInputScale\\\":1.5}\"",
            "({{{6}}},{})"},
           // The transpose of the one above, by each operand.
           {"g = f32[1,2,1] constant({{{1},{2}}})\nb = f32[2,1,1] constant({{{1}},{{10}}})\n"
            "ROOT c = (f32[1,3,1], u8[0]) custom-call(g, b), window={size=2}, "
            "dim_labels=b0f_0io->b0f, custom_call_target=\"__cudnn$convBackwardInput\"",
            "({{{1},{12},{20}}},{})"},
           {"a = f32[1,3,1] constant({{{1},{2},{3}}})\ng = f32[1,2,1] constant({{{1},{2}}})\n"
            "ROOT c = (f32[2,1,1], u8[0]) custom-call(a, g), window={size=2}, "
            "dim_labels=b0f_0io->b0f, custom_call_target=\"__cudnn$convBackwardFilter\"",
            "({{{5}},{{8}}},{})"},
           {"a = f32[1,4] constant(1)\nb = f32[1,4] constant(1)\ns = f32[1,2] constant({{2,4}})\n"
            "t = f32[2,2] constant({{1,10},{5,5}})\ng = f32[] constant(3)\n"
            "ROOT d = f32[1,1] custom-call(a, b, s, t, g), "
            "custom_call_target=\"__op$block_scaled_dot\"",
            "{{252}}"},
           {"ROOT a = f32[2] custom-call(), custom_call_target=\"AllocateBuffer\"", "{0,0}"},
           // gelu beside what it is of; a scale for each operand in eight bits.
           {"a = f32[1,1] constant({{4}})\nROOT g = (f32[1,1], f32[1,1], s8[4]) custom-call(a, a), "
            "custom_call_target=\"__cublas$lt$matmul\", backend_config={\"gemm_backend_config\":"
            "{\"beta\":0,\"alpha_real\":0.5,\"epilogue\":\"GELU_AUX\"}}",
            "({{8}},{{8}},{0,0,0,0})"},
           {"a = f8e4m3fn[1,2] constant({{1,2}})\nb = f8e5m2[2,1] constant({{3},{4}})\n"
            "c = f32[1,1] constant({{7}})\ns = f32[] constant(10)\nt = f32[] constant(2)\n"
            "ROOT g = (f32[1,1], s8[2]) custom-call(a, b, c, s, t), "
            "custom_call_target=\"__cublas$lt$matmul$f8\", backend_config={"
            "\"gemm_backend_config\":{\"beta\":1,\"epilogue\":\"RELU\"}}",
            "({{227}},{0,0})"},
           {"a = f32[2] constant({1,2})\nROOT s = f32[2] custom-call(a), "
            "custom_call_target=\"ShardBarrierFrom\", custom_call_has_side_effect=true",
            "{1,2}"},
       }) {
    EXPECT_EQ(Value(InEntry(c.body)), c.value) << c.body;
  }
  auto gelu = interp::Evaluate(
      *ParseOrDie(InEntry("a = f32[1,1] constant({{2}})\nb = f32[1,1] constant({{1}})\n"
                          "ROOT g = f32[1,1] custom-call(a, b), "
                          "custom_call_target=\"__cublas$lt$matmul\", "
                          "backend_config={\"epilogue\":\"GELU\"}")),
      {});
  ASSERT_TRUE(gelu.ok()) << gelu.status().ToString();
  EXPECT_NEAR(gelu->values<float>()[0], 1.9545977, 1e-6);
  // What cannot be told stays a call.
  auto module = ParseOrDie(InEntry(
      "a = f32[1,1] constant({{1}})\nROOT g = f32[1,1] custom-call(a, a), "
      "custom_call_target=\"__cublas$lt$matmul\", backend_config={\"epilogue\":\"DRELU\"}"));
  EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kCustomCall);
}

// Custom calls that XLA's builders and passes make.
TEST(HloDialect, CallsOfPasses) {
  struct Case {
    std::string_view body, value;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a = u64[] constant(21474836483)\n"
            "l = u32[] custom-call(a), custom_call_target=\"X64SplitLow\"\n"
            "h = u32[] custom-call(a), custom_call_target=\"X64SplitHigh\"\n"
            "c = u64[] custom-call(l, h), custom_call_target=\"X64Combine\"\n"
            "ROOT t = (u32[], u32[], u64[]) tuple(l, h, c)",
            "(3,5,21474836483)"},
           {"a = f64[] constant(1.5000000009313226)\n"
            "l = f32[] custom-call(a), custom_call_target=\"X64SplitLow\"\n"
            "h = f32[] custom-call(a), custom_call_target=\"X64SplitHigh\"\n"
            "c = f64[] custom-call(l, h), custom_call_target=\"X64Combine\"\n"
            "ROOT t = (f32[], f32[], f64[]) tuple(l, h, c)",
            "(9.313226e-10,1.5,1.5000000009313226)"},
           {"a = s32[2,3] constant({{1,2,3},{4,5,6}})\nr = s32[] constant(1)\n"
            "c = s32[] constant(2)\nd = s32[<=2,<=3] custom-call(a, r, c), "
            "custom_call_target=\"SliceToDynamic\"\n"
            "ROOT p = (s32[2,3], s32[], s32[]) custom-call(d), "
            "custom_call_target=\"PadToStatic\"",
            "({{1,2,0},{0,0,0}},1,2)"},
           // Blocks of two; the largest power of two of f8e4m3fn is 256.
           {"a = f32[1,4] constant({{512,-128,3,1}})\n"
            "ROOT q = (f8e4m3fn[1,4], f32[1,2]) custom-call(a), "
            "custom_call_target=\"__op$quantize\"",
            "({{256,-64,256,88}},{{2,0.01171875}})"},
           {"a = f8e4m3fn[1,4] constant({{256,-64,256,88}})\ns = f32[1,2] constant({{2,0.5}})\n"
            "ROOT d = bf16[1,4] custom-call(a, s), custom_call_target=\"__op$dequantize\"",
            "{{512,-128,128,44}}"},
           {"a = f32[1,5] constant({{1,2,3,4,5}})\nROOT r = f32[1,5] custom-call(a), "
            "custom_call_target=\"_SPMDInternalOp_RotateRight\", "
            "backend_config=\"dimension=1,amount=2\"",
            "{{4,5,1,2,3}}"},
           {"a = s32[3] constant({1,2,3})\nROOT r = s32[3] custom-call(a), "
            "custom_call_target=\"_SPMDInternalOp_RotateRight\", "
            "backend_config=\"dimension=0, amount=4\"",
            "{3,1,2}"},
           // From two to the left to one to the right; and ends that meet the other side.
           {"a = s32[5] constant({1,2,3,4,5})\n"
            "ROOT r = (s32[5], s32[5], s32[5], s32[5]) custom-call(a), "
            "custom_call_target=\"_SPMDInternalOp_MultiRotate\", "
            "backend_config=\"dimension=0,left_amount=2,right_amount=1\"",
            "({3,4,5,1,2},{2,3,4,5,1},{1,2,3,4,5},{5,1,2,3,4})"},
           {"a = s32[2,5] constant({{1,2,3,4,5},{6,7,8,9,0}})\n"
            "ROOT r = (s32[1,2], s32[1,2]) custom-call(a), "
            "custom_call_target=\"_SPMDInternalOp_MultiSlice\", "
            "backend_config=\"dimension=1,amount=1,start_indices=[1,0],limit_indices=[2,3],"
            "strides=[1,2],bufferize=0\"",
            "({{6,8}},{{7,9}})"},
           {"a = s32[1,3] constant({{1,2,3}})\nROOT r = s32[1,6] custom-call(a), "
            "custom_call_target=\"_SPMDInternalOp_Wrap\", "
            "backend_config=\"dimension=1,left_amount=1,right_amount=2\"",
            "{{3,1,2,3,1,2}}"},
           {"k = f32[2,3] constant({{3,-0,0},{2,9,-1}})\nROOT s = (f32[2,3], u8[2]) "
            "custom-call(k), "
            "custom_call_target=\"xla.gpu.ext.cub_sort_unassigned_scratch_size\", "
            "backend_config={\"descending\":false}",
            "({{-0,0,3},{-1,2,9}},{0,0})"},
           {"k = s32[3] constant({3,1,2})\nv = f32[3] constant({10,20,30})\n"
            "ROOT s = (s32[3], f32[3], u8[1]) custom-call(k, v), "
            "custom_call_target=\"__cub$DeviceRadixSort\", "
            "backend_config={\"descending\":true}",
            "({3,2,1},{10,30,20},{0})"},
           {"a = f32[2] constant({1,2})\nROOT d = f32[2] custom-call(a), "
            "custom_call_target=\"SetBound\", literal=s32[2] {1,2}",
            "{1,2}"},
           {"a = f32[2] constant({1,2})\nb = (f32[2]) custom-call(a), "
            "custom_call_target=\"__xla_internal_call_marker_before\", "
            "custom_call_has_side_effect=true\nc = f32[2] get-tuple-element(b), index=0\n"
            "ROOT d = f32[2] custom-call(c), custom_call_target=\"SetBound\", literal=s32[] 1",
            "{1,2}"},
           {"a = f32[] constant(0)\nc = f32[] custom-call(a), "
            "custom_call_target=\"xla_builder.math.Cosh\"\nROOT e = f32[] custom-call(c), "
            "custom_call_target=\"xla_builder.math.Lgamma\"",
            "0"},
       }) {
    EXPECT_EQ(Value(InEntry(c.body)), c.value) << c.body;
  }
  for (std::string_view call :
       {"f32[1] custom-call(a, a), custom_call_target=\"xla_builder.math.IgammaGradA\"",
        "f32[2] custom-call(a), custom_call_target=\"__op$dequantize\"",
        "f32[1] custom-call(a), custom_call_target=\"X64Combine\"",
        "f32[1] custom-call(a), custom_call_target=\"_SPMDInternalOp_RotateRight\", "
        "backend_config=\"dimension=1,amount=2\"",
        "(f32[1], f32[1]) custom-call(a), custom_call_target=\"_SPMDInternalOp_MultiSlice\", "
        "backend_config=\"dimension=0,amount=1,start_indices=[0],limit_indices=[1],strides=[1]\"",
        "(f32[1]) custom-call(a), custom_call_target=\"_SPMDInternalOp_MultiRotate\", "
        "backend_config=\"dimension=0,left_amount=1,right_amount=0\"",
        "(f32[1], u8[1]) custom-call(a, a), custom_call_target=\"__cub$DeviceRadixSort\""}) {
    auto module = ParseOrDie(InEntry(Cat("a = f32[1] constant({1})\nROOT c = ", call)));
    EXPECT_EQ(module->entry()->root()->opcode(), Opcode::kCustomCall) << call;
    EXPECT_EQ(module->entry()->instructions().size(), 2u) << call;
  }
}

// Texts in configurations have quotes, as XLA's grammar wants them.
TEST(HloDialect, QuotedConfigurations) {
  const std::string text = InEntry(
      "x = f32[] constant(1)\nt = token[] after-all()\no = token[] outfeed(x, t)\n"
      "ROOT i = (f32[], token[]) infeed(o), infeed_config=\"a b\"");
  const std::string printed = ToHloText(*ParseOrDie(text));
  EXPECT_NE(printed.find("infeed_config=\"a b\""), std::string::npos) << printed;
  EXPECT_EQ(ToHloText(*ParseOrDie(printed)), printed);
}

// Names that XLA's reader refuses.
TEST(HloDialect, NamesOfOthers) {
  const std::string printed = ToHloText(*ParseOrDie(
      "HloModule true\nENTRY e { %f32 = f32[] parameter(0)\nROOT %__r = f32[] negate(%f32) }"));
  EXPECT_EQ(printed.find("HloModule true_, "), 0u) << printed;
  EXPECT_NE(printed.find("ROOT %a_r = f32[] negate(%f32_)"), std::string::npos) << printed;
  EXPECT_EQ(ToHloText(*ParseOrDie(printed)), printed);
}

KILN_LABEL(text, "HloDialect");

}  // namespace
}  // namespace kiln::ir
