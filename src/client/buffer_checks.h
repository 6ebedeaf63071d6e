// The checks of a user's buffers that are to be arguments or results.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/strings.h"
#include "client/buffer.h"
#include "program/program.h"

namespace kiln::client {

// An argument in messages: "argument 1", and its name where it has one.
std::string ArgumentName(const program::Signature& signature, size_t argument);

enum class Access { kRead, kWrite };

// The checks below, with messages that go on behind the array's name.
Status CheckUnnamed(const Buffer* buffer, const Device& device, const Shape& shape, Access access);
Status CheckUnnamedWritable(const Buffer& buffer);

template <typename Name>
Status Named(const Name& name, const Status& status) {
  return status.ok() ? status : Status(status.code(), Cat(name(), status.message()));
}

// Whether a buffer of the user's, or null, can be an array of a shape on a device: INVALID_ARGUMENT
// if it is null, elsewhere, or of another type or size; FAILED_PRECONDITION if it has been donated;
// and to be written, as CheckWritable. `name` returns what messages call the array.
template <typename Name>
Status CheckBuffer(const Buffer* buffer, const Device& device, const Shape& shape, Access access,
                   const Name& name) {
  return Named(name, CheckUnnamed(buffer, device, shape, access));
}

// INVALID_ARGUMENT for read-only memory; FAILED_PRECONDITION for a frozen buffer.
template <typename Name>
Status CheckWritable(const Buffer& buffer, const Name& name) {
  return Named(name, CheckUnnamedWritable(buffer));
}

}  // namespace kiln::client
