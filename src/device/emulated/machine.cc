#include "device/emulated/machine.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/strings.h"
#include "device/emulated/stream.h"

namespace kiln::device {
namespace {

constexpr int64_t kAlignment = 256;
// Uninitialised memory is recognisable: about -3e-16 as floats, large as integers.
constexpr int kPoison = 0xa5;

}  // namespace

EmulatedMachine::EmulatedMachine(const target::Target& target, runtime::ThreadPool& pool,
                                 runtime::Allocator& allocator, const Options& options)
    : GpuMachine(target, Cat("emulated GPU, sm_", target.gpu.sm)),
      allocator_(allocator),
      options_(options),
      emulator_(pool, options.emulator) {}

Result<std::unique_ptr<EmulatedMachine>> EmulatedMachine::Create(const target::Target& target,
                                                                 runtime::ThreadPool& pool,
                                                                 runtime::Allocator& allocator,
                                                                 const Options& options) {
  if (target.kind != target::Kind::kGpu || !target.gpu.emulated) {
    return InvalidArgument("no target of an emulated GPU: ", target);
  }
  return std::unique_ptr<EmulatedMachine>(new EmulatedMachine(target, pool, allocator, options));
}

Result<std::unique_ptr<EmulatedMachine>> EmulatedMachine::Create(const target::Target& target,
                                                                 runtime::ThreadPool& pool,
                                                                 runtime::Allocator& allocator) {
  return Create(target, pool, allocator, Options());
}

EmulatedMachine::~EmulatedMachine() {
  FinishAll();
  while (!memory_.empty()) Release(memory_.begin()->first);
  for (auto& [address, a] : pinned_) allocator_.Deallocate(a.memory, a.held);
}

void EmulatedMachine::FinishAll() {
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  for (const auto& weak : streams_) {
    if (auto stream = weak.lock()) stream->Finish(stream->end());
  }
}

// The allocator's memory is aligned to less.
Result<std::byte*> EmulatedMachine::Take(int64_t bytes, std::map<std::byte*, Allocation>& from) {
  constexpr auto kSlack = kAlignment - static_cast<int64_t>(runtime::Allocator::kAlignment);
  Allocation a;
  a.bytes = std::max<int64_t>(bytes, 1);
  a.held = a.bytes + kSlack;
  KILN_ASSIGN_OR_RETURN(a.memory, allocator_.Allocate(a.held));
  std::byte* address = a.memory + (-reinterpret_cast<uintptr_t>(a.memory) & (kAlignment - 1));
  std::memset(address, kPoison, static_cast<size_t>(a.bytes));
  from.emplace(address, a);
  return address;
}

Result<std::byte*> EmulatedMachine::Allocate(int64_t bytes, GpuStream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t wanted = std::max<int64_t>(bytes, 1);
  // Memory freed by pending work is available.
  if (wanted > options_.memory_bytes - used_bytes_) FinishAll();
  if (wanted > options_.memory_bytes - used_bytes_) {
    return ResourceExhausted("out of memory of the emulated GPU: ", bytes, " bytes asked for, ",
                             used_bytes_, " of ", options_.memory_bytes, " bytes in use");
  }
  KILN_ASSIGN_OR_RETURN(std::byte * address, Take(bytes, memory_));
  used_bytes_ += wanted;
  return address;
}

void EmulatedMachine::Free(std::byte* memory, int64_t bytes, GpuStream& stream) noexcept {
  if (!memory) return;
  std::lock_guard<std::mutex> lock(mutex_);
  EmulatedStreamState& state = *static_cast<EmulatedStream&>(stream).state_;
  try {
    state.Add(EmulatedFree{memory});
  } catch (const std::bad_alloc&) {
    // No memory to note it for later.
    state.Finish(state.end());
    if (memory_.count(memory)) Release(memory);
  }
}

void EmulatedMachine::Release(std::byte* address) {
  auto found = memory_.find(address);
  used_bytes_ -= found->second.bytes;
  allocator_.Deallocate(found->second.memory, found->second.held);
  memory_.erase(found);
}

Result<GpuMemory> EmulatedMachine::Memory() {
  std::lock_guard<std::mutex> lock(mutex_);
  return GpuMemory{options_.memory_bytes, options_.memory_bytes - used_bytes_};
}

Status EmulatedMachine::Register(std::byte* memory, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  registered_.emplace(memory, bytes);
  return OkStatus();
}

void EmulatedMachine::Unregister(std::byte* memory, int64_t bytes) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  auto [first, last] = registered_.equal_range(memory);
  auto found = std::find_if(first, last, [&](const auto& r) { return r.second == bytes; });
  if (found != last) registered_.erase(found);
}

// There are few of them.
bool EmulatedMachine::IsRegistered(const std::byte* address, int64_t bytes) const {
  return std::any_of(registered_.begin(), registered_.end(), [&](const auto& r) {
    return address >= r.first && address - r.first <= r.second &&
           bytes <= r.second - (address - r.first);
  });
}

Result<std::byte*> EmulatedMachine::AllocatePinned(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  return Take(bytes, pinned_);
}

void EmulatedMachine::FreePinned(std::byte* memory, int64_t) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = pinned_.find(memory);
  if (found == pinned_.end()) return;
  allocator_.Deallocate(found->second.memory, found->second.held);
  pinned_.erase(found);
}

Status EmulatedMachine::CheckInside(const std::byte* address, int64_t bytes,
                                    const std::string& what) const {
  if (bytes == 0 || (bytes > 0 && IsRegistered(address, bytes))) return OkStatus();
  auto next = memory_.upper_bound(const_cast<std::byte*>(address));
  if (next != memory_.begin()) {
    const auto& [begin, a] = *std::prev(next);
    if (bytes > 0 && address - begin <= a.bytes && bytes <= a.bytes - (address - begin)) {
      return OkStatus();
    }
    if (address - begin < a.bytes) {
      return Internal(what, ": ", bytes, " bytes at offset ", address - begin,
                      " of an allocation of ", a.bytes, " bytes");
    }
  }
  return Internal(what, ": ", bytes, " bytes that are not allocated on the emulated GPU");
}

Status EmulatedMachine::CheckLaunch(const GpuKernel& kernel, const GpuGrid& grid,
                                    std::span<const GpuSpan> args) const {
  const EmulatedKernel& k = *static_cast<const EmulatedGpuKernel&>(kernel).kernel;
  const target::Gpu& gpu = target().gpu;
  if (grid.blocks < 1 || grid.blocks > 0x7fffffff || grid.threads < 1 ||
      grid.threads > gpu.max_threads_per_block || grid.threads % gpu.warp_size != 0 ||
      grid.shared_bytes < 0 || grid.shared_bytes > gpu.shared_bytes_per_block) {
    return InvalidArgument("kernel ", k.name, ": the GPU does not launch ", grid.blocks,
                           " blocks of ", grid.threads, " threads with ", grid.shared_bytes,
                           " bytes of shared memory; it has ", gpu.shared_bytes_per_block);
  }
  if (static_cast<size_t>(k.info.parameters) != args.size()) {
    return InvalidArgument("kernel ", k.name, " has ", k.info.parameters, " parameters, but ",
                           args.size(), " were given");
  }
  return OkStatus();
}

Result<std::unique_ptr<GpuStream>> EmulatedMachine::MakeStream() {
  std::lock_guard<std::mutex> lock(mutex_);
  auto state = std::make_shared<EmulatedStreamState>(*this);
  std::erase_if(streams_, [](const auto& stream) { return stream.expired(); });
  streams_.push_back(state);
  return std::unique_ptr<GpuStream>(std::make_unique<EmulatedStream>(*this, std::move(state)));
}

Result<std::unique_ptr<GpuStream>> EmulatedMachine::WrapStream(void*) {
  return Unimplemented("the emulated GPU has no streams but its own");
}

Result<std::unique_ptr<GpuEvent>> EmulatedMachine::MakeEvent() {
  return std::unique_ptr<GpuEvent>(std::make_unique<EmulatedEvent>(*this, false));
}

Result<std::unique_ptr<GpuEvent>> EmulatedMachine::MakeTimedEvent() {
  return std::unique_ptr<GpuEvent>(std::make_unique<EmulatedEvent>(*this, true));
}

Result<double> EmulatedMachine::ElapsedMicroseconds(GpuEvent& from, GpuEvent& to) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto time = [](GpuEvent& event) {
    const auto& point = static_cast<EmulatedEvent&>(event).point_;
    return point ? point->time_ns : -1;
  };
  int64_t first = time(from), second = time(to);
  if (first < 0 || second < 0) {
    return FailedPrecondition("the time between events that have not been reached, or tell none");
  }
  return static_cast<double>(second - first) / 1000;
}

Result<std::unique_ptr<GpuGraph>> EmulatedMachine::MakeGraph() {
  return std::unique_ptr<GpuGraph>(std::make_unique<EmulatedGraph>(*this));
}

Result<std::unique_ptr<GpuModule>> EmulatedMachine::Load(const std::string& code,
                                                         std::string_view) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<EmulatedCode> loaded, EmulatedCode::Load(code));
  return std::unique_ptr<GpuModule>(
      std::make_unique<EmulatedGpuModule>(std::shared_ptr<EmulatedCode>(std::move(loaded))));
}

}  // namespace kiln::device
