// A machine's own records of its completed work: single kernels and copies, including those in
// graphs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::device {

class GpuStream;

struct GpuActivity {
  enum class Kind : uint8_t { kKernel, kCopy, kFill };
  Kind kind = Kind::kKernel;
  std::string symbol;  // of a kernel
  // Numbers the submitting calls, in their order. All work of a graph belongs to the call that
  // launched it.
  uint32_t call = 0;
  int64_t stream = -1;  // GpuActivities::NumberOf's
  bool in_graph = false;
  int64_t bytes = 0;                 // copied or filled
  int64_t start_ns = 0, end_ns = 0;  // on TraceSink's clock
};

// Listens until it is destroyed.
class GpuActivities {
 public:
  virtual ~GpuActivities() = default;
  // The records since the last call. While work is pending they may be incomplete; `all` is for
  // when none is, and loses records of pending work.
  virtual std::vector<GpuActivity> Take(bool all) = 0;
  // -1 if unknown.
  virtual int64_t NumberOf(GpuStream& stream) = 0;
  // The possible error of the times.
  virtual int64_t error_ns() const = 0;
};

}  // namespace kiln::device
