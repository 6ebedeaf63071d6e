// Kernels of fusions that are equal but for names: built once, with names of their own.
#include "kernel/fusion_analysis.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text.h"
#include "kernel/build.h"
#include "support/hlo.h"

namespace kiln::kernel {
namespace {

constexpr std::string_view kLayers = R"(HloModule m
sum.1 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
sum.2 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
most { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
first { x = f32[4,6] parameter(0)
  zero = f32[] constant(0)
  square = f32[4,6] multiply(x, x), metadata={op_name="first/square"}
  ROOT r = f32[4] reduce(square, zero), dimensions={1}, to_apply=sum.1 }
second { x = f32[4,6] parameter(0)
  null = f32[] constant(0)
  power = f32[4,6] multiply(x, x), metadata={op_name="second/square"}
  ROOT total = f32[4] reduce(power, null), dimensions={1}, to_apply=sum.2 }
other { x = f32[4,6] parameter(0)
  zero = f32[] constant(0)
  square = f32[4,6] multiply(x, x)
  ROOT r = f32[4] reduce(square, zero), dimensions={1}, to_apply=most }
ENTRY e { x = f32[4,6] parameter(0)
  a = f32[4] fusion(x), kind=kInput, calls=first
  b = f32[4] fusion(x), kind=kInput, calls=second
  c = f32[4] fusion(x), kind=kInput, calls=other
  ROOT t = (f32[4], f32[4], f32[4]) tuple(a, b, c) })";

TEST(FusionAnalysis, FusionsOfOneFormHaveOneKernelUnderTheirNames) {
  auto module = ir::ParseOrDie(kLayers);
  const ir::Instruction& root = *module->entry()->root();
  FusionAnalysis analysis;
  for (int64_t k = 0; k < 3; ++k) {
    const ir::Instruction& fusion = *root.operand(k);
    const Result<Kernel>& kernel = analysis.KernelOf(fusion);
    ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
    const Result<Kernel> alone = BuildKernel(GroupOf(fusion), fusion.name());
    EXPECT_EQ(kernel->name, fusion.name());
    EXPECT_EQ(kernel->op_names, alone->op_names);
    EXPECT_EQ(kernel->ToString(), alone->ToString());
    EXPECT_EQ(analysis.TextOf(fusion), alone->ToString());
  }
  // One text, written once.
  EXPECT_EQ(&analysis.TextOf(*root.operand(0)), &analysis.TextOf(*root.operand(1)));
  EXPECT_NE(analysis.TextOf(*root.operand(0)), analysis.TextOf(*root.operand(2)));
}

TEST(FusionAnalysis, AChangedFusionHasAnotherKernel) {
  auto module = ir::ParseOrDie(kLayers);
  ir::Instruction& fusion = *module->entry()->root()->operand(1);
  FusionAnalysis analysis;
  const std::string before = analysis.TextOf(*module->entry()->root()->operand(0));
  EXPECT_EQ(analysis.TextOf(fusion), before);
  ir::Instruction* square = fusion.called(0)->root()->operand(0);
  fusion.called(0)->Replace(square, {.opcode = Opcode::kAdd,
                                     .operands = {square->operand(0), square->operand(1)},
                                     .shape = square->shape()});
  EXPECT_NE(analysis.TextOf(fusion), before);
  EXPECT_EQ(analysis.TextOf(fusion), BuildKernel(GroupOf(fusion), "k")->ToString());
}

}  // namespace
}  // namespace kiln::kernel
