// The kernels of a graph as GPU code: PTX that the assembler takes, and results on the emulated GPU
// that are the evaluator's.

#include <gtest/gtest.h>

#include <cstdio>

#include <algorithm>

#include "codegen/codegen.h"
#include "emulated_test_util.h"
#include "hlo_test_util.h"
#include "interp/interpreter.h"
#include "ir/ir.h"
#include "kernel/build.h"
#include "kernel/schedule/gpu/nest.h"
#include "literal_test_util.h"
#include "passes/pipelines.h"

namespace kiln {
namespace {

using testing::Difference;
using testing::RandomLiteral;

// The kernel alone as the evaluator sees it: the fusion's computation, or the one instruction.
Result<Literal> Expected(const ir::Instruction& i, const std::vector<Literal>& arguments) {
  if (i.opcode() == Opcode::kFusion) return interp::Evaluate(*i.called(0), arguments);
  std::vector<const Literal*> operands;
  std::vector<const ir::Instruction*> inputs = kernel::GroupOf(i).inputs;
  for (const ir::Instruction* operand : i.operands()) {
    operands.push_back(
        &arguments[std::find(inputs.begin(), inputs.end(), operand) - inputs.begin()]);
  }
  return interp::EvaluateInstruction(i, operands);
}

class GpuKernels {
 public:
  // Every kernel of the fused module; how many were tried.
  void CheckModule(const std::string& text) {
    auto module = ir::ParseOrDie(text);
    passes::PassContext context;
    context.verify = true;
    context.disabled = {"chain-fusion", "horizontal-fusion"};
    Status status = passes::RunPipeline("test", passes::CpuPipeline(), *module, context);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (ir::Instruction* i : module->entry()->instructions()) {
      switch (i->opcode()) {
        case Opcode::kParameter:
        case Opcode::kConstant:
        case Opcode::kTuple:
        case Opcode::kGetTupleElement:
          continue;
        default:
          Check(*i);
      }
    }
  }

  void Check(const ir::Instruction& i) {
    kernel::Group group = kernel::GroupOf(i);
    auto built = kernel::BuildKernel(group, Cat("k", kernels));
    ASSERT_TRUE(built.ok()) << built.status().ToString();
    plan::ScheduledKernel scheduled;
    scheduled.kernel = *std::move(built);
    ++kernels;
    for (int sm : {75, 80, 90}) {
      target::Gpu gpu = target::NvidiaGpu(sm).value().gpu;
      scheduled.gpu = kernel::ScheduleNest(scheduled.kernel, gpu);
      ++forms[static_cast<int>(scheduled.gpu.form)];
      auto ptx = codegen::GeneratePtx(scheduled, gpu, {.verify = true});
      ASSERT_TRUE(ptx.ok()) << ptx.status().ToString();
      EXPECT_NE(ptx->find(Cat(".target sm_", sm)), std::string::npos);
      EXPECT_EQ(testing::Assemble(sm, *ptx), "");
      assembled += testing::HasPtxas();
    }
    Emulate(i, group, scheduled);
  }

  int kernels = 0, assembled = 0;
  int forms[5] = {};

 private:
  void Emulate(const ir::Instruction& i, const kernel::Group& group,
               const plan::ScheduledKernel& scheduled) {
    target::Gpu gpu = target::NvidiaGpu(80).value().gpu;
    auto object =
        codegen::GenerateEmulated(scheduled, gpu, target::HostCpu().cpu, {.verify = true});
    ASSERT_TRUE(object.ok()) << object.status().ToString();
    std::vector<Literal> values;
    for (const ir::Instruction* input : group.inputs) {
      values.push_back(RandomLiteral(input->shape(), values.size() + 1));
    }
    auto expected = Expected(i, values);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    Literal actual(i.shape());
    std::vector<void*> args;
    for (Literal& value : values) args.push_back(value.data());
    if (actual.shape().is_tuple()) {
      for (Literal& element : actual.elements()) args.push_back(element.data());
    } else {
      args.push_back(actual.data());
    }
    Status status = testing::RunEmulated(scheduled, *object, args);
    ASSERT_TRUE(status.ok()) << status.ToString();
    // Functions of half types may be one step off.
    double bound = 1e-5;
    for (const kernel::Stage& stage : scheduled.kernel.stages) {
      for (const kernel::Node& n : stage.nodes) {
        bound = std::max(bound, n.type == ElementType::kBF16  ? 0x1p-7
                                : n.type == ElementType::kF16 ? 0x1p-10
                                                              : 0);
      }
    }
    EXPECT_EQ(Difference(*expected, actual, bound, bound), "") << scheduled.gpu.ToString() << "\n"
                                                               << scheduled.kernel.ToString();
  }
};

constexpr char kReducers[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
)";

TEST(GpuKernels, ElementwiseTransposeAndReduce) {
  GpuKernels gpu;
  gpu.CheckModule(Cat(kReducers, R"(
ENTRY e { x = f32[100,784] parameter(0)
  y = f32[100,784] parameter(1)
  b = f32[784] parameter(2)
  bb = f32[100,784] broadcast(b), dimensions={1}
  s = f32[100,784] add(x, bb)
  t = f32[100,784] tanh(s)
  l = f32[100,784] logistic(y)
  m = f32[100,784] multiply(t, l)
  n = f32[100,784] negate(y)
  tr = f32[784,100] transpose(n), dimensions={1,0}
  zero = f32[] constant(0)
  ninf = f32[] constant(-inf)
  rows = f32[100] reduce(x, ninf), dimensions={1}, to_apply=max
  columns = f32[784] reduce(y, zero), dimensions={0}, to_apply=add
  all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  ROOT r = (f32[784,100], f32[100], f32[784], f32[], f32[100,784]) tuple(tr, rows, columns, all, m) })"));
  EXPECT_GE(gpu.kernels, 3);
  using Form = kernel::GpuNestSchedule::Form;
  EXPECT_GT(gpu.forms[static_cast<int>(Form::kTranspose)], 0);
  EXPECT_GT(gpu.forms[static_cast<int>(Form::kRowReduce)], 0);
  printf("  %d kernels, %d times through ptxas\n", gpu.kernels, gpu.assembled);
}

TEST(GpuKernels, SoftmaxRegressionWithoutItsDots) {
  GpuKernels gpu;
  gpu.CheckModule(Cat(kReducers, R"(
ENTRY e { lo = f32[100,10] parameter(0)
  l = f32[100,10] parameter(1)
  zero = f32[] constant(0)
  ninf = f32[] constant(-inf)
  mx = f32[100] reduce(lo, ninf), dimensions={1}, to_apply=max
  mxb = f32[100,10] broadcast(mx), dimensions={0}
  sh = f32[100,10] subtract(lo, mxb)
  e = f32[100,10] exponential(sh)
  se = f32[100] reduce(e, zero), dimensions={1}, to_apply=add
  lse = f32[100] log(se)
  lseb = f32[100,10] broadcast(lse), dimensions={0}
  lp = f32[100,10] subtract(sh, lseb)
  ll = f32[100,10] multiply(l, lp)
  tot = f32[] reduce(ll, zero), dimensions={0,1}, to_apply=add
  seb = f32[100,10] broadcast(se), dimensions={0}
  p = f32[100,10] divide(e, seb)
  g = f32[100,10] subtract(p, l)
  gb = f32[10] reduce(g, zero), dimensions={0}, to_apply=add
  ROOT r = (f32[], f32[10], f32[100,10]) tuple(tot, gb, g) })"));
  EXPECT_GE(gpu.kernels, 3);
}

TEST(GpuKernels, TypesGuardsAndGeneralReducers) {
  GpuKernels gpu;
  gpu.CheckModule(R"(HloModule m
argmax { v = f64[] parameter(0)
  i = s64[] parameter(1)
  w = f64[] parameter(2)
  j = s64[] parameter(3)
  p = pred[] compare(v, w), direction=GE
  x = f64[] select(p, v, w)
  y = s64[] select(p, i, j)
  ROOT t = (f64[], s64[]) tuple(x, y) }
or { a = pred[] parameter(0)
  b = pred[] parameter(1)
  ROOT c = pred[] or(a, b) }
ENTRY e { x = f64[9,41] parameter(0)
  u = u8[5,33] parameter(1)
  c = pred[7,300] parameter(2)
  i = s64[9,41] iota(), iota_dimension=1
  ninf = f64[] constant(-inf)
  zero = s64[] constant(0)
  no = pred[] constant(false)
  v = u8[] constant(3)
  a = (f64[9], s64[9]) reduce(x, i, ninf, zero), dimensions={1}, to_apply=argmax
  o = pred[7] reduce(c, no), dimensions={1}, to_apply=or
  p = u8[8,70] pad(u, v), padding=1_2x3_2_1
  ROOT r = ((f64[9], s64[9]), pred[7], u8[8,70]) tuple(a, o, p) })");
  EXPECT_GE(gpu.kernels, 3);
}

// Arithmetic, conversions from and to, a transpose and reductions of every element type.
TEST(GpuKernels, EveryType) {
  for (const char* name :
       {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f64"}) {
    SCOPED_TRACE(name);
    const std::string t(name);
    const bool is_float = t.find('f') != std::string::npos;
    auto array = [&](std::string_view type) { return Cat(type, "[40,70]"); };
    std::string text =
        Cat("HloModule m\nadd { a = ", t, "[] parameter(0)\n  b = ", t,
            "[] parameter(1)\n  ROOT c = ", t, "[] add(a, b) }\nmax { a = ", t,
            "[] parameter(0)\n  b = ", t, "[] parameter(1)\n  ROOT c = ", t,
            "[] maximum(a, b) }\nENTRY e { x = ", array(t), " parameter(0)\n  y = ", array(t),
            " parameter(1)\n  f = ", array("f32"), " parameter(2)\n  d = ", array("f64"),
            " parameter(3)\n  i = ", array("s32"), " parameter(4)\n  l = ", array("s64"),
            " parameter(5)\n  one = ", t, "[] constant(1)\n");
    std::string results;
    int count = 0;
    auto add = [&](const std::string& line) {
      text += Cat("  r", count, " = ", line, "\n");
      results += Cat(count > 0 ? ", r" : "r", count);
      ++count;
    };
    std::vector<std::string_view> ops = {"add", "subtract", "multiply", "maximum", "divide"};
    if (!is_float) {
      for (std::string_view op : {"remainder", "xor", "power", "shift-left",
                                  "shift-right-arithmetic", "shift-right-logical"}) {
        ops.push_back(op);
      }
    }
    for (std::string_view op : ops) add(Cat(array(t), " ", op, "(x, y)"));
    std::vector<std::string_view> unary = {"abs", "negate", "sign"};
    if (is_float) {
      unary.insert(unary.end(), {"exponential", "tanh", "floor", "round-nearest-even"});
    } else {
      unary.insert(unary.end(), {"popcnt", "count-leading-zeros", "not"});
    }
    for (std::string_view op : unary) add(Cat(array(t), " ", op, "(x)"));
    for (const char* from : {"f", "d", "i", "l"}) add(Cat(array(t), " convert(", from, ")"));
    for (const char* to : {"f32", "f64", "s32", "s64", "u8", "pred", "bf16"}) {
      if (t != to) add(Cat(array(to), " convert(x)"));
    }
    add("pred[40,70] compare(x, y), direction=LT");
    add(Cat(t, "[70,40] transpose(y), dimensions={1,0}"));
    add(Cat(t, "[40] reduce(x, one), dimensions={1}, to_apply=add"));
    add(Cat(t, "[70] reduce(x, one), dimensions={0}, to_apply=max"));
    add(Cat(t, "[40,70] iota(), iota_dimension=1"));
    GpuKernels gpu;
    gpu.CheckModule(Cat(text, "  ROOT t = tuple(", results, ")\n}\n"));
    EXPECT_GE(gpu.kernels, 3);
  }
}

}  // namespace
}  // namespace kiln
