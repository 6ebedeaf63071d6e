// Files of arrays: the reader takes anything, its memory is bounded by the file, and what it
// accepts can be read to the last byte.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"
#include "tensor/array_file.h"

namespace {

[[noreturn]] void Found(std::string_view problem) {
  std::printf("%.*s\n", static_cast<int>(problem.size()), problem.data());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto header = kiln::ParseNpyHeader(text);
  if (header.ok() && header->data > size) Found("the elements begin beyond the end");
  auto entries = kiln::ReadZip(text);
  static const int descriptor = memfd_create("input", MFD_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(size);
  if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != bytes) std::abort();
  auto arrays = kiln::ReadArrays(kiln::Cat("/proc/self/fd/", descriptor));
  if (!arrays.ok()) return 0;
  size_t total = 0;
  for (const kiln::FileArray& array : *arrays) {
    uint8_t sum = 0;
    const kiln::Literal& value = array.literal;
    for (int64_t k = 0; k < value.byte_size(); ++k) sum ^= static_cast<uint8_t>(value.data()[k]);
    // Elements of less than a byte take one in memory.
    total += static_cast<size_t>(value.byte_size()) + (sum & 0);
    auto same = kiln::AsShape(array, value.shape());
    if (!same.ok()) Found("an array has not its own shape");
  }
  if (total > 4 * size) Found("there are more elements than the file has");
  return 0;
}
