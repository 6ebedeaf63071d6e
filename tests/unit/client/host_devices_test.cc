// Several devices of one host: their shares of the threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "client/compile.h"
#include "client/devices.h"
#include "client/execution.h"
#include "client/transfer.h"
#include "runtime/host.h"
#include "support/hlo.h"

namespace kiln::client {
namespace {

Ref<Client> MakeClient(int threads, int cpu_devices) {
  auto client = MakeRef<Client>(ClientOptions{.threads = threads, .cpu_devices = cpu_devices});
  EXPECT_TRUE(AddDevices(*client, {.mode = GpuMode::kOff}).ok());
  return client;
}

Device& FindDevice(Client& client, std::string_view name) {
  for (const auto& device : client.devices()) {
    if (device->name() == name) return *device;
  }
  ADD_FAILURE() << "no device " << name;
  return *client.devices().front();
}

std::vector<int> SharesOf(Client& client) {
  std::vector<int> shares;
  for (int i = 0; i < client.cpu_devices(); ++i) shares.push_back(client.pool(i).threads());
  return shares;
}

TEST(ClientHostDevices, DivideTheThreadsEqually) {
  using Shares = std::vector<int>;
  EXPECT_EQ(SharesOf(*MakeClient(8, 1)), Shares{8});
  EXPECT_EQ(SharesOf(*MakeClient(8, 2)), (Shares{4, 4}));
  EXPECT_EQ(SharesOf(*MakeClient(7, 3)), (Shares{3, 2, 2}));
  EXPECT_EQ(SharesOf(*MakeClient(2, 3)), (Shares{1, 1, 1}));
  EXPECT_EQ(SharesOf(*MakeClient(1, 4)), (Shares{1, 1, 1, 1}));
}

TEST(ClientHostDevices, NumbersOfDevicesAreChecked) {
  for (int right : {1, 3, kMostCpuDevices}) {
    Result<int> number = CpuDevicesOf(right);
    EXPECT_TRUE(number.ok() && *number == right) << right;
  }
  for (int wrong : {-1, kMostCpuDevices + 1}) {
    EXPECT_EQ(CpuDevicesOf(wrong).status().code(), Code::kInvalidArgument);
  }
}

// A place where tasks wait for each other.
class Meeting {
 public:
  explicit Meeting(int expected) : expected_(expected) {}

  // Whether all came within a minute.
  bool Attend() {
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    if (++arrived_ == expected_) wake_.notify_all();
    return wake_.wait_for(lock, std::chrono::minutes(1), [&] { return arrived_ >= expected_; });
  }
  size_t threads() const { return threads_.size(); }

 private:
  const int expected_;
  int arrived_ = 0;
  std::set<std::thread::id> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
};

// The tasks of all devices meet: each has threads of its own, as many as its share.
TEST(ClientHostDevices, PoolsWorkAtTheSameTime) {
  Ref<Client> client = MakeClient(7, 3);
  struct Run {
    Meeting meeting{7};
    std::atomic<int> met{0};
  } run;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&, i] {
      runtime::ThreadPool& pool = client->pool(i);
      pool.Run(
          pool.threads(),
          [](void* context, int64_t) {
            auto& shared = *static_cast<Run*>(context);
            if (shared.meeting.Attend()) ++shared.met;
          },
          &run);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(run.met, 7);
  EXPECT_EQ(run.meeting.threads(), 7u);
}

// What a function called by programs was told.
struct Told {
  int threads = 0;
  runtime::ThreadPool* pool = nullptr;
};

class TellFunction : public runtime::lib::Function {
 public:
  explicit TellFunction(Told& told) : told_(told) {}
  Status Run(const kiln_frame* frame, void* const* args) const override {
    told_ = {frame->threads, static_cast<runtime::HostRun*>(frame->host)->pool};
    *static_cast<float*>(args[1]) = *static_cast<const float*>(args[0]);
    return OkStatus();
  }

 private:
  Told& told_;
};

class Teller {
 public:
  explicit Teller(Client& client) {
    runtime::CustomCallRegistry::Maker make = [this](const CallSignature&) {
      return Result<std::shared_ptr<const runtime::lib::Function>>(
          std::make_shared<TellFunction>(told_));
    };
    EXPECT_TRUE(client.RegisterCustomCall("tell", make).ok());
  }

  Told Run(Device& device, std::string_view text, int threads) {
    told_ = {};
    auto executable = Compile(device, ir::ParseOrDie(text), {});
    EXPECT_TRUE(executable.ok()) << executable.status().ToString();
    if (!executable.ok()) return {};
    const float data = 5;
    auto argument = CopyFromHost(device, Shape(ElementType::kF32, {}), &data);
    EXPECT_TRUE(argument.ok());
    Buffer* arguments[] = {argument->get()};
    Buffer* results[] = {nullptr};
    Execution run(Ref<const Executable>::Share(executable->get()));
    run.set_options({.threads = threads});
    const Status bound = run.Bind(arguments, results);
    EXPECT_TRUE(bound.ok()) << bound.ToString();
    EXPECT_TRUE(run.RunNow().ok());
    return told_;
  }

 private:
  Told told_;
};

constexpr std::string_view kTell = R"(HloModule m
ENTRY e { x = f32[] parameter(0)
  ROOT y = f32[] custom-call(x), custom_call_target="tell" })";

// The same in a grid, which the evaluator runs inside of compiled code.
constexpr std::string_view kTellInGrid = R"(HloModule m
one { x = f32[] parameter(0)
  ROOT y = f32[] custom-call(x), custom_call_target="tell" }
ENTRY e { x = f32[] parameter(0)
  ROOT g = f32[] custom-call(x), custom_call_target="interpreter.run_parallel",
      custom_call_has_side_effect=true, called_computations={one},
      backend_config="replicas=1 partitions=1 infeed=0" })";

TEST(ClientHostDevices, ProgramsHaveTheShareOfTheirDevice) {
  Ref<Client> client = MakeClient(5, 2);
  Teller teller(*client);
  for (const auto& [name, cpu_device] :
       {std::pair{"CPU:0", 0}, {"CPU:1", 1}, {"XLA_CPU:0", 0}, {"XLA_CPU:1", 1}}) {
    Device& device = FindDevice(*client, name);
    runtime::ThreadPool& share = client->pool(cpu_device);
    EXPECT_EQ(&device.pool(), &share);
    for (int asked : {0, 1, 2, 1000}) {
      Told told = teller.Run(device, kTell, asked);
      EXPECT_EQ(told.pool, &share) << name;
      EXPECT_EQ(told.threads, asked == 0 ? share.threads() : std::min(asked, share.threads()))
          << name << ", asked for " << asked;
    }
    EXPECT_EQ(teller.Run(device, kTellInGrid, 0).pool, &share) << name;
  }
  EXPECT_EQ(teller.Run(FindDevice(*client, "REFERENCE:0"), kTell, 0).pool, &client->pool(0));
}

// As without the option.
TEST(ClientHostDevices, OneDeviceHasAllThreads) {
  Ref<Client> client = MakeClient(3, 1);
  Teller teller(*client);
  EXPECT_EQ(client->devices().size(), 3u);
  for (const auto& device : client->devices()) {
    EXPECT_EQ(&device->pool(), &client->pool(0));
    EXPECT_EQ(teller.Run(*device, kTell, 0).threads, 3) << device->name();
  }
}

}  // namespace
}  // namespace kiln::client
