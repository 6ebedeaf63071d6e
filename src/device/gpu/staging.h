// Transfers between a GPU and memory of the host that is not pinned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/gpu/machine.h"

namespace kiln::device {

// Pinned pieces through which transfers go: while the machine copies one, the host fills or empties
// the other. Made with the first transfer.
class Staging {
 public:
  // `order` is the device's.
  Staging(GpuMachine& machine, std::mutex& order) : machine_(machine), order_(order) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // `from` has been read when this returns; it is in `to` for what follows in the stream.
  Status FromHost(GpuStream& stream, std::byte* to, const void* from, int64_t bytes);
  // `to` has been written when this returns.
  Status ToHost(GpuStream& stream, void* to, const std::byte* from, int64_t bytes);

 private:
  struct Piece {
    std::byte* memory = nullptr;
    std::unique_ptr<GpuEvent> free;  // when the stream no longer uses it
  };
  Status Prepare();
  // Asks the stream for a copy from or to the piece.
  template <typename Copy>
  Status Ask(GpuStream& stream, Piece& piece, Copy copy);

  GpuMachine& machine_;
  std::mutex& order_;
  std::mutex mutex_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
};

}  // namespace kiln::device
