// Transfers between a GPU and unpinned host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/gpu/machine.h"

namespace kiln::device {

// Pinned staging buffers: while the machine copies one, the host fills or empties the other.
// Allocated by the first transfer.
class Staging {
 public:
  // `order` is the device's.
  Staging(GpuMachine& machine, std::mutex& order) : machine_(machine), order_(order) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // `from` has been read on return; `to` is written for later work of the stream.
  Status FromHost(GpuStream& stream, std::byte* to, const void* from, int64_t bytes);
  // `to` has been written on return.
  Status ToHost(GpuStream& stream, void* to, const std::byte* from, int64_t bytes);

 private:
  struct Piece {
    std::byte* memory = nullptr;
    std::unique_ptr<GpuEvent> free;  // when the stream no longer uses it
  };
  Status Prepare();
  // Submits a copy from or to the piece.
  template <typename Copy>
  Status Ask(GpuStream& stream, Piece& piece, Copy copy);

  GpuMachine& machine_;
  std::mutex& order_;
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
};

}  // namespace kiln::device
