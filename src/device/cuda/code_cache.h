// Loaded code by its content: in memory, and as assembled code in a folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "device/cuda/context.h"
#include "device/cuda/module.h"

namespace kiln::device::cuda {

class CodeCache {
 public:
  // `sm` is the device's own. Without a folder the driver assembles as it loads.
  CodeCache(std::shared_ptr<Context> context, int sm, std::string folder)
      : context_(std::move(context)), sm_(sm), folder_(std::move(folder)) {}

  // Of the code that it assembles: "sm_90".
  std::string architecture() const { return Cat("sm_", sm_); }
  // The same code for the same PTX for as long as anyone holds it. `image`, unless empty, is a
  // cubin of the PTX for this architecture, taken if the driver takes it.
  Result<std::shared_ptr<LoadedCode>> Load(const std::string& ptx, std::string_view image = {});
  // The PTX as a cubin, from the folder or by the driver's assembler.
  Result<std::string> Assembled(const std::string& ptx) const;

  struct Counts {
    int64_t in_memory = 0, given = 0, from_disk = 0, assembled = 0;
  };
  Counts counts() const;
  // Harmless problems of the folder, each once.
  std::vector<std::string> TakeNotes();

 private:
  Digest KeyOf(const std::string& ptx) const;
  Result<std::shared_ptr<LoadedCode>> LoadNew(const Digest& key, const std::string& ptx,
                                              std::string_view image);
  Result<std::shared_ptr<LoadedCode>> LoadThroughFolder(const Digest& key, const std::string& ptx);
  void Note(std::string text);

  const std::shared_ptr<Context> context_;
  const int sm_;
  const std::string folder_;

  mutable std::mutex mutex_;
  std::map<Digest, std::weak_ptr<LoadedCode>> loaded_;
  Counts counts_;
  std::vector<std::string> notes_;
  bool noted_ = false;
};

}  // namespace kiln::device::cuda
