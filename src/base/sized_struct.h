// Option and output structs of the C ABI with their size, which grow from version to version.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace kiln {

// All zeros, but for the size, which the struct begins with. Nothing without room for that.
void InitStruct(void* out, size_t size);
// The user's struct in this version's form of `own_size` bytes: zeros beyond a shorter one. Fails
// for a longer one with a nonzero tail, unknown to this version.
Status ReadStruct(std::string_view name, const void* given, void* out, size_t own_size);
// Copies this version's form into the user's struct, up to its size.
Status WriteStruct(std::string_view name, const void* value, size_t own_size, void* out);

template <typename T>
void InitOptions(T* options, size_t size) {
  InitStruct(options, size);
}

// NULL is all defaults. Runs read some: a struct of this version costs no call.
template <typename T>
Result<T> ReadOptions(std::string_view name, const T* options) {
  if (options && options->struct_size == sizeof(T)) return *options;
  T read{};
  KILN_RETURN_IF_ERROR(ReadStruct(name, options, &read, sizeof(T)));
  return read;
}

template <typename T>
Status WriteStruct(std::string_view name, T value, T* out) {
  return WriteStruct(name, &value, sizeof(T), out);
}

}  // namespace kiln
