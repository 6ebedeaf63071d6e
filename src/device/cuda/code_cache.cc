#include "device/cuda/code_cache.h"

#include <utility>

#include "device/cuda/code_file.h"

namespace kiln::device::cuda {

Result<std::shared_ptr<LoadedCode>> CodeCache::Load(const std::string& ptx) {
  Sha256 hash;
  hash.UpdateField("kiln 1");
  hash.UpdateField(Cat("sm_", sm_));
  hash.UpdateField(Cat("driver ", context_->driver().version()));
  hash.UpdateField(ptx);
  const Digest key = hash.Finish();
  {
    std::lock_guard lock(mutex_);
    if (auto found = loaded_.find(key); found != loaded_.end()) {
      if (auto code = found->second.lock()) {
        ++counts_.in_memory;
        return code;
      }
      loaded_.erase(found);
    }
  }
  // Assembling takes long, and others need not wait for it.
  std::shared_ptr<LoadedCode> code;
  if (folder_.empty()) {
    KILN_ASSIGN_OR_RETURN(code, LoadedCode::Load(context_, ptx));
    std::lock_guard lock(mutex_);
    ++counts_.assembled;
  } else {
    KILN_ASSIGN_OR_RETURN(code, LoadThroughFolder(key, ptx));
  }
  std::lock_guard lock(mutex_);
  auto& known = loaded_[key];
  // An equal module loaded meanwhile wins.
  if (auto first = known.lock()) return first;
  known = code;
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
  return code;
}

Result<std::shared_ptr<LoadedCode>> CodeCache::LoadThroughFolder(const Digest& key,
                                                                 const std::string& ptx) {
  const std::string name = HexText(key) + ".cubin";
  if (auto cubin = ReadCodeFile(Cat(folder_, "/", name), key)) {
    auto code = LoadedCode::Load(context_, *cubin);
    if (code.ok()) {
      std::lock_guard lock(mutex_);
      ++counts_.from_disk;
      return code;
    }
    // A complete file refused by this driver is replaced; other failures will recur below.
  }
  KILN_ASSIGN_OR_RETURN(const std::string cubin, Assemble(*context_, ptx));
  KILN_ASSIGN_OR_RETURN(auto code, LoadedCode::Load(context_, cubin));
  const Status written = WriteCodeFile(folder_, name, key, cubin);
  if (!written.ok()) {
    Note(Cat("code is not kept in ", folder_, ": ", written.message()));
  }
  std::lock_guard lock(mutex_);
  ++counts_.assembled;
  return code;
}

void CodeCache::Note(std::string text) {
  std::lock_guard lock(mutex_);
  if (std::exchange(noted_, true)) return;
  notes_.push_back(std::move(text));
}

CodeCache::Counts CodeCache::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

std::vector<std::string> CodeCache::TakeNotes() {
  std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace kiln::device::cuda
