// Loaded code by its content: in memory, and as assembled code in a cache on disk.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/disk_cache.h"
#include "base/strings.h"
#include "device/cuda/context.h"
#include "device/cuda/module.h"

namespace kiln::device::cuda {

class CodeCache {
 public:
  // `sm` is the device's own. Without a disk cache, which must outlive this, the driver assembles
  // as it loads.
  CodeCache(std::shared_ptr<Context> context, int sm, DiskCache* disk)
      : context_(std::move(context)), sm_(sm), disk_(disk) {}

  // Of the code that it assembles: "sm_90".
  std::string architecture() const { return Cat("sm_", sm_); }
  // The same code for the same PTX for as long as anyone holds it. `image`, unless empty, is a
  // cubin of the PTX for this architecture, taken if the driver takes it.
  Result<std::shared_ptr<LoadedCode>> Load(const std::string& ptx, std::string_view image = {});
  // The PTX as a cubin, from the disk cache or by the driver's assembler.
  Result<std::string> Assembled(const std::string& ptx) const;

  struct Counts {
    int64_t in_memory = 0, given = 0, from_disk = 0, assembled = 0;
  };
  Counts counts() const;

 private:
  std::string KeyOf(const std::string& ptx) const;
  Result<std::shared_ptr<LoadedCode>> LoadNew(const std::string& key, const std::string& ptx,
                                              std::string_view image);
  Result<std::shared_ptr<LoadedCode>> LoadThroughDisk(const std::string& key,
                                                      const std::string& ptx);

  const std::shared_ptr<Context> context_;
  const int sm_;
  DiskCache* const disk_;

  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<LoadedCode>> loaded_;
  Counts counts_;
};

}  // namespace kiln::device::cuda
