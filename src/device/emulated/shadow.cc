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
  // Tags of blocks before are below the first of this one, but for copies that were under way.
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

// Everything of the past is as if it had been before the last barrier.
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
  for (Range& r : ranges_) r.cells.resize((static_cast<size_t>(r.end - r.begin) >> shift_) + 1);
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

// Tags here are those above behind the block plus 1 in 32 bits.
bool GlobalShadow::IsOrdered(uint64_t tag, uint64_t now) const {
  if (tag == 0 || tag == now) return true;
  if (tag >> 32 == now >> 32) return (tag ^ now) >> kEpochShift != 0;
  return met_.count(static_cast<uint32_t>(tag >> 32) - 1) > 0;
}

namespace {

Conflict WithGlobal(Conflict::Kind kind, uint64_t tag) {
  Conflict c = With(kind, static_cast<uint32_t>(tag));
  c.block = static_cast<uint32_t>(tag >> 32) - 1;
  c.many = c.many || tag >> 32 == kManyBlocks;
  return c;
}

}  // namespace

Conflict GlobalShadow::Access(const std::byte* address, int64_t bytes, int kind, uint32_t block,
                              uint32_t barriers, uint32_t thread) {
  auto range = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](const std::byte* a, const Range& r) { return a < r.end; });
  if (range == ranges_.end() || address < range->begin) return {};
  uint64_t now =
      (uint64_t{block} + 1) << 32 | uint64_t{barriers & 0xfffff} << kEpochShift | (thread + 1);
  bool atomic = kind == KILN_ACCESS_ATOMIC, load = kind == KILN_ACCESS_LOAD;
  if (atomic) Meet(address, block);
  auto first = static_cast<size_t>(address - range->begin) >> shift_;
  auto last = static_cast<size_t>(address + bytes - 1 - range->begin) >> shift_;
  for (size_t i = first; i <= last; ++i) {
    Cell& cell = range->cells[i];
    uint64_t plain = cell.writer & ~uint64_t{kAtomic};
    bool others = !IsOrdered(plain, now);
    if (others && !(atomic && (cell.writer & kAtomic))) {
      return WithGlobal(Conflict::Kind::kWritten, cell.writer);
    }
    if (load) {
      if (IsOrdered(cell.reader, now)) {
        cell.reader = now;
      } else if (cell.reader >> 32 == now >> 32) {
        cell.reader |= kMany;
      } else {
        cell.reader = kManyBlocks << 32 | (now & 0xffffffff) | kMany;
      }
      continue;
    }
    if (!IsOrdered(cell.reader, now)) return WithGlobal(Conflict::Kind::kRead, cell.reader);
    cell.writer = now | (atomic ? kAtomic : 0);
    if (others) cell.writer = kManyBlocks << 32 | (cell.writer & 0xffffffff) | kMany;
  }
  return {};
}

}  // namespace kiln::device
