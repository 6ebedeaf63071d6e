#include "device/emulated/worker.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/strings.h"

namespace kiln::device {
namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int64_t BytesOf(uint64_t access) { return access >> KILN_ACCESS_SIZE_SHIFT & 0xffffff; }
uint64_t AlignOf(uint64_t access) {
  return uint64_t{1} << (access >> KILN_ACCESS_ALIGN_SHIFT & 63);
}
int KindOf(uint64_t access) { return static_cast<int>(access >> KILN_ACCESS_KIND_SHIFT & 3); }
int64_t ObjectOf(uint64_t access) { return access >> KILN_ACCESS_PARAMETER_SHIFT & 0xffffff; }
uint64_t WithObject(uint64_t access, int64_t object) {
  return (access & 0xffffffffu) | static_cast<uint64_t>(object) << KILN_ACCESS_PARAMETER_SHIFT;
}

bool Contains(const GpuSpan& span, const std::byte* address, int64_t bytes) {
  auto offset = static_cast<uint64_t>(address - span.address);
  return span.bytes >= bytes && offset <= static_cast<uint64_t>(span.bytes - bytes);
}

}  // namespace

ShuffledOrder::ShuffledOrder(uint64_t count, uint64_t seed) : count_(count) {
  if (seed == 0 || count < 2) return;
  uint64_t random = Mix(seed);
  start_ = random % count;
  for (step_ = 1 + Mix(random) % (count - 1); std::gcd(step_, count) != 1;) {
    step_ = step_ % (count - 1) + 1;
  }
}

EmulatedGrid::EmulatedGrid(const EmulatedKernel& kernel_of, const GpuGrid& grid_of,
                           std::span<const GpuSpan> args_of, const EmulatorOptions& options_of,
                           int64_t piece_blocks_of, const int32_t* cancel)
    : kernel(kernel_of),
      grid(grid_of),
      args(args_of),
      options(options_of),
      piece_blocks(piece_blocks_of),
      piece_count((grid_of.blocks + piece_blocks - 1) / piece_blocks),
      pieces(static_cast<uint64_t>(piece_count), options_of.seed),
      cancel_(cancel) {
  for (const GpuSpan& a : args) {
    parameters.push_back({a.address, options.watch_global_memory ? 0 : a.bytes});
  }
}

void EmulatedGrid::Fail(Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (status_.ok()) status_ = std::move(status);
  stop_.store(true, std::memory_order_relaxed);
}

bool EmulatedGrid::Stops() {
  if (stop_.load(std::memory_order_relaxed)) return true;
  if (!cancel_ || __atomic_load_n(cancel_, __ATOMIC_RELAXED) == 0) return false;
  Fail(Cancelled("kernel ", kernel.name, ": the execution was cancelled"));
  return true;
}

void EmulatedWorker::Run(EmulatedGrid& grid) {
  grid_ = &grid;
  if (Status status = Prepare(); !status.ok()) {
    grid.Fail(std::move(status));
    return;
  }
  while (!grid.Stops()) {
    int64_t i = grid.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= grid.piece_count) return;
    int64_t begin = static_cast<int64_t>(grid.pieces[static_cast<uint64_t>(i)]) * grid.piece_blocks;
    int64_t end = std::min(begin + grid.piece_blocks, grid.grid.blocks);
    if (grid.kernel.info.waits) {
      for (int64_t b = begin; b < end && !grid.Stops(); ++b) {
        RunTogether(b);
      }
    } else {
      RunAlone(begin, end);
    }
  }
}

Status EmulatedWorker::Prepare() {
  const GpuGrid& g = grid_->grid;
  thread_count_ = static_cast<uint32_t>(g.threads);
  size_t fibers = grid_->kernel.info.waits ? thread_count_ : 1;
  try {
    if (threads_.size() < fibers) threads_.resize(fibers);
    ready_.resize(thread_count_);
    warps_.resize(thread_count_ / kWarpLanes);
    size_t bytes = static_cast<size_t>(g.shared_bytes) + 128;
    if (shared_memory_.size() < bytes) shared_memory_.resize(bytes);
    shadow_.Begin(g.shared_bytes, grid_->kernel.info.shared_granule);
  } catch (const std::bad_alloc&) {
    fibers = 0;
  }
  if (fibers == 0 || !stacks_.Reserve(fibers, grid_->kernel.stack_bytes)) {
    return ResourceExhausted("kernel ", grid_->kernel.name, ": no memory for the stacks of ",
                             thread_count_, " emulated threads");
  }
  auto address = reinterpret_cast<uintptr_t>(shared_memory_.data());
  shared_ = shared_memory_.data() + (-address & 127);
  for (size_t i = 0; i < fibers; ++i) {
    EmulatedThread& t = threads_[i];
    t.fiber = &stacks_[i];
    t.view.thread = static_cast<uint32_t>(i);
    t.view.parameters = grid_->parameters.data();
    t.view.shared = shared_;
    t.view.shared_bytes = g.shared_bytes;
    t.view.writers = shadow_.writers();
    t.view.readers = shadow_.readers();
    t.view.epoch = shadow_.epoch();
    t.view.budget = grid_->options.most_rounds;
    t.view.host = this;
    t.copies.clear();
  }
  return OkStatus();
}

void EmulatedWorker::StartBlock(uint32_t block) {
  block_ = block;
  barriers_ = 0;
  if (grid_->options.watch_global_memory) grid_->global.BeginBlock();
  // The initial contents of shared memory are undefined; reads are checked.
  if (grid_->grid.shared_bytes > 0) {
    shadow_.Begin(grid_->grid.shared_bytes, grid_->kernel.info.shared_granule);
  }
}

// --- Threads without synchronisation: a plain loop, on a fiber that can be abandoned.

void EmulatedWorker::RunAlone(int64_t begin, int64_t end) {
  piece_begin_ = begin;
  piece_end_ = end;
  mistake_.kind = Mistake::Kind::kNone;
  stacks_[0].Start(&AloneMain, this);
  GoInside(stacks_[0].context());
  if (mistake_.kind != Mistake::Kind::kNone) grid_->Fail(DescribeMistake());
}

FiberContext* EmulatedWorker::AloneMain(void* worker) {
  auto& w = *static_cast<EmulatedWorker*>(worker);
  EmulatedGrid& grid = *w.grid_;
  kiln_emulated_thread& view = w.threads_[0].view;
  kiln_emulated_kernel_fn function = grid.kernel.info.function;
  for (int64_t i = w.piece_begin_; i < w.piece_end_; ++i) {
    if (grid.Stops()) break;
    auto block = static_cast<uint32_t>(i);
    w.StartBlock(block);
    view.block = block;
    // From some thread on, forwards or backwards: other orders would lose memory locality.
    uint64_t random = grid.options.seed == 0 ? 0 : Mix(grid.options.seed + block);
    uint32_t thread = static_cast<uint32_t>(random) % w.thread_count_;
    uint32_t step = random >> 63 ? w.thread_count_ - 1 : 1;
    for (uint32_t t = 0; t < w.thread_count_; ++t) {
      view.thread = thread;
      function(&view);
      thread += step;
      if (thread >= w.thread_count_) thread -= w.thread_count_;
    }
  }
  return &w.outside_;
}

// --- Threads with synchronisation: each on its fiber, until it waits.

void EmulatedWorker::RunTogether(int64_t block) {
  StartBlock(static_cast<uint32_t>(block));
  mistake_.kind = Mistake::Kind::kNone;
  ended_ = at_barrier_ = ready_first_ = ready_count_ = 0;
  std::fill(warps_.begin(), warps_.end(), WarpState());
  ShuffledOrder order = OrderOfThreads();
  for (uint32_t t = 0; t < thread_count_; ++t) {
    EmulatedThread& thread = threads_[t];
    thread.view.block = block_;
    thread.groups = 0;
    thread.fiber->Start(&ThreadMain, &thread);
    MakeReady(static_cast<uint32_t>(order[t]));
  }
  GoInside(Next());
  Status status;
  if (mistake_.kind != Mistake::Kind::kNone) {
    status = DescribeMistake();
  } else if (ended_ < thread_count_) {
    status = DescribeDeadlock();
  }
  if (status.ok()) return;
  for (EmulatedThread& t : threads_) t.copies.clear();
  shadow_ = SharedShadow();
  grid_->Fail(std::move(status));
}

FiberContext* EmulatedWorker::ThreadMain(void* argument) {
  auto& thread = *static_cast<EmulatedThread*>(argument);
  auto& w = *static_cast<EmulatedWorker*>(thread.view.host);
  w.grid_->kernel.info.function(&thread.view);
  if (!thread.copies.empty())
    w.Fail(thread, {.kind = Mistake::Kind::kCopies, .thread = thread.view.thread});
  thread.state = EmulatedThread::State::kEnded;
  ++w.ended_;
  return &w.Next();
}

// A new order for each block, and behind each barrier.
ShuffledOrder EmulatedWorker::OrderOfThreads() const {
  uint64_t seed = grid_->options.seed;
  return {thread_count_, seed == 0 ? 0 : seed + block_ + (uint64_t{barriers_} << 32)};
}

void EmulatedWorker::MakeReady(uint32_t thread) {
  threads_[thread].state = EmulatedThread::State::kReady;
  uint32_t at = ready_first_ + ready_count_++;
  ready_[at < thread_count_ ? at : at - thread_count_] = thread;
}

FiberContext& EmulatedWorker::Next() {
  if (ready_count_ == 0) return outside_;
  uint32_t thread = ready_[ready_first_];
  if (++ready_first_ == thread_count_) ready_first_ = 0;
  --ready_count_;
  return threads_[thread].fiber->context();
}

void EmulatedWorker::Barrier(EmulatedThread& thread, int32_t site) {
  if (at_barrier_ > 0 && site != barrier_site_) {
    auto other = std::find_if(threads_.begin(), threads_.end(), [](const EmulatedThread& t) {
      return t.state == EmulatedThread::State::kBarrier;
    });
    Fail(thread, {.kind = Mistake::Kind::kBarriers,
                  .thread = thread.view.thread,
                  .other = other->view.thread});
  }
  barrier_site_ = site;
  thread.state = EmulatedThread::State::kBarrier;
  if (++at_barrier_ == thread_count_) {
    at_barrier_ = 0;
    ++barriers_;
    if (grid_->grid.shared_bytes > 0) shadow_.Barrier();
    ShuffledOrder order = OrderOfThreads();
    for (uint32_t t = 0; t < thread_count_; ++t) MakeReady(static_cast<uint32_t>(order[t]));
  }
  FiberContext& next = Next();
  if (&next != &thread.fiber->context()) SwitchFiber(thread.fiber->context(), next);
}

// The last lane to arrive does it for all.
void EmulatedWorker::Warp(EmulatedThread& thread, int32_t operation, int32_t site) {
  uint32_t number = thread.view.thread / kWarpLanes, first = number * kWarpLanes;
  WarpState& warp = warps_[number];
  if (warp.arrived > 0 && warp.site != site) {
    uint32_t other = first;
    while (threads_[other].state != EmulatedThread::State::kWarp) ++other;
    Fail(thread, {.kind = Mistake::Kind::kWarps,
                  .thread = thread.view.thread,
                  .other = other,
                  .operation = operation,
                  .other_operation = warp.operation});
  }
  warp.site = site;
  warp.operation = operation;
  thread.state = EmulatedThread::State::kWarp;
  if (++warp.arrived < kWarpLanes) {
    SwitchFiber(thread.fiber->context(), Next());
    return;
  }
  warp.arrived = 0;
  if (operation == KILN_WARP_BARRIER) ++warp.barriers;
  kiln_emulated_thread* lanes[kWarpLanes];
  for (uint32_t i = 0; i < kWarpLanes; ++i) lanes[i] = &threads_[first + i].view;
  if (operation >= KILN_WARP_LOAD_MATRIX_X4) {
    constexpr uint64_t kRow = uint64_t{16} << KILN_ACCESS_SIZE_SHIFT |
                              uint64_t{4} << KILN_ACCESS_ALIGN_SHIFT |
                              uint64_t{KILN_ACCESS_SHARED} << KILN_ACCESS_PARAMETER_SHIFT;
    for (uint32_t i = 0; i < kWarpLanes; ++i) {
      const std::byte* row;
      std::memcpy(&row, lanes[i]->words, sizeof(row));
      CheckAccess(thread, first + i, row, kRow);
    }
  }
  RunWarpOperation(operation, lanes);
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    if (&threads_[first + i] != &thread) MakeReady(first + i);
  }
  thread.state = EmulatedThread::State::kReady;
}

// --- Memory

void EmulatedWorker::Access(EmulatedThread& thread, std::byte* address, uint64_t access) {
  CheckAccess(thread, thread.view.thread, address, access);
}

void EmulatedWorker::CheckAccess(EmulatedThread& running, uint32_t thread, const std::byte* address,
                                 uint64_t access) {
  int64_t object = ObjectOf(access), bytes = BytesOf(access);
  const GpuSpan shared{shared_, grid_->grid.shared_bytes};
  // An address of unknown origin: any parameter is allowed.
  if (object == KILN_ACCESS_UNKNOWN) {
    for (size_t i = 0; i < grid_->args.size() && object == KILN_ACCESS_UNKNOWN; ++i) {
      if (Contains(grid_->args[i], address, bytes)) object = static_cast<int64_t>(i) + 1;
    }
    if (Contains(shared, address, bytes)) object = KILN_ACCESS_SHARED;
    access = WithObject(access, object);
  }
  Mistake mistake{.thread = thread, .address = address, .access = access};
  bool is_parameter = object > 0 && object <= static_cast<int64_t>(grid_->args.size());
  bool inside = is_parameter
                    ? Contains(grid_->args[static_cast<size_t>(object - 1)], address, bytes)
                    : object == KILN_ACCESS_SHARED && Contains(shared, address, bytes);
  if (!inside) {
    mistake.kind = Mistake::Kind::kOutside;
  } else if (reinterpret_cast<uintptr_t>(address) & (AlignOf(access) - 1)) {
    mistake.kind = Mistake::Kind::kMisaligned;
  } else if (object == KILN_ACCESS_SHARED) {
    mistake.conflict = shadow_.Access(address - shared_, bytes, KindOf(access), thread);
  } else if (grid_->options.watch_global_memory) {
    int kind = KindOf(access) == KILN_ACCESS_COPY ? KILN_ACCESS_LOAD : KindOf(access);
    try {
      uint32_t warp_barriers = warps_.empty() ? 0 : warps_[thread / kWarpLanes].barriers;
      mistake.conflict =
          grid_->global.Access(address, bytes, kind, block_, barriers_, warp_barriers, thread);
    } catch (const std::bad_alloc&) {
      mistake.kind = Mistake::Kind::kMemory;
    }
  }
  if (mistake.conflict.kind != Conflict::Kind::kNone) mistake.kind = Mistake::Kind::kConflict;
  if (mistake.kind != Mistake::Kind::kNone) Fail(running, mistake);
}

// The latest legal time is the wait: until then reads and writes are errors.
void EmulatedWorker::Copy(EmulatedThread& thread, std::byte* to, const std::byte* from,
                          int32_t bytes, uint64_t access) {
  auto size = static_cast<int32_t>(BytesOf(access));
  bytes = std::clamp(bytes, 0, size);
  if (bytes > 0) {
    uint64_t read = (access & ~uint64_t{0xffffff}) | static_cast<uint64_t>(bytes);
    CheckAccess(thread, thread.view.thread, from, read);
  }
  uint64_t store = access & ~(uint64_t{3} << KILN_ACCESS_KIND_SHIFT);
  store |= uint64_t{KILN_ACCESS_STORE} << KILN_ACCESS_KIND_SHIFT;
  Mistake mistake{
      .thread = thread.view.thread, .address = to, .access = WithObject(store, KILN_ACCESS_SHARED)};
  if (!Contains({shared_, grid_->grid.shared_bytes}, to, size)) {
    mistake.kind = Mistake::Kind::kOutside;
  } else if (reinterpret_cast<uintptr_t>(to) & (AlignOf(access) - 1)) {
    mistake.kind = Mistake::Kind::kMisaligned;
  } else {
    mistake.conflict = shadow_.BeginCopy(to - shared_, size, thread.view.thread);
    if (mistake.conflict.kind != Conflict::Kind::kNone) mistake.kind = Mistake::Kind::kConflict;
  }
  if (mistake.kind != Mistake::Kind::kNone) Fail(thread, mistake);
  try {
    thread.copies.push_back({to, from, bytes, size, thread.groups});
  } catch (const std::bad_alloc&) {
    mistake.kind = Mistake::Kind::kMemory;
  }
  if (mistake.kind != Mistake::Kind::kNone) Fail(thread, mistake);
}

void EmulatedWorker::Wait(EmulatedThread& thread, int32_t pending) {
  int32_t done = thread.groups - pending;
  auto is_done = [&](const EmulatedThread::Copy& c) { return c.group < done; };
  for (const EmulatedThread::Copy& c : thread.copies) {
    if (!is_done(c)) continue;
    std::memcpy(c.to, c.from, static_cast<size_t>(c.bytes));
    std::memset(c.to + c.bytes, 0, static_cast<size_t>(c.size - c.bytes));
    shadow_.EndCopy(c.to - shared_, c.size, thread.view.thread);
  }
  std::erase_if(thread.copies, is_done);
}

void EmulatedWorker::Endless(EmulatedThread& thread) {
  Fail(thread, {.kind = Mistake::Kind::kEndless, .thread = thread.view.thread});
}

// --- Mistakes

void EmulatedWorker::Fail(EmulatedThread& running, const Mistake& mistake) {
  mistake_ = mistake;
  SwitchFiber(running.fiber->context(), outside_);
  __builtin_unreachable();
}

Status EmulatedWorker::DescribeMistake() const {
  const Mistake& m = mistake_;
  const std::string where =
      Cat("kernel ", grid_->kernel.name, ", block ", block_, ", thread ", m.thread, ": ");
  int64_t object = ObjectOf(m.access), bytes = BytesOf(m.access);
  const std::string what = Cat(KindOf(m.access) == KILN_ACCESS_STORE    ? "store"
                               : KindOf(m.access) == KILN_ACCESS_ATOMIC ? "atomic access"
                               : KindOf(m.access) == KILN_ACCESS_COPY   ? "asynchronous load"
                                                                        : "load",
                               " of ", bytes, " bytes");
  std::string place;
  bool is_parameter = object > 0 && object <= static_cast<int64_t>(grid_->args.size());
  if (is_parameter) {
    const GpuSpan& p = grid_->args[static_cast<size_t>(object - 1)];
    place = Cat("offset ", m.address - p.address, " of parameter ", object - 1, ", which has ",
                p.bytes, " bytes");
  } else if (object == KILN_ACCESS_SHARED) {
    place = Cat("offset ", m.address - shared_, " of shared memory, which has ",
                grid_->grid.shared_bytes, " bytes");
  } else if (object == KILN_ACCESS_LOCAL) {
    place = "a place outside of an array of the thread";
  } else if (object == KILN_ACCESS_CONSTANT) {
    place = "a place outside of a constant array";
  } else {
    place = "an address that is in none of the parameters";
  }
  switch (m.kind) {
    case Mistake::Kind::kNone:
      break;
    case Mistake::Kind::kOutside:
      return Internal(where, what, " out of bounds at ", place);
    case Mistake::Kind::kMisaligned:
      return Internal(where, "misaligned ", what, " at ", place, ": not at a multiple of ",
                      AlignOf(m.access));
    case Mistake::Kind::kConflict: {
      std::string other =
          m.conflict.many                ? "other threads have"
          : object == KILN_ACCESS_SHARED ? Cat("thread ", m.conflict.thread, " has")
          : m.conflict.block == block_
              ? Cat("thread ", m.conflict.thread, " of the same block has")
              : Cat("thread ", m.conflict.thread, " of block ", m.conflict.block, " has");
      switch (m.conflict.kind) {
        case Conflict::Kind::kNone:
          break;
        case Conflict::Kind::kUnwritten:
          return Internal(where, what, " at ", place, ": this block has not written it");
        case Conflict::Kind::kUnderWay:
          return Internal(where, what, " at ", place,
                          ": an asynchronous copy to it has not been waited for");
        case Conflict::Kind::kWritten:
          return Internal(where, what, " at ", place, ": ", other,
                          " written it without a barrier in between");
        case Conflict::Kind::kRead:
          return Internal(where, what, " at ", place, ": ", other,
                          " read it without a barrier in between");
      }
      break;
    }
    case Mistake::Kind::kBarriers:
      return Internal(where, "waits at another barrier than thread ", m.other);
    case Mistake::Kind::kWarps:
      return Internal(where, WarpOperationName(m.operation), " while thread ", m.other,
                      " of the same warp waits at another ", WarpOperationName(m.other_operation));
    case Mistake::Kind::kCopies:
      return Internal(where, "ends with asynchronous copies that have not been waited for");
    case Mistake::Kind::kEndless:
      return Internal(where, "its loops went back ", grid_->options.most_rounds,
                      " times and have not ended");
    case Mistake::Kind::kMemory:
      return ResourceExhausted(where, "no memory to note what it does");
  }
  return Internal(where, "failed");
}

// All threads wait, or have ended.
Status EmulatedWorker::DescribeDeadlock() const {
  auto find = [&](auto&& condition) {
    auto end = threads_.begin() + thread_count_;
    return std::find_if(threads_.begin(), end, condition);
  };
  using State = EmulatedThread::State;
  const std::string where = Cat("kernel ", grid_->kernel.name, ", block ", block_, ", thread ");
  auto lane = find([](const EmulatedThread& t) { return t.state == State::kWarp; });
  if (lane != threads_.begin() + thread_count_) {
    uint32_t warp = lane->view.thread / kWarpLanes;
    auto missing = find([&](const EmulatedThread& t) {
      return t.view.thread / kWarpLanes == warp && t.state != State::kWarp;
    });
    return Internal(where, lane->view.thread, ": ", WarpOperationName(warps_[warp].operation),
                    " is not reached by thread ", missing->view.thread, " of the same warp, which ",
                    missing->state == State::kEnded ? "has ended" : "waits at a barrier");
  }
  auto waiting = find([](const EmulatedThread& t) { return t.state == State::kBarrier; });
  auto missing = find([](const EmulatedThread& t) { return t.state == State::kEnded; });
  return Internal(where, waiting->view.thread, ": waits at a barrier that thread ",
                  missing->view.thread, " does not reach: it has ended");
}

}  // namespace kiln::device
