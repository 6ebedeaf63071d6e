// Bounded dimensions in compiled code, against the evaluator, for all sizes.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

// The evaluator's values from code for the CPU and the GPU, fused and op by op. The first
// parameters, scalars, are the sizes, of which each list has as many as there are.
void CheckModule(const std::string& text, const std::vector<std::vector<int32_t>>& sizes,
                 double bound = 1e-5) {
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = testing::RandomArguments(*module, 11);
  for (bool fuse : {true, false}) {
    auto cpu = testing::Load(*module, fuse);
    ASSERT_TRUE(cpu.ok()) << cpu.status().ToString();
    auto gpu = testing::LoadOnGpu(*module, fuse);
    ASSERT_TRUE(gpu.ok()) << gpu.status().ToString();
    for (const std::vector<int32_t>& given : sizes) {
      for (size_t k = 0; k < given.size(); ++k) {
        arguments[k] = Literal::Scalar<int32_t>(ElementType::kS32, given[k]);
      }
      SCOPED_TRACE(Cat("sizes ", Join(given, ", "), fuse ? ", fused" : ", op by op"));
      Result<Literal> expected = interp::Evaluate(*module, arguments);
      ASSERT_TRUE(expected.ok()) << expected.status().ToString();
      testing::Execution run(*cpu->artefact);
      run.SetArguments(arguments);
      Status status = cpu->executable->Run(run.arguments(), run.results());
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(testing::Difference(*expected, run.Result(), bound, bound), "");
      Result<Literal> from_gpu = testing::RunOnGpu(*gpu, arguments);
      ASSERT_TRUE(from_gpu.ok()) << from_gpu.status().ToString();
      EXPECT_EQ(testing::Difference(*expected, *from_gpu, bound, bound), "");
    }
  }
}

const std::vector<std::vector<int32_t>> kOne = {{0}, {1}, {3}, {5}};
const std::vector<std::vector<int32_t>> kTwo = {{0, 2}, {3, 0}, {1, 1}, {2, 3}, {5, 1}, {5, 4}};

// An entry of n = s32[], and m = s32[] where `two`, and of other parameters, "x = f32[5]; ...".
std::string Entry(bool two, std::string_view parameters, std::string_view lines,
                  std::string_view computations = "") {
  std::string text = Cat("HloModule m\n", computations, "\nENTRY e {\n  n = s32[] parameter(0)\n");
  int number = 1;
  if (two) text += Cat("  m = s32[] parameter(", number++, ")\n");
  for (std::string_view p : Split(parameters, ';')) {
    text += Cat("  ", Trim(p), " parameter(", number++, ")\n");
  }
  return Cat(text, lines, "}\n");
}

// Lines that cut a parameter x of f32[5], or of f32[5,4], to n, or n and m, elements: b. The lines
// that follow make r of it, of a shape of bounds that is given, which is returned whole, with its
// sizes, so that all that is beyond them is 0.
std::string Whole(std::string_view type, std::vector<int> bounds, std::vector<bool> bounded) {
  std::string lines, tuple, shapes, from = "r", from_shape;
  auto shape = [&](size_t known) {
    std::string dims;
    for (size_t d = 0; d < bounds.size(); ++d) {
      dims += Cat(d > 0 ? "," : "", bounded[d] && d >= known ? "<=" : "", bounds[d]);
    }
    return Cat(type, "[", dims, "]");
  };
  for (size_t d = 0; d < bounds.size(); ++d) {
    if (!bounded[d]) continue;
    lines += Cat("  size.", d, " = s32[] get-dimension-size(r), dimensions={", d, "}\n");
    lines += Cat("  bound.", d, " = s32[] constant(", bounds[d], ")\n");
    lines += Cat("  whole.", d, " = ", shape(d + 1), " set-dimension-size(", from, ", bound.", d,
                 "), dimensions={", d, "}\n");
    from = Cat("whole.", d);
    tuple += Cat(", size.", d);
    shapes += ", s32[]";
  }
  return Cat(lines, "  ROOT t = (", shape(bounds.size()), shapes, ") tuple(", from, tuple, ")\n");
}

constexpr std::string_view kCut = "  b = f32[<=5] set-dimension-size(x, n), dimensions={0}\n";
constexpr std::string_view kCutBoth =
    R"(  b0 = f32[<=5,4] set-dimension-size(x, n), dimensions={0}
  b = f32[<=5,<=4] set-dimension-size(b0, m), dimensions={1}
)";

// r of b : f32[<=5], and of b : f32[<=5,<=4].
void Check(std::string_view lines, const std::string& whole, std::string_view computations = "") {
  CheckModule(Entry(false, "x = f32[5]", Cat(kCut, lines, whole), computations), kOne);
}
void CheckBoth(std::string_view lines, const std::string& whole,
               std::string_view computations = "") {
  CheckModule(Entry(true, "x = f32[5,4]", Cat(kCutBoth, lines, whole), computations), kTwo);
}

TEST(BoundedCode, SetAndGet) {
  Check("  r = f32[<=5] copy(b)\n", Whole("f32", {5}, {true}));
  CheckBoth("  r = f32[<=5,<=4] copy(b)\n", Whole("f32", {5, 4}, {true, true}));
  // What a size grows by is 0.
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut, "  r = f32[<=5] set-dimension-size(b, m), dimensions={0}\n",
                        Whole("f32", {5}, {true}))),
              {{0, 5}, {2, 4}, {4, 2}, {3, 3}, {5, 0}});
  // A result of constant size has zeros behind it.
  CheckModule(Entry(false, "x = f32[5,2]",
                    "  ROOT r = f32[5,2] set-dimension-size(x, n), dimensions={0}\n"),
              kOne);
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut, "  ROOT r = f32[5] set-dimension-size(b, m), dimensions={0}\n")),
              {{0, 5}, {2, 4}, {4, 2}, {3, 3}, {5, 0}});
}

TEST(BoundedCode, SizesThatDoNotFitAreClamped) {
  auto module = ir::ParseOrDie(Entry(
      false, "x = f32[5]", Cat(kCut, "  ROOT r = s32[] get-dimension-size(b), dimensions={0}\n")));
  std::vector<Literal> arguments = testing::RandomArguments(*module, 1);
  for (auto [given, size] : {std::pair{-3, 0}, {9, 5}, {INT32_MIN, 0}, {INT32_MAX, 5}}) {
    arguments[0] = Literal::Scalar<int32_t>(ElementType::kS32, given);
    for (bool fuse : {true, false}) {
      auto value = testing::RunCompiled(*module, arguments, fuse);
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      EXPECT_EQ(value->ToString(), Cat(size));
    }
  }
}

// But for 1, whose element is repeated.
TEST(BoundedCode, OfTwoSizesOfElementwiseOpsTheSmallerCounts) {
  const std::string_view other = "  c = f32[<=5] set-dimension-size(y, m), dimensions={0}\n";
  const std::vector<std::vector<int32_t>> sizes = {{4, 2}, {2, 4}, {1, 3}, {3, 1},
                                                   {0, 1}, {1, 0}, {1, 1}, {0, 4}};
  const std::string whole = Whole("f32", {5}, {true}), inputs = "x = f32[5]; y = f32[5]";
  CheckModule(Entry(true, inputs, Cat(kCut, other, "  r = f32[<=5] subtract(b, c)\n", whole)),
              sizes);
  CheckModule(Entry(true, inputs,
                    Cat(kCut, other, "  p = pred[<=5] compare(b, c), direction=LT\n",
                        "  r = f32[<=5] select(p, c, b)\n", whole)),
              sizes);
  // A constant dimension has no say.
  CheckModule(Entry(true, inputs, Cat(kCut, "  r = f32[<=5] add(y, b)\n", whole)), sizes);
  CheckModule(Entry(true, "x = f32[5,4]; y = f32[5,4]",
                    Cat(kCutBoth, R"(
  c0 = f32[<=5,4] set-dimension-size(y, m), dimensions={0}
  c = f32[<=5,<=4] set-dimension-size(c0, n), dimensions={1}
  r = f32[<=5,<=4] divide(b, c)
)",
                        Whole("f32", {5, 4}, {true, true}))),
              {{3, 2}, {1, 3}, {4, 1}, {1, 1}, {0, 2}});
}

TEST(BoundedCode, Elementwise) {
  Check("  e = f32[<=5] exponential(b)\n  r = f32[<=5] add(e, b)\n", Whole("f32", {5}, {true}));
  Check("  c = s32[<=5] convert(b)\n  r = s32[<=5] divide(c, c)\n", Whole("s32", {5}, {true}));
  Check("  p = pred[<=5] compare(b, b), direction=LT\n  r = f32[<=5] select(p, b, b)\n",
        Whole("f32", {5}, {true}));
  Check("  one = f32[] constant(1)\n  r = f32[<=5] clamp(one, b, one)\n",
        Whole("f32", {5}, {true}));
  Check("  r = f32[<=5] map(b), dimensions={0}, to_apply=f\n", Whole("f32", {5}, {true}),
        R"(f {
  p = f32[] parameter(0)
  two = f32[] constant(2)
  ROOT r = f32[] multiply(p, two)
}
)");
  CheckBoth("  r = f32[<=5,<=4] multiply(b, b)\n", Whole("f32", {5, 4}, {true, true}));
  Check("  i = f32[<=5] negate(b)\n  c = c64[<=5] complex(b, i)\n  r = c64[<=5] multiply(c, c)\n",
        Whole("c64", {5}, {true}));
  Check("  q = s4[<=5] convert(b)\n  r = s4[<=5] add(q, q)\n", Whole("s4", {5}, {true}));
  Check("  r = u8[<=5,4] bitcast-convert(b)\n", Whole("u8", {5, 4}, {true, false}));
}

TEST(BoundedCode, Moves) {
  Check("  r = f32[3,<=5] broadcast(b), dimensions={1}\n", Whole("f32", {3, 5}, {false, true}));
  CheckBoth("  r = f32[<=4,<=5] transpose(b), dimensions={1,0}\n",
            Whole("f32", {4, 5}, {true, true}));
  Check("  r = f32[<=5] reverse(b), dimensions={0}\n", Whole("f32", {5}, {true}));
  CheckBoth("  r = f32[<=5,<=4] reverse(b), dimensions={0,1}\n",
            Whole("f32", {5, 4}, {true, true}));
  const std::string_view rows = "  w = f32[<=5,3] broadcast(b), dimensions={0}\n";
  Check(Cat(rows, "  r = f32[<=5,3] reverse(w), dimensions={1}\n"),
        Whole("f32", {5, 3}, {true, false}));
  Check(Cat(rows, "  r = f32[<=5,2] slice(w), slice={[0:5], [1:3]}\n"),
        Whole("f32", {5, 2}, {true, false}));
  Check(Cat(rows, "  z = f32[] constant(7)\n  r = f32[<=5,5] pad(w, z), padding=0_0x1_1\n"),
        Whole("f32", {5, 5}, {true, false}));
  Check(Cat(rows, "  r = f32[<=5,6] concatenate(w, w), dimensions={1}\n"),
        Whole("f32", {5, 6}, {true, false}));
}

TEST(BoundedCode, PiecesAreBehindEachOther) {
  Check("  r = f32[<=15] concatenate(b, x, b), dimensions={0}\n", Whole("f32", {15}, {true}));
  CheckBoth("  r = f32[<=10,<=4] concatenate(b, b), dimensions={0}\n",
            Whole("f32", {10, 4}, {true, true}));
  CheckModule(Entry(true, "x = f32[5,4]; y = f32[5]",
                    Cat(kCutBoth,
                        R"(  v = f32[<=5] set-dimension-size(y, n), dimensions={0}
  c = f32[<=5,3] broadcast(v), dimensions={0}
  r = f32[<=5,<=7] concatenate(c, b), dimensions={1}
)",
                        Whole("f32", {5, 7}, {true, true}))),
              kTwo);
}

TEST(BoundedCode, Reshapes) {
  Check("  r = f32[1,<=5,1] reshape(b)\n", Whole("f32", {1, 5, 1}, {false, true, false}));
  CheckBoth(
      R"(  w = f32[<=5,<=4,6] broadcast(b), dimensions={0,1}
  r = f32[<=5,1,<=4,2,3] reshape(w)
)",
      Whole("f32", {5, 1, 4, 2, 3}, {true, false, true, false, false}));
  // Elements are elsewhere, according to the sizes.
  CheckBoth("  r = f32[<=4,<=5] reshape(b)\n", Whole("f32", {4, 5}, {true, true}));
  CheckBoth(
      R"(  w = f32[2,<=5,<=4] broadcast(b), dimensions={1,2}
  r = f32[<=5,2,<=4] reshape(w)
)",
      Whole("f32", {5, 2, 4}, {true, false, true}));
}

// A reducer of f32 by an op.
std::string Reducer(std::string_view op) {
  return Cat("f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] ", op,
             "(a, b)\n}\n");
}

TEST(BoundedCode, Folds) {
  for (std::string_view op : {"add", "multiply", "maximum", "minimum"}) {
    Check(
        R"(  z = f32[] constant(0.5)
  ROOT r = f32[] reduce(b, z), dimensions={0}, to_apply=f
)",
        "", Reducer(op));
    CheckBoth(
        R"(  z = f32[] constant(0.5)
  r = f32[<=5] reduce(b, z), dimensions={1}, to_apply=f
)",
        Whole("f32", {5}, {true}), Reducer(op));
    CheckBoth(
        R"(  z = f32[] constant(0.5)
  ROOT r = f32[] reduce(b, z), dimensions={0,1}, to_apply=f
)",
        "", Reducer(op));
  }
  for (std::string_view type : {"s8", "u16", "s64", "pred", "s4", "c64", "bf16"}) {
    for (std::string_view op : {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}) {
      const bool pred = type == "pred", number = type == "c64" || type == "bf16";
      const bool logic = op == "and" || op == "or" || op == "xor";
      if ((pred && !logic) || (number && logic)) continue;
      Check(Cat("  c = ", type, "[<=5] convert(b)\n  z = ", type, "[] constant(",
                pred            ? "false"
                : type == "c64" ? "(1, 2)"
                                : "1",
                ")\n  ROOT r = ", type, "[] reduce(c, z), dimensions={0}, to_apply=f\n"),
            "",
            Cat("f {\n  a = ", type, "[] parameter(0)\n  b = ", type,
                "[] parameter(1)\n  ROOT r = ", type, "[] ", op, "(a, b)\n}\n"));
    }
  }
}

// Reducers of which no neutral element is known: with what is not there, nothing is done.
TEST(BoundedCode, FoldsByTheLetter) {
  // The last of all, times 3 for each step.
  Check(
      R"(  z = f32[] constant(0.5)
  ROOT r = f32[] reduce(b, z), dimensions={0}, to_apply=f
)",
      "",
      R"(f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] multiply(a, b)
  s = f32[] add(a, b)
  ROOT r = f32[] add(s, c)
}
)");
  const std::string_view largest =
      R"(f {
  v = f32[] parameter(0)
  i = s32[] parameter(1)
  w = f32[] parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f32[] select(p, v, w)
  k = s32[] select(p, i, j)
  ROOT t = (f32[], s32[]) tuple(x, k)
}
)";
  CheckBoth(
      R"(  i0 = s32[5,4] iota(), iota_dimension=0
  i1 = s32[<=5,4] set-dimension-size(i0, n), dimensions={0}
  i = s32[<=5,<=4] set-dimension-size(i1, m), dimensions={1}
  z = f32[] constant(-1)
  none = s32[] constant(-1)
  both = (f32[<=4], s32[<=4]) reduce(b, i, z, none), dimensions={0}, to_apply=f
  r = s32[<=4] get-tuple-element(both), index=1
)",
      Whole("s32", {4}, {true}), largest);
}

TEST(BoundedCode, WindowsAlongConstants) {
  Check(
      R"(  w = f32[<=5,6] broadcast(b), dimensions={0}
  z = f32[] constant(0)
  r = f32[<=5,4] reduce-window(w, z), window={size=1x3}, to_apply=f
)",
      Whole("f32", {5, 4}, {true, false}), Reducer("add"));
}

TEST(BoundedCode, Products) {
  Check("  ROOT r = f32[] dot(b, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n", "");
  // What is not there may be infinite.
  Check(
      R"(  zero = f32[] constant(0)
  zeros = f32[5] broadcast(zero), dimensions={}
  q = f32[5] divide(x, zeros)
  all = f32[5] iota(), iota_dimension=0
  n.f = f32[] convert(n)
  all.n = f32[5] broadcast(n.f), dimensions={}
  there = pred[5] compare(all, all.n), direction=LT
  some = f32[5] select(there, x, q)
  c = f32[<=5] set-dimension-size(some, n), dimensions={0}
  ROOT r = f32[] dot(b, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}
)",
      "");
  CheckBoth("  r = f32[<=5,<=5] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n",
            Whole("f32", {5, 5}, {true, true}));
  CheckBoth(
      "  w = f32[<=5,<=4,3] broadcast(b), dimensions={0,1}\n"
      "  r = f32[<=5,<=4,<=4] dot(w, w), lhs_batch_dims={0}, rhs_batch_dims={0}, "
      "lhs_contracting_dims={2}, rhs_contracting_dims={2}\n",
      Whole("f32", {5, 4, 4}, {true, true, true}));
}

TEST(BoundedCode, Sorts) {
  const std::string_view less =
      R"(f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GT
}
)";
  Check("  r = f32[<=5] sort(b), dimensions={0}, to_apply=f\n", Whole("f32", {5}, {true}), less);
  CheckBoth("  r = f32[<=5,<=4] sort(b), dimensions={1}, to_apply=f\n",
            Whole("f32", {5, 4}, {true, true}), less);
  const std::string_view pairs =
      R"(f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
)";
  Check(
      R"(  e = f32[<=5] exponential(b)
  s = (f32[<=5], f32[<=5]) sort(b, e), dimensions={0}, to_apply=f
  r = f32[<=5] get-tuple-element(s), index=1
)",
      Whole("f32", {5}, {true}), pairs);
}

TEST(BoundedCode, SlicesWhereOthersSay) {
  const std::vector<std::vector<int32_t>> places = {{2, 0},  {2, 9}, {3, 1},
                                                    {4, -2}, {5, 3}, {5, 2}};
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut, "  ROOT r = f32[2] dynamic-slice(b, m), dynamic_slice_sizes={2}\n")),
              places);
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut, "  r = f32[<=5] dynamic-slice(b, m), dynamic_slice_sizes={5}\n",
                        Whole("f32", {5}, {true}))),
              places);
  CheckModule(
      Entry(true, "x = f32[5]; u = f32[2]",
            Cat(kCut, "  r = f32[<=5] dynamic-update-slice(b, u, m)\n", Whole("f32", {5}, {true}))),
      places);
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut,
                        R"(  e = f32[<=5] exponential(b)
  r = f32[<=5] dynamic-update-slice(b, e, m)
)",
                        Whole("f32", {5}, {true}))),
              places);
  CheckModule(Entry(true, "x = f32[5]",
                    Cat(kCut,
                        R"(  u = u8[] convert(m)
  ROOT r = f32[2] dynamic-slice(b, u), dynamic_slice_sizes={2}
)")),
              places);
}

TEST(BoundedCode, Gathers) {
  // Of a table of bounded size; of a bounded number of places.
  const std::vector<std::vector<int32_t>> some = {{1, 1}, {2, 3}, {4, 0}, {5, 4}};
  CheckModule(Entry(true, "x = f32[5]; i0 = s32[4,1]",
                    Cat(kCut,
                        "  i = s32[<=4,1] set-dimension-size(i0, m), dimensions={0}\n"
                        "  r = f32[<=4] gather(b, i), offset_dims={}, collapsed_slice_dims={0}, "
                        "start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n",
                        Whole("f32", {4}, {true}))),
              some);
  // Rows of all that is there, by a vector of indices and by single ones.
  CheckModule(Entry(true, "x = f32[5,4]; i = s8[3]",
                    Cat(kCutBoth,
                        "  r = f32[3,<=4] gather(b, i), offset_dims={1}, collapsed_slice_dims={0}, "
                        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}\n",
                        Whole("f32", {3, 4}, {false, true}))),
              some);
  CheckModule(Entry(true, "x = f32[5,4]; i = u32[3,2]",
                    Cat(kCutBoth,
                        "  ROOT r = f32[3] gather(b, i), offset_dims={}, "
                        "collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, "
                        "slice_sizes={1,1}\n")),
              {{1, 1}, {2, 3}, {5, 4}});
}

TEST(BoundedCode, Scatters) {
  const std::string_view into =
      ", update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
      "index_vector_dim=1, to_apply=f\n";
  CheckModule(Entry(true, "x = f32[5]; u0 = f32[4]",
                    Cat(kCut,
                        R"(  i0 = s32[4,1] constant({{0}, {2}, {1}, {0}})
  i = s32[<=4,1] set-dimension-size(i0, m), dimensions={0}
  u = f32[<=4] set-dimension-size(u0, m), dimensions={0}
  r = f32[<=5] scatter(b, i, u))",
                        into, Whole("f32", {5}, {true})),
                    Reducer("add")),
              {{0, 4}, {3, 0}, {3, 4}, {5, 2}, {5, 4}});
  CheckModule(Entry(true, "x = f32[5,4]; i = s32[3,1]; u0 = f32[3,4]",
                    Cat(kCutBoth,
                        "  u = f32[3,<=4] set-dimension-size(u0, m), dimensions={1}\n"
                        "  r = f32[<=5,<=4] scatter(b, i, u), update_window_dims={1}, "
                        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                        "index_vector_dim=1, to_apply=f\n",
                        Whole("f32", {5, 4}, {true, true})),
                    Reducer("multiply")),
              kTwo);
  // Slices that are not wholly where something is are left out.
  CheckModule(Entry(false, "x = f32[5]; u = f32[4,2]",
                    Cat(kCut,
                        "  i = s32[4,1] constant({{0}, {3}, {1}, {2}})\n"
                        "  r = f32[<=5] scatter(b, i, u), update_window_dims={1}, "
                        "inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
                        "index_vector_dim=1, to_apply=f\n",
                        Whole("f32", {5}, {true})),
                    Reducer("add")),
              {{2}, {3}, {4}, {5}});
  // Slices of two columns, where there are as many.
  CheckModule(Entry(true, "x = f32[5,4]; i = s32[3,1]; u = f32[3,2]",
                    Cat(kCutBoth,
                        "  r = f32[<=5,<=4] scatter(b, i, u), update_window_dims={1}, "
                        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                        "index_vector_dim=1, to_apply=f\n",
                        Whole("f32", {5, 4}, {true, true})),
                    Reducer("add")),
              {{0, 2}, {3, 3}, {5, 4}});
}

TEST(BoundedCode, LoopsAndBranches) {
  const std::string_view computations =
      R"(cond {
  p = (f32[<=5], s32[]) parameter(0)
  x = f32[<=5] get-tuple-element(p), index=0
  s = s32[] get-dimension-size(x), dimensions={0}
  two = s32[] constant(2)
  ROOT c = pred[] compare(s, two), direction=GT
}
body {
  p = (f32[<=5], s32[]) parameter(0)
  x = f32[<=5] get-tuple-element(p), index=0
  k = s32[] get-tuple-element(p), index=1
  s = s32[] get-dimension-size(x), dimensions={0}
  one = s32[] constant(1)
  l = s32[] subtract(s, one)
  y = f32[<=5] add(x, x)
  j = s32[] add(k, l)
  z = f32[<=5] set-dimension-size(y, l), dimensions={0}
  ROOT t = (f32[<=5], s32[]) tuple(z, j)
}
same {
  p = f32[<=5] parameter(0)
  ROOT c = f32[<=5] copy(p)
}
negative {
  p = f32[<=5] parameter(0)
  ROOT c = f32[<=5] negate(p)
}
)";
  Check(
      R"(  z = s32[] constant(0)
  i = (f32[<=5], s32[]) tuple(b, z)
  w = (f32[<=5], s32[]) while(i), condition=cond, body=body
  r = f32[<=5] get-tuple-element(w), index=0
)",
      Whole("f32", {5}, {true}), computations);
  Check(
      R"(  one = s32[] constant(1)
  p = pred[] compare(n, one), direction=GT
  c = f32[<=5] conditional(p, b, b), true_computation=same, false_computation=negative
  d = f32[<=5] call(c), to_apply=negative
  r = f32[<=5] opt-barrier(d)
)",
      Whole("f32", {5}, {true}), computations);
}

TEST(BoundedCode, ParametersAreAsLargeAsTheirBounds) {
  const std::string text =
      R"(HloModule m
ENTRY e {
  t = (f32[<=3], s32[2,<=2]) parameter(0)
  p = f32[<=3] get-tuple-element(t), index=0
  q = s32[2,<=2] get-tuple-element(t), index=1
  z = f32[] constant(0)
  s = f32[] reduce(p, z), dimensions={0}, to_apply=f
  n = s32[] get-dimension-size(p), dimensions={0}
  m = s32[] get-dimension-size(q), dimensions={1}
  ROOT r = (f32[], s32[], s32[]) tuple(s, n, m)
}
)";
  auto module = ir::ParseOrDie(Cat("HloModule m\n", Reducer("add"), text.substr(12)));
  const std::vector<float> values = {1, 2, 4};
  Literal argument = Literal::Tuple({Literal::Array<float>(Shape(ElementType::kF32, {3}), values),
                                     Literal(Shape(ElementType::kS32, {2, 2}))});
  for (bool fuse : {true, false}) {
    auto value = testing::RunCompiled(*module, {argument}, fuse);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ(value->ToString(), "(7, 3, 2)");
  }
}

// Behind its sizes a result is zero.
TEST(BoundedCode, ResultsAreAsLargeAsTheirBounds) {
  auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  x = s32[2,3] constant({{1,2,3},{4,5,6}})
  n = s32[] parameter(0)
  a = s32[<=2,3] set-dimension-size(x, n), dimensions={0}
  b = s32[<=2,<=3] set-dimension-size(a, n), dimensions={1}
  c = s32[<=2,<=3] negate(b)
  ROOT r = (s32[<=2,<=3], s32[]) tuple(c, n)
}
)");
  for (bool fuse : {true, false}) {
    auto value = testing::RunCompiled(*module, {Literal::Scalar(ElementType::kS32, 1)}, fuse);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ(value->ToString(), "({ { -1, 0, 0 }, { 0, 0, 0 } }, 1)");
  }
}

TEST(BoundedCode, SizesOfConstantDimensions) {
  auto module = ir::ParseOrDie(
      "ENTRY e { x = s32[2] parameter(0)\nn = s32[] constant(2)\n"
      "ROOT r = s32[2] set-dimension-size(x, n), dimensions={0} }");
  const std::vector<int32_t> values = {3, 4};
  for (bool fuse : {true, false}) {
    auto value = testing::RunCompiled(
        *module, {Literal::Array<int32_t>(Shape(ElementType::kS32, {2}), values)}, fuse);
    ASSERT_TRUE(value.ok()) << value.status().ToString();
    EXPECT_EQ(value->ToString(), "{3, 4}");
  }
}

// The error of compiling.
std::string Error(std::string_view lines, std::string_view computations = "") {
  auto module = ir::ParseOrDie(Entry(false, "x = f32[5]", Cat(kCut, lines), computations));
  auto loaded = testing::Load(*module, true);
  return loaded.ok() ? "OK" : loaded.status().ToString();
}

TEST(BoundedCode, WhatHasNoCodeIsNamed) {
  EXPECT_EQ(Error(R"(  t = (f32[2], s32[2]) topk(b), k=2
  ROOT r = f32[2] get-tuple-element(t), index=0
)"),
            "UNIMPLEMENTED: expand-bounded: topk: 't' of shape (f32[2], s32[2]) has no compiled "
            "code: bounded dimensions of f32[<=5]");
  EXPECT_EQ(Error(R"(  i = s32[<=5] iota(), iota_dimension=0
  ROOT r = s32[] get-dimension-size(i), dimensions={0}
)"),
            "UNIMPLEMENTED: expand-bounded: iota: 'i' of shape s32[<=5] has no compiled code: "
            "bounded dimensions");
}

}  // namespace
}  // namespace kiln
