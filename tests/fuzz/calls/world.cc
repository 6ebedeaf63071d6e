#include "calls/world.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "base/strings.h"
#include "base/utf8.h"
#include "ops/op.h"
#include "support/literal.h"

namespace kiln::fuzz {
namespace {

constexpr kiln_dtype kTypes[] = {
    KILN_F32,        KILN_F32,        KILN_F32,      KILN_F32,     KILN_S32,    KILN_S32,
    KILN_PRED,       KILN_F64,        KILN_S64,      KILN_F16,     KILN_BF16,   KILN_U8,
    KILN_S8,         KILN_U32,        KILN_U16,      KILN_S16,     KILN_U64,    KILN_C64,
    KILN_C128,       KILN_F8E5M2,     KILN_F8E4M3FN, KILN_S4,      KILN_U4,     KILN_F8E4M3B11FNUZ,
    KILN_F8E5M2FNUZ, KILN_F8E4M3FNUZ, KILN_S2,       KILN_U2,      KILN_F8E4M3, KILN_F8E3M4,
    KILN_F4E2M1FN,   KILN_F8E8M0FNU,  KILN_F6E2M3FN, KILN_F6E3M2FN};
constexpr kiln_dtype kWrongTypes[] = {0, -1, KILN_TUPLE, 14, 31, 30, 66, 1000, INT32_MIN};

// Sets flags some time after they were asked for. They stay to the end of the process.
class Canceller {
 public:
  static const int32_t* FlagAfter(int64_t milliseconds) {
    static auto* canceller = new Canceller;
    std::lock_guard lock(canceller->mutex_);
    int32_t* flag = &canceller->flags_.emplace_back(milliseconds == 0 ? 1 : 0);
    if (milliseconds > 0) {
      canceller->due_.emplace(Clock::now() + std::chrono::milliseconds(milliseconds), flag);
      canceller->wake_.notify_one();
    }
    return flag;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Canceller() {
    std::thread([this] { Work(); }).detach();
  }
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (due_.empty()) {
        wake_.wait(lock);
      } else if (auto [time, flag] = *due_.begin(); Clock::now() < time) {
        wake_.wait_until(lock, time);
      } else {
        __atomic_store_n(flag, 1, __ATOMIC_RELAXED);
        due_.erase(due_.begin());
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<int32_t> flags_;
  std::multimap<Clock::time_point, int32_t*> due_;
};

}  // namespace

Log* shared_log = nullptr;

World::World(uint64_t seed, size_t thread) : random_(seed), thread_(thread) {}

World::~World() = default;

void World::BeginLine(std::string_view function, std::string_view arguments) {
  current_ = FunctionByName(function);
  ++shared_log->calls;
  ++shared_log->called[current_];
  AddLine(Cat(function, "(", arguments.substr(0, 2000), ")\n"));
}

void World::AddLine(std::string_view line) {
  Log::Thread& log = shared_log->threads[thread_];
  const size_t n = std::min(sizeof(log.text) - log.length, line.size());
  for (size_t i = 0; i < n; ++i) {
    const bool is_plain = (line[i] >= ' ' && line[i] <= '~') || line[i] == '\n';
    log.text[log.length + i] = is_plain ? line[i] : '?';
  }
  log.length += n;
}

void World::Succeeded() { ++shared_log->succeeded[current_]; }

void World::Found(std::string_view problem) {
  if (!shared_log->has_found.exchange(true)) {
    const std::string text = Cat(Functions()[current_].name, " of thread ", thread_, ": ", problem);
    const size_t n = std::min(sizeof(shared_log->problem) - 1, text.size());
    std::memcpy(shared_log->problem, text.data(), n);
    shared_log->problem[n] = 0;
  }
  _exit(kFinding);
}

bool World::Ok(kiln_error* error) {
  if (!error) {
    Succeeded();
    return true;
  }
  const kiln_code code = kiln_error_code(error);
  size_t length = 0;
  const char* message = kiln_error_message(error, &length);
  const std::string_view text(message, length);
  AddLine(Cat("  ", kiln_code_name(code), ": ", text.substr(0, 300), "\n"));
  if (code <= KILN_OK || code > KILN_DATA_LOSS) Found(Cat("the error's code is ", code));
  if (length == 0) Found(Cat("an error of code ", code, " has no message"));
  if (message[length] != 0) Found("no 0 stands behind the message");
  if (code == KILN_INTERNAL || text.find("unexpected exception") != text.npos) {
    Found(Cat("a mistake of the library's: ", text));
  }
  if (!IsUtf8(text)) Found(Cat("the message is not UTF-8: ", text));
  if (errors.size() < 20 && Chance(5)) {
    Add(errors, error);
  } else {
    kiln_error_release(error);
  }
  return false;
}

// --- Choices

kiln_dtype World::AnyType() {
  if (Chance(2)) return Pick(kWrongTypes);
  // Those at the front more often.
  return kTypes[Below(Chance(60) ? 8 : std::size(kTypes))];
}

int64_t World::WildNumber() {
  static constexpr int64_t kNumbers[] = {0,
                                         1,
                                         -1,
                                         2,
                                         3,
                                         -2,
                                         7,
                                         64,
                                         1000,
                                         int64_t{1} << 31,
                                         -(int64_t{1} << 31),
                                         (int64_t{1} << 31) - 1,
                                         int64_t{1} << 32,
                                         int64_t{1} << 40,
                                         (int64_t{1} << 62) - 1,
                                         -(int64_t{1} << 62),
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MIN + 1};
  return Chance(30) ? Between(-5, 20) : Pick(kNumbers);
}

std::string World::WildText() {
  switch (Below(9)) {
    case 0:
      return "";
    case 1:
      return std::string("a\0b", 3);
    case 2:
      return "\xff\xfe\xc0\x80";
    case 3:
      return std::string(20000, 'x');
    case 4:
      return "%s%n%d";
    case 5:
      return "\"quoted\" \\ \n\t\r}{";
    case 6:
      return "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
    case 7: {
      std::string text(1 + Below(30), ' ');
      for (char& c : text) c = static_cast<char>(random_());
      return text;
    }
    default:
      return Cat("name", Below(5));
  }
}

std::vector<int64_t> World::Dims(size_t most_rank) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 4, 5, 7, 8, 16, 17, 33, 0};
  std::vector<int64_t> dims(Below(most_rank + 1));
  for (int64_t& d : dims) d = kSizes[Below(Chance(70) ? 7 : std::size(kSizes))];
  return dims;
}

const int32_t* World::CancelFlag(int64_t milliseconds) {
  return Canceller::FlagAfter(milliseconds);
}

std::atomic<int>* World::Counter(int expected) {
  auto& counter = counters_.emplace_back(0, expected);
  return &counter.first;
}

void World::ExpectCount(std::atomic<int>* counter, int expected) {
  for (auto& [own, number] : counters_) {
    if (&own == counter) number = expected;
  }
}

Memory& World::Lend(kiln_dtype dtype, const std::vector<int64_t>& dims, size_t misalignment) {
  const Shape shape(static_cast<ElementType>(dtype), std::span<const int64_t>(dims));
  const Literal literal = SampleLiteral(shape, Seed());
  Memory& memory = memory_.emplace_back();
  const auto size = static_cast<size_t>(literal.byte_size());
  memory.bytes.resize(size + KILN_ALIGNMENT + misalignment);
  auto address = reinterpret_cast<uintptr_t>(memory.bytes.data());
  address = (address + KILN_ALIGNMENT - 1) / KILN_ALIGNMENT * KILN_ALIGNMENT + misalignment;
  memory.data = reinterpret_cast<std::byte*>(address);
  if (size > 0) std::memcpy(memory.data, literal.data(), size);
  return memory;
}

SizedCopy::SizedCopy(World& world, const void* options, size_t size) : struct_size_(size) {
  size_t allocated = size;
  if (world.Chance(8)) {
    if (world.Chance(40)) {
      struct_size_ = world.Below(sizeof(size_t));
    } else if (world.Chance(60)) {
      struct_size_ = allocated = sizeof(size_t) * (1 + world.Below(size / sizeof(size_t)));
    } else {
      struct_size_ = allocated = size + sizeof(size_t) * (1 + world.Below(4));
    }
  }
  bytes_ = std::make_unique<std::byte[]>(allocated);
  std::memcpy(bytes_.get(), options, std::min(size, allocated));
  std::memcpy(bytes_.get(), &struct_size_, sizeof(struct_size_));
  if (allocated > size && world.Chance(50))
    bytes_[size + world.Below(allocated - size)] = std::byte{1};
}

// --- The run

namespace {

bool IsSessionOnly(std::string_view function) {
  if (!function.starts_with("kiln_op_")) return false;
  std::string name = Cat("kiln.", function.substr(std::string_view("kiln_op_").size()));
  std::ranges::replace(name, '_', '-');
  const std::optional<Opcode> opcode = OpcodeByName(name);
  return opcode && HasTrait(*opcode, kSessionOnly);
}

}  // namespace

void World::Run(size_t calls) {
  const std::vector<Function>& functions = Functions();
  static const std::vector<size_t>* builders = [] {
    auto* list = new std::vector<size_t>;
    for (size_t i = 0; i < Functions().size(); ++i) {
      if (Functions()[i].build) list->push_back(i);
    }
    return list;
  }();
  static constexpr std::string_view kOften[] = {
      "kiln_graph_compile",       "kiln_executable_run", "kiln_executable_execute",
      "kiln_buffer_copy_host",    "kiln_session_run",    "kiln_graph_from_hlo_text",
      "kiln_buffer_copy_to_host", "kiln_buffer_release"};
  for (size_t i = 0; i < calls; ++i) {
    size_t chosen;
    if (Chance(45)) {
      chosen = (*builders)[Below(builders->size())];
      // A graph that has one of these is never compiled.
      if (IsSessionOnly(functions[chosen].name) && Chance(90)) continue;
    } else if (Chance(15)) {
      chosen = FunctionByName(Pick(kOften));
    } else {
      if (round_.empty()) {
        round_.resize(functions.size());
        for (size_t k = 0; k < round_.size(); ++k) round_[k] = k;
        std::shuffle(round_.begin(), round_.end(), random_);
      }
      chosen = round_.back();
      round_.pop_back();
    }
    const Function& function = functions[chosen];
    if (function.call) {
      function.call(*this);
    } else {
      std::shared_ptr<GraphState> graph = Chance(1) ? nullptr : Graph();
      BuildAtRandom(graph.get(), function);
    }
    Tidy();
  }
}

// Gives the oldest back of what there is too much of.
void World::Tidy() {
  auto tidy = [&](const char* release_name, auto& pool, size_t most, auto release) {
    while (pool.size() > most) {
      const size_t i = Below(pool.size() / 2);
      Begin(release_name, pool[i]->number);
      release(pool[i]->handle);
      Succeeded();
      pool.erase(pool.begin() + static_cast<int64_t>(i));
    }
  };
  tidy("kiln_graph_release", graphs, 30, kiln_graph_release);
  tidy("kiln_executable_release", executables, 20, kiln_executable_release);
  tidy("kiln_session_release", sessions, 8, kiln_session_release);
  tidy("kiln_function_release", functions, 8, kiln_function_release);
  tidy("kiln_event_release", events, 30, kiln_event_release);
  tidy("kiln_text_release", texts, 20, kiln_text_release);
  tidy("kiln_safetensors_release", files, 8, kiln_safetensors_release);
}

template <typename S>
void World::ReleaseAll(const char* kind, Pool<S>& pool, void (*release)(decltype(S::handle))) {
  std::shuffle(pool.begin(), pool.end(), random_);
  for (const auto& state : pool) {
    Begin(Cat("kiln_", kind, "_release"), Name(kind, state));
    release(state->handle);
    Succeeded();
  }
  pool.clear();
}

void World::ReleaseObjects() {
  std::vector<std::function<void()>> kinds{
      [&] { ReleaseAll("context", contexts, kiln_context_release); },
      [&] { ReleaseAll("device", devices, kiln_device_release); },
      [&] { ReleaseAll("graph", graphs, kiln_graph_release); },
      [&] { ReleaseAll("buffer", buffers, kiln_buffer_release); },
      [&] { ReleaseAll("executable", executables, kiln_executable_release); },
      [&] { ReleaseAll("session", sessions, kiln_session_release); },
      [&] { ReleaseAll("function", functions, kiln_function_release); },
      [&] { ReleaseAll("event", events, kiln_event_release); },
      [&] { ReleaseAll("error", errors, kiln_error_release); },
      [&] { ReleaseAll("text", texts, kiln_text_release); },
      [&] { ReleaseAll("trace", traces, kiln_trace_release); },
      [&] { ReleaseAll("run_metadata", metadata, kiln_run_metadata_release); },
      [&] { ReleaseAll("safetensors", files, kiln_safetensors_release); },
      [&] {
        for (auto [tensor, is_versioned] : tensors) ReleaseTensor(tensor, is_versioned);
        tensors.clear();
      }};
  std::shuffle(kinds.begin(), kinds.end(), random_);
  for (const auto& release : kinds) release();
}

void World::AwaitMemory() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (const auto& context : own_contexts) {
    // Queued executions may still hold buffers.
    int64_t live = 0;
    Begin("kiln_device_memory", Name("context", context), ", until nothing is live");
    while (true) {
      live = 0;
      for (size_t i = 0; i < context->devices.size(); ++i) {
        kiln_memory_info info = KILN_MEMORY_INFO_INIT;
        Expect(Ok(kiln_device_memory(context->devices[i], &info)), "no memory info");
        // A GPU keeps memory of the host's, through which it copies, as long as its context lives.
        const bool counts = !context->has_gpu || context->names[i].find("GPU") != std::string::npos;
        if (counts) live = std::max(live, info.live_bytes);
      }
      if (live == 0 || Clock::now() > end) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    Expect(live == 0, Cat("all has been given back, and ", live, " bytes are live"));
  }
  for (Memory& memory : memory_) {
    if (!memory.done) continue;
    Begin("kiln_event_wait", "of memory that has been lent");
    // The copy from it may have failed.
    (void)Ok(kiln_event_wait(memory.done, int64_t{60'000'000'000}));
    Expect(kiln_event_is_ready(memory.done) == 1, "lent memory is still in use");
    kiln_event_release(memory.done);
    memory.done = nullptr;
  }
}

void World::ReleaseContexts() {
  for (const auto& context : own_contexts) {
    Begin("kiln_context_release", Name("context", context));
    kiln_context_release(context->handle);
    Expect(context->log_ends == 1 && context->allocator_ends == 1,
           Cat("the destroy functions were called ", context->log_ends.load(), " and ",
               context->allocator_ends.load(), " times"));
    Expect(context->hook_bytes == 0,
           Cat(context->hook_bytes.load(), " bytes have not been given back to the allocator"));
  }
}

void World::CheckEnds() {
  for (const Memory& memory : memory_) {
    if (!memory.is_adopted) continue;
    Expect(memory.deleted == 1, Cat("a deleter was called ", memory.deleted.load(), " times"));
  }
  for (const auto& [counter, expected] : counters_) {
    Expect(counter == expected,
           Cat("a callback was called ", counter.load(), " times; expected ", expected));
  }
}

void World::Share(World& other) {
  is_alone = other.is_alone = false;
  auto share = [](auto& from, auto& to, auto retain) {
    for (const auto& state : from) {
      state->is_shared = true;
      retain(state->handle);
      to.push_back(state);
    }
  };
  share(other.own_contexts, contexts, kiln_context_retain);
  share(other.buffers, buffers, kiln_buffer_retain);
  share(other.executables, executables, kiln_executable_retain);
  share(other.sessions, sessions, kiln_session_retain);
  share(other.functions, functions, kiln_function_retain);
  share(other.events, events, kiln_event_retain);
  share(other.errors, errors, kiln_error_retain);
  share(other.texts, texts, kiln_text_retain);
  share(other.traces, traces, kiln_trace_retain);
  share(other.metadata, metadata, kiln_run_metadata_retain);
  share(other.files, files, kiln_safetensors_retain);
  next_number_ = 100000 * static_cast<int>(thread_);
}

}  // namespace kiln::fuzz
