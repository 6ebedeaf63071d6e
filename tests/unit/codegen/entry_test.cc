// Programs as machine code: steps in order, loops, branches, calls, copies, errors.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "program/program.h"
#include "program/steps.h"
#include "support/jit.h"
#include "support/kernel.h"
#include "support/labels.h"

namespace kiln {
namespace {

using testing::Buffer;
using testing::KernelBuilder;
using testing::StageBuilder;
using T = ElementType;

class Programs : public ::testing::Test {
 protected:
  // An allocation of its own for each buffer.
  program::Slice Add(Buffer& buffer) {
    int64_t bytes = buffer.elements() * ByteWidth(buffer.type());
    addresses_.push_back(buffer.data());
    return {program_.allocations.Add({program::Allocation::Kind::kArena, 0, bytes}), 0, bytes};
  }

  // The kernel that stores op(x, constant) of one s32.
  program::KernelId AddKernel(Opcode opcode, T type, double constant,
                              Direction direction = Direction::kEq) {
    KernelBuilder k({});
    const auto x = k.Input(T::kS32, 1), out = k.Output(type, 1);
    StageBuilder s = k.Stage();
    s.Store(out, 0, s.Op(opcode, type, {s.Load(x, 0), s.Constant(T::kS32, constant)}, direction));
    return lowered_.kernels.Add({k.kernel, kernel::ScheduleNest(k.kernel, target::HostCpu().cpu)});
  }

  program::Step Launch(program::KernelId kernel, std::vector<program::Slice> args,
                       program::LaunchId id = {}) {
    return {program::Launch{kernel, std::move(args), id}};
  }

  kiln_entry_fn Compile(const std::string& symbol = program::EntrySymbol({})) {
    codegen::Options options;
    options.threads = 3;
    auto objects = codegen::GenerateCpu(lowered_, target::HostCpu().cpu, options);
    if (!objects.ok()) {
      ADD_FAILURE() << objects.status().ToString();
      return nullptr;
    }
    objects_ = objects->size();
    auto jit = testing::Jit::Load(*objects);
    if (!jit.ok()) {
      ADD_FAILURE() << jit.status().ToString();
      return nullptr;
    }
    jit_ = std::move(*jit);
    return reinterpret_cast<kiln_entry_fn>(jit_->Lookup(symbol));
  }

  codegen::LoweredProgram lowered_;
  program::Program& program_ = lowered_.program;
  std::vector<void*> addresses_;
  std::unique_ptr<testing::Jit> jit_;
  size_t objects_ = 0;
};

// while (x < 1000) x = x * 3; with a step traced.
TEST_F(Programs, LoopsUntilThePredicateIsFalse) {
  Buffer x(T::kS32, 1), p(T::kPred, 1);
  program::Slice sx = Add(x), sp = Add(p);
  const auto less = AddKernel(Opcode::kCompare, T::kPred, 1000, Direction::kLt);
  const auto triple = AddKernel(Opcode::kMultiply, T::kS32, 3);
  program::While loop;
  loop.condition = {Launch(less, {sx, sp})};
  loop.predicate = sp;
  loop.body = {Launch(triple, {sx, sx}, program::LaunchId(0))};
  program_.steps = {{loop}};
  program_.launches.resize(1);
  kiln_entry_fn entry = Compile();
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(objects_, 2u);
  testing::TestFrame frame(addresses_);
  x.as<int32_t>()[0] = 500;
  ASSERT_EQ(entry(&frame.frame()), 0);
  EXPECT_EQ(x.Int(0), 1500);
  EXPECT_TRUE(frame.events.empty());
  frame.frame().trace = &frame;
  ASSERT_EQ(entry(&frame.frame()), 0);
  EXPECT_TRUE(frame.events.empty()) << "the loop runs no more";
  x.as<int32_t>()[0] = 300;
  ASSERT_EQ(entry(&frame.frame()), 0);
  EXPECT_EQ(Join(frame.events, " "), "begin 0 end 0 begin 0 end 0");
}

TEST_F(Programs, LoopsStopWhenCancelled) {
  Buffer p(T::kPred, 1);
  program::While forever;
  forever.predicate = Add(p);
  program_.steps = {{forever}};
  kiln_entry_fn entry = Compile();
  ASSERT_NE(entry, nullptr);
  testing::TestFrame frame(addresses_);
  p.as<bool>()[0] = true;
  int32_t cancel = 1;
  frame.frame().cancel = &cancel;
  EXPECT_EQ(entry(&frame.frame()), static_cast<int32_t>(Code::kCancelled));
  EXPECT_EQ(frame.events.size(), 1u);
  cancel = 0;
  p.as<bool>()[0] = false;
  EXPECT_EQ(entry(&frame.frame()), 0);
}

TEST_F(Programs, BranchesByPredAndByNumber) {
  Buffer x(T::kS32, 1), p(T::kPred, 1), i(T::kS32, 1);
  program::Slice sx = Add(x), sp = Add(p), si = Add(i);
  const auto plus_one = AddKernel(Opcode::kAdd, T::kS32, 1);
  const auto plus_ten = AddKernel(Opcode::kAdd, T::kS32, 10);
  const auto plus_hundred = AddKernel(Opcode::kAdd, T::kS32, 100);
  auto step = [&](program::KernelId kernel) { return program::Steps{Launch(kernel, {sx, sx})}; };
  program_.steps = {
      {program::Conditional{sp, true, {step(plus_one), step(plus_ten)}}},
      {program::Conditional{si, false, {step(plus_one), step(plus_ten), step(plus_hundred)}}}};
  kiln_entry_fn entry = Compile();
  ASSERT_NE(entry, nullptr);
  testing::TestFrame frame(addresses_);
  auto run = [&](bool pred, int32_t index) {
    x.as<int32_t>()[0] = 0;
    p.as<bool>()[0] = pred;
    i.as<int32_t>()[0] = index;
    EXPECT_EQ(entry(&frame.frame()), 0);
    return x.Int(0);
  };
  EXPECT_EQ(run(true, 0), 2);
  EXPECT_EQ(run(false, 1), 20);
  EXPECT_EQ(run(false, 2), 110);
  EXPECT_EQ(run(false, 3), 110);
  EXPECT_EQ(run(false, -1), 110);
}

TEST_F(Programs, CopiesOfAllSizes) {
  for (int64_t bytes : {0, 1, 7, 64, 511, 512, 513, 5000, 600001}) {
    program_ = program::Program();
    addresses_.clear();
    Buffer from(T::kU8, bytes), to(T::kU8, bytes);
    from.Fill(1);
    program::Slice source = Add(from), destination = Add(to);
    program_.steps = {{program::Copy{source, destination}}};
    kiln_entry_fn entry = Compile();
    ASSERT_NE(entry, nullptr);
    testing::TestFrame frame(addresses_);
    ASSERT_EQ(entry(&frame.frame()), 0);
    EXPECT_EQ(frame.parallel_calls, bytes > 262144 ? 1 : 0);
    EXPECT_TRUE(to.Intact());
    for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(to.Int(i), from.Int(i)) << i << " of " << bytes;
  }
}

TEST_F(Programs, CallsGoByTheirPlaceAmongLaunchesAndTheirErrorsEndTheProgram) {
  Buffer x(T::kS32, 1);
  program::Slice sx = Add(x);
  const auto plus_one = AddKernel(Opcode::kAdd, T::kS32, 1);
  program_.prologue = {{program::HostCall{"first", {sx}, "", program::LaunchId(2)}}};
  program_.steps = {{program::HostCall{"second", {sx}, "some text", program::LaunchId(1)}},
                    Launch(plus_one, {sx, sx}),
                    {program::HostCall{"first", {sx}, "", program::LaunchId(0)}}};
  program_.launches.resize(3);
  std::string order;
  for (const program::HostCall* call : program::HostCallSteps(program_))
    order += Cat(call->target, call->id, " ");
  EXPECT_EQ(order, "first2 second1 first0 ");
  kiln_entry_fn entry = Compile();
  ASSERT_NE(entry, nullptr);
  auto prologue = reinterpret_cast<kiln_entry_fn>(jit_->Lookup(program::PrologueSymbol({})));
  ASSERT_NE(prologue, nullptr);
  testing::TestFrame frame(addresses_);
  x.as<int32_t>()[0] = 5;
  EXPECT_EQ(prologue(&frame.frame()), 0);
  EXPECT_EQ(frame.called, 2);
  EXPECT_EQ(entry(&frame.frame()), 0);
  EXPECT_EQ(Join(frame.events, ", "), "call 2, call 1, call 0");
  EXPECT_EQ(x.Int(0), 6);
  frame.call_result = static_cast<int32_t>(Code::kInvalidArgument);
  EXPECT_EQ(entry(&frame.frame()), frame.call_result);
  EXPECT_EQ(frame.config, "some text");
  EXPECT_EQ(x.Int(0), 6);
}

TEST_F(Programs, NoPrologueNoSymbol) {
  ASSERT_NE(Compile(), nullptr);
  EXPECT_EQ(jit_->Lookup(program::PrologueSymbol({})), nullptr);
}

TEST_F(Programs, TextOfTheCodeIsDumped) {
  AddKernel(Opcode::kAdd, T::kS32, 1);
  codegen::Options options;
  std::string name, text;
  options.dump = [&](std::string_view suffix, std::string_view contents) {
    name = suffix;
    text = contents;
  };
  ASSERT_TRUE(codegen::GenerateCpu(lowered_, target::HostCpu().cpu, options).ok());
  EXPECT_EQ(name, "ir-no-opt.ll");
  EXPECT_NE(text.find("define i32 @kiln_entry"), std::string::npos);
}

KILN_LABEL(text, "Programs.TextOfTheCodeIsDumped");

}  // namespace
}  // namespace kiln
