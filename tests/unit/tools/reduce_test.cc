// Making a failing module small.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/pass.h"
#include "random/fodder.h"
#include "random/module.h"
#include "support/hlo.h"
#include "tools/reduce/rebuild.h"
#include "tools/reduce/reduce.h"

namespace kiln::tools {
namespace {

int64_t CountOf(const ir::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& c : module.computations()) {
    for (ir::Instruction* i : c->instructions()) count += i->opcode() == opcode;
  }
  return count;
}

// "Fails" where an op is in it: what is left is that op and its operands.
TEST(Reduce, LeavesTheOpThatFails) {
  int reduced = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    auto module = testing::RandomModule(seed);
    for (Opcode opcode : {Opcode::kDot, Opcode::kPad, Opcode::kReduce, Opcode::kGather}) {
      if (CountOf(*module, opcode) == 0) continue;
      auto small = Reduce(*module, [&](const ir::Module& m) { return CountOf(m, opcode) > 0; });
      std::string text = ir::ToHloText(*small);
      EXPECT_EQ(ir::Verify(*small).ToString(), "OK") << text;
      EXPECT_EQ(CountOf(*small, opcode), 1) << text;
      EXPECT_LE(small->entry()->instruction_count(), 9) << text;
      int64_t elements = 0;
      for (ir::Instruction* i : small->entry()->instructions()) {
        if (i->shape().is_array()) elements = std::max(elements, i->shape().num_elements());
      }
      EXPECT_LE(elements, 64) << text;
      ++reduced;
    }
  }
  EXPECT_GT(reduced, 40);
}

// A donated parameter stays one, under its new number, as long as its result is there.
TEST(Reduce, KeepsAliases) {
  auto module = ir::ParseOrDie(
      "HloModule m, input_output_alias={ {1}: (2, {}, may-alias), {0}: (0, {}, may-alias) }\n"
      "ENTRY e { a = f32[4] parameter(0) b = f32[4] parameter(1) c = f32[4] parameter(2)"
      " x = f32[4] negate(a) y = f32[4] add(b, c) ROOT t = tuple(x, y) }");
  const ir::Instruction* root = module->entry()->root();
  auto one = Rebuild(*module, {.results = {root->operand(1)}});
  ASSERT_TRUE(one.ok());
  ASSERT_EQ((*one)->aliases().size(), 1u);
  EXPECT_TRUE((*one)->aliases()[0].output_index.empty());
  EXPECT_EQ((*one)->aliases()[0].parameter, 1);
  auto turned = Rebuild(*module, {.results = {root->operand(1), root->operand(0)}});
  ASSERT_TRUE(turned.ok());
  ASSERT_EQ((*turned)->aliases().size(), 2u);
  EXPECT_EQ((*turned)->aliases()[0].output_index, std::vector<int64_t>{0});
  EXPECT_EQ((*turned)->aliases()[0].parameter, 2);
  auto whole = Rebuild(*module, {});
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ((*whole)->aliases().size(), 2u);
}

// What matters may be in a loop in a branch.
TEST(Reduce, TakesControlFlowApart) {
  int reduced = 0;
  for (uint64_t seed = 0; seed < 60 && reduced < 10; ++seed) {
    auto module = testing::ControlFodder(seed);
    // One that nobody needs is gone at the first try, and with it the failure.
    auto fails = [](const ir::Module& m) {
      auto copy = m.Clone();
      const passes::Pipeline tidy = {{{"tuple-simplifier", "while-simplifier", "dce"}, true}};
      EXPECT_TRUE(passes::RunPipeline("tidy", tidy, *copy, {}).ok());
      return CountOf(*copy, Opcode::kMultiply) > 0;
    };
    if (!fails(*module)) continue;
    auto small = Reduce(*module, fails);
    std::string text = ir::ToHloText(*small);
    EXPECT_EQ(ir::Verify(*small).ToString(), "OK") << text;
    EXPECT_EQ(CountOf(*small, Opcode::kWhile) + CountOf(*small, Opcode::kConditional), 0) << text;
    EXPECT_LE(small->instruction_count(), 5) << text;
    ++reduced;
  }
  EXPECT_EQ(reduced, 10);
}

// The same module and the same answers give the same text, within the tries.
TEST(Reduce, IsRepeatableAndEnds) {
  auto module = testing::RandomModule(7);
  int64_t tries = 0;
  auto fails = [&](const ir::Module& m) { return ++tries, CountOf(m, Opcode::kReduce) > 0; };
  std::string first = ir::ToHloText(*Reduce(*module, fails, {.max_tries = 100}));
  EXPECT_LE(tries, 100);
  EXPECT_EQ(first, ir::ToHloText(*Reduce(*module, fails, {.max_tries = 100})));
}

TEST(Reduce, SizesChangeEverywhere) {
  auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e { x = f32[6,7] parameter(0)
  c = f32[6] constant({1, 2, 3, 4, 5, 6})
  a = f32[6,7] broadcast(c), dimensions={0}
  s = f32[6,7] add(x, a)
  ROOT p = f32[5,7] slice(s), slice={[1:6], [0:7]} })");
  auto small = Rebuild(*module, {.results = {}, .replaced = {}, .sizes = {{6, 3}, {7, 1}}});
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  EXPECT_EQ((*small)->entry()->root()->shape().ToString(), "f32[2,1]");
  std::string text = ir::ToHloText(**small);
  EXPECT_NE(text.find("f32[3]{0} constant({1, 2, 3})"), std::string::npos) << text;
}

}  // namespace
}  // namespace kiln::tools
