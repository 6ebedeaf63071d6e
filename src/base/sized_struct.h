// Option and output structs of the C ABI with their size, which grow from version to version.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/status.h"

namespace kiln {

template <typename T>
void InitOptions(T* options, size_t size) {
  if (!options || size < sizeof(size_t)) return;
  std::memset(static_cast<void*>(options), 0, size);
  std::memcpy(static_cast<void*>(options), &size, sizeof(size));
}

// The user's options in this version's form: zeros beyond a shorter struct. Fails for a longer
// struct with a nonzero tail, unknown to this version.
template <typename T>
Result<T> ReadOptions(std::string_view name, const T* options) {
  T read{};
  read.struct_size = sizeof(T);
  if (!options) return read;
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return InvalidArgument(name, ".struct_size is ", size, "; call its _init function first");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(options);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return InvalidArgument(name, " has an option at byte ", i,
                             ", which this version of the "
                             "library does not know");
    }
  }
  std::memcpy(static_cast<void*>(&read), bytes, std::min(size, sizeof(T)));
  read.struct_size = sizeof(T);
  return read;
}

// Copies `value` into the user's struct, up to its size.
template <typename T>
Status WriteStruct(std::string_view name, T value, T* out) {
  size_t size = out->struct_size;
  if (size < sizeof(size_t)) {
    return InvalidArgument(name, ".struct_size is ", size, "; set it to the size of the struct");
  }
  value.struct_size = size;
  std::memcpy(static_cast<void*>(out), &value, std::min(size, sizeof(T)));
  return OkStatus();
}

}  // namespace kiln
