#include "device/gpu/steps.h"

#include "device/gpu/command_buffer.h"

namespace kiln::device {

GpuSegment::GpuSegment() = default;
GpuSegment::GpuSegment(GpuSegment&& other) noexcept = default;
GpuSegment& GpuSegment::operator=(GpuSegment&& other) noexcept = default;
GpuSegment::~GpuSegment() = default;

std::vector<GpuSpan> SpansOf(const GpuCommand& command, const GpuAddresses& addresses) {
  std::vector<GpuSpan> spans;
  spans.reserve(command.args.size());
  for (const program::Slice& slice : command.args) {
    spans.push_back({AddressOf(slice, addresses), slice.bytes});
  }
  return spans;
}

bool HasControl(const GpuSteps& steps, bool loops_alone) {
  for (const GpuStep& step : steps) {
    if (std::holds_alternative<std::unique_ptr<GpuLoop>>(step)) return true;
    if (const auto* branch = std::get_if<std::unique_ptr<GpuBranch>>(&step)) {
      if (!loops_alone) return true;
      for (const GpuSteps& steps_of : (*branch)->branches) {
        if (HasControl(steps_of, true)) return true;
      }
    }
  }
  return false;
}

}  // namespace kiln::device
