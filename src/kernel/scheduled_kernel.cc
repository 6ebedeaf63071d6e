#include "kernel/scheduled_kernel.h"

#include "base/overloaded.h"
#include "kernel/contraction.h"
#include "kernel/schedule/cpu/gemm.h"

namespace kiln::kernel {
namespace {

// About a half of two multiply-adds for each lane in a cycle.
constexpr double kGemmFlopsPerLane = 8000;  // in a microsecond
constexpr double kPackedBytes = 25e3;       // in a microsecond

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
                          return {{s.items(), s.max_tasks, false, s.microseconds()}};
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
