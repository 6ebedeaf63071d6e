// Derivatives of values of groups of processes, run by the evaluator's grid of processes.
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

struct Grid {
  int64_t replicas = 4, partitions = 1;
};

// A program with x, f64[4], and its direction v, both other ones in each process; the lines make y
// of it, and c is its cotangent, of `size` numbers. Returns f64[2].
std::string TextOf(const Grid& grid, std::string_view lines, int64_t size) {
  std::string called, shapes;
  for (int64_t k = 0; k < grid.replicas * grid.partitions; ++k) {
    called += Cat(k > 0 ? ", " : "", "program");
    shapes += Cat(k > 0 ? ", " : "", "f64[2]");
  }
  return Cat(R"(HloModule m
add { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
max { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] maximum(a, b) }
program {
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ten = u32[] constant(10)
  tens = u32[] multiply(replica, ten)
  number = u32[] add(tens, partition)
  id = f64[] convert(number)
  ids = f64[4] broadcast(id), dimensions={}
  i = f64[4] iota(), iota_dimension=0
  z = f64[4] add(i, ids)
  x = f64[4] cosine(z)
  v = f64[4] sine(z)
  cid = f64[)",
             size, "] broadcast(id), dimensions={}\n  ci = f64[", size,
             "] iota(), iota_dimension=0\n  cz = f64[", size, "] add(cid, ci)\n  cc = f64[", size,
             "] multiply(cz, cz)\n  c = f64[", size, "] sine(cc)\n  ", lines,
             "\n  ROOT r = f64[2] constant({0, 0})\n}\nENTRY e {\n  ROOT r = (", shapes,
             ") custom-call(), custom_call_target=\"interpreter.run_parallel\", "
             "called_computations={",
             called,
             "}, custom_call_has_side_effect=true, backend_config=\"replicas=", grid.replicas,
             " partitions=", grid.partitions, " infeed=0\"\n}");
}

// <c, y'> and <x's cotangent, v>, summed over processes.
void ExpectTransposes(const Grid& grid, std::string_view lines, int64_t size) {
  SCOPED_TRACE(lines);
  std::unique_ptr<ir::Module> module = ir::ParseOrDie(TextOf(grid, lines, size));
  ir::Computation& program = *ir::FindComputation(*module, "program");
  Instruction* x = ir::FindInstruction(program, "x");
  Instruction* v = ir::FindInstruction(program, "v");
  Instruction* y = ir::FindInstruction(program, "y");
  Instruction* c = ir::FindInstruction(program, "c");
  auto tangents = JacobianVectorProduct(program, {{y}}, {{x}}, {{v}}, {});
  auto cotangents = VectorJacobianProduct(program, {{y}}, {{c}}, {{x}}, {});
  ASSERT_TRUE(tangents.ok()) << tangents.status().ToString();
  ASSERT_TRUE(cotangents.ok()) << cotangents.status().ToString();
  ir::Builder b(&program);
  const auto product = [&](Instruction* p, Instruction* q) {
    return b.Reshape(b.Sum(b.Times(p, q), {0}), {1});
  };
  program.set_root(b.Concatenate({product(c, (*tangents)[0]), product((*cotangents)[0], v)}, 0));
  ASSERT_TRUE(b.ok()) << b.status().ToString();
  ASSERT_TRUE(ir::Verify(*module).ok()) << ir::Verify(*module).ToString();
  Result<Literal> result = interp::Evaluate(*module, {});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  double forward = 0, reverse = 0;
  for (const Literal& one : result->elements()) {
    forward += one.values<double>()[0];
    reverse += one.values<double>()[1];
  }
  EXPECT_NE(forward, 0);
  EXPECT_NEAR(forward, reverse, 1e-12 * std::abs(forward) + 1e-13);
}

TEST(GradProcesses, SumsAndGathers) {
  constexpr std::string_view kGroups = "replica_groups={{0,2},{3,1}}";
  ExpectTransposes({}, Cat("y = f64[4] all-reduce(x), to_apply=add, ", kGroups), 4);
  ExpectTransposes({}, "y = f64[4] all-reduce(x), to_apply=add, replica_groups={}", 4);
  ExpectTransposes({2, 2},
                   "y = f64[4] all-reduce(x), to_apply=add, channel_id=1, "
                   "replica_groups={{0,1}}",
                   4);
  ExpectTransposes({}, Cat("y = f64[8] all-gather(x), dimensions={0}, ", kGroups), 8);
  ExpectTransposes({}, Cat("y = f64[2] reduce-scatter(x), dimensions={0}, to_apply=add, ", kGroups),
                   2);
}

TEST(GradProcesses, SeveralOperands) {
  constexpr std::string_view kParts = R"(p = f64[2] slice(x), slice={[0:2]}
  q = f64[2] slice(x), slice={[2:4]}
)";
  ExpectTransposes({}, Cat(kParts, R"(
  s = (f64[2], f64[2]) all-to-all(p, q), replica_groups={{0,3},{2,1}}
  s0 = f64[2] get-tuple-element(s), index=0
  s1 = f64[2] get-tuple-element(s), index=1
  y = f64[2] subtract(s0, s1))"),
                   2);
  ExpectTransposes({}, Cat(kParts, R"(
  s = (f64[2], f64[2]) all-reduce(p, q), to_apply=add, replica_groups={}
  y = f64[2] get-tuple-element(s), index=1)"),
                   2);
  ExpectTransposes({}, Cat(kParts, R"(
  s = (f64[8], f64[8]) all-gather(p, q), dimensions={0}, replica_groups={}
  y = f64[8] get-tuple-element(s), index=0)"),
                   8);
}

TEST(GradProcesses, FromOneToAnother) {
  ExpectTransposes({}, "y = f64[4] collective-permute(x), source_target_pairs={{0,1},{1,3},{3,0}}",
                   4);
  ExpectTransposes({2, 3},
                   "y = f64[4] collective-permute(x), channel_id=1, "
                   "source_target_pairs={{0,2},{2,1}}",
                   4);
  // Process 2 is in no group.
  ExpectTransposes({}, "y = f64[4] collective-broadcast(x), replica_groups={{1,0,3}}", 4);
  ExpectTransposes({7, 1}, "y = f64[4] collective-broadcast(x), replica_groups={{4,0,3,5,2},{6,1}}",
                   4);
  ExpectTransposes({1, 3},
                   "y = f64[4] collective-broadcast(x), channel_id=2, "
                   "replica_groups={{2,0,1}}",
                   4);
  ExpectTransposes({}, "y = f64[4] collective-broadcast(x), replica_groups={}", 4);
}

TEST(GradProcesses, WhatHasNoDerivative) {
  for (std::string_view line :
       {"y = f64[4] all-reduce(x), to_apply=max, replica_groups={}",
        "y = f64[1] reduce-scatter(x), dimensions={0}, to_apply=max, replica_groups={}"}) {
    std::unique_ptr<ir::Module> module = ir::ParseOrDie(TextOf({}, line, line[8] - '0'));
    ir::Computation& program = *ir::FindComputation(*module, "program");
    Instruction* x = ir::FindInstruction(program, "x");
    Instruction* v = ir::FindInstruction(program, "v");
    Instruction* y = ir::FindInstruction(program, "y");
    Instruction* c = ir::FindInstruction(program, "c");
    for (const Status& status :
         {JacobianVectorProduct(program, {{y}}, {{x}}, {{v}}, {}).status(),
          VectorJacobianProduct(program, {{y}}, {{c}}, {{x}}, {}).status()}) {
      EXPECT_EQ(status.code(), Code::kUnimplemented);
      EXPECT_NE(status.message().find("by other computations than a sum"), std::string::npos)
          << status.ToString();
    }
  }
}

}  // namespace
}  // namespace kiln::grad
