#include "kernel/scheduled_kernel.h"

#include <algorithm>

#include "base/overloaded.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/gemm.h"

namespace kiln::kernel {
namespace {

// About a half of two multiply-adds for each lane in a cycle.
constexpr double kGemmFlopsPerLane = 8000;  // in a microsecond
constexpr double kPackedBytes = 25e3;       // in a microsecond
// A slice of a kernel of a run that may be cancelled: its time, and tasks of some ten microseconds.
constexpr double kSliceMicroseconds = 4000;
constexpr double kTasksPerSlice = 400;

}  // namespace

int64_t CpuGemm::items() const {
  switch (role) {
    case Role::kGemm:
      return schedule->items;
    case Role::kPackLhs:
      return schedule->pack_a_items;
    case Role::kPackRhs:
      return schedule->pack_b_items;
  }
  return 0;
}

double CpuGemm::microseconds() const {
  switch (role) {
    case Role::kGemm: {
      const GemmProblem& p = contraction->problem;
      const double flops = 2.0 * static_cast<double>(p.BatchSize()) * static_cast<double>(p.m) *
                           static_cast<double>(p.n) * static_cast<double>(schedule->Steps(p));
      return flops / (kGemmFlopsPerLane * schedule->lanes);
    }
    case Role::kPackLhs:
      return static_cast<double>(schedule->packed_a_bytes) / kPackedBytes;
    case Role::kPackRhs:
      return static_cast<double>(schedule->packed_b_bytes) / kPackedBytes;
  }
  return 0;
}

int64_t CpuItems::slice() const {
  if (polls) return 0;
  // With as few items as tasks, an item may take any time.
  if (microseconds == 0 && max_tasks >= count) return 1;
  const double all = microseconds > 0 ? microseconds / kSliceMicroseconds
                                      : static_cast<double>(max_tasks) / kTasksPerSlice;
  const auto items = static_cast<double>(count);
  return static_cast<int64_t>(std::clamp(items / all, 1.0, std::max(items, 1.0)));
}

std::optional<CpuItems> ItemsOf(const KernelSchedule& schedule) {
  using Items = std::optional<CpuItems>;
  return std::visit(Overloaded{
                        [](const CpuNestSchedule& s) -> Items {
                          return {{s.items, s.max_tasks, s.split > 0, s.microseconds}};
                        },
                        [](const CpuSortSchedule& s) -> Items {
                          return {{s.items, s.max_tasks, false, s.microseconds}};
                        },
                        [](const CpuGemm& s) -> Items {
                          const bool polls = s.role == CpuGemm::Role::kGemm && s.schedule->polls;
                          return {{s.items(), s.max_tasks, false, s.microseconds(), polls}};
                        },
                        [](const CpuBundle& s) -> Items {
                          return {{s.items, s.max_tasks}};
                        },
                        [](const CpuChain& s) -> Items {
                          return {{s.items, s.max_tasks}};
                        },
                        [](const GpuSchedule&) -> Items { return std::nullopt; },
                        [](const GpuBundle&) -> Items { return std::nullopt; },
                    },
                    schedule);
}

const GpuSchedule* GridsOf(const KernelSchedule& schedule) {
  if (const auto* bundle = std::get_if<GpuBundle>(&schedule)) return &bundle->together;
  return std::get_if<GpuSchedule>(&schedule);
}

std::vector<KernelPart> PartsOf(const KernelSchedule& schedule) {
  using Parts = std::vector<KernelPart>;
  return std::visit(Overloaded{
                        [](const CpuNestSchedule&) { return Parts(); },
                        [](const CpuSortSchedule&) { return Parts(); },
                        [](const CpuGemm&) { return Parts(); },
                        [](const CpuBundle& s) { return Parts(s.parts.begin(), s.parts.end()); },
                        [](const CpuChain& s) { return Parts(s.parts.begin(), s.parts.end()); },
                        [](const GpuSchedule&) { return Parts(); },
                        [](const GpuBundle& s) { return Parts(s.parts.begin(), s.parts.end()); },
                    },
                    schedule);
}

int64_t ScratchBytes(const KernelSchedule& schedule) {
  return std::visit(Overloaded{
                        [](const CpuNestSchedule& s) { return s.scratch_bytes; },
                        [](const CpuSortSchedule& s) { return s.scratch_bytes; },
                        [](const CpuGemm& s) { return s.schedule->scratch_bytes; },
                        [](const CpuBundle&) { return int64_t{0}; },
                        [](const CpuChain&) { return int64_t{0}; },
                        [](const GpuSchedule& s) { return s.scratch_bytes; },
                        [](const GpuBundle& s) { return s.together.scratch_bytes; },
                    },
                    schedule);
}

}  // namespace kiln::kernel
