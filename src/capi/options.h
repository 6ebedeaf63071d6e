// Option and output structs with their size, which grow from version to version.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "client/client.h"
#include "client/device.h"
#include "kiln/device.h"
#include "kiln/types.h"
#include "tensor/shape.h"

namespace kiln::capi {

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

// Of an option or argument that is 0 or 1.
Status CheckSwitch(std::string_view name, int32_t value);

// The device of a call's options; NULL is the default device.
Result<client::Device*> ChosenDevice(client::Client& client, kiln_device* device);

// The interrupt of a call, from two fields of its options, starting now.
Result<Interrupt> InterruptOf(std::string_view name, const int32_t* cancel, int64_t timeout_ns);

// The user's form of a shape with sizes `dims`.
kiln_shape DescribeShape(const Shape& shape, const std::vector<int64_t>& dims);

// The shape of a user's array: a known element type, and constant sizes without overflow.
Result<Shape> ShapeOf(kiln_dtype dtype, const int64_t* dims, size_t rank);
// Checks that `bytes` bytes at `data` are of an array of the shape.
Status CheckMemoryOf(const Shape& shape, const void* data, size_t bytes);
// The shape of a user's array of `bytes` bytes at `data`.
Result<Shape> ShapeOfMemory(kiln_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                            size_t bytes);

}  // namespace kiln::capi
