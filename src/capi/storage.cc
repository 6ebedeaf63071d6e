#include "capi/storage.h"

namespace kiln::capi {

Result<Ref<Storage>> Storage::Allocate(kiln_device& device, int64_t bytes) {
  runtime::Device& memory = *device.device;
  KILN_ASSIGN_OR_RETURN(std::byte * data, memory.Allocate(bytes));
  try {
    auto storage = Ref<Storage>::Adopt(new Storage(device, data, bytes));
    storage->is_owned_ = true;
    return storage;
  } catch (...) {
    memory.Deallocate(data, bytes);
    throw;
  }
}

Ref<Storage> Storage::Wrap(kiln_device& device, std::byte* data, int64_t bytes) {
  return Ref<Storage>::Adopt(new Storage(device, data, bytes));
}

Result<Ref<Storage>> Storage::WrapDevice(kiln_device& device, std::byte* data, int64_t bytes) {
  Ref<Storage> storage = Wrap(device, data, bytes);
  if (bytes > 0) {
    KILN_RETURN_IF_ERROR(device.device->Register(data, bytes));
    storage->is_registered_ = true;
  }
  return storage;
}

Storage::~Storage() {
  if (is_owned_) device_.device->Deallocate(data_, bytes_);
  if (is_registered_) device_.device->Unregister(data_, bytes_);
  if (deleter_) device_.context().CallOrDefer(std::move(deleter_));
  if (done_) done_->Finish(OkStatus());
}

}  // namespace kiln::capi
