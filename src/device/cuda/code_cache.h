// Loaded code by its content: in memory, and as assembled code in a folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash.h"
#include "device/cuda/context.h"
#include "device/cuda/module.h"

namespace kiln::device::cuda {

class CodeCache {
 public:
  // `sm` is the device's own. Without a folder the driver assembles as it loads.
  CodeCache(std::shared_ptr<Context> context, int sm, std::string folder)
      : context_(std::move(context)), sm_(sm), folder_(std::move(folder)) {}

  // The same code for the same PTX for as long as anyone holds it.
  Result<std::shared_ptr<LoadedCode>> Load(const std::string& ptx);

  struct Counts {
    int64_t in_memory = 0, from_disk = 0, assembled = 0;
  };
  Counts counts() const;
  // Harmless problems of the folder, each once.
  std::vector<std::string> TakeNotes();

 private:
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
