// DLPack's structures, by its specification (version 1.1): the layout is an ABI shared by array
// libraries. The public header only declares their names.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::capi::dlpack {

constexpr uint32_t kMajor = 1, kMinor = 1;

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

struct Device {
  int32_t type = kCpu;
  int32_t id = 0;  // 0 for memory of the host
};

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  // Since 1.1.
  kFloat8E3M4 = 7,
  kFloat8E4M3 = 8,
  kFloat8E4M3B11Fnuz = 9,
  kFloat8E4M3Fn = 10,
  kFloat8E4M3Fnuz = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2Fnuz = 13,
  kFloat8E8M0Fnu = 14,
  kFloat6E2M3Fn = 15,
  kFloat6E3M2Fn = 16,
  kFloat4E2M1Fn = 17,
};

struct DataType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  int32_t ndim = 0;
  DataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements; null: row-major
  uint64_t byte_offset = 0;    // of the first element from `data`
};

struct Version {
  uint32_t major = kMajor;
  uint32_t minor = kMinor;
};

// Flags.
constexpr uint64_t kReadOnly = 1;
constexpr uint64_t kPadded = 4;  // elements of less than a byte take a whole one

static_assert(sizeof(Device) == 8 && sizeof(DataType) == 4 && sizeof(Version) == 8);
static_assert(sizeof(void*) != 8 || sizeof(Tensor) == 48);

}  // namespace kiln::capi::dlpack

// The exchanged structure. Its owner calls `deleter` once, which frees it, too; null: there is
// nothing to free.
struct DLManagedTensor {
  kiln::capi::dlpack::Tensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensor* self) = nullptr;
};

struct DLManagedTensorVersioned {
  kiln::capi::dlpack::Version version;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;
  uint64_t flags = 0;
  kiln::capi::dlpack::Tensor dl_tensor;
};

static_assert(sizeof(void*) != 8 || sizeof(DLManagedTensor) == 64);
static_assert(sizeof(void*) != 8 || (offsetof(DLManagedTensorVersioned, flags) == 24 &&
                                     offsetof(DLManagedTensorVersioned, dl_tensor) == 32));
