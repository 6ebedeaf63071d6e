#include "capi/dlpack.h"

#include <algorithm>
#include <cstring>

#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/buffer.h"
#include "kiln/dlpack.h"

namespace kiln::capi {
namespace {

using client::Buffer;
using client::Deferred;
using client::Device;

struct TypeRow {
  ElementType type;
  uint8_t code;
};

// The bits are the element type's own, and of preds 8.
constexpr TypeRow kTypes[] = {
    {ElementType::kPred, dlpack::kBool},
    {ElementType::kS8, dlpack::kInt},
    {ElementType::kS16, dlpack::kInt},
    {ElementType::kS32, dlpack::kInt},
    {ElementType::kS64, dlpack::kInt},
    {ElementType::kU8, dlpack::kUInt},
    {ElementType::kU16, dlpack::kUInt},
    {ElementType::kU32, dlpack::kUInt},
    {ElementType::kU64, dlpack::kUInt},
    {ElementType::kF16, dlpack::kFloat},
    {ElementType::kF32, dlpack::kFloat},
    {ElementType::kF64, dlpack::kFloat},
    {ElementType::kBF16, dlpack::kBfloat},
    {ElementType::kC64, dlpack::kComplex},
    {ElementType::kC128, dlpack::kComplex},
    {ElementType::kF8E3M4, dlpack::kFloat8E3M4},
    {ElementType::kF8E4M3, dlpack::kFloat8E4M3},
    {ElementType::kF8E4M3B11FNUZ, dlpack::kFloat8E4M3B11Fnuz},
    {ElementType::kF8E4M3FN, dlpack::kFloat8E4M3Fn},
    {ElementType::kF8E4M3FNUZ, dlpack::kFloat8E4M3Fnuz},
    {ElementType::kF8E5M2, dlpack::kFloat8E5M2},
    {ElementType::kF8E5M2FNUZ, dlpack::kFloat8E5M2Fnuz},
    {ElementType::kF8E8M0FNU, dlpack::kFloat8E8M0Fnu},
    {ElementType::kF6E2M3FN, dlpack::kFloat6E2M3Fn},
    {ElementType::kF6E3M2FN, dlpack::kFloat6E3M2Fn},
    {ElementType::kF4E2M1FN, dlpack::kFloat4E2M1Fn},
    {ElementType::kS4, dlpack::kInt},
    {ElementType::kU4, dlpack::kUInt},
    {ElementType::kS2, dlpack::kInt},
    {ElementType::kU2, dlpack::kUInt},
};

// Types of less than a byte occupy a byte here; in DLPack they do so with a flag, and are packed
// otherwise.
bool NeedsPadding(ElementType type) { return BitWidth(type) < 8; }

Result<dlpack::DataType> DataTypeOf(ElementType type, bool has_flags) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type && (has_flags || !NeedsPadding(type))) {
      return dlpack::DataType{row.code, static_cast<uint8_t>(BitWidth(type)), 1};
    }
  }
  return Unimplemented("DLPack has no elements like those of ", TypeName(type));
}

Result<ElementType> TypeOf(const dlpack::DataType& dtype, bool is_padded) {
  if (dtype.lanes != 1) {
    return Unimplemented("a DLPack tensor with ", dtype.lanes, " lanes in an element");
  }
  for (const TypeRow& row : kTypes) {
    if (row.code != dtype.code || BitWidth(row.type) != dtype.bits) continue;
    if (is_padded || !NeedsPadding(row.type)) return row.type;
  }
  return Unimplemented("a DLPack tensor of type code ", static_cast<int>(dtype.code), " and ",
                       static_cast<int>(dtype.bits), " bits");
}

dlpack::Device DeviceOf(const Device& device) {
  if (const auto* cuda = device.runtime().cuda()) return {dlpack::kCuda, cuda->ordinal()};
  return {dlpack::kCpu, 0};
}

Status JoinDefaultStream(runtime::Device& device) {
  runtime::CudaInterop* cuda = device.cuda();
  return cuda ? cuda->JoinDefaultStream() : OkStatus();
}

// A checked tensor.
struct View {
  Shape shape;
  std::vector<int64_t> strides;  // in bytes
  std::byte* data = nullptr;     // of the first element
  bool is_row_major = true;
  // The begin and end of the elements, relative to `data`.
  int64_t low = 0, high = 0;
};

Result<View> ReadTensor(const dlpack::Tensor& tensor, bool is_padded) {
  if (tensor.ndim < 0) return InvalidArgument("a DLPack tensor of ", tensor.ndim, " dimensions");
  const auto rank = static_cast<size_t>(tensor.ndim);
  if (rank > 0 && !tensor.shape) return InvalidArgument("a DLPack tensor without its shape");
  KILN_ASSIGN_OR_RETURN(ElementType type, TypeOf(tensor.dtype, is_padded));
  View view;
  KILN_ASSIGN_OR_RETURN(view.shape, ShapeOf(static_cast<kiln_dtype>(type), tensor.shape, rank));
  const int64_t width = ByteWidth(type);
  view.strides.resize(rank);
  if (view.shape.num_elements() == 0) return view;
  if (!tensor.data) return InvalidArgument("a DLPack tensor of ", view.shape, " without data");
  view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  int64_t row_major = width;
  for (size_t d = rank; d-- > 0;) {
    const int64_t size = tensor.shape[d];
    int64_t stride = row_major, reach = 0;
    if (tensor.strides && __builtin_mul_overflow(tensor.strides[d], width, &stride)) {
      return InvalidArgument("a DLPack tensor with stride ", tensor.strides[d]);
    }
    view.is_row_major &= size == 1 || stride == row_major;
    if (__builtin_mul_overflow(stride, size - 1, &reach) ||
        __builtin_add_overflow(reach, reach < 0 ? view.low : view.high,
                               reach < 0 ? &view.low : &view.high)) {
      return InvalidArgument("a DLPack tensor whose strides reach too far: ", stride / width,
                             " in dimension ", d);
    }
    view.strides[d] = stride;
    row_major *= size;
  }
  if (__builtin_add_overflow(view.high, width, &view.high) || view.high - view.low < 0) {
    return InvalidArgument("a DLPack tensor whose strides reach too far");
  }
  return view;
}

// The elements in row-major order; `data` is the host address of the first one.
std::vector<std::byte> Gather(const View& view, const std::byte* data) {
  std::vector<std::byte> out(static_cast<size_t>(view.shape.byte_size()));
  const auto width = static_cast<size_t>(ByteWidth(view.shape.type()));
  const std::vector<int64_t>& dims = view.shape.dims();
  std::vector<int64_t> index(dims.size());
  std::byte* to = out.data();
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * view.strides[d];
    std::memcpy(to, data + offset, width);
    to += width;
  } while (NextIndex(dims, index));
  return out;
}

bool IsHost(const dlpack::Device& device) {
  return device.type == dlpack::kCpu || device.type == dlpack::kCudaHost;
}

bool IsCuda(const dlpack::Device& device) {
  return device.type == dlpack::kCuda || device.type == dlpack::kCudaManaged;
}

// Whether the device can use the tensor's memory in place.
bool IsMemoryOf(const Device& device, const dlpack::Device& memory) {
  if (const auto* cuda = device.runtime().cuda()) {
    return memory.type == dlpack::kCudaManaged ||
           (memory.type == dlpack::kCuda && memory.id == cuda->ordinal());
  }
  // An emulated GPU's memory is the host's, too; XLA_CPU devices always copy.
  return IsHost(memory) && (device.shares_host_memory() || !device.runtime().has_host_memory());
}

// The device, or else another one of its context, that can access the memory of a tensor.
Result<Device*> ReaderOf(Device& device, const dlpack::Device& memory) {
  if (IsMemoryOf(device, memory)) return &device;
  for (const auto& other : device.client().devices()) {
    if (IsCuda(memory) && IsMemoryOf(*other, memory)) return other.get();
  }
  return Unimplemented("a DLPack tensor in memory of device type ", memory.type, ", number ",
                       memory.id, ", which is none of the context's devices");
}

Result<Ref<Buffer>> CopyView(Device& device, const View& view, const dlpack::Device& memory) {
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, Buffer::Allocate(device, view.shape));
  if (view.shape.num_elements() == 0) return made;
  runtime::Device& to = device.runtime();
  const std::byte* data = view.data;
  std::vector<std::byte> fetched, gathered;
  if (IsCuda(memory)) {
    KILN_ASSIGN_OR_RETURN(Device * reader, ReaderOf(device, memory));
    KILN_RETURN_IF_ERROR(JoinDefaultStream(reader->runtime()));
    if (reader == &device && view.is_row_major) {
      KILN_RETURN_IF_ERROR(to.Copy(made->data(), data, made->bytes()));
      // The tensor is released next.
      KILN_RETURN_IF_ERROR(to.Synchronise());
      return made;
    }
    fetched.resize(static_cast<size_t>(view.high - view.low));
    KILN_RETURN_IF_ERROR(
        reader->runtime().CopyToHost(fetched.data(), data + view.low, view.high - view.low));
    data = fetched.data() - view.low;
  }
  if (!view.is_row_major) {
    gathered = Gather(view, data);
    data = gathered.data();
  }
  KILN_RETURN_IF_ERROR(to.CopyFromHost(made->data(), data, made->bytes()));
  return made;
}

Result<Ref<Buffer>> Import(Device& device, const dlpack::Tensor& tensor, uint64_t flags,
                           std::unique_ptr<Deferred> deleter) {
  KILN_ASSIGN_OR_RETURN(View view, ReadTensor(tensor, (flags & dlpack::kPadded) != 0));
  if (!IsHost(tensor.device)) {
    KILN_RETURN_IF_ERROR(ReaderOf(device, tensor.device).status());
  }
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  const auto element_bytes = static_cast<uintptr_t>(ByteWidth(view.shape.type()));
  if (device.shares_host_memory() && IsHost(tensor.device) && view.is_row_major &&
      address % element_bytes == 0) {
    Ref<Buffer> made = Buffer::Wrap(device, view.shape, view.data, std::move(deleter));
    if (flags & dlpack::kReadOnly) made->storage().set_read_only();
    return made;
  }
  if (IsMemoryOf(device, tensor.device) && view.is_row_major && address % KILN_ALIGNMENT == 0) {
    KILN_RETURN_IF_ERROR(JoinDefaultStream(device.runtime()));
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made,
                          Buffer::WrapDevice(device, view.shape, view.data, deleter));
    if (flags & dlpack::kReadOnly) made->storage().set_read_only();
    return made;
  }
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, CopyView(device, view, tensor.device));
  deleter->Call();
  return made;
}

// Releases a tensor to its producer.
template <typename Managed>
class GiveBack : public Deferred {
 public:
  explicit GiveBack(Managed* managed) : managed_(managed) {}
  void Call() noexcept override {
    if (managed_->deleter) managed_->deleter(managed_);
  }

 private:
  Managed* managed_;
};

// An exported buffer, with a user's reference to it.
template <typename Managed>
class Export {
 public:
  static Result<Managed*> Make(kiln_buffer* handle) {
    constexpr bool kHasFlags = requires(Managed m) { m.flags; };
    Buffer* buffer = Unwrap(handle);
    if (!buffer->shape().is_array()) return InvalidArgument("a token is no DLPack tensor");
    const ElementType type = buffer->shape().type();
    KILN_ASSIGN_OR_RETURN(dlpack::DataType dtype, DataTypeOf(type, kHasFlags));
    KILN_RETURN_IF_ERROR(buffer->WaitForValue());
    // For readers outside of the device's order.
    KILN_RETURN_IF_ERROR(buffer->device().runtime().Synchronise());
    auto made = std::make_unique<Export>();
    dlpack::Tensor& tensor = made->managed_.dl_tensor;
    tensor.data = buffer->data();
    tensor.device = DeviceOf(buffer->device());
    tensor.ndim = static_cast<int32_t>(buffer->dims().size());
    tensor.dtype = dtype;
    made->dims_ = buffer->dims();
    made->strides_.resize(made->dims_.size());
    int64_t stride = 1;
    for (size_t d = made->dims_.size(); d-- > 0;) {
      made->strides_[d] = stride;
      stride *= std::max<int64_t>(made->dims_[d], 1);
    }
    tensor.shape = made->dims_.data();
    tensor.strides = made->strides_.data();
    made->managed_.manager_ctx = made.get();
    made->managed_.deleter = Delete;
    if constexpr (kHasFlags) {
      made->managed_.flags = dlpack::kReadOnly | (NeedsPadding(type) ? dlpack::kPadded : 0);
    }
    kiln_buffer_retain(handle);
    made->buffer_ = handle;
    return &made.release()->managed_;
  }

 private:
  static void Delete(Managed* self) {
    auto* made = static_cast<Export*>(self->manager_ctx);
    kiln_buffer_release(made->buffer_);
    delete made;
  }

  Managed managed_;
  std::vector<int64_t> dims_, strides_;
  kiln_buffer* buffer_ = nullptr;
};

template <typename Managed>
kiln_error* ToDlpack(const char* function, kiln_buffer* buffer, Managed** tensor) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull(function, {{"buffer", buffer}, {"tensor", tensor}}));
    KILN_ASSIGN_OR_RETURN(*tensor, Export<Managed>::Make(buffer));
    return OkStatus();
  });
}

template <typename Managed>
kiln_error* FromDlpack(const char* function, kiln_device* device, Managed* tensor,
                       kiln_buffer** buffer) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull(function, {{"device", device}, {"tensor", tensor}, {"buffer", buffer}}));
    uint64_t flags = 0;
    if constexpr (requires(Managed m) { m.version; }) {
      if (tensor->version.major != dlpack::kMajor) {
        return Unimplemented("a tensor of DLPack ", tensor->version.major, ".",
                             tensor->version.minor, "; this library knows version ",
                             dlpack::kMajor);
      }
      flags = tensor->flags;
    }
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> made, Import(*Unwrap(device), tensor->dl_tensor, flags,
                                                   std::make_unique<GiveBack<Managed>>(tensor)));
    *buffer = HandOver(std::move(made));
    return OkStatus();
  });
}

}  // namespace
}  // namespace kiln::capi

using kiln::OkStatus;
using kiln::Status;

kiln_error* kiln_device_dlpack(const kiln_device* device, int32_t* device_type,
                               int32_t* device_id) {
  return kiln::capi::Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(kiln::capi::NotNull(
        "kiln_device_dlpack",
        {{"device", device}, {"device_type", device_type}, {"device_id", device_id}}));
    kiln::capi::dlpack::Device told = kiln::capi::DeviceOf(*kiln::capi::Unwrap(device));
    *device_type = told.type;
    *device_id = told.id;
    return OkStatus();
  });
}

kiln_error* kiln_buffer_to_dlpack(kiln_buffer* buffer, struct DLManagedTensorVersioned** tensor) {
  return kiln::capi::ToDlpack("kiln_buffer_to_dlpack", buffer, tensor);
}

kiln_error* kiln_buffer_to_dlpack_unversioned(kiln_buffer* buffer,
                                              struct DLManagedTensor** tensor) {
  return kiln::capi::ToDlpack("kiln_buffer_to_dlpack_unversioned", buffer, tensor);
}

kiln_error* kiln_buffer_from_dlpack(kiln_device* device, struct DLManagedTensorVersioned* tensor,
                                    kiln_buffer** buffer) {
  return kiln::capi::FromDlpack("kiln_buffer_from_dlpack", device, tensor, buffer);
}

kiln_error* kiln_buffer_from_dlpack_unversioned(kiln_device* device, struct DLManagedTensor* tensor,
                                                kiln_buffer** buffer) {
  return kiln::capi::FromDlpack("kiln_buffer_from_dlpack_unversioned", device, tensor, buffer);
}
