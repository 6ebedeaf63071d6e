#include "device/gpu/device.h"

#include "base/strings.h"
#include "device/gpu/executable.h"

namespace kiln::device {
namespace {

// CU_STREAM_LEGACY.
constexpr uintptr_t kLegacyStream = 1;

}  // namespace

GpuDevice::GpuDevice(std::string name, std::shared_ptr<GpuMachine> machine, int64_t limit_bytes)
    : Device(std::move(name), machine->target()),
      machine_(std::move(machine)),
      limit_bytes_(limit_bytes),
      staging_(*machine_, order_),
      timeline_(*machine_, this->name()) {}

GpuDevice::~GpuDevice() = default;

Result<GpuStream*> GpuDevice::Stream() {
  std::lock_guard lock(mutex_);
  if (!stream_) {
    KILN_ASSIGN_OR_RETURN(stream_, machine_->MakeStream());
  }
  return stream_.get();
}

Result<std::unique_ptr<runtime::LoadedExecutable>> GpuDevice::LoadChecked(
    program::Artefact artefact, TraceSink* trace) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuExecutable> executable,
                        GpuExecutable::Load(std::move(artefact), *this, trace));
  return std::unique_ptr<runtime::LoadedExecutable>(std::move(executable));
}

Result<std::byte*> GpuDevice::Allocate(int64_t bytes) {
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  int64_t live = live_.fetch_add(bytes) + bytes;
  Result<std::byte*> memory =
      limit_bytes_ > 0 && live > limit_bytes_
          ? ResourceExhausted("out of memory on ", name(), ": ", bytes, " bytes asked for, ",
                              live - bytes, " bytes in use of the limit of ", limit_bytes_)
          : machine_->Allocate(bytes, *stream);
  if (!memory.ok()) {
    live_.fetch_sub(bytes);
    return memory.status();
  }
  int64_t peak = peak_.load();
  while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void GpuDevice::Deallocate(std::byte* memory, int64_t bytes) {
  if (!memory) return;
  // It exists: it allocated the memory.
  machine_->Free(memory, bytes, *stream_);
  live_.fetch_sub(bytes);
}

runtime::DeviceMemory GpuDevice::Memory() const {
  return {live_.load(), peak_.load(), limit_bytes_};
}

Status GpuDevice::CopyFromHost(std::byte* to, const void* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  auto copy = [&] { return staging_.FromHost(*stream, to, from, bytes); };
  if (!timeline_.records_transfers()) return copy();
  return timeline_.Transfer("copy from host", bytes, *stream, false, copy);
}

Status GpuDevice::CopyToHost(void* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  auto copy = [&] { return staging_.ToHost(*stream, to, from, bytes); };
  if (!timeline_.records_transfers()) return copy();
  return timeline_.Transfer("copy to host", bytes, *stream, true, copy);
}

Status GpuDevice::Copy(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  auto copy = [&] { return stream->Copy(to, from, bytes); };
  if (!timeline_.records_transfers()) return copy();
  return timeline_.Transfer("copy", bytes, *stream, false, copy);
}

Status GpuDevice::Synchronise() {
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  return stream->Synchronise();
}

Status GpuDevice::JoinDefaultStream() {
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuEvent> event, machine_->MakeEvent());
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuStream> legacy,
                        machine_->WrapStream(reinterpret_cast<void*>(kLegacyStream)));
  KILN_RETURN_IF_ERROR(legacy->Record(*event));
  return stream->WaitFor(*event);
}

Status GpuDevice::FillZero(std::byte* memory, int64_t bytes) {
  if (bytes == 0) return OkStatus();
  KILN_ASSIGN_OR_RETURN(GpuStream * stream, Stream());
  auto fill = [&] { return stream->Fill(memory, 0, bytes); };
  if (!timeline_.records_transfers()) return fill();
  return timeline_.Transfer("fill", bytes, *stream, false, fill);
}

}  // namespace kiln::device
