#include "plan/duration.h"

#include <algorithm>
#include <limits>

namespace kiln::plan {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// A core moves some ten bytes in a nanosecond, computes with vectors, and sorts, scatters and scans
// one element after the other.
constexpr double kLaunch = 10, kByte = 0.1, kOperation = 0.1, kElement = 10;

double Of(const Program& program, const Steps& steps);

double Of(const Program& program, const Launch& launch) {
  const LaunchInfo& info = program.launches[static_cast<size_t>(launch.id)];
  const ScheduledKernel& kernel = program.kernels[static_cast<size_t>(launch.kernel)];
  double time = kLaunch + kByte * static_cast<double>(info.bytes) +
                kOperation * static_cast<double>(info.flops);
  if (kernel.kernel.kind != kernel::Kernel::Kind::kNest) {
    for (const kernel::Param& p : kernel.kernel.params) {
      time += kElement * static_cast<double>(p.elements);
    }
  }
  return time;
}
double Of(const Program&, const Copy& copy) {
  return kByte * static_cast<double>(copy.from.bytes + copy.to.bytes);
}
double Of(const Program&, const Call&) { return kUnknown; }
double Of(const Program& program, const While& loop) {
  if (loop.trips < 0) return kUnknown;
  return static_cast<double>(loop.trips + 1) *
         (kLaunch + Of(program, loop.condition) + Of(program, loop.body));
}
double Of(const Program& program, const Conditional& conditional) {
  double most = 0;
  for (const Steps& branch : conditional.branches) most = std::max(most, Of(program, branch));
  return most;
}

double Of(const Program& program, const Steps& steps) {
  double sum = 0;
  for (const Step& step : steps) {
    sum += std::visit([&](const auto& s) { return Of(program, s); }, step.what);
  }
  return sum;
}

}  // namespace

double NanosecondsOf(const Program& program) { return Of(program, program.steps); }

}  // namespace kiln::plan
