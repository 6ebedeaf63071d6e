// What a machine itself tells of the work that it has done: kernels and copies one by one, those in
// graphs among them.
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
  // Numbers the calls that asked for work, in their order. All that a graph holds is of the call
  // that launched it.
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
  // What has become known of since the last call. While other work is under way that may not be
  // all that is done; `all` is for when none is, and loses what is known of work that there is.
  virtual std::vector<GpuActivity> Take(bool all) = 0;
  // -1 where it is not known.
  virtual int64_t NumberOf(GpuStream& stream) = 0;
  // How far the times may be off.
  virtual int64_t error_ns() const = 0;
};

}  // namespace kiln::device
