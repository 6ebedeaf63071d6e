// Derivatives in all types of floats: what is built, and that it runs.
#include <gtest/gtest.h>

#include <cmath>

#include "grad/gradient.h"
#include "interp/interpreter.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::grad {
namespace {

using ir::Instruction;

constexpr std::string_view kPrograms[] = {
    R"(
  i = s32[4] constant({2, -7, 2, 1})
  ROOT r = T[4,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2})",
    R"(
  i = s32[6] constant({2, -7, 2, 1, 0, 0})
  ROOT r = T[6,2] scatter(x, i, x), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add)",
    R"(
  i = s32[6] constant({2, -7, 2, 1, 0, 0})
  ROOT r = T[6,2] scatter(x, i, x), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=max)",
    "ROOT r = T[6,2] sort(x), dimensions={0}, to_apply=less",
    R"(
  t = (T[6,1], s32[6,1]) topk(x), k=1, largest=true
  ROOT r = T[6,1] get-tuple-element(t), index=0)",
    "ROOT r = T[2] reduce(x, one), dimensions={0}, to_apply=add",
    "ROOT r = T[2] reduce(x, one), dimensions={0}, to_apply=mul",
    "ROOT r = T[2] reduce(x, one), dimensions={0}, to_apply=max",
    "ROOT r = T[5,2] reduce-window(x, one), window={size=2x1}, to_apply=add",
    "ROOT r = T[5,2] reduce-window(x, one), window={size=2x1}, to_apply=mul",
    "ROOT r = T[5,2] reduce-window(x, one), window={size=2x1}, to_apply=max",
    "ROOT r = T[6,2] map(x, x), dimensions={0,1}, to_apply=mul",
    R"(
  w = T[2,2] slice(x), slice={[1:3], [0:2]}
  ROOT r = T[6,2] convolution(x, w), window={}, dim_labels=bf_io->bf)",
    R"(
  s = T[2] reduce(x, one), dimensions={0}, to_apply=add
  n = (T[6,2], T[2], T[2]) batch-norm-training(x, s, s), epsilon=0.5, feature_index=1
  ROOT r = T[6,2] get-tuple-element(n), index=0)",
};

std::string TextOf(std::string_view program, std::string_view type) {
  const std::string text = Cat(R"(HloModule m
add { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] add(a, b) }
mul { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] multiply(a, b) }
max { a = T[] parameter(0) b = T[] parameter(1) ROOT r = T[] maximum(a, b) }
less { a = T[] parameter(0) b = T[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = T[6,2] parameter(0)
  one = T[] constant(1)
  )",
                               program, "\n}\n");
  std::string typed;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == 'T' && text[k + 1] == '[') {
      typed += type;
    } else {
      typed += text[k];
    }
  }
  return typed;
}

TEST(GradTypes, AllFloats) {
  for (std::string_view type : {"f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3fn"}) {
    for (std::string_view program : kPrograms) {
      SCOPED_TRACE(TextOf(program, type));
      for (const bool forward : {false, true}) {
        std::unique_ptr<ir::Module> module = ir::ParseOrDie(TextOf(program, type));
        ir::Computation& entry = *module->entry();
        Instruction *x = entry.parameter(0), *y = entry.root();
        ir::Builder b(&entry);
        Instruction* t = b.Number(forward ? x : y, 1);
        auto derivatives = forward ? JacobianVectorProduct(entry, {{y}}, {{x}}, {{t}}, {})
                                   : VectorJacobianProduct(entry, {{y}}, {{t}}, {{x}}, {});
        ASSERT_TRUE(derivatives.ok()) << derivatives.status().ToString();
        entry.set_root((*derivatives)[0]);
        ASSERT_TRUE(ir::Verify(*module).ok()) << ir::Verify(*module).ToString();
        const Shape& shape = x->shape();
        Literal argument(shape);
        for (int64_t k = 0; k < shape.num_elements(); ++k) {
          const Literal number = Literal::ScalarOf(shape.type(), std::cos(3 * k));
          std::memcpy(argument.data() + k * number.byte_size(), number.data(),
                      static_cast<size_t>(number.byte_size()));
        }
        Result<Literal> result = interp::Evaluate(*module, {{argument}});
        ASSERT_TRUE(result.ok()) << result.status().ToString();
        double sum = 0;
        for (int64_t k = 0; k < result->shape().num_elements(); ++k) {
          ASSERT_TRUE(std::isfinite(result->AsDouble(k))) << result->ToString();
          sum += std::abs(result->AsDouble(k));
        }
        EXPECT_GT(sum, 0.0);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::grad
