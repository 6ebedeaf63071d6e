#include "runtime/launch.h"

#include <cstddef>

#include "base/status.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime {

int32_t FailCancelled(const kiln_frame* frame) {
  static constexpr char kMessage[] = "the execution was cancelled";
  return frame->table->fail(frame, static_cast<int32_t>(Code::kCancelled), kMessage,
                            sizeof(kMessage) - 1);
}

int32_t Launch(const kiln_frame* frame, void** args, const kiln_kernel_fn* kernels,
               const int64_t* data, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    const int64_t *operand = data + KILN_LAUNCH_FIELDS, operands = data[KILN_LAUNCH_OPERANDS];
    for (int64_t i = 0; i < operands; ++i, operand += 2) {
      args[i] = static_cast<std::byte*>(frame->buffers[operand[0]]) + operand[1];
    }
    const auto step = static_cast<int32_t>(data[KILN_LAUNCH_STEP]);
    const int64_t items = data[KILN_LAUNCH_ITEMS], tasks = data[KILN_LAUNCH_TASKS];
    const int64_t slice = data[KILN_LAUNCH_SLICE];
    const bool is_traced = frame->trace && step >= 0;
    if (is_traced) frame->table->trace_begin(frame, step);
    if (tasks > 1) {
      frame->table->parallel_for(frame, kernels[k], args, items, tasks, slice);
    } else if (items > 0) {
      kernels[k](frame, args, 0, items);
    }
    if (data[KILN_LAUNCH_FINISH] != 0) kernels[k](frame, args, items, items + 1);
    if (is_traced) frame->table->trace_end(frame, step);
    if (lib::IsCancelled(frame)) return FailCancelled(frame);
    data = operand;
  }
  return 0;
}

}  // namespace kiln::runtime
