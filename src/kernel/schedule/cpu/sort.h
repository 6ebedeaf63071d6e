// How a kernel of kind kSort runs on a CPU, as data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "target/target.h"

namespace kiln::kernel {

// A row is the points of the sort's variable at one outer point. The result depends on the rows
// alone, as every order made here is stable: never on chunks, items or threads.
struct CpuSortSchedule {
  // The sorted items in scratch. Records are unsigned integers: the key above the element's place
  // in the row, or the key alone where the element is made of it again. Else all operands' elements
  // are moved, by the comparator.
  bool records = false;
  int key_bits = 0;
  int place_bits = 0;  // 0: the key alone
  int record_bits() const { return place_bits == 0 ? key_bits : key_bits > 32 ? 128 : 64; }

  // Records by digits of the key, the lowest first; else neighbouring runs are merged.
  bool radix = false;
  int digit_bits = 8;
  int64_t buckets() const { return int64_t{1} << digit_bits; }

  // Keys alone, by vectors: packed together by whether they are above a pivot, and so on, until
  // they fit in a network of registers. Several chunks are first cut into `buckets` by splitters.
  bool partition = false;

  // Only the first places are wanted: each chunk keeps the first records that it has seen among at
  // most `candidates`, which are sorted when they are too many; what chunks have kept is merged.
  // Few are put in their places one by one instead.
  bool select = false;
  bool inserts = false;
  int64_t candidates = 0;

  // A row is cut into so many chunks of so many elements, which are worked on at once.
  int64_t chunks = 1, chunk = 0;
  // An item is so many rows; with several chunks there is one item, which runs on the caller's
  // thread and calls the others.
  int64_t items = 1, rows = 1, rows_per_item = 1;
  int64_t max_tasks = 1;
  double microseconds = 0;  // about how long one thread takes

  // Scratch of an item, in bytes from its beginning: what phases tell each other (kStateBytes), a
  // word for each chunk (which end up a cache line apart), the chunks' counts of each digit, and
  // two places for what is sorted (of all chunks' candidates): `offsets` says where in each of them
  // the operands are.
  static constexpr int64_t kStateBytes = 64;
  int64_t flags = 0, splits = 0, counts = 0, front = 0, back = 0;
  std::vector<int64_t> offsets;
  int64_t item_bytes = 0;
  int64_t scratch_bytes = 0;

  int vector_width = 1;

  std::string ToString() const;
};

CpuSortSchedule ScheduleSort(const Kernel& kernel, const target::Cpu& cpu);

}  // namespace kiln::kernel
