#include "clock.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace kiln::gpu_check {
namespace {

constexpr int kWarmUps = 3, kLeastSamples = 20, kMostSamples = 100, kMostRuns = 50;
constexpr double kSampleSeconds = 200e-6, kSeconds = 0.3;
// A GPU that was idle takes some time to get to its full speed.
constexpr double kWarmUpSeconds = 0.15;
// What the host takes at the most to ask for one run.
constexpr double kEnqueueSeconds = 15e-6;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Times TimesOf(std::vector<double> samples, int64_t runs) {
  std::sort(samples.begin(), samples.end());
  size_t middle = samples.size() / 2;
  double median =
      samples.size() % 2 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), runs};
}

// A pair of events on the driver's stream.
class Stopwatch {
 public:
  explicit Stopwatch(const Driver& driver) : driver_(driver) {}
  ~Stopwatch() {
    for (cuda::EventHandle event : events_) {
      if (event) driver_.api().EventDestroy.call(event);
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  Status Open() {
    const auto& create = driver_.api().EventCreate;
    for (cuda::EventHandle& event : events_) {
      KILN_RETURN_IF_ERROR(driver_.Check(create.call(&event, cuda::kEventDefault), create.name));
    }
    return OkStatus();
  }

  // Seconds of `runs` runs that begin so much later.
  Result<double> Time(const std::function<Status()>& enqueue, int runs, double pause) {
    KILN_RETURN_IF_ERROR(Pause(pause));
    KILN_RETURN_IF_ERROR(Record(events_[0]));
    for (int i = 0; i < runs; ++i) KILN_RETURN_IF_ERROR(enqueue());
    KILN_RETURN_IF_ERROR(Record(events_[1]));
    const auto& synchronise = driver_.api().StreamSynchronize;
    KILN_RETURN_IF_ERROR(driver_.Check(synchronise.call(driver_.stream()), synchronise.name));
    const auto& elapsed = driver_.api().EventElapsedTime;
    float milliseconds = 0;
    KILN_RETURN_IF_ERROR(
        driver_.Check(elapsed.call(&milliseconds, events_[0], events_[1]), elapsed.name));
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  // Should a call have to wait for the stream, nothing hangs: it goes on in any case.
  Status Pause(double seconds) {
    auto idle = [](void* data) {
      double end = Now() + *static_cast<double*>(data);
      while (Now() < end) continue;
    };
    pause_ = seconds;
    const auto& launch = driver_.api().LaunchHostFunc;
    return driver_.Check(launch.call(driver_.stream(), cuda::HostFunction{idle}, &pause_),
                         launch.name);
  }
  Status Record(cuda::EventHandle event) {
    const auto& record = driver_.api().EventRecord;
    return driver_.Check(record.call(event, driver_.stream()), record.name);
  }

  const Driver& driver_;
  cuda::EventHandle events_[2] = {};
  double pause_ = 0;
};

template <typename... Parameters>
Status Find(void* library, const char* symbol, cuda::Function<Parameters...>* function) {
  function->name = symbol;
  function->call = reinterpret_cast<cuda::Error (*)(Parameters...)>(dlsym(library, symbol));
  return function->call ? OkStatus() : NotFound("the CUDA driver has no ", symbol);
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::Open(const kiln_device* gpu) {
  int32_t type = 0, ordinal = 0;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_device_dlpack(gpu, &type, &ordinal)));
  const char* named = std::getenv("KILN_CUDA_LIBRARY");
  void* library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return NotFound(dlerror());
  std::unique_ptr<Driver> driver(new Driver);
#define KILN_FIND(member, symbol, ...) \
  KILN_RETURN_IF_ERROR(Find(library, #symbol, &driver->api_.member));
  KILN_CUDA_FUNCTIONS(KILN_FIND)
#undef KILN_FIND
  auto* get_version =
      reinterpret_cast<cuda::DriverGetVersionFunction>(dlsym(library, cuda::kDriverGetVersion));
  if (get_version) get_version(&driver->version_);
  KILN_RETURN_IF_ERROR(driver->Start(ordinal));
  return driver;
}

Status Driver::Start(int ordinal) {
  KILN_RETURN_IF_ERROR(Check(api_.Init.call(0), "cuInit"));
  KILN_RETURN_IF_ERROR(Check(api_.DeviceGet.call(&device_, ordinal), "cuDeviceGet"));
  char name[256] = "";
  KILN_RETURN_IF_ERROR(
      Check(api_.DeviceGetName.call(name, sizeof(name) - 1, device_), "cuDeviceGetName"));
  device_name_ = name;
  int major = 0, minor = 0;
  using Attribute = cuda::DeviceAttribute;
  const auto& ask = api_.DeviceGetAttribute;
  KILN_RETURN_IF_ERROR(
      Check(ask.call(&major, Attribute::kComputeCapabilityMajor, device_), ask.name));
  KILN_RETURN_IF_ERROR(
      Check(ask.call(&minor, Attribute::kComputeCapabilityMinor, device_), ask.name));
  architecture_ = 10 * major + minor;
  size_t bytes = 0;
  KILN_RETURN_IF_ERROR(Check(api_.DeviceTotalMem.call(&bytes, device_), "cuDeviceTotalMem"));
  memory_bytes_ = static_cast<int64_t>(bytes);
  cuda::ContextHandle context = nullptr;
  KILN_RETURN_IF_ERROR(
      Check(api_.PrimaryCtxRetain.call(&context, device_), "cuDevicePrimaryCtxRetain"));
  context_ = context;
  KILN_RETURN_IF_ERROR(Check(api_.CtxPushCurrent.call(context_), "cuCtxPushCurrent"));
  return Check(api_.StreamCreate.call(&stream_, cuda::kStreamNonBlocking), "cuStreamCreate");
}

Driver::~Driver() {
  if (stream_) api_.StreamDestroy.call(stream_);
  if (!context_) return;
  cuda::ContextHandle popped = nullptr;
  api_.CtxPopCurrent.call(&popped);
  api_.PrimaryCtxRelease.call(device_);
}

Status Driver::Check(cuda::Error error, const char* function) const {
  if (error == cuda::Error::kSuccess) return OkStatus();
  const char *name = nullptr, *text = nullptr;
  api_.GetErrorName.call(error, &name);
  api_.GetErrorString.call(error, &text);
  return Internal(function, ": ", name ? name : "error", " (", text ? text : "", ")");
}

Result<Times> MeasureOnGpu(const Driver& driver, const std::function<Status()>& enqueue) {
  Stopwatch watch(driver);
  KILN_RETURN_IF_ERROR(watch.Open());
  double once = 0;
  const double warm = Now() + kWarmUpSeconds;
  for (int i = 0; i < kWarmUps || Now() < warm; ++i) {
    KILN_ASSIGN_OR_RETURN(once, watch.Time(enqueue, 1, kEnqueueSeconds));
  }
  auto at_most = [&](double seconds, double each, int most) {
    return each > 0 ? static_cast<int>(std::min<double>(std::ceil(seconds / each), most)) : most;
  };
  const int runs = std::max(1, at_most(kSampleSeconds, once, kMostRuns));
  const int count = std::max(kLeastSamples, at_most(kSeconds, once * runs, kMostSamples));
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(double seconds, watch.Time(enqueue, runs, runs * kEnqueueSeconds));
    samples.push_back(seconds / runs);
  }
  return TimesOf(std::move(samples), int64_t{count} * runs);
}

Result<Times> MeasureNothing(const Driver& driver) {
  Stopwatch watch(driver);
  KILN_RETURN_IF_ERROR(watch.Open());
  std::vector<double> samples;
  for (int i = 0; i < kMostSamples; ++i) {
    KILN_ASSIGN_OR_RETURN(double seconds, watch.Time({}, 0, kEnqueueSeconds));
    samples.push_back(seconds);
  }
  return TimesOf(std::move(samples), kMostSamples);
}

Result<Times> MeasureOnHost(const std::function<Status()>& run) {
  constexpr int kSamples = 3;
  KILN_RETURN_IF_ERROR(run());
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    double start = Now();
    KILN_RETURN_IF_ERROR(run());
    samples.push_back(Now() - start);
  }
  return TimesOf(std::move(samples), kSamples);
}

}  // namespace kiln::gpu_check
