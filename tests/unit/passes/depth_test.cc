// Deep and long programs: passes neither give up nor run out of stack.

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kernel/fusible.h"
#include "passes/memory/buffer_assignment.h"
#include "passes/pipelines.h"
#include "support/hlo.h"

namespace kiln::passes {
namespace {

Status RunCpu(ir::Module& module) {
  PassContext context;
  context.verify = true;
  return RunPipeline("test", CpuPipeline(), module, context);
}

// Loops in loops, each of which runs once.
TEST(PassesDepth, NestedLoops) {
  std::string text = R"(HloModule nested
body_0 { p_0 = f32[] parameter(0)
  ROOT n_0 = f32[] negate(p_0) }
)";
  constexpr int kDepth = 200;
  for (int k = 1; k <= kDepth; ++k) {
    text += Cat("condition_", k, " { s_", k, " = (s32[], f32[]) parameter(0)\n  i_", k,
                " = s32[] get-tuple-element(s_", k, "), index=0\n  one_", k,
                " = s32[] constant(1)\n  ROOT c_", k, " = pred[] compare(i_", k, ", one_", k,
                "), direction=LT }\n");
    text += Cat("loop_body_", k, " { t_", k, " = (s32[], f32[]) parameter(0)\n  j_", k,
                " = s32[] get-tuple-element(t_", k, "), index=0\n  x_", k,
                " = f32[] get-tuple-element(t_", k, "), index=1\n  step_", k,
                " = s32[] constant(1)\n  next_", k, " = s32[] add(j_", k, ", step_", k, ")\n  y_",
                k, " = f32[] call(x_", k, "), to_apply=body_", k - 1, "\n  ROOT r_", k,
                " = (s32[], f32[]) tuple(next_", k, ", y_", k, ") }\n");
    text += Cat("body_", k, " { p_", k, " = f32[] parameter(0)\n  zero_", k,
                " = s32[] constant(0)\n  start_", k, " = (s32[], f32[]) tuple(zero_", k, ", p_", k,
                ")\n  w_", k, " = (s32[], f32[]) while(start_", k, "), condition=condition_", k,
                ", body=loop_body_", k, "\n  ROOT v_", k, " = f32[] get-tuple-element(w_", k,
                "), index=1 }\n");
  }
  text += Cat("ENTRY main { x = f32[] parameter(0)\n  ROOT r = f32[] call(x), to_apply=body_",
              kDepth, " }\n");
  auto module = ir::ParseOrDie(text);
  Status status = RunCpu(*module);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(ir::CountOps(*module, Opcode::kWhile), 0);
}

// Conditionals in branches of each other that a value decides, or each one a value of its own.
std::string NestedConditionals(int depth, bool one_decides) {
  std::string types = one_decides ? "pred[]" : "pred[2]";
  std::string text = Cat("HloModule nested\nb_0 { p_0 = (", types, R"(, f32[4]) parameter(0)
  ROOT r_0 = f32[4] get-tuple-element(p_0), index=1 }
)");
  for (int k = 1; k <= depth; ++k) {
    std::string state = Cat("(", types, ", f32[4])");
    text += Cat("f_", k, " { g_", k, " = ", state, " parameter(0)\n  x_", k,
                " = f32[4] get-tuple-element(g_", k, "), index=1\n  ROOT s_", k,
                " = f32[4] exponential(x_", k, ") }\n");
    text += Cat("b_", k, " { p_", k, " = ", state, " parameter(0)\n  q_", k, " = ", types,
                " get-tuple-element(p_", k, "), index=0\n  y_", k, " = f32[4] get-tuple-element(p_",
                k, "), index=1\n  z_", k, " = f32[4] sine(y_", k, ")\n  t_", k, " = ", state,
                " tuple(q_", k, ", z_", k, ")\n");
    std::string decides = Cat("q_", k);
    if (!one_decides) {
      text += Cat("  a_", k, " = f32[1] slice(y_", k, "), slice={[0:1]}\n  c_", k,
                  " = f32[] reshape(a_", k, ")\n  n_", k, " = f32[] constant(", k, ")\n  d_", k,
                  " = pred[] compare(c_", k, ", n_", k, "), direction=LT\n");
      decides = Cat("d_", k);
    }
    text += Cat("  ROOT r_", k, " = f32[4] conditional(", decides, ", t_", k, ", p_", k,
                "), true_computation=b_", k - 1, ", false_computation=f_", k, " }\n");
  }
  return Cat(text, "ENTRY main { q = ", types, " parameter(0)\n  x = f32[4] parameter(1)\n  t = (",
             types, ", f32[4]) tuple(q, x)\n  ROOT r = f32[4] call(t), to_apply=b_", depth, " }\n");
}

// What is made of them on the way grows as the text does.
TEST(PassesDepth, NestedConditionals) {
  for (bool one_decides : {true, false}) {
    auto made = [&](int depth) -> int64_t {
      auto module = ir::ParseOrDie(NestedConditionals(depth, one_decides));
      Status status = RunCpu(*module);
      EXPECT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(ir::CountOps(*module, Opcode::kConditional), one_decides ? 1 : depth);
      return module->NextId();
    };
    const int64_t few = made(30), many = made(120);
    EXPECT_LE(many, 5 * few) << one_decides;
  }
}

// Chains of one op on the next: of what undoes itself, of what pushes up step by step, and of what
// stays.
TEST(PassesDepth, LongChains) {
  constexpr int kLength = 20000;
  struct Case {
    const char* op;
    int64_t left;  // instructions at most
  };
  for (const Case& c :
       {Case{"f32[8,8] negate(%s)", 1}, Case{"f32[8,8] transpose(%s), dimensions={1,0}", 1},
        Case{"f32[8,8] copy(%s)", 1}}) {
    std::string text = "HloModule chain\nENTRY main {\n  v0 = f32[8,8] parameter(0)\n";
    for (int k = 1; k <= kLength; ++k) {
      std::string op = c.op;
      op.replace(op.find("%s"), 2, Cat("v", k - 1));
      text += Cat(k == kLength ? "  ROOT v" : "  v", k, " = ", op, "\n");
    }
    auto module = ir::ParseOrDie(text + "}\n");
    Status status = RunCpu(*module);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_LE(module->entry()->instruction_count(), c.left) << c.op;
  }
}

// A slice of a pile of pads, concatenations and transposes goes up all of them.
TEST(PassesDepth, SlicesGoUp) {
  std::string text =
      R"(HloModule up
ENTRY main {
  v0 = f32[4,4] parameter(0)
  y = f32[4,4] parameter(1)
  z = f32[] parameter(2)
)";
  int k = 0;
  for (; k < 900; k += 3) {
    text += Cat("  v", k + 1, " = f32[8,4] concatenate(v", k, ", y), dimensions={0}\n");
    text += Cat("  v", k + 2, " = f32[4,8] transpose(v", k + 1, "), dimensions={1,0}\n");
    text += Cat("  v", k + 3, " = f32[4,4] slice(v", k + 2, "), slice={[0:4], [0:4]}\n");
  }
  auto module = ir::ParseOrDie(Cat(text, "  ROOT r = f32[4,4] negate(v", k, ")\n}\n"));
  Status status = RunCpu(*module);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(ir::CountOps(*module, Opcode::kConcatenate), 0);
  EXPECT_EQ(ir::CountOps(*module, Opcode::kTranspose), 0);
}

// Many arrays that live at once, and a loop with a large state: orders and assignments stay fast.
TEST(PassesDepth, ManyValues) {
  constexpr int kCount = 1500;
  std::string shapes = "f32[8]";
  for (int k = 1; k < kCount; ++k) shapes += ", f32[8]";
  std::string text = Cat("HloModule many\ncondition { s_c = (", shapes, R"() parameter(0)
  x_c = f32[8] get-tuple-element(s_c), index=0
  first = f32[1] slice(x_c), slice={[0:1]}
  one = f32[] reshape(first)
  ten = f32[] constant(10)
  ROOT p = pred[] compare(one, ten), direction=LT }
body { s_b = ()",
                         shapes, ") parameter(0)\n");
  std::string results;
  for (int k = 0; k < kCount; ++k) {
    text += Cat("  e", k, " = f32[8] get-tuple-element(s_b), index=", k, "\n  n", k,
                " = f32[8] exponential(e", k, ")\n");
    results += Cat(k ? ", n" : "n", (k + 1) % kCount);
  }
  text +=
      Cat("  ROOT t = (", shapes, ") tuple(", results, ") }\nENTRY main { s = (", shapes,
          ") parameter(0)\n  ROOT w = (", shapes, ") while(s), condition=condition, body=body }\n");
  auto module = ir::ParseOrDie(text);
  Status status = RunCpu(*module);
  ASSERT_TRUE(status.ok()) << status.ToString();
  AssignmentOptions options;
  kernel::FusionAnalysis analysis;
  options.may_share = [&](const ir::Instruction& i, int64_t operand, int64_t output) {
    return kernel::MayShareBuffer(i, operand, output, analysis);
  };
  auto assignment = AssignBuffers(*module, options);
  ASSERT_TRUE(assignment.ok()) << assignment.status().ToString();
}

}  // namespace
}  // namespace kiln::passes
