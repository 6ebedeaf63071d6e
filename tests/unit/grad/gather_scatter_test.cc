// Derivatives of slices at computed places.
#include <gtest/gtest.h>

#include "grad/gradient.h"
#include "ir/builder.h"
#include "support/hlo.h"
#include "unit/grad/check.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

TEST(GradGatherScatter, Gather) {
  // Rows, of which two are clamped and two are the same.
  ExpectDerivativesOf(R"(
  x = f64[4,3] parameter(0)
  i = s32[5] constant({2, -7, 2, 9, 1})
  g = f64[5,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}
  ROOT r = f64[5,3] multiply(g, g))");
  // Windows by vectors, whose dimension is the first one.
  ExpectDerivativesOf(R"(
  x = f64[4,6,2] parameter(0)
  i = u8[2,2,2] constant({{{0, 200}, {1, 3}}, {{4, 1}, {2, 0}}})
  g = f64[3,2,2,2] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={2}, start_index_map={1,2}, index_vector_dim=0, slice_sizes={3,2,1}
  ROOT r = f64[3,2,2,2] sine(g))");
  // Vectors with a batch.
  ExpectDerivativesOf(R"(
  x = f64[2,5,3] parameter(0)
  i = s64[4,2] constant({{0, 4}, {-1, 2}, {3, 3}, {8, 1}})
  g = f64[4,2,3] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,1,3}
  ROOT r = f64[4,2,3] exponential(g))");
}

TEST(GradGatherScatter, GatherOfAnEmptyArray) {
  const auto g = GradientsAt(R"(
  x = f64[0,3] parameter(0)
  i = s32[0] constant({})
  ROOT g = f64[0,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0,3})",
                             {Doubles({0, 3}, {})});
  ASSERT_EQ(g.size(), 1u);
  EXPECT_EQ(g[0].shape(), Shape(ElementType::kF64, {0, 3}));
}

// Updates of rows by a computation; two collide, one is below the operand and one beyond it.
std::string OfRows(std::string_view computation, std::string_view more = "") {
  return Cat(R"(
  x = f64[4,3] parameter(0)
  u = f64[5,3] parameter(1)
  i = s32[5] constant({2, -1, 2, 4, 1})
  s = f64[4,3] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=)",
             computation, more, "\n  ROOT r = f64[4,3] multiply(s, s)");
}

TEST(GradGatherScatter, ScatterOfRows) {
  for (std::string_view computation : {"add", "last", "sub", "max", "min"}) {
    ExpectDerivativesOf(OfRows(computation));
  }
}

TEST(GradGatherScatter, ScatterOfWindows) {
  for (std::string_view computation : {"add", "last", "max"}) {
    // Windows that overlap and one that is partly outside.
    ExpectDerivativesOf(Cat(R"(
  x = f64[4,5] parameter(0)
  u = f64[2,2,3] parameter(1)
  i = s32[2,3] constant({{0, 1, 3}, {1, 2, 0}})
  s = f64[4,5] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=)",
                            computation, "\n  ROOT r = f64[4,5] sine(s)"));
    // With a batch.
    ExpectDerivativesOf(Cat(R"(
  x = f64[2,5] parameter(0)
  u = f64[3,2] parameter(1)
  i = s32[3,2,1] constant({{{0}, {4}}, {{0}, {5}}, {{3}, {4}}})
  s = f64[2,5] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2, to_apply=)",
                            computation, "\n  ROOT r = f64[2,5] sine(s)"));
  }
}

TEST(GradGatherScatter, ProductsWithoutCollisions) {
  ExpectDerivativesOf(R"(
  x = f64[4] parameter(0)
  u = f64[3] parameter(1)
  i = s32[3] constant({2, 4, 0})
  ROOT s = f64[4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=mul)",
                      {Doubles({4}, {1, 2, 0, 3}), Doubles({3}, {0, 2, 3})});
}

TEST(GradGatherScatter, EqualOnesShare) {
  const auto g = GradientsAt(R"(
  x = f64[2] parameter(0)
  u = f64[4] parameter(1)
  i = s32[4] constant({0, 0, 0, 1})
  ROOT s = f64[2] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=max)",
                             {Doubles({2}, {5, 1}), Doubles({4}, {5, 2, 5, 0})});
  ASSERT_EQ(g.size(), 2u);
  EXPECT_EQ(g[0].ToString(), "{0.3333333333333333, 1}");
  EXPECT_EQ(g[1].ToString(), "{0.3333333333333333, 0, 0.3333333333333333, 0}");
}

TEST(GradGatherScatter, SeveralOperands) {
  ExpectDerivatives(R"(HloModule m
both {
  a = f64[] parameter(0)
  b = f64[] parameter(1)
  c = f64[] parameter(2)
  d = f64[] parameter(3)
  sum = f64[] add(a, c)
  largest = f64[] maximum(b, d)
  ROOT r = (f64[], f64[]) tuple(sum, largest)
}
ENTRY e {
  x = f64[3] parameter(0)
  y = f64[3] parameter(1)
  u = f64[4] parameter(2)
  v = f64[4] parameter(3)
  i = s32[4] constant({2, 0, 2, 3})
  ROOT s = (f64[3], f64[3]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both
})");
}

// The reverse derivative of the root by the first parameter, as a module.
std::unique_ptr<ir::Module> ReverseOf(std::string_view text) {
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(text);
  ir::Computation& entry = *module->entry();
  ir::Builder b(&entry);
  Instruction* t = b.Number(entry.root(), 1);
  auto gradients =
      VectorJacobianProduct(entry, {{entry.root()}}, {{t}}, {{entry.parameter(0)}}, {});
  EXPECT_TRUE(gradients.ok()) << gradients.status().ToString();
  if (gradients.ok()) entry.set_root((*gradients)[0]);
  return module;
}

TEST(GradGatherScatter, SumsOfSlicesAreAddedInPlace) {
  auto module = ReverseOf(R"(HloModule m
ENTRY e {
  x = f64[9] parameter(0)
  i = s32[2] constant({2, 7})
  j = s32[2] constant({2, 4})
  g = f64[2] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  h = f64[2] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
  ROOT r = f64[2] add(g, h)
})");
  const Instruction* root = module->entry()->root();
  ASSERT_EQ(root->opcode(), Opcode::kScatter);
  EXPECT_EQ(root->operand(0)->opcode(), Opcode::kScatter);
}

TEST(GradGatherScatter, SortedElementsAreTakenOnce) {
  for (std::string_view lines : {"ROOT r = f64[3,4] sort(x), dimensions={1}, to_apply=less",
                                 "t = (f64[3,2], s32[3,2]) topk(x), k=2\n"
                                 "ROOT r = f64[3,2] get-tuple-element(t), index=0"}) {
    auto module = ReverseOf(Cat(R"(HloModule m
less { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f64[3,4] parameter(0)
  )",
                                lines, "\n}"));
    const Instruction* root = module->entry()->root();
    ASSERT_EQ(root->opcode(), Opcode::kScatter);
    EXPECT_TRUE(root->attributes().Bool(Attr::kUniqueIndices));
    EXPECT_EQ(root->operand(1)->opcode(), Opcode::kGetTupleElement);
  }
}

}  // namespace
}  // namespace kiln::grad
