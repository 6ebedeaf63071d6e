#include "device/cuda/code_cache.h"

#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/strings.h"

namespace kiln::device::cuda {
namespace {

// An entry is the digest of the code, which also covers the length, and the code.
std::string Sealed(std::string_view code) {
  const Digest digest = HashOf(code);
  return Cat(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()), code);
}

Result<std::string> Unsealed(std::string_view contents) {
  if (contents.size() < sizeof(Digest)) return DataLoss("it ends early");
  std::string code(contents.substr(sizeof(Digest)));
  const Digest digest = HashOf(code);
  if (std::memcmp(digest.data(), contents.data(), digest.size()) != 0) {
    return DataLoss("its checksum differs");
  }
  return code;
}

}  // namespace

std::string CodeCache::KeyOf(const std::string& ptx) const {
  return Cat("Kiln, assembled code\nsm_", sm_, "\ndriver ", context_->driver().version(), "\nPTX ",
             HexText(HashOf(ptx)), "\n");
}

Result<std::string> CodeCache::Assembled(const std::string& ptx) const {
  std::string cubin;
  auto read = [&](std::string_view contents, const auto&) -> Status {
    KILN_ASSIGN_OR_RETURN(cubin, Unsealed(contents));
    return OkStatus();
  };
  if (disk_ != nullptr && disk_->Find(KeyOf(ptx), read)) return cubin;
  return Assemble(*context_, ptx);
}

Result<std::shared_ptr<LoadedCode>> CodeCache::Load(const std::string& ptx,
                                                    std::string_view image) {
  const std::string key = KeyOf(ptx);
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

Result<std::shared_ptr<LoadedCode>> CodeCache::LoadNew(const std::string& key,
                                                       const std::string& ptx,
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
  if (disk_ != nullptr) return LoadThroughDisk(key, ptx);
  KILN_ASSIGN_OR_RETURN(auto code, LoadedCode::Load(context_, ptx));
  std::lock_guard lock(mutex_);
  ++counts_.assembled;
  return code;
}

Result<std::shared_ptr<LoadedCode>> CodeCache::LoadThroughDisk(const std::string& key,
                                                               const std::string& ptx) {
  std::shared_ptr<LoadedCode> code;
  // Code that this driver refuses is replaced; other failures will recur below.
  disk_->Find(key, [&](std::string_view contents, const auto&) -> Status {
    KILN_ASSIGN_OR_RETURN(const std::string cubin, Unsealed(contents));
    KILN_ASSIGN_OR_RETURN(code, LoadedCode::Load(context_, cubin));
    return OkStatus();
  });
  if (code) {
    std::lock_guard lock(mutex_);
    ++counts_.from_disk;
    return code;
  }
  KILN_ASSIGN_OR_RETURN(const std::string cubin, Assemble(*context_, ptx));
  KILN_ASSIGN_OR_RETURN(code, LoadedCode::Load(context_, cubin));
  disk_->Insert(key, Sealed(cubin));
  std::lock_guard lock(mutex_);
  ++counts_.assembled;
  return code;
}

CodeCache::Counts CodeCache::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace kiln::device::cuda
