#include "compiler/cpu/waves.h"

#include <algorithm>
#include <span>
#include <utility>

#include "program/steps.h"

namespace kiln::compiler {
namespace {

using program::Slice;
using program::Step;
using program::Steps;

// The distance that a step may move.
constexpr size_t kMostSteps = 256;
// The number of batches for each thread: estimates are rough, so threads take their next batch when
// they are free.
constexpr double kBatchesPerThread = 4;
// Of a batch, many times the cost of taking it.
constexpr double kLeastMicroseconds = 1;

// A step that may move.
struct Item {
  size_t step = 0;
  int level = 0;            // more than those of all earlier steps that it must stay behind
  int64_t bytes = 0;        // that it touches
  double microseconds = 0;  // on one thread; 0 where it is not known
  int64_t tasks = 1;        // that it is worth alone
};

class Finder {
 public:
  Finder(codegen::LoweredProgram& lowered, const target::Cpu& cpu, int threads)
      : lowered_(lowered),
        threads_(threads),
        least_gain_(cpu.task_microseconds),
        // Values stay in the caches until they are read.
        most_bytes_(cpu.l2_bytes * threads) {}

  Waves Run() {
    if (threads_ > 1) Walk(lowered_.program.steps);
    return std::move(waves_);
  }

 private:
  struct Access {
    Slice slice;
    bool is_write;
    int level;
  };

  void Walk(Steps& steps) {
    double microseconds = 0;
    for (Step& step : steps) {
      program::ForEachList(step, [this](Steps& inner, bool) { Walk(inner); });
      microseconds += Describe(step, 0).microseconds;
    }
    if (microseconds < least_gain_) return;
    for (size_t begin = 0; begin < steps.size();) {
      const std::vector<Item> items = Stretch(steps, begin);
      if (items.size() > 1) Arrange(std::span(steps).subspan(begin, items.size()), items);
      begin += std::max<size_t>(items.size(), 1);
    }
  }

  // The steps from `begin` on that may be arranged among themselves.
  std::vector<Item> Stretch(const Steps& steps, size_t begin) {
    std::vector<Item> items;
    accesses_.clear();
    int64_t bytes = 0;
    for (size_t s = begin; s < steps.size() && items.size() < kMostSteps; ++s) {
      if (!CanMove(steps[s])) break;
      Item item = Describe(steps[s], s - begin);
      ForEachAccess(steps[s], [&](const Slice& slice, bool is_write) {
        item.bytes += slice.bytes;
        item.level = std::max(item.level, LevelBehind(slice, is_write));
      });
      bytes += item.bytes;
      if (item.level > 0 && bytes > most_bytes_) break;
      ForEachAccess(steps[s], [&](const Slice& slice, bool is_write) {
        accesses_.push_back({slice, is_write, item.level});
      });
      items.push_back(item);
    }
    return items;
  }

  static bool CanMove(const Step& step) {
    return std::holds_alternative<program::Launch>(step.what) ||
           std::holds_alternative<program::Copy>(step.what);
  }

  Item Describe(const Step& step, size_t number) const {
    Item item{.step = number};
    const auto* launch = std::get_if<program::Launch>(&step.what);
    if (!launch) return item;
    const kernel::KernelSchedule& schedule = lowered_.KernelOf(*launch).schedule;
    const std::optional<kernel::CpuItems> items = kernel::ItemsOf(schedule);
    if (!items) return item;
    item.microseconds = items->microseconds;
    item.tasks = items->max_tasks;
    // Its only item shares its chunks among all threads.
    const auto* sort = std::get_if<kernel::CpuSortSchedule>(&schedule);
    if (sort && sort->chunks > 1) item.tasks = sort->chunks;
    return item;
  }

  // Calls f(slice, is_write) with all memory of a launch or copy.
  template <typename F>
  void ForEachAccess(const Step& step, F&& f) const {
    if (const auto* copy = std::get_if<program::Copy>(&step.what)) {
      f(copy->from, false);
      f(copy->to, true);
      return;
    }
    const auto& launch = std::get<program::Launch>(step.what);
    const kernel::ScheduledKernel& scheduled = lowered_.KernelOf(launch);
    const auto& params = scheduled.kernel.params;
    const bool has_params = kernel::PartsOf(scheduled.schedule).empty();
    for (size_t a = 0; a < launch.args.size(); ++a) {
      const bool is_input = has_params && a < params.size() &&
                            params[kernel::ParamId(a)].role == kernel::Param::Role::kInput;
      f(launch.args[a], !is_input);
    }
  }

  // The level of a step with this access, by earlier steps of the stretch.
  int LevelBehind(const Slice& slice, bool is_write) const {
    int level = 0;
    for (const Access& other : accesses_) {
      if (other.level < level || !(is_write || other.is_write)) continue;
      if (other.slice.allocation != slice.allocation) continue;
      if (other.slice.offset >= slice.offset + slice.bytes) continue;
      if (slice.offset >= other.slice.offset + other.slice.bytes) continue;
      level = other.level + 1;
    }
    return level;
  }

  // Puts the steps of a stretch in the order of their levels, with a wave in each level where that
  // pays; if it never does, nothing is changed.
  void Arrange(std::span<Step> steps, std::vector<Item> items) {
    std::ranges::stable_sort(items, {}, &Item::level);
    std::vector<std::pair<size_t, size_t>> waves;  // from one item to another
    for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
      while (end < items.size() && items[end].level == items[begin].level) ++end;
      for (int64_t most_tasks : {int64_t{threads_} - 1, int64_t{1}}) {
        auto members = std::ranges::stable_partition(
            items.begin() + static_cast<std::ptrdiff_t>(begin),
            items.begin() + static_cast<std::ptrdiff_t>(end),
            [&](const Item& i) { return i.microseconds == 0 || i.tasks > most_tasks; });
        if (!Pays(std::span(members.begin(), members.end()))) continue;
        waves.emplace_back(end - members.size(), end);
        break;
      }
    }
    if (waves.empty()) return;
    Steps arranged;
    for (const Item& item : items) arranged.push_back(std::move(steps[item.step]));
    std::ranges::move(arranged, steps.begin());
    for (auto [begin, end] : waves) {
      AddWave(steps[begin], std::span(items).subspan(begin, end - begin));
    }
  }

  // Whether launches gain side by side, compared with one after the other on their own threads.
  bool Pays(std::span<const Item> items) const {
    if (items.size() < 2) return false;
    double alone = 0, sum = 0, longest = 0;
    for (const Item& i : items) {
      alone += i.microseconds / static_cast<double>(std::min<int64_t>(i.tasks, threads_));
      sum += i.microseconds;
      longest = std::max(longest, i.microseconds);
    }
    return alone - std::max(sum / threads_, longest) >= least_gain_;
  }

  void AddWave(const Step& first, std::span<const Item> items) {
    double sum = 0, batch = 0;
    for (const Item& i : items) sum += i.microseconds;
    const double least = std::max(sum / threads_ / kBatchesPerThread, kLeastMicroseconds);
    Wave wave;
    for (size_t i = 0; i < items.size(); ++i) {
      batch += items[i].microseconds;
      if (batch < least && i + 1 < items.size()) continue;
      wave.ends.push_back(static_cast<int32_t>(i + 1));
      batch = 0;
    }
    if (waves_.begun_by.empty()) waves_.begun_by.resize(lowered_.program.launches.size(), -1);
    waves_.begun_by[std::get<program::Launch>(first.what).id] =
        static_cast<int32_t>(waves_.waves.size());
    waves_.waves.push_back(std::move(wave));
  }

  codegen::LoweredProgram& lowered_;
  const int threads_;
  const double least_gain_;
  const int64_t most_bytes_;
  std::vector<Access> accesses_;  // of the stretch
  Waves waves_;
};

}  // namespace

Waves FindWaves(codegen::LoweredProgram& lowered, const target::Cpu& cpu, int threads) {
  return Finder(lowered, cpu, threads).Run();
}

}  // namespace kiln::compiler
