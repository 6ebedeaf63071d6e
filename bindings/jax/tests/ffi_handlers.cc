// Handlers of jax.ffi, as users write them, for ffi_test.py.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// y = a x + b, where b is in an array of one number.
ffi::Error Axpb(float a, ffi::Span<const float> b, ffi::Buffer<ffi::F32> x,
                ffi::ResultBuffer<ffi::F32> y) {
  if (b.size() != 1) return ffi::Error::InvalidArgument("b must have one number");
  for (size_t i = 0; i < x.element_count(); ++i) {
    y->typed_data()[i] = a * x.typed_data()[i] + b.begin()[0];
  }
  return ffi::Error::Success();
}

// Attributes of all types, as a text in the result's bytes.
ffi::Error Describe(ffi::Dictionary attributes, ffi::ResultBuffer<ffi::U8> text) {
  std::string out;
  auto number = [&](const char* name, auto value) {
    out += std::string(name) + "=" + std::to_string(value) + ";";
  };
  auto take = [&](const char* name, auto zero) {
    auto value = attributes.get<decltype(zero)>(name);
    if (value.has_value()) number(name, *value);
  };
  take("boolean", bool{});
  take("i8", int8_t{});
  take("i16", int16_t{});
  take("i32", int32_t{});
  take("i64", int64_t{});
  take("u8", uint8_t{});
  take("u16", uint16_t{});
  take("u32", uint32_t{});
  take("u64", uint64_t{});
  take("f32", float{});
  take("f64", double{});
  if (auto value = attributes.get<std::string_view>("string"); value.has_value()) {
    out += "string=" + std::string(*value) + ";";
  }
  if (auto list = attributes.get<ffi::Span<const int64_t>>("array"); list.has_value()) {
    for (int64_t value : *list) number("array", value);
  }
  if (auto inner = attributes.get<ffi::Dictionary>("dictionary"); inner.has_value()) {
    if (auto value = inner->get<int64_t>("inner"); value.has_value()) number("inner", *value);
    number("size", inner->size());
  }
  std::memset(text->typed_data(), 0, text->element_count());
  std::memcpy(text->typed_data(), out.data(), std::min(out.size(), text->element_count()));
  return ffi::Error::Success();
}

// Any type, any rank: the bytes, and what the types and sizes are.
ffi::Error Copy(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                ffi::ResultBuffer<ffi::S64> facts) {
  if (x.element_type() != y->element_type()) return ffi::Error::InvalidArgument("types differ");
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  facts->typed_data()[0] = static_cast<int64_t>(x.element_type());
  facts->typed_data()[1] = static_cast<int64_t>(x.dimensions().size());
  facts->typed_data()[2] = static_cast<int64_t>(x.element_count());
  return ffi::Error::Success();
}

ffi::Error Fail(std::string_view message) {
  return ffi::Error(ffi::ErrorCode::kFailedPrecondition, std::string(message));
}

// A state per call: the number of its executions, from a start that is an attribute.
struct Counter {
  static ffi::TypeId id;
  static std::atomic<int64_t> live;
  explicit Counter(int64_t start) : value(start) { ++live; }
  ~Counter() { --live; }
  std::atomic<int64_t> value;
};
ffi::TypeId Counter::id = {};
std::atomic<int64_t> Counter::live = 0;

ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter(int64_t start) {
  if (start < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("start is negative"));
  return std::make_unique<Counter>(start);
}

ffi::Error Count(Counter* counter, int64_t, ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = counter->value++;
  return ffi::Error::Success();
}

// The execution's context: scratch memory, threads, numbers.
ffi::Error Context(ffi::ScratchAllocator scratch, ffi::ThreadPool pool, ffi::RunId run,
                   int32_t device, ffi::Buffer<ffi::S64> x, ffi::ResultBuffer<ffi::S64> y) {
  const size_t count = x.element_count();
  std::optional<void*> memory = scratch.Allocate(count * sizeof(int64_t), 256);
  if (!memory || reinterpret_cast<uintptr_t>(*memory) % 256 != 0) {
    return ffi::Error::Internal("no aligned memory");
  }
  if (run.run_id == 0 || device != 0 || pool.num_threads() < 1) {
    return ffi::Error::Internal("odd numbers");
  }
  auto* squares = static_cast<int64_t*>(*memory);
  std::atomic<size_t> done = 0;
  for (size_t i = 0; i < count; ++i) {
    pool.Schedule([&, i] {
      squares[i] = x.typed_data()[i] * x.typed_data()[i];
      ++done;
    });
  }
  while (done < count) std::this_thread::yield();
  y->typed_data()[0] = std::accumulate(squares, squares + count, int64_t{0});
  return ffi::Error::Success();
}

// Finished later, by another thread.
ffi::Future Later(int64_t fail, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([fail, from = x.typed_data(), to = y->typed_data(), count = x.element_count(),
               promise = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (size_t i = 0; i < count; ++i) to[i] = from[i] + 1;
    if (fail != 0) {
      promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "later"));
    } else {
      promise.SetAvailable();
    }
  }).detach();
  return future;
}

// In place: the result is the operand's memory.
ffi::Error Increment(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (x.typed_data() != y->typed_data()) return ffi::Error::Internal("two memories");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] += 1;
  return ffi::Error::Success();
}

#if XLA_FFI_API_MINOR >= 5
// What an execution can have beside its arrays, and Kiln's has not: options, and extensions.
struct Absent {
  static constexpr const char* kName = "absent";
  static constexpr int64_t kExtensionType = 1234;
  static constexpr int32_t kMajorVersion = 1, kMinorVersion = 0;
  struct CExtension {
    XLA_FFI_Extension base;
  };
  using Type = int;
  static Type Create(const XLA_FFI_Api*, const CExtension*) { return 1; }
};

ffi::Error Additions(ffi::Context context, ffi::Dictionary options, ffi::ResultBuffer<ffi::S64> y) {
  y->typed_data()[0] = static_cast<int64_t>(options.size());
  auto absent = context.get<ffi::Extension<Absent>>();
  if (absent.has_value()) return ffi::Error::Internal("there is an extension");
  return ffi::Error(ffi::ErrorCode::kNotFound, absent.error().message());
}
#endif

std::atomic<int64_t> effects = 0;

ffi::Error Effect(ffi::Buffer<ffi::S64> x) {
  effects += x.typed_data()[0];
  return ffi::Error::Success();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(axpb, Axpb,
                              ffi::Ffi::Bind()
                                  .Attr<float>("a")
                                  .Attr<ffi::Span<const float>>("b")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(describe, Describe,
                              ffi::Ffi::Bind().Attrs().Ret<ffi::Buffer<ffi::U8>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    copy, Copy,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(fail, Fail, ffi::Ffi::Bind().Attr<std::string_view>("message"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(make_counter, MakeCounter,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Attr<int64_t>("start")
                                  .Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(context, Context,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ctx<ffi::RunId>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Arg<ffi::Buffer<ffi::S64>>()
                                  .Ret<ffi::Buffer<ffi::S64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(later, Later,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("fail")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    increment, Increment,
    ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(effect, Effect, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::S64>>());

#if XLA_FFI_API_MINOR >= 5
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    additions, Additions,
    ffi::Ffi::Bind().Ctx<ffi::Context>().Ctx<ffi::CustomOptions>().Ret<ffi::Buffer<ffi::S64>>());
#endif

// Functions without the interface, in its three older forms.
extern "C" void original(void* out, const void** in) {
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(out)[i] = 2 * static_cast<const float*>(in[0])[i];
  }
}

extern "C" void with_status(void* out, const void** in, void*) {
  auto* results = static_cast<void**>(out);
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(results[0])[i] = 3 * static_cast<const float*>(in[0])[i];
    static_cast<float*>(results[1])[i] = 4 * static_cast<const float*>(in[0])[i];
  }
}

extern "C" void with_text(void* out, const void** in, const char* text, size_t length, void*) {
  const float factor = std::stof(std::string(text, length));
  for (int i = 0; i < 3; ++i) {
    static_cast<float*>(out)[i] = factor * static_cast<const float*>(in[0])[i];
  }
}

extern "C" XLA_FFI_TypeId* counter_id() { return &Counter::id; }
extern "C" const XLA_FFI_TypeInfo* counter_info() {
  static const XLA_FFI_TypeInfo info = ffi::MakeTypeInfo<Counter>();
  return &info;
}
extern "C" int64_t live_counters() { return Counter::live; }
extern "C" int64_t sum_of_effects() { return effects; }
