// Call steps in whole programs: on the CPU, the emulated GPU and the evaluator, and one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>

#include "base/strings.h"
#include "base/trace.h"
#include "client/devices.h"
#include "client/transfer.h"
#include "compiler/compiler.h"
#include "device/cpu/device.h"
#include "device/reference/device.h"
#include "device/reference/grid_calls.h"
#include "interp/interpreter.h"
#include "runtime/custom_calls.h"
#include "session/session.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Execution;
using testing::Pool;

// What a test's function gets.
struct TestCall {
  const CallSignature& signature;
  void* const* args;
  float* operand(size_t i) const { return static_cast<float*>(args[i]); }
  float* result(size_t i) const { return static_cast<float*>(args[signature.operands.size() + i]); }
  size_t size(size_t operand) const {
    return static_cast<size_t>(signature.operands[operand].num_elements());
  }
};

class TestFunction : public runtime::lib::Function {
 public:
  using Body = std::function<Status(const TestCall&)>;
  TestFunction(CallSignature signature, Body body)
      : signature_(std::move(signature)), body_(std::move(body)) {}
  Status Run(const kiln_frame*, void* const* args) const override {
    return body_({signature_, args});
  }
  bool is_users() const override { return true; }

 private:
  const CallSignature signature_;
  const Body body_;
};

class Calls : public ::testing::Test {
 protected:
  Calls() {
    Register("double", [this](const TestCall& call) {
      ++doubles_;
      for (size_t k = 0; k < call.size(0); ++k) call.result(0)[k] = 2 * call.operand(0)[k];
      return OkStatus();
    });
    // (x, y) -> (x + y, the largest of x - y)
    Register("both", [](const TestCall& call) {
      float most = -1e30f;
      for (size_t k = 0; k < call.size(0); ++k) {
        const float x = call.operand(0)[k], y = call.operand(1)[k];
        call.result(0)[k] = x + y;
        most = std::max(most, x - y);
      }
      call.result(1)[0] = most;
      return OkStatus();
    });
    // In place: adds 1 to what is there.
    Register("increment", [](const TestCall& call) -> Status {
      if (call.args[0] != call.args[1]) return Internal("the arrays are two");
      for (size_t k = 0; k < call.size(0); ++k) call.result(0)[k] += 1;
      return OkStatus();
    });
    Register("fail", [](const TestCall& call) -> Status {
      if (call.operand(0)[0] < 5) {
        call.result(0)[0] = call.operand(0)[0] + 1;
        return OkStatus();
      }
      return OutOfRange("five is ", call.operand(0)[0]);
    });
    // Tells how often it was called, and with what text.
    Register("note", [this](const TestCall& call) {
      std::lock_guard lock(mutex_);
      notes_.push_back(Cat(call.signature.attributes, call.operand(0)[0]));
      return OkStatus();
    });
    Register("sum of parameters", [](const TestCall& call) {
      float sum = 0;
      for (size_t k = 0; k < call.signature.operands.size(); ++k) sum += call.operand(k)[0];
      call.result(0)[0] = sum;
      return OkStatus();
    });
    // The elements in the order of memory.
    Register("bytes", [](const TestCall& call) {
      std::memcpy(call.args[1], call.args[0],
                  static_cast<size_t>(call.signature.operands[0].byte_size()));
      return OkStatus();
    });
  }

  void Register(std::string_view target, TestFunction::Body body) {
    runtime::CustomCallRegistry::Maker make = [body](const CallSignature& signature)
        -> Result<std::shared_ptr<const runtime::lib::Function>> {
      return std::shared_ptr<const runtime::lib::Function>(
          std::make_shared<TestFunction>(signature, body));
    };
    ASSERT_TRUE(registry_.Add(target, make).ok());
  }

  // A device's program, of which arguments and results are in the host's memory.
  struct Program {
    std::string where;
    testing::Loaded loaded;
  };

  Result<Program> LoadFor(const ir::Module& module, std::string where, bool fuse) {
    Program program;
    program.where = Cat(where, fuse ? "" : ", op by op");
    compiler::Options options;
    options.verify = true;
    options.fuse = fuse;
    target::Target target = where == "REFERENCE" ? target::Reference() : target::HostCpu();
    if (where == "GPU") target = testing::SharedGpu().target();
    KILN_ASSIGN_OR_RETURN(program::Artefact artefact,
                          compiler::Compile(module.Clone(), target, options));
    program.loaded.artefact = std::make_shared<const program::Artefact>(std::move(artefact));
    if (where == "GPU") {
      testing::SharedGpu().set_call_host({&registry_, &Pool()});
      auto loaded = testing::LoadOnGpu(program.loaded.artefact, testing::SharedGpu());
      testing::SharedGpu().set_call_host({});
      if (!loaded.ok()) return loaded.status();
      program.loaded = *std::move(loaded);
    } else if (where == "CPU") {
      KILN_ASSIGN_OR_RETURN(program.loaded.executable,
                            device::CpuExecutable::Load(*program.loaded.artefact,
                                                        Execution::allocator, Pool(), &registry_));
    } else {
      reference_.set_call_host({&registry_, &Pool()});
      KILN_ASSIGN_OR_RETURN(program.loaded.executable, reference_.Load(*program.loaded.artefact));
    }
    return program;
  }

  // On all devices, fused and op by op.
  std::vector<Program> LoadEverywhere(const ir::Module& module) {
    std::vector<Program> programs;
    for (const char* where : {"CPU", "GPU", "REFERENCE"}) {
      for (bool fuse : {true, false}) {
        auto program = LoadFor(module, where, fuse);
        EXPECT_TRUE(program.ok()) << where << ": " << program.status().ToString();
        if (program.ok()) programs.push_back(*std::move(program));
      }
    }
    EXPECT_EQ(programs.size(), 6u);
    return programs;
  }

  // Runs it twice: on a GPU the second run is one of graphs.
  std::string RunOf(const Program& program, const std::vector<Literal>& arguments) {
    std::string text;
    for (int run = 0; run < 2; ++run) {
      Execution execution(*program.loaded.artefact);
      execution.SetArguments(arguments);
      Status status = program.loaded.executable->Run(execution.arguments(), execution.results());
      std::string now = status.ok() ? execution.Result().ToString() : status.ToString();
      if (run == 0) text = now;
      EXPECT_EQ(now, text) << program.where;
    }
    return text;
  }

  void Expect(std::string_view hlo, std::string_view expected,
              std::vector<Literal> arguments = {}) {
    auto module = ir::ParseOrDie(hlo);
    for (const Program& program : LoadEverywhere(*module)) {
      EXPECT_EQ(RunOf(program, arguments), expected) << program.where << "\n"
                                                     << program.loaded.artefact->program.ToString();
    }
  }

  static Literal Floats(std::vector<float> values) {
    return Literal::Array<float>(Shape(ElementType::kF32, {std::ssize(values)}), values);
  }

  runtime::CustomCallRegistry registry_;
  device::ReferenceDevice reference_{"REFERENCE:0", Execution::allocator};
  std::atomic<int> doubles_{0};
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

TEST_F(Calls, BetweenKernels) {
  Expect(R"(ENTRY e {
  x = f32[3] parameter(0)
  e = f32[3] negate(x)
  d = f32[3] custom-call(e), custom_call_target="double"
  ROOT y = f32[3] add(d, x)
})",
         "{-1, -2, -3}", {Floats({1, 2, 3})});
}

TEST_F(Calls, SeveralResultsAndTuples) {
  Expect(R"(ENTRY e {
  x = f32[3] parameter(0)
  y = f32[3] constant({1, 1, 1})
  a = (f32[3], f32[]) custom-call(x, y), custom_call_target="both"
  s = f32[3] get-tuple-element(a), index=0
  pair = (f32[3], f32[3]) tuple(s, x)
  ROOT b = (f32[3], f32[]) custom-call(pair), custom_call_target="both"
})",
         "({3, 5, 7}, 1)", {Floats({1, 2, 3})});
}

constexpr std::string_view kLoop = R"(
condition {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[1] get-tuple-element(s), index=1
  y = f32[1] custom-call(x), custom_call_target="TARGET"
  ROOT t = (s32[], f32[1]) tuple(j, y)
}
ENTRY e {
  fed = f32[1] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[1]) tuple(zero, fed)
  w = (s32[], f32[1]) while(s), condition=condition, body=body
  ROOT fetched = f32[1] get-tuple-element(w), index=1
})";

std::string LoopOf(std::string_view target) {
  std::string text(kLoop);
  text.replace(text.find("TARGET"), 6, target);
  return text;
}

// --- What programs that test evaluators have

// Programs of three processes, whose arguments are numbers of kinds that kernels do not have, and
// tokens; they call a function, and a computation that reduces.
TEST_F(Calls, GridsOfProcesses) {
  ASSERT_TRUE(device::AddGridCalls(registry_, registry_).ok());
  Expect(R"(
add {
  a = c64[] parameter(0)
  b = c64[] parameter(1)
  ROOT s = c64[] add(a, b)
}
three {
  ROOT k = f32[2] constant({3, 0.5})
}
sums {
  t = token[] parameter(0)
  x = c64[2] parameter(1)
  n = s4[3] parameter(2)
  s = c64[2] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add
  i = (f32[2], token[]) infeed(t)
  f = f32[2] get-tuple-element(i), index=0
  d = f32[2] custom-call(f), custom_call_target="double"
  ROOT r = (c64[2], token[], s4[3], f32[2]) tuple(s, t, n, d)
}
one {
  x = c64[2] parameter(0)
  s = c64[2] all-reduce(x), replica_groups={{0,1,2}}, to_apply=add
  ROOT r = u32[] replica-id()
}
ENTRY e {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  t = token[] after-all()
  c = c64[2] complex(x, y)
  n = s4[3] constant({-8, 7, 1})
  g = (c64[2], token[], s4[3], f32[2], u32[], u32[]) custom-call(t, c, n, c, c),
      custom_call_target="interpreter.run_parallel", custom_call_has_side_effect=true,
      called_computations={sums, one, one, three}, backend_config="replicas=3 partitions=1 infeed=1"
  s = c64[2] get-tuple-element(g), index=0
  m = s4[3] get-tuple-element(g), index=2
  f = f32[2] get-tuple-element(g), index=3
  u = u32[] get-tuple-element(g), index=5
  re = f32[2] real(s)
  im = f32[2] imag(s)
  k = s4[3] add(m, m)
  w = s32[3] convert(k)
  z = f32[2] add(f, f)
  ROOT r = (f32[2], f32[2], s32[3], f32[2], u32[]) tuple(re, im, w, z, u)
})",
         "({3, 6}, {-3, 1.5}, {0, -2, 2}, {12, 2}, 2)", {Floats({1, 2}), Floats({-1, 0.5})});
  EXPECT_EQ(doubles_, 6 * 2);
}

TEST_F(Calls, GridsThatFail) {
  ASSERT_TRUE(device::AddGridCalls(registry_, registry_).ok());
  auto module = ir::ParseOrDie(R"(
waits {
  p = f32[1] parameter(0)
  ROOT r = f32[1] collective-permute(p), source_target_pairs={{0,1}}
}
ends { ROOT p = f32[1] parameter(0) }
ENTRY e {
  x = f32[1] parameter(0)
  ROOT g = (f32[1], f32[1]) custom-call(x, x), custom_call_target="interpreter.run_parallel",
      custom_call_has_side_effect=true, called_computations={waits, ends},
      backend_config="replicas=2 partitions=1 infeed=0"
})");
  for (const Program& program : LoadEverywhere(*module)) {
    const std::string result = RunOf(program, {Floats({1})});
    EXPECT_NE(result.find("FAILED_PRECONDITION: "), result.npos) << program.where << result;
    EXPECT_NE(result.find("process (0, 0) in collective-permute 'r' for process (1, 0)"),
              result.npos)
        << program.where << result;
  }
}

// A function that is missing in a program of a grid is missed when the whole is loaded.
TEST_F(Calls, GridsWithoutTheirFunctions) {
  ASSERT_TRUE(device::AddGridCalls(registry_, registry_).ok());
  auto module = ir::ParseOrDie(R"(
absent {
  p = f32[1] parameter(0)
  ROOT r = f32[1] custom-call(p), custom_call_target="absent"
}
ENTRY e {
  x = f32[1] parameter(0)
  ROOT g = f32[1] custom-call(x), custom_call_target="interpreter.run_parallel",
      custom_call_has_side_effect=true, called_computations={absent},
      backend_config="replicas=1 partitions=1 infeed=0"
})");
  for (const char* where : {"CPU", "GPU", "REFERENCE"}) {
    auto program = LoadFor(*module, where, true);
    ASSERT_FALSE(program.ok()) << where;
    EXPECT_EQ(program.status().code(), Code::kNotFound) << where;
  }
}

// Turns of a loop keep their values, each run its own, and a grid's probes are the program's.
TEST_F(Calls, ProbesOfARun) {
  ASSERT_TRUE(device::AddGridCalls(registry_, registry_).ok());
  std::string text = R"(
condition {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[1] get-tuple-element(s), index=1
  y = f32[1] custom-call(x), custom_call_target="interpreter.probe",
      custom_call_has_side_effect=true, backend_config="probe_id=a probe"
  z = f32[1] add(y, y)
  ROOT t = (s32[], f32[1]) tuple(j, z)
}
keeps {
  p = f32[1] parameter(0)
  ROOT r = f32[1] custom-call(p), custom_call_target="interpreter.probe",
      custom_call_has_side_effect=true, backend_config="probe_id=another"
}
ENTRY e {
  x = f32[1] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[1]) tuple(zero, x)
  w = (s32[], f32[1]) while(s), condition=condition, body=body
  y = f32[1] get-tuple-element(w), index=1
  eight = f32[1] constant({8})
  d = f32[1] multiply(x, eight)
  c = () custom-call(d), custom_call_target="check.expect_serialized_eq",
      custom_call_has_side_effect=true, backend_config="iter=3 probe_id=a probe"
  g = f32[1] custom-call(y), custom_call_target="interpreter.run_parallel",
      custom_call_has_side_effect=true, called_computations={keeps},
      backend_config="replicas=1 partitions=1 infeed=0"
  e = () custom-call(g), custom_call_target="check.expect_serialized_eq",
      custom_call_has_side_effect=true, backend_config="iter=0 probe_id=another"
  p = () custom-call(g), custom_call_target="interpreter.print", custom_call_has_side_effect=true
  ROOT r = f32[1] negate(g)
})";
  Expect(text, "{-3072}", {Floats({3})});
  // The next run's first turn is no eleventh one.
  text.replace(text.find("iter=3 "), 7, "iter=10 ");
  for (const Program& program : LoadEverywhere(*ir::ParseOrDie(text))) {
    const std::string result = RunOf(program, {Floats({3})});
    EXPECT_NE(result.find("there is no value 10 of the probe 'a probe'"), result.npos)
        << program.where << result;
  }
}

// --- Where calls are

TEST_F(Calls, InLoops) {
  Expect(LoopOf("double"), "{1024}", {Floats({1})});
  EXPECT_EQ(doubles_, 6 * 2 * 10);
}

TEST_F(Calls, InBranches) {
  constexpr std::string_view kText = R"(
twice { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target="double" }
same { ROOT x = f32[2] parameter(0) }
ENTRY e {
  x = f32[2] parameter(0)
  zero = f32[1] slice(x), slice={[0:1]}
  z = f32[] reshape(zero)
  n = f32[] constant(0)
  p = pred[] compare(z, n), direction=GT
  ROOT c = f32[2] conditional(p, x, x), true_computation=twice, false_computation=same
})";
  Expect(kText, "{2, 4}", {Floats({1, 2})});
  EXPECT_EQ(doubles_, 12);
  Expect(kText, "{-1, 4}", {Floats({-1, 4})});
  EXPECT_EQ(doubles_, 12);
}

TEST_F(Calls, FailuresEndTheProgramAndNameTheOp) {
  auto module = ir::ParseOrDie(LoopOf("fail"));
  for (const Program& program : LoadEverywhere(*module)) {
    EXPECT_EQ(RunOf(program, {Floats({0})}), "OUT_OF_RANGE: custom-call 'y' of fail: five is 5")
        << program.where;
    // It can be run again.
    EXPECT_EQ(RunOf(program, {Floats({-20})}), "{-10}") << program.where;
  }
}

TEST_F(Calls, UnknownTargetsAreNotFoundWhenTheProgramIsLoaded) {
  auto module = ir::ParseOrDie(LoopOf("nobody"));
  for (const char* where : {"CPU", "GPU", "REFERENCE"}) {
    auto program = LoadFor(*module, where, true);
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.status().code(), Code::kNotFound) << program.status().ToString();
    EXPECT_NE(program.status().message().find("no function is registered for the target 'nobody'"),
              std::string_view::npos);
    EXPECT_NE(program.status().message().find("'y'"), std::string_view::npos);
  }
}

TEST_F(Calls, RegistrationRefusesNamesThatAreTaken) {
  runtime::CustomCallRegistry::Maker make =
      [](const CallSignature&) -> Result<std::shared_ptr<const runtime::lib::Function>> {
    return Internal("unused");
  };
  EXPECT_EQ(registry_.Add("double", make).code(), Code::kAlreadyExists);
  EXPECT_EQ(registry_.Add("", make).code(), Code::kInvalidArgument);
  EXPECT_EQ(registry_.Add("kiln.mine", make).code(), Code::kInvalidArgument);
  EXPECT_TRUE(static_cast<bool>(make));
}

// What must be run is, as often as the program says, whoever needs the result.
TEST_F(Calls, SideEffectsStay) {
  auto module = ir::ParseOrDie(R"(
condition {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[1]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[1] get-tuple-element(s), index=1
  ten = f32[1] constant({10})
  y = f32[1] add(x, ten)
  nothing = () custom-call(y), custom_call_target="note", custom_call_has_side_effect=true, backend_config="in "
  ROOT t = (s32[], f32[1]) tuple(j, y)
}
ENTRY e {
  x = f32[1] parameter(0)
  constant = f32[1] constant({7})
  a = () custom-call(constant), custom_call_target="note", custom_call_has_side_effect=true, backend_config="a "
  b = () custom-call(constant), custom_call_target="note", custom_call_has_side_effect=true, backend_config="a "
  left_out = () custom-call(constant), custom_call_target="note"
  zero = s32[] constant(0)
  s = (s32[], f32[1]) tuple(zero, x)
  w = (s32[], f32[1]) while(s), condition=condition, body=body
  ROOT y = f32[1] negate(x)
})");
  for (const Program& program : LoadEverywhere(*module)) {
    notes_.clear();
    EXPECT_EQ(RunOf(program, {Floats({1})}), "{-1}");
    // In the program's order, in both runs.
    EXPECT_EQ(Join(notes_, ", "), "a 7, a 7, in 11, in 21, in 31, a 7, a 7, in 11, in 21, in 31")
        << program.where;
  }
}

// Whatever the result is made of first.
TEST_F(Calls, SideEffectsKeepTheirOrder) {
  Register("pass on", [this](const TestCall& call) {
    notes_.push_back(call.signature.attributes);
    call.result(0)[0] = call.operand(0)[0];
    return OkStatus();
  });
  auto module = ir::ParseOrDie(R"(
branch {
  b = f32[1] parameter(0)
  ROOT c = f32[1] custom-call(b), custom_call_target="pass on", custom_call_has_side_effect=true, backend_config="third"
}
ENTRY e {
  x = f32[1] parameter(0)
  token = token[] after-all()
  first = (f32[1], token[]) custom-call(x, token), custom_call_target="pass on", custom_call_has_side_effect=true, backend_config="first"
  second = f32[1] custom-call(x), custom_call_target="pass on", custom_call_has_side_effect=true, backend_config="second"
  n = s32[] constant(0)
  third = f32[1] conditional(n, x), branch_computations={branch}
  fourth = f32[1] custom-call(x), custom_call_target="pass on", custom_call_has_side_effect=true, backend_config="fourth"
  a = f32[1] get-tuple-element(first), index=0
  t = token[] get-tuple-element(first), index=1
  fifth = (token[]) custom-call(t, a), custom_call_target="note", custom_call_has_side_effect=true, backend_config="fifth "
  ROOT sum = f32[1] add(fourth, second)
})");
  for (const Program& program : LoadEverywhere(*module)) {
    notes_.clear();
    EXPECT_EQ(RunOf(program, {Floats({2})}), "{4}");
    EXPECT_EQ(Join(notes_, " "),
              "first second third fourth fifth 2 first second third fourth fifth 2")
        << program.where;
  }
}

// Calls that look alike may give different things.
TEST_F(Calls, NoTwoBecomeOneAndNoneIsMadeBefore) {
  Expect(R"(ENTRY e {
  c = f32[2] constant({1, 2})
  a = f32[2] custom-call(c), custom_call_target="double"
  b = f32[2] custom-call(c), custom_call_target="double"
  ROOT y = f32[2] add(a, b)
})",
         "{4, 8}");
  EXPECT_EQ(doubles_, 6 * 2 * 2);
}

TEST_F(Calls, ResultsInOperandsMemory) {
  // One dies with the call, one is needed afterwards, one is the caller's, one a constant.
  Expect(R"(ENTRY e {
  x = f32[2] parameter(0)
  n = f32[2] negate(x)
  a = f32[2] custom-call(n), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
  m = f32[2] abs(x)
  b = f32[2] custom-call(m), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
  c = f32[2] custom-call(x), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
  seven = f32[2] constant({7, 7})
  d = f32[2] custom-call(seven), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
  ROOT t = (f32[2], f32[2], f32[2], f32[2], f32[2], f32[2]) tuple(a, b, m, c, x, d)
})",
         "({0, -1}, {2, 3}, {1, 2}, {2, 3}, {1, 2}, {8, 8})", {Floats({1, 2})});
}

TEST_F(Calls, ResultsInPartsOfOperands) {
  Register("swap", [](const TestCall& call) -> Status {
    if (call.args[0] != call.args[3] || call.args[1] != call.args[2]) {
      return Internal("not in place");
    }
    call.result(1)[0] += 100;
    return OkStatus();
  });
  Expect(R"(ENTRY e {
  x = f32[1] parameter(0)
  n = f32[1] negate(x)
  pair = (f32[1], f32[1]) tuple(x, n)
  s = (f32[1], f32[1]) custom-call(pair), custom_call_target="swap", output_to_operand_aliasing={{0}: (0, {1}), {1}: (0, {0})}
  a = f32[1] get-tuple-element(s), index=0
  b = f32[1] get-tuple-element(s), index=1
  ROOT t = (f32[1], f32[1], f32[1], f32[1]) tuple(a, b, x, n)
})",
         "({-3}, {103}, {3}, {-3})", {Floats({3})});
}

TEST_F(Calls, TheSameArrayTwiceAndInPlace) {
  Register("add into the first", [](const TestCall& call) -> Status {
    if (call.args[0] != call.args[2] || call.args[1] == call.args[2]) return Internal("arrays");
    for (size_t k = 0; k < call.size(0); ++k) call.result(0)[k] += call.operand(1)[k];
    return OkStatus();
  });
  Expect(R"(ENTRY e {
  x = f32[2] parameter(0)
  n = f32[2] negate(x)
  ROOT a = f32[2] custom-call(n, n), custom_call_target="add into the first", output_to_operand_aliasing={{}: (0, {})}
})",
         "{-2, -4}", {Floats({1, 2})});
}

TEST_F(Calls, ManyOperandsAndNoneAtAll) {
  Register("answer", [](const TestCall& call) {
    call.result(0)[0] = 42;
    return OkStatus();
  });
  std::string operands, text = "ENTRY e {\n";
  for (int k = 0; k < 100; ++k) {
    text += Cat("  c", k, " = f32[] constant(", k, ")\n");
    operands += Cat(k > 0 ? ", c" : "c", k);
  }
  text += Cat("  s = f32[] custom-call(", operands, "), custom_call_target=\"sum of parameters\"\n",
              "  a = f32[] custom-call(), custom_call_target=\"answer\"\n",
              "  ROOT t = (f32[], f32[]) tuple(s, a)\n}\n");
  Expect(text, "(4950, 42)");
}

// Functions see row-major order, whatever the layouts around them.
TEST_F(Calls, LayoutsAreRowMajor) {
  auto module = ir::ParseOrDie(R"(
HloModule m, entry_computation_layout={(f32[2,3]{0,1})->(f32[6]{0}, f32[2,3]{0,1})}
ENTRY e {
  x = f32[2,3] parameter(0)
  flat = f32[6] custom-call(x), custom_call_target="bytes"
  same = f32[2,3]{0,1} custom-call(x), custom_call_target="bytes"
  ROOT t = (f32[6], f32[2,3]{0,1}) tuple(flat, same)
})");
  Literal x(Shape(ElementType::kF32, {2, 3}));
  for (size_t k = 0; k < 6; ++k) x.values<float>()[k] = static_cast<float>(k);
  for (const Program& program : LoadEverywhere(*module)) {
    EXPECT_EQ(RunOf(program, {x}), "({0, 1, 2, 3, 4, 5}, { { 0, 1, 2 }, { 3, 4, 5 } })")
        << program.where;
  }
}

TEST_F(Calls, MarkersGiveTheirOperand) {
  Expect(R"(ENTRY e {
  x = f32[2] parameter(0)
  a = f32[2] custom-call(x), custom_call_target="Sharding", sharding={replicated}
  b = f32[2] custom-call(a), custom_call_target="SPMDFullToShardShape"
  c = f32[2] custom-call(b), custom_call_target="SPMDShardToFullShape"
  d = f32[2] custom-call(c), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
  g = () custom-call(d), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true
  ROOT e = f32[2] custom-call(d), custom_call_target="xla.sdy.FuncResultSharding"
})",
         "{1, 2}", {Floats({1, 2})});
  // Of two shapes it is none.
  auto module = ir::ParseOrDie(R"(ENTRY e {
  x = f32[2] parameter(0)
  ROOT a = f32[1] custom-call(x), custom_call_target="SPMDFullToShardShape"
})");
  EXPECT_EQ(LoadFor(*module, "CPU", true).status().code(), Code::kNotFound);
}

TEST_F(Calls, TimelinesShowThem) {
  auto module = ir::ParseOrDie(LoopOf("double"));
  for (const char* where : {"CPU", "GPU"}) {
    auto program = LoadFor(*module, where, true);
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    TraceSink trace;
    Execution execution(*program->loaded.artefact);
    execution.SetArguments({Floats({1})});
    runtime::RunOptions options;
    options.trace = &trace;
    ASSERT_TRUE(
        program->loaded.executable->Run(execution.arguments(), execution.results(), options).ok());
    const std::string json = trace.ToChromeJson();
    size_t count = 0;
    for (size_t at = 0; (at = json.find("\"double\"", at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, 10u) << where << json;
    EXPECT_NE(json.find("\"call\""), std::string::npos);
  }
}

TEST_F(Calls, LoopsWithCallsCanBeCancelled) {
  auto module = ir::ParseOrDie(LoopOf("double"));
  for (const char* where : {"CPU", "GPU"}) {
    auto program = LoadFor(*module, where, true);
    ASSERT_TRUE(program.ok());
    Execution execution(*program->loaded.artefact);
    execution.SetArguments({Floats({1})});
    const int32_t cancel = 1;
    runtime::RunOptions options;
    options.cancel = &cancel;
    EXPECT_EQ(
        program->loaded.executable->Run(execution.arguments(), execution.results(), options).code(),
        Code::kCancelled);
  }
  EXPECT_EQ(doubles_, 0);
}

TEST_F(Calls, InSessions) {
  auto module = ir::ParseOrDie(LoopOf("double"));
  auto failing = ir::ParseOrDie(LoopOf("fail"));
  auto in_place = ir::ParseOrDie(R"(ENTRY e {
  fed = f32[1] parameter(0)
  n = f32[1] negate(fed)
  ROOT fetched = f32[1] custom-call(n), custom_call_target="increment", output_to_operand_aliasing={{}: (0, {})}
})");
  auto client = MakeRef<client::Client>(client::ClientOptions{.threads = 2});
  ASSERT_TRUE(client::AddDevices(*client, {.mode = client::GpuMode::kEmulated}).ok());
  for (const auto& device : client->devices()) {
    if (device->name() != "CPU:0" && device->name() != "GPU:0") continue;
    device->runtime().set_call_host({&registry_, &Pool()});
    auto run = [&](const ir::Module& graph, float value) -> std::string {
      auto session = session::Session::Create(graph, *client, {.device = device.get()});
      if (!session.ok()) return session.status().ToString();
      std::vector<std::string> feeds = {"fed"}, fetches = {"fetched"};
      auto plan = (*session)->Prepare(feeds, fetches);
      if (!plan.ok()) return plan.status().ToString();
      EXPECT_TRUE((*plan)->single()->calls_users_functions());
      auto fed = client::CopyFromHost(*device, Shape(ElementType::kF32, {1}), &value);
      if (!fed.ok()) return fed.status().ToString();
      client::Buffer* in[] = {fed->get()};
      std::vector<Ref<client::Buffer>> out(1);
      Status status = (*plan)->Run({}, in, out);
      if (status.ok()) status = client::CopyToHost(*out[0], &value);
      return status.ok() ? Cat(value) : status.ToString();
    };
    EXPECT_EQ(run(*module, 1), "1024") << device->name();
    EXPECT_EQ(run(*failing, 0), "OUT_OF_RANGE: custom-call 'y' of fail: five is 5")
        << device->name();
    EXPECT_EQ(run(*in_place, 3), "-2") << device->name();
  }
}

// The library's own, between kernels and in loops.
TEST_F(Calls, TransformsAndDecompositionsInPrograms) {
  auto check = [&](const std::string& text) {
    auto module = ir::ParseOrDie(text);
    std::vector<Literal> arguments = testing::RandomArguments(*module, 7);
    auto expected = interp::Evaluate(*module, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Program& program : LoadEverywhere(*module)) {
      EXPECT_FALSE(program.loaded.executable->calls_users_functions());
      for (int run = 0; run < 2; ++run) {
        Execution execution(*program.loaded.artefact);
        execution.SetArguments(arguments);
        Status status = program.loaded.executable->Run(execution.arguments(), execution.results());
        ASSERT_TRUE(status.ok()) << program.where << status.ToString();
        EXPECT_EQ(testing::Difference(*expected, execution.Result(), 1e-4, 1e-4), "")
            << program.where;
      }
    }
  };
  check(R"(ENTRY e {
  x = f32[5,12,10] parameter(0)
  e = f32[5,12,10] negate(x)
  c = c64[5,12,6] fft(e), fft_type=RFFT, fft_length={12,10}
  f = c64[5,12,6] fft(c), fft_type=FFT, fft_length={5,12,6}
  g = c64[5,12,6] fft(f), fft_type=IFFT, fft_length={6}
  h = c64[5,12,6] fft(g), fft_type=IFFT, fft_length={12,6}
  ROOT y = f32[5,12,10] fft(h), fft_type=IRFFT, fft_length={12,10}
})");
  check(R"(
condition {
  s = (s32[], f32[3,8,8], f32[3,8,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[3,8,8], f32[3,8,2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[3,8,8] get-tuple-element(s), index=1
  b = f32[3,8,2] get-tuple-element(s), index=2
  at = f32[3,8,8] dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  r = s32[3,8,8] iota(), iota_dimension=1
  c = s32[3,8,8] iota(), iota_dimension=2
  eq = pred[3,8,8] compare(r, c), direction=EQ
  eye = f32[3,8,8] convert(eq)
  d = f32[3,8,8] add(at, eye)
  l = f32[3,8,8] cholesky(d), lower=true
  y = f32[3,8,2] triangular-solve(l, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
  z = f32[3,8,2] triangular-solve(l, y), left_side=true, lower=true, transpose_a=TRANSPOSE
  ROOT t = (s32[], f32[3,8,8], f32[3,8,2]) tuple(j, a, z)
}
ENTRY e {
  a = f32[3,8,8] parameter(0)
  b = f32[3,8,2] parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[3,8,8], f32[3,8,2]) tuple(zero, a, b)
  w = (s32[], f32[3,8,8], f32[3,8,2]) while(s), condition=condition, body=body
  ROOT y = f32[3,8,2] get-tuple-element(w), index=2
})");
}

}  // namespace
}  // namespace kiln
