#include "device/emulated/stack_sizes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kiln::device {
namespace {

// A kernel calls parts of bundles, these call computations, and these what those have in common.
constexpr size_t kDepth = 4;

// Where functions begin is for the linker to put in: in the object it is 0.
constexpr size_t kAddressBytes = 8;

}  // namespace

Result<size_t> StackBytesOf(const std::string& object) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernels");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return Internal("an object of kernels: ", llvm::toString(file.takeError()));
  std::array<uint64_t, kDepth> largest{};
  bool any = false;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) return Internal("an object of kernels: ", llvm::toString(name.takeError()));
    if (*name != ".stack_sizes") continue;
    any = true;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) return Internal("an object of kernels: ", llvm::toString(contents.takeError()));
    const uint8_t *at = contents->bytes_begin(), *end = contents->bytes_end();
    while (static_cast<size_t>(end - at) > kAddressBytes) {
      at += kAddressBytes;
      unsigned length = 0;
      const char* error = nullptr;
      const uint64_t bytes = llvm::decodeULEB128(at, &length, end, &error);
      if (error) return Internal("an object of kernels: ", error);
      at += length;
      auto smallest = std::ranges::min_element(largest);
      *smallest = std::max(*smallest, bytes);
    }
  }
  if (!any) return Internal("an object of kernels does not tell the sizes of its frames");
  return static_cast<size_t>(std::accumulate(largest.begin(), largest.end(), uint64_t{0}));
}

}  // namespace kiln::device
