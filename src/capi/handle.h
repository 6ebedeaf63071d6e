// The objects behind the C ABI's handles.
//
// Handles of contexts, devices, buffers, events and executables are addresses of the client's
// objects; the others are structs of this room. An object counts all references to it, and its
// client the user's references.
#pragma once

#include <cstddef>
#include <span>

#include "base/ref.h"
#include "client/buffer.h"
#include "client/client.h"
#include "client/event.h"
#include "client/executable.h"
#include "kiln/buffer.h"
#include "kiln/context.h"
#include "kiln/device.h"
#include "kiln/event.h"
#include "kiln/executable.h"

namespace kiln::capi {

// The object of a handle, and the handle of an object. NULL is NULL.
#define KILN_HANDLE(handle, object)                                                           \
  inline object* Unwrap(handle* h) { return reinterpret_cast<object*>(h); }                   \
  inline const object* Unwrap(const handle* h) { return reinterpret_cast<const object*>(h); } \
  inline handle* Wrap(object* o) { return reinterpret_cast<handle*>(o); }
KILN_HANDLE(kiln_context, client::Client)
KILN_HANDLE(kiln_device, client::Device)
KILN_HANDLE(kiln_buffer, client::Buffer)
KILN_HANDLE(kiln_event, client::Event)
KILN_HANDLE(kiln_executable, client::CompiledExecutable)
#undef KILN_HANDLE

template <typename T>
T* Unwrap(T* object) {
  return object;
}
template <typename T>
T* Wrap(T* object) {
  return object;
}

// A list of the user; not copied, because runs are short.
inline std::span<client::Buffer* const> UnwrapList(kiln_buffer* const* handles, size_t count) {
  return {reinterpret_cast<client::Buffer* const*>(handles), count};
}

// A client's object handed to the user: T has client().
template <typename T>
auto* HandOver(Ref<T> object) {
  object->client().AddUser();
  return Wrap(object.Detach());
}

template <typename Handle>
void RetainHandle(Handle* handle) {
  auto* object = Unwrap(handle);
  if (!object || object->client().is_before_fork()) return;
  object->Retain();
  object->client().AddUser();
}

// In a child process nothing is freed: the missing threads left their state unfinished.
template <typename Handle>
void ReleaseHandle(Handle* handle) {
  auto* object = Unwrap(handle);
  if (!object || object->client().is_before_fork()) return;
  auto client = Ref<client::Client>::Share(&object->client());
  object->Release();
  client->DropUser();
}

}  // namespace kiln::capi
