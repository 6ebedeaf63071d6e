#include "device/gpu/staging.h"

#include <algorithm>
#include <cstring>

namespace kiln::device {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;
constexpr size_t kPieces = 2;

}  // namespace

Staging::~Staging() {
  for (Piece& piece : pieces_) {
    // A failure of the work is reported elsewhere.
    if (piece.free) (void)piece.free->Wait();
    machine_.FreePinned(piece.memory, kPieceBytes);
  }
}

Status Staging::Prepare() {
  pieces_.reserve(kPieces);
  while (pieces_.size() < kPieces) {
    Piece piece;
    KILN_ASSIGN_OR_RETURN(piece.free, machine_.MakeEvent());
    KILN_ASSIGN_OR_RETURN(piece.memory, machine_.AllocatePinned(kPieceBytes));
    pieces_.push_back(std::move(piece));
  }
  return OkStatus();
}

template <typename Copy>
Status Staging::Ask(GpuStream& stream, Piece& piece, Copy copy) {
  std::lock_guard order(order_);
  KILN_RETURN_IF_ERROR(copy());
  Status status = stream.Record(*piece.free);
  // Only the stream knows when the piece is free: its next user must not overlap this copy.
  if (!status.ok()) (void)stream.Synchronise();
  return status;
}

Status Staging::FromHost(GpuStream& stream, std::byte* to, const void* from, int64_t bytes) {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(Prepare());
  const auto* source = static_cast<const std::byte*>(from);
  for (int64_t done = 0; done < bytes; done += kPieceBytes) {
    Piece& piece = pieces_[next_++ % kPieces];
    int64_t size = std::min(kPieceBytes, bytes - done);
    KILN_RETURN_IF_ERROR(piece.free->Wait());
    std::memcpy(piece.memory, source + done, static_cast<size_t>(size));
    KILN_RETURN_IF_ERROR(
        Ask(stream, piece, [&] { return stream.CopyFromHost(to + done, piece.memory, size); }));
  }
  return OkStatus();
}

Status Staging::ToHost(GpuStream& stream, void* to, const std::byte* from, int64_t bytes) {
  std::lock_guard lock(mutex_);
  KILN_RETURN_IF_ERROR(Prepare());
  auto* target = static_cast<std::byte*>(to);
  int64_t asked = 0, fetched = 0;
  size_t first = next_;
  auto ask = [&]() -> Status {
    Piece& piece = pieces_[next_++ % kPieces];
    int64_t size = std::min(kPieceBytes, bytes - asked);
    KILN_RETURN_IF_ERROR(piece.free->Wait());
    KILN_RETURN_IF_ERROR(
        Ask(stream, piece, [&] { return stream.CopyToHost(piece.memory, from + asked, size); }));
    asked += size;
    return OkStatus();
  };
  while (fetched < bytes) {
    while (asked < bytes && next_ - first < kPieces) KILN_RETURN_IF_ERROR(ask());
    Piece& piece = pieces_[first++ % kPieces];
    KILN_RETURN_IF_ERROR(piece.free->Wait());
    int64_t size = std::min(kPieceBytes, bytes - fetched);
    std::memcpy(target + fetched, piece.memory, static_cast<size_t>(size));
    fetched += size;
  }
  return OkStatus();
}

}  // namespace kiln::device
