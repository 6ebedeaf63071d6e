#include "base/sized_struct.h"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

size_t SizeOf(const void* sized) {
  size_t size;
  std::memcpy(&size, sized, sizeof(size));
  return size;
}

}  // namespace

void InitStruct(void* out, size_t size) {
  if (!out || size < sizeof(size_t)) return;
  std::memset(out, 0, size);
  std::memcpy(out, &size, sizeof(size));
}

Status ReadStruct(std::string_view name, const void* given, void* out, size_t own_size) {
  InitStruct(out, own_size);
  if (!given) return OkStatus();
  const size_t size = SizeOf(given);
  if (size < sizeof(size_t)) {
    return InvalidArgument(name, ".struct_size is ", size, "; call its _init function first");
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (size_t i = own_size; i < size; ++i) {
    if (bytes[i] != 0) {
      return InvalidArgument(name, " has an option at byte ", i,
                             ", which this version of the library does not know");
    }
  }
  std::memcpy(static_cast<unsigned char*>(out) + sizeof(size_t), bytes + sizeof(size_t),
              std::min(size, own_size) - sizeof(size_t));
  return OkStatus();
}

Status WriteStruct(std::string_view name, const void* value, size_t own_size, void* out) {
  const size_t size = SizeOf(out);
  if (size < sizeof(size_t)) {
    return InvalidArgument(name, ".struct_size is ", size, "; set it to the size of the struct");
  }
  std::memcpy(static_cast<unsigned char*>(out) + sizeof(size_t),
              static_cast<const unsigned char*>(value) + sizeof(size_t),
              std::min(size, own_size) - sizeof(size_t));
  return OkStatus();
}

}  // namespace kiln
