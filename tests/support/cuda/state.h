// What the stand-in for the CUDA driver knows. One lock guards all of it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "device/cuda/api.h"
#include "device/cuda/cupti_api.h"

#define KILN_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace kiln::device::cuda {

struct Object {
  Object(const char* kind, ContextObject* context) : kind(kind), context(context) {}
  virtual ~Object() = default;
  const char* kind;
  ContextObject* context;  // that it ends with
  uint32_t number = 0;     // unlike any other's
};

struct ContextObject : Object {
  explicit ContextObject(DeviceHandle device) : Object("contexts", nullptr), device(device) {}
  DeviceHandle device;
  int retained = 0;
  Error lost = Error::kSuccess;
};

struct StreamObject : Object {
  explicit StreamObject(ContextObject* context) : Object("streams", context) {}
  int64_t work = 0, waits = 0;  // that it was asked for
};

struct EventState {
  int pending = 0;
  int64_t time = 0;
};

struct EventObject : Object {
  EventObject(ContextObject* context, bool timed) : Object("events", context), timed(timed) {}
  bool timed;
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

struct FunctionObject {
  ModuleObject* module = nullptr;
  std::string name;
  std::vector<std::pair<std::string, size_t>> parameters;  // names and sizes
  std::string body;                                        // of those that are interpreted
  int64_t most_shared_bytes = 48 << 10;
};

struct ModuleObject : Object {
  explicit ModuleObject(ContextObject* context) : Object("modules", context) {}
  std::map<std::string, FunctionObject> functions;
};

struct LinkObject : Object {
  explicit LinkObject(ContextObject* context) : Object("links", context) {}
  std::vector<JitOption> options;
  std::vector<void*> values;
  std::string ptx, cubin;
};

struct PoolObject : Object {
  PoolObject() : Object("pools", nullptr) {}
  ~PoolObject() override;
  uint64_t release_threshold = 0;
  int64_t reserved = 0, used = 0;
};

struct MemoryObject : Object {
  MemoryObject(const char* kind, ContextObject* context, int64_t bytes, PoolObject* pool);
  ~MemoryObject() override;
  int64_t bytes;
  PoolObject* pool;
  DeviceHandle device = 0;
  void* address;
  bool being_freed = false;
};

struct GraphNodeObject {
  enum class Kind { kLaunch, kCopy, kConditional };
  Kind kind = Kind::kLaunch;
  FunctionHandle function = nullptr;
  std::vector<DevicePointer> args;
  CopyNode copy;
  ConditionalNode conditional;
  std::vector<GraphHandle> bodies;
};

// A body belongs to a node of `parent`.
struct GraphObject : Object {
  explicit GraphObject(GraphObject* parent)
      : Object(parent == nullptr ? "graphs" : "bodies", nullptr), parent(parent) {}
  GraphObject* parent;
  std::vector<std::unique_ptr<GraphNodeObject>> nodes;
};

struct ExecNode {
  GraphNodeHandle of = nullptr;
  GraphNodeObject own;
  std::vector<std::vector<ExecNode>> bodies;
};

struct GraphExecObject : Object {
  explicit GraphExecObject(GraphObject* of) : Object("execs", nullptr), of(of) {}
  GraphObject* of;
  std::vector<ExecNode> nodes;
};

struct Conditional {
  GraphObject* graph = nullptr;
  bool has_node = false;
  unsigned value = 0;
};

struct Settings {
  int64_t driver_version = 12040, devices = 1, sm = 86, memory_bytes = int64_t{1} << 30, pools = 1;
  int64_t multiprocessors = 16, init_error = 0, deferred = 0, real_time = 0, drop_records = 0;
  int64_t body_updates = 1, launch_time = 1;
};

// What CUPTI tells of a piece of work.
struct Activity {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;
  int64_t bytes = 0;  // 0 for what is not told of
  uint32_t graph = 0, correlation = 0;
};

struct Work {
  StreamObject* stream;  // null: a default stream
  ContextObject* context;
  std::function<Error()> run;
  Activity activity;
};

// CUPTI: who listens, and the buffer that is being filled.
struct Profiler {
  ActivityBufferRequested requested = nullptr;
  ActivityBufferCompleted completed = nullptr;
  std::set<ActivityKind> kinds;
  std::set<std::string> names;  // of records that may be read at any time
  uint8_t* buffer = nullptr;
  size_t bytes = 0, filled = 0;
  int64_t records = 0;
};

class State {
 public:
  State();

  // The live object behind a handle, or null and a misuse.
  template <typename T>
  T* Check(T* handle) {
    if (handle != nullptr && live.count(handle) != 0) return handle;
    ++misuses;
    return nullptr;
  }
  template <typename T, typename... Args>
  T* Make(Args&&... args) {
    T* made = new T(std::forward<Args>(args)...);
    live.insert(made);
    made->number = ++last_number;
    return made;
  }
  void Delete(Object* object) {
    live.erase(object);
    delete object;
  }
  ContextObject* MakePrimary(DeviceHandle device);
  void EndContext(ContextObject* context);
  // With the bodies of its nodes, and their handles.
  void DeleteGraph(GraphObject* graph);
  int64_t CountLive(const std::string& kind) const;

  // Of the device's memory, all pools and what is outside them.
  int64_t UsedBytes() const { return plain_bytes + reserved_bytes; }
  // The allocation that holds all of [address, address + bytes), which is not being freed.
  MemoryObject* Holder(DevicePointer address, int64_t bytes);
  MemoryObject* At(DevicePointer address);
  // The pinned allocation that an address lies in.
  MemoryObject* PinnedHolder(const void* address);

  // Done at once, or when someone waits.
  void Enqueue(StreamObject* stream, std::function<Error()> run, Activity activity = {});
  // The clock of events, in nanoseconds.
  int64_t Time() const;
  void Tell(const Work& work, int64_t start, int64_t end);
  void CompleteBuffer();
  bool RunOne();
  void RunStream(StreamObject* stream, ContextObject* context);
  void RunAll();

  std::mutex mutex;
  Settings settings;
  bool initialised = false;
  std::unordered_set<Object*> live;
  std::map<DeviceHandle, ContextObject*> primaries;
  std::map<DevicePointer, MemoryObject*> memory;  // by first address
  int64_t plain_bytes = 0, reserved_bytes = 0;
  std::map<ConditionalHandle, Conditional> conditionals;
  ConditionalHandle next_conditional = 1;
  std::deque<Work> queue;
  Profiler profiler;
  uint32_t last_number = 0, last_call = 0;

  std::string fail_symbol;
  int64_t fail_first = 0, fail_times = 0;
  Error fail_error = Error::kSuccess, fail_work = Error::kSuccess;
  std::map<std::string, int64_t> calls;
  int64_t all_calls = 0, failing_calls = 0;
  int64_t launches = 0, copies = 0, misuses = 0, leaked = 0, depth = 0, time = 0;
};

State& TheState();
std::vector<ContextObject*>& ContextStack();  // the thread's
bool Configure(State& state, const std::string& text);
Activity LaunchActivity(const GraphNodeObject& node, uint32_t graph = 0);
Activity CopyActivity(size_t bytes, uint32_t graph = 0);
// What a kernel does.
Error RunLaunch(State& state, const GraphNodeObject& node);
// The same of a kernel that calls cudaGraphSetConditional, by its PTX.
Error InterpretKernel(State& state, const GraphNodeObject& node);
// Whether all is well with a copy within the device; done as work.
Error CopyWork(State& state, DevicePointer to, DevicePointer from, int64_t bytes);
Error ReadLaunch(State& state, FunctionHandle function, const unsigned* grid, const unsigned* block,
                 unsigned shared, void** parameters, GraphNodeObject* node);
// Null is the default stream, which has other names, too; false where it is none.
bool CheckStream(State& state, StreamHandle& stream);

// A call of the driver: counts it, and says what fails before it begins.
class Call {
 public:
  enum Needs { kNothing, kDriver, kContext, kAnyContext };
  Call(const char* symbol, Needs needs);
  State& state;
  Error error = Error::kSuccess;
  ContextObject* context = nullptr;

 private:
  std::lock_guard<std::mutex> lock_;
};

#define KILN_STANDIN_CALL(symbol, needs) \
  Call call(#symbol, Call::needs);       \
  if (call.error != Error::kSuccess) return call.error

#define KILN_STANDIN_DECLARE(member, symbol, ...) KILN_STANDIN_EXPORT Error symbol(__VA_ARGS__);
KILN_CUDA_FUNCTIONS(KILN_STANDIN_DECLARE)
KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_STANDIN_DECLARE)
#undef KILN_STANDIN_DECLARE

}  // namespace kiln::device::cuda
