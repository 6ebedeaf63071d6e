// Keys of compilations: what they depend on.

#include "compiler/cache_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/build_id.h"
#include "support/hlo.h"

namespace kiln::compiler {
namespace {

constexpr char kText[] =
    "HloModule m\nENTRY e { x = f32[8] parameter(0)\n ROOT y = f32[8] add(x, x) }";

target::Target SomeCpu() {
  target::Target t;
  t.kind = target::Kind::kCpu;
  t.cpu.triple = "x86_64-unknown-linux-gnu";
  t.cpu.features = {"avx2", "fma"};
  return t;
}

TEST(CacheKey, HasTheBuild) {
  ASSERT_FALSE(BuildId().empty());
  const std::string key = CacheKey(*ir::ParseOrDie(kText), SomeCpu(), {});
  EXPECT_NE(key.find(BuildId()), std::string::npos) << key;
  EXPECT_NE(key.find("avx2"), std::string::npos) << key;
}

TEST(CacheKey, DependsOnWhatChangesCode) {
  const auto module = ir::ParseOrDie(kText);
  std::set<std::string> keys = {CacheKey(*module, SomeCpu(), {})};
  const std::function<void(target::Target&, Options&)> changes[] = {
      [](target::Target& t, Options&) { t.cpu.features.pop_back(); },
      [](target::Target& t, Options&) { t.cpu.vector_bytes = 32; },
      [](target::Target& t, Options&) { t.cpu.l1_bytes = 1; },
      [](target::Target& t, Options&) { t.cpu.l2_bytes = 1; },
      [](target::Target& t, Options&) { t.cpu.l3_bytes = 1; },
      [](target::Target& t, Options&) { t.cpu.task_microseconds = 1; },
      [](target::Target& t, Options&) { t.cpu.vector_registers = 32; },
      [](target::Target& t, Options&) { t = *target::NvidiaGpu(80); },
      [](target::Target& t, Options&) { t = *target::NvidiaGpu(90); },
      [](target::Target& t, Options&) { t = *target::EmulatedGpu(80); },
      [](target::Target& t, Options&) {
        t = *target::NvidiaGpu(80);
        t.gpu.multiprocessors = 64;
      },
      [](target::Target& t, Options&) {
        t = *target::NvidiaGpu(80);
        t.gpu.shared_bytes_per_block = 99 << 10;
      },
      [](target::Target& t, Options&) {
        t = *target::NvidiaGpu(80);
        t.gpu.max_threads_per_block = 512;
      },
      [](target::Target&, Options& o) { o.disabled_passes = {"cse"}; },
      [](target::Target&, Options& o) {
        o.disabled_passes = {"cse", "dce"};
      },
      [](target::Target&, Options& o) { o.fuse = false; },
      [](target::Target&, Options& o) { o.optimization = codegen::Optimization::kFull; },
      [](target::Target&, Options& o) { o.optimization = codegen::Optimization::kQuick; },
      [](target::Target&, Options& o) { o.allow_tf32 = true; },
      [](target::Target&, Options& o) { o.allow_bf16 = true; },
      [](target::Target&, Options& o) { o.keep_subnormals = true; },
      [](target::Target&, Options& o) { o.frozen = {0}; },
  };
  for (const auto& change : changes) {
    target::Target target = SomeCpu();
    Options options;
    change(target, options);
    const std::string key = CacheKey(*module, target, options);
    EXPECT_TRUE(keys.insert(key).second) << key;
  }
}

TEST(CacheKey, DoesNotDependOnWhatIsTold) {
  const auto module = ir::ParseOrDie(kText);
  Options options;
  options.module_number = 7;
  options.verify = true;
  options.threads = 7;
  options.dump_literal_elements = 1;
  TraceSink trace;
  options.trace = &trace;
  EXPECT_EQ(CacheKey(*module, SomeCpu(), options), CacheKey(*module, SomeCpu(), {}));
}

TEST(CacheKey, OfLaunches) {
  const std::vector<program::Slice> one = {{program::AllocationId(0), 0, 8}};
  const std::vector<program::Slice> two = {{program::AllocationId(0), 0, 8},
                                           {program::AllocationId(1), 0, 16}};
  const std::set<std::string> keys = {CacheKeyOfLaunch("text", one, SomeCpu()),
                                      CacheKeyOfLaunch("text", two, SomeCpu()),
                                      CacheKeyOfLaunch("texts", one, SomeCpu()),
                                      CacheKeyOfLaunch("text", one, *target::NvidiaGpu(80))};
  EXPECT_EQ(keys.size(), 4u);
  // Where the arguments are has no part.
  const std::vector<program::Slice> moved = {{program::AllocationId(3), 64, 8}};
  EXPECT_EQ(CacheKeyOfLaunch("text", moved, SomeCpu()), CacheKeyOfLaunch("text", one, SomeCpu()));
}

}  // namespace
}  // namespace kiln::compiler
