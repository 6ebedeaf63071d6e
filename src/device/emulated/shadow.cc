#include "device/emulated/shadow.h"

#include <algorithm>
#include <bit>

namespace kiln::device {
namespace {

constexpr int kEpochShift = 12;
constexpr uint32_t kStep = 1u << kEpochShift;
constexpr uint32_t kAtomic = 1u << 11;
constexpr uint32_t kThread = kAtomic - 1;
constexpr uint32_t kMany = kThread;
// Of global memory: several of warp 0, and so on.
constexpr uint32_t kLanes = 1025;
constexpr uint32_t kUnderWay = 0xffffffffu;
constexpr uint32_t kLastEpoch = 0xffffe000u;
constexpr uint64_t kManyBlocks = 0xffffffffu;

int LogOf(int64_t granule) { return std::countr_zero(static_cast<uint64_t>(granule)); }

Conflict With(Conflict::Kind kind, uint32_t tag) {
  Conflict c{kind};
  c.many = (tag & kThread) == kMany;
  c.thread = (tag & kThread) - 1;
  return c;
}

}  // namespace

void SharedShadow::Begin(int64_t bytes, int64_t granule) {
  shift_ = LogOf(granule);
  auto cells = static_cast<size_t>((bytes + granule - 1) >> shift_);
  uint32_t& now = epoch_[KILN_EMULATED_EPOCH_NOW];
  if (writers_.size() < cells) {
    writers_.resize(cells);
    readers_.resize(cells);
  }
  // Tags of earlier blocks are below the first of this one, except for pending copies.
  now += kStep;
  if (now < kStep || now > kLastEpoch / 2) {
    std::fill(writers_.begin(), writers_.end(), 0);
    std::fill(readers_.begin(), readers_.end(), 0);
    now = kStep;
  }
  epoch_[KILN_EMULATED_EPOCH_FIRST] = now;
  epoch_[KILN_EMULATED_EPOCH_MANY] = now | kMany;
}

void SharedShadow::Barrier() {
  uint32_t& now = epoch_[KILN_EMULATED_EPOCH_NOW];
  now += kStep;
  if (now >= kLastEpoch) Renumber();
  epoch_[KILN_EMULATED_EPOCH_MANY] = now | kMany;
}

// All earlier accesses count as before the last barrier.
void SharedShadow::Renumber() {
  uint32_t first = epoch_[KILN_EMULATED_EPOCH_FIRST];
  for (uint32_t& w : writers_) {
    if (w != kUnderWay) w = w >= first ? kStep | kMany : 0;
  }
  std::fill(readers_.begin(), readers_.end(), 0);
  epoch_[KILN_EMULATED_EPOCH_FIRST] = kStep;
  epoch_[KILN_EMULATED_EPOCH_NOW] = 2 * kStep;
}

Conflict SharedShadow::Read(size_t cell, uint32_t thread) {
  uint32_t now = epoch_[KILN_EMULATED_EPOCH_NOW];
  uint32_t writer = writers_[cell];
  if (writer == kUnderWay) return {Conflict::Kind::kUnderWay};
  if (writer < epoch_[KILN_EMULATED_EPOCH_FIRST]) return {Conflict::Kind::kUnwritten};
  if (writer >= now && (writer & kThread) != thread + 1) {
    return With(Conflict::Kind::kWritten, writer);
  }
  uint32_t& reader = readers_[cell];
  if (reader < now) {
    reader = now | (thread + 1);
  } else if ((reader & kThread) != thread + 1) {
    reader = now | kMany;
  }
  return {};
}

Conflict SharedShadow::Write(size_t cell, uint32_t thread, bool atomic) {
  uint32_t now = epoch_[KILN_EMULATED_EPOCH_NOW];
  uint32_t& writer = writers_[cell];
  if (writer == kUnderWay) return {Conflict::Kind::kUnderWay};
  if (atomic && writer < epoch_[KILN_EMULATED_EPOCH_FIRST]) return {Conflict::Kind::kUnwritten};
  bool others = writer >= now && (writer & kThread) != thread + 1;
  if (others && !(atomic && (writer & kAtomic))) return With(Conflict::Kind::kWritten, writer);
  uint32_t reader = readers_[cell];
  if (reader >= now && (reader & kThread) != thread + 1) {
    return With(Conflict::Kind::kRead, reader);
  }
  writer = now | (atomic ? kAtomic : 0) | (others ? kMany : thread + 1);
  return {};
}

Conflict SharedShadow::Access(int64_t offset, int64_t bytes, int kind, uint32_t thread) {
  auto first = static_cast<size_t>(offset >> shift_);
  auto last = static_cast<size_t>((offset + bytes - 1) >> shift_);
  for (size_t cell = first; cell <= last; ++cell) {
    Conflict c = kind == KILN_ACCESS_LOAD ? Read(cell, thread)
                                          : Write(cell, thread, kind == KILN_ACCESS_ATOMIC);
    if (c.kind != Conflict::Kind::kNone) return c;
  }
  return {};
}

Conflict SharedShadow::BeginCopy(int64_t offset, int64_t bytes, uint32_t thread) {
  Conflict c = Access(offset, bytes, KILN_ACCESS_STORE, thread);
  if (c.kind != Conflict::Kind::kNone) return c;
  std::fill_n(writers_.begin() + (offset >> shift_), bytes >> shift_, kUnderWay);
  return {};
}

void SharedShadow::EndCopy(int64_t offset, int64_t bytes, uint32_t thread) {
  std::fill_n(writers_.begin() + (offset >> shift_), bytes >> shift_,
              epoch_[KILN_EMULATED_EPOCH_NOW] | (thread + 1));
}

void GlobalShadow::Begin(std::span<const GpuSpan> parameters, uint64_t written, int64_t granule) {
  shift_ = LogOf(granule);
  ranges_.clear();
  fenced_at_.clear();
  std::vector<std::pair<const std::byte*, const std::byte*>> spans;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const GpuSpan& p = parameters[i];
    bool is_written = written >> std::min<size_t>(i, 63) & 1;
    if (is_written && p.bytes > 0) spans.emplace_back(p.address, p.address + p.bytes);
  }
  std::sort(spans.begin(), spans.end());
  for (auto [begin, end] : spans) {
    if (!ranges_.empty() && begin < ranges_.back().end) {
      ranges_.back().end = std::max(ranges_.back().end, end);
    } else {
      ranges_.push_back({begin, end, {}});
    }
  }
  for (Range& r : ranges_) {
    r.pages.resize((static_cast<size_t>(r.end - r.begin) >> shift_) / kPageCells + 1);
  }
}

GlobalShadow::Cell& GlobalShadow::Range::At(size_t cell) {
  std::unique_ptr<Cell[]>& page = pages[cell / kPageCells];
  if (!page) page = std::make_unique<Cell[]>(kPageCells);
  return page[cell % kPageCells];
}

void GlobalShadow::BeginBlock() {
  fenced_ = false;
  met_.clear();
}

void GlobalShadow::Meet(const std::byte* address, uint32_t block) {
  if (auto found = fenced_at_.find(address); found != fenced_at_.end()) {
    met_.insert(found->second.begin(), found->second.end());
  }
  if (fenced_) fenced_at_[address].insert(block);
}

namespace {

// Tags here are the block plus 1 in 32 bits, followed by the tags above.
bool IsOneBlock(uint64_t a, uint64_t b) { return a >> 32 == b >> 32; }

// The warp of a tag's thread, or of its several lanes; -1 for several warps.
int WarpOf(uint64_t who) {
  auto thread = static_cast<uint32_t>(who) & kThread;
  if (thread == kMany) return -1;
  return static_cast<int>(thread >= kLanes ? thread - kLanes : (thread - 1) / 32);
}

Conflict WithGlobal(Conflict::Kind kind, uint64_t tag) {
  Conflict c = With(kind, static_cast<uint32_t>(tag));
  c.block = static_cast<uint32_t>(tag >> 32) - 1;
  c.many = c.many || tag >> 32 == kManyBlocks || (tag & kThread) >= kLanes;
  return c;
}

}  // namespace

bool GlobalShadow::IsOrdered(const Tag& tag, const Tag& now) const {
  if (tag.who == 0 || tag.who == now.who) return true;
  if (!IsOneBlock(tag.who, now.who)) {
    return met_.count(static_cast<uint32_t>(tag.who >> 32) - 1) > 0;
  }
  if ((tag.who ^ now.who) >> kEpochShift != 0) return true;
  return WarpOf(tag.who) == WarpOf(now.who) && tag.warp_barriers != now.warp_barriers;
}

Conflict GlobalShadow::Access(const std::byte* address, int64_t bytes, int kind, uint32_t block,
                              uint32_t barriers, uint32_t warp_barriers, uint32_t thread) {
  auto range = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](const std::byte* a, const Range& r) { return a < r.end; });
  if (range == ranges_.end() || address < range->begin) return {};
  const Tag now{
      (uint64_t{block} + 1) << 32 | uint64_t{barriers & 0xfffff} << kEpochShift | (thread + 1),
      warp_barriers};
  bool atomic = kind == KILN_ACCESS_ATOMIC, load = kind == KILN_ACCESS_LOAD;
  if (atomic) Meet(address, block);
  auto first = static_cast<size_t>(address - range->begin) >> shift_;
  auto last = static_cast<size_t>(address + bytes - 1 - range->begin) >> shift_;
  for (size_t i = first; i <= last; ++i) {
    Cell& cell = range->At(i);
    Tag writer = cell.writer;
    writer.who &= ~uint64_t{kAtomic};
    bool others = !IsOrdered(writer, now);
    if (others && !(atomic && (cell.writer.who & kAtomic))) {
      return WithGlobal(Conflict::Kind::kWritten, cell.writer.who);
    }
    if (load) {
      uint64_t& reader = cell.reader.who;
      if (IsOrdered(cell.reader, now)) {
        cell.reader = now;
      } else if (!IsOneBlock(reader, now.who)) {
        reader = kManyBlocks << 32 | (now.who & 0xffffffff) | kMany;
      } else if (int warp = WarpOf(now.who); WarpOf(reader) == warp) {
        reader = (now.who & ~uint64_t{kThread}) | (kLanes + static_cast<uint32_t>(warp));
      } else {
        reader |= kMany;
      }
      continue;
    }
    if (!IsOrdered(cell.reader, now)) return WithGlobal(Conflict::Kind::kRead, cell.reader.who);
    cell.writer = now;
    if (atomic) cell.writer.who |= kAtomic;
    if (others) cell.writer.who = kManyBlocks << 32 | (cell.writer.who & 0xffffffff) | kMany;
  }
  return {};
}

}  // namespace kiln::device
