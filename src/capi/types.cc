#include <chrono>

#include "base/strings.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "capi/text.h"

namespace kiln::capi {

kiln_shape DescribeShape(const Shape& shape, const std::vector<int64_t>& dims) {
  kiln_shape described = KILN_SHAPE_INIT;
  if (shape.is_array()) {
    described.dtype = static_cast<kiln_dtype>(shape.type());
    described.rank = dims.size();
    described.dims = dims.data();
  } else if (shape.is_token()) {
    described.dtype = KILN_TOKEN;
  } else {
    described.dtype = KILN_TUPLE;
    described.rank = shape.elements().size();
  }
  described.byte_size = shape.is_static() ? shape.byte_size() : -1;
  return described;
}

Status CheckSwitch(std::string_view name, int32_t value) {
  if (value == 0 || value == 1) return OkStatus();
  return InvalidArgument(name, " is ", value, "; expected 0 or 1");
}

Result<client::Device*> ChosenDevice(client::Client& client, kiln_device* device) {
  client::Device* chosen = device ? Unwrap(device) : client.devices().front().get();
  if (&chosen->client() != &client) {
    return InvalidArgument("the device ", chosen->name(), " is of another context than the graph");
  }
  return chosen;
}

Result<Interrupt> InterruptOf(std::string_view name, const int32_t* cancel, int64_t timeout_ns) {
  if (timeout_ns < 0) return InvalidArgument(name, ".timeout_ns is ", timeout_ns);
  if (timeout_ns == 0) return Interrupt(cancel);
  using Clock = Interrupt::Clock;
  const Clock::time_point now = Clock::now();
  const auto timeout = std::chrono::nanoseconds(timeout_ns);
  const bool is_never = timeout >= Clock::time_point::max() - now;
  return Interrupt(cancel, is_never ? Clock::time_point::max() : now + timeout);
}

Result<Shape> ShapeOf(kiln_dtype dtype, const int64_t* dims, size_t rank) {
  if (!IsElementType(dtype)) return InvalidArgument("dtype ", dtype, " is not an element type");
  if (!dims && rank > 0) return InvalidArgument("dims is NULL, with a rank of ", rank);
  if (rank > static_cast<size_t>(kMaxRank)) {
    return InvalidArgument("rank ", rank, "; the largest is ", kMaxRank);
  }
  Shape shape(static_cast<ElementType>(dtype), std::span<const int64_t>(dims, rank));
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

Status CheckMemoryOf(const Shape& shape, const void* data, size_t bytes) {
  if (bytes != static_cast<size_t>(shape.byte_size())) {
    return InvalidArgument("bytes is ", bytes, "; ", shape, " takes ", shape.byte_size());
  }
  if (!data && bytes > 0) return InvalidArgument("data is NULL, with ", bytes, " bytes");
  return OkStatus();
}

Result<Shape> ShapeOfMemory(kiln_dtype dtype, const int64_t* dims, size_t rank, const void* data,
                            size_t bytes) {
  KILN_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dtype, dims, rank));
  KILN_RETURN_IF_ERROR(CheckMemoryOf(shape, data, bytes));
  return shape;
}

}  // namespace kiln::capi

// The views are null-terminated literals.
const char* kiln_dtype_name(kiln_dtype dtype) {
  if (dtype == KILN_TUPLE) return "tuple";
  if (dtype == KILN_TOKEN) return "token";
  return kiln::TypeName(static_cast<kiln::ElementType>(dtype)).data();
}

int32_t kiln_dtype_bits(kiln_dtype dtype) {
  if (!kiln::IsElementType(dtype)) return 0;
  return static_cast<int32_t>(8 * kiln::ByteWidth(static_cast<kiln::ElementType>(dtype)));
}

const char* kiln_text_data(const kiln_text* text, size_t* length) {
  if (length) *length = text ? text->text.size() : 0;
  return text ? text->text.c_str() : nullptr;
}

void kiln_text_retain(kiln_text* text) {
  if (text) text->Retain();
}

void kiln_text_release(kiln_text* text) {
  if (text) text->Release();
}
