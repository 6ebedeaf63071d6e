#include "client/storage.h"

namespace kiln::client {

Result<Ref<Storage>> Storage::Allocate(Device& device, int64_t bytes) {
  runtime::Device& memory = device.runtime();
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

Ref<Storage> Storage::Reserve(Device& device, int64_t bytes) {
  auto storage = Ref<Storage>::Adopt(new Storage(device, nullptr, bytes));
  storage->is_owned_ = storage->is_reserved_ = true;
  return storage;
}

Status Storage::Materialise() {
  if (!is_reserved_ || data()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(std::byte * made, device_.runtime().Allocate(bytes_));
  std::byte* other = nullptr;
  if (!data_.compare_exchange_strong(other, made)) device_.runtime().Deallocate(made, bytes_);
  return OkStatus();
}

Ref<Storage> Storage::Wrap(Device& device, std::byte* data, int64_t bytes) {
  return Ref<Storage>::Adopt(new Storage(device, data, bytes));
}

Result<Ref<Storage>> Storage::WrapDevice(Device& device, std::byte* data, int64_t bytes) {
  Ref<Storage> storage = Wrap(device, data, bytes);
  if (bytes > 0) {
    KILN_RETURN_IF_ERROR(device.runtime().Register(data, bytes));
    storage->is_registered_ = true;
  }
  return storage;
}

Storage::~Storage() {
  std::byte* const memory = data();
  if (is_owned_ && (memory || !is_reserved_)) device_.runtime().Deallocate(memory, bytes_);
  if (is_registered_) device_.runtime().Unregister(memory, bytes_);
  if (deleter_) device_.client().CallOrDefer(std::move(deleter_));
  if (done_) done_->Finish(OkStatus());
}

}  // namespace kiln::client
