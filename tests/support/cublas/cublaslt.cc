// A stand-in for cuBLASLt beside the one for the driver.
#include "support/cublas/cublaslt.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "device/cuda/blas_api.h"
#include "support/cuda/state.h"
#include "tensor/small_float.h"

namespace kiln::device::cuda {

struct BlasHandleObject {};
struct BlasDescObject {
  BlasCompute compute;
  BlasType scale;
  int32_t transpose_a = 0, transpose_b = 0;
};
struct BlasLayoutObject {
  BlasType type;
  int64_t rows, columns, stride;
  int32_t batch = 1;
  int64_t batch_stride = 0;
};
struct BlasPreferenceObject {
  uint64_t workspace = 0, implementations = ~uint64_t{0};
  uint32_t schemes = 7, alignments[4] = {256, 256, 256, 256};
};

namespace {

// A gemm that is to be computed, as it was when it was asked for.
struct BlasWork {
  BlasDescObject desc;
  BlasLayoutObject a, b, out;
  const std::byte *a_data, *b_data;
  std::byte* out_data;
};

struct Library {
  Library() {
    if (const char* text = std::getenv("KILN_TEST_CUBLASLT")) Configure(text);
  }
  bool Configure(const std::string& text);

  std::mutex mutex;
  int64_t version = 130100, time = 1, takes = 1, workspace = 4096;
  std::map<void*, std::shared_ptr<void>> live;
  std::string fail_symbol;
  int64_t fail_first = 0, fail_times = 0, failing_calls = 0;
  BlasError fail_status = BlasError::kInternalError;
  std::map<std::string, int64_t> calls;
  int64_t gemms = 0, rounded = 0, batches = 0, misuses = 0;
  // Kept, as work may be dropped with a context that is lost.
  std::list<BlasWork> works;
};

Library& TheLibrary() {
  static Library& library = *new Library;
  return library;
}

bool Library::Configure(const std::string& text) {
  const std::map<std::string, int64_t*> names = {{"version", &version},
                                                 {"time", &time},
                                                 {"takes", &takes},
                                                 {"workspace", &workspace},
                                                 {"fail", &fail_first}};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string setting = text.substr(at, end - at);
    at = end + 1;
    const size_t equals = setting.find('=');
    auto found = names.find(setting.substr(0, equals));
    if (equals == std::string::npos || found == names.end()) return false;
    *found->second = std::strtoll(setting.c_str() + equals + 1, nullptr, 10);
    if (found->first == "fail") fail_times = 1;
  }
  return true;
}

// A call of the library: counts it, and says what fails before it begins.
class BlasCall {
 public:
  explicit BlasCall(const char* symbol) : library(TheLibrary()), lock_(library.mutex) {
    ++library.calls[symbol];
    if (library.fail_times == 0) return;
    if (!library.fail_symbol.empty() && library.fail_symbol != symbol) return;
    const int64_t number = ++library.failing_calls;
    if (number >= library.fail_first && number - library.fail_first < library.fail_times) {
      error = library.fail_status;
    }
  }
  template <typename T, typename... Args>
  BlasError Make(T** object, Args... args) {
    std::shared_ptr<T> made(new T{args...});
    *object = made.get();
    library.live[*object] = std::move(made);
    return BlasError::kSuccess;
  }
  template <typename T>
  BlasError Destroy(T* object) {
    if (!Check(object)) return BlasError::kInvalidValue;
    library.live.erase(object);
    return BlasError::kSuccess;
  }
  bool Check(void* object) { return Check(library.live.count(object) != 0); }
  bool Check(bool right) {
    if (!right) ++library.misuses;
    return right;
  }

  Library& library;
  BlasError error = BlasError::kSuccess;

 private:
  std::lock_guard<std::mutex> lock_;
};

#define KILN_BLAS_CALL(symbol) \
  BlasCall call(#symbol);      \
  if (call.error != BlasError::kSuccess) return call.error

template <typename T>
BlasError Set(BlasCall& call, T& to, const void* from, size_t bytes) {
  if (!call.Check(bytes == sizeof(T))) return BlasError::kInvalidValue;
  std::memcpy(&to, from, bytes);
  return BlasError::kSuccess;
}

int64_t WidthOf(BlasType type) {
  switch (type) {
    case BlasType::kF64:
      return 8;
    case BlasType::kF32:
    case BlasType::kS32:
      return 4;
    case BlasType::kF16:
    case BlasType::kBF16:
      return 2;
    case BlasType::kS8:
      return 1;
  }
  return 0;
}

double Load(BlasType type, const std::byte* from, int64_t at) {
  from += at * WidthOf(type);
  auto read = [&](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return static_cast<double>(value);
  };
  switch (type) {
    case BlasType::kF64:
      return read(0.0);
    case BlasType::kF32:
      return read(0.0f);
    case BlasType::kS32:
      return read(int32_t{0});
    case BlasType::kS8:
      return read(int8_t{0});
    case BlasType::kF16: {
      Float16 value;
      std::memcpy(&value, from, sizeof(value));
      return static_cast<float>(value);
    }
    case BlasType::kBF16: {
      BFloat16 value;
      std::memcpy(&value, from, sizeof(value));
      return static_cast<float>(value);
    }
  }
  return 0;
}

void Store(BlasType type, std::byte* to, int64_t at, double value) {
  to += at * WidthOf(type);
  auto write = [&](auto rounded) { std::memcpy(to, &rounded, sizeof(rounded)); };
  switch (type) {
    case BlasType::kF64:
      return write(value);
    case BlasType::kF32:
      return write(static_cast<float>(value));
    case BlasType::kS32:
      return write(static_cast<int32_t>(value));
    case BlasType::kS8:
      return write(static_cast<int8_t>(value));
    case BlasType::kF16:
      return write(static_cast<Float16>(static_cast<float>(value)));
    case BlasType::kBF16:
      return write(static_cast<BFloat16>(static_cast<float>(value)));
  }
}

// Ten bits of the mantissa.
double ToTF32(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x1000) & ~0x1fffu);
}

void Compute(const BlasWork& w) {
  const bool rounds = w.desc.compute == BlasCompute::k32FFastTF32;
  const int64_t k = w.desc.transpose_a != 0 ? w.a.rows : w.a.columns;
  auto element = [&](const BlasLayoutObject& layout, const std::byte* data, int64_t batch,
                     bool transposed, int64_t row, int64_t column) {
    if (transposed) std::swap(row, column);
    const double value =
        Load(layout.type, data, batch * layout.batch_stride + column * layout.stride + row);
    return rounds ? ToTF32(value) : value;
  };
  for (int32_t batch = 0; batch < w.out.batch; ++batch) {
    for (int64_t column = 0; column < w.out.columns; ++column) {
      for (int64_t row = 0; row < w.out.rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          sum += element(w.a, w.a_data, batch, w.desc.transpose_a != 0, row, i) *
                 element(w.b, w.b_data, batch, w.desc.transpose_b != 0, i, column);
        }
        Store(w.out.type, w.out_data, batch * w.out.batch_stride + column * w.out.stride + row,
              sum);
      }
    }
  }
}

// All of a matrix is the device's, and its first element where it was said to be.
bool IsThere(const BlasLayoutObject& l, const void* data, uint64_t alignment) {
  const auto first = reinterpret_cast<DevicePointer>(data);
  const int64_t last = (l.batch - 1) * l.batch_stride + (l.columns - 1) * l.stride + l.rows - 1;
  if (first % alignment != 0) return false;
  for (DevicePointer at :
       {first, first + static_cast<DevicePointer>((last + 1) * WidthOf(l.type)) - 1}) {
    unsigned type = 0;
    PointerAttribute attribute = PointerAttribute::kMemoryType;
    void* value = &type;
    if (cuPointerGetAttributes(1, &attribute, &value, at) != Error::kSuccess) return true;
    if (static_cast<MemoryType>(type) != MemoryType::kDevice) return false;
  }
  return true;
}

bool FitsDesc(const BlasDescObject& d, const BlasLayoutObject& a, const BlasLayoutObject& b,
              const BlasLayoutObject& out) {
  const int64_t m = d.transpose_a != 0 ? a.columns : a.rows;
  const int64_t k = d.transpose_a != 0 ? a.rows : a.columns;
  const int64_t n = d.transpose_b != 0 ? b.rows : b.columns;
  const int64_t other_k = d.transpose_b != 0 ? b.columns : b.rows;
  for (const BlasLayoutObject* l : {&a, &b, &out}) {
    if (l->stride < l->rows || l->batch != out.batch) return false;
  }
  return k == other_k && m == out.rows && n == out.columns && a.type == b.type;
}

// Whether nothing is computed with less than the types have.
bool IsExact(const BlasDescObject& d, const BlasLayoutObject& a, const BlasPreferenceObject& p) {
  if (p.schemes != kBlasReduceInComputeType || p.workspace > (32u << 20)) return false;
  if ((p.implementations & kBlasSumF16) != 0) return false;
  if (d.compute == BlasCompute::k32I) return d.scale == BlasType::kS32;
  if (d.compute == BlasCompute::k64F) {
    return d.scale == BlasType::kF64 && (p.implementations & kBlasTensorInteger) == 0;
  }
  const bool rounds = (p.implementations & kBlasInputTF32) != 0;
  return d.scale == BlasType::kF32 &&
         (a.type != BlasType::kF32 || rounds == (d.compute == BlasCompute::k32FFastTF32));
}

constexpr uint64_t kMagic = 0x6b696c6e;

}  // namespace

#define KILN_BLAS_DECLARE(member, symbol, ...) KILN_STANDIN_EXPORT BlasError symbol(__VA_ARGS__);
KILN_BLAS_FUNCTIONS(KILN_BLAS_DECLARE)
#undef KILN_BLAS_DECLARE

KILN_STANDIN_EXPORT size_t cublasLtGetVersion() {
  return static_cast<size_t>(BlasCall("cublasLtGetVersion").library.version);
}

BlasError cublasLtCreate(BlasHandle* handle) {
  KILN_BLAS_CALL(cublasLtCreate);
  // It needs a current context.
  DeviceHandle device = 0;
  const Error error = cuCtxGetDevice(&device);
  call.Check(error != Error::kInvalidContext);
  if (error != Error::kSuccess) return BlasError::kNotInitialized;
  return call.Make(handle);
}
BlasError cublasLtDestroy(BlasHandle handle) {
  KILN_BLAS_CALL(cublasLtDestroy);
  return call.Destroy(handle);
}
BlasError cublasLtMatmulDescCreate(BlasDesc* desc, BlasCompute compute, BlasType scale) {
  KILN_BLAS_CALL(cublasLtMatmulDescCreate);
  return call.Make(desc, compute, scale);
}
BlasError cublasLtMatmulDescDestroy(BlasDesc desc) {
  KILN_BLAS_CALL(cublasLtMatmulDescDestroy);
  return call.Destroy(desc);
}
BlasError cublasLtMatmulDescSetAttribute(BlasDesc desc, BlasDescAttribute attribute,
                                         const void* from, size_t bytes) {
  KILN_BLAS_CALL(cublasLtMatmulDescSetAttribute);
  if (!call.Check(desc)) return BlasError::kInvalidValue;
  return Set(call,
             attribute == BlasDescAttribute::kTransposeA ? desc->transpose_a : desc->transpose_b,
             from, bytes);
}
BlasError cublasLtMatrixLayoutCreate(BlasLayout* layout, BlasType type, uint64_t rows,
                                     uint64_t columns, int64_t stride) {
  KILN_BLAS_CALL(cublasLtMatrixLayoutCreate);
  return call.Make(layout, type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), stride);
}
BlasError cublasLtMatrixLayoutDestroy(BlasLayout layout) {
  KILN_BLAS_CALL(cublasLtMatrixLayoutDestroy);
  return call.Destroy(layout);
}
BlasError cublasLtMatrixLayoutSetAttribute(BlasLayout layout, BlasLayoutAttribute attribute,
                                           const void* from, size_t bytes) {
  KILN_BLAS_CALL(cublasLtMatrixLayoutSetAttribute);
  if (!call.Check(layout)) return BlasError::kInvalidValue;
  return attribute == BlasLayoutAttribute::kBatch ? Set(call, layout->batch, from, bytes)
                                                  : Set(call, layout->batch_stride, from, bytes);
}
BlasError cublasLtMatmulPreferenceCreate(BlasPreference* preference) {
  KILN_BLAS_CALL(cublasLtMatmulPreferenceCreate);
  return call.Make(preference);
}
BlasError cublasLtMatmulPreferenceDestroy(BlasPreference preference) {
  KILN_BLAS_CALL(cublasLtMatmulPreferenceDestroy);
  return call.Destroy(preference);
}
BlasError cublasLtMatmulPreferenceSetAttribute(BlasPreference preference,
                                               BlasPreferenceAttribute attribute, const void* from,
                                               size_t bytes) {
  KILN_BLAS_CALL(cublasLtMatmulPreferenceSetAttribute);
  if (!call.Check(preference)) return BlasError::kInvalidValue;
  switch (attribute) {
    case BlasPreferenceAttribute::kMostWorkspaceBytes:
      return Set(call, preference->workspace, from, bytes);
    case BlasPreferenceAttribute::kReductionSchemes:
      return Set(call, preference->schemes, from, bytes);
    case BlasPreferenceAttribute::kImplementations:
      return Set(call, preference->implementations, from, bytes);
    default:
      return Set(call,
                 preference->alignments[static_cast<int>(attribute) -
                                        static_cast<int>(BlasPreferenceAttribute::kAlignmentA)],
                 from, bytes);
  }
}

BlasError cublasLtMatmulAlgoGetHeuristic(BlasHandle handle, BlasDesc desc, BlasLayout a,
                                         BlasLayout b, BlasLayout c, BlasLayout d,
                                         BlasPreference preference, int wanted, BlasChoice* choices,
                                         int* count) {
  KILN_BLAS_CALL(cublasLtMatmulAlgoGetHeuristic);
  *count = 0;
  for (void* object : std::initializer_list<void*>{handle, desc, a, b, c, d, preference}) {
    if (!call.Check(object)) return BlasError::kInvalidValue;
  }
  if (!call.Check(wanted > 0 && c == d && FitsDesc(*desc, *a, *b, *d) &&
                  IsExact(*desc, *a, *preference))) {
    return BlasError::kInvalidValue;
  }
  if (call.library.takes == 0) return BlasError::kNotSupported;
  if (call.library.takes < 0) return BlasError::kSuccess;
  *count = 1;
  choices[0] = {};
  choices[0].workspace_bytes =
      std::min(static_cast<uint64_t>(call.library.workspace), preference->workspace);
  uint64_t* data = choices[0].algorithm.data;
  data[0] = kMagic;
  data[1] = choices[0].workspace_bytes;
  for (int i = 0; i < 4; ++i) data[2 + i] = preference->alignments[i];
  return BlasError::kSuccess;
}

BlasError cublasLtMatmul(BlasHandle handle, BlasDesc desc, const void* alpha, const void* a_data,
                         BlasLayout a, const void* b_data, BlasLayout b, const void* beta,
                         const void* c_data, BlasLayout c, void* d_data, BlasLayout d,
                         const BlasAlgorithm* algorithm, void* workspace, size_t workspace_bytes,
                         StreamHandle stream) {
  KILN_BLAS_CALL(cublasLtMatmul);
  Library& library = call.library;
  for (void* object : std::initializer_list<void*>{handle, desc, a, b, c, d}) {
    if (!call.Check(object)) return BlasError::kInvalidValue;
  }
  const uint64_t* how = algorithm->data;
  const BlasLayoutObject memory{BlasType::kS8, static_cast<int64_t>(workspace_bytes), 1,
                                static_cast<int64_t>(workspace_bytes)};
  const bool right =
      how[0] == kMagic && workspace_bytes >= how[1] &&
      Load(desc->scale, static_cast<const std::byte*>(alpha), 0) == 1 &&
      Load(desc->scale, static_cast<const std::byte*>(beta), 0) == 0 && c_data == d_data &&
      FitsDesc(*desc, *a, *b, *d) && IsThere(*a, a_data, how[2]) && IsThere(*b, b_data, how[3]) &&
      IsThere(*d, d_data, how[5]) && (workspace_bytes == 0 || IsThere(memory, workspace, 256));
  if (!call.Check(right)) return BlasError::kInvalidValue;
  library.works.push_back({*desc, *a, *b, *d, static_cast<const std::byte*>(a_data),
                           static_cast<const std::byte*>(b_data), static_cast<std::byte*>(d_data)});
  auto compute = [](void* work) { Compute(*static_cast<const BlasWork*>(work)); };
  auto nothing = [](void*) {};
  Error error = cuLaunchHostFunc(stream, HostFunction{compute}, &library.works.back());
  for (int64_t i = 1; i < library.time && error == Error::kSuccess; ++i) {
    error = cuLaunchHostFunc(stream, HostFunction{nothing}, nullptr);
  }
  if (error != Error::kSuccess) return BlasError::kExecutionFailed;
  ++library.gemms;
  library.rounded += desc->compute == BlasCompute::k32FFastTF32 ? 1 : 0;
  library.batches += d->batch > 1 ? 1 : 0;
  return BlasError::kSuccess;
}

KILN_STANDIN_EXPORT int kiln_test_cublaslt_configure(const char* settings) {
  Library& library = TheLibrary();
  std::lock_guard lock(library.mutex);
  return library.Configure(settings) ? 0 : 1;
}

KILN_STANDIN_EXPORT void kiln_test_cublaslt_reset() {
  Library& library = TheLibrary();
  std::lock_guard lock(library.mutex);
  library.version = 130100;
  library.time = library.takes = 1;
  library.workspace = 4096;
  library.fail_times = library.fail_first = 0;
  library.gemms = library.rounded = library.batches = library.misuses = 0;
  library.calls.clear();
  library.works.clear();
  library.live.clear();
}

KILN_STANDIN_EXPORT void kiln_test_cublaslt_fail(const char* symbol, long long first,
                                                 long long times, int status) {
  Library& library = TheLibrary();
  std::lock_guard lock(library.mutex);
  library.fail_symbol = symbol != nullptr ? symbol : "";
  library.fail_first = first;
  library.fail_times = times;
  library.fail_status = static_cast<BlasError>(status);
  library.failing_calls = 0;
}

KILN_STANDIN_EXPORT long long kiln_test_cublaslt_count(const char* what) {
  Library& library = TheLibrary();
  std::lock_guard lock(library.mutex);
  const std::string name = what;
  if (name == "calls") return library.failing_calls;
  if (name == "live") return static_cast<long long>(library.live.size());
  if (name == "gemms") return library.gemms;
  if (name == "rounded") return library.rounded;
  if (name == "batches") return library.batches;
  if (name == "misuse") return library.misuses;
  if (name.find("cublasLt") == 0) return library.calls[name];
  return -1;
}

}  // namespace kiln::device::cuda
