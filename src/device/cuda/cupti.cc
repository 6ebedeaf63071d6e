#include "device/cuda/cupti.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "base/strings.h"
#include "base/trace.h"
#include "device/cuda/cupti_api.h"
#include "device/cuda/stream.h"

namespace kiln::device::cuda {
namespace {

constexpr size_t kBufferBytes = 128 << 10;
constexpr int kClockTries = 5;
constexpr ActivityKind kKinds[] = {ActivityKind::kConcurrentKernel, ActivityKind::kMemcpy,
                                   ActivityKind::kMemset};

struct Activity {
  uint32_t context = 0;
  GpuActivity what;  // with CUPTI's times
};

// Of all of the process. Never destroyed: CUPTI has threads of its own.
class Hub {
 public:
  struct Listener {
    uint32_t context = 0;
    std::vector<GpuActivity> heard;
  };

  static Hub& Get() {
    static Hub* hub = new Hub;
    return *hub;
  }

  // Null if unavailable.
  const CuptiFunctions* Begin(const std::string& library, int driver_version, Listener& listener,
                              ContextHandle context);
  void End(const CuptiFunctions& api, Listener& listener);
  std::vector<GpuActivity> Take(Listener& listener);

 private:
  const CuptiFunctions* Load(const std::string& library, int driver_version);
  const CuptiFunctions* LoadFile(const std::string& path, bool may_be_shared);
  static bool Enable(const CuptiFunctions& api);
  static void Disable(const CuptiFunctions& api);
  static void Requested(uint8_t** buffer, size_t* bytes, size_t* most_records);
  static void Completed(ContextHandle, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes);
  void Hear(const Activity& activity);

  // CUPTI is called without the other mutex, which its calls of ours take.
  std::mutex control_mutex_;
  std::map<std::string, const CuptiFunctions*> loaded_;
  std::atomic<const CuptiFunctions*> in_use_ = nullptr;

  std::mutex mutex_;
  std::vector<Listener*> listeners_;
};

// CUPTI may call back even without a subscriber: our code must not be unloaded.
void KeepThisLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&KeepThisLibrary), &info) != 0 && info.dli_fname != nullptr) {
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

const CuptiFunctions* Hub::LoadFile(const std::string& path, bool may_be_shared) {
  if (auto known = loaded_.find(path); known != loaded_.end()) return known->second;
  if (!may_be_shared) {
    if (void* theirs = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(theirs);
      return nullptr;
    }
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  CuptiFunctions api;
  bool has_all = true;
  auto find = [&](auto& function, const char* symbol) {
    function.call = reinterpret_cast<decltype(function.call)>(dlsym(handle, symbol));
    has_all = has_all && function.call != nullptr;
  };
#define KILN_CUPTI_FIND(member, symbol, ...) find(api.member, #symbol);
  KILN_CUPTI_FUNCTIONS(KILN_CUPTI_FIND)
#undef KILN_CUPTI_FIND
  uint32_t version = 0;
  if (!has_all || api.GetVersion.call(&version) != CuptiResult::kSuccess ||
      version < kLeastCuptiVersion || version >= kPastCuptiVersion) {
    dlclose(handle);
    return nullptr;
  }
  KeepThisLibrary();
  return loaded_[path] = new CuptiFunctions(api);
}

const CuptiFunctions* Hub::Load(const std::string& library, int driver_version) {
  if (!library.empty()) return LoadFile(library, true);
  // A version newer than the driver does not work.
  std::vector<std::string> names;
  if (driver_version >= 13000) names.push_back("libcupti.so.13");
  names.push_back("libcupti.so.12");
  names.push_back("libcupti.so");
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/"}) {
    for (const std::string& name : names) {
      if (const CuptiFunctions* api = LoadFile(Cat(folder, name), false)) return api;
    }
  }
  return nullptr;
}

bool Hub::Enable(const CuptiFunctions& api) {
  if (api.ActivityRegisterCallbacks.call(&Requested, &Completed) != CuptiResult::kSuccess) {
    return false;
  }
  for (ActivityKind kind : kKinds) {
    if (api.ActivityEnable.call(kind) == CuptiResult::kSuccess) continue;
    Disable(api);
    return false;
  }
  return true;
}

void Hub::Disable(const CuptiFunctions& api) {
  for (ActivityKind kind : kKinds) api.ActivityDisable.call(kind);
  api.ActivityFlushAll.call(kFlushForced);
}

const CuptiFunctions* Hub::Begin(const std::string& library, int driver_version, Listener& listener,
                                 ContextHandle context) {
  std::lock_guard control(control_mutex_);
  const CuptiFunctions* api = Load(library, driver_version);
  if (api == nullptr ||
      api->GetContextId.call(context, &listener.context) != CuptiResult::kSuccess) {
    return nullptr;
  }
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    is_first = listeners_.empty();
  }
  if (!is_first && in_use_.load() != api) return nullptr;
  if (is_first) {
    in_use_.store(api);
    if (!Enable(*api)) return nullptr;
  }
  std::lock_guard lock(mutex_);
  listeners_.push_back(&listener);
  return api;
}

void Hub::End(const CuptiFunctions& api, Listener& listener) {
  std::lock_guard control(control_mutex_);
  bool was_last = false;
  {
    std::lock_guard lock(mutex_);
    std::erase(listeners_, &listener);
    was_last = listeners_.empty();
  }
  if (was_last) Disable(api);
}

std::vector<GpuActivity> Hub::Take(Listener& listener) {
  std::lock_guard lock(mutex_);
  return std::exchange(listener.heard, {});
}

void Hub::Requested(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kActivityAlignment, kBufferBytes));
  // Without a buffer records are dropped.
  *bytes = *buffer != nullptr ? kBufferBytes : 0;
  *most_records = 0;
}

// The three kinds of records have these fields.
template <typename Record>
void ReadCommon(const Record& record, Activity* activity) {
  activity->context = record.context;
  activity->what.stream = record.stream;
  activity->what.call = record.correlation;
  activity->what.in_graph = record.graph != 0;
  activity->what.start_ns = static_cast<int64_t>(record.start);
  activity->what.end_ns = static_cast<int64_t>(record.end);
}

bool Read(const ActivityRecord* record, Activity* activity) {
  switch (record->kind) {
    case ActivityKind::kKernel:
    case ActivityKind::kConcurrentKernel: {
      const auto& kernel = *reinterpret_cast<const KernelRecord*>(record);
      ReadCommon(kernel, activity);
      activity->what.kind = GpuActivity::Kind::kKernel;
      activity->what.symbol = kernel.name != nullptr ? kernel.name : "";
      break;
    }
    case ActivityKind::kMemcpy: {
      const auto& copy = *reinterpret_cast<const CopyRecord*>(record);
      ReadCommon(copy, activity);
      activity->what.kind = GpuActivity::Kind::kCopy;
      activity->what.bytes = static_cast<int64_t>(copy.bytes);
      break;
    }
    case ActivityKind::kMemset: {
      const auto& fill = *reinterpret_cast<const FillRecord*>(record);
      ReadCommon(fill, activity);
      activity->what.kind = GpuActivity::Kind::kFill;
      activity->what.bytes = static_cast<int64_t>(fill.bytes);
      break;
    }
    default:
      return false;
  }
  // Times of 0 are missing times.
  return activity->what.start_ns > 0 && activity->what.end_ns >= activity->what.start_ns;
}

void Hub::Completed(ContextHandle, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  Hub& hub = Get();
  const CuptiFunctions& api = *hub.in_use_.load();
  ActivityRecord* record = nullptr;
  while (valid_bytes > 0 &&
         api.ActivityGetNextRecord.call(buffer, valid_bytes, &record) == CuptiResult::kSuccess) {
    try {
      Activity activity;
      if (Read(record, &activity)) hub.Hear(activity);
    } catch (const std::bad_alloc&) {
      // The record is lost: its events are used.
    }
  }
  std::free(buffer);
}

void Hub::Hear(const Activity& activity) {
  std::lock_guard lock(mutex_);
  for (Listener* listener : listeners_) {
    if (listener->context == activity.context) listener->heard.push_back(activity.what);
  }
}

class CuptiActivities : public GpuActivities {
 public:
  explicit CuptiActivities(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~CuptiActivities() override {
    if (api_ != nullptr) Hub::Get().End(*api_, listener_);
  }
  CuptiActivities(const CuptiActivities&) = delete;
  CuptiActivities& operator=(const CuptiActivities&) = delete;

  bool Begin(const std::string& library) {
    Context::Scope scope(*context_);
    if (!scope.ok()) return false;
    api_ = Hub::Get().Begin(library, context_->driver().version(), listener_, context_->handle());
    return api_ != nullptr && SetClock();
  }

  std::vector<GpuActivity> Take(bool all) override {
    api_->ActivityFlushAll.call(all ? kFlushForced : 0);
    std::vector<GpuActivity> taken = Hub::Get().Take(listener_);
    SetClock();
    for (GpuActivity& a : taken) {
      a.start_ns += offset_ns_;
      a.end_ns += offset_ns_;
    }
    return taken;
  }

  int64_t NumberOf(GpuStream& stream) override {
    uint32_t number = 0;
    const StreamHandle handle = static_cast<CudaStream&>(stream).handle();
    const CuptiResult result = api_->GetStreamIdEx.call(nullptr, handle, 0, &number);
    return result == CuptiResult::kSuccess ? int64_t{number} : -1;
  }

  int64_t error_ns() const override { return error_ns_; }

 private:
  // CUPTI's clock differs from ours: both are read close together.
  bool SetClock() {
    int64_t best = INT64_MAX;
    for (int i = 0; i < kClockTries; ++i) {
      uint64_t theirs = 0;
      const int64_t before = TraceSink::Now();
      if (api_->GetTimestamp.call(&theirs) != CuptiResult::kSuccess) continue;
      const int64_t behind = TraceSink::Now();
      if (behind - before >= best) continue;
      best = behind - before;
      offset_ns_ = before + best / 2 - static_cast<int64_t>(theirs);
      error_ns_ = best / 2 + 1;
    }
    return best != INT64_MAX;
  }

  std::shared_ptr<Context> context_;
  Hub::Listener listener_;
  const CuptiFunctions* api_ = nullptr;
  int64_t offset_ns_ = 0, error_ns_ = 0;
};

}  // namespace

std::unique_ptr<GpuActivities> Listen(std::shared_ptr<Context> context,
                                      const std::string& library) {
  if (library == "off") return nullptr;
  auto activities = std::make_unique<CuptiActivities>(std::move(context));
  if (!activities->Begin(library)) return nullptr;
  return activities;
}

}  // namespace kiln::device::cuda
