#include "kernel/schedule/cpu/sort.h"

#include <algorithm>

#include "base/integers.h"
#include "base/strings.h"

namespace kiln::kernel {
namespace {

constexpr int64_t kLine = 64;
// Shorter rows are merged: counting costs the number of digits, however few elements there are.
constexpr int64_t kMinRadix = 40;
// Rows from which counts of more digits pay.
constexpr int64_t kMinWideDigits = 32 << 10;
// Rows of at least so many elements are cut into chunks of at least so many, and into no more
// than this.
constexpr int64_t kMinChunk = 8 << 10;
constexpr int kChunkBits = 3;
constexpr int64_t kMaxChunks = 1 << kChunkBits;
// With so many rows, rows are worked on at once rather than the chunks of one.
constexpr int64_t kManyRows = 8;
constexpr int64_t kMaxItems = 16;
// Where no more than this part of a row is wanted, the rest need not be sorted.
constexpr int64_t kSelectPart = 16;
// Candidates beside those that are wanted: more of them are sorted less often, and the first ones
// in any case, which are a good part of a short row.
constexpr int64_t kFewestCandidates = 32, kMostCandidates = 256;
constexpr int64_t kCandidatesPart = 32;
// Up to so many are kept in order at all times.
constexpr int64_t kMostInserted = 32;
// The minimal work of a task, in elements of radix passes or of merge levels, and about how long it
// takes.
constexpr double kTaskSteps = 16 << 10, kTaskMicroseconds = 10;

int64_t Aligned(int64_t bytes) { return RoundUp(bytes, kLine); }

double LogTwo(int64_t n) {
  double levels = 1;
  while ((int64_t{1} << static_cast<int>(levels)) < n) ++levels;
  return levels;
}

}  // namespace

CpuSortSchedule ScheduleSort(const Kernel& kernel, const target::Cpu& cpu) {
  CpuSortSchedule s;
  const Stage& stage = kernel.stages.front();
  const Sort& sort = *stage.sort;
  int64_t n = kernel.variables[sort.variable].extent;
  s.rows = kernel.OuterPoints();
  s.chunk = n;
  if (s.rows == 0 || n == 0) {
    s.items = 0;
    return s;
  }

  std::vector<int64_t> widths;
  int64_t widest = 4;
  for (NodeId input : sort.inputs) {
    widths.push_back(ByteWidth(stage.nodes[input].type));
    widest = std::max(widest, widths.back());
  }
  s.records = sort.key && n <= (int64_t{1} << 32);
  double steps = LogTwo(n);
  if (s.records) {
    const Combiner& value = sort.key->value;
    s.key_bits = static_cast<int>(8 * ByteWidth(value.nodes[value.results[0]].type));
    s.place_bits = sort.key->is_element ? 0 : s.key_bits > 32 ? 64 : 32;
    s.select = s.place_bits > 0 && sort.keep > 0 && sort.keep <= n / kSelectPart;
    const int64_t beside = std::clamp(n / kCandidatesPart, kFewestCandidates, kMostCandidates);
    s.inserts = s.select && sort.keep <= kMostInserted;
    s.candidates = s.select ? Aligned(sort.keep + std::max(sort.keep, beside)) : 0;
    s.partition = s.place_bits == 0 && s.key_bits >= 32 && cpu.has_masks &&
                  cpu.vector_bytes >= 64 && cpu.Has("avx512f");
    s.radix = n >= kMinRadix && !s.select && !s.partition;
    s.digit_bits = n >= kMinWideDigits && s.key_bits >= 32 ? 11 : 8;
    widths = {s.record_bits() / 8};
    if (!s.select) widest = std::max<int64_t>(widest, std::min(s.record_bits() / 8, 8));
    if (s.select) steps = 1;
    if (s.partition) steps = std::max(1.0, LogTwo(n) / 4);
    if (s.radix) steps = 1 + CeilDiv(s.key_bits, s.digit_bits);
  }
  s.vector_width = static_cast<int>(std::max<int64_t>(cpu.vector_bytes / widest, 1));
  while (!s.partition && s.vector_width > 1 && s.vector_width > n) s.vector_width /= 2;

  double tasks = static_cast<double>(s.rows) * static_cast<double>(n) * steps / kTaskSteps;
  s.microseconds = tasks * kTaskMicroseconds;
  if (s.rows < kManyRows && n >= 2 * kMinChunk) {
    s.chunks = std::clamp<int64_t>(n / kMinChunk, 1, kMaxChunks);
    s.chunk = CeilDiv(CeilDiv(n, s.chunks), kLine) * kLine;
    s.chunks = CeilDiv(n, s.chunk);
    s.rows_per_item = s.rows;
    if (s.partition) s.digit_bits = kChunkBits;
  } else {
    int64_t wanted = static_cast<int64_t>(std::min<double>(tasks, static_cast<double>(kMaxItems)));
    s.rows_per_item = CeilDiv(s.rows, std::clamp<int64_t>(wanted, 1, s.rows));
    s.items = CeilDiv(s.rows, s.rows_per_item);
    s.max_tasks = s.items;
  }

  s.flags = CpuSortSchedule::kStateBytes;
  s.splits = s.flags + s.chunks * kLine;
  s.counts = s.splits + Aligned((s.chunks + 1) * 8);
  s.front = s.counts + (s.radix || s.partition ? Aligned(s.chunks * s.buckets() * 4) : 0);
  int64_t bytes = 0;
  for (int64_t width : widths) {
    s.offsets.push_back(bytes);
    bytes += Aligned((s.select ? s.chunks * s.candidates : n) * width);
  }
  s.back = s.front + bytes;
  s.item_bytes = s.back + bytes;
  s.scratch_bytes = s.items * s.item_bytes;
  return s;
}

std::string CpuSortSchedule::ToString() const {
  std::string out = records ? Cat("records of ", record_bits(), " bits, keys of ", key_bits)
                            : std::string("elements");
  if (inserts) {
    out += ", inserted";
  } else if (select) {
    out += Cat(", the first of ", candidates);
  }
  out += partition ? ", partitioned"
         : radix   ? Cat(", digits of ", digit_bits, " bits")
                   : ", merged";
  return Cat(out, ", ", items, " items of ", rows_per_item, " rows, ", chunks, " chunks of ", chunk,
             ", width ", vector_width, ", scratch ", scratch_bytes);
}

}  // namespace kiln::kernel
