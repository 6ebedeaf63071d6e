// Programs compiled ahead of time against the same programs in libkiln: bit for bit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aot/targets.h"
#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "kiln/types.h"
#include "random/module.h"
#include "rt/format.h"
#include "support/compiled.h"
#include "support/folder.h"
#include "support/hlo.h"
#include "support/literal.h"
#include "target/target.h"
#include "unit/aot/linked.h"

namespace kiln::aot {
namespace {

using testing::Execution;

constexpr std::string_view kFft = R"(HloModule fft
ENTRY e {
  x = c64[5,96] parameter(0)
  y = f32[7,120] parameter(1)
  a = c64[5,96] fft(x), fft_type=FFT, fft_length={96}
  b = c64[7,61] fft(y), fft_type=RFFT, fft_length={120}
  ROOT r = (c64[5,96], c64[7,61]) tuple(a, b)
})";

constexpr std::string_view kCholesky = R"(HloModule cholesky
ENTRY e {
  x = f32[3,40,40] parameter(0)
  xt = f32[3,40,40] transpose(x), dimensions={0,2,1}
  p = f32[3,40,40] dot(x, xt), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  i = s32[40,40] iota(), iota_dimension=0
  j = s32[40,40] iota(), iota_dimension=1
  d = pred[40,40] compare(i, j), direction=EQ
  f = f32[40,40] convert(d)
  fb = f32[3,40,40] broadcast(f), dimensions={1,2}
  s = f32[3,40,40] add(p, fb)
  ROOT l = f32[3,40,40] cholesky(s), lower=true
})";

constexpr std::string_view kSort = R"(HloModule sort
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER
}
ENTRY e {
  x = f32[9,5000] parameter(0)
  i = s32[9,5000] iota(), iota_dimension=1
  ROOT s = (f32[9,5000], s32[9,5000]) sort(x, i), dimensions={1}, is_stable=true, to_apply=less
})";

constexpr std::string_view kWhile = R"(HloModule loop
body {
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[64,64] get-tuple-element(t), index=1
  w = f32[64,64] get-tuple-element(t), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  p = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[64,64] tanh(p)
  ROOT r = (s32[], f32[64,64], f32[64,64]) tuple(n, q, w)
}
condition {
  t = (s32[], f32[64,64], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  k = s32[] constant(12)
  ROOT c = pred[] compare(i, k), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[64,64], f32[64,64]) tuple(z, x, w)
  ROOT r = (s32[], f32[64,64], f32[64,64]) while(t), condition=condition, body=body
})";

// Large enough for several threads.
constexpr std::string_view kParallel = R"(HloModule parallel
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[700,300] parameter(0)
  i = f32[300,500] iota(), iota_dimension=1
  c = f32[] constant(0.003)
  cb = f32[300,500] broadcast(c), dimensions={}
  w = f32[300,500] multiply(i, cb)
  d = f32[700,500] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[700,500] logistic(d)
  z = f32[] constant(0)
  ROOT r = f32[700] reduce(t, z), dimensions={1}, to_apply=add
})";

// A product with a constant that is packed once.
std::string Packed() {
  std::string weights;
  for (int i = 0; i < 256; ++i) {
    weights += i > 0 ? ", {" : "{";
    for (int k = 0; k < 256; ++k) weights += Cat(k > 0 ? ", " : "", (i * 7 + k * 3) % 11 - 5);
    weights += "}";
  }
  return Cat(R"(HloModule packed
ENTRY e {
  x = f32[64,256] parameter(0)
  w = f32[256,256] constant({)",
             weights, R"(})
  d = f32[64,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = f32[64,256] tanh(d)
})");
}

bool RunsHere(const target::Target& target) {
  return target::CheckRunsOn(target.ToString(), target::HostCpu()).ok();
}

// What the two ways of a program are compared with: libkiln's run of the same target.
class Compared {
 public:
  Compared(const ir::Module& module, const target::Target& target)
      : arguments_(testing::RandomArguments(module, 7)) {
    auto artefact = compiler::Compile(module.Clone(), target, {});
    EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
    artefact_ = *artefact;
    jit_ = std::make_unique<Execution>(artefact_);
    jit_->SetArguments(arguments_);
    auto loaded =
        device::CpuExecutable::Load(*std::move(artefact), Execution::allocator, testing::Pool());
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    const Status status = (*loaded)->Run(jit_->arguments(), jit_->results());
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  void ExpectSame(const LinkedProgram::Api& api, kiln_aot_instance* instance) {
    ASSERT_NE(instance, nullptr);
    EXPECT_EQ(api.target(instance), artefact_.program.target);
    for (int run = 0; run < 2; ++run) {
      Execution aot(artefact_);
      aot.SetArguments(arguments_);
      kiln_aot_error error{};
      ASSERT_EQ(api.run(instance, aot.arguments().data(), aot.results().data(), &error), 0)
          << error.text;
      EXPECT_TRUE(aot.SameBits(*jit_));
    }
  }

 private:
  const std::vector<Literal> arguments_;
  program::Artefact artefact_;
  std::unique_ptr<Execution> jit_;
};

// With and without threads.
void ExpectSameProgram(const LinkedProgram::Api& api, const kiln_aot_program& program,
                       Compared& compared) {
  for (int32_t threads : {1, 3}) {
    kiln_aot_pool* pool = threads > 1 ? api.pool_create(threads) : nullptr;
    kiln_aot_error error{};
    kiln_aot_instance* instance = api.create(&program, pool, &error);
    EXPECT_NE(instance, nullptr) << error.text;
    compared.ExpectSame(api, instance);
    api.destroy(instance);
    api.pool_destroy(pool);
  }
}

void ExpectSameBits(std::string_view text, const std::string& target_name) {
  SCOPED_TRACE(target_name);
  const auto module = ir::ParseOrDie(text);
  auto target = TargetByName(target_name);
  ASSERT_TRUE(target.ok()) << target.status().ToString();
  auto linked = LinkedProgram::Link(*module, {*target});
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const LinkedProgram::Api& api = (*linked)->api();
  if (!RunsHere(*target)) {
    kiln_aot_error error{};
    EXPECT_EQ(api.create(api.program, nullptr, &error), nullptr);
    EXPECT_NE(std::string_view(error.text).find("which this machine lacks"), std::string::npos);
    return;
  }
  Compared compared(*module, *target);
  ExpectSameProgram(api, *api.program, compared);
}

std::string Step() { return Contents(KILN_TEST_SOURCES "/docs/examples/digits_step.hlo"); }

TEST(AheadOfTime, DigitsStep) {
  for (const char* target : {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell"}) {
    ExpectSameBits(Step(), target);
  }
}
TEST(AheadOfTime, Fft) { ExpectSameBits(kFft, "native"); }
TEST(AheadOfTime, Cholesky) {
  ExpectSameBits(kCholesky, "native");
  ExpectSameBits(kCholesky, "x86-64-v3");
}
TEST(AheadOfTime, Sort) {
  ExpectSameBits(kSort, "native");
  ExpectSameBits(kSort, "x86-64-v2");
}
TEST(AheadOfTime, While) {
  ExpectSameBits(kWhile, "native");
  ExpectSameBits(kWhile, "x86-64-v2");
}
TEST(AheadOfTime, Parallel) {
  for (const char* target : {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    ExpectSameBits(kParallel, target);
  }
}

// As on machines that do not run the target's code: each instance packs its operands.
TEST(AheadOfTime, PackedByInstances) {
  const auto module = ir::ParseOrDie(Packed());
  const target::Target target = target::HostCpu();
  auto packed = LinkedProgram::Link(*module, {target});
  auto linked = LinkedProgram::Link(*module, {target}, "", false);
  ASSERT_TRUE(packed.ok() && linked.ok());
  Compared compared(*module, target);
  for (const auto& program : {&*packed, &*linked}) {
    const LinkedProgram::Api& api = (*program)->api();
    ExpectSameProgram(api, *api.program, compared);
  }
  EXPECT_GE((*linked)->api().program->memory_bytes,
            (*packed)->api().program->memory_bytes + 256 * 256 * int64_t{sizeof(float)});
}

// Programs of all kinds of ops in one library.
TEST(AheadOfTime, RandomPrograms) {
  const testing::Seeds seeds = testing::RandomSeeds(24);
  std::vector<std::unique_ptr<ir::Module>> modules;
  for (int i = 0; i < seeds.count; ++i) {
    const auto seed = static_cast<uint64_t>(seeds.first + i);
    modules.push_back(i % 3 == 2 ? testing::RandomModule(seed, testing::kRareTypesOptions)
                                 : testing::RandomModule(seed));
  }
  const target::Target target = target::HostCpu();
  auto linked = LinkedProgram::LinkAll(modules, {target});
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const LinkedProgram::Api& api = (*linked)->api();
  for (size_t i = 0; i < modules.size(); ++i) {
    SCOPED_TRACE(i);
    Compared compared(*modules[i], target);
    ExpectSameProgram(api, *api.programs[i], compared);
  }
}

TEST(AheadOfTime, MultiVersion) {
  for (const std::string& text : {std::string(kParallel), std::string(kWhile), Packed()}) {
    const auto module = ir::ParseOrDie(text);
    auto linked = LinkedProgram::Link(*module, X86Levels());
    ASSERT_TRUE(linked.ok()) << linked.status().ToString();
    const LinkedProgram::Api& api = (*linked)->api();
    const std::vector<target::Target> levels = X86Levels();
    ASSERT_EQ(api.program->code_count, 3);
    bool first = true;
    for (int32_t i = 0; i < 3; ++i) {
      if (!RunsHere(levels[static_cast<size_t>(i)])) continue;
      Compared compared(*module, levels[static_cast<size_t>(i)]);
      // The best that runs is chosen.
      if (std::exchange(first, false)) ExpectSameProgram(api, *api.program, compared);
      kiln_aot_program one = *api.program;
      one.codes += i;
      one.code_count = 1;
      ExpectSameProgram(api, one, compared);
    }
    EXPECT_FALSE(first);
  }
}

// The code of each level has vectors of its width, and no wider ones, on any machine.
TEST(AheadOfTime, LevelsOfCode) {
  const auto module = ir::ParseOrDie(Step());
  const std::vector<target::Target> levels = X86Levels();
  const std::vector<std::string_view> vectors = {"<16 x float>", "<8 x float>", "<4 x float>"};
  for (size_t i = 0; i < levels.size(); ++i) {
    std::string text;
    compiler::Options options;
    options.dump = [&](const std::string& name, std::string_view dumped) {
      if (name.ends_with("ir-no-opt.ll")) text = dumped;
    };
    ASSERT_TRUE(compiler::Compile(module->Clone(), levels[i], options).ok());
    EXPECT_NE(text.find(vectors[i]), std::string::npos) << levels[i].ToString();
    if (i > 0) {
      EXPECT_EQ(text.find(vectors[i - 1]), std::string::npos) << levels[i].ToString();
    }
  }
}

TEST(AheadOfTime, CustomCall) {
  const auto module = ir::ParseOrDie(R"(HloModule custom
ENTRY e {
  x = f32[2,3] parameter(0)
  y = f32[2,3] custom-call(x), custom_call_target="my.twice", backend_config="by=2"
  ROOT r = f32[2,3] negate(y)
})");
  auto linked = LinkedProgram::Link(*module, {target::HostCpu()}, R"(
#include <stdio.h>
#include <string.h>
int32_t my_twice(const kiln_aot_call* call, void* const* arrays, kiln_aot_error* error) {
  const float* from = arrays[0];
  float* to = arrays[1];
  if (call->operand_count != 1 || call->result_count != 1 || call->operands[0].rank != 2 ||
      call->operands[0].dims[1] != 3 || strcmp(call->attributes, "by=2") != 0) return 3;
  if (from[0] > 100) {
    snprintf(error->text, sizeof error->text, "%g is too large", from[0]);
    return 11;
  }
  for (int i = 0; i < 6; ++i) to[i] = 2 * from[i];
  return 0;
})");
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const LinkedProgram::Api& api = (*linked)->api();
  kiln_aot_error error{};
  // It needs no memory of its own.
  std::vector<std::byte> memory(static_cast<size_t>(api.program->memory_bytes) + 64);
  auto* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~63);
  kiln_aot_instance* instance = api.place(
      api.program, aligned, static_cast<size_t>(api.program->memory_bytes), nullptr, &error);
  ASSERT_NE(instance, nullptr) << error.text;
  alignas(64) float x[6] = {1, 2, 3, 4, 5, 6}, r[6];
  const void* arguments[] = {x};
  void* results[] = {r};
  ASSERT_EQ(api.run(instance, arguments, results, &error), 0) << error.text;
  EXPECT_EQ(r[5], -12);
  x[0] = 101;
  EXPECT_EQ(api.run(instance, arguments, results, &error), 11);
  EXPECT_EQ(error.code, 11);
  EXPECT_EQ(std::string_view(error.text), "custom-call 'y' of my.twice: 101 is too large");
  EXPECT_EQ(api.run(instance, arguments, results, nullptr), 11);
}

TEST(AheadOfTime, Refusals) {
  const auto module = ir::ParseOrDie(kParallel);
  auto linked = LinkedProgram::Link(*module, {target::HostCpu()});
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const LinkedProgram::Api& api = (*linked)->api();
  const auto bytes = static_cast<size_t>(api.program->memory_bytes);
  std::vector<std::byte> memory(bytes + 64);
  std::byte* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~63);
  kiln_aot_error error{};
  auto place = [&](const kiln_aot_program* program, void* at, size_t size) {
    error = {};
    kiln_aot_instance* instance = api.place(program, at, size, nullptr, &error);
    EXPECT_EQ(instance == nullptr, error.code != 0);
    return std::string(error.text);
  };
  EXPECT_EQ(place(api.program, nullptr, bytes), "kiln_aot_place: an argument is NULL");
  EXPECT_EQ(place(api.program, aligned + 1, bytes),
            "kiln_aot_place: the memory is not aligned to 64 bytes");
  EXPECT_EQ(place(api.program, aligned, bytes - 1),
            Cat("kiln_aot_place: 'parallel' needs ", bytes, " bytes of memory"));
  kiln_aot_program other = *api.program;
  other.version = 77;
  EXPECT_EQ(place(&other, aligned, bytes),
            "the program is of version 77, and the run time of version 2");
  other = *api.program;
  kiln_aot_code code = other.codes[0];
  code.features = ~uint64_t{0};
  other.codes = &code;
  EXPECT_NE(place(&other, aligned, bytes).find("neon"), std::string::npos);
  EXPECT_EQ(place(api.program, aligned, bytes), "");

  kiln_aot_instance* instance = api.place(api.program, aligned, bytes, nullptr, nullptr);
  std::vector<float> x(700 * 300 + 16);
  alignas(64) float r[700 + 16];
  auto run = [&](const void* argument, void* result) {
    error = {};
    const int32_t failed = api.run(instance, &argument, &result, &error);
    EXPECT_EQ(failed, error.code);
    return std::string(error.text);
  };
  EXPECT_EQ(run(nullptr, r), "argument 0 'x' is NULL");
  EXPECT_EQ(run(x.data(), r + 1), "result 0 is not aligned to 64 bytes");
  EXPECT_EQ(run(x.data(), nullptr), "result 0 is NULL");

  // What allocates is not placed.
  const auto fft = ir::ParseOrDie(kFft);
  auto with_call = LinkedProgram::Link(*fft, {target::HostCpu()});
  ASSERT_TRUE(with_call.ok()) << with_call.status().ToString();
  const LinkedProgram::Api& other_api = (*with_call)->api();
  EXPECT_EQ(other_api.place(other_api.program, aligned, size_t{1} << 40, nullptr, &error), nullptr);
  EXPECT_NE(std::string_view(error.text).find("needs memory of its own"), std::string::npos)
      << error.text;
}

TEST(AheadOfTime, Unsupported) {
  auto error = [](std::string_view text) {
    Options options;
    options.name = "p";
    options.targets = {target::HostCpu()};
    const auto built = Build(*ir::ParseOrDie(text), options);
    return built.ok() ? "OK" : built.status().ToString();
  };
  EXPECT_NE(error(R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] custom-call(x), custom_call_target="interpreter.probe", backend_config="a"
})")
                .find("have no interpreter.probe"),
            std::string::npos);
}

TEST(AheadOfTime, Targets) {
  EXPECT_EQ(TargetByName("native")->ToString(), target::HostCpu().ToString());
  EXPECT_EQ(TargetByName("x86-64-v2")->cpu.vector_bytes, 16);
  EXPECT_EQ(TargetByName("x86-64-v3")->cpu.vector_bytes, 32);
  EXPECT_TRUE(TargetByName("x86-64-v3")->cpu.has_fma);
  EXPECT_EQ(TargetByName("x86-64-v4")->cpu.vector_bytes, 64);
  EXPECT_TRUE(TargetByName("sapphirerapids")->cpu.Has("avx512bf16"));
  EXPECT_FALSE(TargetByName("skylake-avx512")->cpu.Has("avx512vnni"));
  EXPECT_TRUE(TargetByName("znver4")->cpu.Has("avx512vnni"));
  EXPECT_EQ(MachineOf(*TargetByName("aarch64")), Machine::kAArch64);
  for (const char* name : {"x86-64", "pentium4", "", "znver"}) {
    const Status status = TargetByName(name).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("x86-64-v3"), std::string::npos);
  }
}

// A token has no bytes, and needs no address.
TEST(AheadOfTime, Tokens) {
  const auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  t = token[] parameter(0)
  x = f32[] parameter(1)
  c = (f32[], token[]) custom-call(x, t), custom_call_target="speak", custom_call_has_side_effect=true
  y = f32[] get-tuple-element(c), index=0
  u = token[] get-tuple-element(c), index=1
  ROOT r = (token[], f32[]) tuple(u, y)
})");
  auto linked = LinkedProgram::Link(*module, {target::HostCpu()}, R"(
int32_t speak(const kiln_aot_call* call, void* const* arrays, kiln_aot_error* error) {
  (void)error;
  if (call->operand_count != 1 || call->result_count != 1) return 3;
  *(float*)arrays[1] = *(const float*)arrays[0] + (float)call->has_side_effect;
  return 0;
})");
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const LinkedProgram::Api& api = (*linked)->api();
  EXPECT_EQ(api.program->arguments[0].dtype, KILN_TOKEN);
  EXPECT_EQ(api.program->arguments[0].byte_size, 0);
  kiln_aot_error error{};
  kiln_aot_instance* instance = api.create(api.program, nullptr, &error);
  ASSERT_NE(instance, nullptr) << error.text;
  alignas(64) float x = 2, r = 0;
  const void* arguments[] = {nullptr, &x};
  void* results[] = {nullptr, &r};
  ASSERT_EQ(api.run(instance, arguments, results, &error), 0) << error.text;
  EXPECT_EQ(r, 3);
  api.destroy(instance);
}

// Names of arrays are names in C, and differ.
TEST(AheadOfTime, HeaderNames) {
  const auto module = ir::ParseOrDie(R"(HloModule m
ENTRY e {
  class = f32[2]{0} parameter(0)
  a.b = c64[3] parameter(1)
  a_b = bf16[1,2] parameter(2)
  result = pred[] parameter(3)
  error = s64[] parameter(4)
  ROOT r = (f32[2], c64[3], bf16[1,2], pred[], s64[]) tuple(class, a.b, a_b, result, error)
})");
  auto linked = LinkedProgram::Link(*module, {target::HostCpu()});
  ASSERT_TRUE(linked.ok()) << linked.status().ToString();
  const std::string& header = (*linked)->header();
  for (const char* expected :
       {"const float* _class,", "const kiln_aot_c64* a_b,", "const uint16_t* a_b_2,",
        "const uint8_t* result,", "const int64_t* error_2,", "float* result0,",
        "#define P_a_b_2_DIM1 2"}) {
    EXPECT_NE(header.find(expected), std::string::npos) << expected << "\nin\n" << header;
  }
  EXPECT_EQ((*linked)->api().program->arguments[1].name, std::string_view("a.b"));
}

}  // namespace
}  // namespace kiln::aot
