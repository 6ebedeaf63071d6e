// Gemms and what follows over the rows that they make, as one kernel: in plans, in results of all
// types and shapes, on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "kernel/chain.h"
#include "passes/pipelines.h"
#include "random/module.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

struct Case {
  std::string type = "f32";
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool left_across = false, right_across = false;  // contiguous along the other dimension
  std::string tail = "softmax";
};

// What follows the gemm d, of the shape D; of rows R, with dimensions {0,1}.
std::string Tail(const std::string& tail) {
  if (tail == "sum") return "  ROOT y = R reduce(d, zero), dimensions={2}, to_apply=plus\n";
  if (tail == "squared error") {
    return R"(  e = D subtract(d, z)
  ee = D multiply(e, e)
  ROOT y = R reduce(ee, zero), dimensions={2}, to_apply=plus
)";
  }
  if (tail == "loss") {
    return R"(  e = D subtract(d, z)
  ee = D multiply(e, e)
  l = S reduce(ee, zero), dimensions={0,1,2}, to_apply=plus
  ROOT y = S multiply(l, l)
)";
  }
  if (tail == "kept") {
    return R"(  s = R reduce(d, zero), dimensions={2}, to_apply=plus
  ROOT y = (R, D) tuple(s, d)
)";
  }
  if (tail == "norm") {
    return R"(  r = D add(d, z)
  s = R reduce(r, zero), dimensions={2}, to_apply=plus
  sb = D broadcast(s), dimensions={0,1}
  c = D subtract(r, sb)
  cc = D multiply(c, c)
  q = R reduce(cc, zero), dimensions={2}, to_apply=plus
  qb = D broadcast(q), dimensions={0,1}
  ROOT y = D subtract(c, qb)
)";
  }
  return R"(  top = R reduce(d, low), dimensions={2}, to_apply=largest
  tb = D broadcast(top), dimensions={0,1}
  below = D subtract(d, tb)
  e = D exponential(below)
  s = R reduce(e, zero), dimensions={2}, to_apply=plus
  sb = D broadcast(s), dimensions={0,1}
  ROOT y = D divide(e, sb)
)";
}

std::string Text(const Case& c) {
  auto shape = [&](int64_t rows, int64_t columns) {
    return Cat(c.type, "[", c.batch, ",", rows, ",", columns, "]");
  };
  std::string tail = Tail(c.tail), d = shape(c.m, c.n),
              r = Cat(c.type, "[", c.batch, ",", c.m, "]");
  for (size_t at; (at = tail.find(" D ")) != std::string::npos;)
    tail.replace(at, 3, Cat(" ", d, " "));
  for (size_t at; (at = tail.find(" R ")) != std::string::npos;)
    tail.replace(at, 3, Cat(" ", r, " "));
  for (size_t at; (at = tail.find(" S ")) != std::string::npos;) {
    tail.replace(at, 3, Cat(" ", c.type, "[] "));
  }
  for (size_t at; (at = tail.find("(R, D)")) != std::string::npos;) {
    tail.replace(at, 6, Cat("(", r, ", ", d, ")"));
  }
  std::string s = Cat(c.type, "[]");
  return Cat(
      "HloModule chain\nplus { a = ", s, " parameter(0)\n  b = ", s,
      " parameter(1)\n  ROOT s = ", s, " add(a, b) }\nlargest { a = ", s,
      " parameter(0)\n  b = ", s, " parameter(1)\n  ROOT s = ", s,
      " maximum(a, b) }\nENTRY main {\n  x = ", c.left_across ? shape(c.k, c.m) : shape(c.m, c.k),
      " parameter(0)\n  w = ", c.right_across ? shape(c.n, c.k) : shape(c.k, c.n),
      " parameter(1)\n  z = ", d, " parameter(2)\n  zero = ", s, " constant(0)\n  low = ", s,
      " constant(0)\n  d = ", d,
      " dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={",
      c.left_across ? 1 : 2, "}, rhs_contracting_dims={", c.right_across ? 2 : 1, "}\n", tail,
      "}\n");
}

bool HasChain(const codegen::LoweredProgram& lowered) {
  return std::ranges::any_of(lowered.kernels, [](const kernel::ScheduledKernel& k) {
    return std::holds_alternative<kernel::CpuChain>(k.schedule);
  });
}

// Against the evaluator, for several vector widths; the same bits on five threads as on one.
void CheckChain(const Case& c, bool fused, double tolerance = 1e-4) {
  static runtime::ThreadPool pool(5);
  std::string text = Text(c);
  SCOPED_TRACE(text);
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = RandomArguments(*module, 5);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (int bytes : {64, 32, 16}) {
    auto loaded = Load(*module, true, bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(HasChain(*loaded->lowered), fused && !testing::IsTestOfGpu())
        << bytes << "\n"
        << loaded->artefact->program.ToString();
    auto wide = testing::LoadOnPool(loaded->artefact, pool);
    ASSERT_TRUE(wide.ok()) << wide.status().ToString();
    Execution alone(*loaded->artefact), together(*loaded->artefact);
    alone.SetArguments(arguments);
    together.SetArguments(arguments);
    ASSERT_TRUE(loaded->executable->Run(alone.arguments(), alone.results(), {.threads = 1}).ok());
    ASSERT_TRUE((*wide)->Run(together.arguments(), together.results()).ok());
    EXPECT_EQ(Difference(*expected, alone.Result(), tolerance, tolerance), "") << bytes;
    EXPECT_TRUE(alone.SameBits(together)) << bytes;
  }
}

TEST(Chains, OfAllTails) {
  for (const char* tail : {"sum", "squared error", "loss", "kept", "norm", "softmax"}) {
    CheckChain({.m = 160, .n = 48, .k = 24, .tail = tail}, true);
    CheckChain({.m = 333, .n = 100, .k = 7, .tail = tail}, true);
  }
}

TEST(Chains, OfAllTypes) {
  for (const char* tail : {"sum", "kept", "norm"}) {
    for (const char* type : {"f32", "f64", "s32", "u32", "s64"}) {
      CheckChain({.type = type, .m = 131, .n = 37, .k = 19, .tail = tail}, true, 1e-3);
    }
    for (const char* type : {"f16", "bf16"}) {
      CheckChain({.type = type, .m = 131, .n = 37, .k = 5, .tail = tail}, true, 0.2);
    }
  }
}

TEST(Chains, OfAnyForm) {
  for (bool left : {false, true}) {
    for (bool right : {false, true}) {
      CheckChain({.m = 200, .n = 70, .k = 40, .left_across = left, .right_across = right}, true);
      CheckChain(
          {.batch = 12, .m = 48, .n = 33, .k = 20, .left_across = left, .right_across = right},
          true);
      // Several blocks of each batch.
      CheckChain(
          {.batch = 3, .m = 1024, .n = 600, .k = 4, .left_across = left, .right_across = right},
          true);
    }
  }
}

TEST(Chains, OfOddShapes) {
  for (int64_t m : {17, 33, 97, 509}) {
    for (int64_t n : {2, 3, 16, 17, 129}) {
      CheckChain({.m = m, .n = n, .k = 33, .tail = m % 2 ? "norm" : "sum"}, true);
    }
  }
  CheckChain({.m = 400, .n = 64, .k = 2}, true);
  // Of which nothing is left of the gemm.
  CheckChain({.m = 400, .n = 64, .k = 1}, false);
  CheckChain({.m = 400, .n = 64, .k = 0}, false);
  CheckChain({.m = 0, .n = 64, .k = 8}, false);
}

// A row has to be whole while it is in the cache, and there have to be blocks for the threads.
TEST(Chains, OnlyWhereTheyPay) {
  CheckChain({.m = 64, .n = 70000, .k = 2, .tail = "sum"}, false);
  CheckChain({.m = 2, .n = 512, .k = 520}, false);
}

// What the gemm makes stays in the memory of the result; of a sum it is in pieces that are used
// again and again.
TEST(Chains, TakeLittleMemory) {
  auto arena = [](const Case& c) {
    auto loaded = Load(*ir::ParseOrDie(Text(c)), true);
    EXPECT_EQ(HasChain(*loaded->lowered), !testing::IsTestOfGpu());
    return loaded->artefact->program.arena_bytes;
  };
  if (testing::IsTestOfGpu()) return;
  EXPECT_EQ(arena({.m = 4096, .n = 64, .k = 64}), 0);
  EXPECT_LE(arena({.m = 65536, .n = 16, .k = 16, .tail = "sum"}), 65536 * 16 * 4 / 4);
}

// A chain reads an operand again and again, in a result's memory or not; only what the second
// kernel alone reads, at the place where it writes, may be overwritten.
TEST(Chains, InTheMemoryOfArguments) {
  for (int parameter : {0, 1, 2}) {
    std::string text = Text({.m = 160, .n = 160, .k = 160, .tail = "norm"});
    text.insert(std::string("HloModule chain").size(),
                Cat(", input_output_alias={ {}: (", parameter, ", {}, may-alias) }"));
    auto module = ir::ParseOrDie(text);
    std::vector<Literal> arguments = RandomArguments(*module, 9);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    auto loaded = Load(*module, true);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    EXPECT_EQ(HasChain(*loaded->lowered), !testing::IsTestOfGpu());
    Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    void* home = const_cast<void*>(run.arguments()[static_cast<size_t>(parameter)]);
    ASSERT_TRUE(loaded->executable->Run(run.arguments(), std::vector<void*>{home}).ok());
    std::memcpy(run.results()[0], home,
                static_cast<size_t>(loaded->artefact->program.signature.results[0].byte_size()));
    EXPECT_EQ(Difference(*expected, run.Result(), 1e-2, 1e-2), "") << parameter;
  }
}

TEST(Chains, AreAmongRandomModules) {
  std::set<std::string> types;
  int chains = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    auto module = RandomModule(seed, {.control_flow = false});
    passes::PassContext context;
    ASSERT_TRUE(passes::RunPipeline("test", passes::CpuPipeline(), *module, context).ok());
    for (ir::Instruction* i : module->entry()->instructions()) {
      if (!kernel::IsChain(*i)) continue;
      ++chains;
      for (ir::Instruction* member : i->called(0)->instructions()) {
        if (member->shape().is_array()) types.emplace(TypeName(member->shape().type()));
      }
    }
  }
  EXPECT_GT(chains, 20);
  EXPECT_GE(types.size(), 8u);
}

}  // namespace
}  // namespace kiln::testing
