// Memory that runs out: the n-th allocation fails, for every n. Loading, preparing and running then
// return RESOURCE_EXHAUSTED, nothing leaks, and what comes later succeeds.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "client/devices.h"
#include "compiler/compiler.h"
#include "device/cpu/device.h"
#include "session/session.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln {
namespace {

// Hooks that count, and fail once or from some call on.
class Hooks {
 public:
  runtime::AllocatorHooks Get() {
    return {.allocate =
                [](void* self, size_t bytes, size_t alignment) {
                  return static_cast<Hooks*>(self)->Allocate(bytes, alignment);
                },
            .deallocate =
                [](void* self, void* memory, size_t bytes, size_t alignment) {
                  static_cast<Hooks*>(self)->Deallocate(memory, bytes, alignment);
                },
            .user_data = this};
  }
  // Call number n (from 1) fails, and so do all after it if `from_there_on`.
  void FailAt(int n, bool from_there_on) {
    calls_ = 0;
    fail_at_ = n;
    from_there_on_ = from_there_on;
  }
  int calls() const { return calls_; }
  int failures = 0;
  size_t live() const { return live_.size(); }

 private:
  void* Allocate(size_t bytes, size_t alignment) {
    std::lock_guard lock(mutex_);
    ++calls_;
    if (fail_at_ > 0 && (calls_ == fail_at_ || (from_there_on_ && calls_ > fail_at_))) {
      ++failures;
      return nullptr;
    }
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    live_[memory] = {bytes, alignment};
    return memory;
  }
  void Deallocate(void* memory, size_t bytes, size_t alignment) {
    std::lock_guard lock(mutex_);
    auto it = live_.find(memory);
    ASSERT_NE(it, live_.end()) << "memory that was not allocated, or twice";
    EXPECT_EQ(it->second, std::make_pair(bytes, alignment));
    live_.erase(it);
    std::free(memory);
  }

  std::mutex mutex_;
  std::map<void*, std::pair<size_t, size_t>> live_;
  int calls_ = 0, fail_at_ = 0;
  bool from_there_on_ = false;
};

std::string Numbers(int rows, int columns) {
  std::string text = "{";
  for (int r = 0; r < rows; ++r) {
    text += r ? ", {" : "{";
    for (int c = 0; c < columns; ++c) text += Cat(c ? "," : "", (r * 7 + c * 3) % 11 - 5);
    text += "}";
  }
  return text + "}";
}

// Constants, one of which is packed when the program is loaded, temporaries, and a loop.
std::string Text() {
  return Cat(R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
condition { s = (s32[], f32[200,128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT l = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[200,128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[200,128] get-tuple-element(s), index=1
  w = f32[128,128] constant()",
             Numbers(128, 128), R"()
  d = f32[200,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  t = f32[200,128] tanh(d)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[200,128]) tuple(j, t) }
ENTRY e { input = f32[200,128] parameter(0)
  w = f32[128,128] constant()",
             Numbers(128, 128), R"()
  d = f32[200,128] dot(input, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  zero = s32[] constant(0)
  s = (s32[], f32[200,128]) tuple(zero, d)
  l = (s32[], f32[200,128]) while(s), condition=condition, body=body
  y = f32[200,128] get-tuple-element(l), index=1
  p = f32[128,200] transpose(y), dimensions={1,0}
  products = f32[200,200] dot(y, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[] constant(0)
  sums = f32[200] reduce(products, f), dimensions={1}, to_apply=add
  ROOT o = (f32[200], f32[200,200]) tuple(sums, products) })");
}

struct Buffers {
  alignas(64) float x[200 * 128];
  alignas(64) float sums[200];
  alignas(64) float products[200 * 200];
  Buffers() {
    for (int i = 0; i < 200 * 128; ++i) x[i] = static_cast<float>(i % 23 - 11) / 64;
    Clear();
  }
  void Clear() {
    std::fill(std::begin(sums), std::end(sums), -1.0f);
    std::fill(std::begin(products), std::end(products), -1.0f);
  }
  bool operator==(const Buffers& o) const {
    return std::equal(std::begin(sums), std::end(sums), o.sums) &&
           std::equal(std::begin(products), std::end(products), o.products);
  }
};

Status RunOnce(runtime::LoadedExecutable& executable, Buffers& b) {
  const void* arguments[] = {b.x};
  void* results[] = {b.sums, b.products};
  b.Clear();
  return executable.Run(arguments, results, {});
}

std::shared_ptr<const program::Artefact> Compiled() {
  static std::shared_ptr<const program::Artefact> artefact = [] {
    auto made = compiler::Compile(ir::ParseOrDie(Text()), target::HostCpu(), {});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::make_shared<const program::Artefact>(*std::move(made));
  }();
  return artefact;
}

std::unique_ptr<Buffers> Expected() {
  runtime::Allocator allocator;
  runtime::ThreadPool pool(1);
  device::CpuDevice cpu("CPU:0", allocator, pool);
  auto executable = cpu.Load(*Compiled());
  EXPECT_TRUE(executable.ok());
  auto buffers = std::make_unique<Buffers>();
  EXPECT_TRUE(RunOnce(**executable, *buffers).ok());
  return buffers;
}

// Tries with failing call 1, 2, ...: `attempt` sets up and runs under failures, and returns the
// first status that is not OK; `recover` is what must succeed then, with memory again.
template <typename Attempt>
void FailEverywhere(Attempt attempt, int at_least) {
  for (bool from_there_on : {false, true}) {
    int n = 1;
    for (;; ++n) {
      Hooks hooks;
      {
        runtime::Allocator allocator(hooks.Get());
        runtime::ThreadPool pool(2);
        device::CpuDevice cpu("CPU:0", allocator, pool);
        hooks.FailAt(n, from_there_on);
        Status status = attempt(hooks, allocator, cpu);
        if (hooks.failures == 0) {
          EXPECT_EQ(status.ToString(), "OK");
        } else {
          EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
          EXPECT_NE(status.message().find("out of memory"), std::string_view::npos);
        }
        EXPECT_EQ(allocator.live_bytes(), 0) << "call " << n;
      }
      EXPECT_EQ(hooks.live(), 0u) << "call " << n;
      if (hooks.failures == 0) break;
    }
    EXPECT_GT(n, at_least) << "the program was to need more memory";
  }
}

TEST(Allocation, ExecutablesOutliveEveryFailure) {
  ASSERT_FALSE(Compiled()->program.prologue.empty());
  ASSERT_GT(Compiled()->program.arena_bytes, 0);
  std::unique_ptr<Buffers> expected = Expected();
  auto attempt = [&](Hooks& hooks, runtime::Allocator&, device::CpuDevice& cpu) -> Status {
    auto executable = cpu.Load(*Compiled());
    if (!executable.ok()) {
      // The device goes on without the failure.
      hooks.FailAt(0, false);
      auto later = cpu.Load(*Compiled());
      if (!later.ok()) {
        ADD_FAILURE() << later.status().ToString();
        return later.status();
      }
      Buffers b;
      EXPECT_TRUE(RunOnce(**later, b).ok());
      EXPECT_TRUE(b == *expected);
      return executable.status();
    }
    Buffers b;
    Status status = RunOnce(**executable, b);
    if (!status.ok()) {
      Buffers untouched;
      EXPECT_TRUE(b == untouched);
      hooks.FailAt(0, false);
    }
    Buffers later;
    EXPECT_TRUE(RunOnce(**executable, later).ok());
    EXPECT_TRUE(later == *expected);
    return status;
  };
  FailEverywhere(attempt, 3);
}

TEST(Allocation, SessionsOutliveEveryFailure) {
  std::unique_ptr<Buffers> expected = Expected();
  auto module = ir::ParseOrDie(Text());
  std::vector<std::string> inputs = {"input"};
  std::vector<std::string> fetches = {"sums", "products"};
  auto attempt = [&](Hooks& hooks, runtime::Allocator&, device::CpuDevice&) -> Status {
    auto client =
        MakeRef<client::Client>(client::ClientOptions{.threads = 2, .allocator = hooks.Get()});
    KILN_RETURN_IF_ERROR(client::AddDevices(*client, {.mode = client::GpuMode::kOff}));
    client::Device& cpu = *client->devices().front();
    auto session = session::Session::Create(*module, *client, {.device = &cpu});
    if (!session.ok()) return session.status();
    Status first;
    auto plan = (*session)->Prepare(inputs, fetches);
    if (!plan.ok()) {
      first = plan.status();
      hooks.FailAt(0, false);
      plan = (*session)->Prepare(inputs, fetches);
      if (!plan.ok()) {
        ADD_FAILURE() << plan.status().ToString();
        return first;
      }
    }
    Buffers b;
    auto wrap = [&](std::vector<int64_t> dims, float* data) {
      return client::Buffer::Wrap(cpu, Shape(ElementType::kF32, dims),
                                  reinterpret_cast<std::byte*>(data), nullptr);
    };
    Ref<client::Buffer> x = wrap({200, 128}, b.x);
    client::Buffer* feeds[] = {x.get()};
    std::vector<Ref<client::Buffer>> results = {wrap({200}, b.sums), wrap({200, 200}, b.products)};
    Status status = (*plan)->Run({}, feeds, results);
    if (!status.ok()) {
      first = status;
      hooks.FailAt(0, false);
      status = (*plan)->Run({}, feeds, results);
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
    for (int i = 0; i < 200; ++i) {
      EXPECT_NEAR(b.sums[i], expected->sums[i], 1e-3) << "sum " << i;
    }
    return first;
  };
  FailEverywhere(attempt, 3);
}

// Arenas are taken by eight threads at once, and every other one is refused.
TEST(Allocation, ThreadsFailAloneAndGiveBackWhatTheyHad) {
  std::unique_ptr<Buffers> expected = Expected();
  Hooks hooks;
  {
    runtime::Allocator allocator(hooks.Get());
    runtime::ThreadPool pool(1);
    device::CpuDevice cpu("CPU:0", allocator, pool);
    auto executable = cpu.Load(*Compiled());
    ASSERT_TRUE(executable.ok());
    // The arenas of three runs, and no more.
    hooks.FailAt(4, true);
    std::atomic<int> good{0}, exhausted{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        Buffers b;
        for (int i = 0; i < 40; ++i) {
          Status status = RunOnce(**executable, b);
          if (status.ok()) {
            ++(b == *expected ? good : wrong);
          } else {
            ++(status.code() == Code::kResourceExhausted ? exhausted : wrong);
          }
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GT(good.load(), 0);
    EXPECT_EQ(good.load() + exhausted.load(), 320);
    EXPECT_EQ(exhausted.load(), hooks.failures);
  }
  EXPECT_EQ(hooks.live(), 0u);
}

}  // namespace
}  // namespace kiln
