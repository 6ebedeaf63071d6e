#include "device/gpu/steps.h"

#include <algorithm>

#include "base/overloaded.h"
#include "device/gpu/command_buffer.h"

namespace kiln::device {

GpuSegment::GpuSegment() = default;
GpuSegment::GpuSegment(GpuSegment&& other) noexcept = default;
GpuSegment& GpuSegment::operator=(GpuSegment&& other) noexcept = default;
GpuSegment::~GpuSegment() = default;

std::vector<GpuSpan> SpansOf(const GpuCommand& command, const program::Addresses& addresses) {
  std::vector<GpuSpan> spans;
  spans.reserve(command.args.size());
  for (const program::Slice& slice : command.args) {
    spans.push_back({AddressOf(slice, addresses), slice.bytes});
  }
  return spans;
}

bool HasControl(const GpuSteps& steps, bool loops_alone) {
  for (const GpuStep& step : steps) {
    const bool has_control = std::visit(
        Overloaded{
            [](const GpuSegment&) { return false; },
            [](const GpuHostCall&) { return false; },
            [](const std::unique_ptr<GpuLoop>&) { return true; },
            [&](const std::unique_ptr<GpuBranch>& branch) {
              return !loops_alone || std::ranges::any_of(branch->branches, [](const GpuSteps& of) {
                return HasControl(of, true);
              });
            },
        },
        step);
    if (has_control) return true;
  }
  return false;
}

}  // namespace kiln::device
