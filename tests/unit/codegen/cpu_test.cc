// Kernels of kind nest as machine code against plain loops: all kinds of loops, with vectors of all
// sizes along every variable that may have them.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "program/program.h"
#include "support/jit.h"
#include "support/kernel.h"

namespace kiln {
namespace {

using kernel::Combiner;
using kernel::CpuNestSchedule;
using kernel::Index;
using kernel::Kernel;
using kernel::StageId;
using kernel::VariableId;
using testing::Buffer;
using testing::KernelBuilder;
using testing::StageBuilder;
using T = ElementType;

// A program that launches one kernel on one allocation per parameter, and scratch.
codegen::LoweredProgram ProgramOf(const Kernel& kernel, const CpuNestSchedule& schedule) {
  codegen::LoweredProgram lowered;
  program::Program& program = lowered.program;
  program.name = "test";
  program::Launch launch;
  auto add = [&](int64_t bytes) {
    const auto id = program.allocations.Add({program::Allocation::Kind::kArena, 0, bytes});
    launch.args.push_back({id, 0, bytes});
  };
  for (const kernel::Param& p : kernel.params) add(p.elements * ByteWidth(p.type));
  if (schedule.scratch_bytes > 0) add(schedule.scratch_bytes);
  launch.kernel = lowered.kernels.next();
  lowered.kernels.push_back({kernel, schedule});
  program.steps.push_back({std::move(launch)});
  return lowered;
}

void RunKernel(const Kernel& kernel, const CpuNestSchedule& schedule, const target::Cpu& cpu) {
  SCOPED_TRACE(Cat(schedule.ToString(), ", ", cpu.vector_bytes, " bytes\n", kernel.ToString()));
  codegen::Options options;
  auto objects = codegen::GenerateCpu(ProgramOf(kernel, schedule), cpu, options);
  ASSERT_TRUE(objects.ok()) << objects.status().ToString();
  auto jit = testing::Jit::Load(*objects);
  ASSERT_TRUE(jit.ok()) << jit.status().ToString();
  auto entry = reinterpret_cast<kiln_entry_fn>((*jit)->Lookup(program::EntrySymbol({})));
  ASSERT_NE(entry, nullptr);
  std::vector<std::unique_ptr<Buffer>> actual, expected;
  std::vector<void*> addresses;
  std::vector<Buffer*> reference;
  for (kernel::ParamId i : kernel.params.ids()) {
    const kernel::Param& p = kernel.params[i];
    for (auto* list : {&actual, &expected}) {
      list->push_back(std::make_unique<Buffer>(p.type, p.elements));
      if (p.role == kernel::Param::Role::kInput) list->back()->Fill(i.value());
    }
    addresses.push_back(actual.back()->data());
    reference.push_back(expected.back().get());
  }
  Buffer scratch(T::kU8, schedule.scratch_bytes);
  addresses.push_back(scratch.data());
  testing::TestFrame frame(addresses);
  ASSERT_EQ(entry(&frame.frame()), 0);
  testing::Evaluate(kernel, reference);
  EXPECT_TRUE(scratch.Intact());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(actual[i]->Intact()) << "p" << i;
    for (int64_t e = 0; e < actual[i]->elements(); ++e) {
      if (IsFloat(actual[i]->type())) {
        ASSERT_EQ(actual[i]->Float(e), expected[i]->Float(e)) << "p" << i << "[" << e << "]";
      } else {
        ASSERT_EQ(actual[i]->Int(e), expected[i]->Int(e)) << "p" << i << "[" << e << "]";
      }
    }
  }
}

bool AnyGeneral(const kernel::Stage& stage) {
  for (const auto& r : stage.reductions) {
    if (r.combiner.kind == Combiner::Kind::kGeneral) return true;
  }
  return false;
}

int64_t Extent(const Kernel& k, VariableId v) { return k.variables[v].extent; }

bool NoInner(const Kernel& k) {
  for (const kernel::Stage& stage : k.stages) {
    if (!stage.variables.empty()) return false;
  }
  return true;
}

// The plain schedule: scalar code, one item.
CpuNestSchedule Plain(const Kernel& kernel) {
  CpuNestSchedule s;
  s.stages.resize(kernel.stages.size());
  return s;
}

void Split(const Kernel& kernel, CpuNestSchedule& s, int64_t split) {
  int64_t extent = Extent(kernel, kernel.stages.front().variables[0]);
  s.split = split;
  s.chunks = (extent + split - 1) / split;
  s.items *= s.chunks;
  for (T type : kernel.stages.front().reductions.front().types) {
    s.scratch_bytes += kernel::CpuPartialBytes(type, kernel.OuterPoints()) * s.chunks;
  }
  s.max_tasks = std::min<int64_t>(s.items, 3);
}

// Runs a kernel by its own schedule and by every other that suits it.
void RunAllWays(const Kernel& kernel) {
  for (int bytes : {16, 32, 64}) {
    target::Cpu cpu = target::HostCpuWithVectors(bytes).cpu;
    RunKernel(kernel, kernel::ScheduleNest(kernel, cpu), cpu);
    if (::testing::Test::HasFatalFailure()) return;
    RunKernel(kernel, Plain(kernel), cpu);
    int width = cpu.vector_bytes / 4;
    for (int unroll : {1, 4}) {
      for (VariableId v : kernel.OuterVariables()) {
        CpuNestSchedule s = Plain(kernel);
        s.vector_width = width;
        for (auto& stage : s.stages) stage = {v, unroll, unroll == 1};
        RunKernel(kernel, s, cpu);
        for (auto& stage : s.stages) stage.masked = false;
        // In squares with every other outer variable.
        for (VariableId w : kernel.OuterVariables()) {
          if (!NoInner(kernel) || unroll != 1) break;
          CpuNestSchedule squares = s;
          squares.tile_variable = w;
          if (w != v) RunKernel(kernel, squares, cpu);
        }
        // The same in blocks.
        s.parallel = v.value() + 1;
        s.block = int64_t{width} * unroll;
        s.items = (Extent(kernel, v) + s.block - 1) / s.block;
        for (VariableId before : IdRange(VariableId(0), v)) s.items *= Extent(kernel, before);
        s.max_tasks = std::min<int64_t>(s.items, 2);
        RunKernel(kernel, s, cpu);
        if (::testing::Test::HasFatalFailure()) return;
      }
      CpuNestSchedule s = Plain(kernel);
      s.vector_width = width;
      bool any = false;
      for (StageId i : kernel.stages.ids()) {
        if (kernel.stages[i].variables.empty() || AnyGeneral(kernel.stages[i])) continue;
        s.stages[i] = {kernel.stages[i].variables.back(), unroll, unroll == 1};
        any = true;
      }
      if (any) RunKernel(kernel, s, cpu);
      if (::testing::Test::HasFatalFailure()) return;
    }
    // A reduction cut into chunks, if the stages before the last are one.
    const kernel::Stage& first = kernel.stages.front();
    if (first.reductions.size() == 1 && !AnyGeneral(first) &&
        Extent(kernel, first.variables[0]) > 1) {
      CpuNestSchedule s = Plain(kernel);
      Split(kernel, s, 3);
      RunKernel(kernel, s, cpu);
      if (kernel.outer > 0) {
        s = Plain(kernel);
        s.vector_width = width;
        for (auto& stage : s.stages) stage = {kernel.LastOuter(), 2};
        s.parallel = kernel.outer;
        s.block = Extent(kernel, kernel.LastOuter());
        for (VariableId v : IdRange(VariableId(0), kernel.LastOuter())) {
          s.items *= Extent(kernel, v);
        }
        Split(kernel, s, 2);
        RunKernel(kernel, s, cpu);
      }
      if (first.variables.size() == 1) {
        s = Plain(kernel);
        s.vector_width = width;
        s.stages.front() = {first.variables[0], 2};
        Split(kernel, s, 2 * width);
        RunKernel(kernel, s, cpu);
      }
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CpuNest, FusedElementwiseOfAllSizes) {
  for (int64_t n : {0, 1, 5, 16, 64, 67, 1000}) {
    KernelBuilder k({n});
    const auto x = k.Input(T::kF32, n), y = k.Input(T::kF32, n), z = k.Input(T::kF32, n);
    const auto out = k.Output(T::kF32, n);
    StageBuilder s = k.Stage();
    Index i = k.Var(0);
    kernel::NodeId product = s.Op(Opcode::kMultiply, T::kF32, {s.Load(y, i), s.Load(z, i)});
    s.Store(out, i, s.Op(Opcode::kAdd, T::kF32, {s.Load(x, i), product}));
    RunAllWays(k.kernel);
    if (HasFatalFailure()) return;
  }
}

TEST(CpuNest, ScalarKernelWithoutVariables) {
  KernelBuilder k({});
  const auto x = k.Input(T::kS64, 1), out = k.Output(T::kF64, 1);
  StageBuilder s = k.Stage();
  s.Store(out, 0, s.Op(Opcode::kConvert, T::kF64, {s.Load(x, 0)}));
  RunAllWays(k.kernel);
}

TEST(CpuNest, MixedTypesAndPreds) {
  constexpr int64_t n = 77;
  KernelBuilder k({n});
  const auto a = k.Input(T::kF32, n), b = k.Input(T::kF64, n), c = k.Input(T::kS32, n);
  const auto d = k.Input(T::kPred, n), e = k.Input(T::kU8, n), f = k.Input(T::kS64, n);
  const auto o1 = k.Output(T::kF64, n), o2 = k.Output(T::kPred, n), o3 = k.Output(T::kU8, n);
  const auto o4 = k.Output(T::kS64, n);
  StageBuilder s = k.Stage();
  Index i = k.Var(0);
  kernel::NodeId wide = s.Op(Opcode::kConvert, T::kF64, {s.Load(a, i)});
  kernel::NodeId sum = s.Op(Opcode::kAdd, T::kF64, {wide, s.Load(b, i)});
  kernel::NodeId pred = s.Load(d, i);
  kernel::NodeId less =
      s.Op(Opcode::kCompare, T::kPred, {s.Load(c, i), s.Constant(T::kS32, 3)}, Direction::kLt);
  kernel::NodeId both = s.Op(Opcode::kAnd, T::kPred, {pred, less});
  s.Store(o1, i, s.Op(Opcode::kSelect, T::kF64, {both, sum, s.Constant(T::kF64, -1)}));
  s.Store(o2, i, both);
  s.Store(o3, i,
          s.Op(Opcode::kAdd, T::kU8, {s.Load(e, i), s.Op(Opcode::kConvert, T::kU8, {pred})}));
  s.Store(o4, i, s.Op(Opcode::kMultiply, T::kS64, {s.Load(f, i), s.Load(f, i)}));
  RunAllWays(k.kernel);
}

TEST(CpuNest, BroadcastTransposeReverseAndStride) {
  constexpr int64_t m = 21, n = 35;
  KernelBuilder k({m, n});
  const auto row = k.Input(T::kF32, n), column = k.Input(T::kF32, m), scalar = k.Input(T::kF32, 1);
  const auto transposed = k.Input(T::kF32, n * m), strided = k.Input(T::kF64, m * n * 2);
  const auto out = k.Output(T::kF32, m * n), flipped = k.Output(T::kF32, m * n);
  StageBuilder s = k.Stage();
  Index r = k.Var(0), c = k.Var(1);
  kernel::NodeId sum = s.Op(Opcode::kAdd, T::kF32, {s.Load(row, c), s.Load(column, r)});
  sum = s.Op(Opcode::kMultiply, T::kF32, {sum, s.Load(scalar, 0)});
  sum = s.Op(Opcode::kAdd, T::kF32, {sum, s.Load(transposed, c * m + r)});
  kernel::NodeId other =
      s.Op(Opcode::kConvert, T::kF32, {s.Load(strided, r * (2 * n) + c * 2 + 1)});
  sum = s.Op(Opcode::kAdd, T::kF32, {sum, other});
  sum = s.Op(Opcode::kAdd, T::kF32, {sum, s.Load(row, Index(n - 1) - c)});
  s.Store(out, r * n + c, sum);
  s.Store(flipped, Index(m * n - 1) - r * n - c, sum);
  RunAllWays(k.kernel);
}

// Where a guard is false the load is far outside of memory.
TEST(CpuNest, GuardedLoadsTouchNothing) {
  constexpr int64_t n = 150, inner = 40;
  constexpr int64_t kFar = int64_t{1} << 40;
  KernelBuilder k({3, n});
  const auto x = k.Input(T::kF32, inner), p = k.Input(T::kPred, 3), y = k.Input(T::kU8, n);
  const auto out = k.Output(T::kF32, 3 * n);
  StageBuilder s = k.Stage();
  Index r = k.Var(0), i = k.Var(1);
  kernel::NodeId inside = s.InRange(i - 50, inner);
  kernel::NodeId padded =
      s.Op(Opcode::kSelect, T::kF32, {inside, s.Load(x, i - 50, inside), s.Constant(T::kF32, 7)});
  // A guard that is the same for a whole row, and one that varies over an address that does not.
  kernel::NodeId row = s.Load(p, r);
  kernel::NodeId whole = s.Op(Opcode::kConvert, T::kF32, {s.Load(y, i, row)});
  kernel::NodeId last = s.InRange(i - (n - 1), 1);
  kernel::NodeId rare = s.Load(x, 5, last);
  kernel::NodeId first_row = s.InRange(r * kFar, 1);
  kernel::NodeId far = s.Load(x, r * kFar + 3, first_row);
  kernel::NodeId sum = s.Op(Opcode::kAdd, T::kF32, {padded, whole});
  sum = s.Op(Opcode::kAdd, T::kF32, {sum, rare});
  sum = s.Op(Opcode::kAdd, T::kF32, {sum, far});
  s.Store(out, r * n + i, sum);
  RunAllWays(k.kernel);
}

TEST(CpuNest, IndicesThatDivide) {
  constexpr int64_t n = 7 * 30;
  KernelBuilder k({n});
  const auto x = k.Input(T::kF32, n), out = k.Output(T::kF32, n), count = k.Output(T::kS32, n);
  const auto far = k.Output(T::kS64, n);
  StageBuilder s = k.Stage();
  Index i = k.Var(0);
  // A transpose of [7, 30] in disguise, and indices below zero.
  Index transposed = i.FloorDiv(7) + i.Mod(7) * 30;
  kernel::NodeId value = s.Load(x, transposed);
  kernel::NodeId number = s.IndexValue(T::kF32, (i - 100).FloorDiv(9) + (i - 100).Mod(8) * 3);
  s.Store(out, i, s.Op(Opcode::kAdd, T::kF32, {value, number}));
  s.Store(count, i, s.IndexValue(T::kS32, (i - 100).FloorDiv(16) + (i * 3).Mod(11)));
  s.Store(far, i, s.IndexValue(T::kS64, i * 123456789012 - 5));
  RunAllWays(k.kernel);
}

TEST(CpuNest, IndicesOutOfMemory) {
  constexpr int64_t n = 90, table = 30;
  KernelBuilder k({n});
  const auto at = k.Input(T::kS32, n), x = k.Input(T::kF32, table), out = k.Output(T::kF32, n);
  StageBuilder s = k.Stage();
  Index i = k.Var(0);
  kernel::NodeId which = s.Op(Opcode::kAdd, T::kS32, {s.Load(at, i), s.Constant(T::kS32, 10)});
  s.Store(out, i, s.Load(x, Index::Value(which, 0, table - 1, i)));
  RunAllWays(k.kernel);
}

struct ReduceCase {
  Combiner::Kind kind;
  T type;
  double init;
};

TEST(CpuNest, ReductionsOfRowsByEveryKnownCombiner) {
  const ReduceCase cases[] = {
      {Combiner::Kind::kSum, T::kF32, 3},     {Combiner::Kind::kSum, T::kS32, 3},
      {Combiner::Kind::kSum, T::kS64, 3},     {Combiner::Kind::kProduct, T::kS32, 3},
      {Combiner::Kind::kMax, T::kF64, -100},  {Combiner::Kind::kMin, T::kF32, 100},
      {Combiner::Kind::kMax, T::kS32, -100},  {Combiner::Kind::kMin, T::kU8, 200},
      {Combiner::Kind::kAnd, T::kPred, 1},    {Combiner::Kind::kOr, T::kPred, 0},
      {Combiner::Kind::kXor, T::kS32, 12345}, {Combiner::Kind::kSum, T::kU8, 3},
      {Combiner::Kind::kMax, T::kF32, 1e30},
  };
  for (const ReduceCase& c : cases) {
    constexpr int64_t m = 3, n = 83;
    KernelBuilder k({m});
    const auto x = k.Input(c.type, m * n), out = k.Output(c.type, m);
    const VariableId j = k.Inner(n, true);
    StageBuilder s = k.Stage({j});
    s.Reduce(c.kind, c.type, s.Load(x, k.Var(0) * n + k.Var(j)), s.Constant(c.type, c.init));
    StageBuilder after = k.Stage();
    after.Store(out, k.Var(0), after.Reduced(s, 0, c.type));
    RunAllWays(k.kernel);
    if (HasFatalFailure()) return;
  }
}

TEST(CpuNest, ReductionsOfAllSizes) {
  for (int64_t m : {1, 2, 19}) {
    for (int64_t n : {0, 1, 4, 15, 64, 257}) {
      KernelBuilder k({m});
      const auto x = k.Input(T::kF32, m * n), init = k.Input(T::kF32, 1),
                 out = k.Output(T::kF32, m);
      const VariableId j = k.Inner(n, true);
      StageBuilder s = k.Stage({j});
      s.Reduce(Combiner::Kind::kSum, T::kF32, s.Load(x, k.Var(0) * n + k.Var(j)), s.Load(init, 0));
      StageBuilder after = k.Stage();
      after.Store(out, k.Var(0), after.Reduced(s, 0, T::kF32));
      RunAllWays(k.kernel);
      if (HasFatalFailure()) return;
    }
  }
}

// sum over the first and the last of [5, m, 33], with the products stored on the way.
TEST(CpuNest, ReductionOfColumnsAndSeveralDimensions) {
  constexpr int64_t a = 5, m = 37, b = 33;
  KernelBuilder k({m});
  const auto x = k.Input(T::kF32, a * m * b), y = k.Input(T::kF32, m);
  const auto out = k.Output(T::kF32, m), squares = k.Output(T::kF32, a * m * b);
  const VariableId i = k.Inner(a, true), j = k.Inner(b, true);
  StageBuilder s = k.Stage({i, j});
  Index at = k.Var(i) * (m * b) + k.Var(0) * b + k.Var(j);
  kernel::NodeId v = s.Load(x, at);
  kernel::NodeId square = s.Op(Opcode::kMultiply, T::kF32, {v, v});
  s.Reduce(Combiner::Kind::kSum, T::kF32, square, s.Constant(T::kF32, 0.5));
  s.Store(squares, at, square);
  StageBuilder after = k.Stage();
  kernel::NodeId scaled =
      after.Op(Opcode::kMultiply, T::kF32, {after.Reduced(s, 0, T::kF32), after.Load(y, k.Var(0))});
  after.Store(out, k.Var(0), scaled);
  RunAllWays(k.kernel);
}

TEST(CpuNest, MatrixProductWithBias) {
  constexpr int64_t m = 6, n = 37, depth = 18;
  KernelBuilder k({m, n});
  const auto x = k.Input(T::kF32, m * depth), y = k.Input(T::kF32, depth * n),
             bias = k.Input(T::kF32, n);
  const auto out = k.Output(T::kF32, m * n);
  const VariableId d = k.Inner(depth, true);
  StageBuilder s = k.Stage({d});
  kernel::NodeId product =
      s.Op(Opcode::kMultiply, T::kF32,
           {s.Load(x, k.Var(0) * depth + k.Var(d)), s.Load(y, k.Var(d) * n + k.Var(1))});
  s.Reduce(Combiner::Kind::kSum, T::kF32, product, s.Constant(T::kF32, 0));
  StageBuilder after = k.Stage();
  kernel::NodeId sum =
      after.Op(Opcode::kAdd, T::kF32, {after.Reduced(s, 0, T::kF32), after.Load(bias, k.Var(1))});
  after.Store(out, k.Var(0) * n + k.Var(1), sum);
  RunAllWays(k.kernel);
}

// The greatest value of a row and where it first is: two accumulators, folded in order.
TEST(CpuNest, GeneralCombinerInOrder) {
  constexpr int64_t m = 21, n = 45;
  KernelBuilder k({m});
  const auto x = k.Input(T::kF32, m * n), value = k.Output(T::kF32, m),
             where = k.Output(T::kS32, m);
  const VariableId j = k.Inner(n, true);
  StageBuilder s = k.Stage({j});
  kernel::Reduction r;
  r.inputs = {s.Load(x, k.Var(0) * n + k.Var(j)), s.IndexValue(T::kS32, k.Var(j))};
  r.inits = {s.Constant(T::kF32, -1000), s.Constant(T::kS32, -1)};
  r.types = {T::kF32, T::kS32};
  auto argument = [](int number, T type) {
    kernel::Node n{.kind = kernel::Node::Kind::kArgument, .type = type};
    n.result = number;
    return n;
  };
  r.combiner.nodes = {argument(0, T::kF32), argument(1, T::kS32), argument(2, T::kF32),
                      argument(3, T::kS32)};
  auto op = [&](Opcode opcode, T type, const std::vector<int>& operands) {
    kernel::Node n{.kind = kernel::Node::Kind::kOp, .type = type, .opcode = opcode};
    n.direction = Direction::kGe;
    for (int operand : operands) n.operands.emplace_back(operand);
    r.combiner.nodes.push_back(n);
  };
  op(Opcode::kCompare, T::kPred, {0, 2});
  op(Opcode::kSelect, T::kF32, {4, 0, 2});
  op(Opcode::kSelect, T::kS32, {4, 1, 3});
  r.combiner.results = {kernel::NodeId(5), kernel::NodeId(6)};
  s.get().reductions.push_back(r);
  StageBuilder after = k.Stage();
  after.Store(value, k.Var(0), after.Reduced(s, 0, T::kF32));
  after.Store(where, k.Var(0), after.Reduced(s, 1, T::kS32));
  RunAllWays(k.kernel);
}

// Three passes over a row, each with its own loop, as softmax has them.
TEST(CpuNest, StagesOverOneRow) {
  constexpr int64_t m = 5, n = 70;
  KernelBuilder k({m});
  const auto x = k.Input(T::kF32, m * n), out = k.Output(T::kF32, m * n);
  const VariableId i = k.Inner(n, true), j = k.Inner(n, true), l = k.Inner(n, false);
  StageBuilder first = k.Stage({i});
  first.Reduce(Combiner::Kind::kMax, T::kF32, first.Load(x, k.Var(0) * n + k.Var(i)),
               first.Constant(T::kF32, -1e30));
  StageBuilder second = k.Stage({j});
  kernel::NodeId below =
      second.Op(Opcode::kSubtract, T::kF32,
                {second.Load(x, k.Var(0) * n + k.Var(j)), second.Reduced(first, 0, T::kF32)});
  second.Reduce(Combiner::Kind::kSum, T::kF32, below, second.Constant(T::kF32, 0));
  StageBuilder third = k.Stage({l});
  Index at = k.Var(0) * n + k.Var(l);
  kernel::NodeId product =
      third.Op(Opcode::kMultiply, T::kF32, {third.Load(x, at), third.Reduced(second, 0, T::kF32)});
  kernel::NodeId value =
      third.Op(Opcode::kAdd, T::kF32, {product, third.Reduced(first, 0, T::kF32)});
  third.Store(out, at, value);
  RunAllWays(k.kernel);
}

TEST(CpuNest, LargeReductionIsCutAndStoresBypassCaches) {
  target::Cpu cpu = target::HostCpu().cpu;
  constexpr int64_t n = 400000;
  KernelBuilder k({});
  const auto x = k.Input(T::kS32, n), out = k.Output(T::kS32, 1);
  const VariableId j = k.Inner(n, true);
  StageBuilder s = k.Stage({j});
  s.Reduce(Combiner::Kind::kSum, T::kS32, s.Load(x, k.Var(j)), s.Constant(T::kS32, 1));
  StageBuilder after = k.Stage();
  after.Store(out, 0, after.Reduced(s, 0, T::kS32));
  CpuNestSchedule cut = kernel::ScheduleNest(k.kernel, cpu);
  EXPECT_GT(cut.split, 0);
  EXPECT_GT(cut.max_tasks, 1);
  RunKernel(k.kernel, cut, cpu);

  KernelBuilder e({n + 3});
  const auto in = e.Input(T::kS32, n + 3), to = e.Output(T::kS32, n + 3);
  StageBuilder copy = e.Stage();
  copy.Store(to, e.Var(0), copy.Load(in, e.Var(0)));
  CpuNestSchedule plain = kernel::ScheduleNest(e.kernel, cpu);
  EXPECT_FALSE(plain.nontemporal);
  plain.nontemporal = true;
  RunKernel(e.kernel, plain, cpu);
}

// Lines of half-read rows, and of as many that are prefetched, are not more than the ways of a
// cache.
TEST(CpuNest, FewRowsOfColumnsAreReadTogether) {
  constexpr int64_t n = 1024;
  for (int vector_bytes : {32, 64}) {
    target::Cpu cpu = target::HostCpu().cpu;
    cpu.vector_bytes = vector_bytes;
    KernelBuilder k({n});
    const auto x = k.Input(T::kF32, n * n), out = k.Output(T::kF32, n);
    const VariableId j = k.Inner(n, true);
    StageBuilder s = k.Stage({j});
    s.Reduce(Combiner::Kind::kSum, T::kF32, s.Load(x, k.Var(j) * n + k.Var(0)),
             s.Constant(T::kF32, 0));
    StageBuilder after = k.Stage();
    after.Store(out, k.Var(0), after.Reduced(s, 0, T::kF32));
    const CpuNestSchedule schedule = kernel::ScheduleNest(k.kernel, cpu);
    EXPECT_GT(schedule.strips.width, 0);
    EXPECT_EQ(schedule.stages.front().rows, vector_bytes / 8);
  }
}

TEST(CpuNest, SmallKernelsStayOnOneThread) {
  target::Cpu cpu = target::HostCpu().cpu;
  KernelBuilder k({4096});
  const auto x = k.Input(T::kF32, 4096), out = k.Output(T::kF32, 4096);
  StageBuilder s = k.Stage();
  s.Store(out, k.Var(0), s.Load(x, k.Var(0)));
  EXPECT_EQ(kernel::ScheduleNest(k.kernel, cpu).max_tasks, 1);
}

// The order of a sum's additions does not depend on whether its initial value is an argument.
TEST(CpuNest, InitialValuesDoNotChangeSchedules) {
  for (int vector_bytes : {16, 32, 64}) {
    target::Cpu cpu = target::HostCpu().cpu;
    cpu.vector_bytes = vector_bytes;
    cpu.has_masks = vector_bytes == 64;
    for (int64_t rows : {5, 64, 300}) {
      for (int64_t columns = 1; columns < 40; ++columns) {
        std::string schedules[2];
        for (bool is_argument : {false, true}) {
          KernelBuilder k({columns});
          const auto x = k.Input(T::kF32, rows * columns), initial = k.Input(T::kF32, 1),
                     out = k.Output(T::kF32, columns);
          const VariableId j = k.Inner(rows, true);
          StageBuilder s = k.Stage({j});
          const kernel::NodeId value = s.Load(x, k.Var(j) * columns + k.Var(0));
          s.Reduce(Combiner::Kind::kSum, T::kF32, value,
                   is_argument ? s.Load(initial, 0) : s.Constant(T::kF32, 0));
          StageBuilder after = k.Stage();
          after.Store(out, k.Var(0), after.Reduced(s, 0, T::kF32));
          schedules[is_argument] = kernel::ScheduleNest(k.kernel, cpu).ToString();
        }
        EXPECT_EQ(schedules[0], schedules[1]) << rows << " x " << columns << ", " << vector_bytes;
      }
    }
  }
}

TEST(CpuNest, SchedulesThatDoNotFitAreErrors) {
  target::Cpu cpu = target::HostCpu().cpu;
  KernelBuilder k({8});
  const auto x = k.Input(T::kF32, 8), out = k.Output(T::kF32, 8);
  StageBuilder s = k.Stage();
  s.Store(out, k.Var(0), s.Load(x, k.Var(0)));
  CpuNestSchedule schedule = Plain(k.kernel);
  schedule.parallel = 2;
  auto objects = codegen::GenerateCpu(ProgramOf(k.kernel, schedule), cpu, {});
  EXPECT_EQ(objects.status().code(), Code::kInternal);
}

}  // namespace
}  // namespace kiln
