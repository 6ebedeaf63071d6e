// The objects that a thread of a sequence of calls has, and what is done before and after each
// call.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "calls/functions.h"
#include "calls/log.h"
#include "kiln/kiln.h"

namespace kiln::fuzz {

// Objects of the library, each with the numbers by which lines of the log name them. A pool has an
// entry for each reference that is held. What is shared by threads says so: the header gives such
// buffers to one thread at a time for writing.
template <typename T>
struct Object {
  T* handle = nullptr;
  int number = 0;
  std::atomic<bool> is_shared{false};
};
template <typename S>
using Pool = std::vector<std::shared_ptr<S>>;

struct ContextState : Object<kiln_context> {
  std::vector<kiln_device*> devices;  // borrowed
  std::vector<std::string> names;
  bool from_any_thread = false, has_hooks = false, has_gpu = false;
  // What callbacks have seen.
  std::atomic<int64_t> hook_bytes{0}, allocations{0};
  int64_t fail_each = 0;  // so many allocations, one fails
  std::atomic<int> allocator_ends{0}, log_ends{0}, in_log{0};
  std::mutex mutex;
  std::set<std::string> targets;  // of registered calls
};

struct DeviceState : Object<kiln_device> {
  std::shared_ptr<ContextState> context;
};

struct Value {
  kiln_value id = 0;
  kiln_dtype dtype = 0;  // KILN_TUPLE and KILN_TOKEN, too
  std::vector<int64_t> dims;
  size_t elements = 0;  // of a tuple
  bool is_static = false, is_token = false, has_shape = false;
  bool is_array() const { return has_shape && dtype != KILN_TUPLE && dtype != KILN_TOKEN; }
};

struct GraphState : Object<kiln_graph> {
  std::shared_ptr<ContextState> context;
  std::vector<Value> values;
  std::vector<std::pair<std::string, int64_t>> symbols;  // names and numbers
  bool is_broken = false, has_results = false;
  bool is_region = false;
  bool is_odd = false;     // with ops of several processes and queues, which are not compiled
  bool has_loops = false;  // which may have no end
};

// Memory that has been lent to the library.
struct Memory {
  std::vector<std::byte> bytes;
  std::byte* data = nullptr;  // at an alignment, in `bytes`
  std::atomic<int> deleted{0};
  bool is_adopted = false;
  kiln_event* done = nullptr;
};

struct BufferState : Object<kiln_buffer> {
  std::shared_ptr<ContextState> context;
  size_t device = 0;
  kiln_dtype dtype = 0;
  std::vector<int64_t> dims;
  bool is_donated = false;
};

struct ExecutableState : Object<kiln_executable> {
  std::shared_ptr<ContextState> context;
  size_t device = 0;
  bool has_loops = false, is_large = false;
};

struct SessionState : Object<kiln_session> {
  std::shared_ptr<ContextState> context;
  size_t device = 0;
  std::vector<Value> values;  // of its graph, as that was then
  std::vector<kiln_value> parameters;
  bool has_loops = false;
};

struct FunctionState : Object<kiln_function> {
  std::shared_ptr<ContextState> context;
  size_t device = 0;
  std::vector<Value> parameters;
  bool has_loops = false, is_large = false;
};

struct EventState : Object<kiln_event> {
  std::shared_ptr<ContextState> context;
  // Of memory that is lent, which may be held by this thread: it must not wait for ever.
  bool is_of_memory = false;
};

struct ErrorState : Object<kiln_error> {};
struct TextState : Object<kiln_text> {};
struct FileState : Object<kiln_safetensors> {};
struct TraceState : Object<kiln_trace> {
  std::shared_ptr<ContextState> context;
};
struct MetadataState : Object<kiln_run_metadata> {
  std::shared_ptr<ContextState> context;
};

// What an argument of a builder function is made of, by its parameter's name.
struct Content {
  int64_t number = 0;  // or a value
  double real = 0;
  std::vector<int64_t> numbers;  // or values, or bytes
  std::vector<const kiln_graph*> graphs;
  std::string text;
  bool is_null = false;
};
using Contents = std::map<std::string, Content, std::less<>>;

class World {
 public:
  World(uint64_t seed, size_t thread);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // So many calls.
  void Run(size_t calls);
  // Takes references to the objects of another thread's that threads may share.
  void Share(World& other);
  // Gives everything back but what it has made of contexts. Where all worlds of a sequence have
  // done so, devices have no live memory, and what has been lent comes back; then contexts go, and
  // all that was to be called has been called.
  void ReleaseObjects();
  void AwaitMemory();
  void ReleaseContexts();
  void CheckEnds();
  static void ReleaseTensor(void* tensor, bool is_versioned);

  // --- Choices
  size_t Below(size_t n) { return n > 0 ? random_() % n : 0; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<size_t>(high - low + 1)));
  }
  bool Chance(size_t percent) { return Below(100) < percent; }
  uint64_t Seed() { return random_(); }
  template <typename C>
  auto& Pick(C& list) {
    return list[Below(std::size(list))];
  }
  // One of the objects, or null: where there is none, and now and then.
  template <typename S>
  std::shared_ptr<S> PickOrNull(const Pool<S>& pool) {
    return pool.empty() || Chance(2) ? nullptr : pool[Below(pool.size())];
  }
  kiln_dtype AnyType();    // mostly one there is
  int64_t WildNumber();    // 0, negative, huge, ...
  std::string WildText();  // with NULs, not UTF-8, ...
  std::vector<int64_t> Dims(size_t most_rank = 4);

  // --- Calls. Begin says what is called, and with what, before it is called.
  template <typename... Parts>
  void Begin(std::string_view function, const Parts&... parts) {
    BeginLine(function, Cat(parts...));
  }
  // That the call did what it is for.
  void Succeeded();
  // Whether there is no error. An error must have a code and a message, and none may be a mistake
  // of the library's; it is given back or kept.
  bool Ok(kiln_error* error);
  // Reports what is wrong, and ends the process.
  [[noreturn]] void Found(std::string_view problem);
  void Expect(bool condition, std::string_view what) {
    if (!condition) Found(what);
  }

  // An output that a call which fails must not have touched.
  template <typename T>
  static T* Untouched() {
    return reinterpret_cast<T*>(uintptr_t{0x5a5a5a5a5a5a5a50});
  }
  // Whether the call succeeded and handed `handle` over, which is looked at after the call.
  template <typename T>
  bool Gave(kiln_error* error, T* const& handle) {
    const bool ok = Ok(error);
    if (ok) {
      Expect(handle && handle != Untouched<T>(), "success, and no object");
    } else {
      Expect(handle == Untouched<T>(), "failure, and an output is touched");
    }
    return ok;
  }
  template <typename S, typename T>
  std::shared_ptr<S> Add(Pool<S>& pool, T* handle) {
    auto state = std::make_shared<S>();
    state->handle = handle;
    state->number = next_number_++;
    pool.push_back(state);
    return state;
  }
  template <typename S>
  static std::string Name(const char* kind, const std::shared_ptr<S>& state) {
    return state ? Cat(kind, " #", state->number) : std::string("NULL");
  }

  // --- What there is
  std::shared_ptr<ContextState> Context();  // never null
  size_t Device(const ContextState& context);
  std::shared_ptr<ContextState> MakeContext();
  std::shared_ptr<GraphState> Graph();  // that can be built on; never null
  std::shared_ptr<GraphState> MakeGraph(const std::shared_ptr<ContextState>& context,
                                        std::string_view name);
  void AddSymbol(GraphState& graph, const std::string& name);
  // Reads the parameters and the result of a graph that was read.
  void Look(GraphState& graph);
  // A builder function on a graph: its value, which is then one of the graph's, or 0.
  kiln_value Build(GraphState* graph, const Function& function, const Contents& contents);
  kiln_value Build(GraphState& graph, std::string_view function, const Contents& contents);
  // The same with arguments that are mostly right, and sometimes wild.
  void BuildAtRandom(GraphState* graph, const Function& function);
  std::string HloText(const GraphState& graph);
  // Sets what a graph computes: some of its arrays.
  bool SetSomeResults(GraphState& graph);
  // Memory for the library to use, to the end of the sequence: random elements of a shape, and so
  // many bytes beside 64.
  Memory& Lend(kiln_dtype dtype, const std::vector<int64_t>& dims, size_t misalignment);
  // A flag that is set some time from now; 0 for at once, negative for never.
  const int32_t* CancelFlag(int64_t milliseconds);
  // A buffer of a shape on a device, of those that are there or a new one; null where it cannot be.
  std::shared_ptr<BufferState> Buffer(const std::shared_ptr<ContextState>& context, size_t device,
                                      kiln_dtype dtype, const std::vector<int64_t>& dims);
  // A folder for files, which goes with the process's parent.
  std::string Folder() const { return shared_log->folder; }
  void Keep(kiln_buffer* buffer, const std::shared_ptr<ContextState>& context, size_t device);
  // Counts calls of a callback; at the end it must have come to the number that is expected.
  std::atomic<int>* Counter(int expected);
  void ExpectCount(std::atomic<int>* counter, int expected);
  // To the end of the sequence.
  template <typename T>
  T* KeepForever(std::unique_ptr<T> object) {
    kept_.emplace_back(std::move(object));
    return static_cast<T*>(kept_.back().get());
  }

  std::vector<std::shared_ptr<ContextState>> own_contexts;  // of this world, to its end
  Pool<ContextState> contexts;                              // references beside those
  Pool<DeviceState> devices;
  Pool<GraphState> graphs;
  Pool<BufferState> buffers;
  Pool<ExecutableState> executables;
  Pool<SessionState> sessions;
  Pool<FunctionState> functions;
  Pool<EventState> events;
  Pool<ErrorState> errors;
  Pool<TextState> texts;
  Pool<TraceState> traces;
  Pool<MetadataState> metadata;
  Pool<FileState> files;
  std::vector<std::pair<void*, bool>> tensors;  // of DLPack, and whether they have a version
  bool is_alone = true;                         // no other thread has a world

 private:
  void BeginLine(std::string_view function, std::string_view arguments);
  void AddLine(std::string_view line);
  void Tidy();
  template <typename S>
  void ReleaseAll(const char* kind, Pool<S>& pool, void (*release)(decltype(S::handle)));

  std::mt19937_64 random_;
  const size_t thread_;
  size_t current_ = 0;  // the function that is called
  int next_number_ = 0;
  std::vector<size_t> round_;  // functions that are to be called before any comes again
  std::deque<Memory> memory_;
  std::deque<std::pair<std::atomic<int>, int>> counters_;  // and what they must come to
  std::vector<std::shared_ptr<void>> kept_;
};

// Options as callers of other versions have them: a copy of `options` in memory of exactly its
// size, which may be less than this version's, more, or none that can be.
class SizedCopy {
 public:
  template <typename T>
  SizedCopy(World& world, const T& options) : SizedCopy(world, &options, sizeof(T)) {}
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(bytes_.get());
  }
  // "struct_size 48"
  std::string ToString() const { return Cat("struct_size ", struct_size_); }

 private:
  SizedCopy(World& world, const void* options, size_t size);
  std::unique_ptr<std::byte[]> bytes_;
  size_t struct_size_;
};

}  // namespace kiln::fuzz
