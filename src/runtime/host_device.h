// Devices with the host's memory.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "runtime/arena.h"
#include "runtime/device.h"

namespace kiln::runtime {

class HostDevice : public Device {
 public:
  Result<std::byte*> Allocate(int64_t bytes) override { return allocator_.Allocate(bytes); }
  void Deallocate(std::byte* memory, int64_t bytes) override {
    allocator_.Deallocate(memory, bytes);
  }
  DeviceMemory Memory() const override {
    return {allocator_.live_bytes(), allocator_.peak_bytes(), 0};
  }
  bool has_host_memory() const override { return true; }
  Status CopyFromHost(std::byte* to, const void* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return OkStatus();
  }
  Status CopyToHost(void* to, const std::byte* from, int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return OkStatus();
  }
  Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    return CopyToHost(to, from, bytes);
  }
  Status FillZero(std::byte* memory, int64_t bytes) override {
    if (bytes > 0) std::memset(memory, 0, static_cast<size_t>(bytes));
    return OkStatus();
  }

 protected:
  // The allocator must outlive the device.
  HostDevice(std::string name, target::Target target, Allocator& allocator)
      : Device(std::move(name), std::move(target)), allocator_(allocator) {}

  Allocator& allocator_;
};

}  // namespace kiln::runtime
