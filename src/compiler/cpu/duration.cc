#include "compiler/cpu/duration.h"

#include <algorithm>
#include <limits>

namespace kiln::compiler {
namespace {

using codegen::LoweredProgram;
using duration::kByte, duration::kElement, duration::kLaunch, duration::kOperation;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

double Of(const LoweredProgram& lowered, const program::Steps& steps);

double Of(const LoweredProgram& lowered, const program::Launch& launch) {
  const program::LaunchInfo& info = lowered.program.launches[launch.id];
  const kernel::Kernel& kernel = lowered.KernelOf(launch).kernel;
  double time = kLaunch + kByte * static_cast<double>(info.bytes) +
                kOperation * static_cast<double>(info.flops);
  if (kernel.kind != kernel::Kernel::Kind::kNest) {
    for (const kernel::Param& p : kernel.params) {
      time += kElement * static_cast<double>(p.elements);
    }
  }
  return time;
}
double Of(const LoweredProgram&, const program::Copy& copy) {
  return kByte * static_cast<double>(copy.from.bytes + copy.to.bytes);
}
double Of(const LoweredProgram&, const program::HostCall&) { return kUnknown; }
double Of(const LoweredProgram& lowered, const program::While& loop) {
  if (loop.trips < 0) return kUnknown;
  return static_cast<double>(loop.trips + 1) *
         (kLaunch + Of(lowered, loop.condition) + Of(lowered, loop.body));
}
double Of(const LoweredProgram& lowered, const program::Conditional& conditional) {
  double most = 0;
  for (const program::Steps& branch : conditional.branches)
    most = std::max(most, Of(lowered, branch));
  return most;
}

double Of(const LoweredProgram& lowered, const program::Steps& steps) {
  double sum = 0;
  for (const program::Step& step : steps) {
    sum += std::visit([&](const auto& s) { return Of(lowered, s); }, step.what);
  }
  return sum;
}

}  // namespace

double NanosecondsOf(const LoweredProgram& lowered) { return Of(lowered, lowered.program.steps); }

}  // namespace kiln::compiler
