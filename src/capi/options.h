// Options and shapes of the user's, in the forms of the library.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/sized_struct.h"
#include "base/status.h"
#include "client/client.h"
#include "client/device.h"
#include "kiln/device.h"
#include "kiln/types.h"
#include "tensor/shape.h"

namespace kiln::capi {

using kiln::InitOptions;
using kiln::ReadOptions;
using kiln::WriteStruct;

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
