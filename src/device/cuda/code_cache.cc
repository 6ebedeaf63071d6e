#include "device/cuda/code_cache.h"

#include <utility>

#include "device/cuda/code_file.h"

namespace kiln::device::cuda {

namespace {

std::string FileName(const Digest& key) { return HexText(key) + ".cubin"; }

}  // namespace

Digest CodeCache::KeyOf(const std::string& ptx) const {
  Sha256 hash;
  hash.UpdateField("kiln 1");
  hash.UpdateField(architecture());
  hash.UpdateField(Cat("driver ", context_->driver().version()));
  hash.UpdateField(ptx);
  return hash.Finish();
}

Result<std::string> CodeCache::Assembled(const std::string& ptx) const {
  if (!folder_.empty()) {
    const Digest key = KeyOf(ptx);
    if (auto cubin = ReadCodeFile(Cat(folder_, "/", FileName(key)), key)) return *std::move(cubin);
  }
  return Assemble(*context_, ptx);
}

Result<std::shared_ptr<LoadedCode>> CodeCache::Load(const std::string& ptx,
                                                    std::string_view image) {
  const Digest key = KeyOf(ptx);
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
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<LoadedCode> code, LoadNew(key, ptx, image));
  std::lock_guard lock(mutex_);
  auto& known = loaded_[key];
  // An equal module loaded meanwhile wins.
  if (auto first = known.lock()) return first;
  known = code;
  std::erase_if(loaded_, [](const auto& entry) { return entry.second.expired(); });
  return code;
}

Result<std::shared_ptr<LoadedCode>> CodeCache::LoadNew(const Digest& key, const std::string& ptx,
                                                       std::string_view image) {
  if (!image.empty()) {
    auto code = LoadedCode::Load(context_, std::string(image));
    if (code.ok()) {
      std::lock_guard lock(mutex_);
      ++counts_.given;
      return code;
    }
    // Another driver may refuse it; other failures will recur below.
  }
  if (!folder_.empty()) return LoadThroughFolder(key, ptx);
  KILN_ASSIGN_OR_RETURN(auto code, LoadedCode::Load(context_, ptx));
  std::lock_guard lock(mutex_);
  ++counts_.assembled;
  return code;
}

Result<std::shared_ptr<LoadedCode>> CodeCache::LoadThroughFolder(const Digest& key,
                                                                 const std::string& ptx) {
  const std::string name = FileName(key);
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
