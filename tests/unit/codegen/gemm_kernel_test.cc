// Gemms with what follows them, as kernels of a program.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "kernel/contraction.h"
#include "program/program.h"
#include "support/jit.h"
#include "support/kernel.h"

namespace kiln {
namespace {

using kernel::VariableId;
using testing::Buffer;
using testing::KernelBuilder;
using testing::StageBuilder;
using T = ElementType;

// Runs a kernel as a gemm, packed as `change` says, and by plain loops.
void RunGemm(const kernel::Kernel& kernel,
             const std::function<void(kernel::GemmSchedule&)>& change = {}) {
  for (int bytes : {16, 32, 64}) {
    target::Cpu cpu = target::HostCpuWithVectors(bytes).cpu;
    auto contraction = kernel::AsContraction(kernel, cpu);
    ASSERT_TRUE(contraction.has_value());
    auto schedule = kernel::ChooseGemmSchedule(cpu, contraction->problem);
    ASSERT_TRUE(schedule.ok()) << schedule.status().ToString();
    if (change) {
      change(*schedule);
      kernel::CompleteGemmSchedule(cpu, contraction->problem, *schedule);
    }
    SCOPED_TRACE(Cat(*schedule, "\n", kernel));
    codegen::LoweredProgram lowered;
    program::Program& program = lowered.program;
    std::vector<std::unique_ptr<Buffer>> actual, expected, packed;
    std::vector<void*> addresses;
    std::vector<Buffer*> reference;
    auto allocate = [&](Buffer& buffer) -> program::Slice {
      int64_t size = buffer.elements() * ByteWidth(buffer.type());
      addresses.push_back(buffer.data());
      return {program.allocations.Add({program::Allocation::Kind::kArena, 0, size}), 0, size};
    };
    auto scratch = [&](int64_t size) {
      packed.push_back(std::make_unique<Buffer>(T::kU8, size));
      return allocate(*packed.back());
    };
    program::Launch launch;
    for (kernel::ParamId i : kernel.params.ids()) {
      const kernel::Param& p = kernel.params[i];
      for (auto* list : {&actual, &expected}) {
        list->push_back(std::make_unique<Buffer>(p.type, p.elements));
        if (p.role == kernel::Param::Role::kInput) list->back()->Fill(i.value());
      }
      launch.args.push_back(allocate(*actual.back()));
      reference.push_back(expected.back().get());
    }
    kernel::CpuGemm gemm{.contraction = std::make_shared<const kernel::Contraction>(*contraction),
                         .schedule = std::make_shared<const kernel::GemmSchedule>(*schedule)};
    auto pack = [&](kernel::CpuGemm::Role role, kernel::ParamId param, int64_t size) {
      kernel::CpuGemm packing = gemm;
      packing.role = role;
      program::Slice panels = scratch(size);
      program.steps.push_back({program::Launch{lowered.kernels.Add({kernel, packing}),
                                               {launch.args[param.index()], panels}}});
      launch.args[param.index()] = panels;
    };
    if (schedule->pack_a) {
      pack(kernel::CpuGemm::Role::kPackLhs, contraction->a_param, schedule->packed_a_bytes);
    }
    if (schedule->b == kernel::GemmB::kPrepacked) {
      pack(kernel::CpuGemm::Role::kPackRhs, contraction->b_param, schedule->packed_b_bytes);
    }
    if (schedule->scratch_bytes > 0) launch.args.push_back(scratch(schedule->scratch_bytes));
    gemm.max_tasks = schedule->items;
    launch.kernel = lowered.kernels.Add({kernel, gemm});
    program.steps.push_back({launch});
    codegen::Options options;
    options.threads = 2;
    auto objects = codegen::GenerateCpu(lowered, cpu, options);
    ASSERT_TRUE(objects.ok()) << objects.status().ToString();
    auto jit = testing::Jit::Load(*objects);
    ASSERT_TRUE(jit.ok()) << jit.status().ToString();
    auto entry = reinterpret_cast<kiln_entry_fn>((*jit)->Lookup(program::EntrySymbol({})));
    ASSERT_NE(entry, nullptr);
    testing::TestFrame frame(addresses);
    ASSERT_EQ(entry(&frame.frame()), 0);
    testing::Evaluate(kernel, reference);
    for (auto& p : packed) EXPECT_TRUE(p->Intact());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_TRUE(actual[i]->Intact()) << "p" << i;
      for (int64_t e = 0; e < actual[i]->elements(); ++e) {
        ASSERT_EQ(actual[i]->Float(e), expected[i]->Float(e)) << "p" << i << "[" << e << "]";
      }
    }
  }
}

// max(x . y + bias, 0) + residual, and a pred of it: [m, n] with vectors along n.
KernelBuilder WithEpilogue(int64_t m, int64_t n, int64_t depth, T type = T::kF32) {
  KernelBuilder k({m, n});
  const auto x = k.Input(type, m * depth), y = k.Input(type, depth * n), bias = k.Input(type, n);
  const auto residual = k.Input(type, m * n), column = k.Input(T::kF32, m);
  const auto out = k.Output(type, m * n), positive = k.Output(T::kPred, m * n);
  const VariableId d = k.Inner(depth, true);
  StageBuilder s = k.Stage({d});
  kernel::NodeId product =
      s.Op(Opcode::kMultiply, type,
           {s.Load(x, k.Var(0) * depth + k.Var(d)), s.Load(y, k.Var(d) * n + k.Var(1))});
  s.Reduce(kernel::Combiner::Kind::kSum, type, product, s.Constant(type, 0));
  StageBuilder after = k.Stage();
  kernel::Index at = k.Var(0) * n + k.Var(1);
  kernel::NodeId sum =
      after.Op(Opcode::kAdd, type, {after.Reduced(s, 0, type), after.Load(bias, k.Var(1))});
  kernel::NodeId zero = after.Constant(type, 0);
  kernel::NodeId value = after.Op(Opcode::kMaximum, type, {sum, zero});
  value = after.Op(Opcode::kAdd, type, {value, after.Load(residual, at)});
  kernel::NodeId scale = after.Op(Opcode::kConvert, type, {after.Load(column, k.Var(0))});
  value = after.Op(Opcode::kMultiply, type, {value, scale});
  after.Store(out, at, value);
  after.Store(positive, at, after.Op(Opcode::kCompare, T::kPred, {sum, zero}, Direction::kGt));
  return k;
}

TEST(GemmKernel, EpilogueOfAllSizes) {
  for (int64_t n : {1, 5, 16, 33, 100}) {
    for (int64_t m : {1, 3, 30}) {
      RunGemm(WithEpilogue(m, n, 7).kernel);
      if (HasFatalFailure()) return;
    }
  }
  RunGemm(WithEpilogue(9, 21, 12, T::kF64).kernel);
}

TEST(GemmKernel, PackedOperands) {
  RunGemm(WithEpilogue(30, 70, 9).kernel, [](kernel::GemmSchedule& s) { s.pack_a = true; });
  RunGemm(WithEpilogue(30, 70, 9).kernel,
          [](kernel::GemmSchedule& s) { s.b = kernel::GemmB::kPrepacked; });
  RunGemm(WithEpilogue(30, 70, 9).kernel,
          [](kernel::GemmSchedule& s) { s.b = kernel::GemmB::kPackPanel; });
}

TEST(GemmKernel, SumsInBlocks) {
  RunGemm(WithEpilogue(20, 40, 50).kernel, [](kernel::GemmSchedule& s) {
    s.kind = kernel::GemmKind::kOuter;
    s.kc = 16;
  });
}

// A batch of gemms, stored as they are and transposed.
TEST(GemmKernel, BatchAndTransposedResult) {
  constexpr int64_t batch = 3, m = 17, n = 19, depth = 6;
  for (bool transposed : {false, true}) {
    KernelBuilder k({batch, m, n});
    const auto x = k.Input(T::kF32, batch * m * depth), y = k.Input(T::kF32, batch * depth * n);
    const auto out = k.Output(T::kF32, batch * m * n);
    const VariableId d = k.Inner(depth, true);
    StageBuilder s = k.Stage({d});
    kernel::NodeId product = s.Op(Opcode::kMultiply, T::kF32,
                                  {s.Load(x, k.Var(0) * (m * depth) + k.Var(1) * depth + k.Var(d)),
                                   s.Load(y, k.Var(0) * (depth * n) + k.Var(d) * n + k.Var(2))});
    s.Reduce(kernel::Combiner::Kind::kSum, T::kF32, product, s.Constant(T::kF32, 0));
    StageBuilder after = k.Stage();
    kernel::Index at = k.Var(0) * (m * n);
    at = at + (transposed ? k.Var(2) * m + k.Var(1) : k.Var(1) * n + k.Var(2));
    after.Store(out, at, after.Reduced(s, 0, T::kF32));
    RunGemm(k.kernel);
    if (HasFatalFailure()) return;
    // The same with something to do for each element.
    kernel::NodeId value =
        after.Op(Opcode::kAdd, T::kF32, {kernel::NodeId(0), after.Constant(T::kF32, 1)});
    k.kernel.stages[kernel::StageId(1)].stores[0].value = value;
    RunGemm(k.kernel);
    if (HasFatalFailure()) return;
  }
}

// A packed operand that the epilogue reads again would be read wrongly.
TEST(GemmKernel, PackedOperandIsReadOnce) {
  constexpr int64_t n = 16;
  KernelBuilder k({n, n});
  const auto x = k.Input(T::kF32, n * n), y = k.Input(T::kF32, n * n),
             out = k.Output(T::kF32, n * n);
  const VariableId d = k.Inner(n, true);
  StageBuilder s = k.Stage({d});
  kernel::NodeId product =
      s.Op(Opcode::kMultiply, T::kF32,
           {s.Load(x, k.Var(0) * n + k.Var(d)), s.Load(y, k.Var(d) * n + k.Var(1))});
  s.Reduce(kernel::Combiner::Kind::kSum, T::kF32, product, s.Constant(T::kF32, 0));
  StageBuilder after = k.Stage();
  kernel::Index at = k.Var(0) * n + k.Var(1);
  after.Store(out, at,
              after.Op(Opcode::kAdd, T::kF32, {after.Reduced(s, 0, T::kF32), after.Load(x, at)}));
  RunGemm(k.kernel);
  target::Cpu cpu = target::HostCpu().cpu;
  auto contraction = kernel::AsContraction(k.kernel, cpu);
  ASSERT_TRUE(contraction.has_value());
  auto schedule = kernel::ChooseGemmSchedule(cpu, contraction->problem);
  ASSERT_TRUE(schedule.ok());
  schedule->pack_a = contraction->a_param == x;
  if (!schedule->pack_a) schedule->b = kernel::GemmB::kPrepacked;
  kernel::CompleteGemmSchedule(cpu, contraction->problem, *schedule);
  codegen::LoweredProgram lowered;
  lowered.kernels.push_back(
      {k.kernel,
       kernel::CpuGemm{.contraction = std::make_shared<const kernel::Contraction>(*contraction),
                       .schedule = std::make_shared<const kernel::GemmSchedule>(*schedule)}});
  EXPECT_EQ(codegen::GenerateCpu(lowered, cpu, {}).status().code(), Code::kInternal);
}

}  // namespace
}  // namespace kiln
