#include "kernel/schedule/scheduler.h"

#include "kernel/schedule/cpu/scheduler.h"
#include "kernel/schedule/gpu/scheduler.h"

namespace kiln::kernel {
namespace {

// Passes without a target assume a generic CPU with many threads.
class NoScheduler : public CpuScheduler {
 public:
  NoScheduler() : CpuScheduler(NoCpu()) {}
  bool BundlePays(double) const override { return true; }

 private:
  static const target::Cpu& NoCpu() {
    static const auto& cpu = *new target::Cpu;
    return cpu;
  }
};

}  // namespace

std::unique_ptr<const Scheduler> SchedulerFor(const target::Target& target) {
  switch (target.kind) {
    case target::Kind::kCpu:
      return std::make_unique<CpuScheduler>(target.cpu);
    case target::Kind::kGpu:
      return std::make_unique<GpuScheduler>(target.gpu);
    case target::Kind::kReference:
      break;
  }
  return std::make_unique<NoScheduler>();
}

}  // namespace kiln::kernel
