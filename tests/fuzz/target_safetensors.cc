// Files of named arrays: the reader takes anything, what it accepts is in the file, and the header
// that is written for it reads back the same.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "tensor/safetensors.h"

namespace {

using kiln::Shape;
using namespace kiln::safetensors;

[[noreturn]] void Found(std::string_view problem) {
  std::printf("%.*s\n", static_cast<int>(problem.size()), problem.data());
  std::abort();
}

// A file without a place, that can be opened.
kiln::Result<kiln::Ref<File>> Open(const uint8_t* data, size_t size) {
  static const int descriptor = memfd_create("input", MFD_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(size);
  if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != bytes) std::abort();
  return File::Open(kiln::Cat("/proc/self/fd/", descriptor));
}

void CheckData(const File& file, size_t size) {
  size_t bytes = 0;
  for (const Entry& entry : file.header().entries) {
    uint8_t sum = 0;
    for (std::byte byte : file.data(entry)) sum ^= static_cast<uint8_t>(byte);
    bytes += file.data(entry).size() + (sum & 0);
    if (file.header().Find(entry.name) != &entry) Found("a name is not found");
  }
  if (bytes >= size) Found("there are more data than the file has");
}

// Whether the file has only entries that can be written.
bool CheckHeader(const Header& header) {
  std::vector<NewEntry> entries;
  std::vector<Shape> shapes;
  shapes.reserve(header.entries.size());
  for (const Entry& entry : header.entries) {
    kiln::Result<Shape> shape = entry.shape();
    if (!shape.ok()) return false;
    shapes.push_back(*std::move(shape));
    entries.push_back({entry.name, &shapes.back()});
  }
  std::vector<std::pair<std::string_view, std::string_view>> metadata(header.metadata.begin(),
                                                                      header.metadata.end());
  auto made = MakeHeader(entries, metadata);
  if (!made.ok()) Found(made.status().ToString());
  auto again = ParseHeader(made->text);
  if (!again.ok()) Found(again.status().ToString());
  if (again->metadata != header.metadata || again->data_bytes != header.data_bytes) {
    Found("the header reads back differently");
  }
  for (const Entry& entry : header.entries) {
    const Entry* found = again->Find(entry.name);
    if (!found || found->dims != entry.dims || found->dtype != entry.dtype) {
      Found("an entry reads back differently");
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The header alone, too: a length that fits is seldom.
  auto header = ParseHeader({reinterpret_cast<const char*>(data), size});
  if (header.ok()) CheckHeader(*header);
  auto file = Open(data, size);
  if (!file.ok()) return 0;
  CheckData(**file, size);
  CheckHeader((*file)->header());
  return 0;
}
