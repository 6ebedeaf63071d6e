#include "device/cpu/stack_sizes.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kiln::device {
namespace {

// Addresses of functions are relocations: 0 in the object.
constexpr size_t kAddressBytes = 8;

Result<size_t> SumOfFrames(const std::string& object) {
  const llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "kernels");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) return Internal("an object of kernels: ", llvm::toString(file.takeError()));
  size_t sum = 0;
  bool has_code = false, has_sizes = false;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) return Internal("an object of kernels: ", llvm::toString(name.takeError()));
    has_code |= section.isText() && section.getSize() > 0;
    if (*name != ".stack_sizes") continue;
    has_sizes = true;
    llvm::Expected<llvm::StringRef> contents = section.getContents();
    if (!contents) return Internal("an object of kernels: ", llvm::toString(contents.takeError()));
    const uint8_t *at = contents->bytes_begin(), *end = contents->bytes_end();
    while (static_cast<size_t>(end - at) > kAddressBytes) {
      at += kAddressBytes;
      unsigned length = 0;
      const char* error = nullptr;
      sum += llvm::decodeULEB128(at, &length, end, &error);
      if (error) return Internal("an object of kernels: ", error);
      at += length;
    }
  }
  if (has_code && !has_sizes) {
    return Internal("an object of kernels does not tell the sizes of its frames");
  }
  return sum;
}

}  // namespace

Result<size_t> StackBytesOf(const std::vector<std::string>& objects) {
  size_t sum = 0;
  for (const std::string& object : objects) {
    KILN_ASSIGN_OR_RETURN(const size_t bytes, SumOfFrames(object));
    sum += bytes;
  }
  return sum;
}

}  // namespace kiln::device
