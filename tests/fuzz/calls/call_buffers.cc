// Calls of buffer.h and dlpack.h: memory that is copied, lent and given away.
#include <cstring>
#include <limits>

#include "calls/callers.h"
#include "calls/world.h"
#include "capi/dlpack.h"
#include "tensor/shape.h"

namespace kiln::fuzz {
namespace {

// An array that is to be made: mostly one that can be, and of a size that can be had.
struct Wanted {
  kiln_dtype dtype;
  std::vector<int64_t> dims;
  bool is_good;      // of a type and sizes that there are
  size_t bytes = 0;  // then
};

Wanted AnyArray(World& w) {
  Wanted wanted{w.AnyType(), w.Dims(), true};
  if (w.Chance(4)) {
    // Sizes that cannot be: negative, or so large that nobody has the memory.
    static constexpr int64_t kSizes[] = {-1, INT64_MIN, int64_t{1} << 46, INT64_MAX, -7};
    wanted.dims.push_back(w.Pick(kSizes));
    wanted.is_good = false;
  }
  if (w.Chance(2)) wanted.dims.resize(w.Below(40), 1);
  wanted.is_good &= kiln_dtype_bits(wanted.dtype) > 0 && wanted.dims.size() <= 8;
  if (wanted.is_good) {
    const Shape shape(static_cast<ElementType>(wanted.dtype),
                      std::span<const int64_t>(wanted.dims));
    wanted.bytes = static_cast<size_t>(shape.byte_size());
  }
  return wanted;
}

struct Place {
  std::shared_ptr<ContextState> context;
  size_t device = 0;
  kiln_device* handle = nullptr;
};

Place AnyDevice(World& w) {
  Place place;
  place.context = w.Context();
  place.device = w.Device(*place.context);
  place.handle = w.Chance(2) ? nullptr : place.context->devices[place.device];
  return place;
}

std::string Text(const Place& place, const Wanted& wanted) {
  return Cat(place.handle ? place.context->names[place.device] : "NULL", " of context #",
             place.context->number, ", ", kiln_dtype_name(wanted.dtype), "[",
             Join(wanted.dims, ","), "]");
}

kiln_buffer* HandleOf(const std::shared_ptr<BufferState>& buffer) {
  return buffer ? buffer->handle : nullptr;
}

size_t BytesOf(const std::shared_ptr<BufferState>& buffer) {
  if (!buffer) return 16;
  const Shape shape(static_cast<ElementType>(buffer->dtype),
                    std::span<const int64_t>(buffer->dims));
  return static_cast<size_t>(shape.byte_size());
}

// The elements of a wanted array, in memory of ours, and how many bytes are said to be there.
struct Given {
  fuzz::Memory* memory = nullptr;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

Given Elements(World& w, const Wanted& wanted) {
  Given given;
  const bool can_be = wanted.is_good && wanted.bytes < 1 << 20;
  const size_t width = can_be ? static_cast<size_t>(kiln_dtype_bits(wanted.dtype)) / 8 : 4;
  given.memory = can_be ? &w.Lend(wanted.dtype, wanted.dims, w.Chance(80) ? 0 : width)
                        : &w.Lend(KILN_F32, {4}, 0);
  given.data = w.Chance(2) ? nullptr : given.memory->data;
  given.bytes = can_be ? wanted.bytes : 16;
  // Less than is there.
  if (w.Chance(2)) given.bytes = w.Below(given.bytes + 1);
  return given;
}

void Count(void* user_data) { ++*static_cast<std::atomic<int>*>(user_data); }

using Borrow = kiln_error* (*)(kiln_device*, kiln_dtype, const int64_t*, size_t, void*, size_t,
                               kiln_event**, kiln_buffer**);
void Borrowed(World& w, const char* function, Borrow borrow) {
  const Place place = AnyDevice(w);
  const Wanted wanted = AnyArray(w);
  const Given given = Elements(w, wanted);
  const bool wants_event = w.Chance(70);
  kiln_event* done = World::Untouched<kiln_event>();
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin(function, Text(place, wanted), ", ", given.bytes, " bytes, ",
          wants_event ? "with an event" : "without an event");
  const bool ok = w.Gave(borrow(place.handle, wanted.dtype, wanted.dims.data(), wanted.dims.size(),
                                given.data, given.bytes, wants_event ? &done : nullptr, &made),
                         made);
  if (!ok) return w.Expect(done == World::Untouched<kiln_event>(), "an event of nothing");
  w.Keep(made, place.context, place.device);
  if (!wants_event) return;
  given.memory->done = done;
  kiln_event_retain(done);
  auto event = w.Add(w.events, done);
  event->context = place.context;
  event->is_of_memory = true;
}

using Adopt = kiln_error* (*)(kiln_device*, kiln_dtype, const int64_t*, size_t, void*, size_t,
                              void (*)(void*), void*, kiln_buffer**);
void Adopted(World& w, const char* function, Adopt adopt) {
  const Place place = AnyDevice(w);
  const Wanted wanted = AnyArray(w);
  const Given given = Elements(w, wanted);
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  std::atomic<int>* deleted = w.Counter(0);
  w.Begin(function, Text(place, wanted), ", ", given.bytes, " bytes");
  const bool ok =
      w.Gave(adopt(place.handle, wanted.dtype, wanted.dims.data(), wanted.dims.size(), given.data,
                   given.bytes, w.Chance(2) ? nullptr : Count, deleted, &made),
             made);
  if (!ok) return;
  w.ExpectCount(deleted, 1);
  w.Keep(made, place.context, place.device);
}

// An address that is asked for.
void Address(World& w, const char* function, kiln_error* (*ask)(kiln_buffer*, const void**)) {
  auto buffer = w.PickOrNull(w.buffers);
  const void* data = World::Untouched<void>();
  w.Begin(function, World::Name("buffer", buffer));
  const bool ok = w.Ok(ask(HandleOf(buffer), &data));
  w.Expect(ok == (data != World::Untouched<void>()), "an address where there is none, or none");
}

}  // namespace

void Call_kiln_buffer_create(World& w) {
  const Place place = AnyDevice(w);
  const Wanted wanted = AnyArray(w);
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  const bool no_dims = w.Chance(2);
  w.Begin("kiln_buffer_create", Text(place, wanted), no_dims ? ", NULL" : "");
  const bool ok =
      w.Gave(kiln_buffer_create(place.handle, wanted.dtype, no_dims ? nullptr : wanted.dims.data(),
                                wanted.dims.size(), &made),
             made);
  if (ok) w.Keep(made, place.context, place.device);
}

void Call_kiln_buffer_copy_host(World& w) {
  const Place place = AnyDevice(w);
  const Wanted wanted = AnyArray(w);
  const Given given = Elements(w, wanted);
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin("kiln_buffer_copy_host", Text(place, wanted), ", ", given.bytes, " bytes");
  const bool ok = w.Gave(kiln_buffer_copy_host(place.handle, wanted.dtype, wanted.dims.data(),
                                               wanted.dims.size(), given.data, given.bytes, &made),
                         made);
  if (!ok) return;
  std::vector<std::byte> back(given.bytes);
  w.Begin("kiln_buffer_copy_to_host", "what has been copied there");
  const bool copied = w.Ok(kiln_buffer_copy_to_host(made, back.data(), back.size()));
  w.Expect(!copied || given.bytes == 0 || std::memcmp(back.data(), given.data, given.bytes) == 0,
           "other bytes come back");
  w.Keep(made, place.context, place.device);
}

void Call_kiln_buffer_copy_host_async(World& w) {
  const Place place = AnyDevice(w);
  const Wanted wanted = AnyArray(w);
  const Given given = Elements(w, wanted);
  kiln_event* done = World::Untouched<kiln_event>();
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin("kiln_buffer_copy_host_async", Text(place, wanted), ", ", given.bytes, " bytes");
  const bool ok =
      w.Gave(kiln_buffer_copy_host_async(place.handle, wanted.dtype, wanted.dims.data(),
                                         wanted.dims.size(), given.data, given.bytes, &done, &made),
             made);
  if (!ok) return w.Expect(done == World::Untouched<kiln_event>(), "an event of nothing");
  w.Keep(made, place.context, place.device);
  given.memory->done = done;
  kiln_event_retain(done);
  w.Add(w.events, done)->context = place.context;
}

void Call_kiln_buffer_borrow_host(World& w) {
  Borrowed(w, "kiln_buffer_borrow_host", kiln_buffer_borrow_host);
}
void Call_kiln_buffer_borrow_device(World& w) {
  Borrowed(w, "kiln_buffer_borrow_device", kiln_buffer_borrow_device);
}
void Call_kiln_buffer_adopt_host(World& w) {
  Adopted(w, "kiln_buffer_adopt_host", kiln_buffer_adopt_host);
}
void Call_kiln_buffer_adopt_device(World& w) {
  Adopted(w, "kiln_buffer_adopt_device", kiln_buffer_adopt_device);
}

void Call_kiln_buffer_copy_to_host(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  const size_t bytes = w.Chance(3) ? w.Below(64) : BytesOf(buffer);
  std::vector<std::byte> data(bytes);
  w.Begin("kiln_buffer_copy_to_host", World::Name("buffer", buffer), ", ", bytes);
  (void)w.Ok(
      kiln_buffer_copy_to_host(HandleOf(buffer), w.Chance(2) ? nullptr : data.data(), bytes));
}

void Call_kiln_buffer_copy_to_host_async(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  const size_t bytes = w.Chance(3) ? w.Below(64) : BytesOf(buffer);
  std::vector<std::byte> data(bytes);
  kiln_event* done = World::Untouched<kiln_event>();
  w.Begin("kiln_buffer_copy_to_host_async", World::Name("buffer", buffer), ", ", bytes);
  if (!w.Gave(kiln_buffer_copy_to_host_async(HandleOf(buffer), w.Chance(2) ? nullptr : data.data(),
                                             bytes, &done),
              done)) {
    return;
  }
  // The memory is gone after this.
  w.Begin("kiln_event_wait", "the copy to the host");
  (void)w.Ok(kiln_event_wait(done, -1));
  w.Add(w.events, done)->context = buffer->context;
}

// A part, mostly of the buffer, and memory of zeros for it.
struct Part {
  Part(World& w, const std::shared_ptr<BufferState>& buffer)
      : offset(w.Below(BytesOf(buffer) + 1)),
        data(w.Below(BytesOf(buffer) - offset + (w.Chance(90) ? 1 : 4))) {
    if (w.Chance(2)) offset = static_cast<size_t>(w.WildNumber());
  }
  size_t offset;
  std::vector<std::byte> data;
};

void AwaitPart(World& w, const std::shared_ptr<BufferState>& buffer, kiln_event* done) {
  w.Begin("kiln_event_wait", "the copy of a part");
  (void)w.Ok(kiln_event_wait(done, -1));
  w.Add(w.events, done)->context = buffer->context;
}

void Call_kiln_buffer_read_part(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  Part part(w, buffer);
  kiln_event* done = World::Untouched<kiln_event>();
  w.Begin("kiln_buffer_read_part", World::Name("buffer", buffer), ", ", part.offset, ", ",
          part.data.size());
  if (w.Gave(kiln_buffer_read_part(HandleOf(buffer), part.offset, part.data.data(),
                                   part.data.size(), &done),
             done)) {
    AwaitPart(w, buffer, done);
  }
}

void Call_kiln_buffer_write_part(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  if (buffer && buffer->is_shared) buffer = nullptr;
  Part part(w, buffer);
  kiln_event* done = World::Untouched<kiln_event>();
  w.Begin("kiln_buffer_write_part", World::Name("buffer", buffer), ", ", part.offset, ", ",
          part.data.size());
  if (w.Gave(kiln_buffer_write_part(HandleOf(buffer), part.offset, part.data.data(),
                                    part.data.size(), &done),
             done)) {
    AwaitPart(w, buffer, done);
  }
}

void Call_kiln_buffer_delay(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  auto event = w.PickOrNull(w.events);
  // Memory that this thread's buffers are in does not come back while it waits.
  if (event && event->is_of_memory) event = nullptr;
  w.Begin("kiln_buffer_delay", World::Name("buffer", buffer), ", ", World::Name("event", event));
  (void)w.Ok(kiln_buffer_delay(HandleOf(buffer), event ? event->handle : nullptr));
}

void Call_kiln_buffer_copy_to_device_async(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  const Place place = AnyDevice(w);
  const bool wants_event = w.Chance(50);
  kiln_event* done = World::Untouched<kiln_event>();
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin("kiln_buffer_copy_to_device_async", World::Name("buffer", buffer), ", ",
          place.handle ? place.context->names[place.device] : "NULL", " of context #",
          place.context->number, wants_event ? ", with an event" : "");
  if (w.Gave(kiln_buffer_copy_to_device_async(HandleOf(buffer), place.handle,
                                              wants_event ? &done : nullptr, &made),
             made)) {
    w.Keep(made, place.context, place.device);
    if (wants_event) w.Add(w.events, done)->context = buffer->context;
  }
}

void Call_kiln_buffer_copy_to_device(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  // Another context's, too.
  const Place place = AnyDevice(w);
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin("kiln_buffer_copy_to_device", World::Name("buffer", buffer), ", ",
          place.handle ? place.context->names[place.device] : "NULL", " of context #",
          place.context->number);
  if (w.Gave(kiln_buffer_copy_to_device(HandleOf(buffer), place.handle, &made), made)) {
    w.Keep(made, place.context, place.device);
  }
}

void Call_kiln_buffer_data(World& w) { Address(w, "kiln_buffer_data", kiln_buffer_data); }
void Call_kiln_buffer_address(World& w) { Address(w, "kiln_buffer_address", kiln_buffer_address); }
void Call_kiln_buffer_device_data(World& w) {
  Address(w, "kiln_buffer_device_data", kiln_buffer_device_data);
}

void Call_kiln_buffer_shape(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  const kiln_shape shape = KILN_SHAPE_INIT;
  const SizedCopy sized(w, shape);
  w.Begin("kiln_buffer_shape", World::Name("buffer", buffer), ", ", sized.ToString());
  const bool ok = w.Ok(kiln_buffer_shape(HandleOf(buffer), sized.As<kiln_shape>()));
  if (!ok || sized.As<kiln_shape>()->struct_size < sizeof(shape)) return;
  w.Expect(sized.As<kiln_shape>()->dtype == buffer->dtype &&
               sized.As<kiln_shape>()->rank == buffer->dims.size(),
           "another shape");
}

void Call_kiln_buffer_device(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  w.Begin("kiln_buffer_device", World::Name("buffer", buffer));
  w.Expect(kiln_buffer_device(HandleOf(buffer)) ==
               (buffer ? buffer->context->devices[buffer->device] : nullptr),
           "another device");
  w.Succeeded();
}

void Call_kiln_buffer_ready(World& w) {
  auto buffer = w.PickOrNull(w.buffers);
  kiln_event* event = World::Untouched<kiln_event>();
  w.Begin("kiln_buffer_ready", World::Name("buffer", buffer));
  if (!w.Gave(kiln_buffer_ready(HandleOf(buffer), &event), event)) return;
  w.Add(w.events, event)->context = buffer->context;
}

// --- dlpack.h

void Call_kiln_device_dlpack(World& w) {
  const Place place = AnyDevice(w);
  int32_t type = -1, number = -1;
  w.Begin("kiln_device_dlpack", place.handle ? place.context->names[place.device] : "NULL");
  const bool ok = w.Ok(kiln_device_dlpack(place.handle, &type, &number));
  w.Expect(ok ? type > 0 && number >= 0 : type == -1 && number == -1, "strange numbers");
}

void World::ReleaseTensor(void* tensor, bool is_versioned) {
  if (is_versioned) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(tensor);
    managed->deleter(managed);
  } else {
    auto* managed = static_cast<DLManagedTensor*>(tensor);
    managed->deleter(managed);
  }
}

namespace {

template <typename T>
void ToTensor(World& w, const char* function, kiln_error* (*make)(kiln_buffer*, T**)) {
  auto buffer = w.PickOrNull(w.buffers);
  T* tensor = World::Untouched<T>();
  w.Begin(function, World::Name("buffer", buffer));
  if (!w.Gave(make(HandleOf(buffer), &tensor), tensor)) return;
  w.Expect(tensor->dl_tensor.ndim == static_cast<int32_t>(buffer->dims.size()), "another rank");
  w.tensors.emplace_back(tensor, std::is_same_v<T, DLManagedTensorVersioned>);
}

// A tensor of ours.
template <typename T>
struct OwnTensor {
  T tensor{};
  std::vector<int64_t> shape, strides;
  std::atomic<int>* deleted;
};

template <typename T>
void FromTensor(World& w, const char* function,
                kiln_error* (*make)(kiln_device*, T*, kiln_buffer**)) {
  constexpr bool kVersioned = std::is_same_v<T, DLManagedTensorVersioned>;
  const Place place = AnyDevice(w);
  T* tensor = nullptr;
  size_t known = 0;
  OwnTensor<T>* own = nullptr;
  while (known < w.tensors.size() && w.tensors[known].second != kVersioned) ++known;
  if (known < w.tensors.size() && w.Chance(50)) {
    tensor = static_cast<T*>(w.tensors[known].first);
  } else if (w.Chance(98)) {
    own = w.KeepForever(std::make_unique<OwnTensor<T>>());
    tensor = &own->tensor;
    Wanted wanted = AnyArray(w);
    if (!wanted.is_good || wanted.bytes > 1 << 16) wanted = {KILN_F32, {2, 3}, true, 24};
    fuzz::Memory& memory = w.Lend(wanted.dtype, wanted.dims, 0);
    own->shape = wanted.dims;
    own->deleted = w.Counter(0);
    capi::dlpack::Tensor& t = tensor->dl_tensor;
    t.data = memory.data;
    t.device = {w.Chance(95) ? int32_t{capi::dlpack::kCpu} : static_cast<int32_t>(w.Between(0, 14)),
                0};
    t.ndim = static_cast<int32_t>(own->shape.size());
    const auto bits = static_cast<uint8_t>(kiln_dtype_bits(wanted.dtype));
    const bool is_float = wanted.dtype == KILN_F32 || wanted.dtype == KILN_F64;
    t.dtype = {static_cast<uint8_t>(is_float       ? capi::dlpack::kFloat
                                    : w.Chance(90) ? capi::dlpack::kUInt
                                                   : w.Below(20)),
               bits, static_cast<uint16_t>(w.Chance(97) ? 1 : w.Below(3))};
    t.shape = own->shape.data();
    if (w.Chance(40)) {
      // Row-major, or turned round, or a broadcast: within the memory.
      own->strides.assign(own->shape.size(), 1);
      for (size_t i = own->shape.size(); i-- > 1;) {
        own->strides[i - 1] = own->strides[i] * own->shape[i];
      }
      if (w.Chance(20)) own->strides.assign(own->shape.size(), 0);
      t.strides = own->strides.data();
    }
    if constexpr (kVersioned) {
      tensor->version = {w.Chance(95) ? 1u : 2u, static_cast<uint32_t>(w.Below(3))};
      tensor->flags = w.Chance(70) ? 0 : w.Below(8);
    }
    if (w.Chance(3)) t.ndim = static_cast<int32_t>(w.Between(-2, -1));
    tensor->manager_ctx = own;
    tensor->deleter = [](T* self) { ++*static_cast<OwnTensor<T>*>(self->manager_ctx)->deleted; };
  }
  kiln_buffer* made = World::Untouched<kiln_buffer>();
  w.Begin(function, place.handle ? place.context->names[place.device] : "NULL",
          own      ? Cat(", a tensor of type ", int{tensor->dl_tensor.dtype.code}, ", ",
                         int{tensor->dl_tensor.dtype.bits}, " bits, [", Join(own->shape, ","), "]")
          : tensor ? std::string(", a tensor of the library's")
                   : std::string(", NULL"));
  if (!w.Gave(make(place.handle, tensor, &made), made)) return;
  w.Expect(tensor, "NULL is taken");
  if (own) {
    w.ExpectCount(own->deleted, 1);
  } else {
    w.tensors.erase(w.tensors.begin() + static_cast<int64_t>(known));
  }
  w.Keep(made, place.context, place.device);
}

}  // namespace

void Call_kiln_buffer_to_dlpack(World& w) {
  ToTensor<DLManagedTensorVersioned>(w, "kiln_buffer_to_dlpack", kiln_buffer_to_dlpack);
}
void Call_kiln_buffer_to_dlpack_unversioned(World& w) {
  ToTensor<DLManagedTensor>(w, "kiln_buffer_to_dlpack_unversioned",
                            kiln_buffer_to_dlpack_unversioned);
}
void Call_kiln_buffer_from_dlpack(World& w) {
  FromTensor<DLManagedTensorVersioned>(w, "kiln_buffer_from_dlpack", kiln_buffer_from_dlpack);
}
void Call_kiln_buffer_from_dlpack_unversioned(World& w) {
  FromTensor<DLManagedTensor>(w, "kiln_buffer_from_dlpack_unversioned",
                              kiln_buffer_from_dlpack_unversioned);
}

}  // namespace kiln::fuzz
