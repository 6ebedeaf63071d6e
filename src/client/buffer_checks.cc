#include "client/buffer_checks.h"

namespace kiln::client {

std::string ArgumentName(const program::Signature& signature, size_t argument) {
  const auto& names = signature.parameter_names;
  return argument < names.size() ? Cat("argument ", argument, " '", names[argument], "'")
                                 : Cat("argument ", argument);
}

Status CheckUnnamed(const Buffer* buffer, const Device& device, const Shape& shape, Access access) {
  if (!buffer) return InvalidArgument(" is NULL; expected ", shape);
  if (&buffer->device() != &device) {
    return InvalidArgument(" is on ", buffer->device().name(),
                           &buffer->client() == &device.client() ? "" : " of another context",
                           "; expected ", device.name());
  }
  if (!buffer->shape().SameTypeAndDimensions(shape)) {
    return InvalidArgument(" is ", buffer->shape(), "; expected ", shape);
  }
  if (buffer->is_donated()) return FailedPrecondition(" has been donated to an execution");
  return access == Access::kWrite ? CheckUnnamedWritable(*buffer) : OkStatus();
}

Status CheckUnnamedWritable(const Buffer& buffer) {
  if (buffer.storage().is_read_only()) return InvalidArgument(" is in read-only memory");
  if (buffer.is_frozen()) return FailedPrecondition(" is bound as a frozen argument");
  return OkStatus();
}

}  // namespace kiln::client
